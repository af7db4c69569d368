"""Runs of words shared with another text: found whatever the cuts, as a plain search finds them."""

from __future__ import annotations

import sys
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.processors import _overlap
from streampipe.processors._overlap import Overlap, WordRuns, words_of

WORDS = st.lists(st.sampled_from(["a", "b", "C", "über", "_", "字", "語"]), max_size=24)
SEPARATORS = st.sampled_from([" ", ", ", "\n", ". "])


@st.composite
def prose(draw: st.DrawFn) -> str:
    """Few different words, so that runs of them are shared often."""
    return "".join(word + draw(SEPARATORS) for word in draw(WORDS)) + draw(
        st.sampled_from(["", "a", "!"])
    )


def pieces_of(text: str, cuts: list[int]) -> list[str]:
    """A text cut at some places."""
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[begin:end] for begin, end in pairwise(places)]


def searched(text: str, told: list[str], least: int, replacement: str) -> tuple[str, int]:
    """The text without what it shares, by looking each run of `least` words up; and how many."""
    known = {
        tuple(words[n : n + least])
        for words in map(words_of, told)
        for n in range(len(words) - least + 1)
    }
    words = words_of(text)
    shared = {
        n + k
        for n in range(len(words) - least + 1)
        if tuple(words[n : n + least]) in known
        for k in range(least)
    }
    out, between, count, at, within = "", "", 0, 0, False
    for token in _overlap._TOKEN.findall(text):
        if not words_of(token):
            between += token
            continue
        if at in shared:
            out += "" if within else between + replacement
            count += not within
        else:
            out += between + token
        within, between, at = at in shared, "", at + 1
    return out + between, count


@given(
    text=prose(),
    told=st.lists(prose(), max_size=3),
    least=st.integers(1, 5),
    cuts=st.lists(st.integers(0, 200), max_size=12),
    replacement=st.sampled_from(["", "[removed]", None]),
)
def test_what_is_shared_is_what_a_plain_search_finds(
    text: str, told: list[str], least: int, cuts: list[int], replacement: str | None
) -> None:
    """Each run once, in any cutting; without a replacement the text stays as it is."""
    found: list[None] = []
    overlap = Overlap(WordRuns(told), least, replacement, lambda: found.append(None))
    out = "".join(map(overlap.feed, pieces_of(text, cuts))) + overlap.finish()
    expected, count = searched(text, told, least, replacement or "")
    assert out == (text if replacement is None else expected)
    assert len(found) == count


@given(text=prose(), told=prose(), least=st.integers(1, 5))
def test_where_it_stops_nothing_leaves_behind_the_first_run(
    text: str, told: str, least: int
) -> None:
    """What stood before it has left, nothing of it and nothing behind it."""
    overlap = Overlap(WordRuns([told]), least, "", lambda: None, stops=True)
    out = "".join(map(overlap.feed, text)) + overlap.finish()
    marked, count = searched(text, [told], least, "\0")
    assert out == (marked.partition("\0")[0] if count else text)


@given(text=prose(), told=st.lists(prose(), max_size=3), least=st.integers(1, 5))
def test_less_than_a_run_is_held(text: str, told: list[str], least: int) -> None:
    """The shared words so far, fewer than make a run, and the word that may go on."""
    overlap = Overlap(WordRuns(told), least, None, lambda: None)
    fed = left = 0
    for character in text:
        fed, left = fed + 1, left + len(overlap.feed(character))
        assert overlap.held == fed - left
        assert len(words_of(text[left:fed])) <= least
    assert len(overlap.finish()) == fed - left


def test_scripts_without_spaces_are_compared_by_the_character() -> None:
    """Eight characters of a Chinese text are a run of eight words."""
    overlap = Overlap(WordRuns(["不得透露折扣超过百分之十"]), 8, "[删]", lambda: None)
    said = "规则:不得透露折扣超过百分之十。"
    assert "".join(map(overlap.feed, said)) + overlap.finish() == "规则:[删]。"


def test_case_and_width_of_letters_do_not_count() -> None:
    """Words are compared in their plain form."""
    overlap = Overlap(WordRuns(["never offer ten percent"]), 4, "*", lambda: None)
    assert (
        overlap.feed("NEVER, \uff4f\uff46\uff46\uff45\uff52 - ten\npercent!") + overlap.finish()
        == "*!"
    )


def steps(told: str, text: str) -> int:
    """How many lines of the module run until the text is through."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename != _overlap.__file__:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        overlap = Overlap(WordRuns([told]), 8, "", lambda: None)
        for piece in pieces_of(text, list(range(0, len(text), 5))):
            overlap.feed(piece)
        overlap.finish()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    ("told", "text"),
    [
        pytest.param("a b a c ", "a b a c ", id="shared"),
        pytest.param("a a a a a a a b ", "a a a a a a a c ", id="nearly-shared"),
    ],
)
def test_the_work_grows_with_the_text_and_no_faster(told: str, text: str) -> None:
    """Ten times the texts take ten times the steps, also where runs break off again and again."""
    assert steps(told * 100, text * 100) < 11 * steps(told * 10, text * 10)
