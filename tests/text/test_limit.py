"""Limits: as much of a text as fits, wherever it is cut, and never half a grapheme."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.errors import ConfigurationError
from streampipe.text._limit import Limit
from streampipe.text._split import Splitter
from tests.text.cuttings import JOINED, cuttings, texts

long = st.lists(st.sampled_from([*JOINED, "plain text "]), min_size=10, max_size=60).map("".join)
any_cutting = cuttings(texts | long)


def vowels(text: str) -> int:
    """A count that is 0 for some words, and smaller for some longer ones."""
    return 1 if len(text) == 3 else sum(char in "aeiouか" for char in text)


def limited(limit: Limit, pieces: list[str]) -> str:
    """All that leaves."""
    return "".join([*map(limit.feed, pieces), limit.finish()])


def fitting(units: Splitter, text: str, most: int, cost: Callable[[str], int]) -> str:
    """The units at the beginning of `text` that fit together, until the limit is reached."""
    fit = ""
    for unit in [*units.feed(text), *units.finish()]:
        most -= cost(unit)
        if most < 0:
            break
        fit += unit
        if not most:
            break
    return fit


@given(any_cutting, st.integers(1, 70))
def test_cuts_do_not_show_in_characters(cutting: tuple[str, list[str]], most: int) -> None:
    """What leaves are the graphemes that fit completely."""
    text, pieces = cutting
    graphemes = Splitter("grapheme", max_hold=32)
    assert limited(Limit(chars=most), pieces) == fitting(graphemes, text, most, len)


@given(any_cutting, st.integers(1, 20))
def test_a_token_is_four_characters(cutting: tuple[str, list[str]], most: int) -> None:
    """Without `count` characters are counted by fours."""
    pieces = cutting[1]
    assert limited(Limit(tokens=most), pieces) == limited(Limit(chars=4 * most), pieces)


@given(any_cutting, st.integers(1, 20), st.sampled_from([len, vowels]))
def test_cuts_do_not_show_in_counted_tokens(
    cutting: tuple[str, list[str]], most: int, count: Callable[[str], int]
) -> None:
    """What leaves are the words whose counts fit together, whatever the function gives."""
    text, pieces = cutting
    expected = fitting(Splitter("word"), text, most, lambda word: count(word.removesuffix(" ")))
    assert limited(Limit(tokens=most, count=count), pieces) == expected


@given(any_cutting, st.integers(1, 70), st.none() | st.just(vowels))
def test_done_is_final(
    cutting: tuple[str, list[str]], most: int, count: Callable[[str], int] | None
) -> None:
    """Once done nothing leaves and nothing is held; before, all that came has left or is held."""
    limit = Limit(chars=most) if count is None else Limit(tokens=most, count=count)
    missing, was_done = 0, False
    for piece in cutting[1]:
        out = limit.feed(piece)
        missing += len(piece) - len(out)
        assert not (was_done and out)
        was_done = limit.done
        assert limit.held == (0 if was_done else missing)


@given(cuttings(long), st.integers(32, 200))
def test_far_from_the_limit_nothing_is_held(cutting: tuple[str, list[str]], more: int) -> None:
    """As long as 32 more characters fit, pieces pass as they come."""
    text, pieces = cutting
    limit = Limit(chars=len(text) + more)
    assert [limit.feed(piece) for piece in pieces] == pieces
    assert not limit.done


@pytest.mark.parametrize(
    ("text", "chars", "expected"),
    [
        ("abcd", 3, "abc"),
        ("ab👩\u200d👧", 4, "ab"),
        ("ab👩\u200d👧", 5, "ab👩\u200d👧"),
        ("e\u0301e\u0301", 3, "e\u0301"),
        ("a\r\n", 2, "a"),
        ("🇩🇪🇫🇷", 3, "🇩🇪"),
        ("a" + "\u0301" * 99, 50, "a" + "\u0301" * 31),
    ],
)
def test_a_grapheme_leaves_whole_or_not_at_all(text: str, chars: int, expected: str) -> None:
    """The limit counts code points; only a grapheme of more than 32 is cut, at its 32nd."""
    assert limited(Limit(chars=chars), list(text)) == expected
    assert limited(Limit(chars=chars), [text]) == expected


def test_done_as_soon_as_the_limit_is_reached() -> None:
    """No further piece is needed to see that a text is full, or that what is held never fits."""
    full = Limit(chars=3)
    assert [full.feed("ab"), full.feed("c!")] == ["a", "bc"]
    assert full.done
    too_long = Limit(chars=3)
    assert [too_long.feed("abe"), too_long.feed("\u0301\u0301")] == ["ab", ""]
    assert (too_long.done, too_long.held) == (True, 0)


def test_a_word_is_counted_once() -> None:
    """By itself, without the one space behind it, when it is complete."""
    counted: list[str] = []
    limit = Limit(tokens=9, count=lambda word: counted.append(word) or 1)  # type: ignore[func-returns-value]  # to note and go on
    assert limited(limit, list("One two,  three\n")) == "One two,  three\n"
    assert counted == ["One", "two, ", "three\n"]


@pytest.mark.parametrize("pieces", [["a b c"], [*"a b c"]])
def test_a_full_limit_takes_nothing_free(pieces: list[str]) -> None:
    """A word that counts nothing does not leave behind the one that filled the limit."""
    assert limited(Limit(tokens=1, count=vowels), pieces) == "a "


def test_what_count_raises_is_passed_on() -> None:
    """It is the caller's to see."""
    with pytest.raises(ZeroDivisionError):
        Limit(tokens=9, count=lambda word: 1 // (len(word) - 2)).feed("to be")


def test_a_count_below_zero_is_refused() -> None:
    """It would make room for more."""
    with pytest.raises(ValueError, match=r"Limit: count gave -1 for 'to '; it has to give 0"):
        Limit(tokens=9, count=lambda _: -1).feed("to be")


@pytest.mark.parametrize(
    "options",
    [{}, {"chars": 0}, {"tokens": -1}, {"chars": 1, "tokens": 1}, {"chars": 0, "tokens": 1}],
)
def test_a_limit_that_is_none_is_refused(options: dict[str, int]) -> None:
    """One of the two, and at least 1."""
    with pytest.raises(ConfigurationError, match=r"Limit: chars=.*, tokens=.*; give one of them"):
        Limit(**options)  # type: ignore[arg-type]  # mypy takes the ints for `count` too


def test_count_needs_tokens() -> None:
    """It does not count characters."""
    with pytest.raises(ConfigurationError, match=r"count counts tokens, so give tokens"):
        Limit(chars=9, count=len)
