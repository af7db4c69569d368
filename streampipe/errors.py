"""Every failure this library raises, as one tree.

Failures only: what stops a run *on purpose* (a guard's block) is a signal, lives in
`streampipe.abort` and is not an `Exception`.

```text
StreampipeError
├── ConfigurationError
├── WireError
├── MessageListError
├── RunStateError
├── ProcessorError
├── OperatorError
├── CallbackError
├── StructuredOutputError
├── ToolFailure
│   ├── UnknownToolError
│   ├── ToolArgumentsError
│   └── ToolExecutionError
└── ModelError
    ├── ModelConnectionError
    │   └── ModelTimeoutError
    │       ├── ConnectTimeoutError
    │       ├── FirstChunkTimeoutError
    │       ├── ChunkTimeoutError
    │       └── TotalTimeoutError
    ├── ProviderError
    │   ├── AuthenticationError
    │   ├── ContentFilterError
    │   ├── ContextLengthError
    │   ├── InvalidRequestError
    │   ├── OverloadedError
    │   ├── QuotaError
    │   ├── RateLimitError
    │   └── ServerError
    ├── ProviderStreamError
    │   └── IncompleteStreamError
    └── ScriptError
```
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AuthenticationError",
    "CallbackError",
    "ChunkTimeoutError",
    "ConfigurationError",
    "ConnectTimeoutError",
    "ContentFilterError",
    "ContextLengthError",
    "FirstChunkTimeoutError",
    "IncompleteStreamError",
    "InvalidRequestError",
    "MessageListError",
    "ModelConnectionError",
    "ModelError",
    "ModelTimeoutError",
    "OperatorError",
    "OverloadedError",
    "ProcessorError",
    "ProviderError",
    "ProviderStreamError",
    "QuotaError",
    "RateLimitError",
    "RunStateError",
    "ScriptError",
    "ServerError",
    "StreampipeError",
    "StructuredOutputError",
    "ToolArgumentsError",
    "ToolExecutionError",
    "ToolFailure",
    "TotalTimeoutError",
    "UnknownToolError",
    "WireError",
]


class StreampipeError(Exception):
    """Root of every failure raised by this library.

    Attributes:
        result: the `RunResult` up to the failure, when a run failed with it.
    """

    result: Any = None


class ConfigurationError(StreampipeError):
    """Something was put together wrongly; found before any model is called where it can be."""


class WireError(StreampipeError):
    """A wire or stored form could not be read; the message names the key at fault."""


class MessageListError(StreampipeError):
    """A message list was used against its contract, such as a foreign list being returned."""


class RunStateError(StreampipeError):
    """A run was asked for something its state no longer allows, such as a late consumer."""


class ProcessorError(StreampipeError):
    """A processor's hook raised, or returned what its contract does not allow.

    Attributes:
        processor_id: id of the processor at fault.
        hook: name of the hook at fault.
    """

    def __init__(self, message: str, *, processor_id: str, hook: str) -> None:
        """Say what went wrong and in which hook of which processor."""
        super().__init__(f"processor {processor_id!r}, {hook}: {message}")
        self.processor_id = processor_id
        self.hook = hook


class OperatorError(StreampipeError):
    """A function given to an operator raised, or returned what the operator cannot take.

    Attributes:
        operator: name of the operator at fault.
    """

    def __init__(self, message: str, *, operator: str) -> None:
        """Say what went wrong in which operator."""
        super().__init__(f"operator {operator!r}: {message}")
        self.operator = operator


class CallbackError(StreampipeError):
    """A function given as an option (`stop_when`, `instructions`, a list's function) raised.

    Attributes:
        option: name of the option.
    """

    def __init__(self, option: str, error: BaseException) -> None:
        """Say which option's function raised what."""
        super().__init__(f"{option}: the function raised {type(error).__name__}: {error}")
        self.option = option


class StructuredOutputError(StreampipeError):
    """The model's answer does not validate against `structured_output`."""


class ToolFailure(StreampipeError):
    """A tool call that gave no result; the model is told and the run goes on.

    Attributes:
        tool_name: the tool that the model asked for.
    """

    def __init__(self, message: str, *, tool_name: str) -> None:
        """Say what went wrong, in words that a model can act on."""
        super().__init__(message)
        self.tool_name = tool_name


class UnknownToolError(ToolFailure):
    """The model called a tool that the step does not have."""


class ToolArgumentsError(ToolFailure):
    """The arguments are no JSON, or do not fit the tool's schema."""


class ToolExecutionError(ToolFailure):
    """The tool itself raised; the cause is chained."""


class ModelError(StreampipeError):
    """A model call failed; `process_api_error` gets these.

    Attributes:
        provider: name of the provider or protocol.
        model: id of the model.
        is_retryable: whether asking again unchanged may help.
        status: HTTP status code, when the provider gave one.
        body: what the provider said: the decoded JSON, else its text.
        request_id: the provider's id of the request, when it sent one.
        retry_after: seconds that the provider asked to wait, when it did.
        mid_stream: whether chunks of the answer had come before; then nobody below has tried again.
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        model: str = "",
        is_retryable: bool = False,
        status: int | None = None,
        body: Any = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        """Say what went wrong with which model."""
        where = "/".join(part for part in (provider, model) if part)
        said = message if status is None else f"HTTP {status}: {message}"
        super().__init__(f"{where}: {said}" if where else said)
        self.provider = provider
        self.model = model
        self.is_retryable = is_retryable
        self.status = status
        self.body = body
        self.request_id = request_id
        self.retry_after = retry_after
        self.mid_stream = False


class ModelConnectionError(ModelError):
    """The provider could not be reached, or the connection broke."""


class ModelTimeoutError(ModelConnectionError):
    """The provider did not answer in time."""


class ConnectTimeoutError(ModelTimeoutError):
    """No connection came about in time."""


class FirstChunkTimeoutError(ModelTimeoutError):
    """The provider took the request, and began no answer in time."""


class ChunkTimeoutError(ModelTimeoutError):
    """The provider fell silent in the middle of its answer."""


class TotalTimeoutError(ModelTimeoutError):
    """The call as a whole, with its retries, took too long."""


class ProviderError(ModelError):
    """The provider itself reports a failure: by an HTTP status, or within a stream.

    The subclasses tell what it is, for whichever provider; this class itself stands for what none
    of them is.
    """


class AuthenticationError(ProviderError):
    """The key is missing, wrong, or not allowed to do this."""


class ContentFilterError(ProviderError):
    """The provider's own filter refuses the request or the answer."""


class ContextLengthError(ProviderError):
    """The prompt, with the answer asked for, is longer than the model can take."""


class InvalidRequestError(ProviderError):
    """The provider cannot take the request as it is: a wrong field, an unknown model."""


class OverloadedError(ProviderError):
    """The provider has no capacity at the moment."""


class QuotaError(ProviderError):
    """The account's credit or budget is used up; waiting does not help."""


class RateLimitError(ProviderError):
    """Too many requests or tokens in too short a time."""


class ServerError(ProviderError):
    """Something failed on the provider's side."""


class ProviderStreamError(ModelError):
    """The provider's stream carries what its protocol does not allow."""


class IncompleteStreamError(ProviderStreamError):
    """The provider's stream stopped without its protocol's end."""


class ScriptError(ModelError):
    """A scripted model was asked for more turns than its script has."""
