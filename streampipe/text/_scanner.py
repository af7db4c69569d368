"""Replace what rules match in a text while it arrives."""

from __future__ import annotations

from collections.abc import Sequence

from streampipe.text._matcher import Matcher, Region
from streampipe.text._rule import Rule, RuleError

__all__ = ["Scanner", "redacted"]


class Scanner:
    """Redacts one text that arrives in pieces.

    However the text is cut, the output is that of `redacted` on the whole of it.

    >>> scanner = Scanner([Rule("digits", "[0-9]+", "#")])
    >>> scanner.feed("call 55"), scanner.held
    ('call ', 2)
    >>> scanner.feed("5 now") + scanner.finish()
    '# now'
    """

    __slots__ = ("_matcher", "_quick")

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Stand before the text.

        Raises:
            ConfigurationError: there is no rule.
        """
        self._matcher = Matcher(rules)
        self._quick = self._matcher.quick

    @property
    def held(self) -> int:
        """How many characters were fed, but have not left yet."""
        return self._matcher.held

    def feed(self, text: str) -> str:
        """Take the next piece of the text; returns what may leave now.

        Raises:
            MatchLimitError: a match is undecided after as many characters as its rule allows.
            RuleError: a rule's `check` or `replacement` raised, or returned what it must not.
            RunStateError: the text is finished.

        Once it raised, it raises the same again: nothing that it held can leave.
        """
        quick = self._quick(text)
        if quick is not None:
            return quick
        return self._joined(self._matcher.feed(text))

    def finish(self) -> str:
        """End the text; returns the rest.

        Raises:
            MatchLimitError, RuleError, RunStateError: as `feed`.
        """
        return self._joined(self._matcher.finish())

    def _joined(self, parts: list[str | Region]) -> str:
        return "".join(
            [part if isinstance(part, str) else self._replacement(part) for part in parts]
        )

    def _replacement(self, region: Region) -> str:
        make = region.rule.replacement
        if isinstance(make, str):
            return make
        try:
            text = make(region.text)
        except Exception as error:
            msg = f"replacement raised {type(error).__name__}"  # its words may quote the text
            failure = RuleError(msg, rule=region.rule.name)
            self._matcher.close(failure)
            raise failure from error
        if not isinstance(text, str):
            msg = f"replacement returned a {type(text).__name__}; it has to return a str"
            failure = RuleError(msg, rule=region.rule.name)
            self._matcher.close(failure)
            raise failure
        return text


def redacted(text: str, rules: Sequence[Rule]) -> str:
    """A whole text with everything that the rules match replaced.

    Where matches of several rules overlap, they are replaced once, as the longest of them is.

    Raises:
        ConfigurationError: there is no rule.
        MatchLimitError: a match is undecided after as many characters as its rule allows.
        RuleError: a rule's `check` or `replacement` raised, or returned what it must not.
    """
    scanner = Scanner(rules)
    return scanner.feed(text) + scanner.finish()
