"""Splitting where people would: grapheme, word, line, sentence, separator."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import regex  # type: ignore[import-untyped]  # it ships no types
from hypothesis import given
from hypothesis import strategies as st

from streampipe.errors import ConfigurationError
from streampipe.text import MatchLimitError, Splitter, _split
from tests.text.cuttings import cuttings, flat, texts

KINDS = ("grapheme", "word", "line", "sentence")
SEPARATORS = (re.compile("[.\n]+"), re.compile(r"\bx|</?TAG>", re.IGNORECASE))
kinds = st.sampled_from(KINDS)
any_by = st.sampled_from([*KINDS, *SEPARATORS])
FAMILY = "👩\u200d👩\u200d👧"


def split(by: str | re.Pattern[str], pieces: list[str], max_hold: int = 200) -> list[str]:
    """All that a splitter gives for these pieces."""
    splitter = Splitter(by, max_hold=max_hold)
    return [*flat(splitter.feed(piece) for piece in pieces), *splitter.finish()]


@given(any_by, cuttings(), st.integers(1, 12) | st.just(200))
def test_cuts_do_not_show(
    by: str | re.Pattern[str], cutting: tuple[str, list[str]], max_hold: int
) -> None:
    """Which pieces come out is up to the text alone."""
    text, pieces = cutting
    assert split(by, pieces, max_hold) == split(by, [text], max_hold)


@given(any_by, texts, st.integers(1, 12))
def test_pieces_join_to_the_text(by: str | re.Pattern[str], text: str, max_hold: int) -> None:
    """Nothing is lost, no piece is empty or longer than allowed."""
    out = split(by, [text], max_hold)
    assert "".join(out) == text
    assert all(0 < len(piece) <= max_hold for piece in out)


@given(kinds, cuttings(), st.integers(1, 12))
def test_what_is_held_is_bounded_and_undecided(
    by: str, cutting: tuple[str, list[str]], max_hold: int
) -> None:
    """At most `max_hold` characters wait, and they are what has not come out."""
    splitter = Splitter(by, max_hold=max_hold)
    missing = 0
    for piece in cutting[1]:
        missing += len(piece) - sum(map(len, splitter.feed(piece)))
        assert splitter.held == missing <= max_hold
    splitter.finish()
    assert splitter.held == 0


@given(kinds, texts, st.integers(20, 40))
def test_no_grapheme_is_cut(by: str, text: str, max_hold: int) -> None:
    """A piece ends where a grapheme does, as long as graphemes fit."""
    clusters = regex.findall(r"\X", text)
    if any(len(cluster) > max_hold for cluster in clusters):
        return
    ends = {sum(map(len, clusters[:count])) for count in range(len(clusters) + 1)}
    out = split(by, [text], max_hold)
    assert {sum(map(len, out[:count])) for count in range(len(out) + 1)} <= ends


@given(texts)
def test_graphemes_are_those_of_unicode(text: str) -> None:
    """The pieces are the extended grapheme clusters."""
    assert split("grapheme", [text], 10_000) == regex.findall(r"\X", text)


@given(texts)
def test_lines_are_those_of_a_file(text: str) -> None:
    """The same lines as a text file read with universal newlines, their ends kept."""
    assert split("line", [text], 10_000) == list(io.StringIO(text, newline=""))


@given(cuttings(), st.sampled_from(SEPARATORS))
def test_a_pattern_ends_pieces(cutting: tuple[str, list[str]], by: re.Pattern[str]) -> None:
    """Each of its matches ends a piece; they are those in the whole text."""
    text, pieces = cutting
    ends = [found.end() for found in by.finditer(text)]
    expected = [text[begin:end] for begin, end in pairwise([0, *ends, len(text)])]
    assert split(by, pieces, 10_000) == [piece for piece in expected if piece]


@given(st.text(st.sampled_from("aé.,… \t\n\x1c"), max_size=40))
def test_words_are_split_at_white_space(text: str) -> None:
    """In a script with spaces the words are those of `str.split`."""
    out = split("word", [text])
    assert [piece.strip() for piece in out if piece.strip()] == text.split()
    assert all(piece[-1].isspace() for piece in out[:-1])


@pytest.mark.parametrize(
    ("by", "pieces"),
    [
        ("grapheme", [FAMILY, "🇩🇪", "🇫🇷", "e\u0301", "\r\n", "क्षि"]),
        ("word", ["Hello, ", "wörld!\n\n ", "x"]),
        ("word", [" ", "a\u0301b "]),
        ("word", ["漢", "字 ", "か", "な", "abc ", "ส", "วั", "ส", "ดี"]),
        ("word", ["漢", "字", "。", "漢"]),
        ("word", ["한국어 ", "단어"]),
        ("word", ["한\x1c", "漢\x1c", "x"]),
        ("word", ["b ", f"{FAMILY}{FAMILY}"]),
        ("line", ["a\r\n", "\r\n", "b\r", "c\n"]),
        ("line", ["a\u2028b\x0bc\n", "d"]),
        ("sentence", ["One. ", "Two! ", "Three?! ", "Four… ", "Five"]),
        ("sentence", ["Mr. Smith met Dr. Who. ", "So."]),
        ("sentence", ["J. Doe of the U.S. Army has a Ph.D. since 1990. ", "So."]),
        ("sentence", ["Pi is 3.14 on example.com. ", "So."]),
        ("sentence", ["Plan B! ", "It is (by the Dr.) ", "So."]),
        ("sentence", ["See fig. 3 on p. 4. ", "No. ", "Yes."]),
        ("sentence", ["Some, e.g. this etc. and that... go on. ", "So."]),
        ("sentence", ["“Stop!” he said. ", "(Yes.) ", "**Bold.** ", "So."]),
        ("sentence", ["really? ", "yes! ", "no"]),
        ("sentence", ["これは。", "「はい！」", "漢字？ ", "終"]),  # noqa: RUF001 - CJK marks
        ("sentence", ["1. One thing.\n", "2. Another."]),
        ("sentence", ["A title\n\n", "a text\non lines.\r\n\r\n", "more"]),
        ("sentence", ["Odd. \u0301 so. ", "Yes."]),
    ],
)
def test_pieces_are_what_a_reader_expects(by: str, pieces: list[str]) -> None:
    """Emoji, flags, scripts without spaces, abbreviations, quotes, line ends."""
    assert split(by, list("".join(pieces))) == pieces


@pytest.mark.parametrize(
    ("by", "text", "max_hold", "pieces"),
    [
        ("word", "abcdefg h", 3, ["abc", "def", "g ", "h"]),
        ("word", "abc  d", 4, ["abc ", " ", "d"]),
        ("word", f"ab{FAMILY}c", 6, ["ab", f"{FAMILY}c"]),
        ("line", "abcd\nef\n", 4, ["abcd", "\n", "ef\n"]),
        ("line", "abc\r\nd", 4, ["abc", "\r\n", "d"]),
        ("grapheme", "e\u0301\u0301\u0301x", 3, ["e\u0301\u0301", "\u0301", "x"]),
        (re.compile(";"), "abcdefg;;h;i", 3, ["abc", "def", "g;", ";", "h;", "i"]),
        (re.compile("--"), f"abc{FAMILY}--d", 5, ["abc", FAMILY, "--", "d"]),
    ],
)
def test_a_long_piece_is_cut(
    by: str | re.Pattern[str], text: str, max_hold: int, pieces: list[str]
) -> None:
    """At the last grapheme boundary within `max_hold`; an endless grapheme at `max_hold`."""
    assert split(by, list(text), max_hold) == pieces


def test_a_line_leaves_with_its_end() -> None:
    """LF needs nothing behind it; a CR may be half of CRLF."""
    splitter = Splitter("line")
    assert (splitter.feed("a\n"), splitter.held) == (["a\n"], 0)
    assert (splitter.feed("b\r"), splitter.held) == ([], 2)


@pytest.mark.parametrize("by", [*KINDS, re.compile(r"\.+x|\s")])
@pytest.mark.parametrize("text", ["a", " ", "\u0301", ". ", "漢", "\n", "Mr. "])
def test_long_texts_take_linear_time(by: str | re.Pattern[str], text: str) -> None:
    """Fifty thousand characters at once are no burden, whatever they are."""
    assert sum(map(len, split(by, [text * (50_000 // len(text))]))) == 50_000


class Spy:
    """A pattern that counts the characters it is shown."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        """Stand for a pattern."""
        self.shown = 0
        self._pattern = pattern

    def finditer(self, text: str, begin: int) -> Iterator[re.Match[str]]:
        """As the pattern."""
        self.shown += len(text) - begin
        return self._pattern.finditer(text, begin)

    def search(self, text: str, begin: int) -> re.Match[str] | None:
        """As the pattern."""
        self.shown += len(text) - begin
        return self._pattern.search(text, begin)


@pytest.mark.parametrize(("by", "pattern"), [("line", "_LINE_END"), ("sentence", "_MARKS")])
@pytest.mark.parametrize("piece", ["abcd ", "v1.0 ", "Mr. "])
def test_what_is_held_is_not_searched_again(
    monkeypatch: pytest.MonkeyPatch, by: str, pattern: str, piece: str
) -> None:
    """However long a piece grows, each of its characters is looked at a few times."""
    spy = Spy(getattr(_split, pattern))
    monkeypatch.setattr(_split, pattern, spy)
    splitter = Splitter(by, max_hold=2_000)
    for _ in range(100):
        assert splitter.feed(piece) == []
    assert spy.shown <= 3 * splitter.held


@pytest.mark.parametrize("by", ["", "words", "\\n", None, ["word"], regex.compile("a")])
def test_a_kind_that_is_none_is_refused(by: Any) -> None:
    """The error names the kinds there are."""
    with pytest.raises(ConfigurationError, match=r"by is .*'grapheme', .* or a compiled pattern"):
        Splitter(by)


@pytest.mark.parametrize("max_hold", [0, -1, "9", 1.5, True, None])
def test_a_hold_that_holds_nothing_is_refused(max_hold: Any) -> None:
    """There has to be room for one character, and their number is a whole one."""
    with pytest.raises(ConfigurationError, match=rf"Splitter: max_hold is {max_hold!r}; give 1"):
        Splitter("word", max_hold=max_hold)


@pytest.mark.parametrize("pattern", ["", "a*", r"(a)\1", "a$", "(?<=ab)c", "(?m)^", b"a"])
def test_a_pattern_that_no_rule_takes_is_refused(pattern: Any) -> None:
    """Its matches could not be told while the text is still arriving; the error names the kinds."""
    with pytest.raises(ConfigurationError, match=r"rule 'separator': .* or give one of 'grapheme'"):
        Splitter(re.compile(pattern))


def test_a_match_without_end_is_refused() -> None:
    """What is not decided after 4096 characters fails, rather than being held for ever."""
    splitter = Splitter(re.compile("-+x"))
    assert splitter.feed("a--" + "-" * 4_000) == []
    assert splitter.held == 4_003
    with pytest.raises(MatchLimitError, match="rule 'separator'"):
        splitter.feed("-" * 100)
