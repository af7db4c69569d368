"""Patterns mean what they mean to `re`: every set of characters, every flag, every construct."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streampipe.text import Matcher, Region, Rule
from tests.text.regex_oracle import spans_by_re
from tests.text.regex_strategies import rules, texts

SETS = (
    r"[a-z] [^a-z] [k\u017f] [^ß] \w \W \d \D \s \S . k \u017f \u0130 \u0131 ß \xb5 [\d\u212a] "
    r"[^\W\d_] [\]^-] \."
)
CASES = "kK\u212a sS\u017f iI\u0130\u0131 ß\u1e9e \xb5\u03bc \n1\u0663_é-]^."
FLAGS = [0, re.IGNORECASE, re.ASCII, re.DOTALL, re.IGNORECASE | re.ASCII]


def spans(text: str, rule: Rule) -> list[tuple[int, int]]:
    """Where the rule matches the text."""
    matcher = Matcher([rule])
    parts = matcher.feed(text) + matcher.finish()
    found = [part for part in parts if isinstance(part, Region)]
    return [(region.start, region.start + len(region.text)) for region in found]


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("pattern", SETS.split())
@given(text=st.text() | st.text(CASES))
def test_a_set_holds_the_characters_that_it_holds_for_re(
    pattern: str, flags: int, text: str
) -> None:
    """Letters without case, letters with three of them, digits of any script, line ends."""
    rule = Rule("set", pattern, flags=flags)
    assert spans(text, rule) == spans_by_re(text, rule)


@given(rules(1), texts)
@example([Rule("x", "a|ab")], "ab")
@example([Rule("x", "(?:a|ab)(?:c|bcd)")], "abcd")
@example([Rule("x", "a??b|a")], "aab")
@example([Rule("x", "a{2,3}?")], "aaaaa")
@example([Rule("x", r"(?:a\b|ab)+")], "aba a")
@example([Rule("x", r"A*(?:a|\W)")], "AAAb ")  # one attempt's place is another's beginning
def test_a_pattern_matches_what_it_matches_for_re(made: list[Rule], text: str) -> None:
    """As early as possible, and of several ways the one that `re` prefers."""
    [rule] = made
    assert spans(text, rule) == spans_by_re(text, rule)


@pytest.mark.parametrize(
    ("pattern", "flags", "text"),
    [
        (r"\Aa", 0, "aa"),
        (r"(?m)^a", 0, "a\na\r\n a"),
        (r"a$", re.MULTILINE, "a\naa\n\na"),
        (r"a\Z", 0, "a\na"),
        (r"\ba", 0, "a ba éa a"),
        (r"\ba", re.ASCII, "a ba éa a"),
        (r"a\B.", 0, "ab a aé"),
        (r"(?<=\s)a(?=\s|\Z)", 0, "a a a"),
        (r"(?<!\d)\d{3}(?!\d)", 0, "123 4567 890"),
        (r"(?i)\u017fet", 0, "SET set \N{LATIN SMALL LETTER LONG S}et"),
        (r"(?i:a)b", 0, "ab Ab aB"),
        (r"(?a:\w)\w", 0, "éé aé éa"),
        (r"(?u:\w)\w", re.ASCII, "éé aé éa"),
        (r"(?-i:a)b", re.IGNORECASE, "aB AB"),
        (r"(?s:.)a.", 0, "\na\n \nab"),
        (r" a [ ] b ", re.VERBOSE, "a b ab"),
    ],
)
def test_a_place_is_where_it_is_for_re(pattern: str, flags: int, text: str) -> None:
    """Edges of the text, of lines and of words; flags of a whole pattern and of a part."""
    rule = Rule("place", pattern, flags=flags)
    assert spans(text, rule) == spans_by_re(text, rule)
    assert any(spans_by_re(text[cut:], rule) for cut in range(len(text))), "it matches something"
