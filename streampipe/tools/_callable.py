"""What a callable tells of itself: its name, its words, its hints, and how it is to be called."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from streampipe.errors import ConfigurationError


def refuse_uncallable(function: Any) -> None:
    """Refuse what has no signature of its own to read.

    Raises:
        ConfigurationError: it is a class, or cannot be called.
    """
    if isinstance(function, type):
        msg = (
            f"the class {function.__name__!r} cannot be a tool; "
            "write a function that makes an instance, or give a callable instance"
        )
        raise ConfigurationError(msg)
    if not callable(function):
        msg = (
            f"{function!r:.80} cannot be a tool, since it cannot be called; "
            "give a function (put @tool below @classmethod, or use tool(obj.method))"
        )
        raise ConfigurationError(msg)


def name_of(function: Any) -> str:
    """The function's own name, or that of a callable object's class.

    Raises:
        ConfigurationError: it is a lambda.
    """
    target = _without_partial(function)
    name = getattr(target, "__name__", None) or type(target).__name__
    if name == "<lambda>":
        msg = "a lambda cannot be a tool: it has no name and no type hints; write a function"
        raise ConfigurationError(msg)
    return str(name)


def docstring_of(function: Any) -> str:
    """The docstring, of `__call__` or else of the class where the function is an object."""
    target = _without_partial(function)
    if inspect.isroutine(target):
        return inspect.getdoc(target) or ""
    own: str | None = type(target).__call__.__doc__
    return own or inspect.getdoc(type(target)) or ""


def parameters_of(function: Any) -> list[inspect.Parameter]:
    """The parameters that are left to fill: what `functools.partial` bound is nobody's business.

    Raises:
        ConfigurationError: it is written in C and does not tell.
    """
    bound: set[str] = set()
    target = function
    while isinstance(target, functools.partial):
        bound |= set(target.keywords)
        target = target.func
    try:
        signature = inspect.signature(function)
    except ValueError as error:
        msg = f"{function!r:.80} does not tell its parameters ({error}); wrap it in a function"
        raise ConfigurationError(msg) from error
    return [p for p in signature.parameters.values() if p.name not in bound]


def hints_of(function: Any) -> dict[str, Any]:
    """The type hints of the parameters.

    Hints that are text, as under `from __future__ import annotations`, may name what is local to
    the functions around this one, for as long as those are running.

    Raises:
        NameError: a hint names what cannot be found.
    """
    target: Any = inspect.unwrap(_routine(function))
    target = getattr(target, "__func__", target)
    hints = dict(getattr(target, "__annotations__", None) or {})
    hints.pop("return", None)  # the model is not told, and it may be there for type checkers only
    return typing.get_type_hints(
        types.SimpleNamespace(__annotations__=hints),
        globalns=getattr(target, "__globals__", {}),
        localns=dict(_enclosing(target)),
        include_extras=True,
    )


def runs_in_loop(function: Any) -> bool:
    """Whether it is async or streams; a decorator's plain wrapper is what it wraps."""
    return any(
        inspect.iscoroutinefunction(layer) or inspect.isasyncgenfunction(layer)
        for layer in _layers(_routine(function))
    )


def is_sync_generator(function: Any) -> bool:
    """Whether it yields without being async."""
    return inspect.isgeneratorfunction(_routine(function))


def _without_partial(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _routine(function: Any) -> Any:
    """The function behind a callable object or a partial."""
    target = _without_partial(function)
    return target if inspect.isroutine(target) else type(target).__call__


def _layers(function: Any) -> Iterator[Any]:
    """The function, and what it wraps, down to the last."""
    while function is not None:
        yield function
        function = getattr(function, "__wrapped__", None)


def _enclosing(function: Any) -> Iterator[tuple[str, Any]]:
    """The locals around a function, the nearest last.

    Its closure holds only what its body uses; what its hints alone use is in the frames of the
    functions that are just defining it.
    """
    around: set[str] = set()
    name: str = getattr(function, "__qualname__", "")
    while ".<locals>." in name:
        name = name.rpartition(".<locals>.")[0]
        around.add(name)
    found: list[Mapping[str, Any]] = []
    frame = inspect.currentframe()
    while frame is not None:
        ours = frame.f_globals is getattr(function, "__globals__", None)
        if ours and frame.f_code.co_qualname in around:
            found.append(frame.f_locals)
        frame = frame.f_back
    for scope in reversed(found):
        yield from scope.items()
    closure: tuple[Any, ...] = getattr(function, "__closure__", None) or ()
    for key, cell in zip(_free_names(function), closure, strict=True):
        try:
            yield key, cell.cell_contents
        except ValueError:  # not assigned yet, such as the name of the function itself
            continue


def _free_names(function: Callable[..., Any]) -> tuple[str, ...]:
    return getattr(getattr(function, "__code__", None), "co_freevars", ())
