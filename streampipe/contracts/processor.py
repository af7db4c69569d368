"""The contract of a processor: nine hooks, each optional, each sync or async.

A processor is any object with an `id` and at least one of the hooks, or with the operator that is
named below in place of one; no base class is needed
(`Processor` is there to inherit defaults from, or as a type). What each hook is promised is said
at its args; what it may return, at its result. Every hook can end in three more ways:

- `args.abort(...)`: the run is blocked, or the step tried again (`streampipe.abort.TripWire`);
- it raises: the run ends with a `ProcessorError` that names it, and nothing it has not passed
  reaches the client;
- the run is cancelled while it awaits: `asyncio.CancelledError`.

A hook is called chunk by chunk, and nothing it has started may outlive the call. A processor that
works at a pace of its own, such as a guard that asks about one sentence while the next ones come,
brings an operator instead: `stream_operator(args)` in place of `process_output_stream`. It is
called once for every attempt at a step and returns an operator, which then stands in
`output_processors` where the processor stands. Both in one processor are refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, runtime_checkable

from streampipe.abort import AbortSignal, TripWire
from streampipe.chunks import Chunk, FinishReason, ToolCall, Usage
from streampipe.contracts.context import UNSET, RequestContext, StreamWriter
from streampipe.contracts.model import Model, ModelRequest, ToolChoice
from streampipe.contracts.results import OutputResult, StepResult
from streampipe.contracts.tool import Tool
from streampipe.messages import Message, MessageList, PromptMessage

__all__ = [
    "ERROR_HOOKS",
    "HOOKS",
    "INPUT_HOOKS",
    "OUTPUT_HOOKS",
    "STREAM_OPERATOR",
    "Abort",
    "ErrorProcessor",
    "HookArgs",
    "InputProcessor",
    "OnViolation",
    "OutputProcessor",
    "ProcessAPIErrorArgs",
    "ProcessAPIErrorResult",
    "ProcessInputArgs",
    "ProcessInputResult",
    "ProcessInputStepArgs",
    "ProcessInputStepResult",
    "ProcessLLMRequestArgs",
    "ProcessLLMRequestResult",
    "ProcessLLMResponseArgs",
    "ProcessOutputResultArgs",
    "ProcessOutputStepArgs",
    "ProcessOutputStreamArgs",
    "ProcessToolResultArgs",
    "Processor",
    "ProcessorMessageResult",
    "ProcessorViolation",
    "StreamOperatorArgs",
]

INPUT_HOOKS = (
    "process_input",
    "process_input_step",
    "process_llm_request",
    "process_llm_response",
)
OUTPUT_HOOKS = (
    "process_output_stream",
    "process_output_step",
    "process_tool_result",
    "process_output_result",
)
ERROR_HOOKS = ("process_api_error",)
HOOKS = (*INPUT_HOOKS, *OUTPUT_HOOKS, *ERROR_HOOKS)
STREAM_OPERATOR = "stream_operator"


@dataclass(slots=True, frozen=True)
class ProcessorViolation:
    """What a processor found, whether it blocked or only reported it."""

    processor_id: str
    message: str
    detail: Any = None


class Abort:
    """`args.abort`: stops the run at once; what stands after the call does not run."""

    __slots__ = ("_alarm", "_processor_id")

    def __init__(self, processor_id: str, alarm: Callable[[TripWire], None]) -> None:
        """Tie it to a processor; `alarm` remembers the wire even if the hook swallows it."""
        self._processor_id = processor_id
        self._alarm = alarm

    def __call__(
        self,
        reason: str = "",
        *,
        retry: bool = False,
        metadata: Any = None,
    ) -> NoReturn:
        """Block the run, or with `retry` reject the step and ask for another attempt.

        Args:
            reason: told to the client, and to the model as feedback of a retry.
            retry: try the step again while the retry budget lasts.
            metadata: JSON-ready data for the `tripwire` chunk.

        Raises:
            TripWire: always.
        """
        wire = TripWire(reason, retry=retry, metadata=metadata, processor_id=self._processor_id)
        self._alarm(wire)
        raise wire


@dataclass(slots=True, kw_only=True)
class HookArgs:
    """What every hook gets. One object is reused within a step: valid during the call only.

    Attributes:
        abort: stops the run or rejects the step.
        retry_count: retries that processors have triggered in this run; starts at 0.
        request_context: the call's own values.
        tracing_context: for spans; None without tracing.
        abort_signal: tells when the run is cancelled.
        writer: puts `data-*` chunks into the stream.
        run_id: id of the run.
        agent: the agent that runs.
        state: this processor's own dict: one per id and run, the same in all its hooks.
    """

    abort: Abort
    retry_count: int
    request_context: RequestContext
    tracing_context: Any
    abort_signal: AbortSignal
    writer: StreamWriter
    run_id: str
    agent: Any
    state: dict[str, Any]


@dataclass(slots=True, kw_only=True)
class ProcessInputArgs(HookArgs):
    """`process_input`: once, before the loop. `messages` hold no system messages."""

    messages: list[Message]
    message_list: MessageList
    system_messages: list[PromptMessage]


@dataclass(slots=True, kw_only=True)
class ProcessInputStepArgs(HookArgs):
    """`process_input_step`: before every model call, retries included."""

    messages: list[Message]
    message_list: MessageList
    system_messages: list[PromptMessage]
    step_number: int
    steps: Sequence[StepResult]
    model: Model
    tools: dict[str, Tool]
    active_tools: list[str]
    tool_choice: ToolChoice
    provider_options: dict[str, Any]
    model_settings: dict[str, Any]
    structured_output: Any


@dataclass(slots=True, kw_only=True)
class ProcessLLMRequestArgs(HookArgs):
    """`process_llm_request`: the outbound prompt of this one call."""

    prompt: list[PromptMessage]
    model: Model
    message_list: MessageList
    step_number: int
    steps: Sequence[StepResult]


@dataclass(slots=True, kw_only=True)
class ProcessLLMResponseArgs(HookArgs):
    """`process_llm_response`: the model's stream ended; chunks as it made them.

    `request` is the neutral request; `raw_response` what the provider said of its response.
    """

    chunks: list[Chunk]
    model: Model
    step_number: int
    steps: Sequence[StepResult]
    from_cache: bool
    warnings: list[str]
    request: ModelRequest | None
    raw_response: Any


@dataclass(slots=True, kw_only=True)
class ProcessAPIErrorArgs(HookArgs):
    """`process_api_error`: the model call failed."""

    error: Exception
    messages: list[Message]
    message_list: MessageList
    step_number: int
    steps: Sequence[StepResult]


@dataclass(slots=True, kw_only=True)
class ProcessOutputStreamArgs(HookArgs):
    """`process_output_stream`: every chunk bound for the client.

    `stream_parts` are the chunks that this processor was given in this run, this one included; a
    processor's `stream_window` bounds how many are kept.
    """

    part: Chunk
    stream_parts: Sequence[Chunk]
    message_list: MessageList


@dataclass(slots=True, kw_only=True)
class StreamOperatorArgs(HookArgs):
    """`stream_operator`: once for every attempt at a step. It may be kept for that long."""

    message_list: MessageList


@dataclass(slots=True, kw_only=True)
class ProcessOutputStepArgs(HookArgs):
    """`process_output_step`: the model has answered, no tool has started."""

    messages: list[Message]
    message_list: MessageList
    system_messages: list[PromptMessage]
    step_number: int
    finish_reason: FinishReason
    provider_metadata: dict[str, Any] | None
    tool_calls: list[ToolCall]
    text: str
    usage: Usage
    steps: Sequence[StepResult]


@dataclass(slots=True, kw_only=True)
class ProcessToolResultArgs(HookArgs):
    """`process_tool_result`: a tool has returned; the model has not seen it yet."""

    messages: list[Message]
    message_list: MessageList
    system_messages: list[PromptMessage]
    step_number: int
    tool_name: str
    tool_call_id: str
    args: Any
    result: Any
    provider_executed: bool | None
    steps: Sequence[StepResult]


@dataclass(slots=True, kw_only=True)
class ProcessOutputResultArgs(HookArgs):
    """`process_output_result`: once, after the loop."""

    messages: list[Message]
    message_list: MessageList
    result: OutputResult


@dataclass(slots=True)
class ProcessInputResult:
    """Replace the input messages, and the system messages if given."""

    messages: list[Any] = UNSET
    system_messages: list[Any] = UNSET


@dataclass(slots=True)
class ProcessInputStepResult:
    """Overrides for this step; what is not given stays as it is."""

    model: Any = UNSET
    tools: Any = UNSET
    active_tools: list[str] = UNSET
    tool_choice: ToolChoice = UNSET
    messages: list[Any] = UNSET
    message_list: MessageList = UNSET
    system_messages: list[Any] = UNSET
    provider_options: dict[str, Any] = UNSET
    model_settings: dict[str, Any] = UNSET
    structured_output: Any = UNSET


@dataclass(slots=True)
class ProcessLLMRequestResult:
    """Rewrite this call's prompt, or answer it with chunks instead of calling the model."""

    prompt: list[Any] = UNSET
    response: list[Any] = UNSET


@dataclass(slots=True)
class ProcessAPIErrorResult:
    """Whether to try the step again with the changes made."""

    retry: bool = False


OnViolation = Callable[[ProcessorViolation], Any]
"""Plain or async; what it returns is of no account."""

ProcessorMessageResult = MessageList | list[Any] | None | Awaitable[MessageList | list[Any] | None]


class Processor:
    """A base to inherit the optional attributes from; any object with an `id` and a hook will do.

    Attributes:
        id: unique in an agent; keys the state, names the spans.
        name: for people; the id when None.
        description: for people.
        processor_index: place in the combined list, set by the run.
        process_data_parts: also receive `data-*` chunks in `process_output_stream`.
        stream_window: how many chunks `args.stream_parts` keeps; None keeps all.
        on_violation: called for every abort and wherever the processor reports a violation; what
            it raises is logged and swallowed.
    """

    id: str = ""
    name: str | None = None
    description: str | None = None
    processor_index: int | None = None
    process_data_parts: bool = False
    stream_window: int | None = None
    on_violation: OnViolation | None = None


@runtime_checkable
class HasId(Protocol):
    """What all processors share."""

    id: str


class _ProcessInput(HasId, Protocol):
    def process_input(self, args: ProcessInputArgs) -> Any: ...


class _ProcessInputStep(HasId, Protocol):
    def process_input_step(self, args: ProcessInputStepArgs) -> Any: ...


class _ProcessLLMRequest(HasId, Protocol):
    def process_llm_request(self, args: ProcessLLMRequestArgs) -> Any: ...


class _ProcessLLMResponse(HasId, Protocol):
    def process_llm_response(self, args: ProcessLLMResponseArgs) -> Any: ...


class _ProcessOutputStream(HasId, Protocol):
    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Any: ...


class _ProcessOutputStep(HasId, Protocol):
    def process_output_step(self, args: ProcessOutputStepArgs) -> Any: ...


class _ProcessToolResult(HasId, Protocol):
    def process_tool_result(self, args: ProcessToolResultArgs) -> Any: ...


class _ProcessOutputResult(HasId, Protocol):
    def process_output_result(self, args: ProcessOutputResultArgs) -> Any: ...


class ErrorProcessor(HasId, Protocol):
    """What `error_processors` takes."""

    def process_api_error(self, args: ProcessAPIErrorArgs) -> Any:
        """Look at a failed model call and say whether to try again."""
        ...


InputProcessor = _ProcessInput | _ProcessInputStep | _ProcessLLMRequest | _ProcessLLMResponse


class _StreamOperator(HasId, Protocol):
    def stream_operator(self, args: StreamOperatorArgs) -> Any: ...


OutputProcessor = (
    _ProcessOutputStream
    | _ProcessOutputStep
    | _ProcessToolResult
    | _ProcessOutputResult
    | _StreamOperator
)
