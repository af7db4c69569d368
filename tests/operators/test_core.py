"""`Flowable` as an ordinary observable, and the `@operator` decorator."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
import reactivex
from hypothesis import given
from hypothesis import strategies as st
from reactivex import Observable
from reactivex import operators as rx

from streampipe import operators as ops
from streampipe.abort import TripWire
from streampipe.errors import ConfigurationError
from streampipe.operators import Flowable
from streampipe.operators._core import Emit, Flow
from streampipe.operators._operator import REGISTRY, operator
from tests.operators.sources import Counting, elements, push, turns, watched


async def three(emit: Emit[int]) -> None:
    """Push three numbers."""
    await push(emit, *range(3))


# --- terminal events -----------------------------------------------------------------------


async def test_it_completes_once_when_its_function_returns() -> None:
    """All elements, one end."""
    witness, subscription = watched(Flowable(three))
    await witness.ended.wait()
    subscription.dispose()
    await turns(3)
    assert witness.items == [0, 1, 2]
    assert witness.ends == ["completed"]


@pytest.mark.parametrize("error", [ValueError("boom"), TripWire("stop")], ids=["error", "signal"])
async def test_it_fails_once_when_its_function_raises(error: BaseException) -> None:
    """What was pushed before counts; the error is the very one."""

    async def run(emit: Emit[int]) -> None:
        await three(emit)
        raise error

    witness, _ = watched(Flowable(run))
    await witness.ended.wait()
    await turns(3)
    assert witness.items == [0, 1, 2]
    assert witness.ends == [error]


async def test_each_subscription_runs_it_anew() -> None:
    """It is cold: two subscribers, two runs."""
    runs = 0

    async def run(emit: Emit[int]) -> None:
        nonlocal runs
        runs += 1
        await push(emit, runs)

    flow = Flowable(run)
    assert runs == 0
    assert await elements(flow) == [1]
    assert await elements(flow) == [2]


@pytest.mark.parametrize("way", ["dispose", "take"])
async def test_after_disposal_there_is_no_event(way: str) -> None:
    """Disposed from outside, or by an operator in mid-push: the run ends, and tells nobody."""
    source = Counting()
    stream = ops.from_aiter(source)
    if way == "take":
        witness, _ = watched(stream.pipe(rx.take(3)))
        await witness.ended.wait()
    else:
        witness, subscription = watched(stream)
        await turns(6)
        subscription.dispose()
        subscription.dispose()
    heard = list(witness.items)
    await turns(5)
    assert witness.items == heard
    assert witness.ends == (["completed"] if way == "take" else [])
    assert source.closed == 1


async def test_disposing_before_it_began_runs_nothing() -> None:
    """A subscription may be over before the loop comes round."""
    source = Counting()
    witness, subscription = watched(ops.from_aiter(source))
    subscription.dispose()
    await turns(5)
    assert (source.opened, witness.items, witness.ends) == (0, [], [])


async def test_cleaning_up_after_disposal_is_finished() -> None:
    """The function's `finally` may await."""
    steps: list[str] = []

    async def run(emit: Emit[int]) -> None:
        try:
            await push(emit, 1)
            await asyncio.Event().wait()
        finally:
            await turns(3)
            steps.append("cleaned up")

    _, subscription = watched(Flowable(run))
    await turns(2)
    subscription.dispose()
    await turns(5)
    assert steps == ["cleaned up"]


# --- a subscriber that raises ----------------------------------------------------------------


async def test_what_a_subscriber_raises_is_told_once_and_the_source_is_closed(
    loop_complaints: list[dict[str, Any]],
) -> None:
    """By `on_error` or by the loop's handler; nothing more is pushed."""
    source = Counting()
    error = ValueError("in on_next")
    told: list[Exception] = []

    def refuse(item: int) -> None:
        raise error

    ops.from_aiter(source).subscribe(refuse, told.append)
    await turns(5)
    assert [*told, *(complaint["exception"] for complaint in loop_complaints)] == [error]
    assert source.given == source.closed == 1
    loop_complaints.clear()


async def test_a_failure_that_nobody_listens_to_reaches_the_loop(
    loop_complaints: list[dict[str, Any]],
) -> None:
    """A subscriber without `on_error` that raises, and a clean-up that fails after disposal."""

    def refuse(item: int) -> None:
        raise ValueError("in on_next")

    async def run(emit: Emit[int]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("in cleaning up")

    ops.of(1).subscribe(refuse)
    subscription = Flowable(run).subscribe()
    await turns(3)
    subscription.dispose()
    await turns(3)
    gc.collect()
    told = {str(complaint["exception"]) for complaint in loop_complaints}
    assert told == {"in on_next", "in cleaning up"}
    loop_complaints.clear()


async def test_a_failure_further_down_closes_the_source() -> None:
    """An Rx operator whose function raises tells its subscriber; the source is closed."""
    source = Counting()
    error = ValueError("in map")

    def refuse(item: int) -> int:
        raise error

    witness, _ = watched(ops.from_aiter(source).pipe(rx.map(refuse)))
    await witness.ended.wait()
    await turns(3)
    assert witness.ends == [error]
    assert source.given == source.closed == 1


# --- fairness and flow -----------------------------------------------------------------------


async def test_a_source_that_never_waits_lets_others_run() -> None:
    """A run that only pushes does not keep the loop to itself."""
    pushed = 0
    seen_by_other: list[int] = []

    async def run(emit: Emit[int]) -> None:
        nonlocal pushed
        for number in range(2_000):
            pushed += 1
            await push(emit, number)

    async def other() -> None:
        while pushed < 2_000:
            seen_by_other.append(pushed)
            await asyncio.sleep(0)

    witness, _ = watched(Flowable(run))
    await other()
    await witness.ended.wait()
    assert len(witness.items) == 2_000
    assert len([count for count in seen_by_other if 0 < count < 2_000]) >= 5


@given(st.integers(1, 5), st.lists(st.booleans(), max_size=30))
async def test_a_flow_lets_in_as_many_as_leave(high_water: int, moves: list[bool]) -> None:
    """In any order of coming and going: never more than the mark, and no wait is forgotten."""
    flow = Flow(high_water)
    comers: list[asyncio.Task[None]] = []
    left = 0

    async def come() -> None:
        await flow.room()
        flow.pending += 1

    for comes in moves:
        if comes:
            comers.append(asyncio.ensure_future(come()))
        elif flow.pending:
            flow.take()
            left += 1
        await turns(3)
        assert flow.pending == min(high_water, len(comers) - left)
    flow.release()
    await asyncio.wait_for(asyncio.gather(*comers), 5)


# --- the decorator ---------------------------------------------------------------------------


def test_an_operator_is_a_function_of_its_options_and_then_of_the_source() -> None:
    """`f(source, *options)` becomes `f(*options)(source)`, under its own name."""

    @operator
    def product(source: Observable[int], first: int, *, twice: bool = False) -> Observable[int]:
        """Multiply them all."""

        def times(x: int, y: int) -> int:
            return x * y

        return source.pipe(rx.reduce(times, first), rx.repeat(2 if twice else 1))

    got: list[int] = []
    product(3, twice=True)(reactivex.of(1, 2)).subscribe(got.append)
    assert got == [6, 6]
    assert [made.__name__ for made in (product, product(1))] == ["product", "product"]
    assert product.__doc__ == "Multiply them all."


def test_an_operator_of_somebody_else_takes_no_place() -> None:
    """Whatever its name, the library's own stays what it is, and is what is told of."""
    ours = dict(REGISTRY)

    @operator
    def map(source: Observable[int]) -> Observable[int]:  # noqa: A001 - the point
        """Another one."""
        return source

    assert ours == REGISTRY
    with pytest.raises(ConfigurationError, match=r"^map is not called: write map\(\)$"):
        ops.of(1).pipe(map)  # type: ignore[arg-type]  # the point
    with pytest.raises(ConfigurationError, match=r"map is not called: write ops\.map\(\.\.\.\)"):
        ops.pipe(ops.map)  # type: ignore[arg-type]  # the point


def test_every_operator_is_exported_and_documented() -> None:
    """What is registered is in `__all__`, and its docstring has a summary."""
    for name, function in REGISTRY.items():
        assert name in ops.__all__
        assert getattr(ops, name) is function
        assert (function.__doc__ or "").strip()


async def test_an_operator_s_bad_options_are_refused_when_it_is_used() -> None:
    """Missing and unknown options are the caller's mistakes, found before any element flows."""
    map_async: Any = ops.map_async
    with pytest.raises(ConfigurationError, match=r"map_async: .*'nope'"):
        map_async(str, nope=1)(ops.of(1))
    with pytest.raises(ConfigurationError, match=r"map_async: missing .*'fn'"):
        map_async()(ops.of(1))
