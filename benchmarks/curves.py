"""How what is measured changes with a size: the curves that `notebooks/throughput.ipynb` draws."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from reactivex import Observable, Subject
from reactivex import operators as rx

from benchmarks.measure import Side, compare, few_to_collect
from benchmarks.pipelines import same
from benchmarks.work import by_hand, consume, guards, scripted
from streampipe import Agent, Chunk, TextDelta
from streampipe import operators as ops
from streampipe.contracts import ProcessOutputStreamArgs
from streampipe.operators._bridge import flowable
from streampipe.operators._core import Emit, Operator

__all__ = ["AsyncPass", "Curve", "Pass", "by_length", "by_stages", "first_text"]

MICRO = 1e6


@dataclass(slots=True, frozen=True)
class Curve:
    """One line of a figure.

    Attributes:
        name: what was measured.
        sizes: where, in ascending order.
        rounds: for each size what every round gave, in microseconds unless it is a ratio.
    """

    name: str
    sizes: Sequence[int]
    rounds: Sequence[Sequence[float]]

    @property
    def medians(self) -> list[float]:
        """The median of the rounds, for each size."""
        return [statistics.median(values) for values in self.rounds]

    def percentiles(self, percent: int) -> list[float]:
        """The value that so many percent of the rounds do not exceed, for each size.

        Args:
            percent: from 1 to 99.

        Raises:
            IndexError: it is more than 99.
        """
        return [
            statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
            for values in self.rounds
        ]

    def over(self, other: Curve) -> Curve:
        """How many times as much as another curve, round by round: the same on any machine.

        Raises:
            ValueError: the other has other sizes, or another number of rounds.
        """
        if self.sizes != other.sizes:
            msg = f"{self.name} was not measured at the sizes of {other.name}: {other.sizes}"
            raise ValueError(msg)
        ratios = [
            [mine / its for mine, its in zip(own, others, strict=True)]
            for own, others in zip(self.rounds, other.rounds, strict=True)
        ]
        return Curve(self.name, self.sizes, ratios)


class Pass:
    """A processor that does nothing, so that what it costs is its place in the stream."""

    def __init__(self, number: int) -> None:
        """Be the one with this number: an id occurs once in a list of processors."""
        self.id = f"pass-{number}"

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Let it pass."""
        return args.part


class AsyncPass(Pass):
    """The same with a hook that is a coroutine."""

    async def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:  # type: ignore[override]  # a hook may be either
        """Let it pass."""
        return args.part


def discard(_chunk: Chunk) -> None:
    """Read a chunk, and be ready for the next."""


async def by_stages(rounds: int, chunks: int, counts: Sequence[int]) -> list[Curve]:
    """What a chunk costs that passes so many stages which do nothing.

    Args:
        rounds: rounds of the comparison; each times every curve at every count.
        chunks: chunks of a stream.
        counts: numbers of stages.

    Returns:
        Curves of microseconds. From a source of ours: functions called by hand, `ops.map` fused
        and one by one, async processors. Behind a `Subject`: the same `ops.map`, and reactivex's.
    """
    items: list[Chunk] = [TextDelta("0", "word ")] * chunks
    passing = [AsyncPass(number) for number in range(max(counts))]
    kinds: dict[str, Callable[[int], Side]] = {
        "functions called by hand": lambda count: _called(items, count),
        "ops.map": lambda count: _pulled(items, [ops.map(same)] * count),
        "ops.map, fusion(False)": lambda count: _unfused(_pulled, items, count),
        "async processors": lambda count: _pulled(items, [ops.process_all(passing[:count])]),
        "Subject, ops.map": lambda count: _pushed(items, [ops.map(same)] * count),
        "Subject, ops.map, fusion(False)": lambda count: _unfused(_pushed, items, count),
        "Subject, reactivex map": lambda count: _pushed(items, [rx.map(same)] * count),
    }
    sides = {name: [make(count) for count in counts] for name, make in kinds.items()}
    return await _curves(rounds, counts, [chunks] * len(counts), sides)


async def by_length(rounds: int, lengths: Sequence[int]) -> list[Curve]:
    """What a chunk costs in a stream of so many: the four guards of `benchmarks.work`, thrice.

    Args:
        rounds: rounds of the comparison.
        lengths: numbers of chunks.

    Returns:
        Curves of microseconds: a loop by hand, a run with sync and a run with async processors.
    """
    models = [scripted(length) for length in lengths]
    chain = guards()
    agents = {
        "run, 4 sync processors": Agent(output_processors=chain),
        "run, 4 async processors": Agent(output_processors=guards(asynchronous=True)),
    }
    sides: dict[str, list[Side]] = {
        "loop by hand, the same 4": [
            lambda model=model: by_hand(model, chain)  # type: ignore[misc]  # mypy cannot infer it
            for model in models
        ]
    }
    for name, agent in agents.items():
        sides[name] = [
            lambda agent=agent, model=model: consume(agent.stream("hi", model=model))  # type: ignore[misc]  # as above
            for model in models
        ]
    return await _curves(rounds, lengths, lengths, sides)


async def first_text(rounds: int, counts: Sequence[int]) -> list[Curve]:
    """How long a run takes from the call to the first text, by its number of processors.

    The collector of garbage runs when it likes, as it does for a user: it is part of the tail.

    Args:
        rounds: runs of each kind and count; they take turns.
        counts: numbers of processors that do nothing.

    Returns:
        Curves of microseconds: sync processors and async ones.
    """
    model = scripted(2)
    kinds: dict[str, type[Pass]] = {"sync processors": Pass, "async processors": AsyncPass}
    agents = [
        [
            Agent(model=model, output_processors=[kind(number) for number in range(count)])
            for count in counts
        ]
        for kind in kinds.values()
    ]
    taken: list[list[list[float]]] = [[[] for _ in row] for row in agents]
    with few_to_collect():
        for turn in range(-1, rounds):
            for row, values in zip(agents, taken, strict=True):
                for agent, own in zip(row, values, strict=True):
                    took = await _until_text(agent) * MICRO
                    if turn >= 0:  # the first one warms the caches of the interpreter
                        own.append(took)
    return [Curve(name, counts, values) for name, values in zip(kinds, taken, strict=True)]


async def _until_text(agent: Agent) -> float:
    begin = time.thread_time()
    async with agent.stream("hi") as run:
        async for chunk in run:
            if isinstance(chunk, TextDelta):
                return time.thread_time() - begin
    msg = "the model has said nothing"
    raise LookupError(msg)


async def _curves(
    rounds: int, sizes: Sequence[int], chunks: Sequence[int], sides: Mapping[str, Sequence[Side]]
) -> list[Curve]:
    """Time every side of every curve in turn; `chunks` is how many a side reads at each size."""
    with few_to_collect():
        timings = iter(await compare(rounds, *(side for row in sides.values() for side in row)))
    return [
        Curve(
            name,
            sizes,
            [
                [seconds / count * MICRO for seconds in next(timings).seconds]
                for _, count in zip(row, chunks, strict=True)
            ],
        )
        for name, row in sides.items()
    ]


def _called(items: Sequence[Chunk], count: int) -> Side:
    async def side() -> None:
        for chunk in items:
            made = chunk
            for _ in range(count):
                made = same(made)
            discard(made)

    return side


def _pulled(items: Sequence[Chunk], stages: Sequence[Operator]) -> Side:
    async def source(emit: Emit[Chunk]) -> None:
        for chunk in items:
            wait = emit(chunk)
            if wait is not None:
                await wait

    made = flowable(ops.create(source).pipe(*stages))
    return lambda: made.into(discard)


def _pushed(items: Sequence[Chunk], stages: Sequence[Operator]) -> Side:
    subject = Subject[Chunk]()  # never completed, so that every round can subscribe again
    piped: Observable[Chunk] = subject.pipe(*stages)

    async def side() -> None:
        with piped.subscribe(discard):
            for chunk in items:
                subject.on_next(chunk)

    return side


def _unfused(
    piped: Callable[[Sequence[Chunk], Sequence[Operator]], Side],
    items: Sequence[Chunk],
    count: int,
) -> Side:
    with ops.fusion(enabled=False):
        return piped(items, [ops.map(same)] * count)
