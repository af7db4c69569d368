"""`@operator`: a plain function from a source and options becomes an operator for `pipe()`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from reactivex import Observable

from streampipe.errors import ConfigurationError
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
"""Every operator of this package by name; one of another, whatever its name, is none of these."""


TAKE_STREAMS = frozenset({"fallback"})
PASSING_ON = frozenset({"branch", "fallback", "parallel"})  # what others emit
CHOOSING = frozenset({"filter", "of_type", "take_while", "tap"})  # among what they are given
"""The operators among whose options is a stream."""


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
        keeps: whether elements leave it as what they came in: chunks as chunks.
    """

    def __init__(self, function: Callable[..., Observable[Any]], options: Options) -> None:
        """Try `function` with these options.

        Raises:
            ConfigurationError: an option is wrong.
        """
        self._args, self._kwargs = options
        self.__name__ = self.name = function.__name__
        tried = self._tried(function)
        self.__doc__ = function.__doc__
        self._function = function
        self.flows = isinstance(tried, Flowable)
        self.keeps = _keeps(function)
        whole = getattr(tried, "source", None) is HOLE
        self.stages: tuple[Any, ...] | None = getattr(tried, "stages", None) if whole else None

    def _tried(self, function: Callable[..., Observable[Any]]) -> Observable[Any]:
        """The operator behind the stand-in.

        Raises:
            ConfigurationError: an option is wrong, missing or one too many; or it is the stream:
                whoever leaves the parentheses out, or puts the stream first, hands that over.
        """
        name, args, kwargs = self.name, self._args, self._kwargs
        streams = [v for v in (*args[:1], *kwargs.values()) if isinstance(v, Observable)]
        if streams and name not in TAKE_STREAMS:
            if len(args) + len(kwargs) == 1:
                raise ConfigurationError(_not_called(function))
            msg = f"{name}: the stream is no option: write stream.pipe({_written(function)})"
            raise ConfigurationError(msg)
        try:
            return function(HOLE, *args, **kwargs)
        except TypeError:
            try:
                inspect.signature(function).bind(HOLE, *args, **kwargs)
            except TypeError as error:
                options = inspect.signature(function).parameters.values()
                plain = [str(option.replace(annotation=option.empty)) for option in options]
                msg = f"{name}: {error}; it is ops.{name}({', '.join(plain[1:])})"
                raise ConfigurationError(msg) from error
            raise

    def __call__(self, source: Observable[Any]) -> Observable[Any]:
        """The operator behind `source`.

        Raises:
            ConfigurationError: `source` is no observable.
        """
        if not isinstance(source, Observable):
            msg = f"{self.name}: works on an observable, not on {source!r:.80}"
            raise ConfigurationError(msg)
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
        return f"({_cut(', '.join(map(shown, value)), WIDEST - 2)})"
    return _cut(str(name) if name is not None else repr(value), WIDEST)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def check_called(element: object, where: str) -> None:
    """Refuse an operator without its parentheses: `ops.redact` instead of `ops.redact(...)`.

    Raises:
        ConfigurationError: naming the place.
    """
    name = getattr(element, "__name__", None)
    if isinstance(name, str) and REGISTRY.get(name) is element and callable(element):
        raise ConfigurationError(f"{where}: {_not_called(inspect.unwrap(element))}")


def _not_called(function: Callable[..., Any]) -> str:
    return f"{function.__name__} is not called: write {_written(function)}"


def _written(function: Callable[..., Any]) -> str:
    """An operator as it is written: with dots where it has options beside the source."""
    name = f"ops.{function.__name__}" if _is_ours(function) else function.__name__
    return f"{name}(...)" if len(inspect.signature(function).parameters) > 1 else f"{name}()"


def _is_ours(function: Callable[..., Any]) -> bool:
    return function.__module__.startswith("streampipe.operators.")


def operator(
    function: Callable[Concatenate[Observable[T], P], Observable[R]],
) -> Callable[P, Callable[[Observable[T]], Observable[R]]]:
    """Make `f(source, *options)` an operator: `f(*options)(source)`, for use in `pipe()`."""

    @functools.wraps(function)
    def configured(*args: P.args, **kwargs: P.kwargs) -> Callable[[Observable[T]], Observable[R]]:
        return Configured(function, (args, kwargs))

    configured.__signature__ = _called_as(function)  # type: ignore[attr-defined]  # for `help`
    if _is_ours(function):
        REGISTRY[function.__name__] = configured
    return configured


@functools.cache
def _keeps(function: Callable[..., Any]) -> bool:
    """Whether elements leave an operator as what they came in.

    Its annotation says so, but for overloaded ones, whose own is for all cases; and what passes on
    what others emit is as good as these, whatever it says.
    """
    given = dict(inspect.get_annotations(function))
    made = str(given.pop("return", "")).replace("Flowable", "Observable")
    same = bool(given) and made == str(next(iter(given.values())))
    name = function.__name__
    return name in CHOOSING or (same and "Any" not in made and name not in PASSING_ON)


def _called_as(function: Callable[..., Any]) -> inspect.Signature:
    """The signature without the source, which `pipe` gives."""
    signature = inspect.signature(function)
    _source, *options = signature.parameters.values()
    return signature.replace(parameters=options, return_annotation=inspect.Signature.empty)
