"""`@operator`: a plain function from a source and options becomes an operator for `pipe()`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from reactivex import Observable

from streampipe.operators._core import Emit, Flowable

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

Op = Callable[[Observable[A]], Observable[B]]
"""An operator: from a stream of one type to a stream of another."""

Options = tuple[tuple[Any, ...], dict[str, Any]]

WIDEST = 40  # characters of an option in a repr

REGISTRY: dict[str, Callable[..., Any]] = {}
"""Every operator of this package by name."""


async def _nothing(emit: Emit[Any]) -> None:
    """Emit nothing."""


HOLE: Flowable[Any] = Flowable(_nothing)
"""What an operator is tried on when it is configured: where its source will be."""


class Configured:
    """An operator with its options: takes an observable, gives an observable.

    It is applied once to a stand-in as soon as it is made, so a wrong option is reported where it
    was written, and what is known of the operator is known before it runs.

    Attributes:
        name: the operator's name.
        stages: its synchronous stages, if it consists of nothing else, else None.
        flows: whether it keeps back-pressure and the order of what it does not touch.
    """

    def __init__(self, function: Callable[..., Observable[Any]], options: Options) -> None:
        """Try `function` with these options.

        Raises:
            ConfigurationError: an option is wrong.
        """
        self._args, self._kwargs = options
        tried = function(HOLE, *self._args, **self._kwargs)
        self.__name__ = self.name = function.__name__
        self.__doc__ = function.__doc__
        self._function = function
        self.flows = isinstance(tried, Flowable)
        whole = getattr(tried, "source", None) is HOLE
        self.stages: tuple[Any, ...] | None = getattr(tried, "stages", None) if whole else None

    def __call__(self, source: Observable[Any]) -> Observable[Any]:
        """The operator behind `source`."""
        if self.stages is None:
            made = self._function(source, *self._args, **self._kwargs)
            if made is not source:
                made.upstream = (self, source)  # type: ignore[attr-defined]  # for `explain`
            return made
        for stage in self.stages:
            source = stage.behind(source)
        return source

    def __repr__(self) -> str:
        """As it is written: `take_while(<lambda>, inclusive=True)`."""
        options = [shown(value) for value in self._args]
        options += [f"{key}={shown(value)}" for key, value in self._kwargs.items()]
        return f"{self.name}({', '.join(options)})"


def shown(value: object) -> str:
    """An option in few characters: what has a name is shown by it."""
    name = getattr(value, "__name__" if callable(value) else "name", None)
    if isinstance(value, tuple):
        text = f"({', '.join(map(shown, value))})"
    else:
        text = str(name) if name is not None else repr(value)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 3]}..."


def operator(
    function: Callable[Concatenate[Observable[T], P], Observable[R]],
) -> Callable[P, Callable[[Observable[T]], Observable[R]]]:
    """Make `f(source, *options)` an operator: `f(*options)(source)`, for use in `pipe()`."""

    @functools.wraps(function)
    def configured(*args: P.args, **kwargs: P.kwargs) -> Callable[[Observable[T]], Observable[R]]:
        return Configured(function, (args, kwargs))

    REGISTRY[function.__name__] = configured
    return configured
