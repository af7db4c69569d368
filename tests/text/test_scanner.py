"""The scanner: redaction of a text that is cut anywhere is that of the whole text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.errors import ConfigurationError, RunStateError
from streampipe.text import MatchLimitError, Rule, RuleError, Scanner, redacted
from tests.text.cuttings import cut
from tests.text.regex_oracle import redacted_by_re
from tests.text.regex_strategies import rules, texts


def scanned(pieces: Sequence[str], made: Sequence[Rule]) -> str:
    """All that a scanner lets out."""
    scanner = Scanner(made)
    return "".join([scanner.feed(piece) for piece in pieces]) + scanner.finish()


@given(st.data(), rules(), texts)
def test_however_a_text_is_cut_it_is_redacted_as_the_whole(
    data: st.DataObject, made: list[Rule], text: str
) -> None:
    """And the whole as by `re`."""
    expected = redacted_by_re(text, made)
    assert scanned(data.draw(cut(text)), made) == expected
    assert redacted(text, made) == expected


@given(st.data(), texts)
def test_what_left_is_a_beginning_of_the_result(data: st.DataObject, text: str) -> None:
    """Nothing is taken back, and what is held is no more than what was fed."""
    made = [Rule("ab", "a+b", "X"), Rule("word", r"\b[b1]{2}\b", "YYYY")]
    scanner = Scanner(made)
    left, fed = "", 0
    for piece in data.draw(cut(text)):
        left += scanner.feed(piece)
        fed += len(piece)
        assert redacted_by_re(text, made).startswith(left)
        assert scanner.feed("") == ""
        assert 0 <= scanner.held <= fed
    assert left + scanner.finish() == redacted_by_re(text, made)
    assert scanner.held == 0


def test_text_in_which_nothing_begins_passes_as_it_is() -> None:
    """Not even a copy of it is made."""
    scanner = Scanner([Rule("digits", "[0-9]+")])
    for piece in ("no digits here", " or here", "\n"):
        assert scanner.feed(piece) is piece
        assert scanner.held == 0
    assert scanner.finish() == ""


def test_a_value_that_comes_in_pieces_never_shows() -> None:
    """What may become one is held until it is clear."""
    scanner = Scanner([Rule("address", r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b", "[ADDRESS]")])
    pieces = ["at 10.0", ".0.1", "23", ", or 1.", "5 of it, or 10.0.0.1"]
    assert [scanner.feed(piece) for piece in pieces] == [
        "at ",
        "",
        "",
        "[ADDRESS], or ",
        "1.5 of it, or ",
    ]
    assert (scanner.held, scanner.finish()) == (8, "[ADDRESS]")


def test_a_replacement_is_taken_literally() -> None:
    """Neither group references nor escapes mean anything in it, and it may be empty."""
    assert redacted("a1b", [Rule("x", "([0-9])", r"\1\g<0>\n")]) == r"a\1\g<0>\nb"
    assert redacted("a1b", [Rule("x", "[0-9]", "")]) == "ab"


def test_a_replacement_is_not_matched_again() -> None:
    """Nor is what it makes of the text around it."""
    assert redacted("1212", [Rule("x", "12", "1"), Rule("y", "11", "!")]) == "11"


def test_a_replacement_may_be_made_from_the_text() -> None:
    """It gets all of what it replaces, where matches overlap too."""
    made = [Rule("ab", "ab+", lambda text: "*" * len(text)), Rule("bc", "bc")]
    assert redacted("xabbbcx", made) == "x*****x"


def test_a_replacement_that_raises_fails_the_scan() -> None:
    """With the rule's name, and the same again whatever is fed afterwards."""

    def lookup(text: str) -> str:
        return {"1": "one"}[text]

    scanner = Scanner([Rule("number", "[0-9]", lookup)])
    assert scanner.feed("1") == "one"
    with pytest.raises(RuleError, match=r"rule 'number': replacement raised KeyError$"):
        scanner.feed("2 1")
    with pytest.raises(RuleError, match=r"KeyError$"):
        scanner.feed(" 1")
    with pytest.raises(RuleError, match=r"KeyError$"):
        scanner.finish()


def test_a_replacement_that_returns_no_text_fails_the_scan() -> None:
    """None is no way to say that nothing is put in its place."""
    nothing: Any = lambda text: None  # noqa: E731 - what a user may write
    with pytest.raises(RuleError, match="rule 'x': replacement returned a NoneType; it has to"):
        redacted("1", [Rule("x", "[0-9]", nothing)])


def test_a_scan_that_failed_lets_nothing_out() -> None:
    """What it held is not given away at the end."""
    scanner = Scanner([Rule("blob", "x[a-z]*", max_match=8)])
    assert scanner.feed("see x") == "see "
    with pytest.raises(MatchLimitError, match="rule 'blob': a match is still undecided after 8"):
        scanner.feed("secretsecret")
    for _ in range(2):
        with pytest.raises(MatchLimitError):
            scanner.finish()


def test_a_text_ends_once() -> None:
    """Another text needs another scanner."""
    scanner = Scanner([Rule("x", "1")])
    assert scanner.feed("a1") + scanner.finish() == "a[REDACTED]"
    with pytest.raises(RunStateError, match="the text is finished"):
        scanner.feed("a")
    with pytest.raises(RunStateError, match="the text is finished"):
        scanner.finish()


def test_a_scanner_needs_a_rule() -> None:
    """None at all is a mistake in what was put together."""
    with pytest.raises(ConfigurationError, match="rules is empty"):
        Scanner([])
    with pytest.raises(ConfigurationError, match="rules is empty"):
        redacted("text", [])
