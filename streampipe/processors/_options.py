"""Options of processors: a bad one is refused when the processor is made, by its class's name.

What the annotations of an `__init__` say of a value is checked by pydantic, strictly: nothing is
converted. What they cannot say is checked by the processor itself: what is in a list or a dict,
and options that contradict one another.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from functools import cache, wraps
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from streampipe.contracts import Model
from streampipe.errors import ConfigurationError

__all__ = [
    "Amount",
    "AnyModel",
    "Count",
    "Name",
    "Seconds",
    "Share",
    "Text",
    "Wait",
    "Whole",
    "check_value",
    "checked_names",
    "checked_options",
    "refuse_if",
]


def _said(words: str, **limits: Any) -> Any:
    return Field(description=words, **limits)


Count = Annotated[int, _said("a whole number of 1 or more", ge=1)]
Whole = Annotated[int, _said("a whole number of 0 or more", ge=0)]
Wait = Annotated[float, _said("a finite number of seconds, 0 or more", ge=0, allow_inf_nan=False)]
Amount = Annotated[float, _said("a finite number above 0", gt=0, allow_inf_nan=False)]
Seconds = Annotated[float, _said("a finite number of seconds above 0", gt=0, allow_inf_nan=False)]
Share = Annotated[float, _said("a number above 0 and at most 1", gt=0, le=1)]
Name = Annotated[str, _said("a name", min_length=1)]
Text = Annotated[str, _said("a text that is not empty", pattern=r"\S")]
AnyModel = Annotated[Model | str, _said("a model or a router id")]

P = ParamSpec("P")
S = TypeVar("S")


def checked_options(
    init: Callable[Concatenate[S, P], None],
) -> Callable[Concatenate[S, P], None]:
    """An `__init__` whose arguments are held against its annotations before it runs.

    Args:
        init: the method; its annotations, and those of a `TypedDict` of further options, are looked
            at when it is first called.

    Returns:
        The same, with the same signature. It raises `ConfigurationError` with the class, the option
        and what that must be.
    """
    signature = inspect.signature(init)

    @cache
    def hints() -> dict[str, Any]:
        return _hints(init)

    @wraps(init)
    def checked(self: S, /, *args: P.args, **kwargs: P.kwargs) -> None:
        owner = type(self).__name__
        try:
            given = signature.bind_partial(self, *args, **kwargs).arguments
            for name, value in _by_name(given, signature).items():
                if name in hints():
                    check_value(f"{owner}: {name}", value, hints()[name])
                elif name in kwargs:
                    raise TypeError(f"got an unexpected keyword argument {name!r}")
            signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise ConfigurationError(f"{owner}: {error}{_meant(kwargs, hints())}") from None
        init(self, *args, **kwargs)

    return checked


def _by_name(given: Mapping[str, Any], signature: inspect.Signature) -> dict[str, Any]:
    """Arguments by name, without those in a row."""
    made: dict[str, Any] = {}
    for name, value in given.items():
        match signature.parameters[name].kind:
            case inspect.Parameter.VAR_KEYWORD:
                made |= value
            case inspect.Parameter.VAR_POSITIONAL:
                pass
            case _:
                made[name] = value
    return made


def _meant(given: Iterable[str], known: Iterable[str]) -> str:
    """The option that the first unknown name was perhaps meant to be."""
    options = list(known)
    unknown = next((name for name in given if name not in options), "")
    close = get_close_matches(unknown, options, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _hints(init: Callable[..., None]) -> dict[str, Any]:
    """The types of the arguments, also of those in a `TypedDict`."""
    hints: dict[str, Any] = {}
    for name, hint in get_type_hints(init, include_extras=True).items():
        if get_origin(hint) is Unpack:
            (options,) = get_args(hint)
            hints |= get_type_hints(options, include_extras=True)
        elif name != "return":
            hints[name] = hint
    return hints


def check_value(option: str, value: object, hint: Any) -> None:
    """Refuse a value that is not of a type.

    Args:
        option: how it is called, with the class.
        value: what was given.
        hint: the type; of a list or a dict only that it is one.

    Raises:
        ConfigurationError: it is not; the message says what it must be.
    """
    adapter, words = _known(hint)
    try:
        adapter.validate_python(value)
    except ValidationError:
        raise ConfigurationError(f"{option} must be {words}, not {value!r:.80}") from None


@cache
def _known(hint: Any) -> tuple[TypeAdapter[Any], str]:
    config = ConfigDict(strict=True, arbitrary_types_allowed=True)
    return TypeAdapter(_outermost(hint), config=config), _words(hint)


def _outermost(hint: Any) -> Any:
    """A type without those of the elements within, which the processor looks at itself."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return Union[tuple(map(_outermost, inner))]  # noqa: UP007 - of types that are made here
    if origin is Annotated:
        base, *limits = inner
        return Annotated[(_outermost(base), *limits)]
    return hint if origin in (None, Literal) else origin


_WORDS: dict[Any, str] = {
    bool: "True or False",
    str: "a text",
    bytes: "bytes",
    int: "a whole number",
    float: "a number",
    Callable: "a function",
    Mapping: "a dict",
    re.Pattern: "a compiled pattern",
}


def _words(hint: Any) -> str:
    """What a value of this type is called."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        told = [each.description for each in inner if isinstance(each, FieldInfo)]
        return next(filter(None, told), None) or _words(inner[0])
    if origin in (Union, UnionType):
        *others, last = dict.fromkeys(_words(each) for each in inner if each is not NoneType)
        return f"{', '.join(others)} or {last}" if others else last
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    kind = origin or hint
    if kind in _WORDS:
        return _WORDS[kind]
    if isinstance(kind, type) and issubclass(kind, Iterable):
        return "a list"
    return f"a {getattr(kind, '__name__', kind)}"


def checked_names(owner: str, option: str, value: object) -> tuple[str, ...]:
    """The names that a processor was given, in their order; one may be given without a list.

    Raises:
        ConfigurationError: it is no list, tuple or set of strings, or one of them is empty.
    """
    given: Any = [value] if isinstance(value, str) else value
    if isinstance(given, Collection) and not isinstance(given, bytes):
        names = [name for name in given if isinstance(name, str) and name]
        if len(names) == len(given):
            return tuple(dict.fromkeys(names))
    msg = f"{owner}: {option} must be a list of names, not {value!r:.80}"
    raise ConfigurationError(msg)


def refuse_if(owner: str, problems: Mapping[str, bool]) -> None:
    """Refuse options that contradict one another.

    Raises:
        ConfigurationError: one of the problems is there.
    """
    for problem, is_so in problems.items():
        if is_so:
            raise ConfigurationError(f"{owner}: {problem}")
