"""Marbles: what is drawn is what happens, and a difference is drawn too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reactivex import operators as rx

from streampipe import operators as ops
from streampipe.errors import ConfigurationError, OperatorError
from streampipe.testing import MarbleError, check_marbles, marble, run_virtual
from streampipe.testing._marble import draw, parse


def lines() -> st.SearchStrategy[str]:
    """Drawings as a person makes them."""
    group = st.text("abc", min_size=2, max_size=3).map(lambda names: f"({names})")
    body = st.lists(st.sampled_from(["-", "--", "a", "b"]) | group, max_size=8).map("".join)
    return st.builds(str.__add__, body, st.sampled_from(["|", "#"]))


@given(lines())
def test_a_line_is_drawn_as_it_was_read(line: str) -> None:
    """Reading and drawing are inverse."""
    assert draw(parse(line)) == line


@given(lines())
def test_what_passes_unchanged_keeps_its_columns(line: str) -> None:
    """A stream comes out of an operator that does nothing as it was drawn."""
    check_marbles(ops.tap(repr), source=line, expected=line)
    check_marbles(rx.map(lambda item: item), source=line, expected=line)


async def upper(item: str) -> str:
    """Take two columns for an element."""
    await asyncio.sleep(0.02)
    return item.upper()


def test_time_and_subscriptions_are_checked() -> None:
    """An operator that takes time moves its elements; its source is left when it ends."""
    check_marbles(
        ops.map_async(upper),
        source="      --a--b--|",
        subscription="^-------!",
        expected="    ----A--B|",
        values={"A": "A", "B": "B"},
    )


def test_whoever_leaves_early_leaves_the_source() -> None:
    """`unsubscribe` closes the source in its column, after what comes in it."""
    check_marbles(
        ops.tap(repr),
        source="      --a--b--|",
        unsubscribe=" -----!",
        subscription="^----!",
        expected="    --a--b",
    )


def test_a_stream_that_goes_on_has_no_end() -> None:
    """A line without an end neither completes nor fails."""
    check_marbles(ops.tap(repr), source="-a-", expected="-a-")
    with pytest.raises(AssertionError, match="the marbles differ"):
        check_marbles(ops.tap(repr), source="-a-", expected="-a-|")


def test_errors_are_compared() -> None:
    """`#` is the source's own error, unless another type is expected."""

    def fail(_: Any) -> Any:
        msg = "no"
        raise ZeroDivisionError(msg)

    check_marbles(ops.tap(repr), source="-#", expected="-#", error=KeyError("k"))
    check_marbles(ops.map(fail), source="-a|", expected="-#", expected_error=OperatorError)
    with pytest.raises(AssertionError, match=r"# = OperatorError"):
        check_marbles(ops.map(fail), source="-a|", expected="-#")


def tenfold(number: int) -> int:
    """Ten times as much."""
    return number * 10


def test_values_are_elements_by_name() -> None:
    """A name stands for its value, on both lines."""
    values = {"a": 1, "b": 2, "A": 10, "B": 20}
    check_marbles(ops.map(tenfold), source="-a-b|", expected="-A-B|", values=values)


def test_a_difference_is_drawn_in_columns() -> None:
    """The message has the lines below each other, and unknown elements as they are."""
    with pytest.raises(AssertionError) as caught:
        check_marbles(
            ops.map_async(upper),
            source="--a-----|",
            subscription="^-------!",
            expected="---A----|",
        )
    assert [line.split() for line in str(caught.value).splitlines()[1:4]] == [
        ["source", "--a-----|"],
        ["expected", "---A----|"],
        ["got", "----A---|"],
    ]
    with pytest.raises(AssertionError, match="<0> at 2"):
        check_marbles(ops.map(lambda _: 0), source="--a--|", expected="--A--|")


def test_a_missing_or_late_subscription_is_seen() -> None:
    """Values that are right do not hide a subscription that is wrong."""
    with pytest.raises(AssertionError, match="subscribed"):
        check_marbles(ops.tap(repr), source="-a-|", subscription="^-----!", expected="-a-|")


def test_a_marble_source_is_cold_and_keeps_note() -> None:
    """Each subscription starts at the first column, and is noted from its begin to its end."""
    source = marble("-a-|", unit=1)

    async def read() -> list[Any]:
        first = [item async for item in ops.to_aiter(source)]
        return first + [item async for item in ops.to_aiter(source)]

    assert run_virtual(read()) == ["a", "a"]
    assert source.subscriptions == [(0.0, 3.0), (3.0, 6.0)]


def test_a_marble_fails_with_its_error() -> None:
    """Without another one, `#` is a `MarbleError`."""

    async def read() -> list[Any]:
        return [item async for item in ops.to_aiter(marble("a#"))]

    with pytest.raises(MarbleError):
        run_virtual(read())


@pytest.mark.parametrize("line", ["a?", "(a", "a)", "((a))", "(a-b)", "a|b", "#|", "^--!"])
def test_a_line_that_cannot_be_read_is_refused(line: str) -> None:
    """The message shows the line and what is wrong with it."""
    with pytest.raises(ConfigurationError, match="marbles "):
        marble(line)


def test_a_subscription_line_has_signs_of_its_own() -> None:
    """An element has no place in a subscription."""
    with pytest.raises(ConfigurationError, match=r"'a' is none of \^ ! and -"):
        check_marbles(ops.tap(repr), source="a|", expected="a|", subscription="^a!")
