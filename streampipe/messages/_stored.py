"""The stored JSON form of a message, both ways.

`{"id", "role", "createdAt", "threadId"?, "resourceId"?, "content": {"format": 2, "parts": [...],
"content"?: str, "metadata"?}}`. Keys of others are kept, so that reading and writing loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from streampipe.chunks._codec import camel, codec_of
from streampipe.errors import WireError
from streampipe.messages._parts import (
    DataPart,
    FilePart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    SourcePart,
    StepStartPart,
    TextPart,
    ToolInvocationPart,
    new_id,
)

ROLES = ("user", "assistant", "system", "tool")
_PARTS: dict[str, type[Part]] = {
    "text": TextPart,
    "reasoning": ReasoningPart,
    "file": FilePart,
    "tool-invocation": ToolInvocationPart,
    "source": SourcePart,
    "step-start": StepStartPart,
}
_NAMES = {
    cls: {
        key: f.name
        for f in fields(cls)
        if f.name not in ("type", "extra")
        for key in (f.name, camel(f.name))
    }
    for cls in (*_PARTS.values(), DataPart)
}
# Where the stored form nests a part's fields under a key of its own.
_NESTED = {"tool-invocation": "toolInvocation", "source": "source"}


def part_from(obj: Any, *, strict: bool = False) -> Part:
    """Read a part from its stored form, or from a dict of our own field names.

    Args:
        obj: a `Part`, or a mapping with a `type`.
        strict: refuse unknown keys instead of keeping them in `extra`.

    Raises:
        WireError: `obj` is no part, or `strict` and a key is unknown; the message names the key.
    """
    if isinstance(obj, Part):
        return obj
    if not isinstance(obj, Mapping) or not isinstance(obj.get("type"), str):
        msg = f"a message part is an object with a string 'type', not {obj!r:.80}"
        raise WireError(msg)
    kind: str = obj["type"]
    cls = DataPart if kind.startswith("data-") else _PARTS.get(kind)
    if cls is None:
        return OtherPart(dict(obj), type=kind)
    flat = dict(obj)
    del flat["type"]
    inner = _NESTED.get(kind, "")
    nested = flat.pop(inner, {})
    if not isinstance(nested, Mapping):
        msg = f"part {kind!r}: {inner!r} must be an object, not {nested!r:.80}"
        raise WireError(msg)
    if cls is ReasoningPart:
        _flatten_reasoning(flat)
    values: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    names = _NAMES[cls]
    for place, items in ((None, flat), (inner, nested)):
        for key, item in items.items():
            if key in names:
                values[names[key]] = item
            elif strict:
                known = ", ".join(sorted(set(names.values())))
                msg = f"part {kind!r}: unknown key {key!r}; known: {known}"
                raise WireError(msg)
            elif place is None:
                extra[key] = item
            else:
                extra.setdefault(place, {})[key] = item
    codec_of(cls).check(values, f"part {kind!r}")
    return cls(**values, type=kind, extra=extra or None)


def _flatten_reasoning(flat: dict[str, Any]) -> None:
    """The stored form has the text under `reasoning` and the signature in `details`.

    Several texts with a signature each are one part here; how they were divided is kept.

    Raises:
        WireError: the details are none.
    """
    details = flat.pop("details", None) or []
    text = flat.pop("reasoning", None)
    if not isinstance(details, list) or not all(isinstance(d, Mapping) for d in details):
        msg = f"part 'reasoning': 'details' must be a list of objects, not {details!r:.80}"
        raise WireError(msg)
    texts = [detail.get("text", "") for detail in details if detail.get("type") != "redacted"]
    if not all(isinstance(piece, str) for piece in texts):
        msg = f"part 'reasoning': a text in 'details' must be a string: {details!r:.80}"
        raise WireError(msg)
    for detail in details:
        if detail.get("type") == "redacted":
            flat["redacted"] = detail.get("data")
        elif detail.get("signature") is not None:
            flat["signature"] = detail["signature"]
    if sum(detail.get("signature") is not None for detail in details) > 1:
        flat["details"] = details  # unknown to the part, so it is kept
    if not text and details:
        text = "".join(texts)
    if text is not None:
        flat["text"] = text


def part_to_stored(part: Part) -> dict[str, Any]:
    """The stored form of a part."""
    if isinstance(part, OtherPart):
        return dict(part.value)
    flat = {
        camel(f.name): getattr(part, f.name)
        for f in fields(part)
        if f.name not in ("type", "extra") and getattr(part, f.name) is not None
    }
    if isinstance(part, ToolInvocationPart):
        if not part.is_error:
            del flat["isError"]
        if part.state == "result":
            flat.setdefault("result", None)
    out: dict[str, Any] = {"type": part.type, **(part.extra or {})}
    if isinstance(part, ReasoningPart):
        return out | _nest_reasoning(part, flat)
    nested = _NESTED.get(part.type)
    if nested is None:
        return out | flat
    return out | {nested: flat | out.get(nested, {})}


def _nest_reasoning(part: ReasoningPart, flat: dict[str, Any]) -> dict[str, Any]:
    details: list[dict[str, Any]] = [{"type": "text", "text": part.text}]
    if part.signature is not None:
        details[0]["signature"] = part.signature
    if part.redacted is not None:
        details.append({"type": "redacted", "data": part.redacted})
    kept = (part.extra or {}).get("details")
    if kept and "".join(d.get("text", "") for d in kept) == part.text:
        details = kept  # nobody has changed the text since it was read
    out: dict[str, Any] = {"reasoning": part.text, "details": details}
    if "providerMetadata" in flat:
        out["providerMetadata"] = flat["providerMetadata"]
    return out


def message_to_stored(message: Message) -> dict[str, Any]:
    """The stored form of a message, as JSON-ready values."""
    content: dict[str, Any] = {
        **(message.content_extra or {}),
        "format": 2,
        "parts": [part_to_stored(part) for part in message.parts],
    }
    if message.text:
        content["content"] = message.text
    if message.metadata is not None:
        content["metadata"] = message.metadata
    out: dict[str, Any] = {
        **(message.extra or {}),
        "id": message.id,
        "role": message.role,
        "createdAt": message.created_at.isoformat(),
        "content": content,
    }
    if message.thread_id is not None:
        out["threadId"] = message.thread_id
    if message.resource_id is not None:
        out["resourceId"] = message.resource_id
    return out


_CONTENT_KEYS = ("format", "parts", "content", "metadata")
_MESSAGE_KEYS = {
    "id": "id",
    "role": "role",
    "content": "content",
    "parts": "parts",
    "metadata": "metadata",
    **dict.fromkeys(("createdAt", "created_at"), "created_at"),
    **dict.fromkeys(("threadId", "thread_id"), "thread_id"),
    **dict.fromkeys(("resourceId", "resource_id"), "resource_id"),
}


def message_from(obj: Any, *, strict: bool = False) -> Message:
    """Read a message.

    Args:
        obj: a `Message`; a string (a user's text); a mapping in the stored form, in the chat form
            (`{"role", "content": str}`), or with our own field names (`{"role", "parts"}`).
        strict: refuse unknown keys instead of keeping them.

    Raises:
        WireError: `obj` is no message, or `strict` and a key is unknown; the message names it.
    """
    if isinstance(obj, Message):
        return obj
    if isinstance(obj, str):
        return Message.user(obj)
    if not isinstance(obj, Mapping):
        msg = f"a message is a Message, a string or an object, not {type(obj).__name__}"
        raise WireError(msg)
    values: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, item in obj.items():
        name = _MESSAGE_KEYS.get(key)
        if name is not None:
            values[name] = item
        elif strict:
            known = ", ".join(sorted(set(_MESSAGE_KEYS.values())))
            msg = f"message: unknown key {key!r}; known: {known}"
            raise WireError(msg)
        else:
            extra[key] = item
    if values.get("role") not in ROLES:
        msg = f"message: 'role' must be one of {', '.join(ROLES)}, not {values.get('role')!r}"
        raise WireError(msg)
    content = values.pop("content", None)
    parts = values.pop("parts", None)
    metadata = values.pop("metadata", None)
    inner: dict[str, Any] = {}
    if isinstance(content, Mapping):
        parts = content.get("parts") or content.get("content") or ""
        metadata = content.get("metadata", metadata)
        inner = {key: content[key] for key in content if key not in _CONTENT_KEYS}
        if inner and strict:
            msg = f"message content: unknown key {min(inner)!r}; known: {', '.join(_CONTENT_KEYS)}"
            raise WireError(msg)
    elif parts is None:
        parts = content
    _check_message(values, metadata)
    return Message(
        role=values["role"],
        parts=_parts_from(parts, strict=strict),
        id=values.get("id") or new_id(),
        created_at=_time_from(values.get("created_at")),
        thread_id=values.get("thread_id"),
        resource_id=values.get("resource_id"),
        metadata=metadata,
        extra=extra or None,
        content_extra=inner or None,
    )


def _check_message(values: Mapping[str, Any], metadata: Any) -> None:
    for name in ("id", "thread_id", "resource_id"):
        if not isinstance(values.get(name), str | None):
            msg = f"message: {name!r} must be a string, not {values[name]!r:.80}"
            raise WireError(msg)
    if not isinstance(metadata, Mapping | None):
        msg = f"message: 'metadata' must be an object, not {metadata!r:.80}"
        raise WireError(msg)


def _parts_from(parts: Any, *, strict: bool) -> list[Part]:
    if parts is None:
        return []
    if isinstance(parts, str):
        return [TextPart(parts)] if parts else []
    if not isinstance(parts, Iterable) or isinstance(parts, Mapping):
        msg = (
            f"message: 'content' must be a string, a list of parts or an object, not {parts!r:.80}"
        )
        raise WireError(msg)
    return [part_from(part, strict=strict) for part in parts]


def _time_from(value: Any) -> datetime:
    """A stored time: ISO 8601 text, or milliseconds since 1970."""
    if value is None:
        return datetime.now(UTC)
    if isinstance(value, datetime):
        return value
    msg = f"message: 'createdAt' is no time: {value!r:.80}"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise WireError(msg)
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value)
        return datetime.fromtimestamp(value / 1000, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise WireError(msg) from error
