"""One turn of the loop: what asks for it, and what its stages tell each other."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from reactivex.subject import Subject

from streampipe.agent._output import StructuredOutput, output_of
from streampipe.agent._spec import RunSpec, mapping_of, model_of, names_of, tool_choice_of
from streampipe.chunks import FinishChunk, ToolCall
from streampipe.contracts import StepResult
from streampipe.errors import CallbackError, ConfigurationError
from streampipe.messages import Message, ToolInvocationPart
from streampipe.operators._hooks import ModelAnswer, StepInput
from streampipe.tools import tools_by_name


@dataclass(slots=True, frozen=True)
class StepRequest:
    """One turn of the loop; `feedback` is what a rejected attempt is told."""

    number: int
    attempt: int = 0
    feedback: str = ""


class Turn:
    """What the stages of one turn tell each other."""

    __slots__ = ("again", "answer", "calls", "finish", "output", "request", "tools")

    def __init__(self, request: StepRequest, again: Subject[StepRequest]) -> None:
        self.request = request
        self.again = again
        self.tools: dict[str, Any] = {}
        self.calls: list[ToolCall] = []
        self.answer: ModelAnswer | None = None
        self.finish = FinishChunk()
        self.output: StructuredOutput | None = None


class PrepareStep:
    """The `prepare_step` callback as the last input processor."""

    id = "prepare_step"

    def __init__(self, callback: Callable[..., Any]) -> None:
        self.process_input_step = callback


def prepare_step(callback: Callable[..., Any] | None) -> list[Any]:
    """The callback as a list of processors, empty without one."""
    return [] if callback is None else [PrepareStep(callback)]


def resolve_step(step: StepInput) -> None:
    """Bring a step's overrides into their final form.

    Raises:
        ConfigurationError: what was given cannot be the model, a tool or an option.
    """
    step.model = model_of(step.model, "step")
    output_of(step.structured_output)  # refused here, where the processor is known
    step.tools = tools_by_name(step.tools)
    step.active_tools = names_of("active_tools", step.active_tools)
    step.tool_choice = tool_choice_of(step.tool_choice)
    step.model_settings = mapping_of("model_settings", step.model_settings)
    step.provider_options = mapping_of("provider_options", step.provider_options)


def active_tools(step: StepInput) -> dict[str, Any]:
    """The tools that the model is shown.

    Raises:
        ConfigurationError: `active_tools` names one that the step does not have.
    """
    if step.active_tools is None:
        return step.tools
    for name in step.active_tools:
        if name not in step.tools:
            known = ", ".join(step.tools) or "none"
            msg = f"active_tools: the step has no tool {name!r}; it has: {known}"
            raise ConfigurationError(msg)
    return {name: step.tools[name] for name in step.active_tools}


def calls_to_run(step: StepResult, message: Message) -> list[ToolCall]:
    """The calls of the caller's tools, with their arguments as hooks have left them.

    Calls and parts go together in order, so that two calls of one id are not the last one twice.
    """
    parts: dict[str, deque[ToolInvocationPart]] = {}
    for part in message.parts:
        if isinstance(part, ToolInvocationPart) and part.state == "call":
            parts.setdefault(part.tool_call_id, deque()).append(part)
    return [
        replace(call, args=parts[call.tool_call_id].popleft().args)
        for call in step.tool_calls
        if not call.provider_executed and parts.get(call.tool_call_id)
    ]


def is_answer(step: StepResult) -> bool:
    """Whether a step calls no tool of the caller's; what the provider ran itself is no matter."""
    return all(call.provider_executed for call in step.tool_calls)


async def goes_on(spec: RunSpec, steps: list[StepResult]) -> bool:
    """Whether another step may follow the accepted ones.

    Raises:
        CallbackError: a condition of `stop_when` raised.
    """
    if len(steps) >= spec.max_steps:
        return False
    for condition in spec.stop_when:
        try:
            stop = condition(steps)
            if inspect.isawaitable(stop):
                stop = await stop
        except Exception as error:
            raise CallbackError("stop_when", error) from error
        if stop:
            return False
    return True
