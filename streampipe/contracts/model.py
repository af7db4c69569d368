"""The contract of a model: a request in, an async stream of chunks out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from streampipe.abort import AbortSignal
from streampipe.chunks import Chunk
from streampipe.errors import ModelError
from streampipe.messages import PromptMessage

__all__ = ["Model", "ModelRequest", "OutputSchema", "ToolChoice", "ToolSpec"]

ToolChoice = str | Mapping[str, str]
"""`"auto"`, `"none"`, `"required"`, or `{"tool_name": name}`."""


OnRetry = Callable[[ModelError, float], None]


@dataclass(slots=True, frozen=True)
class ToolSpec:
    """A tool as a model sees it; `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(slots=True, frozen=True)
class OutputSchema:
    """The JSON schema that the answer has to fit."""

    name: str
    schema: dict[str, Any]


@dataclass(slots=True)
class ModelRequest:
    """One call of a model. Models read it and leave it as it is.

    Attributes:
        prompt: the provider-neutral messages, system messages first.
        tools: what the model may call.
        tool_choice: how free it is in that.
        settings: `temperature`, `max_output_tokens`, `top_p`, `stop`, `seed`, ...
        provider_options: what only one provider knows, by provider name.
        structured_output: the schema of the answer, if it has one.
        abort_signal: tells when the run is cancelled.
        on_retry: is told when the model's own client asks again: the failure, and the pause in
            seconds before it does.
    """

    prompt: list[PromptMessage]
    tools: list[ToolSpec] = field(default_factory=list[ToolSpec])
    tool_choice: ToolChoice = "auto"
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    provider_options: dict[str, Any] = field(default_factory=dict[str, Any])
    structured_output: OutputSchema | None = None
    abort_signal: AbortSignal | None = None
    on_retry: OnRetry | None = field(default=None, repr=False, compare=False)


@runtime_checkable
class Model(Protocol):
    """Anything that answers a request with a stream of chunks.

    Attributes:
        provider: name of the provider or protocol, for errors and spans.
        model_id: the provider's name of the model.
    """

    provider: str
    model_id: str

    def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Answer one request.

        Yields text, reasoning, tool call, source, file, object, raw and response-metadata chunks,
        and last of all one `finish` chunk with the reason and usage. Closing the iterator closes
        the connection.

        Raises:
            ModelError: the call failed; see `streampipe.errors`. A stream that stops without its
                protocol's end raises `IncompleteStreamError`, and so does the run when a model
                ends without a `finish` chunk.
        """
        ...
