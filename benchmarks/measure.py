"""How things are measured: in many short rounds, side by side, and by medians.

A busy machine slows some rounds. So the sides that are compared take turns within each round, the
order changes with the round, and what counts is the median of the rounds' own ratios. Time is the
processor's, of this thread: none of the work waits for anything but its own.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["Row", "Side", "Sizes", "Timing", "compare", "few_to_collect", "timed"]

Side = Callable[[], Awaitable[object]]
"""One of the things that are compared; a call does the whole work of a round."""


@dataclass(slots=True, frozen=True)
class Sizes:
    """How much is measured.

    Attributes:
        rounds: rounds of a comparison.
        chunks: chunks of a run in a round.
        runs: runs at once.
        run_chunks: chunks of each of these.
        idle_chunks: chunks of each before it falls silent, to see what it keeps.
        imports: fresh interpreters that import the library.
    """

    rounds: int = 41
    chunks: int = 2_000
    runs: int = 1_000
    run_chunks: int = 64
    idle_chunks: int = 8
    imports: int = 7


@dataclass(slots=True, frozen=True)
class Row:
    """A line of the table.

    Attributes:
        name: what was measured.
        measured: the figure, with its unit.
        ratio: the figure by which it is judged on any machine, empty if there is none.
        budget: what it may cost.
        within: whether it does not cost more.
    """

    name: str
    measured: str
    ratio: str
    budget: str
    within: bool


@dataclass(slots=True, frozen=True)
class Timing:
    """The rounds of one side: seconds, and how they relate to those of the first side."""

    seconds: Sequence[float]
    ratios: Sequence[float]

    @property
    def median(self) -> float:
        """Seconds of a round."""
        return statistics.median(self.seconds)

    @property
    def ratio(self) -> float:
        """How many times as long as the first side."""
        return statistics.median(self.ratios)


@contextmanager
def few_to_collect() -> Iterator[None]:
    """Keep the libraries out of the collections in between; there is one before every round."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def timed(side: Side) -> float:
    """Seconds of the processor that a side takes, with the garbage of others out of the way."""
    gc.collect()
    gc.disable()
    try:
        begin = time.thread_time()
        await side()
        return time.thread_time() - begin
    finally:
        gc.enable()


async def compare(rounds: int, *sides: Side) -> list[Timing]:
    """Time some sides in turn; the first is what the others are compared with."""
    for side in sides:
        await side()  # warm: caches of the interpreter and connections are no part of it
    seconds: list[list[float]] = [[] for _ in sides]
    for turn in range(rounds):
        order = range(len(sides)) if turn % 2 else reversed(range(len(sides)))
        for index in order:
            seconds[index].append(await timed(sides[index]))
    first = seconds[0]
    return [
        Timing(own, [one / other for one, other in zip(own, first, strict=True)]) for own in seconds
    ]
