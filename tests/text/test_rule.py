"""Rules: what they accept, and how they refuse the rest."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from streampipe.errors import ConfigurationError, StreampipeError
from streampipe.text import MatchLimitError, Rule, RuleError


def test_a_rule_needs_a_name_and_a_pattern() -> None:
    """All else has a default."""
    rule = Rule("digits", "[0-9]+")
    assert (rule.replacement, rule.check, rule.flags, rule.max_match) == (
        "[REDACTED]",
        None,
        0,
        4096,
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rule("", "a"), "name is empty"),
        (lambda: Rule("x", "a", max_match=0), "rule 'x': max_match is 0; give 1 or more"),
        (lambda: Rule("x", "a", flags=re.LOCALE), "rule 'x': re.LOCALE is not possible; flags may"),
        (lambda: Rule("x", "a", flags=re.ASCII | re.UNICODE), "ASCII and UNICODE"),
    ],
)
def test_a_bad_option_is_refused(make: Callable[[], Rule], message: str) -> None:
    """The error names the option and what it may be."""
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        make()


def test_a_pattern_of_bytes_is_refused() -> None:
    """Text is str."""
    pattern: Any = b"a"
    with pytest.raises(ConfigurationError, match="rule 'x': the pattern is b'a'; give a str"):
        Rule("x", pattern)


@pytest.mark.parametrize("pattern", ["(", "[", "*", "a{2,1}", "(?<=a+)b", "(?P<x>a)(?P<x>b)"])
def test_what_does_not_compile_is_refused(pattern: str) -> None:
    """The error names the rule, and says what `re` says."""
    with pytest.raises(re.error) as said:
        re.compile(pattern)
    with pytest.raises(ConfigurationError) as refused:
        Rule("broken", pattern)
    assert str(refused.value).startswith("rule 'broken': the pattern does not compile: ")
    assert str(said.value) in str(refused.value)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"(a)\1", "back-references are not possible: spell out"),
        (r"(?P<x>a)(?P=x)", "back-references are not possible"),
        (r"(a)?(?(1)b|c)", "conditional groups are not possible: write both cases"),
        (r"(?>a|ab)c", "atomic groups (?>...) are not possible: write (?:...)"),
        (r"a++b", "possessive repeats are not possible: write *, +, ? or {m,n}"),
        (r"a(?!)", "look-around of anything but one character"),
        (r"a$", r"$ without re.MULTILINE looks at two characters: write \Z, or give re.MULTILINE"),
        (r"(?m:a)(?-m:$)", "$ without re.MULTILINE"),
        (r"(?=ab)a", "look-around of anything but one character is not possible: put one"),
        (r"(?<!ab)c", "look-around of anything but one character"),
        (r"a(?=b|cd)", "look-around of anything but one character"),
        (r"a(?=b*)", "look-around of anything but one character"),
        (r"a(?=\b)", "look-around of anything but one character"),
        (r"(?<=\Z)a", "look-around of anything but one character"),
        (r"(?:a*)*b", "a repeat of what can match nothing is not possible: write (?:x?)* as x*"),
        (r"(?:a|\b){2}b", "a repeat of what can match nothing"),
        (r"a*", "it can match nothing at all: make it need at least one character"),
        (r"\b", "it can match nothing at all"),
        (r"a|(?=b)", "it can match nothing at all"),
        (r"", "it can match nothing at all"),
        (r"[ab]{20001}", "it is too large, 40002 nodes of 20000: lower the bounds"),
        (r"(?:(?:a{99}){99}){99}", "it is too large"),
    ],
)
def test_what_is_not_exact_is_refused(pattern: str, message: str) -> None:
    """The error names the rule and the construct, and says what to write instead."""
    with pytest.raises(ConfigurationError, match=re.escape(f"rule 'bad': {message}")):
        Rule("bad", pattern)


def test_a_pattern_may_be_nested_deeply_or_is_refused() -> None:
    """Not with a RecursionError."""
    with pytest.raises(ConfigurationError, match="rule 'deep': the pattern does not compile"):
        Rule("deep", "(?:" * 5_000 + "a" + ")" * 5_000)


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [
        (r"sk-[A-Za-z0-9]{20,}", 0),
        (r"(?s)BEGIN.*?END", 0),
        (r"\A(?:a|b)+?\Z", 0),
        (r"^a$", re.MULTILINE),
        (r"(?<![\w.])a(?![\w.])", re.ASCII | re.IGNORECASE),
        (r"a(?=\s|\Z)", re.UNICODE),
        (r"a{0}b", 0),
        (r" a  # a comment", re.VERBOSE),
        (r"(?i:a)(?P<name>b)", 0),
        (r"[ab]{9000}", 0),
    ],
)
def test_the_rest_is_accepted(pattern: str, flags: int) -> None:
    """In the syntax of `re`."""
    assert Rule("good", pattern, flags=flags).pattern == pattern


def test_a_rule_is_a_value() -> None:
    """Equal ones are one in a set."""
    assert len({Rule("x", "a"), Rule("x", "a"), Rule("x", "b")}) == 2


def test_failures_are_of_one_tree() -> None:
    """A caller may catch what any part of the library raises."""
    error = MatchLimitError("too long", rule="x")
    assert isinstance(error, RuleError)
    assert isinstance(error, StreampipeError)
    assert (str(error), error.rule) == ("rule 'x': too long", "x")
