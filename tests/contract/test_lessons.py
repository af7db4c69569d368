"""Streams that break: what users of such systems ran into, and what happens here instead."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator
from typing import Any

import pytest

from streampipe import (
    Agent,
    Chunk,
    FinishChunk,
    StepFinish,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
)
from streampipe.errors import IncompleteStreamError
from streampipe.testing import ModelServer, ScriptedModel, call, delay, fail, turn
from tests.contract.guards import (
    LoggedModel,
    Runner,
    balanced,
    processor,
    texts,
    types,
)


def again(args: Any) -> Any:
    """Grant a retry."""
    return {"retry": True}


async def test_lesson_a_block_cancels_the_provider() -> None:
    """Over HTTP: the answer is cut off while the provider would go on; the connection is closed."""

    def third(args: Any) -> Any:
        if getattr(args.part, "text", "") == "3 ":
            args.abort("enough")
        return args.part

    script: list[Any] = [["1 ", "2 ", "3 ", delay(30), "4 "]]
    async with ModelServer(script) as server, asyncio.timeout(5):
        agent = Agent(
            model=server.model(), output_processors=[processor(process_output_stream=third)]
        )
        chunks = [chunk async for chunk in agent.stream("hi")]
        await server.closed()
        assert not server.requests[0].completed
    assert texts(chunks) == ["1 ", "2 "]


@pytest.mark.parametrize("ending", ["completed", "blocked", "failed", "cancelled"])
async def test_lesson_every_awaitable_settles_and_endings_are_told_apart(ending: str) -> None:
    """Two consumers, a result and a cancel: all settle, and the result says how it ended."""

    def act(args: Any) -> Any:
        if ending == "blocked":
            args.abort("no")
        if ending == "failed":
            raise ValueError

    output = [processor(process_output_step=act)]
    model = ScriptedModel([["a", *([delay(30)] if ending == "cancelled" else [])]])
    one = Agent(model=model, output_processors=output).stream("hi")
    started = asyncio.Event()

    async def read() -> list[Chunk]:
        chunks: list[Chunk] = []
        async for chunk in one:
            chunks.append(chunk)
            if isinstance(chunk, TextDelta):
                started.set()
        return chunks

    async with asyncio.timeout(5):
        readers = [asyncio.ensure_future(read()) for _ in range(2)]
        result = asyncio.ensure_future(one.result())
        await started.wait()
        if ending == "cancelled":
            await one.cancel("enough")
        first, second = await asyncio.gather(*readers)
        [outcome] = await asyncio.gather(result, return_exceptions=True)
        await one.cancel()  # when all is over it changes nothing
    assert first == second
    assert types(first)[-1] == "finish"
    ended: Any = getattr(outcome, "result", None) or outcome
    reasons = {"completed": "stop", "blocked": "other", "failed": "error", "cancelled": "aborted"}
    assert ended.finish_reason == reasons[ending]
    assert first[-1].to_wire()["payload"]["reason"] == reasons[ending]


async def test_lesson_a_batcher_loses_neither_tail_nor_tool_calls(run: Runner) -> None:
    """A hook may return several chunks: held text comes before whatever ends the batch."""

    def batch(args: Any) -> Any:
        held = args.state.setdefault("held", [])
        if args.part.type == "text-delta":
            held.append(args.part.text)
            if len(held) < 2:
                return None
        whole = [TextDelta("0", "".join(held))] if held else []
        held.clear()
        return whole if args.part.type == "text-delta" else [*whole, args.part]

    def lookup(word: str) -> str:
        return word

    script: list[Any] = [["a", "b", "c", call("lookup", {"word": "x"})], ["d"]]
    output = [processor(process_output_stream=batch)]
    seen = await run(Agent(model=ScriptedModel(script), tools=[lookup], output_processors=output))
    assert seen.result.text == "abcd"
    assert [r.result for r in seen.result.tool_results] == ["x"]
    if seen.chunks is not None:
        assert texts(seen.chunks) == ["ab", "c", "d"]
        kinds = types(seen.chunks)
        assert kinds.index("text-end") < kinds.index("tool-call")
        assert balanced(seen.chunks)


async def test_lesson_a_part_that_the_model_leaves_open_is_closed_through_the_processors(
    run: Runner,
) -> None:
    """So that whoever holds text can rely on `text-end` to flush."""

    def hold(args: Any) -> Any:
        if args.part.type == "text-delta":
            args.state["held"] = args.part
            return None
        return [args.state["held"], args.part] if args.part.type == "text-end" else args.part

    script = [turn(TextStart("7"), TextDelta("7", "tail"), FinishChunk())]
    output = [processor(process_output_stream=hold)]
    seen = await run(Agent(model=ScriptedModel(script), output_processors=output))
    assert seen.result.text == "tail"
    if seen.chunks is not None:
        assert TextEnd("7", run_id=seen.result.run_id) in seen.chunks


async def test_lesson_the_text_of_a_rejected_attempt_is_not_in_the_result(run: Runner) -> None:
    """Not "draftfinal": what a client shows after the last `step-start` is the result's text."""

    def reject_draft(args: Any) -> Any:
        if args.text == "draft":
            args.abort("no drafts", retry=True)

    output = [processor(process_output_step=reject_draft)]
    model = ScriptedModel(["draft", "final"])
    agent = Agent(model=model, output_processors=output, max_processor_retries=1)
    seen = await run(agent)
    assert seen.result.text == "final"
    if seen.chunks is not None:
        shown: list[str] = []
        for chunk in seen.chunks:
            if isinstance(chunk, StepStart):
                shown.clear()
            if isinstance(chunk, TextDelta):
                shown.append(chunk.text)
        assert "".join(shown) == "final"


async def test_lesson_a_retry_after_partial_output_runs_nothing_twice(run: Runner) -> None:
    """A failure in mid-stream, after a whole tool call: the call runs once, in the new attempt."""
    ran: list[str] = []

    def pay(word: str) -> str:
        ran.append(word)
        return "paid"

    script: list[Any] = [
        ["draft", call("pay", {"word": "x"}), fail()],
        ["final", call("pay", {"word": "x"})],
        ["done"],
    ]
    agent = Agent(
        model=ScriptedModel(script),
        tools=[pay],
        error_processors=[processor(process_api_error=again)],
    )
    seen = await run(agent)
    assert ran == ["x"]
    assert seen.result.text == "finaldone"
    assert len(seen.result.tool_calls) == 1
    if seen.chunks is not None:
        voids = [c for c in seen.chunks if isinstance(c, StepFinish) and c.reason == "retry"]
        assert len(voids) == 1


async def test_lesson_tools_of_accepted_steps_are_not_repeated_by_a_later_retry(
    run: Runner,
) -> None:
    """A retry of the second step leaves the first one's effects alone."""
    ran: list[str] = []

    def pay(word: str) -> str:
        ran.append(word)
        return "paid"

    def reject_draft(args: Any) -> Any:
        if args.text == "draft":
            args.abort("no drafts", retry=True)

    script: list[Any] = [[call("pay", {"word": "x"})], ["draft"], ["final"]]
    output = [processor(process_output_step=reject_draft)]
    model = ScriptedModel(script)
    agent = Agent(model=model, tools=[pay], output_processors=output, max_processor_retries=1)
    assert (await run(agent)).result.text == "final"
    assert ran == ["x"]


async def test_lesson_there_is_one_retry_budget_and_each_retry_is_an_event(run: Runner) -> None:
    """A step costs at most 1 + budget calls; `result.retries` says how many there were."""
    model = LoggedModel([[fail()]] * 10)
    agent = Agent(
        model=model,
        error_processors=[
            processor("one", process_api_error=again),
            processor("two", process_api_error=again),
        ],
        max_processor_retries=3,
    )
    seen = await run(agent)
    assert model.calls == 4
    assert seen.result.retries == 3
    if seen.chunks is not None:
        voids = [c for c in seen.chunks if isinstance(c, StepFinish) and c.reason == "retry"]
        assert len(voids) == 3


async def test_lesson_a_provider_stream_that_just_stops_is_an_error_that_can_be_retried(
    run: Runner,
) -> None:
    """Over HTTP: no success with half an answer."""
    async with ModelServer([turn("half", incomplete=True), ["whole"]], repeat=True) as server:
        plain = await run(Agent(model=server.model(max_retries=0)))
        assert isinstance(plain.error, IncompleteStreamError)
        assert plain.error.is_retryable
        await run(Agent(model=server.model(max_retries=0)))  # plays the whole turn
        errors = [processor(process_api_error=lambda args: {"retry": args.error.is_retryable})]
        retried = await run(Agent(model=server.model(max_retries=0), error_processors=errors))
    assert retried.result.text == "whole"
    assert retried.result.retries == 1


# --- one owner ------------------------------------------------------------------------------------

FLAG: contextvars.ContextVar[str] = contextvars.ContextVar("FLAG", default="outside")


class OwnedModel:
    """A model that holds a context variable and a timeout across its yields."""

    provider = "owned"
    model_id = "m"

    def __init__(self) -> None:
        """Nothing is open yet."""
        self.tasks: set[Any] = set()
        self.closed_in: list[Any] = []
        self.closed = asyncio.Event()

    async def stream(self, request: Any) -> AsyncIterator[Chunk]:
        """Yield text for ever, within scopes that only their own task may leave."""
        token = FLAG.set("inside")
        self.tasks.add(asyncio.current_task())
        try:
            async with asyncio.timeout(30):
                yield TextStart()
                while True:
                    yield TextDelta("0", "x")
                    await asyncio.sleep(0)
        finally:
            FLAG.reset(token)  # fails in another context
            await asyncio.sleep(0)  # fails in a generator that is collected as garbage
            self.closed_in.append(asyncio.current_task())
            self.closed.set()


def stop_at(count: int) -> Any:
    """A guard that blocks at that many pieces of text."""

    def look(args: Any) -> Any:
        args.state["n"] = args.state.get("n", 0) + (args.part.type == "text-delta")
        if args.state["n"] >= count:
            args.abort("enough")
        return args.part

    return processor(process_output_stream=look)


@pytest.mark.parametrize("way", ["leave", "cancel", "block", "observe", "drop"])
async def test_lesson_a_source_has_one_owner_who_closes_it(way: str) -> None:
    """However the run is left, the model is closed in the task and context that opened it."""
    model = OwnedModel()
    agent = Agent(model=model, output_processors=[stop_at(5)] if way == "block" else [])
    async with asyncio.timeout(5):
        if way == "leave":
            async with agent.stream("hi") as one:
                async for chunk in one:
                    if isinstance(chunk, TextDelta):
                        break
        elif way == "observe":
            async for chunk in (stream := aiter(agent.observe("hi"))):
                if isinstance(chunk, TextDelta):
                    break
            await stream.aclose()  # type: ignore[attr-defined]  # a generator has it
        else:
            one = agent.stream("hi")
            async for chunk in (reader := aiter(one)):
                if isinstance(chunk, TextDelta) and way != "block":
                    break
            if way == "cancel":
                await one.cancel()
            await reader.aclose()  # type: ignore[attr-defined]  # a generator has it
            del one, reader
            await model.closed.wait()  # a run that nobody refers to any more is cancelled
    assert len(model.closed_in) == 1
    assert set(model.closed_in) == model.tasks
    assert asyncio.current_task() not in model.tasks
    assert FLAG.get() == "outside"


async def test_lesson_leaving_a_viewer_is_not_cancelling_the_run() -> None:
    """One of two readers goes; the other gets everything, and the result is whole."""
    one = Agent(model=ScriptedModel([[f"{n} " for n in range(600)]])).stream("hi")

    async def impatient() -> None:
        async for chunk in one:
            if isinstance(chunk, TextDelta):
                break

    async def patient() -> list[Chunk]:
        return [chunk async for chunk in one]

    _, chunks = await asyncio.gather(impatient(), patient())
    result = await one.result()
    assert result.finish_reason == "stop"
    assert len(texts(chunks)) == 600
    assert "".join(texts(chunks)) == result.text


async def test_lesson_a_cancelled_future_is_never_an_error_value() -> None:
    """Cancelling the task of a reader is heard by that reader as a cancel."""
    one = Agent(model=OwnedModel()).stream("hi")

    async def read() -> None:
        async for _ in one:
            pass

    reader = asyncio.ensure_future(read())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    await one.cancel()
    assert (await one.result()).finish_reason == "aborted"
