"""The types of the operators on single elements, and of the sources."""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, assert_type

import pytest
from reactivex import Observable
from reactivex.subject import Subject

from streampipe import operators as ops
from streampipe.chunks import Chunk, TextDelta
from streampipe.errors import ConfigurationError
from streampipe.operators import Flowable
from streampipe.operators._core import Emit
from tests.typing.streams import CHUNKS, NUMBERS, emits


def halved(number: int) -> float:
    """A function with annotations of its own: the operator keeps them."""
    return number / 2


def has_text(delta: TextDelta) -> bool:
    """A predicate on one kind of chunk."""
    return bool(delta.text)


def signed(number: int) -> list[str]:
    """One number as two texts."""
    return [f"+{number}", f"-{number}"]


def longer(so_far: str, number: int) -> str:
    """An accumulator that is of another type than the elements."""
    return so_far + str(number)


def counted(state: list[int], number: int) -> Iterable[str]:
    """A step that keeps numbers and gives texts."""
    state.append(number)
    return [str(len(state))]


async def counting() -> AsyncIterator[int]:
    """An async iterable of numbers."""
    yield 1


async def pushing(emit: Emit[int]) -> None:
    """A source of numbers."""
    emit(1)


def doubled(number: int, again: Subject[int]) -> Observable[str]:
    """A turn of a loop: number in, texts out."""
    if number < 4:
        again.on_next(number * 2)
    return ops.of(str(number))


async def test_types_map() -> None:
    """What the function gives is what comes."""
    await emits(assert_type(NUMBERS.pipe(ops.map(halved)), Observable[float]), float)
    await emits(assert_type(CHUNKS.pipe(ops.map(lambda c: c.type)), Observable[str]), str)


async def test_types_filter() -> None:
    """The elements keep their type."""
    texts = CHUNKS.pipe(ops.of_type(TextDelta), ops.filter(has_text))
    await emits(assert_type(texts, Observable[TextDelta]), TextDelta)
    found = CHUNKS.pipe(ops.filter(lambda c: c.type != "tool-call"))
    await emits(assert_type(found, Observable[Chunk]), Chunk)


async def test_types_flat_map() -> None:
    """The elements of what the function gives."""
    await emits(assert_type(NUMBERS.pipe(ops.flat_map(signed)), Observable[str]), str)
    await emits(assert_type(CHUNKS.pipe(ops.flat_map(lambda c: [c.type])), Observable[str]), str)


async def test_types_scan() -> None:
    """The accumulator's type."""
    await emits(assert_type(NUMBERS.pipe(ops.scan(longer, "")), Observable[str]), str)
    lengths = CHUNKS.pipe(ops.scan(lambda n, c: n + len(c.type), 0))
    await emits(assert_type(lengths, Observable[int]), int)


async def test_types_stateful() -> None:
    """What step and finish give, whatever the state is."""
    counts = NUMBERS.pipe(ops.stateful(list[int], counted, lambda state: [str(state)]))
    await emits(assert_type(counts, Observable[str]), str)
    kinds = CHUNKS.pipe(ops.stateful(set[str], lambda seen, c: [c.type] if not seen else []))
    await emits(assert_type(kinds, Observable[str]), str)


async def test_types_tap() -> None:
    """The elements keep their type."""
    await emits(assert_type(NUMBERS.pipe(ops.tap(halved)), Observable[int]), int)
    await emits(assert_type(CHUNKS.pipe(ops.tap(repr)), Observable[Chunk]), Chunk)


async def test_types_take_while() -> None:
    """The elements keep their type."""
    few = NUMBERS.pipe(ops.take_while(halved, inclusive=True))
    await emits(assert_type(few, Observable[int]), int)
    thoughts = CHUNKS.pipe(ops.take_while(lambda c: c.type == "reasoning-delta"))
    await emits(assert_type(thoughts, Observable[Chunk]), Chunk)


async def test_types_distinct_until_changed() -> None:
    """The elements keep their type, with a key or without."""
    await emits(assert_type(NUMBERS.pipe(ops.distinct_until_changed()), Observable[int]), int)
    texts = CHUNKS.pipe(ops.of_type(TextDelta), ops.distinct_until_changed(has_text))
    await emits(assert_type(texts, Observable[TextDelta]), TextDelta)


async def test_types_feedback() -> None:
    """What the turns give; the elements of the source are what is fed back."""
    await emits(assert_type(NUMBERS.pipe(ops.feedback(doubled)), Observable[str]), str)


async def test_types_of() -> None:
    """The elements given."""
    await emits(assert_type(ops.of(1, 2), Flowable[int]), int)


async def test_types_create() -> None:
    """What the coroutine function pushes."""
    await emits(assert_type(ops.create(pushing), Flowable[int]), int)


async def test_types_concat() -> None:
    """The elements of sources of one type."""
    await emits(assert_type(ops.concat(NUMBERS, NUMBERS), Flowable[int]), int)


async def test_types_from_aiter() -> None:
    """The elements of an async iterable, or of what makes one."""
    await emits(assert_type(ops.from_aiter(counting), Flowable[int]), int)
    await emits(assert_type(ops.from_aiter(counting()), Flowable[int]), int)


async def test_types_to_aiter() -> None:
    """An async iterator of the elements."""
    items = assert_type(ops.to_aiter(NUMBERS), AsyncIterator[int])
    assert [type(item) async for item in items] == [int, int, int]


async def test_what_has_to_be_awaited_is_refused_when_it_is_built() -> None:
    """No checker refuses an async function here, since a coroutine is an element like another."""

    async def later(number: int) -> int:
        return number

    for make in (ops.map, ops.filter, ops.tap, ops.take_while):
        with pytest.raises(ConfigurationError, match="must be a plain function"):
            make(later)


if TYPE_CHECKING:

    def refused_elements() -> None:
        """Functions of other elements."""
        NUMBERS.pipe(ops.map(str.upper))  # type: ignore[arg-type]  # numbers are no texts
        CHUNKS.pipe(ops.map(lambda c: c.txt))  # type: ignore[attr-defined]  # no such field
        CHUNKS.pipe(ops.filter(has_text))  # type: ignore[arg-type]  # not every chunk is a text
        NUMBERS.pipe(ops.flat_map(halved))  # type: ignore[arg-type]  # gives no iterable
        NUMBERS.pipe(ops.scan(longer, 0))  # type: ignore[arg-type]  # the seed is no text
        NUMBERS.pipe(ops.stateful(set[int], counted))  # type: ignore[arg-type, misc]  # a list
        CHUNKS.pipe(ops.tap(halved))  # type: ignore[arg-type]  # chunks are no numbers
        CHUNKS.pipe(ops.take_while())  # type: ignore[call-overload]  # a predicate is needed
        NUMBERS.pipe(ops.distinct_until_changed(1))  # type: ignore[arg-type]  # the key is called

    def refused_sources() -> None:
        """Sources that are none."""
        CHUNKS.pipe(ops.feedback(doubled))  # type: ignore[arg-type]  # the loop is one of numbers
        ops.create(counting)  # type: ignore[arg-type]  # takes no emit
        ops.concat(1, 2)  # type: ignore[arg-type]  # elements, not sources
        ops.from_aiter([1, 2])  # type: ignore[arg-type]  # not async
        ops.to_aiter([1, 2])  # type: ignore[arg-type]  # no observable
