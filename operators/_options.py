"""Options of operators: a bad one is refused when the operator is made, by the operator's name."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from streampipe.errors import ConfigurationError

Part = Literal["text", "reasoning"]
"""A kind of part that a text operator may cover."""

BOTH: tuple[Part, ...] = ("text", "reasoning")
"""What guards cover: a secret is one in the model's reasoning too."""

_INNER = re.compile(r"^[A-Z]\w+: ")


@contextmanager
def options_of(name: str) -> Iterator[None]:
    """Within the block, what refuses an option says of which operator it was.

    Yields:
        Nothing.

    Raises:
        ConfigurationError: what is raised within, with the operator's name before it.
    """
    try:
        yield
    except ConfigurationError as error:
        said = _INNER.sub("", str(error))  # the machine's name says nothing to the caller
        msg = f"{name}: {said}"
        raise ConfigurationError(msg) from error


def checked_count(name: str, option: str, value: object, *, least: int = 1) -> int:
    """How many of something an operator was given.

    Raises:
        ConfigurationError: it is no whole number of at least `least`.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        msg = f"{name}: {option} must be a whole number of {least} or more, not {value!r:.80}"
        raise ConfigurationError(msg)
    return value


def checked_seconds(name: str, option: str, value: object, *, zero: bool = False) -> float:
    """A duration that an operator was given; `zero`: whether none at all is one.

    Raises:
        ConfigurationError: it is no number above 0, or not finite.
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        msg = f"{name}: {option} must be a number of seconds, not {type(value).__name__}"
        raise ConfigurationError(msg)
    if not 0 <= value < math.inf or (value == 0 and not zero):
        allowed = "0 s or more" if zero else "above 0 s"
        raise ConfigurationError(f"{name}: {option} must be {allowed} and finite, not {value}")
    return value


def checked_list(name: str, processors: Iterable[Any]) -> list[Any]:
    """The processors that an operator was given.

    Raises:
        ConfigurationError: they are no list nor anything else to go through.
    """
    if not isinstance(processors, Iterable) or isinstance(processors, str):
        msg = f"{name}: takes processors in a list, not {processors!r:.80}"
        raise ConfigurationError(msg)
    return list(processors)
