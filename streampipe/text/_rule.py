"""What to look for in a text, and what to put in its place."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from inspect import iscoroutinefunction

from streampipe.errors import ConfigurationError, StreampipeError
from streampipe.text._automaton import automaton
from streampipe.text._pattern import PatternError

__all__ = ["MatchLimitError", "Rule", "RuleError"]

FLAGS = re.IGNORECASE | re.ASCII | re.DOTALL | re.MULTILINE | re.VERBOSE | re.UNICODE


class RuleError(StreampipeError):
    """A rule failed while a text was scanned: no more of that text may leave.

    Attributes:
        rule: name of the rule at fault.
    """

    def __init__(self, message: str, *, rule: str) -> None:
        """Say what went wrong with which rule."""
        super().__init__(f"rule {rule!r}: {message}")
        self.rule = rule


class MatchLimitError(RuleError):
    """A match was still undecided after as many characters as its rule's `max_match` allows."""


@dataclass(frozen=True, slots=True)
class Rule:
    r"""A regular expression to find, and what replaces what it finds.

    Built once, it is vetted: a pattern whose matches cannot be told exactly while the text is still
    arriving is refused.

    >>> Rule("year", r"\b(?:19|20)[0-9]{2}\b", replacement="[YEAR]").name
    'year'

    Attributes:
        name: what errors and findings call it, such as "email".
        pattern: in the syntax of Python's `re`. Not accepted: back-references, conditional groups,
            atomic groups and possessive quantifiers, look-around of more than one character, `$`
            without `re.MULTILINE`, and whatever matches the empty string.
        replacement: the text put in place of a match, as it is (`\1` means nothing); or a function
            that makes it from the matched text.
        check: given the text that the pattern matched, returns how many of its characters,
            counted from its beginning, are a real match: 0 for none. So a checksum is tested.
        flags: of `re`: IGNORECASE, ASCII, DOTALL, MULTILINE and VERBOSE are possible.
        max_match: characters after which a match has to be decided. Past it the scan fails, since
            holding the text for ever is no answer, and neither is letting it go.

    Raises:
        ConfigurationError: `name`, `pattern`, `flags` or `max_match` is not as described.
    """

    name: str
    pattern: str
    replacement: str | Callable[[str], str] = "[REDACTED]"
    check: Callable[[str], int] | None = None
    flags: int = 0
    max_match: int = 4096

    def __post_init__(self) -> None:
        """Refuse what cannot be matched exactly.

        Raises:
            ConfigurationError: see the class.
        """
        if not self.name:
            raise ConfigurationError("Rule: name is empty; errors and findings need one")
        if not isinstance(self.pattern, str):
            msg = f"rule {self.name!r}: the pattern is {self.pattern!r}; give a str"
            raise ConfigurationError(msg)
        if type(self.max_match) is not int or self.max_match < 1:
            msg = f"rule {self.name!r}: max_match is {self.max_match!r}; give 1 or more characters"
            raise ConfigurationError(msg)
        if not isinstance(self.flags, int):
            msg = f"rule {self.name!r}: flags is {self.flags!r}; give flags of re, such as re.I"
            raise ConfigurationError(msg)
        if not isinstance(self.replacement, str):
            _refuse_function(self.name, "replacement", self.replacement, "a str or plain function")
        if self.check is not None:
            _refuse_function(self.name, "check", self.check, "a plain function or None")
        if self.flags & ~FLAGS:
            wrong = re.RegexFlag(self.flags & ~FLAGS)
            msg = (
                f"rule {self.name!r}: {wrong!r} is not possible; flags may be IGNORECASE, ASCII, "
                "DOTALL, MULTILINE and VERBOSE"
            )
            raise ConfigurationError(msg)
        try:
            re.compile(self.pattern, self.flags)
            automaton(self.pattern, int(self.flags))
        except PatternError as error:
            raise ConfigurationError(f"rule {self.name!r}: {error}") from error
        except (re.error, RecursionError, OverflowError, ValueError) as error:
            msg = f"rule {self.name!r}: the pattern does not compile: {error}"
            raise ConfigurationError(msg) from error


def _refuse_function(rule: str, option: str, function: object, allowed: str) -> None:
    """Refuse what a scan could not call, or would have to await.

    Raises:
        ConfigurationError: it is no plain function.
    """
    call = getattr(type(function), "__call__", None)  # noqa: B004 - the method itself is asked
    if not callable(function) or iscoroutinefunction(function) or iscoroutinefunction(call):
        msg = f"rule {rule!r}: {option} is {function!r:.80}; give {allowed}"
        raise ConfigurationError(msg)
