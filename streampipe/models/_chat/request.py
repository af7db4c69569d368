"""A request in the OpenAI Chat Completions protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
from streampipe.messages._json import json_text
from streampipe.models._protocol.encoding import (
    base64_of,
    chosen_tool,
    data_url,
    file_as_text,
    is_as_signed,
    left_out,
    merged,
    options_of,
    own_metadata,
    schema_name,
    sendable,
    unknown_setting,
)

_ADDED_TO = ("stream_options", "tools")
"""What a caller's options add to; without `include_usage` a server tells no usage."""


@dataclass(slots=True, frozen=True)
class Dialect:
    """Where servers of the protocol differ in what they take.

    Attributes:
        token_limit: what `max_output_tokens` is called. OpenAI refuses `max_tokens` for its
            reasoning models; other servers know `max_tokens`, some of them nothing else.
        seed: what `seed` is called.
        stream_options: whether `stream_options` is known; usage comes without it then.
        reasoning: whether the reasoning that led to a tool call is wanted back.
        call_id: a pattern that ids of calls have to match.
    """

    token_limit: str = "max_tokens"  # noqa: S105 - a name, no password
    seed: str = "seed"
    stream_options: bool = True
    reasoning: bool = False
    call_id: str = ".+"


COMPATIBLE = Dialect()
DIALECTS: Mapping[str, Dialect] = {
    "deepseek": Dialect(reasoning=True),  # refuses a tool loop without it
    "mistral": Dialect(  # refuses keys unknown to it
        seed="random_seed", stream_options=False, call_id="[A-Za-z0-9]{9}"
    ),
    "openai": Dialect(token_limit="max_completion_tokens", call_id=".{1,40}"),  # noqa: S106 - a name
    "openrouter": Dialect(reasoning=True),  # passes it on to providers that want it
}

_SETTINGS = frozenset(
    {
        "frequency_penalty",
        "parallel_tool_calls",
        "presence_penalty",
        "reasoning_effort",
        "stop",
        "temperature",
        "top_p",
    },
)


def encode_request(
    request: ModelRequest,
    model_id: str,
    *,
    provider: str = "openai",
    dialect: Dialect | None = None,
    warnings: list[str] | None = None,
) -> dict[str, Any]:
    """The body of a streaming call. Pure: the request stays as it is.

    Args:
        request: what is asked.
        model_id: the provider's name of the model.
        provider: whose `provider_options` are merged in last, over everything else.
        dialect: what the server takes; by default the provider's own.
        warnings: is told what the protocol cannot carry and was left out.

    Raises:
        ConfigurationError: an option has a form that no server takes.
    """
    dialect = dialect or DIALECTS.get(provider, COMPATIBLE)
    told: list[str] = [] if warnings is None else warnings
    prompt = sendable(request.prompt, dialect.call_id)
    body: dict[str, Any] = {
        "model": model_id,
        "messages": [m for said in prompt for m in _messages(said, dialect, provider, told)],
        "stream": True,
    }
    if dialect.stream_options:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in request.tools
        ]
        body["tool_choice"] = _tool_choice(request.tool_choice)
    body.update(_settings(request.settings, dialect, told))
    if request.structured_output is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {
                "name": schema_name(request.structured_output.name),
                "schema": request.structured_output.schema,
            },
        }
    kept = {name: body[name] for name in _ADDED_TO if name in body}
    return body | merged(kept, options_of(request, provider))


def _tool_choice(choice: Any) -> Any:
    name = chosen_tool(choice)
    return choice if name is None else {"type": "function", "function": {"name": name}}


def _settings(settings: Mapping[str, Any], dialect: Dialect, told: list[str]) -> dict[str, Any]:
    names = {"max_output_tokens": dialect.token_limit, "seed": dialect.seed}
    fields: dict[str, Any] = {}
    for name, value in settings.items():
        if value is None:
            continue
        if name in names or name in _SETTINGS:
            fields[names.get(name, name)] = value
        else:
            told.append(unknown_setting(name, "chat"))
    return fields


def _messages(
    message: PromptMessage,
    dialect: Dialect,
    provider: str,
    told: list[str],
) -> Iterator[dict[str, Any]]:
    if message.role == "system":
        told += [left_out(p, "system") for p in message.content if not isinstance(p, TextPart)]
        yield {"role": "system", "content": message.text}
    elif message.role == "tool":
        for part in message.content:
            if isinstance(part, ToolResultPart):
                told += file_as_text(part)
                yield _result(part)
            else:
                told.append(left_out(part, message.role))
    elif message.role == "assistant":
        yield from _assistant(message, dialect, provider, told)
    else:
        content = [c for part in message.content if (c := _shown(part, message, told))]
        if len(content) == 1 and content[0]["type"] == "text":
            yield {"role": "user", "content": content[0]["text"]}
        elif content:
            yield {"role": "user", "content": content}


def _assistant(
    message: PromptMessage,
    dialect: Dialect,
    provider: str,
    told: list[str],
) -> Iterator[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    reasoning: dict[str, Any] = {}
    for part in message.content:
        if isinstance(part, ToolCallPart):
            calls.append(
                {
                    "id": part.tool_call_id,
                    "type": "function",
                    "function": {"name": part.tool_name, "arguments": _arguments(part.args)},
                },
            )
        elif isinstance(part, ReasoningPart):
            _reason(part, own_metadata(part, provider), reasoning, told)
        elif not isinstance(part, TextPart):
            told.append(left_out(part, message.role))
    said = {"role": "assistant", "content": message.text or None}
    if calls:
        yield {**said, **(reasoning if dialect.reasoning else {}), "tool_calls": calls}
    elif message.text:
        yield said


def _reason(
    part: ReasoningPart, noted: dict[str, Any], fields: dict[str, Any], told: list[str]
) -> None:
    """Reasoning in the fields that it came in; that of another provider is left out.

    Items of it hold its text once more, as it came, and may be signed.
    """
    details = noted.get("reasoning_details")
    if isinstance(details, list):
        if is_as_signed(part, noted, told):
            fields.setdefault("reasoning_details", []).extend(details)
    elif isinstance(field := noted.get("field"), str):
        fields[field] = fields.get(field, "") + part.text


def _arguments(args: Any) -> str:
    """Arguments as JSON text. None stands for text that was no JSON, which servers refuse."""
    return json_text({} if args is None else args)


def _result(part: ToolResultPart) -> dict[str, Any]:
    text = part.result if isinstance(part.result, str) else json_text(part.result)
    if part.is_error:  # the protocol has no flag for it: the model is told in words
        text = f"Error: {text}"
    return {"role": "tool", "tool_call_id": part.tool_call_id, "content": text}


def _shown(part: Part, message: PromptMessage, told: list[str]) -> dict[str, Any] | None:
    """A part of a user's message."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text} if part.text else None
    if isinstance(part, FilePart):
        return _file(part)
    told.append(left_out(part, message.role))
    return None


def _file(part: FilePart) -> dict[str, Any]:
    """A file as the protocol has it: images by address or data, sound by data, others as files.

    Raises:
        ConfigurationError: sound by address.
    """
    mime = part.mime_type
    url = data_url(part)
    if mime.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    if mime.startswith("audio/"):
        if not url.startswith("data:"):
            msg = f"the chat protocol takes no sound by address ({url:.80}): give it as base64"
            raise ConfigurationError(msg)
        kind = mime.removeprefix("audio/").removeprefix("x-")
        kind = {"mpeg": "mp3", "wave": "wav"}.get(kind, kind)
        return {"type": "input_audio", "input_audio": {"data": base64_of(part), "format": kind}}
    # OpenAI wants a data URL here; routers in front of it take an address too.
    return {"type": "file", "file": {"filename": part.filename or "file", "file_data": url}}
