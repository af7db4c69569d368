"""Slotted dataclasses to wire payloads and back, worked out once a class."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from streampipe.errors import WireError


def camel(name: str) -> str:
    """`snake_case` to `camelCase`.

    >>> camel("tool_call_id")
    'toolCallId'
    """
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


class Codec:
    """The wire fields of one class; fields given by keyword only stand outside the payload."""

    __slots__ = ("_keys", "_names", "_nested", "_required", "_texts", "_types")

    def __init__(self, cls: type) -> None:
        """Read the fields of a dataclass and their types."""
        own = [f for f in fields(cls) if not f.kw_only]
        hints = typing.get_type_hints(cls)
        self._names = {camel(f.name): f.name for f in own}
        self._keys = tuple(self._names.items())
        self._required = [camel(f.name) for f in own if f.default is MISSING]
        self._types = {f.name: _accepted(hints[f.name]) for f in own}
        self._texts = {f.name for f in own if _holds_texts(hints[f.name])}
        self._nested = {
            name: accepted[0]
            for name, accepted in self._types.items()
            if accepted and is_dataclass(accepted[0])
        }

    def encode(self, value: Any) -> dict[str, Any]:
        """The payload; fields that are None are left out."""
        out: dict[str, Any] = {}
        for key, name in self._keys:
            item = getattr(value, name)
            if item is not None:
                nested = self._nested.get(name)
                out[key] = item if nested is None else codec_of(nested).encode(item)
        return out

    def decode(self, payload: Any, where: str) -> dict[str, Any]:
        """The fields by name.

        Raises:
            WireError: a key is unknown or missing, or a value has the wrong type; it is named.
        """
        if not isinstance(payload, Mapping):
            msg = f"{where}: the payload must be an object, not {type(payload).__name__}"
            raise WireError(msg)
        values: dict[str, Any] = {}
        for key, item in payload.items():
            name = self._names.get(key)
            if name is None:
                msg = f"{where}: unknown key {key!r}; known: {', '.join(self._names)}"
                raise WireError(msg)
            if item is not None:
                values[name] = self._value(name, item, f"{where}.{key}")
        for key in self._required:
            if self._names[key] not in values:
                msg = f"{where}: key {key!r} is missing"
                raise WireError(msg)
        return values

    def check(self, values: Mapping[str, Any], where: str) -> None:
        """Refuse field values of a wrong type.

        Raises:
            WireError: naming the field.
        """
        for name, item in values.items():
            if item is not None and name in self._types:
                self._value(name, item, f"{where}.{name}")

    def _value(self, name: str, item: Any, where: str) -> Any:
        nested = self._nested.get(name)
        if nested is not None and isinstance(item, Mapping):
            return nested(**codec_of(nested).decode(item, where))
        accepted = self._types[name]
        # JSON's true and false are no numbers, though Python's are.
        wrong = isinstance(item, bool) and accepted is not None and bool not in accepted
        if accepted is not None and (wrong or not isinstance(item, accepted)):
            msg = f"{where} must be {accepted[0].__name__}, not {item!r:.80}"
            raise WireError(msg)
        if name in self._texts:
            for inner in _members(item):
                if not isinstance(inner, str):
                    msg = f"{where} must hold str only, not {inner!r:.80}"
                    raise WireError(msg)
        return item


_CODECS: dict[Any, Codec] = {}


def codec_of(cls: Any) -> Codec:
    """The codec of a class, made at its first use."""
    codec = _CODECS.get(cls)
    if codec is None:
        codec = _CODECS[cls] = Codec(cls)
    return codec


def _members(value: Any) -> Iterable[Any]:
    """What a list or a dict holds."""
    return value.values() if isinstance(value, Mapping) else value


def _holds_texts(hint: Any) -> bool:
    """Whether a field is a list or a dict of strings."""
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return any(option in (list[str], dict[str, str]) for option in options)


def _accepted(hint: Any) -> tuple[type, ...] | None:
    """The classes whose values a field takes; None takes any JSON value."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(arg for arg in typing.get_args(hint) if arg is not type(None))
    if hint is Any:
        return None
    if typing.get_origin(hint) is typing.Literal:
        return tuple({type(value) for value in typing.get_args(hint)})
    cls = typing.get_origin(hint) or hint
    return (float, int) if cls is float else (cls,)
