"""Operators that look for rules in a text, right wherever the text was cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from dataclasses import replace as copied
from typing import Any

from reactivex import Observable

from streampipe.abort import TripWire
from streampipe.chunks import Chunk
from streampipe.errors import ConfigurationError
from streampipe.operators._core import Escape
from streampipe.operators._functions import check_function
from streampipe.operators._fuse import Stage, fuse
from streampipe.operators._operator import operator
from streampipe.operators._options import BOTH, Part, options_of
from streampipe.operators._text import text_stage
from streampipe.text import Matcher, Region, Rule, Scanner

Rules = str | Rule | Iterable[str | Rule]
"""A regular expression, a `Rule`, or several of these, such as a preset of `streampipe.text`."""

PRESETS = frozenset({"pii", "secrets", "urls"})
REDACTED = "[REDACTED]"


def rules_of(name: str, rules: Rules, replacement: Any = None) -> tuple[Rule, ...]:
    """Rules as they may be given.

    Raises:
        ConfigurationError: there is none, one is of another type, or a pattern cannot be matched
            exactly; the message names the rule.
    """
    if not isinstance(rules, str | Rule | Iterable):
        msg = f"{name}: takes patterns and rules, not {rules!r:.80}"
        raise ConfigurationError(msg)
    given: tuple[Any, ...] = (rules,) if isinstance(rules, str | Rule) else tuple(rules)
    made: list[Rule] = []
    for number, rule in enumerate(given, 1):
        if isinstance(rule, str) and rule in PRESETS:
            msg = (
                f"{name}: {rule!r} is the name of a preset, not a pattern: "
                f"'from streampipe.text import {rule}' and give {rule} (for the word: '(?:{rule})')"
            )
            raise ConfigurationError(msg)
        if isinstance(rule, str):
            shown = REDACTED if replacement is None else replacement
            with options_of(name):
                made.append(Rule(f"pattern {number}", rule, shown))
        elif isinstance(rule, Rule):
            with options_of(name):
                made.append(rule if replacement is None else copied(rule, replacement=replacement))
        else:
            msg = f"{name}: takes patterns and rules, not {rule!r:.80}"
            raise ConfigurationError(msg)
    if not made:
        msg = f"{name}: takes at least one rule"
        raise ConfigurationError(msg)
    return tuple(made)


@operator
def redact(
    source: Observable[Chunk],
    rules: Rules,
    replacement: str | Callable[[str], str] | None = None,
    *,
    parts: Iterable[Part] = BOTH,
) -> Observable[Chunk]:
    r"""Replace what rules match, before any of it has left.

    The joined output is the redacted whole text, for every way in which the text may have been cut;
    held is only what a rule may still match. Tool arguments and results are not covered.

    >>> from streampipe import Agent, operators as ops
    >>> keys = ops.redact(r"sk-[A-Za-z0-9]{20,}", "[KEY]")

    Args:
        source: a stream of chunks.
        rules: a pattern, a `Rule`, or several; presets are in `streampipe.text`: `pii`, `secrets`,
            `urls`.
        replacement: put in place of every match; without it each rule's own, `[REDACTED]` for a
            pattern.
        parts: which parts are covered: "text", "reasoning".

    Returns:
        The chunks. It fails with `OperatorError` when a match grows past its rule's `max_match`, or
        a rule's own function raises; nothing held leaves then.

    Raises:
        ConfigurationError: a rule cannot be matched exactly, or `parts` is not known.
    """
    made = rules_of("redact", rules, replacement)
    return fuse(source, text_stage("redact", lambda _: Scanner(made), parts))


@operator
def replace(
    source: Observable[Chunk],
    pattern: str,
    replacement: str | Callable[[str], str],
    *,
    flags: int = 0,
    max_match: int = 4096,
    parts: Iterable[Part] = ("text",),
) -> Observable[Chunk]:
    """Replace what a pattern matches, wherever the text was cut.

    Args:
        source: a stream of chunks.
        pattern: a regular expression, within what `Rule` accepts.
        replacement: a text, taken as it is, or a function of the matched text.
        flags: of `re`: IGNORECASE, ASCII, DOTALL, MULTILINE.
        max_match: characters; a match that is still undecided then fails the stream.
        parts: which parts are covered: "text", "reasoning".

    Returns:
        The chunks. It fails as `redact` does.

    Raises:
        ConfigurationError: as `redact`.
    """
    with options_of("replace"):
        rule = Rule("pattern", pattern, replacement, None, flags, max_match)
    return fuse(source, text_stage("replace", lambda _: Scanner([rule]), parts))


class _Blocking:
    """Lets text go up to the first match, and nothing behind it."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = rules
        self._matcher = Matcher(rules)
        self._fed = 0
        self._begin = 0  # where in the text the matcher began
        self.found: Region | None = None

    @property
    def held(self) -> int:
        return self._matcher.held

    @property
    def offset(self) -> int:
        """Where in the text the match begins."""
        return self._begin + (self.found.start if self.found is not None else 0)

    def feed(self, piece: str) -> str:
        if self.found is not None:
            return ""
        self._fed += len(piece)
        quick = self._matcher.quick(piece)
        return self._before(self._matcher.feed(piece)) if quick is None else quick

    def finish(self) -> str:
        if self.found is not None:
            return ""
        before = self._before(self._matcher.finish())
        if self.found is None:
            self._matcher = Matcher(self._rules)
            self._begin = self._fed
        return before

    def _before(self, parts: list[str | Region]) -> str:
        before: list[str] = []
        for part in parts:
            if isinstance(part, Region):
                self.found = part
                break
            before.append(part)
        return "".join(before)


@operator
def block(
    source: Observable[Chunk],
    rules: Rules,
    *,
    reason: str | None = None,
    retry: bool = False,
    parts: Iterable[Part] = BOTH,
) -> Observable[Chunk]:
    """Stop the stream at the first match of a rule, before any part of the match has left.

    Args:
        source: a stream of chunks.
        rules: as for `redact`; a `Rule` has a name, a pattern is called by its number.
        reason: what the client is told; without it, which rule matched.
        retry: in a run, reject the step and ask for another attempt.
        parts: which parts are covered: "text", "reasoning".

    Returns:
        The chunks before the match. It fails with `TripWire` at a match (a `BaseException`: write
        `except TripWire`), with the rule and the offset in its metadata, never the text;
        with `OperatorError` as `redact` does.

    Raises:
        ConfigurationError: as `redact`.
    """
    made = rules_of("block", rules)

    def ending(machine: _Blocking, stage: Stage) -> Escape | None:
        found = machine.found
        if found is None:
            return None
        metadata = {"rule": found.rule.name, "offset": machine.offset, "length": len(found.text)}
        why = reason if reason is not None else f"the text matches rule {found.rule.name!r}"
        wire = TripWire(why, retry=retry, metadata=metadata, processor_id="block")
        return Escape(wire, stage.token)

    return fuse(source, text_stage("block", lambda _: _Blocking(made), parts, ending, lasting=True))


@dataclass(frozen=True, slots=True)
class Match:
    """Where a rule matched.

    Attributes:
        rule: the rule's name.
        offset: where the match begins, in characters from the beginning of its text part.
        length: its length in characters.
        text: the match itself, only if it was asked for.
    """

    rule: str
    offset: int
    length: int
    text: str | None = None


class _Detecting:
    """Lets everything go, and reports matches as soon as they are certain."""

    held = 0

    def __init__(self, rules: tuple[Rule, ...], report: Callable[[Region], object]) -> None:
        self._matcher = Matcher(rules)
        self._report = report

    def feed(self, piece: str) -> str:
        if self._matcher.quick(piece) is None:
            self._told(self._matcher.feed(piece))
        return piece

    def finish(self) -> str:
        self._told(self._matcher.finish())
        return ""

    def _told(self, parts: list[str | Region]) -> None:
        for part in parts:
            if isinstance(part, Region):
                self._report(part)


@operator
def detect(
    source: Observable[Chunk],
    rules: Rules,
    on_match: Callable[[Match], object],
    *,
    with_text: bool = False,
    parts: Iterable[Part] = BOTH,
) -> Observable[Chunk]:
    """Tell of every match; the text passes as it is and is never held.

    Args:
        source: a stream of chunks.
        rules: as for `redact`.
        on_match: called with a `Match` as soon as it is certain, so after text of it has left.
        with_text: whether the match is told with its text.
        parts: which parts are covered: "text", "reasoning".

    Returns:
        The same chunks. It fails with `OperatorError` when `on_match` raises, and as `redact` does.

    Raises:
        ConfigurationError: as `redact`; or `on_match` is no plain function.
    """
    made = rules_of("detect", rules)
    check_function("detect", "on_match", on_match)

    def report(found: Region) -> None:
        text = found.text if with_text else None
        on_match(Match(found.rule.name, found.start, len(found.text), text))

    return fuse(source, text_stage("detect", lambda _: _Detecting(made, report), parts))
