"""The matcher: what is found in a text that is cut anywhere, and how little is held of it."""

from __future__ import annotations

import gc
import itertools
import re
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.errors import ConfigurationError, RunStateError
from streampipe.text import Matcher, MatchLimitError, Region, Rule, RuleError, _matcher, _program
from streampipe.text._automaton import Automaton, automaton
from tests.text.cuttings import cut
from tests.text.regex_oracle import regions_by_re, spans_by_re
from tests.text.regex_strategies import rules, texts

Found = list[tuple[str, int, str]]


def fed(matcher: Matcher, pieces: Iterable[str]) -> list[str | Region]:
    """All that a matcher gives for these pieces, and at their end."""
    parts = [part for piece in pieces for part in matcher.feed(piece)]
    return parts + matcher.finish()


def found(parts: list[str | Region]) -> Found:
    """Name of the rule, beginning and text of each region."""
    regions = [part for part in parts if isinstance(part, Region)]
    return [(region.rule.name, region.start, region.text) for region in regions]


def joined(parts: list[str | Region]) -> str:
    """The text that the parts add up to."""
    return "".join(part if isinstance(part, str) else part.text for part in parts)


@given(st.data(), rules(), texts)
def test_however_a_text_is_cut_the_same_is_found(
    data: st.DataObject, made: list[Rule], text: str
) -> None:
    """It is what `re` finds in the whole; no part is empty, and together they are the text."""
    parts = fed(Matcher(made), data.draw(cut(text)))
    assert found(parts) == regions_by_re(text, made)
    assert joined(parts) == text
    assert all(part if isinstance(part, str) else part.text for part in parts)


@given(st.data(), rules(), texts, st.integers(0, 3))
def test_what_is_forgotten_is_found_again(
    data: st.DataObject, made: list[Rule], text: str, age: int
) -> None:
    """States that are dropped, attempts that are old and texts that are long change nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streampipe.text._automaton.MAX_SIZE", 40)
        patch.setattr(_program, "MAX_SIZE", 5)
        patch.setattr(_program, "MAX_AGE", age)
        patch.setattr(_matcher, "PIECE", 3)
        # Not from the caches: those programs were made with the ordinary limits.
        keys = tuple((rule.pattern, int(rule.flags), rule.max_match) for rule in made)
        patch.setattr(_matcher, "program", lambda _: _program.Program(keys))
        parts = fed(Matcher(made), data.draw(cut(text)))
    assert found(parts) == regions_by_re(text, made)
    assert joined(parts) == text


@given(st.data(), rules(), texts)
def test_nothing_that_left_is_matched_later(
    data: st.DataObject, made: list[Rule], text: str
) -> None:
    """After each piece, what left and what is held are what was fed."""
    matcher = Matcher(made)
    left = ""
    fed_so_far = ""
    for piece in data.draw(cut(text)):
        left += joined(matcher.feed(piece))
        fed_so_far += piece
        assert len(left) + matcher.held == len(fed_so_far)
        assert fed_so_far.startswith(left)
        assert matcher.feed("") == []
    assert left + joined(matcher.finish()) == text
    assert matcher.held == 0


SHORT = [
    "ab",
    "aab|b1",
    "a+b",
    "aa+",
    r"\bab\b",
    "a{2,3}",
    "a{1,3}?b",
    "(?<!a)ab",
    "ab(?!1)",
    "(?m)a$",
    r"a\Z",
    "a.b",
    "[ab]{3}",
    r"1\B",
    "(?:ab)+1",
]
ENDS = ["".join(end) for size in range(4) for end in itertools.product("ab1 \n", repeat=size)]


@given(st.lists(st.sampled_from(SHORT), min_size=1, max_size=3, unique=True), st.text("aab1 \n"))
def test_nothing_is_held_without_need(chosen: list[str], text: str) -> None:
    """What some rule makes of the characters that are held depends on what comes."""
    made = [Rule(pattern, pattern) for pattern in chosen]
    matcher = Matcher(made)
    matcher.feed(text)
    if not matcher.held:
        return
    place = len(text) - matcher.held
    # Of one rule, it is the oldest attempt; of several, it may be a match that another's reaches.
    held = range(place, place + 1 if len(made) == 1 else len(text))
    fates = {
        tuple(
            (rule.name, start, stop)
            for rule in made
            for start, stop in spans_by_re(text + end, rule)
            if start in held
        )
        for end in ENDS
    }
    assert len(fates) > 1


@pytest.mark.parametrize(
    ("pattern", "text", "held"),
    [
        (r"(?<!\w)[a-z]+@[a-z]+", "say hello", 5),
        (r"(?<!\w)[a-z]+@[a-z]+", "say hello ", 0),
        (r"(?<!\w)[a-z]+@[a-z]+", "say ann@b", 5),
        (r"(?<!\w)[a-z]+@[a-z]+", "say ann@b.", 0),
        (r"[0-9]{3}", "12", 2),
        (r"[0-9]{3}", "123", 0),
        (r"[0-9]{3,}", "123", 3),
        (r"[a-z]{1,3}@", "abcdefgh", 3),
        (r"foo\b", "foo", 3),
        (r"foo\b|food", "food", 0),
        (r"foo", "fofofo", 2),
        (r"漢a", "漢字漢", 1),
        (r"a(?=b)", "a", 1),
        (r"a(?=b)", "ab", 0),
        (r"a{100}b", "a" * 300, 100),
    ],
)
def test_as_much_is_held_as_may_still_match(pattern: str, text: str, held: int) -> None:
    """However the text was cut."""
    for pieces in ([text], list(text)):
        matcher = Matcher([Rule("x", pattern)])
        for piece in pieces:
            matcher.feed(piece)
        assert matcher.held == held


def test_a_region_leaves_when_nothing_can_still_reach_into_it() -> None:
    """A match of one rule waits for the attempts of another that began before its end."""
    matcher = Matcher([Rule("short", "bc"), Rule("long", "c1+x")])
    assert matcher.feed("abc") == ["a"]
    assert matcher.feed("11") == []
    assert found(matcher.feed("1 ")) == [("short", 1, "bc")]
    assert matcher.feed("bc1") == []
    assert found(matcher.feed("x")) == [("long", 7, "bc1x")]


@pytest.mark.parametrize(
    ("patterns", "text", "regions"),
    [
        (["ab", "bc"], "abc", [("ab", 0, "abc")]),
        (["b", "abc"], "abc", [("abc", 0, "abc")]),
        (["ab", "cd"], "abcd", [("ab", 0, "ab"), ("cd", 2, "cd")]),
        (["a", "b+"], "abb", [("a", 0, "a"), ("b+", 1, "bb")]),
        (["abc", "cd", "def"], "abcdef", [("abc", 0, "abcdef")]),
        (["ab", "bcd"], "abcd", [("bcd", 0, "abcd")]),
        (["a.", "[ab]+"], "abab", [("[ab]+", 0, "abab")]),
    ],
)
def test_matches_that_overlap_are_one_region(
    patterns: list[str], text: str, regions: Found
) -> None:
    """Of the longest one's rule, or the first of several; those that only touch stay apart."""
    made = [Rule(pattern, pattern) for pattern in patterns]
    assert found(fed(Matcher(made), text)) == regions
    assert regions_by_re(text, made) == regions


def test_a_check_refuses_and_shortens() -> None:
    """After a refusal the next place is tried; after a shortened match, the place behind it."""

    def even(digits: str) -> int:
        return len(digits) if digits[-1] in "02468" else 0

    rule = Rule("even", "[0-9]{2}", check=even)
    assert found(fed(Matcher([rule]), "1347 1 22")) == [("even", 1, "34"), ("even", 7, "22")]
    rule = Rule("first two", "[0-9]+", check=lambda digits: min(len(digits), 2))
    assert [text for _, _, text in found(fed(Matcher([rule]), "12345"))] == ["12", "34", "5"]


def test_a_check_is_asked_about_decided_matches_only() -> None:
    """Each of them once, in order, whatever else the pattern could have matched."""
    asked: list[str] = []

    def check(text: str) -> int:
        asked.append(text)
        return len(text)

    fed(Matcher([Rule("x", "[0-9]+", check=check)]), "1 23 456")
    assert asked == ["1", "23", "456"]


def test_a_check_that_raises_fails_the_scan() -> None:
    """With the rule's name; what is held stays there for ever."""
    matcher = Matcher([Rule("sum", "[0-9]+", check=lambda text: 1 // int(text))])
    assert matcher.feed("a 0") == ["a "]
    with pytest.raises(RuleError, match="rule 'sum': check raised ZeroDivisionError") as caught:
        matcher.feed(" b")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    calls: list[Callable[[], object]] = [lambda: matcher.feed(""), matcher.finish]
    for again in calls:
        with pytest.raises(RuleError, match="ZeroDivisionError"):
            again()


def test_what_interrupts_a_check_fails_the_scan_too() -> None:
    """The text does not go on as though nothing had been there."""
    asked: list[str] = []

    def interrupted(text: str) -> int:
        asked.append(text)
        raise KeyboardInterrupt

    matcher = Matcher([Rule("x", "1", check=interrupted)])
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            matcher.feed("1 ")
    assert asked == ["1"]


@pytest.mark.parametrize(
    ("returned", "said"),
    [(-1, "-1"), (3, "3"), (True, "True"), (None, "None"), (1.0, "a float"), ("12", "a str")],
)
def test_a_check_that_returns_no_length_fails_the_scan(returned: Any, said: str) -> None:
    """True above all, which would be taken for one character; the text itself is not quoted."""
    matcher = Matcher([Rule("x", "[0-9]{2}", check=lambda _: returned)])
    message = f"check returned {said} for 2 characters; it has to return how many"
    with pytest.raises(RuleError, match=re.escape(message)):
        matcher.feed("12")


@pytest.mark.parametrize("size", [1, 3, 1_000])
@pytest.mark.parametrize("limit", [5, 100])
def test_a_match_that_is_not_decided_in_time_fails_the_scan(limit: int, size: int) -> None:
    """One that is as long as the limit still passes."""
    rule = Rule("blob", "x[a-z]*", max_match=limit)
    text = f"x{'a' * (limit - 1)}"
    for end in (" ", ""):
        assert found(fed(Matcher([rule]), pieces(text + end, size))) == [("blob", 0, text)]
    with pytest.raises(MatchLimitError, match=f"rule 'blob': .* after {limit} characters"):
        fed(Matcher([rule]), pieces(f"{text}a ", size))


@pytest.mark.parametrize("size", [1, 3, 1_000])
@pytest.mark.parametrize("limit", [5, 100])
def test_an_attempt_without_a_match_is_held_no_longer(limit: int, size: int) -> None:
    """Whether anything comes of it or not, and as soon as it is too long."""
    rule = Rule("blob", "x[a-z]*!", max_match=limit)
    text = f"x{'a' * (limit - 1)}"
    assert joined(fed(Matcher([rule]), pieces(f"{text} ", size))) == f"{text} "
    with pytest.raises(MatchLimitError, match=f"rule 'blob': .* after {limit} characters"):
        fed(Matcher([rule]), pieces(f"{text}a ", size))
    matcher = Matcher([rule])
    for piece in pieces(text, size):
        matcher.feed(piece)
    with pytest.raises(MatchLimitError):
        matcher.feed("a")


def pieces(text: str, size: int) -> list[str]:
    """The text in pieces of so many characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]


@given(st.data(), st.integers(1, 6), st.text("aab1 "))
def test_whether_it_fails_does_not_depend_on_the_cuts(
    data: st.DataObject, limit: int, text: str
) -> None:
    """It either fails for each cutting or for none."""
    made = [Rule("x", r"(?:a|b)+1|1 ?", max_match=limit), Rule("y", "b(?:a*1)?", max_match=limit)]

    def outcome(pieces: list[str]) -> Found | type[Exception]:
        try:
            return found(fed(Matcher(made), pieces))
        except MatchLimitError as error:
            return type(error)

    assert outcome(data.draw(cut(text))) == outcome([text])


def test_a_matcher_needs_a_rule() -> None:
    """None at all is a mistake in what was put together."""
    with pytest.raises(ConfigurationError, match="Matcher: rules is empty; give at least one"):
        Matcher([])


@pytest.mark.parametrize("text", ["", "abc", "12"])
def test_a_text_ends_once(text: str) -> None:
    """Another text needs another matcher."""
    matcher = Matcher([Rule("x", "[0-9]+")])
    fed(matcher, [text])
    calls: list[Callable[[], object]] = [lambda: matcher.feed("a"), matcher.finish]
    for call in calls:
        with pytest.raises(RunStateError, match="the text is finished"):
            call()


def test_matchers_of_equal_rules_share_their_automata() -> None:
    """A text's first characters cost no more than any others."""
    assert automaton("a+b", 0) is automaton("a+b", 0)
    assert Matcher([Rule("x", "a")])._program is Matcher([Rule("y", "a")])._program


MANY_STATES = "1[01]{12}x"
"""Which of the last digits were a 1 makes thousands of states."""
NEW = "".join(f"{number:b}" for number in range(1_000)) + "".join(map(chr, range(0x100, 0xD00)))
"""Digits in ever new orders, then ever new characters."""


def test_what_is_remembered_of_a_rule_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of ever new characters and ever new states does not fill the memory."""
    monkeypatch.setattr("streampipe.text._automaton.MAX_SIZE", 500)
    monkeypatch.setattr("streampipe.text._nfa.KNOWN", 200)
    one = Automaton(MANY_STATES, 0)
    start = state = one.start("")
    for char in NEW:
        state, _ = state[char]
        one.start("")[char]
    for root in (start, one.start(""), state):
        kept = reachable(root, lambda known: [after for after, _ in known.values()])
        assert sum(len(known) + len(known.threads) for known in kept) < 600
    assert len(one._states) < 500
    assert len(one.alphabet) < 300


def test_what_is_remembered_of_all_rules_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor do the states in which several rules stand."""
    monkeypatch.setattr(_program, "MAX_SIZE", 500)
    both = _program.Program(((MANY_STATES, 0, 99), ("[0-9]{1,40}@", 0, 99)))
    start = state = both.start()
    for char in NEW:
        state = state[char]
        both.start()[char]
    for root in (start, both.start(), state):
        assert sum(map(len, reachable(root, lambda known: list(known.values())))) < 600
    assert len(both._states) < 300


S = TypeVar("S")


def reachable(start: S, after: Callable[[S], list[S]]) -> list[S]:
    """All states that are kept alive by one."""
    known = {id(start): start}
    new = [start]
    while new:
        new = [state for one in new for state in after(one) if id(state) not in known]
        known.update((id(state), state) for state in new)
    return list(known.values())


@pytest.mark.parametrize(
    "pattern",
    [r"(?:a+)+\Z", r"(?m:(?:a|aa)+$)", r"(?:a|b|ab)*c", r"a{0,30}a{30}b", r"(?s:.*.*=.*;)"],
)
def test_no_pattern_hangs(pattern: str) -> None:
    """Not even one that takes `re` time exponential in the text."""
    matcher = Matcher([Rule("evil", f"x(?:{pattern})", max_match=9_000)])
    begun = time.process_time()
    fed(matcher, pieces(f"x{'a' * 5_000}!", 4))
    assert time.process_time() - begun < 2


def test_work_is_linear_in_the_text() -> None:
    """In small pieces, with matches, and with attempts that come to nothing."""
    made = [Rule("mail", r"[a-z]+@[a-z]+"), Rule("digits", r"[0-9]{3,}x?"), Rule("word", r"\bof\b")]
    page = "a list of numbers: 1, 22, 333 and ann@example of 4444x; "

    def seconds(text: str) -> float:
        cut = pieces(text, 4)
        gc.collect()
        gc.disable()  # it would look through whatever other tests have left
        try:
            begun = time.thread_time()
            fed(Matcher(made), cut)
            return time.thread_time() - begun
        finally:
            gc.enable()

    seconds(page)
    rounds = [(seconds(page * 40), seconds(page * 640)) for _ in range(3)]  # side by side
    assert min(long / short for short, long in rounds) < 16 * 2
