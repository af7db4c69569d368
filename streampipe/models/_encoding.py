"""What the requests of all protocols do alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from streampipe.contracts import ModelRequest
from streampipe.errors import ConfigurationError
from streampipe.messages import FilePart, Part
from streampipe.models._surrogates import all_whole

_ADDRESSES = ("http://", "https://", "gs://", "data:")


def json_text(value: Any) -> str:
    """A value of any kind as JSON text: what JSON has no form for is written as its string."""
    try:
        return to_json(value, fallback=str, bytes_mode="base64").decode()
    except PydanticSerializationError:  # half a character, it may be, which UTF-8 has no form for
        return to_json(jsonable(value)).decode()


def jsonable(value: Any) -> Any:
    """A value of any kind as JSON has it: what it has no form for, as its string."""
    try:
        made = to_jsonable_python(value, fallback=str, bytes_mode="base64")
    except UnicodeEncodeError:  # in the name of a field
        made = to_jsonable_python(all_whole(value), fallback=str, bytes_mode="base64")
    return all_whole(made)


def options_of(request: ModelRequest, provider: str) -> dict[str, Any]:
    """The body fields that only this provider knows.

    Raises:
        ConfigurationError: they are no dict.
    """
    options = request.provider_options.get(provider, {})
    if not isinstance(options, Mapping):
        msg = f"provider_options[{provider!r}] must be a dict of body fields, not {options!r:.80}"
        raise ConfigurationError(msg)
    return dict(options)


def chosen_tool(choice: Any) -> str | None:
    """The tool that a tool choice names; None for `"auto"`, `"none"` and `"required"`.

    Raises:
        ConfigurationError: it is no tool choice.
    """
    if choice in ("auto", "none", "required"):
        return None
    if isinstance(choice, Mapping) and isinstance(choice.get("tool_name"), str):
        return str(choice["tool_name"])
    msg = (
        "tool_choice must be 'auto', 'none', 'required' or {'tool_name': name}, "
        f"not {choice!r:.80}"
    )
    raise ConfigurationError(msg)


def own_metadata(part: Any, provider: str) -> dict[str, Any]:
    """What this provider noted on a part when it made it; empty if another one made it."""
    noted = (part.provider_metadata or {}).get(provider)
    return dict(noted) if isinstance(noted, Mapping) else {}


def address_of(part: FilePart) -> str | None:
    """The address of a file; None for one that is given as base64, bare or as a data URL."""
    return part.data if part.data.startswith(_ADDRESSES[:3]) else None


def base64_of(part: FilePart) -> str:
    """The base64 of a file that is given as such."""
    return part.data.partition(",")[2] if part.data.startswith("data:") else part.data


def data_url(part: FilePart) -> str:
    """A file as an address: its own, or a data URL."""
    if part.data.startswith(_ADDRESSES):
        return part.data
    return f"data:{part.mime_type};base64,{part.data}"


def left_out(part: Part, role: str) -> str:
    """The warning for a part that a protocol has no place for."""
    return f"a {part.type!r} part of a {role} message was left out: no part of the protocol"


def unknown_setting(name: str, protocol: str) -> str:
    """The warning for a setting that a protocol does not know."""
    return (
        f"setting {name!r} is no part of the {protocol} protocol and was left out; "
        "provider_options can send it"
    )
