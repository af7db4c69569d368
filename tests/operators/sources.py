"""Sources that tell what was done to them, and ways of reading a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any, cast

from reactivex import Observable
from reactivex.subject import Subject

from streampipe import Chunk, Recorder, TextDelta, TextEnd, TextStart
from streampipe import operators as ops
from streampipe.operators._core import Emit


class Counting:
    """An endless source of numbers that waits its turn after each; or one that ends, or fails.

    Attributes:
        given: how many elements were taken from it, over all iterations.
        opened: how many iterations began.
        closed: how many iterations ended, whatever the way.
    """

    def __init__(self, stop: int | None = None, error: BaseException | None = None) -> None:
        """Give numbers below `stop`, then fail with `error` if there is one."""
        self.given = 0
        self.opened = 0
        self.closed = 0
        self._stop = stop
        self._error = error

    async def __call__(self) -> AsyncIterator[int]:
        """An iteration of its own."""
        self.opened += 1
        number = 0
        try:
            while self._stop is None or number < self._stop:
                self.given += 1
                yield number
                number += 1
                await asyncio.sleep(0)
            if self._error is not None:
                raise self._error
        finally:
            self.closed += 1


class Witness:
    """An observer that keeps what it is told.

    Attributes:
        items: the elements.
        ends: terminal events: "completed", or the error.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self.items: list[Any] = []
        self.ends: list[Any] = []
        self.ended = asyncio.Event()

    def on_next(self, item: Any) -> None:
        """Keep an element."""
        self.items.append(item)

    def on_error(self, error: Exception) -> None:
        """Keep a failure."""
        self.ends.append(error)
        self.ended.set()

    def on_completed(self) -> None:
        """Keep the end."""
        self.ends.append("completed")
        self.ended.set()


def watched(source: Observable[Any]) -> tuple[Witness, Any]:
    """Subscribe a new witness; returns it and the subscription."""
    witness = Witness()
    subscription = source.subscribe(witness.on_next, witness.on_error, witness.on_completed)
    return witness, subscription


def reading(source: Observable[Any], high_water: int = 256) -> aclosing[AsyncGenerator[Any, None]]:
    """Read a stream with an end to it: on leaving the block the iterator is closed."""
    items = ops.to_aiter(source, high_water=high_water)
    return aclosing(cast("AsyncGenerator[Any, None]", items))


def through(
    operator: Callable[[Observable[Any]], Observable[Any]],
    items: Iterable[Any],
    error: Exception | None = None,
) -> Witness:
    """A Subject's elements through an operator, without a loop; then its end, or its failure."""
    subject: Subject[Any] = Subject()
    witness, _ = watched(operator(subject))
    for item in items:
        subject.on_next(item)
    if error is None:
        subject.on_completed()
    else:
        subject.on_error(error)
    assert not subject.observers, "the source was not let go"
    return witness


def pieces(text: str, sizes: Iterable[int]) -> list[Chunk]:
    """A text part, cut into pieces of these sizes; the last is what is left."""
    made: list[Chunk] = [TextStart("0")]
    for size in sizes:
        made.append(TextDelta("0", text[:size]))
        text = text[size:]
    return [*made, TextDelta("0", text), TextEnd("0")]


def deltas(*pieces: str) -> list[Chunk]:
    """Pieces of one text."""
    return [TextDelta("0", piece) for piece in pieces]


async def elements(source: Any) -> list[Any]:
    """Everything that a stream emits."""
    return [element async for element in source]


async def recorded(
    *operators: Any, chunks: Sequence[Any], content: bool = False
) -> tuple[list[Any], Recorder]:
    """What leaves a recorded pipeline, and its recorder."""
    recorder = Recorder(content=content)
    made = ops.pipe(*operators, recorder=recorder)
    return await elements(ops.to_aiter(made(ops.of(*chunks)))), recorder


async def push(emit: Emit[Any], *items: Any) -> None:
    """Push elements, waiting after each as `emit` asks for."""
    for item in items:
        wait = emit(item)
        if wait is not None:
            await wait


async def turns(count: int = 50) -> None:
    """Let the loop go round, so that whatever can happen happens."""
    for _ in range(count):
        await asyncio.sleep(0)
