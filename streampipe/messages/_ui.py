"""Messages as a chat front end draws them: the AI SDK's UI message, version 5."""

from __future__ import annotations

from typing import Any

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
)


def to_ui(message: Message) -> dict[str, Any]:
    """A message in the UI form, as JSON-ready values."""
    out: dict[str, Any] = {
        "id": message.id,
        "role": message.role,
        "parts": [_part(part) for part in message.parts],
    }
    if message.metadata is not None:
        out["metadata"] = message.metadata
    return out


def _part(part: Part) -> dict[str, Any]:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text, "state": "done"}
        case ReasoningPart():
            return {"type": "reasoning", "text": part.text, "state": "done"}
        case FilePart():
            is_url = "://" in part.data or part.data.startswith("data:")
            url = part.data if is_url else f"data:{part.mime_type};base64,{part.data}"
            out = {"type": "file", "mediaType": part.mime_type, "url": url}
            return out | ({"filename": part.filename} if part.filename else {})
        case ToolInvocationPart():
            return _tool(part)
        case SourcePart(source_type="url"):
            return {"type": "source-url", "sourceId": part.id, "url": part.url, "title": part.title}
        case SourcePart():
            return {
                "type": "source-document",
                "sourceId": part.id,
                "mediaType": part.mime_type,
                "title": part.title,
            }
        case DataPart():
            return {"type": part.type, "data": part.data}
        case StepStartPart():
            return {"type": "step-start"}
        case OtherPart():
            return dict(part.value)
        case _:
            return {"type": part.type}


def _tool(part: ToolInvocationPart) -> dict[str, Any]:
    out = {"type": f"tool-{part.tool_name}", "toolCallId": part.tool_call_id, "input": part.args}
    if part.state != "result":
        return out | {"state": "input-available"}
    if part.is_error:
        return out | {"state": "output-error", "errorText": str(part.result)}
    return out | {"state": "output-available", "output": part.result}
