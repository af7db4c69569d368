"""`of`, `create`, `concat` and `feedback`: streams one after another, and in a loop."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex
from hypothesis import given
from hypothesis import strategies as st
from reactivex import Observable
from reactivex import operators as rx
from reactivex.subject import Subject

from streampipe import operators as ops
from streampipe.abort import TripWire
from streampipe.errors import ConfigurationError, OperatorError
from streampipe.operators._core import Emit
from tests.operators.sources import Counting, elements, push, reading, turns, watched

ERRORS = pytest.mark.parametrize(
    "error", [ValueError("boom"), TripWire("stop")], ids=["error", "signal"]
)


def failing(*items: Any, error: BaseException) -> Observable[Any]:
    """These elements, then a failure."""

    async def run(emit: Emit[Any]) -> None:
        await push(emit, *items)
        raise error

    return ops.create(run)


# --- of, create ----------------------------------------------------------------------------


@given(st.lists(st.none() | st.integers(), max_size=10))
async def test_of_gives_its_elements(items: list[Any]) -> None:
    """All of them, in order, to each subscriber; None is an element too."""
    stream = ops.of(*items)
    assert await elements(stream) == items
    assert await elements(stream.pipe(rx.map(lambda x: x)).pipe(ops.concat)) == items


async def test_create_runs_its_function_for_each_subscriber() -> None:
    """It completes as the function returns, and fails as it raises."""
    runs: list[int] = []

    async def run(emit: Emit[int]) -> None:
        runs.append(1)
        await push(emit, 7)

    stream = ops.create(run)
    assert runs == []
    assert await elements(stream) == await elements(stream) == [7]
    assert len(runs) == 2
    with pytest.raises(ValueError, match="boom"):
        await elements(failing(1, error=ValueError("boom")))


# --- concat --------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(), max_size=4), max_size=5))
async def test_concat_is_one_after_the_other(parts: list[list[int]]) -> None:
    """Ours and others, empty ones and none at all."""
    sources = [
        ops.of(*part) if number % 2 else reactivex.of(*part) for number, part in enumerate(parts)
    ]
    assert await elements(ops.concat(*sources)) == [item for part in parts for item in part]


async def test_a_source_is_subscribed_to_when_the_one_before_is_done() -> None:
    """Nothing starts early, and what is left early never starts."""
    first, second = Counting(stop=3), Counting()
    async with reading(ops.concat(ops.from_aiter(first), ops.from_aiter(second)), 1) as items:
        assert [await anext(items) for _ in range(2)] == [0, 1]
        assert (first.opened, second.opened) == (1, 0)
        assert [await anext(items) for _ in range(2)] == [2, 0]
        assert (first.closed, second.opened) == (1, 1)
    assert second.closed == 1


@ERRORS
async def test_concat_fails_as_the_source_at_turn(error: BaseException) -> None:
    """What came before is kept, what would come after is not begun."""
    never = Counting()
    stream = ops.concat(ops.of(1), failing(2, error=error), ops.from_aiter(never))
    witness, _ = watched(stream)
    await witness.ended.wait()
    assert witness.items == [1, 2]
    assert witness.ends == [error]
    assert never.opened == 0


async def test_concat_keeps_back_pressure() -> None:
    """Nothing is buffered in between."""
    source = Counting()
    async with reading(ops.concat(ops.concat(ops.from_aiter(source))), 2) as items:
        await anext(items)
        await turns()
        assert source.given <= 3
    assert source.closed == 1


@pytest.mark.parametrize("bad", [5, None, [1]])
async def test_concat_fails_on_what_is_no_observable(bad: Any) -> None:
    """The subscriber is told."""
    with pytest.raises(AttributeError, match="subscribe"):
        await elements(ops.concat(bad))


# --- feedback ------------------------------------------------------------------------------


async def test_ten_thousand_turns_need_no_stack() -> None:
    """Each turn feeds the next; the loop is trampolined."""

    def step(number: int, again: Subject[int]) -> Observable[int]:
        if number < 10_000:
            again.on_next(number + 1)
        return ops.of(number)

    assert await elements(ops.of(1).pipe(ops.feedback(step))) == list(range(1, 10_001))


async def test_a_turn_may_feed_back_at_its_very_end() -> None:
    """Called while the turn's stream is pushed, by us or by an Rx operator, it still counts."""

    def ours(number: int, again: Subject[int]) -> Observable[int]:
        async def run(emit: Emit[int]) -> None:
            await push(emit, number)
            await turns(3)
            if number < 5:
                again.on_next(number + 1)

        return ops.create(run)

    def theirs(number: int, again: Subject[int]) -> Observable[int]:
        def feed() -> None:
            if number < 5:
                again.on_next(number + 1)

        return reactivex.of(number).pipe(rx.do_action(on_completed=feed))

    for step in (ours, theirs):
        assert await elements(ops.of(1).pipe(ops.feedback(step))) == [1, 2, 3, 4, 5]


TREES = st.recursive(st.builds(list[Any]), lambda inner: st.lists(inner, max_size=3), max_leaves=12)


@given(st.lists(TREES, max_size=3))
async def test_turns_run_one_at_a_time_in_order(trees: list[Any]) -> None:
    """What is fed back queues behind what waits already; the next element of the source waits."""
    running = 0

    def step(tree: list[Any], again: Subject[Any]) -> Observable[int]:
        async def run(emit: Emit[int]) -> None:
            nonlocal running
            running += 1
            assert running == 1
            for branch in tree:
                again.on_next(branch)
            await turns(2)
            await push(emit, len(tree))
            running -= 1

        return ops.create(run)

    expected: list[int] = []
    for root in trees:
        queue = [root]
        while queue:
            tree = queue.pop(0)
            expected.append(len(tree))
            queue += tree
    assert await elements(ops.of(*trees).pipe(ops.feedback(step))) == expected


async def test_each_subscription_has_its_own_loop() -> None:
    """What one feeds back is not seen by another."""

    def step(number: int, again: Subject[int]) -> Observable[int]:
        if number < 3:
            again.on_next(number + 1)
        return ops.of(number)

    stream = ops.of(1).pipe(ops.feedback(step))
    assert await elements(stream) == await elements(stream) == [1, 2, 3]


@ERRORS
async def test_the_loop_fails_as_a_turn_fails(error: BaseException) -> None:
    """In its stream; what waits does not run, and the source is closed."""
    source = Counting()
    begun: list[int] = []

    def step(number: int, again: Subject[int]) -> Observable[int]:
        begun.append(number)
        again.on_next(number + 100)
        return ops.of(number) if number < 100 else failing(number, error=error)

    witness, _ = watched(ops.from_aiter(source).pipe(ops.feedback(step)))
    await witness.ended.wait()
    await turns(5)
    assert witness.items == [0, 100]
    assert witness.ends == [error]
    assert begun == [0, 100]
    assert source.closed == 1


@ERRORS
async def test_the_loop_fails_as_its_source_does(error: BaseException) -> None:
    """The turns before that have run."""
    witness, _ = watched(failing(1, error=error).pipe(ops.feedback(lambda n, _: ops.of(n))))
    await witness.ended.wait()
    assert witness.items == [1]
    assert witness.ends == [error]


async def test_a_step_that_raises_is_named() -> None:
    """The operator, the kind of element, not the text of the error; a block is as it is."""

    def step(number: int, again: Subject[int]) -> Observable[int]:
        if number > 1:
            raise TripWire("no") if number > 2 else ValueError("secret")
        return ops.of(number)

    witness, _ = watched(ops.of(1, 2, 3).pipe(ops.feedback(step)))
    await witness.ended.wait()
    assert witness.items == [1]
    assert [str(end) for end in witness.ends] == [
        "operator 'feedback': ValueError on int; see __cause__"
    ]
    with pytest.raises(TripWire, match="no"):
        await elements(ops.of(3).pipe(ops.feedback(step)))


@pytest.mark.parametrize("bad", [5, None])
async def test_a_step_has_to_make_a_stream(bad: Any) -> None:
    """The subscriber is told what it made."""
    with pytest.raises(OperatorError, match=f"step made {type(bad).__name__}; give an observable"):
        await elements(ops.of(1).pipe(ops.feedback(lambda _, __: bad)))


async def slowly(element: Any, again: Any) -> Any:
    """An async function where a plain one is called."""


@pytest.mark.parametrize("bad", [None, "x", slowly])
def test_a_step_that_cannot_be_called_is_refused(bad: Any) -> None:
    """When the loop is made."""
    with pytest.raises(ConfigurationError, match=r"^feedback: step must be a"):
        ops.feedback(bad)


async def test_an_endless_loop_can_be_left() -> None:
    """Back-pressure holds it, disposing ends it, its turn's own source is closed."""
    source = Counting()
    begun = 0

    def step(number: int, again: Subject[int]) -> Observable[int]:
        nonlocal begun
        begun += 1
        again.on_next(number)
        return ops.from_aiter(source).pipe(rx.map(lambda x: x))

    stream = ops.of(1).pipe(ops.feedback(step))
    async with reading(stream, 2) as items:
        await anext(items)
        await turns()
    await turns(5)
    assert begun == 1
    assert source.opened == source.closed == 1
