"""Messages and their parts.

`type` is a field of the instance here, since processors may relabel a part in place.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from streampipe.chunks import ProviderMetadata

Role = Literal["user", "assistant", "system", "tool"]
ToolState = Literal["partial-call", "call", "result"]


def new_id() -> str:
    """A fresh message id: 96 random bits, as hex."""
    return secrets.token_hex(12)


@dataclass(slots=True)
class Part:
    """What every part has; `extra` keeps stored keys that are not ours."""

    type: str = field(default="", kw_only=True)
    extra: dict[str, Any] | None = field(default=None, kw_only=True)


@dataclass(slots=True)
class TextPart(Part):
    """Text."""

    text: str = ""
    provider_metadata: ProviderMetadata | None = None
    type: str = field(default="text", kw_only=True)


@dataclass(slots=True)
class ReasoningPart(Part):
    """The model's reasoning, with the provider's signature or encrypted form where it gave one."""

    text: str = ""
    signature: str | None = None
    redacted: Any = None
    provider_metadata: ProviderMetadata | None = None
    type: str = field(default="reasoning", kw_only=True)


@dataclass(slots=True)
class FilePart(Part):
    """A file; `data` is base64 or a URL."""

    data: str = ""
    mime_type: str = "application/octet-stream"
    filename: str | None = None
    provider_metadata: ProviderMetadata | None = None
    type: str = field(default="file", kw_only=True)


@dataclass(slots=True)
class ToolInvocationPart(Part):
    """A tool call and, once `state` is `result`, what came of it."""

    tool_call_id: str = ""
    tool_name: str = ""
    args: Any = None
    state: ToolState = "call"
    result: Any = None
    is_error: bool = False
    provider_executed: bool | None = None
    provider_metadata: ProviderMetadata | None = None
    type: str = field(default="tool-invocation", kw_only=True)


@dataclass(slots=True)
class SourcePart(Part):
    """A source that the answer rests on."""

    id: str = ""
    source_type: str = "url"
    title: str = ""
    url: str | None = None
    mime_type: str | None = None
    filename: str | None = None
    provider_metadata: ProviderMetadata | None = None
    type: str = field(default="source", kw_only=True)


@dataclass(slots=True)
class DataPart(Part):
    """A custom part; its type starts with `data-`."""

    data: Any = None
    type: str = field(default="data-", kw_only=True)


@dataclass(slots=True)
class StepStartPart(Part):
    """Where a later step of the same message begins."""

    type: str = field(default="step-start", kw_only=True)


@dataclass(slots=True)
class OtherPart(Part):
    """A stored part of a type unknown here, kept whole."""

    value: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(slots=True)
class Message:
    """A message of the conversation.

    >>> Message.user("hello").text
    'hello'
    """

    role: Role
    parts: list[Part] = field(default_factory=list[Part])
    id: str = field(default_factory=new_id)
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    thread_id: str | None = None
    resource_id: str | None = None
    metadata: dict[str, Any] | None = None
    extra: dict[str, Any] | None = None  # stored keys that are not ours, of the message
    content_extra: dict[str, Any] | None = None  # and of its content

    @property
    def text(self) -> str:
        """The text parts, joined with nothing between."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @classmethod
    def user(cls, text: str) -> Message:
        """A user's message of one text part."""
        return cls("user", [TextPart(text)])

    @classmethod
    def assistant(cls, text: str) -> Message:
        """An assistant's message of one text part."""
        return cls("assistant", [TextPart(text)])
