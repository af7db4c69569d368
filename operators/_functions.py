"""Functions that operators are given: what is none is refused when the operator is made."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Any

from streampipe.errors import ConfigurationError


def check_callable(operator: str, option: str, function: object) -> None:
    """Refuse what an operator could not call.

    Raises:
        ConfigurationError: it is no function, neither a plain nor an async one.
    """
    if not callable(function):
        msg = f"{operator}: {option} must be a function, not {function!r:.80}"
        raise ConfigurationError(msg)


def check_function(
    operator: str, option: str, function: object, instead: str = "map_async"
) -> None:
    """Refuse what an operator could not call, or would have to await.

    Raises:
        ConfigurationError: it is no plain function; the message names what there is instead.
    """
    check_callable(operator, option, function)
    call: Any = getattr(type(function), "__call__", None)  # noqa: B004 - the method itself is asked
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
        msg = f"{operator}: {option} must be a plain function; for an async one there is {instead}"
        raise ConfigurationError(msg)


def is_true(answer: object) -> bool:
    """What a predicate said.

    An awaitable is true for Python, so a predicate that hands one back would let everything pass.

    Raises:
        TypeError: it is an awaitable.
    """
    if answer is True or answer is False:
        return answer
    if isinstance(answer, Awaitable):
        if inspect.iscoroutine(answer):
            answer.close()
        msg = "the predicate gave something to await; for an async one there is filter_async"
        raise TypeError(msg)
    return bool(answer)
