"""Element operators at their edges: elements fed from within, slow ends, elements of any kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from reactivex.subject import Subject

from streampipe import ReasoningDelta, TextDelta
from streampipe import operators as ops
from streampipe.errors import ConfigurationError, OperatorError
from tests.operators.sources import Counting, reading, through, turns, watched


def is_small(number: int) -> bool:
    """Below five."""
    return number < 5


def test_nothing_follows_the_last_element_of_take_while() -> None:
    """Not even what its reader feeds back while it is emitted, and the predicate is not asked."""
    subject: Subject[int] = Subject()
    asked: list[int] = []
    seen: list[Any] = []

    def small(number: int) -> bool:
        asked.append(number)
        return is_small(number)

    def feed(number: int) -> None:
        seen.append(number)
        if number == 9:
            subject.on_next(1)

    source = subject.pipe(ops.take_while(small, inclusive=True))
    source.subscribe(feed, seen.append, lambda: seen.append("completed"))
    subject.on_next(9)
    assert (asked, seen) == ([9], [9, "completed"])


async def test_the_last_element_of_take_while_is_waited_for() -> None:
    """It completes, and closes the source, once a slow reader has it."""
    counting = Counting()
    source = ops.from_aiter(counting).pipe(ops.take_while(is_small, inclusive=True))
    async with reading(source, high_water=1) as items:
        got = []
        async for item in items:
            got.append(item)
            await turns(5)
    assert got == [0, 1, 2, 3, 4, 5]
    assert (counting.given, counting.closed) == (6, 1)


class Point:
    """A value that can be compared with its own kind only."""

    def __init__(self, place: int) -> None:
        """Stand somewhere."""
        self.place = place

    __hash__ = None  # type: ignore[assignment]  # as of any class with an `__eq__`

    def __eq__(self, other: object) -> bool:
        """Whether it is the same place."""
        place: int = other.place  # type: ignore[attr-defined]  # what this is about
        return self.place == place


def test_the_first_element_is_compared_with_nothing() -> None:
    """Elements that know only their own kind are told apart as well."""
    subject: Subject[Any] = Subject()
    witness, _ = watched(subject.pipe(ops.distinct_until_changed()))
    first, same, other = Point(1), Point(1), Point(2)
    for point in (first, same, other):
        subject.on_next(point)
    assert [id(item) for item in witness.items] == [id(first), id(other)]
    assert witness.ends == []


def test_an_iterable_that_fails_gives_nothing() -> None:
    """It is read to its end before its first element leaves: half an answer is none."""
    subject: Subject[int] = Subject()

    def half(number: int) -> Iterator[int]:
        yield number
        raise ValueError

    witness, _ = watched(subject.pipe(ops.flat_map(half)))
    subject.on_next(1)
    assert witness.items == []
    assert [type(end) for end in witness.ends] == [OperatorError]


@pytest.mark.parametrize("name", ["map", "filter", "flat_map", "tap", "take_while"])
def test_leaving_is_silent(name: str) -> None:
    """Nothing is told after disposal, and the source is let go."""
    subject: Subject[int] = Subject()
    function = (lambda n: [n]) if name == "flat_map" else (lambda n: n + 1)
    witness, subscription = watched(subject.pipe(getattr(ops, name)(function)))
    subject.on_next(1)
    subscription.dispose()
    assert not subject.observers
    subject.on_next(2)
    subject.on_completed()
    assert (len(witness.items), witness.ends) == (1, [])


@pytest.mark.parametrize(
    ("operator", "shown"),
    [
        (ops.map(str.upper), "map(upper)"),
        (ops.take_while(is_small, inclusive=True), "take_while(is_small, inclusive=True)"),
        (ops.of_type(TextDelta), "of_type(TextDelta)"),
        (ops.scan(max, 0), "scan(max, 0)"),
        (ops.tool_calls(), "tool_calls()"),
    ],
)
def test_an_operator_is_shown_as_it_is_written(operator: Any, shown: str) -> None:
    """With the names of its functions."""
    assert repr(operator) == shown


@pytest.mark.parametrize("kinds", [(3,), (TextDelta, 3), (int,)])
def test_of_type_names_what_is_no_chunk_class(kinds: Any) -> None:
    """Wherever it stands among the classes, and when the operator is made."""
    told = f"of_type: takes chunk classes such as TextDelta, not {kinds[-1]!r}"
    with pytest.raises(ConfigurationError) as caught:
        ops.of_type(*kinds)
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("operator", "heard"),
    [(ops.text(), ["a", "b"]), (ops.accumulate_text(), ["a", "ab"]), (ops.reasoning(), ["c"])],
    ids=["text", "accumulate_text", "reasoning"],
)
def test_an_empty_piece_is_none(operator: Any, heard: list[str]) -> None:
    """Only what says something is told of."""
    texts = [TextDelta("0", text) for text in ("", "a", "", "b", "")]
    thoughts = [ReasoningDelta("1", text) for text in ("", "c", "")]
    assert through(operator, [*texts, *thoughts]).items == heard
