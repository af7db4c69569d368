"""A request in the Anthropic Messages protocol.

What stands on a part under the provider's name in `provider_metadata` are further fields of its
block: the decoder notes there what has to go back (a signature, citations), a caller may add what
only this protocol has (`cache_control`, a document's `title`).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streampipe.contracts import ModelRequest, ToolChoice, ToolSpec
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
from streampipe.messages._json import json_text, jsonable
from streampipe.models._anthropic.schema import answer_schema, tool_schema
from streampipe.models._protocol.encoding import (
    address_of,
    base64_of,
    chosen_tool,
    file_as_text,
    is_as_signed,
    left_out,
    merged,
    options_of,
    own_metadata,
    sendable,
    unknown_setting,
)


@dataclass(slots=True, frozen=True)
class Family:
    """What the models of a family take.

    Attributes:
        max_tokens: the limit of an answer that all of them take.
        sampling: whether they know `temperature`, `top_p` and `top_k`; later ones refuse them.
    """

    max_tokens: int
    sampling: bool = True


FAMILIES: Sequence[tuple[str, Family]] = (
    (r"claude-3-5", Family(8_192)),
    (r"claude-3-7", Family(64_000)),
    (r"claude-(instant|[23])", Family(4_096)),
    (r"claude-opus-4(-[01])?(-\d{8})?\b(?!-\d)", Family(32_000)),
    (r"claude-sonnet-4(-[056])?(-\d{8})?\b(?!-\d)", Family(64_000)),
    (r"claude-(opus-4-[56]|haiku-4-5)", Family(64_000)),
    (r"claude-", Family(64_000, sampling=False)),
    (r"", Family(4_096)),  # another maker's model
)
"""The first pattern that is found in a model's name decides."""

_SAMPLING = ("temperature", "top_k", "top_p")
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
_IMAGES = ("image/gif", "image/jpeg", "image/png", "image/webp")
_TEXTUAL = re.compile(r"text/|application/(json|xml|yaml|x-yaml|javascript)\b|.*\+(json|xml)\b")

_CALL_ID = "[a-zA-Z0-9_-]+"

Block = dict[str, Any]


def encode_request(
    request: ModelRequest,
    model_id: str,
    *,
    provider: str = "anthropic",
    warnings: list[str] | None = None,
) -> dict[str, Any]:
    """The body of a streaming call. Pure: the request stays as it is.

    System messages go into `system`, wherever in the prompt they stand. Messages of one role that
    follow one another become one. `provider_options[provider]` are merged in last: an object such
    as `thinking` or `output_config` is merged key by key with what is there, `tools` are added to
    the request's own, everything else takes the place of what is there.

    Args:
        request: what is asked.
        model_id: the provider's name of the model.
        provider: whose options and metadata are meant.
        warnings: is told what the protocol cannot carry and was left out.

    Returns:
        The body. `max_tokens` is that of the settings, else of the model's family: 64,000 from
        Claude 3.7 on (Opus 4.0 and 4.1: 32,000), 8,192 for Claude 3.5, 4,096 for all others.

    Raises:
        ConfigurationError: an option, or a schema, has a form that the protocol cannot take.
    """
    told: list[str] = [] if warnings is None else warnings
    family = next(family for pattern, family in FAMILIES if re.search(pattern, model_id))
    prompt = sendable(request.prompt, _CALL_ID)
    body: dict[str, Any] = {
        "model": model_id,
        "max_tokens": family.max_tokens,
        "messages": _Conversation(prompt, provider, told).messages,
        "stream": True,
    }
    system = _system(prompt, provider, told)
    if system:
        body["system"] = system
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body["tool_choice"] = _tool_choice(request.tool_choice, request.settings)
    _set(body, request.settings, family, told)
    if request.structured_output is not None:
        schema = answer_schema(request.structured_output.schema)
        answer_format = {"type": "json_schema", "schema": schema}
        body.setdefault("output_config", {})["format"] = answer_format
    return merged(body, options_of(request, provider))


def _set(
    body: dict[str, Any], settings: Mapping[str, Any], family: Family, told: list[str]
) -> None:
    """Put the settings into the body.

    Raises:
        ConfigurationError: `reasoning_effort` is none that the protocol knows.
    """
    for name, value in settings.items():
        if value is None or name == "parallel_tool_calls":  # that is a part of the tool choice
            continue
        if name == "max_output_tokens":
            body["max_tokens"] = value
        elif name == "stop":
            body["stop_sequences"] = [value] if isinstance(value, str) else value
        elif name == "reasoning_effort":
            if value not in _EFFORTS:
                msg = f"reasoning_effort must be one of {', '.join(_EFFORTS)}, not {value!r:.80}"
                raise ConfigurationError(msg)
            body["output_config"] = {"effort": value}
        elif name in _SAMPLING and family.sampling:
            body[name] = value
        elif name in _SAMPLING:
            told.append(
                f"setting {name!r} was left out: {body['model']} refuses it; "
                "provider_options can send it",
            )
        else:
            told.append(unknown_setting(name, "Anthropic Messages"))


def _tool(tool: ToolSpec) -> dict[str, Any]:
    made: dict[str, Any] = {"name": tool.name, "input_schema": tool_schema(tool)}
    return {**made, "description": tool.description} if tool.description else made


def _tool_choice(choice: ToolChoice, settings: Mapping[str, Any]) -> dict[str, Any]:
    name = chosen_tool(choice)
    made: dict[str, Any] = (
        {"type": "tool", "name": name} if name is not None else {"type": _CHOICES[str(choice)]}
    )
    parallel = settings.get("parallel_tool_calls")
    if parallel is not None and made["type"] != "none":
        made["disable_parallel_tool_use"] = not parallel
    return made


# --- the conversation ----------------------------------------------------------------------


def _system(prompt: Iterable[PromptMessage], provider: str, told: list[str]) -> list[Block]:
    """All system messages, a block each part, so that each can have its own `cache_control`."""
    blocks: list[Block] = []
    for message in prompt:
        if message.role == "system":
            for part in message.content:
                if isinstance(part, TextPart):
                    told += _blank(part, message.role)
                    blocks += _text(part, provider)
                else:
                    told.append(left_out(part, message.role))
    return blocks


def _text(part: TextPart, provider: str) -> list[Block]:
    """A text as a block; the protocol refuses one of white space only."""
    if not part.text.strip():
        return []
    return [{"type": "text", "text": part.text, **own_metadata(part, provider)}]


def _blank(part: TextPart, role: str) -> list[str]:
    """The warning for a text that is white space only; an empty one says nothing anyway."""
    if part.text.strip() or not part.text:
        return []
    return [f"a text of a {role} message was left out: the protocol takes no white space alone"]


class _Conversation:
    """The messages of a prompt in the protocol's form: user and assistant in turns.

    Results of tools belong to the user; those of tools that the provider ran stand within the
    assistant's message, right behind their calls.
    """

    def __init__(self, prompt: list[PromptMessage], provider: str, told: list[str]) -> None:
        self.messages: list[dict[str, Any]] = []
        self._provider = provider
        self._told = told
        parts = [part for message in prompt for part in message.content]
        self._executed = {
            p.tool_call_id for p in parts if isinstance(p, ToolCallPart) and p.provider_executed
        }
        self._results = {p.tool_call_id: p for p in parts if isinstance(p, ToolResultPart)}
        for message in prompt:
            if message.role == "assistant":
                self._add("assistant", [b for p in message.content for b in self._said(p)])
            elif message.role != "system":
                blocks = [b for p in message.content for b in self._given(p, message.role)]
                self._add("user", blocks)
        for made in self.messages:
            if made["role"] == "user":  # results have to stand before anything else
                made["content"].sort(key=lambda block: block["type"] != "tool_result")

    def _add(self, role: str, blocks: list[Block]) -> None:
        if blocks and self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"] += blocks
        elif blocks:
            self.messages.append({"role": role, "content": blocks})

    # --- the assistant's -------------------------------------------------------------------

    def _said(self, part: Part) -> list[Block]:
        if isinstance(part, TextPart):
            return _text(part, self._provider)
        if isinstance(part, ReasoningPart):
            return self._reasoning(part)
        if isinstance(part, ToolCallPart):
            return self._call(part)
        self._told.append(left_out(part, "assistant"))
        return []

    def _reasoning(self, part: ReasoningPart) -> list[Block]:
        """Reasoning of this provider's own making; nobody else's can be shown to it."""
        own = own_metadata(part, self._provider)
        if own.get("type") == "redacted_thinking" and part.redacted is not None:
            return [{**own, "data": part.redacted}]
        if own.get("signature") and is_as_signed(part, own, self._told):
            own.pop("digest", None)
            return [{"type": "thinking", "thinking": part.text, **own}]
        return []

    def _call(self, part: ToolCallPart) -> list[Block]:
        own = own_metadata(part, self._provider)
        if part.provider_executed and not own.get("type"):
            self._told.append(
                f"the call of {part.tool_name!r}, which another provider ran, was left out, "
                "and so was its result",
            )
            return []
        args = jsonable(part.args)
        if args is not None and not isinstance(args, dict):
            self._told.append(
                f"the arguments of a call of {part.tool_name!r} were left out: they must be an "
                f"object, not {args!r:.80}",
            )
        call = {
            "type": "tool_use",
            "id": part.tool_call_id,
            "name": part.tool_name,
            "input": args if isinstance(args, dict) else {},
            **own,
        }
        result = self._results.get(part.tool_call_id)
        if not part.provider_executed or result is None:
            return [call]
        return [call, _executed(call["type"], part.tool_name, result)]

    # --- the user's ------------------------------------------------------------------------

    def _given(self, part: Part, role: str) -> list[Block]:
        if isinstance(part, TextPart) and role == "user":
            self._told += _blank(part, role)
            return _text(part, self._provider)
        if isinstance(part, ToolResultPart):
            if part.tool_call_id in self._executed:
                return []  # it stands behind its call
            result = _result(part)
            if isinstance(result["content"], str):
                self._told += file_as_text(part)
            return [result]
        if isinstance(part, FilePart) and role == "user":
            block = _file(part)
            if isinstance(block, str):
                self._told.append(block)
                return []
            return [{**block, **own_metadata(part, self._provider)}]
        self._told.append(left_out(part, role))
        return []


def _executed(kind: str, name: str, part: ToolResultPart) -> Block:
    """The result of a tool that the provider ran: its content as it came."""
    block = {"tool_use_id": part.tool_call_id, "content": part.result}
    if kind == "mcp_tool_use":
        return {"type": "mcp_tool_result", **block, "is_error": part.is_error}
    stem = "tool_search" if name.startswith("tool_search") else name  # its ways share a result
    return {"type": f"{stem}_tool_result", **block}


def _result(part: ToolResultPart) -> Block:
    content = part.result if isinstance(part.result, str) else _contents(part.result)
    block = {"type": "tool_result", "tool_use_id": part.tool_call_id, "content": content}
    return {**block, "is_error": True} if part.is_error else block


def _contents(result: Any) -> str | list[Block]:
    """A result that is a list of content parts, as blocks; any other, as JSON text."""
    if not isinstance(result, list | tuple) or not result:
        return json_text(result)
    blocks: list[Block] = []
    for item in result:
        block = _content(item)
        if block is None:
            return json_text(result)
        blocks += [block] if block.get("text") != "" else []
    return blocks or ""


def _content(item: Any) -> Block | None:
    """A content part of a result; None if it is none, or none that the protocol can carry."""
    if not isinstance(item, Mapping):
        return None
    if item.get("type") == "text" and isinstance(item.get("text"), str):
        return {"type": "text", "text": item["text"]}
    data, mime = item.get("data"), item.get("mime_type")
    if item.get("type") in ("image", "file") and isinstance(data, str) and isinstance(mime, str):
        name = item.get("filename")
        block = _file(FilePart(data, mime, name if isinstance(name, str) else None))
        return block if isinstance(block, dict) else None
    return None


def _file(part: FilePart) -> Block | str:
    """A file as a block, or why it is left out."""
    mime = part.mime_type.partition(";")[0].strip().lower()
    mime = "image/jpeg" if mime == "image/jpg" else mime
    address = address_of(part)
    title = {"title": part.filename} if part.filename else {}
    if address is not None and address.startswith("http"):
        if mime.startswith("image/"):
            return {"type": "image", "source": {"type": "url", "url": address}}
        if mime == "application/pdf":
            return {"type": "document", "source": {"type": "url", "url": address}, **title}
        return f"a file of type {mime!r} was left out: only images and PDFs are taken by address"
    if address is not None:
        return f"a file was left out: {address:.80} is no address that the protocol knows"
    data = base64_of(part)
    source = {"type": "base64", "media_type": mime, "data": data}
    if mime in _IMAGES:
        return {"type": "image", "source": source}
    if mime == "application/pdf":
        return {"type": "document", "source": source, **title}
    if _TEXTUAL.match(mime):
        try:
            text = base64.b64decode(data, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return f"a file of type {mime!r} was left out: it is no text in UTF-8"
        source = {"type": "text", "media_type": "text/plain", "data": text}
        return {"type": "document", "source": source, **title}
    return f"a file of type {mime!r} was left out: the protocol has images, PDFs and text"
