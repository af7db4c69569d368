"""What lies between a model and a reader that is slower: how many chunks, and how much memory.

A tick is a turn of the event loop. In each the reader takes as many chunks as it is told to, and
the model, which never waits by itself, has its turn: nothing here depends on a clock.
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing

from reactivex import Subject

from benchmarks.work import REQUEST
from streampipe import Agent, Chunk, FinishChunk, TextDelta, TextEnd, TextStart, Usage
from streampipe.contracts import ModelRequest

__all__ = ["Backlog", "CountingModel", "held_kib", "in_run", "in_subject"]

KIB = 1024
Backlog = Callable[[Sequence[int]], AsyncIterator[int]]
"""Takes how many chunks the reader reads in each tick; gives how many lie unread after it."""


class CountingModel:
    """A model that says its text as fast as it is asked to, and counts.

    Attributes:
        made: how many pieces of text it has said.
    """

    provider = "benchmark"
    model_id = "counting"

    def __init__(self, chunks: int) -> None:
        """Say so many pieces of text."""
        self.chunks = chunks
        self.made = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:  # noqa: ARG002 - it says the same to all
        """Answer."""
        yield TextStart("0")
        for number in range(self.chunks):
            self.made += 1
            yield TextDelta("0", f"word {number} ")
        yield TextEnd("0")
        yield FinishChunk("stop", Usage(1, self.chunks))


def in_run(chunks: int, high_water: int) -> Backlog:
    """The backlog of an agent's run.

    Args:
        chunks: pieces of text that the model has to say.
        high_water: the agent's option.

    Raises:
        ValueError: while it is read: the reads are more than `chunks`.
    """

    async def ticks(reads: Sequence[int]) -> AsyncIterator[int]:
        model = CountingModel(chunks)
        async with Agent(model=model, high_water=high_water).stream("hi") as run:
            texts = run.text_stream
            async for unread in _ticks(model, texts, reads):
                yield unread

    return ticks


def in_subject(chunks: int) -> Backlog:
    """The backlog of what one would write with reactivex alone, which has no back-pressure.

    Args:
        chunks: pieces of text that the model has to say.

    Raises:
        ValueError: while it is read: the reads are more than `chunks`.
    """

    async def ticks(reads: Sequence[int]) -> AsyncIterator[int]:
        model = CountingModel(chunks)
        subject = Subject[Chunk]()
        queue: asyncio.Queue[Chunk] = asyncio.Queue()

        async def push() -> None:
            async for chunk in model.stream(REQUEST):
                subject.on_next(chunk)

        async def texts() -> AsyncIterator[str]:
            while True:
                chunk = await queue.get()
                if isinstance(chunk, TextDelta):
                    yield chunk.text

        with subject.subscribe(queue.put_nowait):
            pushing = asyncio.create_task(push())
            try:
                async for unread in _ticks(model, texts(), reads):
                    yield unread
            finally:
                pushing.cancel()

    return ticks


async def _ticks(
    model: CountingModel, texts: AsyncIterator[str], reads: Sequence[int]
) -> AsyncIterator[int]:
    if sum(reads) > model.chunks:
        msg = f"the reads are {sum(reads)} chunks in all, the model says {model.chunks}: read less"
        raise ValueError(msg)
    read = 0
    async with aclosing(texts) as source:  # type: ignore[type-var]  # generators have it
        for count in reads:
            for _ in range(count):
                await anext(source)
            read += count
            await asyncio.sleep(0)
            yield model.made - read


async def held_kib(backlog: Backlog, reads: Sequence[int]) -> float:
    """KiB that lie between model and reader at the end, the run itself included.

    Args:
        backlog: what is looked at.
        reads: how many chunks the reader takes in each tick.
    """
    async for _ in backlog(reads):
        pass  # what is made once is no part of it
    gc.collect()
    tracemalloc.start()
    try:
        held = 0
        async for _ in backlog(reads):
            held, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return held / KIB
