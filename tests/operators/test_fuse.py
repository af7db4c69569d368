"""The kernel at its edges: faults at the start and the end, ends in a flush, ways of a branch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import reactivex
from hypothesis import given
from hypothesis import strategies as st
from reactivex import Observable
from reactivex import operators as rx

from streampipe import Agent, Chunk, TextDelta
from streampipe import operators as ops
from streampipe.abort import TripWire
from streampipe.contracts import ModelRequest
from streampipe.errors import OperatorError
from streampipe.testing import ScriptedModel
from tests.operators.sources import Counting, Witness, elements, reading, through, turns, watched

Op = Callable[[Observable[Any]], Observable[Any]]
Call = tuple[str, int]

ENDLESS = 100  # elements after which a flush that does not end is cut off


async def flowing(operator: Op, *items: Any) -> Witness:
    """The same on a source with back-pressure."""
    witness, _ = watched(ops.of(*items).pipe(operator))
    await witness.ended.wait()
    return witness


def is_small(number: int) -> bool:
    """Below five."""
    return number < 5


def hold_all(kept: list[int], number: int) -> list[int]:
    """Hold every one."""
    kept.append(number)
    return []


HOLD = ops.stateful(list[int], hold_all, lambda kept: kept)
SMALL = ops.take_while(is_small)


# --- faults at the start and at the end --------------------------------------------------------


def broken(*_: Any) -> Any:
    """Raise."""
    msg = "a secret"
    raise ValueError(msg)


def faulty(place: str) -> Op:
    """A `stateful` one of whose functions raises."""
    functions: dict[str, Any] = {"start": list, "step": hold_all, "finish": list}
    return ops.stateful(**{**functions, place: broken})


PLACES = pytest.mark.parametrize("place", ["start", "step", "finish"])


@PLACES
async def test_a_fault_is_told_to_the_subscriber_once(place: str) -> None:
    """Never raised at who subscribes; named, chained, and without the text of the exception."""
    for witness in (through(faulty(place), [1]), await flowing(faulty(place), 1)):
        (error,) = witness.ends
        assert isinstance(error, OperatorError)
        assert isinstance(error.__cause__, ValueError)
        where = {"start": "at its start", "step": "on int", "finish": "at its end"}[place]
        when = f"{where}; see __cause__"
        assert str(error) == f"operator 'stateful': ValueError {when}"


@PLACES
async def test_a_fault_can_be_caught_behind_its_stage(place: str) -> None:
    """It is an ordinary failure for whatever stands there, on both kinds of source."""

    def instead(_error: Exception, _source: Observable[Any]) -> Observable[Any]:
        return reactivex.of("caught")

    assert through(ops.pipe(faulty(place), rx.catch(instead)), [1]).items == ["caught"]
    told = await flowing(ops.pipe(faulty(place), ops.materialize_errors()), 1)
    assert [chunk.type for chunk in told.items] == ["error", "finish"]


async def test_a_fault_at_the_start_of_a_way_is_told_too() -> None:
    """A kernel inside another stage is opened with it."""
    way = ops.branch(bool, faulty("start"))
    for witness in (through(way, [1]), await flowing(way, 1)):
        assert [type(end) for end in witness.ends] == [OperatorError]


async def test_a_signal_at_the_start_reaches_the_subscriber() -> None:
    """Blocking is no fault: it is told as it is."""
    wire = TripWire("stop")

    def block() -> Any:
        raise wire

    operator = ops.stateful(block, hold_all)
    assert through(operator, [1]).ends == [wire]
    assert (await flowing(operator, 1)).ends == [wire]


# --- an end in a flush -----------------------------------------------------------------------


async def test_an_end_in_a_flush_that_has_to_wait_flushes_what_is_behind_it() -> None:
    """A slow reader changes nothing about who is flushed."""
    counting = Counting(stop=8)
    mark: Op = ops.stateful(list[int], lambda _, number: [number], lambda _: [ENDLESS])
    chain = ops.pipe(HOLD, SMALL, mark)
    async with reading(ops.from_aiter(counting).pipe(chain), high_water=1) as items:
        assert [item async for item in items] == [0, 1, 2, 3, 4, ENDLESS]
    assert counting.closed == 1


async def test_the_same_operator_twice_in_a_kernel_ends_where_it_ended() -> None:
    """Each place is told apart, so nothing before it is flushed a second time."""
    seen: list[int] = []
    few: Op = ops.take_while(lambda _: len(seen) < 2)
    chain = ops.pipe(few, HOLD, ops.tap(seen.append), few)
    alone = through(chain, [1, 4, 7])
    assert (alone.items, alone.ends, seen) == ([1], ["completed"], [1, 4])
    seen.clear()
    looped = await flowing(chain, 1, 4, 7)
    assert (looped.items, looped.ends, seen) == ([1], ["completed"], [1, 4])


@pytest.mark.parametrize("before", range(3))
async def test_an_end_in_the_flush_of_a_way_ends_the_branch(before: int) -> None:
    """However many stages stand before it there; what is held behind the branch still leaves."""
    way = ops.pipe(*[ops.map(int)] * before, HOLD, SMALL)
    fork: Op = ops.branch(bool, way)
    chain = ops.pipe(fork, HOLD)
    cut = ops.pipe(fork, rx.take(ENDLESS))
    for operator in (cut, chain):
        for witness in (through(operator, [2, 8, 4]), await flowing(operator, 2, 8, 4)):
            assert (witness.items, witness.ends) == ([2], ["completed"])


# --- fusing changes nothing --------------------------------------------------------------------


def noting(calls: list[Call], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that notes with what element it was called."""

    def noted(*args: Any) -> Any:
        calls.append((name, args[-1]))
        return function(*args)

    return noted


def step(kept: list[int], number: int) -> list[int]:
    """Hold what is odd."""
    kept.append(number)
    return [] if number % 2 else [number, number + 1]


FUNCTIONS: dict[str, tuple[Callable[[Callable[..., Any]], Op], Callable[..., Any]]] = {
    "map": (ops.map, lambda n: n + 1),
    "map raises": (ops.map, lambda n: 60 // (n - 7)),
    "filter": (ops.filter, lambda n: n % 3),
    "flat_map": (ops.flat_map, lambda n: [n] * (n % 3)),
    "scan": (lambda fn: ops.scan(fn, 0), lambda total, n: total + n),
    "stateful": (lambda fn: ops.stateful(list[int], fn, sorted), step),
    "tap": (ops.tap, lambda n: None),
    "tap raises": (ops.tap, lambda n: 1 // (n - 5)),
    "take_while": (ops.take_while, lambda n: n < 12),
    "take_while inclusive": (lambda fn: ops.take_while(fn, inclusive=True), lambda n: n != 4),
    "distinct": (ops.distinct_until_changed, lambda n: n // 2),
}
names = st.lists(st.sampled_from(sorted(FUNCTIONS)), max_size=6)


@given(names, st.lists(st.integers(0, 9), max_size=8))
def test_fusing_changes_no_call(chain: list[str], numbers: list[int]) -> None:
    """Elements, end, and what each function was called with in what order; on both sources."""

    def built(calls: list[Call]) -> Op:
        stages: list[Op] = []
        for place, name in enumerate(chain):
            make, function = FUNCTIONS[name]
            stages.append(make(noting(calls, f"{place} {name}", function)))
        return ops.pipe(*stages)

    def seen(run: Callable[[Op], Witness]) -> Any:
        calls: list[Call] = []
        witness = run(built(calls))
        return witness.items, [str(end) for end in witness.ends], calls

    def alone(operator: Op) -> Witness:
        return through(operator, numbers)

    def looped(operator: Op) -> Witness:
        return asyncio.run(flowing(operator, *numbers))

    fused = seen(alone)
    assert len(fused[1]) == 1
    assert seen(looped) == fused
    with ops.fusion(enabled=False):
        assert seen(alone) == fused
        assert seen(looped) == fused


# --- streams in streams, and runs --------------------------------------------------------------


@pytest.mark.parametrize("inner", [rx.concat_map, rx.flat_map], ids=["concat", "merge"])
async def test_a_stream_of_streams_keeps_each_apart(inner: Any) -> None:
    """The end of one is not the end of the outer, though they share their operators."""

    def of_one(factor: int) -> Observable[int]:
        def times(number: int) -> int:
            return number * factor

        return ops.of(*range(9)).pipe(SMALL, ops.map(times))

    witness = await flowing(inner(of_one), 1, 10)
    assert sorted(witness.items) == sorted([0, 1, 2, 3, 4, 0, 10, 20, 30, 40])
    assert witness.ends == ["completed"]


class Watched(ScriptedModel):
    """A model that tells how much was taken from it.

    Attributes:
        given: texts that were taken.
        closed: how many of its streams have ended, whatever the way.
    """

    def __init__(self) -> None:
        """Speak without an end in sight."""
        super().__init__([["word "] * 1_000], repeat=True)
        self.given = 0
        self.closed = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Play, and count."""
        try:
            async for chunk in super().stream(request):
                self.given += isinstance(chunk, TextDelta)
                yield chunk
        finally:
            self.closed += 1


def until(count: int) -> Op:
    """End behind so many texts."""
    said = 0

    def more(chunk: Chunk) -> bool:
        nonlocal said
        said += isinstance(chunk, TextDelta)
        return said <= count

    return ops.take_while(more)


async def test_an_end_in_a_run_closes_the_model_early() -> None:
    """The run completes with the text so far, and the model is not read on."""
    model = Watched()
    result = await Agent(model=model, output_processors=[until(3)]).generate("hi")
    assert (result.text, result.error) == ("word word word ", None)
    assert (model.given, model.closed) == (4, 1)


async def test_an_end_over_a_run_closes_the_model_early() -> None:
    """Whoever watches leaves, and the run with it."""
    model = Watched()
    witness, _ = watched(Agent(model=model).observe("hi").pipe(until(3), ops.text()))
    await witness.ended.wait()
    await turns()
    assert (witness.items, witness.ends) == (["word "] * 3, ["completed"])
    assert model.closed == 1
    assert model.given < ENDLESS


def adding(letter: str) -> Callable[[str], str]:
    """A function that adds a letter to a text."""
    return lambda text: text + letter


async def test_six_operators_stand_in_a_run() -> None:
    """One behind the other, each with the chunks of the one before."""
    six = [ops.map_text(adding(letter)) for letter in "123456"]
    for chain in (six, [ops.pipe(*six)]):
        agent = Agent(model=ScriptedModel([["x"]]), output_processors=chain)
        assert await elements(agent.observe("hi").pipe(ops.text())) == ["x123456"]


async def later(chunk: Chunk) -> Chunk:
    """Pass a chunk some turns later."""
    await asyncio.sleep(0)
    return chunk


async def test_a_stage_may_have_seen_enough_of_what_is_left_at_the_end() -> None:
    """Stages behind it still say their last word, though the last element had to wait."""
    words = ops.take_while(lambda chunk: getattr(chunk, "text", "") != "b", inclusive=True)
    more = ops.stateful(list[Any], lambda _, chunk: [chunk], lambda _: [TextDelta("0", "end")])
    source = ops.of(TextDelta("0", "a b"))
    got = await elements(source.pipe(ops.rechunk("word"), words, more, ops.map_async(later)))
    assert [chunk.text for chunk in got] == ["a ", "b", "end"]
