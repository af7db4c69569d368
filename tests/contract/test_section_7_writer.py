"""Section 7 of the contract: the writer of hooks and tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from streampipe import Agent, DataChunk, RunResult, ToolContext
from streampipe.contracts import HOOKS
from streampipe.errors import ProcessorError
from streampipe.messages import DataPart, Part
from streampipe.testing import ScriptedModel, call
from tests.contract.guards import (
    ALL_HOOKS,
    Runner,
    guarded,
    is_text,
    list_of,
    lookup_into,
    processor,
    types,
    unchanged,
)

MOOD = {"type": "data-mood", "data": {"level": 1}}


def parts_of(result: RunResult, kind: str = "data-mood") -> list[Part]:
    """The stored data parts of a run."""
    return [part for m in result.messages for part in m.parts if part.type == kind]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("hook", HOOKS)
async def test_7_every_hook_has_a_writer_usable_with_and_without_await(
    run: Runner, hook: str, *, asynchronous: bool
) -> None:
    """The chunk reaches the client once, and is a part of the assistant's message."""

    def write(args: Any) -> Any:
        args.writer.custom(MOOD)
        return {"retry": True} if hook == "process_api_error" else unchanged(hook, args)

    async def write_async(args: Any) -> Any:
        await args.writer.custom(MOOD)
        return {"retry": True} if hook == "process_api_error" else unchanged(hook, args)

    def once(args: Any) -> Any:
        if args.state or (hook == "process_output_stream" and not is_text(args)):
            return unchanged(hook, args)
        args.state["written"] = True
        return write_async(args) if asynchronous else write(args)

    async def once_async(args: Any) -> Any:
        made = once(args)
        return await made if asyncio.iscoroutine(made) else made

    lists: dict[str, Any] = {
        list_of(hook): [processor(**{hook: once_async if asynchronous else once})]
    }
    script = ALL_HOOKS if hook == "process_api_error" else ALL_HOOKS[1:]
    seen = await run(Agent(model=ScriptedModel(script), tools=[lookup_into([])], **lists))
    assert seen.error is None
    # What a rejected attempt has written is void like the rest of it.
    stored = [] if hook == "process_api_error" else [DataPart({"level": 1}, type="data-mood")]
    assert parts_of(seen.result) == stored
    if seen.chunks is not None:
        [chunk] = (c for c in seen.chunks if isinstance(c, DataChunk))
        assert chunk == DataChunk("data-mood", {"level": 1}, run_id=seen.result.run_id)


async def test_7_what_a_stream_hook_writes_comes_before_the_part_being_processed(
    run: Runner,
) -> None:
    """In the stream and in the stored message."""

    def write(args: Any) -> Any:
        if args.part.text == "b":
            args.writer.custom({"type": "data-1"})
            args.writer.custom({"type": "data-2"})
        return args.part

    seen = await run(guarded("process_output_stream", write, script=[["a", "b", "c"]]))
    if seen.chunks is not None:
        inner = [getattr(c, "text", c.type) for c in seen.chunks[4:-3]]
        assert inner == ["a", "data-1", "data-2", "b", "c"]


async def test_7_a_written_chunk_is_seen_by_later_processors_that_ask_for_data(
    run: Runner,
) -> None:
    """Not by the writer itself, not by those before it, nor where `process_data_parts` is false."""
    got: dict[str, list[str]] = {"before": [], "after": [], "blind": []}

    def noting(name: str, *, data: bool) -> Any:
        def note(args: Any) -> Any:
            if args.part.type.startswith("data-"):
                got[name].append(args.part.type)
            return args.part

        return processor(name, process_output_stream=note, process_data_parts=data)

    def write(args: Any) -> Any:
        assert not args.part.type.startswith("data-")
        if is_text(args):
            args.writer.custom(MOOD)
        return args.part

    writer = processor("writer", process_output_stream=write)
    output = [
        noting("before", data=True), writer,
        noting("after", data=True), noting("blind", data=False),
    ]  # fmt: skip
    await run(Agent(model=ScriptedModel(["a"]), output_processors=output))
    assert got == {"before": [], "after": ["data-mood"], "blind": []}


@pytest.mark.parametrize("verdict", ["dropped", "replaced", "blocked"])
async def test_7_a_later_processor_decides_on_written_chunks(run: Runner, verdict: str) -> None:
    """It may drop, replace or block them like any other chunk."""

    def decide(args: Any) -> Any:
        if args.part.type != "data-mood":
            return args.part
        if verdict == "blocked":
            args.abort("no moods")
        return None if verdict == "dropped" else DataChunk("data-tone", 2)

    output = [
        processor("writer", process_output_step=lambda args: args.writer.custom(MOOD) and None),
        processor(process_output_stream=decide, process_data_parts=True),
    ]
    seen = await run(Agent(model=ScriptedModel(["a"]), output_processors=output))
    assert parts_of(seen.result) == []
    tones = [DataPart(2, type="data-tone")] if verdict == "replaced" else []
    assert parts_of(seen.result, "data-tone") == tones
    assert seen.result.finish_reason == ("other" if verdict == "blocked" else "stop")
    if seen.chunks is not None:
        assert "data-mood" not in types(seen.chunks)


async def test_7_a_transient_chunk_is_sent_and_not_stored(run: Runner) -> None:
    """`transient: true` is for the client's eyes only."""

    def write(args: Any) -> Any:
        args.writer.custom(MOOD | {"transient": True})

    seen = await run(guarded("process_output_step", write, script=["a"]))
    assert parts_of(seen.result) == []
    if seen.chunks is not None:
        [chunk] = (c for c in seen.chunks if isinstance(c, DataChunk))
        assert chunk.transient is True


async def test_7_message_id_says_which_message_a_written_part_belongs_to(run: Runner) -> None:
    """Here the first step's, written in the second; without it the newest."""

    def write(args: Any) -> Any:
        if args.step_number == 1:
            args.writer.custom(MOOD, message_id=args.message_list.response[0].id)
            args.writer.custom({"type": "data-tone"})

    seen = await run(guarded("process_output_step", write))
    first, second = seen.result.messages
    assert [part.type for part in first.parts if part.type.startswith("data-")] == ["data-mood"]
    assert [part.type for part in second.parts if part.type.startswith("data-")] == ["data-tone"]


NO_DATA: dict[str, tuple[Any, str]] = {
    "other type": ({"type": "mood"}, "must start with 'data-', not 'mood'"),
    "no type": ({"data": 1}, "must start with 'data-'"),
    "unknown key": ({"type": "data-x", "payload": 1}, "unknown key 'payload'"),
    "text": ("data-x", "takes a data-* chunk or a dict, not str"),
}


@pytest.mark.parametrize("name", NO_DATA)
@pytest.mark.parametrize("hook", HOOKS)
async def test_7_a_writer_refuses_what_is_no_data_chunk(run: Runner, hook: str, name: str) -> None:
    """With `ValueError`, in any hook; uncaught it fails the run like any error of a hook."""
    chunk, told = NO_DATA[name]
    seen = await run(guarded(hook, lambda args: args.writer.custom(chunk)))
    assert isinstance(seen.error, ProcessorError)
    assert isinstance(seen.error.__cause__, ValueError)
    assert told in str(seen.error)
    assert hook in str(seen.error)


@pytest.mark.parametrize("awaited", [False, True])
async def test_7_tools_have_the_same_writer(run: Runner, *, awaited: bool) -> None:
    """What a tool writes is in the stream before its result, and stored in its step's message."""

    async def search(word: str, context: ToolContext) -> str:
        sent = context.writer.custom(MOOD | {"data": word})
        if awaited:
            await sent
        context.writer.custom({"type": "data-progress", "transient": True})
        return "found"

    agent = Agent(model=ScriptedModel([[call("search", {"word": "x"})], ["ok"]]), tools=[search])
    seen = await run(agent)
    assert parts_of(seen.result) == [DataPart("x", type="data-mood")]
    assert seen.result.messages[0].parts[-1] == DataPart("x", type="data-mood")
    if seen.chunks is not None:
        kinds = [kind for kind in types(seen.chunks) if kind.startswith(("data-", "tool-result"))]
        assert kinds == ["data-mood", "data-progress", "tool-result"]


async def test_7_a_tools_writer_refuses_what_is_no_data_chunk(run: Runner) -> None:
    """The tool fails with `ValueError`, which the model is told."""

    async def search(word: str, context: ToolContext) -> str:
        await context.writer.custom({"type": "mood", "data": word})
        return "found"

    agent = Agent(model=ScriptedModel([[call("search", {"word": "x"})], ["ok"]]), tools=[search])
    [error] = (await run(agent)).result.steps[0].tool_errors
    assert "must start with 'data-', not 'mood'" in error.error


async def test_7_progress_of_a_streaming_tool_is_transient_data(run: Runner) -> None:
    """Each value of an async generator but the last is told to the client; that is the result."""

    async def count() -> AsyncIterator[int]:
        yield 1
        yield 2

    agent = Agent(model=ScriptedModel([[call("count")], ["ok"]]), tools=[count])
    seen = await run(agent)
    assert [r.result for r in seen.result.tool_results] == [2]
    assert parts_of(seen.result, "data-tool-progress") == []
    if seen.chunks is not None:
        [chunk] = (c for c in seen.chunks if isinstance(c, DataChunk))
        assert chunk.data["output"] == 1
