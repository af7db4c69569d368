"""Find what rules match in a text while it arrives, exactly as in the whole text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streampipe.errors import ConfigurationError, RunStateError
from streampipe.text._automaton import Automaton, Move, State
from streampipe.text._nfa import EDGE
from streampipe.text._program import LOST, JointState, program
from streampipe.text._rule import MatchLimitError, Rule, RuleError

__all__ = ["Matcher", "Region"]

PIECE = 32
"""Characters of a long text that are read at once: after a match the next are read fast again."""

_FINISHED = "the text is finished; another text needs another matcher"


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a text that rules matched: one match, or several that overlap.

    Attributes:
        rule: the rule of the longest match; of several as long, the one that was given first.
        start: where the part begins, in characters from the beginning of the text.
        text: the part itself.
    """

    rule: Rule
    start: int
    text: str


_Span = tuple[int, int, int]
"""Where a match begins and ends in the text, and the number of its rule."""


class _Cursor:
    """One rule's way through a text."""

    __slots__ = ("_automaton", "_found", "_number", "_rule", "at", "starts", "state")

    def __init__(self, number: int, rule: Rule, automaton: Automaton) -> None:
        self._number = number
        self._rule = rule
        self._automaton = automaton
        self._found: tuple[int, int] | None = None  # a match that is not decided yet
        self.state = automaton.start(EDGE)
        self.starts: list[int] = []  # of the attempts, the oldest first
        self.at = 0

    def resume(self, state: State, ages: tuple[int, ...], at: int) -> None:
        """Stand at a place of the text, in a state without a match."""
        self.state = state
        self.starts = [at - age for age in ages]
        self.at = at

    def ages(self) -> tuple[int, ...]:
        """What `resume` takes."""
        return tuple([self.at - start for start in self.starts])

    @property
    def frontier(self) -> int:
        """Every match that begins before this place is known."""
        return self.starts[0] if self.starts else self.at

    def read(self, text: str, base: int) -> list[_Span]:
        """Read on to the end of what there is, which begins at `base`; returns the matches."""
        spans: list[_Span] = []
        self._run(text, base)
        while self._found is not None and not self.state.threads:
            spans += self._settle(self._found, text, base)
            self._run(text, base)
        return spans

    def finish(self, text: str, base: int) -> list[_Span]:
        """Read on to the end of the whole text; returns the matches."""
        spans: list[_Span] = []
        while True:
            spans += self.read(text, base)
            self.state, move = self.state[EDGE]
            if move is not None:
                self._follow(move, self.at)
            if self._found is None:
                return spans
            spans += self._settle(self._found, text, base)

    def _run(self, text: str, base: int) -> None:
        """Read on to the end, or until a match is decided."""
        state, at = self.state, self.at
        for char in text[at - base :]:
            state, move = state[char]
            if move is not None:
                self._follow(move, at)
                if not state.threads and self._found is not None:
                    at += 1
                    break
            at += 1
        self.state, self.at = state, at
        self._check_limit(at)

    def _follow(self, move: Move, at: int) -> None:
        """Do to the attempts what the character at `at` does."""
        self._check_limit(at)
        starts = [*self.starts, at]
        if move.matched is not None:
            self._found = starts[move.matched], at + move.including
        self.starts = [starts[number] for number in move.kept]

    def _settle(self, found: tuple[int, int], text: str, base: int) -> list[_Span]:
        """Take a match, or what the rule's check leaves of it, and go on behind it."""
        start, stop = found
        length = self._checked(text[start - base : stop - base])
        at = start + (length or 1)
        self._found = None
        self.resume(self._automaton.start(text[at - base - 1]), (), at)
        return [(start, start + length, self._number)] if length else []

    def _checked(self, matched: str) -> int:
        """How many of the matched characters are a real match."""
        rule = self._rule
        if rule.check is None:
            return len(matched)
        try:
            length = rule.check(matched)
        except Exception as error:
            msg = f"check raised {type(error).__name__}"  # not its words: they may quote the text
            raise RuleError(msg, rule=rule.name) from error
        if type(length) is not int or not 0 <= length <= len(matched):
            given = length if isinstance(length, int | None) else f"a {type(length).__name__}"
            msg = (
                f"check returned {given} for {len(matched)} characters; it has to return how many "
                "of them are a match, 0 for none"
            )
            raise RuleError(msg, rule=rule.name)
        return length

    def _check_limit(self, at: int) -> None:
        if self.starts and at - self.starts[0] > self._rule.max_match:
            msg = (
                f"a match is still undecided after {self._rule.max_match} characters; bound the "
                "pattern's repeats, or give a larger max_match"
            )
            raise MatchLimitError(msg, rule=self._rule.name)


class Matcher:
    """Finds what rules match in one text that arrives in pieces.

    However the text is cut, the same regions are found, and the parts add up to the text. What may
    still become part of a match is held, nothing else.

    For each rule by itself, matches are those of `re.finditer`, unless its `check` refuses or
    shortens one: the next is then looked for one character behind its beginning, or behind what is
    left of it. Matches of several rules that overlap become one region.

    >>> matcher = Matcher([Rule("digits", "[0-9]+")])
    >>> matcher.feed("call 55"), matcher.held
    (['call '], 2)
    >>> [part if isinstance(part, str) else part.text for part in matcher.feed("5 now")]
    ['555', ' now']
    >>> matcher.finish()
    []
    """

    __slots__ = (
        "_base",
        "_cursors",
        "_failure",
        "_finished",
        "_kept",
        "_program",
        "_rules",
        "_spans",
        "_state",
    )

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Stand before the text.

        Raises:
            ConfigurationError: there is no rule.
        """
        if not rules:
            raise ConfigurationError("Matcher: rules is empty; give at least one Rule")
        self._rules = tuple(rules)
        keys = tuple((rule.pattern, int(rule.flags), rule.max_match) for rule in rules)
        self._program = program(keys)
        self._state: JointState | None = self._program.start()  # None: the cursors read
        self._cursors: list[_Cursor] = []  # made when there is something to read for them
        self._base = 0  # where what is kept begins in the text
        self._kept = ""
        self._spans: list[_Span] = []  # known matches in or behind what is kept
        self._failure: BaseException | None = None

    @property
    def held(self) -> int:
        """How many characters were fed, but have not left yet."""
        return len(self._kept)

    def feed(self, text: str) -> list[str | Region]:
        """Take the next piece; returns what is known now, none of it empty.

        Raises:
            MatchLimitError: a match is undecided after as many characters as its rule allows.
            RuleError: a rule's check raised, or returned what is no length.
            RunStateError: the text is finished.

        Once it raised, it raises the same again: nothing that it held can leave.
        """
        quick = self.quick(text)
        if quick is None:
            return self._feed(text)
        return [quick] if quick else []

    def finish(self) -> list[str | Region]:
        """End the text; returns the rest.

        Raises:
            MatchLimitError, RuleError, RunStateError: as `feed`.
        """
        if self._failure is not None:
            raise self._failure
        if self._state is not None and not self._kept:  # nothing that could end here
            self.close(RunStateError(_FINISHED))
            return []
        return self._read("", is_end=True)

    def quick(self, text: str) -> str | None:
        """What may leave, if no rule matches in it; else None, and nothing has happened."""
        state = self._state
        if state is None:
            return None
        for char in text:
            state = state[char]
        held = state.held
        if held == LOST:
            return None
        self._state = state
        if self._kept:
            text = self._kept + text
        if held:
            leaving = len(text) - held
            self._kept = text[leaving:]
            text = text[:leaving]
        else:
            self._kept = ""
        self._base += len(text)
        return text

    def _feed(self, text: str) -> list[str | Region]:
        """Take the next piece, of which `quick` made nothing."""
        if self._failure is not None:
            raise self._failure
        parts: list[str | Region] = []
        for begin in range(0, len(text), PIECE):
            piece = text[begin : begin + PIECE]
            quick = self.quick(piece)
            if quick is None:
                parts += self._read(piece)
            elif quick:
                parts.append(quick)
        return parts

    def _read(self, text: str, *, is_end: bool = False) -> list[str | Region]:
        """Take the next piece rule by rule."""
        base = self._base
        if not self._cursors:
            numbered = enumerate(zip(self._rules, self._program.automata, strict=True))
            self._cursors = [_Cursor(number, rule, one) for number, (rule, one) in numbered]
        if self._state is not None:
            at = base + len(self._kept)
            for cursor, (state, ages) in zip(self._cursors, self._state.parts, strict=True):
                cursor.resume(state, ages, at)
            self._state = None
        text = self._kept + text
        try:
            for cursor in self._cursors:
                self._spans += cursor.finish(text, base) if is_end else cursor.read(text, base)
        except BaseException as error:
            self.close(error)
            raise
        frontier = min(cursor.frontier for cursor in self._cursors)
        parts = self._leave(text, base + len(text) if is_end else frontier)
        if is_end:
            self.close(RunStateError(_FINISHED))
        elif not self._spans:
            self._state = self._program.join(
                [(cursor.state, cursor.ages()) for cursor in self._cursors]
            )
        return parts

    def _leave(self, text: str, frontier: int) -> list[str | Region]:
        """Take from the text what is certain, all matches before the frontier being known."""
        base = left = self._base
        spans = sorted(self._spans)
        parts: list[str | Region] = []
        while spans and spans[0][0] < frontier:
            start, stop, _ = spans[0]
            count = 1
            while count < len(spans) and spans[count][0] < stop:
                stop = max(stop, spans[count][1])
                count += 1
            if stop > frontier:  # a match that is not known yet may overlap it
                frontier = start
                break
            longest = min(spans[:count], key=_by_length)
            if left < start:
                parts.append(text[left - base : start - base])
            parts.append(Region(self._rules[longest[2]], start, text[start - base : stop - base]))
            left = stop
            del spans[:count]
        if left < frontier:
            parts.append(text[left - base : frontier - base])
        self._spans = spans
        self._kept = text[frontier - base :]
        self._base = frontier
        return parts

    def close(self, error: BaseException) -> None:
        """Raise this from now on; what is held stays."""
        self._failure = error
        self._state = None


def _by_length(span: _Span) -> tuple[int, int]:
    """The longest first; of several, that of the first rule."""
    start, stop, number = span
    return start - stop, number
