"""Section 5 of the contract: open parts, the order of chunks, what is void, and the end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe import (
    Agent,
    Chunk,
    FinishChunk,
    ReasoningDelta,
    ReasoningStart,
    StepFinish,
    TextDelta,
    TextEnd,
    TextStart,
)
from streampipe.testing import ScriptedModel, fail, reasoning
from tests.contract.guards import Runner, is_text, processor, texts, types
from tests.contract.listeners import CALL, agent_with, joined, keeping, stream_processor

LIFECYCLE = ("start", "step-start", "step-finish", "finish")


def holder(log: list[str] | None = None, *, asynchronous: bool = False) -> Any:
    """A processor that holds text back until its part or the attempt ends."""

    def hold(args: Any) -> Any:
        part, held = args.part, args.state.setdefault("held", [])
        if is_text(args):
            held.append(part.text)
            return None
        if isinstance(part, TextEnd):
            text = "".join(held)
            held.clear()
            return [TextDelta(part.id, text), part]
        if isinstance(part, StepFinish) and part.reason == "retry":
            if log is not None:
                log.append("dropped " + "".join(held))
            held.clear()
        return part

    async def hold_later(args: Any) -> Any:
        await asyncio.sleep(0)
        return hold(args)

    return processor("holder", process_output_stream=hold_later if asynchronous else hold)


# --- every part that was opened is closed -------------------------------------------------------

OPEN: dict[str, tuple[list[Any], list[str]]] = {
    "text": ([TextStart("t"), TextDelta("t", "a")], ["text-end"]),
    "reasoning": ([ReasoningStart("r"), ReasoningDelta("r", "a")], ["reasoning-end"]),
    "both": (
        [ReasoningStart("r"), TextStart("t"), TextDelta("t", "a")],
        ["reasoning-end", "text-end"],
    ),
    "with no piece": ([TextStart("t")], ["text-end"]),
}


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("name", OPEN)
async def test_5_a_part_that_the_model_left_open_is_closed_through_the_processors(
    run: Runner, name: str, *, asynchronous: bool
) -> None:
    """Each of them sees the closing chunk, before `process_output_step`."""
    made, closing = OPEN[name]
    log: list[Chunk] = []
    at_step: list[int] = []
    look = processor("look", process_output_step=lambda _: at_step.append(len(log)))
    seen = await run(agent_with(keeping(log, asynchronous=asynchronous), look, script=[made]))
    assert types(log[: at_step[0]])[-len(closing) :] == closing
    if seen.chunks is not None:
        assert types(seen.chunks) == types(log)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_5_a_processor_that_holds_text_can_rely_on_the_closing_chunk(
    run: Runner, *, asynchronous: bool
) -> None:
    """What it holds is flushed when the model forgets to close the part, too."""
    script: list[Any] = [[TextStart("t"), TextDelta("t", "a"), TextDelta("t", "b")]]
    seen = await run(agent_with(holder(asynchronous=asynchronous), script=script))
    assert seen.result.text == "ab"
    assert joined(seen.result.messages) == ["ab"]


async def test_5_a_part_whose_end_a_processor_swallowed_is_closed_all_the_same(run: Runner) -> None:
    """The client sees it closed before the step goes on."""
    swallow = stream_processor(lambda p: None if p.type in ("text-end", "reasoning-end") else p)
    seen = await run(agent_with(swallow, script=[[reasoning("r"), "a", CALL], ["b"]]))
    assert seen.result.text == "ab"
    assert joined(seen.result.messages) == ["a", "b"]
    if seen.chunks is not None:
        told = types(seen.chunks)
        assert told.count("text-end") == told.count("text-start") == 2
        assert told.index("text-end") < told.index("tool-result")


async def test_5_text_without_an_opening_chunk_is_kept(run: Runner) -> None:
    """A careless model's pieces are in the message, as they are in the stream; empty parts not."""
    script: list[Any] = [[TextDelta("t", "a"), ReasoningStart("r"), TextDelta("t", "b")]]
    seen = await run(agent_with(script=script))
    assert seen.result.text == "ab"
    [message] = seen.result.messages
    assert [part.type for part in message.parts] == ["text"]
    assert message.text == "ab"


async def test_5_such_text_is_a_hooks_to_edit(run: Runner) -> None:
    """What `process_output_step` made of it stays."""

    def redact(args: Any) -> None:
        args.messages[-1].parts[0].text = "***"

    look = processor("redact", process_output_step=redact)
    seen = await run(agent_with(look, script=[[TextDelta("t", "secret"), CALL], ["b"]]))
    assert joined(seen.result.messages) == ["***", "***"]


@pytest.mark.parametrize("way", ["abort", "raise"])
async def test_5_on_abort_held_text_is_discarded(run: Runner, way: str) -> None:
    """Nobody gets the closing chunk on which it would be flushed."""

    def stop(args: Any) -> Any:
        if args.part.type == "reasoning-start":
            if way == "raise":
                raise ValueError
            args.abort("no")
        return args.part

    log: list[Chunk] = []
    guard = processor("guard", process_output_stream=stop)
    open_text: list[Any] = [TextStart("t"), TextDelta("t", "held"), ReasoningStart("r")]
    seen = await run(agent_with(keeping(log), guard, holder(), script=[open_text]))
    assert seen.result.text == ""
    assert "text-end" not in types(log)
    if seen.chunks is not None:
        assert texts(seen.chunks) == []
        assert types(seen.chunks)[-3] == "text-end"


# --- order --------------------------------------------------------------------------------------

PIECES = st.lists(
    st.one_of(st.text("abc", min_size=1, max_size=2), st.text("xyz", max_size=2).map(reasoning)),
    min_size=1,
    max_size=8,
)
CHAINS = st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=3)


def slow(name: str, turns: int, *, asynchronous: bool) -> Any:
    """A processor that takes some turns of the loop for some of the chunks, and doubles text."""
    count = 0

    def double(args: Any) -> Any:
        return [args.part, args.part] if is_text(args) else args.part

    async def double_later(args: Any) -> Any:
        nonlocal count
        count += 1
        for _ in range(turns if count % 2 else 0):
            await asyncio.sleep(0)
        return double(args)

    return processor(name, process_output_stream=double_later if asynchronous else double)


@given(PIECES, CHAINS)
async def test_5_order_is_kept_whether_hooks_are_sync_or_async(
    pieces: list[Any], kinds: list[tuple[int, bool]]
) -> None:
    """Any chain makes the same stream as its sync twin, chunk by chunk."""
    streams: list[list[tuple[str, str]]] = []
    for sync in (False, True):
        chain = [
            slow(str(i), turns, asynchronous=is_async and not sync)
            for i, (turns, is_async) in enumerate(kinds)
        ]
        agent = Agent(model=ScriptedModel([pieces]), output_processors=chain)
        async with agent.stream("hi") as stream:
            streams.append([(c.type, getattr(c, "text", "")) async for c in stream])
    assert streams[0] == streams[1]
    said = [piece for piece in pieces if isinstance(piece, str)]
    told = [text for kind, text in streams[0] if kind == "text-delta"]
    assert told == [piece for piece in said for _ in range(2 ** len(kinds))]


# --- void ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("cause", ["abort", "model failure"])
async def test_5_a_void_is_announced_to_processors(
    run: Runner, cause: str, *, asynchronous: bool
) -> None:
    """`step-finish` with reason `retry` passes them: who holds text drops it there."""
    dropped: list[str] = []
    passed: list[Chunk] = []

    def reject(args: Any) -> Any:
        if args.part.type == "reasoning-start" and args.retry_count == 0:
            args.abort("no", retry=True)
        return args.part

    open_text: list[Any] = [TextStart("t"), TextDelta("t", "void")]
    stop = ReasoningStart("r") if cause == "abort" else fail()
    agent = agent_with(
        processor("reject", process_output_stream=reject),
        holder(dropped, asynchronous=asynchronous),
        keeping(passed, "after"),
        script=[[*open_text, stop], ["good"]],
        max_processor_retries=1,
        error_processors=[processor("again", process_api_error=lambda _: {"retry": True})],
    )
    seen = await run(agent)
    assert dropped == ["dropped void"]
    assert seen.result.text == "good"
    assert texts(passed) == ["good"]
    [retry] = [c for c in passed if isinstance(c, StepFinish) and c.reason == "retry"]
    assert retry.tripwire is not None
    if seen.chunks is not None:
        assert texts(seen.chunks) == ["good"]


async def test_5_chunks_that_close_parts_on_a_void_go_straight_to_the_client(run: Runner) -> None:
    """No processor sees them, so that nothing held can slip out with them."""
    passed: list[Chunk] = []
    script: list[Any] = [[TextStart("t"), TextDelta("t", "void"), fail()], ["good"]]
    again = processor("again", process_api_error=lambda _: {"retry": True})
    seen = await run(agent_with(keeping(passed), script=script, error_processors=[again]))
    first = types(passed[: types(passed).index("step-finish")])
    assert first[-2:] == ["text-start", "text-delta"]
    if seen.chunks is not None:
        told = types(seen.chunks)
        assert told[told.index("step-finish") - 1] == "text-end"


# --- lifecycle ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LIFECYCLE)
@pytest.mark.parametrize("how", ["drop", "replace"])
async def test_5_a_lifecycle_chunk_that_a_processor_drops_is_delivered_all_the_same(
    run: Runner, kind: str, how: str
) -> None:
    """The client can rely on the frame of a run, whatever processors do."""
    other = {"type": "data-x", "data": 1}
    drop = stream_processor(
        lambda part: part if part.type != kind else None if how == "drop" else other
    )
    seen = await run(agent_with(drop, script=[["a", CALL], ["b"]]))
    if seen.chunks is not None:
        frame = [name for name in types(seen.chunks) if name in LIFECYCLE]
        step = ["step-start", "step-finish"]
        assert frame == ["start", *step, *step, "finish"]
    if how == "drop":
        assert seen.result.text == "ab"


async def test_5_finish_is_the_last_chunk_and_comes_once(run: Runner) -> None:
    """What a processor sends with it or after it comes before it; a second one does not come."""

    def more(part: Chunk) -> Any:
        if isinstance(part, FinishChunk):
            return [part, FinishChunk("length", part.usage), {"type": "data-x", "data": 1}]
        return part

    seen = await run(agent_with(stream_processor(more), script=[["a"]]))
    if seen.chunks is not None:
        assert types(seen.chunks)[-3:] == ["step-finish", "data-x", "finish"]
        assert types(seen.chunks).count("finish") == 1


async def test_5_a_rewritten_finish_is_the_runs(run: Runner) -> None:
    """Its reason is the result's."""

    def cut(part: Chunk) -> Any:
        return FinishChunk("length", part.usage) if isinstance(part, FinishChunk) else part

    seen = await run(agent_with(stream_processor(cut), script=[["a"]]))
    assert seen.result.finish_reason == "length"
