"""What the requests of all protocols do alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from streampipe.contracts import ModelRequest
from streampipe.errors import ConfigurationError
from streampipe.messages import (
    FilePart,
    Part,
    PromptMessage,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from streampipe.messages._json import whole

_ADDRESSES = ("http://", "https://", "gs://", "data:")


def merged(body: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """A body with a caller's options over it: dicts merge, tools are added, the rest replaces."""
    for name, value in options.items():
        there = body.get(name)
        if isinstance(there, dict) and isinstance(value, Mapping):
            body[name] = {**there, **value}
        elif name == "tools" and there and isinstance(value, list | tuple):
            body[name] = [*there, *value]
        else:
            body[name] = value
    return body


def digest_of(text: str) -> str:
    """What a reasoning's text is known by, for the provider that signed it."""
    return blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()


def is_as_signed(part: ReasoningPart, own: Mapping[str, Any], told: list[str]) -> bool:
    """Whether reasoning has the text that was signed; the warning tells if not.

    Args:
        part: the reasoning.
        own: what the decoder noted on it; a `digest` of its text among it.
        told: is given the warning.
    """
    if own.get("digest", digest_of(part.text)) == digest_of(part.text):
        return True
    told.append("reasoning was left out: its text was changed, so its signature holds no more")
    return False


def sendable(prompt: Iterable[PromptMessage], allowed: str) -> list[PromptMessage]:
    """A prompt in whole characters, whose calls have ids that a provider takes, each its own.

    Other providers' ids may be too long, or have characters that this one refuses. A call and its
    result change alike, and in the same way with every request.

    Args:
        prompt: the messages; they stay as they are.
        allowed: matches an id that may stay.
    """
    taken: set[str] = set()
    ids: dict[str, list[str]] = {}  # of calls; those of the newest message with such an id
    made: list[PromptMessage] = []
    for message in prompt:
        newest: dict[str, list[str]] = {}
        content: list[Part] = []
        for part in message.content:
            changed = part
            if isinstance(part, ToolCallPart):
                call_id = _fitting(part.tool_call_id, allowed, taken)
                taken.add(call_id)
                newest.setdefault(part.tool_call_id, []).append(call_id)
                changed = replace(part, tool_call_id=call_id)
            elif isinstance(part, ToolResultPart):
                waiting = ids.get(part.tool_call_id) or newest.get(part.tool_call_id)
                call_id = waiting[0] if waiting else _fitting(part.tool_call_id, allowed, set())
                if waiting and len(waiting) > 1:  # results stand in the order of their calls
                    waiting.pop(0)
                changed = replace(part, tool_call_id=call_id)
            content.append(_in_whole_characters(changed))
        ids |= newest
        made.append(replace(message, content=content))
    return made


def _in_whole_characters(part: Part) -> Part:
    """A part that can be sent: half a character has no form in UTF-8."""
    if isinstance(part, TextPart | ReasoningPart) and whole(part.text) is not part.text:
        return replace(part, text=whole(part.text))
    if isinstance(part, ToolResultPart) and isinstance(part.result, str):
        return replace(part, result=whole(part.result))
    return part


def _fitting(call_id: str, allowed: str, taken: set[str]) -> str:
    fitting, source = call_id, call_id
    while fitting in taken or not re.fullmatch(allowed, fitting):
        fitting = f"c{blake2b(source.encode(errors='replace'), digest_size=4).hexdigest()}"
        source += "+"
    return fitting


def file_as_text(part: ToolResultPart) -> list[str]:
    """The warning for a result with a file in it, where the protocol's results are text."""
    parts = part.result if isinstance(part.result, list | tuple) else ()
    kinds = [value.get("type") for value in parts if isinstance(value, Mapping)]
    if not {"audio", "file", "image"}.intersection(filter(_is_text, kinds)):
        return []
    return [f"a file in the result of {part.tool_name!r} went as JSON text: no place for it here"]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


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


def schema_name(name: str) -> str:
    """A name of a schema as protocols allow it: titles of generic types have brackets."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "answer"


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
