"""Functions that operators are given: what is none is refused when the operator is made.

What one gives is looked at when it has given it: an `UnfitError` says what it should have been.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterable
from typing import Any

from streampipe.errors import ConfigurationError


class UnfitError(TypeError):
    """A function gave what its operator cannot take; its message quotes neither."""


def check_callable(operator: str, option: str, function: object) -> None:
    """Refuse what an operator could not call.

    Raises:
        ConfigurationError: it is no function, neither a plain nor an async one.
    """
    if not callable(function):
        msg = f"{operator}: {option} must be a function, not {function!r:.80}"
        raise ConfigurationError(msg)


def check_async_function(operator: str, option: str, function: object) -> None:
    """Refuse what an operator could not call and await.

    A plain function passes, since it may hand on something to await: what it gives is looked at
    when it has given it, by `to_await`.

    Raises:
        ConfigurationError: it is no function, or one that yields.
    """
    check_callable(operator, option, function)
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        msg = f"{operator}: {option} yields, so it cannot be awaited; give an async function"
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


def many(given: object, function: str) -> Iterable[Any]:
    """What a function gave for one element, as elements.

    Raises:
        UnfitError: it is no iterable.
    """
    if isinstance(given, Iterable):
        return given
    msg = f"{function} returned {_named(given)}; it has to return an iterable, such as a list"
    raise UnfitError(msg)


def to_await(given: object, function: str, instead: str) -> Awaitable[Any]:
    """What an async function gave when it was called.

    Raises:
        UnfitError: it is nothing to await.
    """
    if isinstance(given, Awaitable):
        return given
    msg = f"{function} returned {_named(given)}, which cannot be awaited; {instead}"
    raise UnfitError(msg)


def _named(given: object) -> str:
    """The kind of what a function gave; a coroutine is closed, since nobody will await it."""
    if inspect.iscoroutine(given):
        given.close()
    return type(given).__name__


def is_true(answer: object) -> bool:
    """What a predicate said.

    An awaitable is true for Python, so a predicate that hands one back would let everything pass.

    Raises:
        UnfitError: it is an awaitable.
    """
    if answer is True or answer is False:
        return answer
    if isinstance(answer, Awaitable):
        msg = f"predicate returned {_named(answer)}; for an async one there is filter_async"
        raise UnfitError(msg)
    return bool(answer)
