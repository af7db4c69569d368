"""Conversations, and what a model was sent of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from streampipe.contracts import ModelRequest
from streampipe.messages import (
    Message,
    Part,
    PromptMessage,
    ReasoningPart,
    StepStartPart,
    TextPart,
    ToolCallPart,
    ToolInvocationPart,
    ToolResultPart,
)


def used(tool: str, call_id: str, result: Any = "found") -> ToolInvocationPart:
    """A call with its result."""
    return ToolInvocationPart(call_id, tool, {"q": call_id}, "result", result)


def answered(*parts: Any) -> Message:
    """An assistant's message; a string is a text part."""
    made: list[Part] = [TextPart(part) if isinstance(part, str) else part for part in parts]
    return Message("assistant", made)


def outline(prompt: list[PromptMessage]) -> list[str]:
    """Role and content of each message, in few words."""
    return [f"{m.role}: {', '.join(map(_shown, m.content))}" for m in prompt]


def sent(request: ModelRequest) -> list[str]:
    """What a model was sent, in few words."""
    return outline(request.prompt)


def _shown(part: Any) -> str:
    match part:
        case TextPart() | ReasoningPart():
            return part.text if isinstance(part, TextPart) else f"({part.text})"
        case ToolCallPart():
            return f"call {part.tool_call_id}"
        case ToolResultPart():
            return f"result {part.tool_call_id}"
        case _:
            return str(part.type)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Some turns, the last of them a user's question; ids of calls are unique."""
    count = 0
    messages: list[Message] = []
    for _ in range(draw(st.integers(0, 4))):
        messages.append(Message.user(draw(st.sampled_from("xyz"))))
        parts: list[Any] = []
        for kind in draw(st.lists(st.sampled_from(["text", "thought", "a", "b", "step"]))):
            count += 1
            match kind:
                case "text":
                    parts.append(TextPart(f"text {count}"))
                case "thought":
                    parts.append(ReasoningPart(f"thought {count}"))
                case "step":
                    parts.append(StepStartPart())
                case _:
                    parts.append(used(kind, f"c{count}"))
        if parts:
            messages.append(Message("assistant", parts))
    return [*messages, Message.user("now")]
