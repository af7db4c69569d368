"""Whoever stops listening closes the provider's connection, on real sockets, within 100 ms."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from streampipe import AbortSignal, Agent, TextDelta
from streampipe.testing import ModelServer, Piece, delay

LIMIT = 0.1  # seconds
ANSWER: list[Piece] = [*["word "] * 5, delay(30), "never"]


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    """A server whose answer pauses for longer than any test takes."""
    async with ModelServer([ANSWER]) as running:
        yield running


async def assert_closed(server: ModelServer, stopped: float) -> None:
    """The server saw its client leave, soon enough, and its answer was not whole."""
    request = server.requests[-1]
    async with asyncio.timeout(5):
        seen = await request.wait()
    assert not request.completed
    assert seen - stopped < LIMIT


class BlockAtThird:
    """Blocks at the third piece of text."""

    id = "third"

    def process_output_stream(self, args: Any) -> Any:
        """Count, then block."""
        if isinstance(args.part, TextDelta):
            args.state["n"] = args.state.get("n", 0) + 1
            if args.state["n"] == 3:
                args.abort("enough")
        return args.part


async def test_a_block_closes_the_connection(server: ModelServer) -> None:
    """The model's stream is closed at once, not read to its end."""
    stopped: list[float] = []

    class Noting(BlockAtThird):
        def process_output_stream(self, args: Any) -> Any:
            try:
                return super().process_output_stream(args)
            finally:
                stopped.append(time.monotonic())

    agent = Agent(model=server.model(), output_processors=[Noting()])
    result = await agent.generate("hi")
    assert result.tripwire is not None
    await assert_closed(server, stopped[-1])


async def test_a_cancel_closes_the_connection(server: ModelServer) -> None:
    """`run.cancel()` is awaited until the connection is closed."""
    stopped = 0.0
    async with Agent(model=server.model()).stream("hi") as run:
        async for chunk in run:
            if isinstance(chunk, TextDelta):
                stopped = time.monotonic()
                await run.cancel()
                break
    await assert_closed(server, stopped)


async def test_leaving_the_context_closes_the_connection(server: ModelServer) -> None:
    """An early `break` out of the stream, then out of its context."""
    async with Agent(model=server.model()).stream("hi") as run:
        async for chunk in run:
            if isinstance(chunk, TextDelta):
                break
        stopped = time.monotonic()
    await assert_closed(server, stopped)


async def test_an_early_break_without_a_context_closes_the_connection(server: ModelServer) -> None:
    """A run that nobody refers to any more is cancelled."""

    async def first_words() -> float:
        async for chunk in Agent(model=server.model()).stream("hi"):
            if isinstance(chunk, TextDelta):
                break
        return time.monotonic()

    await assert_closed(server, await first_words())


async def test_an_abort_signal_closes_the_connection(server: ModelServer) -> None:
    """The signal of the call stops it from outside."""
    signal = AbortSignal()
    stopped = 0.0
    async with Agent(model=server.model()).stream("hi", abort_signal=signal) as run:
        async for chunk in run:
            if isinstance(chunk, TextDelta) and not signal.aborted:
                stopped = time.monotonic()
                signal.abort("no more")
        result = await run.result()
    assert result.finish_reason == "aborted"
    await assert_closed(server, stopped)


async def test_disposing_an_observed_run_closes_the_connection(server: ModelServer) -> None:
    """The observable's subscription owns the run."""
    seen = asyncio.Event()

    def on_next(chunk: Any) -> None:
        if isinstance(chunk, TextDelta):
            seen.set()

    subscription = Agent(model=server.model()).observe("hi").subscribe(on_next)
    await seen.wait()
    stopped = time.monotonic()
    subscription.dispose()
    await assert_closed(server, stopped)


async def test_cancelling_the_task_of_generate_closes_the_connection(server: ModelServer) -> None:
    """The caller's own cancel, as a timeout makes one, reaches the socket."""
    words = asyncio.Event()

    class Telling:
        id = "telling"

        def process_output_stream(self, args: Any) -> Any:
            if isinstance(args.part, TextDelta):
                words.set()
            return args.part

    agent = Agent(model=server.model(), output_processors=[Telling()])
    task = asyncio.create_task(agent.generate("hi"))
    await words.wait()
    stopped = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await assert_closed(server, stopped)
