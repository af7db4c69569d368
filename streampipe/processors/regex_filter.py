"""`RegexFilter`: rules over text, wherever it stands and however it was cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from streampipe import operators as ops
from streampipe.contracts import OnViolation
from streampipe.errors import ConfigurationError
from streampipe.operators import Match
from streampipe.processors._options import Name, checked_options, refuse_if
from streampipe.processors._text_guard import Finding, Note, Place, TextGuard
from streampipe.text import Rule, pii, secrets, urls

__all__ = ["RegexFilter"]

Strategy = Literal["block", "redact", "warn"]
PRESETS = {"pii": pii, "secrets": secrets, "urls": urls}


class RegexFilter(TextGuard):
    r"""Blocks, redacts or reports what rules match.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.testing import ScriptedModel
    >>> guard = RegexFilter(r"ORD-\d+", strategy="redact", replacement="[ORDER]")
    >>> model = ScriptedModel([["It is O", "RD-4", "2."]])
    >>> agent = Agent(id="clerk", model=model, output_processors=[guard])
    >>> asyncio.run(agent.generate("Which order?")).text
    'It is [ORDER].'
    """

    @checked_options
    def __init__(
        self,
        rules: str | Rule | Iterable[str | Rule] = (),
        *,
        presets: str | Iterable[str] = (),
        strategy: Strategy = "block",
        replacement: str | Callable[[str], str] | None = None,
        reason: str | None = None,
        retry: bool = False,
        covers: Iterable[Place] = ("text", "reasoning"),
        show_text: bool = False,
        id: Name = "regex-filter",  # noqa: A002 - the contract's name
        on_violation: OnViolation | None = None,
    ) -> None:
        """Say what to look for, and what to do about it.

        Args:
            rules: patterns and `Rule`s, as `ops.redact` takes them.
            presets: names of rule sets: "pii", "secrets", "urls".
            strategy: "block" ends the run before any of a match has left, "redact" puts the
                replacement in its place, "warn" lets it go and only reports it.
            replacement: of "redact": a text, or a function of the match; without it each rule's
                own.
            reason: of "block": what the client is told; without it, which rule matched.
            retry: of "block": reject the step and ask for another answer.
            covers: where to look: "text", "reasoning", "tool-arguments", "tool-results".
            show_text: whether violations say what was matched.
            id: names the guard.
            on_violation: is told of every match: rule, offset and length in its text.

        Raises:
            ConfigurationError: an option is wrong, or contradicts another.
        """
        super().__init__(id=id, covers=covers, on_violation=on_violation)
        self._rules = [
            *_preset_rules(presets),
            *([rules] if isinstance(rules, str | Rule) else rules),
        ]
        self._strategy = strategy
        self._replacement = replacement
        self._reason = reason
        self._retry = retry
        self._show_text = show_text
        self._check()
        self._operator(("text",), lambda _finding: None)  # a rule that cannot be is refused now

    def _check(self) -> None:
        wrong = {
            "give rules, presets, or both": not self._rules,
            "replacement is for strategy='redact'": (
                self._replacement is not None and self._strategy != "redact"
            ),
            "reason and retry are for strategy='block'": (
                (self._reason is not None or self._retry) and self._strategy != "block"
            ),
        }
        refuse_if("RegexFilter", wrong)

    def _operator(self, parts: tuple[str, ...], note: Note) -> Any:
        rules: Any = self._rules
        where: Any = parts
        if self._strategy == "block":
            return ops.block(rules, reason=self._reason, retry=self._retry, parts=where)

        def on_match(match: Match) -> None:
            told = {"rule": match.rule, "offset": match.offset, "length": match.length}
            detail = {**told, "text": match.text} if self._show_text else told
            note(Finding(f"the text matches rule {match.rule!r}", detail))

        telling = ops.detect(rules, on_match, with_text=self._show_text, parts=where)
        if self._strategy == "warn":
            return telling
        redacting = ops.redact(rules, self._replacement, parts=where)
        return redacting if self.on_violation is None else ops.pipe(telling, redacting)


def _preset_rules(names: str | Iterable[str]) -> list[Rule]:
    """The rules of presets.

    Raises:
        ConfigurationError: there is no such preset.
    """
    rules: list[Rule] = []
    for name in [names] if isinstance(names, str) else names:
        if name not in PRESETS:
            known = ", ".join(PRESETS)
            raise ConfigurationError(f"RegexFilter: presets are {known}; there is no {name!r}")
        rules.extend(PRESETS[name])
    return rules
