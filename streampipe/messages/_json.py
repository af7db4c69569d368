"""Values of any kind as JSON, the same wherever they are sent, counted or looked at.

What JSON has no form for is written as its string. Half a character, which UTF-8 has no form for,
is joined to its other half, or replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

__all__ = ["all_whole", "json_text", "jsonable", "shown_text", "whole"]


def shown_text(value: Any) -> str:
    """A value as a model is shown it: a string as it is, anything else as JSON text."""
    return value if isinstance(value, str) else json_text(value)


def json_text(value: Any) -> str:
    """A value of any kind as JSON text: what JSON has no form for is written as its string."""
    try:
        return to_json(value, fallback=str, bytes_mode="base64", inf_nan_mode="strings").decode()
    except PydanticSerializationError:  # half a character, it may be, which UTF-8 has no form for
        return to_json(jsonable(value), inf_nan_mode="strings").decode()


def jsonable(value: Any) -> Any:
    """A value of any kind as JSON has it: what it has no form for, as its string."""
    try:
        made = to_jsonable_python(value, fallback=str, bytes_mode="base64", inf_nan_mode="strings")
    except (UnicodeEncodeError, PydanticSerializationError):  # in the name of a field
        made = to_jsonable_python(
            all_whole(value), fallback=str, bytes_mode="base64", inf_nan_mode="strings"
        )
    return all_whole(made)


def whole(text: str) -> str:
    r"""A text whose halves are joined to characters; one that stands alone is replaced.

    >>> whole("\ud83d\ude00") == "\U0001f600"
    True
    >>> whole("a\ud83d") == "a\ufffd"
    True
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def all_whole(value: Any) -> Any:
    """JSON values whose texts are whole, names of fields too."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, Mapping):
        return {all_whole(name): all_whole(inner) for name, inner in value.items()}
    if isinstance(value, tuple):  # it may be the name of a field
        return tuple(all_whole(inner) for inner in value)
    return [all_whole(inner) for inner in value] if isinstance(value, list) else value
