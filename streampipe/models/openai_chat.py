"""OpenAI Chat Completions, and what speaks the same: Ollama, vLLM, llama.cpp, LM Studio, ...

Two pure parts and a thin class: `encode_request` makes the body of a call, `ChatDecoder` makes
chunks of its events, `OpenAIChatModel` joins them by a `ProviderCall`.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import orjson

from streampipe.chunks import Chunk
from streampipe.contracts import ModelRequest
from streampipe.errors import ConfigurationError
from streampipe.messages import (
    FilePart,
    Part,
    PromptMessage,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from streampipe.models._call import ProviderCall
from streampipe.models._chat_decoder import ChatDecoder
from streampipe.models._http import Client, HttpxTransport
from streampipe.models._transport import Timeout, Transport

__all__ = ["ChatDecoder", "OpenAIChatModel", "encode_request"]

OPENAI_URL = "https://api.openai.com/v1"


class OpenAIChatModel:
    """A model behind a chat-completions endpoint.

    >>> OpenAIChatModel("llama3.2", base_url="http://localhost:11434/v1", api_key_env=None)
    OpenAIChatModel('llama3.2', base_url='http://localhost:11434/v1')

    Attributes:
        provider: name of the provider, for errors and `provider_options`.
        model_id: the provider's name of the model.
    """

    def __init__(
        self,
        model_id: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        max_retries: int = 2,
        timeout: Timeout | float | None = None,
        http_client: Client | None = None,
        transport: Transport | None = None,
        provider: str = "openai",
        api_key_env: str | None = "OPENAI_API_KEY",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Point at an endpoint; nothing is sent yet.

        Args:
            model_id: the provider's name of the model.
            base_url: up to and with `/v1`; OpenAI's own if None.
            api_key: sent as bearer token; read from `api_key_env` if None.
            max_retries: how often a failure that may pass is tried again, before the first chunk.
            timeout: seconds between two pieces of the answer, or a `Timeout`.
            http_client: an `httpx.AsyncClient` to use and leave open.
            transport: another way to the network than httpx.
            provider: name of the provider.
            api_key_env: variable that holds the key; None when the server asks for none.
            headers: further headers of every request.

        Raises:
            ConfigurationError: the key is missing (the variable is named), or an option is wrong.
        """
        if not model_id:
            msg = "OpenAIChatModel: the model's id is empty"
            raise ConfigurationError(msg)
        if max_retries < 0:
            msg = f"OpenAIChatModel: max_retries must not be negative, but is {max_retries}"
            raise ConfigurationError(msg)
        key = api_key
        if key is None and api_key_env is not None:
            key = os.environ.get(api_key_env)
            if not key:
                msg = (
                    f"model {provider}/{model_id}: no API key; set the environment variable "
                    f"{api_key_env} or pass api_key="
                )
                raise ConfigurationError(msg)
        self.provider = provider
        self.model_id = model_id
        self._base_url = (base_url or OPENAI_URL).rstrip("/")
        self._call = ProviderCall(
            provider=provider,
            model=model_id,
            url=f"{self._base_url}/chat/completions",
            headers={**({"authorization": f"Bearer {key}"} if key else {}), **(headers or {})},
            transport=transport or HttpxTransport(http_client),
            max_retries=max_retries,
            timeout=timeout if isinstance(timeout, Timeout) else Timeout(read=timeout or 300.0),
        )

    def __repr__(self) -> str:
        """The model and where it is; never the key."""
        return f"OpenAIChatModel({self.model_id!r}, base_url={self._base_url!r})"

    def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Answer one request; see `Model.stream`.

        Raises:
            ModelError: the call failed, after the retries that could help.
        """
        body = encode_request(request, self.model_id, provider=self.provider)
        return self._call.stream(body, lambda: ChatDecoder(self.provider))


# --- the request ---------------------------------------------------------------------------


def encode_request(
    request: ModelRequest,
    model_id: str,
    *,
    provider: str = "openai",
) -> dict[str, Any]:
    """The body of a call.

    Settings keep their names but `max_output_tokens`, which OpenAI calls `max_completion_tokens`
    and everybody else still `max_tokens`. `provider_options[provider]` is merged in last.
    """
    body: dict[str, Any] = {
        "model": model_id,
        "messages": [wire for message in request.prompt for wire in _message(message)],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    for name, value in request.settings.items():
        if value is not None:
            body[_setting(name, provider)] = value
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
        choice = request.tool_choice
        body["tool_choice"] = (
            choice
            if isinstance(choice, str)
            else {"type": "function", "function": {"name": choice["tool_name"]}}
        )
    if request.structured_output is not None:
        output = request.structured_output
        name = re.sub(r"[^a-zA-Z0-9_-]", "_", output.name)[:64] or "answer"
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": name, "schema": output.schema},
        }
    body.update(request.provider_options.get(provider) or {})
    return body


def _setting(name: str, provider: str) -> str:
    if name == "max_output_tokens":
        return "max_completion_tokens" if provider == "openai" else "max_tokens"
    return name


def _message(message: PromptMessage) -> Iterable[dict[str, Any]]:
    if message.role == "tool":
        return [_result(part) for part in message.content if isinstance(part, ToolResultPart)]
    if message.role == "assistant":
        return _assistant(message)
    if message.role == "system" or all(isinstance(p, TextPart) for p in message.content):
        return [{"role": message.role, "content": message.text}]
    parts = [wire for part in message.content for wire in _user_part(part)]
    return [{"role": message.role, "content": parts}]


def _assistant(message: PromptMessage) -> Iterable[dict[str, Any]]:
    calls = [
        {
            "id": part.tool_call_id,
            "type": "function",
            "function": {"name": part.tool_name, "arguments": _arguments(part.args)},
        }
        for part in message.content
        if isinstance(part, ToolCallPart)
    ]
    wire: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if calls:
        wire["tool_calls"] = calls
    return [wire] if calls or wire["content"] else []


def _arguments(args: Any) -> str:
    return orjson.dumps({} if args is None else args).decode()


def _result(part: ToolResultPart) -> dict[str, Any]:
    text = part.result if isinstance(part.result, str) else orjson.dumps(part.result).decode()
    if part.is_error:  # the protocol has no field for it
        text = f"Error: {text}"
    return {"role": "tool", "tool_call_id": part.tool_call_id, "content": text}


def _user_part(part: Part) -> Iterable[dict[str, Any]]:
    if isinstance(part, TextPart):
        return [{"type": "text", "text": part.text}]
    if not isinstance(part, FilePart):
        return []
    is_url = part.data.startswith(("http://", "https://", "data:"))
    url = part.data if is_url else f"data:{part.mime_type};base64,{part.data}"
    if part.mime_type.startswith("image/"):
        return [{"type": "image_url", "image_url": {"url": url}}]
    if part.mime_type in _AUDIO and not is_url:
        audio = {"data": part.data, "format": _AUDIO[part.mime_type]}
        return [{"type": "input_audio", "input_audio": audio}]
    return [{"type": "file", "file": {"filename": part.filename or "file", "file_data": url}}]


_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
