"""`map_async`: every element through an async function, in order or as they finish."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reactivex import operators as rx

from streampipe import operators as ops
from streampipe.abort import TripWire
from streampipe.errors import ConfigurationError, OperatorError
from tests.operators.sources import Counting, elements, reading, turns, watched


class Gate:
    """An async function whose calls finish when they are told to.

    Attributes:
        started: arguments of the calls, in the order of their beginning.
        cancelled: arguments of calls that were cancelled.
    """

    def __init__(self) -> None:
        """Start with no calls."""
        self.started: list[Any] = []
        self.cancelled: list[Any] = []
        self._doors: dict[Any, asyncio.Future[None]] = {}

    async def __call__(self, item: Any) -> Any:
        """Wait to be let through, then give the argument back."""
        self.started.append(item)
        self._doors[item] = asyncio.get_running_loop().create_future()
        try:
            await self._doors[item]
        except asyncio.CancelledError:
            self.cancelled.append(item)
            raise
        return item

    async def let(self, item: Any, error: BaseException | None = None) -> None:
        """Let the call of `item` through, or make it fail; then let the loop go round."""
        if error is None:
            self._doors[item].set_result(None)
        else:
            self._doors[item].set_exception(error)
        await turns(10)


async def doubled(number: int) -> int:
    """Twice the number, after as many turns as its last digit says."""
    await turns(abs(number) % 7)
    return 2 * number


EVERY_WAY = pytest.mark.parametrize(
    "options",
    [{}, {"concurrency": 3}, {"concurrency": 3, "ordered": False}],
    ids=["one", "ordered", "unordered"],
)


# --- values --------------------------------------------------------------------------------


@given(st.lists(st.integers(), max_size=20), st.integers(1, 5))
async def test_results_keep_the_order(numbers: list[int], concurrency: int) -> None:
    """However long each call takes, and however many run at once."""
    got = await elements(ops.of(*numbers).pipe(ops.map_async(doubled, concurrency=concurrency)))
    assert got == [2 * number for number in numbers]


@given(st.lists(st.integers(), max_size=20), st.integers(1, 5))
async def test_unordered_results_are_the_same_results(numbers: list[int], concurrency: int) -> None:
    """None is lost or doubled."""
    stage = ops.map_async(doubled, concurrency=concurrency, ordered=False)
    assert sorted(await elements(ops.of(*numbers).pipe(stage))) == sorted(2 * n for n in numbers)


async def test_unordered_results_come_as_they_are_ready() -> None:
    """A slow call holds nobody up, unless order is asked for."""
    for ordered, heard in ((False, ["b"]), (True, [])):
        gate = Gate()
        stage = ops.map_async(gate, concurrency=2, ordered=ordered)
        witness, _ = watched(ops.of("a", "b").pipe(stage))
        await turns(10)
        await gate.let("b")
        assert witness.items == heard
        await gate.let("a")
        assert witness.items == [*heard, *(item for item in "ab" if item not in heard)]
        assert witness.ends == ["completed"]


@EVERY_WAY
async def test_nothing_gives_nothing(options: dict[str, Any]) -> None:
    """An empty source completes."""
    assert await elements(ops.of().pipe(ops.map_async(doubled, **options))) == []


# --- bounds --------------------------------------------------------------------------------


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("concurrency", [1, 2, 4])
async def test_so_many_run_at_once_and_no_more(concurrency: int, *, ordered: bool) -> None:
    """Exactly `concurrency` calls begin; the next one when a result has left."""
    gate = Gate()
    stage = ops.map_async(gate, concurrency=concurrency, ordered=ordered)
    witness, subscription = watched(ops.from_aiter(Counting()).pipe(stage))
    await turns(40)
    assert gate.started == list(range(concurrency))
    await gate.let(0)
    assert witness.items == [0]
    assert gate.started == list(range(concurrency + 1))
    subscription.dispose()
    await turns(10)


@EVERY_WAY
async def test_a_stalled_reader_stops_the_calls(options: dict[str, Any]) -> None:
    """What nobody takes is not worked out: back-pressure goes through to the source."""
    source = Counting()
    calls = 0

    async def count(number: int) -> int:
        nonlocal calls
        calls += 1
        return number

    stream = ops.from_aiter(source).pipe(ops.map_async(count, **options))
    async with reading(stream, 2) as items:
        await anext(items)
        await turns(100)
        assert calls <= 1 + 2 + options.get("concurrency", 0)
        assert source.given <= calls + 2
    assert source.closed == 1


# --- failures ------------------------------------------------------------------------------


@EVERY_WAY
@pytest.mark.parametrize("error", [ValueError("boom"), TripWire("stop")], ids=["error", "signal"])
async def test_a_failing_call_ends_everything(
    options: dict[str, Any], error: BaseException
) -> None:
    """The stream fails by the operator's name, or is blocked as it is; all else is closed."""
    gate, source = Gate(), Counting()
    witness, _ = watched(ops.from_aiter(source).pipe(ops.map_async(gate, **options)))
    await turns(20)
    others = gate.started[1:]
    await gate.let(0, error)
    await turns(10)
    assert witness.items == []
    (end,) = witness.ends
    if isinstance(error, TripWire):
        assert end is error
    else:
        assert isinstance(end, OperatorError)
        assert str(end) == "operator 'map_async': ValueError on int; see __cause__"
        assert end.__cause__ is error
    assert source.closed == 1
    assert gate.cancelled == others


@EVERY_WAY
async def test_a_failing_source_lets_results_that_are_due_out_first(
    options: dict[str, Any],
) -> None:
    """Every element before the failure has its result; then the error."""
    error = ValueError("boom")
    source = ops.from_aiter(Counting(stop=4, error=error))
    witness, _ = watched(source.pipe(ops.map_async(doubled, **options)))
    await witness.ended.wait()
    assert sorted(witness.items) == [0, 2, 4, 6]
    assert witness.ends == [error]


@EVERY_WAY
@pytest.mark.parametrize(
    ("function", "said"),
    [(lambda x: x, "fn returned int, "), (lambda: None, "TypeError on int")],
    ids=["not async", "signature"],
)
async def test_a_function_that_cannot_be_awaited_fails_the_stream(
    options: dict[str, Any], function: Any, said: str
) -> None:
    """Not async, or of a wrong signature: the subscriber is told."""
    with pytest.raises(OperatorError, match=f"operator 'map_async': {said}"):
        await elements(ops.of(1).pipe(ops.map_async(function, **options)))


@EVERY_WAY
async def test_what_the_source_raises_while_it_closes_is_told(options: dict[str, Any]) -> None:
    """By whoever leaves early: nothing is swallowed."""

    async def careless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
                await asyncio.sleep(0)
        finally:
            raise ValueError("in cleaning up")

    stream = ops.from_aiter(careless).pipe(ops.map_async(doubled, **options))
    with pytest.raises(ValueError, match="in cleaning up"):
        async with reading(stream, 1) as items:
            await anext(items)


@pytest.mark.parametrize("concurrency", [0, -1, True, 1.5, "4", None])
def test_a_concurrency_that_is_no_count_is_refused(concurrency: Any) -> None:
    """When the pipeline is put together."""
    told = f"map_async: concurrency must be a whole number of 1 or more, not {concurrency!r}"
    with pytest.raises(ConfigurationError, match=told):
        ops.map_async(doubled, concurrency=concurrency)


@pytest.mark.parametrize("function", [None, "x", 5])
def test_what_is_no_function_is_refused(function: Any) -> None:
    """When the pipeline is put together."""
    told = f"map_async: fn must be a function, not {function!r}"
    with pytest.raises(ConfigurationError, match=told):
        ops.map_async(function)


# --- the end from outside ----------------------------------------------------------------------


@EVERY_WAY
async def test_disposing_cancels_the_calls_and_closes_the_source(options: dict[str, Any]) -> None:
    """Without an event."""
    gate, source = Gate(), Counting()
    witness, subscription = watched(ops.from_aiter(source).pipe(ops.map_async(gate, **options)))
    await turns(20)
    subscription.dispose()
    await turns(10)
    assert gate.cancelled == gate.started != []
    assert source.closed == 1
    assert (witness.items, witness.ends) == ([], [])


@EVERY_WAY
async def test_an_operator_further_down_may_end_it(options: dict[str, Any]) -> None:
    """After `take(2)` nothing is left running."""
    source = Counting()
    stage = ops.map_async(doubled, **options)
    witness, _ = watched(ops.from_aiter(source).pipe(stage, rx.take(2)))
    await witness.ended.wait()
    await turns(10)
    assert witness.items == [0, 2]
    assert source.closed == 1
