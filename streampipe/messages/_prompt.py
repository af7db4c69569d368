"""The provider-neutral prompt: what a model is given, whoever runs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from streampipe.errors import WireError
from streampipe.messages._parts import (
    FilePart,
    Message,
    Part,
    ReasoningPart,
    Role,
    StepStartPart,
    TextPart,
    ToolInvocationPart,
)
from streampipe.messages._stored import ROLES, part_from


@dataclass(slots=True)
class ToolCallPart(Part):
    """A tool call that the assistant made."""

    tool_call_id: str = ""
    tool_name: str = ""
    args: Any = None
    provider_executed: bool | None = None
    provider_metadata: dict[str, Any] | None = None
    type: str = field(default="tool-call", kw_only=True)


@dataclass(slots=True)
class ToolResultPart(Part):
    """What a tool call gave; with `is_error`, `result` says what went wrong."""

    tool_call_id: str = ""
    tool_name: str = ""
    result: Any = None
    is_error: bool = False
    type: str = field(default="tool-result", kw_only=True)


@dataclass(slots=True)
class PromptMessage:
    """A message of the prompt: role and parts, nothing of storage.

    >>> PromptMessage.system("Be brief.").text
    'Be brief.'
    """

    role: Role
    content: list[Part] = field(default_factory=list[Part])

    @property
    def text(self) -> str:
        """The text parts, joined with nothing between."""
        return "".join(part.text for part in self.content if isinstance(part, TextPart))

    @classmethod
    def system(cls, text: str) -> PromptMessage:
        """A system message."""
        return cls("system", [TextPart(text)])


_PROMPT_PARTS: dict[str, type[Part]] = {"tool-call": ToolCallPart, "tool-result": ToolResultPart}


def prompt_message_from(obj: Any) -> PromptMessage:
    """Read a prompt message: a `PromptMessage`, a string (a system message) or a dict.

    Raises:
        WireError: `obj` is none of these, or has an unknown key; the message names it.
    """
    if isinstance(obj, PromptMessage):
        return obj
    if isinstance(obj, str):
        return PromptMessage.system(obj)
    if isinstance(obj, Message):
        return PromptMessage(obj.role, list(obj.parts))
    if not isinstance(obj, Mapping):
        msg = f"a prompt message is a PromptMessage, a string or an object, not {obj!r:.80}"
        raise WireError(msg)
    for key in obj:
        if key not in ("role", "content"):
            msg = f"prompt message: unknown key {key!r}; known: role, content"
            raise WireError(msg)
    if obj.get("role") not in ROLES:
        msg = f"prompt message: 'role' must be one of {', '.join(ROLES)}, not {obj.get('role')!r}"
        raise WireError(msg)
    content = obj.get("content") or []
    if isinstance(content, str):
        return PromptMessage(obj["role"], [TextPart(content)])
    if not isinstance(content, list | tuple):
        msg = f"prompt message: 'content' must be a string or a list of parts, not {content!r:.80}"
        raise WireError(msg)
    return PromptMessage(obj["role"], [_prompt_part(part) for part in content])


def _prompt_part(obj: Any) -> Part:
    cls = _PROMPT_PARTS.get(obj.get("type", "")) if isinstance(obj, Mapping) else None
    if cls is None:
        return part_from(obj, strict=True)
    known = {f.name for f in fields(cls)}
    for key in obj:
        if key not in known:
            msg = f"part {obj['type']!r}: unknown key {key!r}; known: {', '.join(sorted(known))}"
            raise WireError(msg)
    return cls(**obj)


def to_prompt(messages: Iterable[Message]) -> list[PromptMessage]:
    """Messages as a prompt.

    A tool invocation becomes the assistant's call and, from a message of role `tool`, its result.
    Parts are copies, so that rewriting a prompt leaves the conversation as it is. Sources, data
    and unknown parts are no part of a prompt.
    """
    out: list[PromptMessage] = []
    for message in messages:
        if message.role == "assistant":
            _assistant(message, out)
        else:
            parts = [p for p in (_shown(part) for part in message.parts) if p is not None]
            if parts:
                out.append(PromptMessage(message.role, parts))
    return out


def _assistant(message: Message, out: list[PromptMessage]) -> None:
    """Each step of the message: what the assistant said and called, then what the tools gave."""
    said: list[Part] = []
    given: list[Part] = []

    def flush() -> None:
        if said:
            out.append(PromptMessage("assistant", said.copy()))
        if given:
            out.append(PromptMessage("tool", given.copy()))
        said.clear()
        given.clear()

    for part in message.parts:
        if isinstance(part, StepStartPart):
            flush()
        elif isinstance(part, ToolInvocationPart):
            said.append(
                ToolCallPart(
                    part.tool_call_id,
                    part.tool_name,
                    part.args,
                    part.provider_executed,
                    part.provider_metadata,
                ),
            )
            if part.state == "result":
                given.append(
                    ToolResultPart(part.tool_call_id, part.tool_name, part.result, part.is_error),
                )
        else:
            shown = _shown(part)
            if shown is not None:
                if given:  # text after a result: a step without its marker
                    flush()
                said.append(shown)
    flush()


def _shown(part: Part) -> Part | None:
    if isinstance(part, TextPart):
        return replace(part) if part.text else None
    return replace(part) if isinstance(part, ReasoningPart | FilePart) else None
