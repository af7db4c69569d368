"""What a step and a run come to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streampipe.chunks import (
    FileChunk,
    FinishReason,
    ResponseMetadata,
    SourceChunk,
    ToolCall,
    ToolErrorChunk,
    ToolResult,
    TripwireData,
    Usage,
)
from streampipe.messages import Message

__all__ = ["OutputResult", "RunResult", "StepResult"]


@dataclass(slots=True)
class StepResult:
    """An accepted step, as the client saw it."""

    step_number: int = 0
    text: str = ""
    reasoning: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list[ToolCall])
    tool_results: list[ToolResult] = field(default_factory=list[ToolResult])
    tool_errors: list[ToolErrorChunk] = field(default_factory=list[ToolErrorChunk])
    sources: list[SourceChunk] = field(default_factory=list[SourceChunk])
    files: list[FileChunk] = field(default_factory=list[FileChunk])
    finish_reason: FinishReason = "stop"
    usage: Usage = field(default_factory=Usage)
    warnings: list[str] = field(default_factory=list[str])
    response: ResponseMetadata | None = None
    provider_metadata: dict[str, Any] | None = None
    object: Any = None


@dataclass(slots=True)
class OutputResult:
    """The run so far, as `process_output_result` is given it."""

    text: str
    usage: Usage
    finish_reason: FinishReason
    steps: list[StepResult]


@dataclass(slots=True)
class RunResult:
    """A whole run.

    Attributes:
        text: the text of the accepted steps, joined; after `process_output_result` rewrote the
            messages, the text of those.
        reasoning: the reasoning of the accepted steps, joined.
        usage: the sum over every model call of the run, rejected attempts included.
        finish_reason: `stop`, `length`, `tool-calls`, `content-filter`, `error`, `other` (blocked)
            or `aborted`.
        steps: the accepted steps.
        tool_calls, tool_results: those of the accepted steps.
        messages: exactly what would be stored: the response messages.
        object: the validated structured output: the instance when `structured_output` is a type,
            the JSON value when it is a schema.
        tripwire: who blocked the run and why, if it was.
        error: what the run failed with, if it did.
        retries: how often something was tried again: by processors, for an answer that broke or did
            not fit, and by the model's own client.
        warnings: what models said they could not take, over all steps.
        response: what the provider said of its last response.
    """

    run_id: str
    text: str = ""
    reasoning: str = ""
    usage: Usage = field(default_factory=Usage)
    finish_reason: FinishReason = "stop"
    steps: list[StepResult] = field(default_factory=list[StepResult])
    tool_calls: list[ToolCall] = field(default_factory=list[ToolCall])
    tool_results: list[ToolResult] = field(default_factory=list[ToolResult])
    messages: list[Message] = field(default_factory=list[Message])
    object: Any = None
    tripwire: TripwireData | None = None
    error: BaseException | None = None
    retries: int = 0
    warnings: list[str] = field(default_factory=list[str])
    response: ResponseMetadata | None = None
