"""Operators on when elements come, on a clock that jumps: no test here waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reactivex import Observable
from reactivex import operators as rx

from streampipe import operators as ops
from streampipe.chunks import DataChunk
from streampipe.errors import ConfigurationError, OperatorError
from streampipe.operators._time import (
    deadline,
    debounce,
    heartbeat,
    throttle,
    timeout_first,
    timeout_idle,
)
from streampipe.testing import run_virtual
from tests.operators.sources import elements, watched
from tests.operators.timed import Pipe, Script, Timed, play, seen

EVERY: dict[str, Callable[[float], Pipe]] = {
    "throttle": throttle,
    "debounce": debounce,
    "heartbeat": heartbeat,
    "timeout_first": timeout_first,
    "timeout_idle": timeout_idle,
    "deadline": deadline,
}
LIMITS = ["timeout_first", "timeout_idle", "deadline"]
SELF_EMITTING = ["debounce", "heartbeat"]


def test_throttle_passes_the_first_of_every_window() -> None:
    """What comes within the window after an element that passed is dropped."""
    script = Script((0, "a"), (0.4, "b"), (1.0, "c"), (1.9, "d"), (2.5, "e"))
    assert play(script.pipe(throttle(1))) == ([(0, "a"), (1.0, "c"), (2.5, "e")], None)


def test_debounce_passes_the_last_of_every_burst() -> None:
    """An element leaves once the silence behind it has lasted; the last one leaves at the end."""
    script = Script((0, "a"), (0.4, "b"), (2.0, "c"), (2.5, "d"))
    assert play(script.pipe(debounce(1))) == ([(1.4, "b"), (2.5, "d")], None)


def test_debounce_drops_what_it_holds_when_the_source_fails() -> None:
    """A failure is told at once; what was not yet through is not."""
    failure = ValueError("broken")
    script = Script((0, "a"), until=0.5, error=failure)
    assert play(script.pipe(debounce(1))) == ([], failure)


def test_heartbeat_fills_silences() -> None:
    """A sign comes after each silence of the given length, before the first element too."""
    script = Script((2.5, "a"), (3.0, "b"), until=4.5)
    items, end = play(script.pipe(heartbeat(1)))
    assert [when for when, _ in items] == [1, 2, 2.5, 3.0, 4.0]
    assert [item for _, item in items if item in ("a", "b")] == ["a", "b"]
    assert items[0][1] == DataChunk("data-heartbeat", transient=True)
    assert end is None


def test_heartbeat_makes_what_it_is_told_to() -> None:
    """`make` gives the sign."""
    script = Script((1.5, "a"))
    assert play(script.pipe(heartbeat(1, make=lambda: "still here"))) == (
        [(1, "still here"), (1.5, "a")],
        None,
    )


def test_heartbeat_names_itself_when_make_raises() -> None:
    """A fault of `make` ends the stream, named and chained, and closes the source."""

    def make() -> str:
        raise KeyError("secret")

    script = Script((5, "a"))
    items, end = play(script.pipe(heartbeat(1, make=make)))
    assert items == []
    assert isinstance(end, OperatorError)
    assert (end.operator, isinstance(end.__cause__, KeyError)) == ("heartbeat", True)
    assert "secret" not in str(end)
    assert script.closed == 1


def test_heartbeat_keeps_still_while_elements_come() -> None:
    """A source that is quick enough is left as it is, for however long."""
    script = Script(*((0.9 * n, n) for n in range(10)))
    items, _ = play(script.pipe(heartbeat(1)))
    assert [item for _, item in items] == list(range(10))


def test_timeout_first_limits_the_first_element_only() -> None:
    """Once something came, silence is allowed."""
    script = Script((0.9, "a"), (50, "b"))
    assert play(script.pipe(timeout_first(1))) == ([(0.9, "a"), (50, "b")], None)


@pytest.mark.parametrize(
    ("name", "script", "before", "fails_at"),
    [
        ("timeout_first", Script((1.1, "a")), [], 1.0),
        ("timeout_first", Script(until=9), [], 1.0),
        ("timeout_idle", Script((1.1, "a")), [], 1.0),
        ("timeout_idle", Script((0.5, "a"), (1.2, "b"), (2.3, "c")), ["a", "b"], 2.2),
        ("timeout_idle", Script((0.5, "a"), until=9), ["a"], 1.5),
        ("deadline", Script((0.5, "a"), (0.9, "b"), (1.1, "c")), ["a", "b"], 1.0),
        ("deadline", Script((0.5, "a"), until=9), ["a"], 1.0),
    ],
)
def test_a_limit_fails_in_time_and_closes_its_source(
    name: str, script: Script, before: list[str], fails_at: float
) -> None:
    """The failure comes after what was in time, at the very moment, and names the seconds."""

    async def main() -> tuple[list[Timed], Any, float]:
        items, end = await seen(script.pipe(EVERY[name](1)))
        return items, end, asyncio.get_running_loop().time()

    script.closed = 0
    items, end, when = run_virtual(main())
    assert [item for _, item in items] == before
    assert isinstance(end, OperatorError)
    assert end.operator == name
    assert "1 s" in str(end)
    assert when == pytest.approx(fails_at)
    assert script.closed == 1


def test_timeout_idle_does_not_count_a_slow_readers_time() -> None:
    """While the reader keeps the source waiting, the clock stands; afterwards it goes again."""
    script = Script((0, "a"), (0, "b"), until=20.5)
    assert play(script.pipe(timeout_idle(1)), pause=10)[1] is None
    script = Script((0, "a"), (0, "b"), until=22)
    items, end = play(script.pipe(timeout_idle(1)), pause=10)
    assert len(items) == 2
    assert isinstance(end, OperatorError)


def test_deadline_counts_a_slow_readers_time() -> None:
    """The whole may take so long, whoever needs the time; the source does not stay open."""
    script = Script((0, "a"), (0, "b"))
    items, end = play(script.pipe(deadline(15)), pause=10)
    assert [item for _, item in items] == ["a", "b"]
    assert isinstance(end, OperatorError)
    assert script.closed == 1


def test_a_timeout_of_the_sources_own_stays_what_it_is() -> None:
    """Only the operator's timer makes its failure."""
    for name in EVERY:
        failure = TimeoutError("of the socket")
        script = Script((0, "a"), until=0.5, error=failure)
        assert play(script.pipe(EVERY[name](5)))[1] is failure, name


def test_a_source_that_emits_while_it_is_closed_is_not_heard() -> None:
    """Behind the failure of a limit nothing follows."""

    async def stubborn(emit: Callable[[Any], Any]) -> None:
        try:
            await asyncio.sleep(9)
        finally:
            emit("too late")

    for name in LIMITS:
        items, end = play(ops.Flowable(stubborn).pipe(EVERY[name](1)))
        assert items == []
        assert isinstance(end, OperatorError), name


@pytest.mark.parametrize("name", EVERY)
def test_leaving_early_closes_the_source(name: str) -> None:
    """A reader that has enough ends the source, and no timer or task remains."""
    script = Script(*((2.0 * n, n) for n in range(100)))
    items, end = play(script.pipe(EVERY[name](1000 if name in LIMITS else 1), rx.take(1)))
    assert (len(items), end, script.closed) == (1, None, 1)
    assert script.given <= 2


@pytest.mark.parametrize("name", EVERY)
def test_disposing_closes_the_source(name: str) -> None:
    """Disposing while everything waits ends the source, and tells nobody."""

    async def main() -> None:
        script = Script((0, "a"), until=50)
        witness, subscription = watched(script.pipe(EVERY[name](100)))
        await asyncio.sleep(10)
        subscription.dispose()
        await asyncio.sleep(1)
        assert (script.closed, witness.ends) == (1, [])
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(main())


@pytest.mark.parametrize("name", EVERY)
def test_a_failure_behind_is_told_as_it_is(name: str) -> None:
    """What a stage further down raises ends the stream with that, and closes the source."""

    def fail(item: Any) -> Any:
        raise LookupError("no such thing")

    script = Script((0, "a"), until=50)
    _, end = play(script.pipe(EVERY[name](100), ops.map(fail)))
    assert isinstance(end, OperatorError)
    assert end.operator == "map"
    assert script.closed == 1


@pytest.mark.parametrize("name", EVERY)
def test_a_slow_reader_holds_the_source(name: str) -> None:
    """Back-pressure passes: no more than one element lies between the source and its reader."""
    script = Script(*((0.0, n) for n in range(50)))

    async def main() -> None:
        gate = asyncio.Event()

        async def wait(item: Any) -> Any:
            await gate.wait()
            return item

        witness, subscription = watched(script.pipe(EVERY[name](60), ops.map_async(wait)))
        await asyncio.sleep(50)
        assert script.given <= 2 or name == "debounce"
        gate.set()
        await witness.ended.wait()
        subscription.dispose()
        assert witness.ends == ["completed"]

    run_virtual(main())


@pytest.mark.parametrize("name", ["heartbeat", *LIMITS])
@given(gaps=st.lists(st.floats(0, 0.9), max_size=12))
def test_in_time_nothing_changes(name: str, gaps: list[float]) -> None:
    """A stream that keeps the limit passes as it is, element by element, at the same times."""
    times = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    script = Script(*((when, n) for n, when in enumerate(times)))
    plain = play(script.pipe())
    assert play(script.pipe(EVERY[name](1 if name != "deadline" else 1000))) == plain


@given(
    gaps=st.lists(st.integers(0, 30), max_size=15),
    pause=st.integers(1, 20),
)
def test_throttle_and_debounce_agree_with_their_definitions(gaps: list[int], pause: int) -> None:
    """Throttle leaves `pause` between elements, debounce those with `pause` behind them."""
    times = [sum(gaps[: n + 1]) + 0.0 for n in range(len(gaps))]
    throttled: list[Timed] = []
    for when in times:
        if not throttled or when >= throttled[-1][0] + pause:
            throttled.append((when, when))
    script = Script(*((when, when) for when in times))
    assert play(script.pipe(throttle(pause))) == (throttled, None)

    # An element exactly `pause` after another may come before or after the timer: not compared.
    if any(gap == pause for gap in gaps):
        return
    bounced = [now for now, after in pairwise(times) if after - now > pause]
    assert [item for _, item in play(script.pipe(debounce(pause)))[0]] == [*bounced, *times[-1:]]


@pytest.mark.parametrize("name", EVERY)
def test_an_ordinary_observable_will_do(name: str) -> None:
    """A source of Rx without back-pressure is accepted, and its only element arrives."""

    async def main() -> None:
        assert await elements(rx_just("a").pipe(EVERY[name](1))) == ["a"]

    def rx_just(item: str) -> Observable[str]:
        return ops.of(item).pipe(rx.map(lambda same: same))

    run_virtual(main())


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "1", None, True])
def test_bad_seconds_are_refused_when_configured(name: str, bad: Any) -> None:
    """The message names the operator and what it takes, before anything is subscribed to."""
    with pytest.raises(ConfigurationError, match=rf"^{name}: seconds must be"):
        EVERY[name](bad)


def test_heartbeat_refuses_what_cannot_be_called() -> None:
    """`make` is a function."""
    with pytest.raises(ConfigurationError, match=r"^heartbeat: make must be a function"):
        heartbeat(1, make="ping")  # type: ignore[arg-type]  # the mistake under test
