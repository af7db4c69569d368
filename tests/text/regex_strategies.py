"""Strategies of regular expressions that rules accept, and of texts that they may match."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from streampipe.text import Rule

__all__ = ["patterns", "rules", "texts"]

texts = st.text("abAé \n1", max_size=24)
"""Short ones of few characters, so that patterns of the same do match."""

_CHARS = r"a b A é É \x20 \n 1 . [ab] [^a] [a-b1] [^\s1] \w \W \d \s \S [\wé] (?i:a) (?a:\w) (?s:.)"
_PLACES = (
    r"\b \B \A \Z ^ (?m:^) (?m:$) (?=a) (?!b) (?<=a) (?<!\w) (?=[\s1]) (?!\s) (?<=\W) (?=\s|\Z) "
    r"(?!a|\Z) (?a:\b)"
)
_TIMES = "* + ? *? +? ?? {2} {1,2} {0,3} {2,} {1,3}? {2,}?"


Pattern = tuple[str, bool]
"""A pattern, and whether it may match the empty string."""


def _chained(parts: list[Pattern]) -> Pattern:
    return "".join(text for text, _ in parts), all(empty for _, empty in parts)


def _either(options: list[Pattern]) -> Pattern:
    return f"({'|'.join(text for text, _ in options)})", any(empty for _, empty in options)


def _repeated(body: Pattern, times: str) -> Pattern:
    text, empty = body
    if empty:  # repeats of these are refused
        text = f"{text}b"
    return f"(?:{text}){times}", times[0] in "*?" or times.startswith("{0")


def _larger(inner: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
    several = st.lists(inner, min_size=2, max_size=4)
    return st.one_of(
        several.map(_chained),
        several.map(_either),
        st.builds(_repeated, inner, st.sampled_from(_TIMES.split())),
    )


_leaves = [(text, False) for text in _CHARS.split() * 3] + [
    (text, True) for text in _PLACES.split()
]
_any = st.recursive(st.sampled_from(_leaves), _larger, max_leaves=9)
patterns = _any.map(lambda made: f"(?:{made[0]})a" if made[1] else made[0])
"""Of every construct that a rule accepts."""

_flags = st.sampled_from([0, re.IGNORECASE, re.ASCII, re.MULTILINE, re.DOTALL | re.MULTILINE])


def _shortened(text: str) -> int:
    """Refuses some matches, and lets go of the last character of others."""
    return 0 if "1" in text[1:] else len(text) - (len(text) > 2)


def _rule(number: int) -> st.SearchStrategy[Rule]:
    checks = st.sampled_from([None, _shortened])
    name, replacement = st.just(f"rule {number}"), st.just(f"<{number}>")
    return st.builds(Rule, name, patterns, replacement, checks, _flags)


def rules(most: int = 3) -> st.SearchStrategy[list[Rule]]:
    """Up to so many rules, whose names and replacements differ."""
    counts = st.integers(1, most)
    return counts.flatmap(lambda count: st.tuples(*map(_rule, range(count)))).map(list)
