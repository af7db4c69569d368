"""Operators behind a run: they get all of it, and what they fail with is their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from streampipe import AbortSignal, Agent, Chunk, FinishChunk, TextDelta, TripWire
from streampipe import operators as ops
from streampipe.errors import OperatorError
from streampipe.testing import ScriptedModel, delay, no_leaks, run_virtual
from tests.contract.guards import processor


async def same(chunk: Chunk) -> Chunk:
    """A slow mapper."""
    await asyncio.sleep(0.1)
    return chunk


async def fine(_text: Any) -> bool:
    """A verdict."""
    return True


async def no(_text: Any) -> bool:
    """A verdict."""
    return False


ASYNC: dict[str, Callable[[], Any]] = {
    "map_async": lambda: ops.map_async(same),
    "map_async, three at once": lambda: ops.map_async(same, concurrency=3),
    "filter_async": lambda: ops.filter_async(fine),
    "check_async": lambda: ops.check_async(fine),
    "smooth": lambda: ops.smooth(1),
}
each = pytest.mark.parametrize("make", ASYNC.values(), ids=ASYNC)


async def kinds(agent: Agent, *operators: Any, **options: Any) -> list[str]:
    """The types of what comes out behind a run."""
    stream = agent.observe("hi", **options).pipe(*operators)
    return [chunk.type async for chunk in ops.to_aiter(stream)]


@each
def test_the_end_of_a_run_comes_out(make: Callable[[], Any]) -> None:
    """An async operator behind it passes on every chunk, the last one too."""
    agent = Agent(model=ScriptedModel([["one ", "two"]]))
    assert run_virtual(kinds(agent, make()))[-2:] == ["step-finish", "finish"]


@each
def test_the_end_of_a_blocked_run_comes_out(make: Callable[[], Any]) -> None:
    """What tells of the block, and the end."""

    def block(args: Any) -> Any:
        if isinstance(args.part, TextDelta):
            args.abort("no")
        return args.part

    agent = Agent(
        model=ScriptedModel([["one ", "two"]]),
        output_processors=[processor(process_output_stream=block)],
    )
    assert run_virtual(kinds(agent, make()))[-2:] == ["tripwire", "finish"]


@pytest.mark.parametrize("name", ["map_async", "map_async, three at once", "filter_async"])
def test_the_end_of_a_cancelled_run_comes_out(name: str) -> None:
    """An abort signal closes the open part, says so, and ends the run."""

    async def go() -> list[str]:
        signal = AbortSignal()
        asyncio.get_running_loop().call_later(1, signal.abort, "enough")
        agent = Agent(model=ScriptedModel([["one ", delay(60), "two"]]))
        return await kinds(agent, ASYNC[name](), abort_signal=signal)

    assert run_virtual(go())[-3:] == ["text-end", "abort", "finish"]


@pytest.mark.parametrize("kind", ["text-delta", "step-finish", "finish"])
@pytest.mark.parametrize("colour", ["sync", "async"])
async def test_what_an_operator_behind_a_run_fails_with(kind: str, colour: str) -> None:
    """It fails its stream, at whichever chunk: the run itself has not failed, and is closed."""

    def boom(chunk: Chunk) -> Chunk:
        if chunk.type == kind:
            raise ValueError("the viewer's own")
        return chunk

    async def boom_later(chunk: Chunk) -> Chunk:
        return boom(chunk)

    model = ScriptedModel([["one ", "two"]])
    operator = ops.map(boom) if colour == "sync" else ops.map_async(boom_later)
    seen: list[str] = []
    async with no_leaks():
        with pytest.raises((OperatorError, ValueError)):
            async for chunk in ops.to_aiter(Agent(model=model).observe("hi").pipe(operator)):
                seen.append(chunk.type)  # noqa: PERF401 - what came before the failure
    assert kind not in seen
    assert "error" not in seen


@pytest.mark.parametrize(
    "guard",
    [
        pytest.param(lambda: ops.block("two"), id="block"),
        pytest.param(lambda: ops.check_async(no), id="check_async"),
    ],
)
async def test_a_guard_behind_a_run_trips_its_own_stream(guard: Callable[[], Any]) -> None:
    """Sync or async, it is one thing: the stream fails with the wire, nothing of it came out."""
    agent = Agent(model=ScriptedModel([["one two three"]]))
    text = ""
    with pytest.raises(TripWire):
        async for chunk in ops.to_aiter(agent.observe("hi").pipe(guard())):
            text += chunk.text if isinstance(chunk, TextDelta) else ""
    assert "two" not in text


async def test_a_reader_that_has_stopped_holds_no_cancelled_run() -> None:
    """The end of a run is given to its readers, whether or not they have room for it."""
    agent = Agent(model=ScriptedModel([["x"] * 50]), high_water=1)
    async with asyncio.timeout(5):
        run = agent.stream("hi")
        chunks = run.__aiter__()
        await anext(chunks)
        await run.cancel("enough")
        last = [chunk async for chunk in chunks][-1]
    assert isinstance(last, FinishChunk)
    assert last.reason == "aborted"
