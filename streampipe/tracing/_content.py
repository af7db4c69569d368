"""What was said, as the JSON that the conventions have for it. Told only when asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from streampipe.chunks import Chunk, ReasoningDelta, TextDelta, ToolCall
from streampipe.messages import (
    FilePart,
    Message,
    Part,
    PromptMessage,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolInvocationPart,
    ToolResultPart,
)


def as_json(value: Any) -> str:
    """JSON text of a value; what JSON has no word for is told as it prints."""
    try:
        return orjson.dumps(value, default=ascii, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # half a surrogate pair, an integer of many digits, a circle
        return orjson.dumps(ascii(value)).decode()


def messages_json(messages: Iterable[Message | PromptMessage]) -> str:
    """Messages, each with its role and parts."""
    return as_json([{"role": message.role, "parts": _parts(message)} for message in messages])


def _parts(message: Message | PromptMessage) -> list[dict[str, Any]]:
    parts = message.parts if isinstance(message, Message) else message.content
    return [told for part in parts for told in _told(part)]


def _told(part: Part) -> Iterable[dict[str, Any]]:
    """A part as the conventions have it; an invocation is a call and, once it is there, its result.

    The data of a file is left out: a span is no place for megabytes.
    """
    match part:
        case TextPart():
            yield {"type": "text", "content": part.text}
        case ReasoningPart():
            yield {"type": "reasoning", "content": part.text}
        case FilePart():
            yield {"type": "file", "mime_type": part.mime_type, "filename": part.filename}
        case ToolCallPart() | ToolInvocationPart():
            yield _call(part.tool_call_id, part.tool_name, part.args)
            if isinstance(part, ToolInvocationPart) and part.state == "result":
                yield _response(part.tool_call_id, part.result)
        case ToolResultPart():
            yield _response(part.tool_call_id, part.result)
        case _:
            yield {"type": part.type}


def _call(tool_call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": tool_call_id, "name": name, "arguments": arguments}


def _response(tool_call_id: str, result: Any) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": tool_call_id, "response": result}


class Said:
    """What a model says, put together as its chunks come; work per chunk is constant."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._parts: list[tuple[str, list[str]]] = []
        self._calls: list[dict[str, Any]] = []

    def note(self, chunk: Chunk) -> None:
        """Take a chunk of the answer."""
        if isinstance(chunk, TextDelta):
            self._text("text", chunk.text)
        elif isinstance(chunk, ReasoningDelta):
            self._text("reasoning", chunk.text)
        elif isinstance(chunk, ToolCall):
            args = chunk.args if chunk.args_text is None else chunk.args_text
            self._calls.append(_call(chunk.tool_call_id, chunk.tool_name, args))

    def _text(self, kind: str, text: str) -> None:
        if not self._parts or self._parts[-1][0] != kind:
            self._parts.append((kind, []))
        self._parts[-1][1].append(text)

    def json(self, reason: str) -> str:
        """The answer as a message, and what it finished for."""
        parts = [{"type": kind, "content": "".join(texts)} for kind, texts in self._parts]
        whole = {"role": "assistant", "parts": [*parts, *self._calls], "finish_reason": reason}
        return as_json([whole])
