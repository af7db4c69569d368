"""`from_aiter` and `to_aiter`: order, failures, back-pressure and closing, both ways."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
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
from streampipe.errors import ConfigurationError
from streampipe.operators._bridge import flowable
from tests.operators.sources import Counting, elements, reading, turns, watched

NUMBERS = st.lists(st.integers(), max_size=20)
MARKS = st.sampled_from([1, 2, 3, 256])
# Ways from a source to its reader: directly, and through operators that know of no back-pressure.
PIPES: dict[str, Any] = {
    "direct": lambda source: source,
    "rx": lambda source: source.pipe(rx.map(lambda x: x), rx.filter(lambda _: True)),
    "ours": lambda source: source.pipe(ops.feedback(lambda x, _: ops.of(x))),
    "both": lambda source: source.pipe(
        rx.map(lambda x: x), ops.feedback(lambda x, _: ops.of(x)), rx.map(lambda x: x)
    ),
}
EVERY_PIPE = pytest.mark.parametrize("pipe", PIPES.values(), ids=PIPES)


async def given_out(items: list[int]) -> AsyncIterator[int]:
    """The items, as an async generator."""
    for item in items:
        yield item


# --- values --------------------------------------------------------------------------------


@EVERY_PIPE
@given(items=NUMBERS, high_water=MARKS)
async def test_elements_come_in_order(pipe: Any, items: list[int], high_water: int) -> None:
    """In and out again, a stream is what it was, at any high-water mark."""
    source = pipe(ops.from_aiter(lambda: given_out(items)))
    assert await elements(ops.to_aiter(source, high_water=high_water)) == items


@given(NUMBERS)
async def test_any_observable_can_be_read(items: list[int]) -> None:
    """One that pushes all at once too: its elements queue up."""
    assert await elements(ops.to_aiter(reactivex.of(*items), high_water=1)) == items


async def test_a_subject_can_be_read_while_it_is_fed() -> None:
    """Elements are there as soon as they are pushed; the end follows what was pushed before it."""
    subject: Subject[int] = Subject()
    async with reading(subject) as items:
        first = asyncio.ensure_future(anext(items))
        await turns(2)
        subject.on_next(1)
        assert await first == 1
        subject.on_next(2)
        subject.on_next(3)
        subject.on_completed()
        assert await elements(items) == [2, 3]


async def test_nothing_is_subscribed_before_it_is_asked_for() -> None:
    """`to_aiter` alone does nothing; the first `anext` subscribes."""
    source = Counting(stop=1)
    items = ops.to_aiter(ops.from_aiter(source))
    await turns()
    assert source.opened == 0
    assert await elements(items) == [0]


async def test_each_subscription_of_a_function_has_its_own_iteration() -> None:
    """A function is called anew; a list-like async iterable is iterated anew."""
    source = Counting(stop=3)
    stream = ops.from_aiter(source)
    both = await asyncio.gather(elements(stream), elements(stream))
    assert list(both) == [[0, 1, 2]] * 2
    assert source.opened == source.closed == 2


class Endless:
    """An async iterator without `aclose`."""

    def __aiter__(self) -> Endless:
        """Itself."""
        return self

    async def __anext__(self) -> int:
        """Always one."""
        await asyncio.sleep(0)
        return 1


async def test_an_iterator_needs_no_aclose() -> None:
    """Any async iterator will do."""
    async with reading(ops.from_aiter(Endless())) as items:
        assert [await anext(items) for _ in range(3)] == [1, 1, 1]


# --- failures ------------------------------------------------------------------------------


@EVERY_PIPE
@pytest.mark.parametrize("error", [ValueError("boom"), TripWire("stop")], ids=["error", "signal"])
async def test_a_failure_comes_after_what_came_before(pipe: Any, error: BaseException) -> None:
    """The reader gets every element, then the very error; the source is closed."""
    source = Counting(stop=3, error=error)
    got: list[int] = []
    with pytest.raises(type(error)) as caught:
        async for item in ops.to_aiter(pipe(ops.from_aiter(source)), high_water=2):
            got.append(item)  # noqa: PERF401 - kept up to the failure
    assert caught.value is error
    assert got == [0, 1, 2]
    assert source.closed == 1


@pytest.mark.parametrize("bad", [5, None, [1, 2]])
async def test_what_is_no_async_iterable_fails_the_stream(bad: Any) -> None:
    """The subscriber is told, as of any other failure."""
    with pytest.raises(TypeError, match="async iter"):
        await elements(ops.from_aiter(bad))


@pytest.mark.parametrize("high_water", [0, -1, True, "4"])
def test_a_high_water_mark_below_one_is_refused(high_water: Any) -> None:
    """At once, not at the first element; nothing could ever pass."""
    with pytest.raises(ConfigurationError, match="to_aiter: high_water must be a whole"):
        ops.to_aiter(ops.of(1), high_water=high_water)


# --- back-pressure -------------------------------------------------------------------------


@pytest.mark.parametrize("pipe", PIPES)
@pytest.mark.parametrize("high_water", [1, 2, 7])
async def test_a_stalled_reader_stops_the_source(pipe: str, high_water: int) -> None:
    """The source is never ahead of the reader by more than the buffers on the way may hold."""
    inner_buffer = 256 if pipe == "both" else 0  # between Rx operators and ours
    source = Counting()
    async with reading(PIPES[pipe](ops.from_aiter(source)), high_water) as items:
        for taken in range(1, 6):
            await anext(items)
            await turns(1_000 if inner_buffer else 50)
            assert source.given <= taken + high_water + inner_buffer
    await turns()
    assert source.closed == 1


async def test_a_slow_reader_gets_everything() -> None:
    """Waiting for room loses nothing, at the narrowest."""
    source = Counting(stop=20)
    got: list[int] = []
    async for item in ops.to_aiter(ops.from_aiter(source), high_water=1):
        await turns(3)
        got.append(item)
    assert got == list(range(20))


async def test_two_readers_do_not_wait_for_each_other() -> None:
    """Each subscription has its own flow: a stalled one holds nobody up."""
    stream = ops.from_aiter(Counting(stop=50)).pipe(rx.map(lambda x: x))
    async with reading(stream, 1) as stalled:
        assert await anext(stalled) == 0
        assert await elements(ops.to_aiter(stream, high_water=1)) == list(range(50))


# --- closing -------------------------------------------------------------------------------


@EVERY_PIPE
async def test_leaving_early_closes_the_source(pipe: Any) -> None:
    """Out of the loop, and the source is at its end."""
    source = Counting()
    async with reading(pipe(ops.from_aiter(source)), 2) as items:
        async for item in items:
            if item == 3:
                break
        assert source.closed == 0
    await turns(5)
    assert source.closed == 1
    given = source.given
    await turns()
    assert source.given == given


async def test_closing_waits_for_the_source_s_own_cleaning_up() -> None:
    """When `aclose` returns, whatever the source had to await has happened."""
    steps: list[str] = []

    async def careful() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            await turns(10)
            steps.append("cleaned up")

    async with reading(ops.from_aiter(careful), 1) as items:
        await anext(items)
    assert steps == ["cleaned up"]


async def test_cancelling_the_reader_closes_the_source() -> None:
    """A reader that is cancelled while it waits leaves nothing behind."""
    source = Counting()

    async def read() -> None:
        async with reading(ops.from_aiter(source)) as items:
            async for _ in items:
                pass

    reader = asyncio.ensure_future(read())
    await turns(5)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert source.closed == 1


async def test_disposing_closes_the_iterator() -> None:
    """A subscriber that goes ends the iteration behind it, and hears no more."""
    source = Counting()
    witness, subscription = watched(ops.from_aiter(source))
    await turns(5)
    subscription.dispose()
    heard = len(witness.items)
    await turns(5)
    assert source.closed == 1
    assert len(witness.items) == heard > 0
    assert witness.ends == []


async def test_an_unread_end_can_be_closed() -> None:
    """Closing what has already failed, or was never begun, is quiet."""
    failing = ops.from_aiter(Counting(stop=3, error=ValueError("unread")))
    async with reading(failing) as items:
        await anext(items)
        await turns()
    async with reading(failing):
        pass


# --- any observable as a Flowable ------------------------------------------------------------


async def test_a_flowable_is_taken_as_it_is() -> None:
    """Only other observables need the buffer."""
    mine = ops.of(1)
    assert flowable(mine) is mine
    other: Observable[int] = reactivex.of(1, 2)
    assert await elements(flowable(other)) == [1, 2]
