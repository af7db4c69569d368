"""Calling the hooks that run between chunks, and applying what they return.

One function a hook: it calls every bound processor that defines the hook, in list order, each on
what the one before it left. The run uses these, and so do the operators of `_lift`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from streampipe.chunks import Chunk, ToolCall, Usage, chunk_from_wire
from streampipe.contracts import (
    UNSET,
    Model,
    ModelRequest,
    OutputResult,
    ProcessAPIErrorArgs,
    ProcessAPIErrorResult,
    ProcessInputArgs,
    ProcessInputResult,
    ProcessInputStepArgs,
    ProcessInputStepResult,
    ProcessLLMRequestArgs,
    ProcessLLMRequestResult,
    ProcessLLMResponseArgs,
    ProcessOutputResultArgs,
    ProcessOutputStepArgs,
    ProcessToolResultArgs,
    StepResult,
    Tool,
    ToolChoice,
)
from streampipe.errors import MessageListError, ModelError, WireError
from streampipe.messages import (
    Message,
    MessageList,
    Source,
    prompt_message_from,
)
from streampipe.operators._scope import Bound, Scope


@dataclass(slots=True)
class StepInput:
    """What a step is about to ask of a model; `process_input_step` may override any of it."""

    model: Any
    tools: dict[str, Tool] = field(default_factory=dict[str, Tool])
    active_tools: list[str] | None = None
    tool_choice: ToolChoice = "auto"
    provider_options: dict[str, Any] = field(default_factory=dict[str, Any])
    model_settings: dict[str, Any] = field(default_factory=dict[str, Any])
    structured_output: Any = None


@dataclass(slots=True)
class ModelCall:
    """A model about to be called; with `replay` the chunks stand for its answer."""

    model: Model
    request: ModelRequest
    replay: list[Chunk] | None = None


_OVERRIDES = tuple(
    f.name
    for f in fields(ProcessInputStepResult)
    if f.name not in ("messages", "message_list", "system_messages")
)


def typed_result(bound: Bound, hook: str, result: Any, cls: Callable[..., Any]) -> Any:
    """A hook's result as `cls`, from a dict of its fields or itself.

    Raises:
        ProcessorError: it is neither, or has a key that `cls` does not know.
    """
    if isinstance(result, Mapping):
        known = [f.name for f in fields(cls)]  # type: ignore[arg-type]  # a dataclass
        for key in result:
            if key not in known:
                raise bound.error(hook, f"returned unknown key {key!r}; known: {', '.join(known)}")
        return cls(**result)
    if isinstance(result, cls):  # type: ignore[arg-type]  # a class
        return result
    wanted = getattr(cls, "__name__", "")
    raise bound.error(hook, f"returned {type(result).__name__}; return {wanted}, a dict or None")


def apply_messages(
    bound: Bound,
    hook: str,
    result: Any,
    phase: Sequence[Message],
    source: Source,
) -> None:
    """Make the message list what a hook returned: a list of messages, or the list itself.

    Raises:
        ProcessorError: a foreign `MessageList`, no messages, or a message with an unknown key.
    """
    messages = bound.scope.message_list
    if result is messages:
        return
    if isinstance(result, MessageList):
        raise bound.error(
            hook,
            "returned another MessageList; change args.message_list and return that",
        )
    if not isinstance(result, Sequence) or isinstance(result, str | bytes):
        raise bound.error(
            hook,
            f"returned {type(result).__name__}; return a list of messages, "
            "args.message_list or None",
        )
    try:
        messages.reconcile(phase, result, source)
    except (WireError, MessageListError) as error:
        raise bound.error(hook, str(error)) from error


def apply_system(bound: Bound, hook: str, system: Any) -> None:
    """Replace the step's system messages.

    Raises:
        ProcessorError: they are no list, or an element is no system message.
    """
    messages = _read(bound, hook, "system_messages", system, prompt_message_from)
    bound.scope.message_list.system_messages = messages


def _read(bound: Bound, hook: str, key: str, values: Any, read: Callable[[Any], Any]) -> list[Any]:
    """What a hook returned under `key`, element by element.

    Raises:
        ProcessorError: it is no list, or an element cannot be read.
    """
    if not isinstance(values, list | tuple):
        raise bound.error(hook, f"{key!r} must be a list, not {values!r:.80}")
    try:
        return [read(value) for value in values]
    except WireError as error:
        raise bound.error(hook, str(error)) from error


def conversation(scope: Scope) -> list[Message]:
    """The plain list of messages that most hooks get."""
    return list(scope.message_list.all)


async def process_input(bounds: Sequence[Bound]) -> None:
    """Run `process_input`, once before the loop."""
    hook = "process_input"
    for bound in bounds:
        if not bound.has(hook):
            continue
        scope = bound.scope
        phase = conversation(scope)
        args = ProcessInputArgs(
            **bound.common(),
            messages=list(phase),
            message_list=scope.message_list,
            system_messages=list(scope.message_list.system_messages),
        )
        result = await bound.call(hook, args)
        if result is None:
            raise bound.error(
                hook,
                "returned None; return the messages, args.message_list or both in a dict",
            )
        if isinstance(result, Mapping | ProcessInputResult):
            both = typed_result(bound, hook, result, ProcessInputResult)
            if both.messages is not UNSET:
                apply_messages(bound, hook, both.messages, phase, "input")
            if both.system_messages is not UNSET:
                apply_system(bound, hook, both.system_messages)
        else:
            apply_messages(bound, hook, result, phase, "input")


async def process_input_step(
    bounds: Sequence[Bound],
    step: StepInput,
    resolve: Callable[[StepInput], None],
) -> None:
    """Run `process_input_step`, before every model call; `step` is changed in place.

    Args:
        bounds: the input processors, then whatever else has the hook (`prepare_step`).
        step: what the step starts from.
        resolve: brings overrides into their final form (a router id into a model, functions into
            tools); raises `ConfigurationError` for what cannot be.
    """
    hook = "process_input_step"
    for bound in bounds:
        if not bound.has(hook):
            continue
        scope = bound.scope
        phase = conversation(scope)
        args = ProcessInputStepArgs(
            **bound.common(),
            messages=list(phase),
            message_list=scope.message_list,
            system_messages=list(scope.message_list.system_messages),
            step_number=scope.step_number,
            steps=scope.steps,
            model=step.model,
            tools=dict(step.tools),
            active_tools=list(step.tools) if step.active_tools is None else list(step.active_tools),
            tool_choice=step.tool_choice,
            provider_options=dict(step.provider_options),
            model_settings=dict(step.model_settings),
            structured_output=step.structured_output,
        )
        result = await bound.call(hook, args)
        if result is None:
            continue
        if isinstance(result, Mapping | ProcessInputStepResult):
            overrides = typed_result(bound, hook, result, ProcessInputStepResult)
            _override(bound, hook, overrides, phase, step)
            try:
                resolve(step)
            except Exception as error:
                raise bound.error(hook, str(error)) from error
        else:
            apply_messages(bound, hook, result, phase, "input")


def _override(
    bound: Bound,
    hook: str,
    overrides: ProcessInputStepResult,
    phase: list[Message],
    step: StepInput,
) -> None:
    if overrides.messages is not UNSET and overrides.message_list is not UNSET:
        raise bound.error(hook, "returned both 'messages' and 'message_list'; return one of them")
    for name in _OVERRIDES:
        value = getattr(overrides, name)
        if value is not UNSET:
            setattr(step, name, value)
    if overrides.messages is not UNSET:
        apply_messages(bound, hook, overrides.messages, phase, "input")
    if overrides.message_list is not UNSET:
        apply_messages(bound, hook, overrides.message_list, phase, "input")
    if overrides.system_messages is not UNSET:
        apply_system(bound, hook, overrides.system_messages)


async def process_llm_request(bounds: Sequence[Bound], call: ModelCall) -> None:
    """Run `process_llm_request`; the first to give a response ends the chain."""
    hook = "process_llm_request"
    for bound in bounds:
        if not bound.has(hook):
            continue
        scope = bound.scope
        args = ProcessLLMRequestArgs(
            **bound.common(),
            prompt=call.request.prompt,
            model=call.model,
            message_list=scope.message_list,
            step_number=scope.step_number,
            steps=scope.steps,
        )
        result = await bound.call(hook, args)
        if result is None:
            continue
        answer = typed_result(bound, hook, result, ProcessLLMRequestResult)
        if answer.prompt is not UNSET:
            call.request.prompt = _read(bound, hook, "prompt", answer.prompt, prompt_message_from)
        if answer.response is not UNSET and answer.response is not None:
            call.replay = _read(bound, hook, "response", answer.response, _chunk)
            return


def _chunk(value: Any) -> Chunk:
    return value if isinstance(value, Chunk) else chunk_from_wire(value)


@dataclass(slots=True)
class ModelAnswer:
    """A model's finished answer, as `process_llm_response` is given it."""

    call: ModelCall
    chunks: list[Chunk] = field(default_factory=list[Chunk])
    warnings: list[str] = field(default_factory=list[str])
    raw_response: Any = None


async def process_llm_response(bounds: Sequence[Bound], answer: ModelAnswer) -> None:
    """Run `process_llm_response`: side effects only."""
    hook = "process_llm_response"
    for bound in bounds:
        if not bound.has(hook):
            continue
        scope = bound.scope
        args = ProcessLLMResponseArgs(
            **bound.common(),
            chunks=answer.chunks,
            model=answer.call.model,
            step_number=scope.step_number,
            steps=scope.steps,
            from_cache=answer.call.replay is not None,
            warnings=answer.warnings,
            request=answer.call.request,
            raw_response=answer.raw_response,
        )
        if await bound.call(hook, args) is not None:
            raise bound.error(hook, "returned a value; this hook is for side effects, return None")


async def process_api_error(bounds: Sequence[Bound], error: ModelError) -> Bound | None:
    """Run `process_api_error`; returns the first processor that asks for a retry."""
    hook = "process_api_error"
    for bound in bounds:
        if not bound.has(hook):
            continue
        scope = bound.scope
        args = ProcessAPIErrorArgs(
            **bound.common(),
            error=error,
            messages=conversation(scope),
            message_list=scope.message_list,
            step_number=scope.step_number,
            steps=scope.steps,
        )
        result = await bound.call(hook, args)
        if result is None:
            continue
        retry = typed_result(bound, hook, result, ProcessAPIErrorResult).retry
        if not isinstance(retry, bool):
            raise bound.error(hook, f"'retry' must be True or False, not {retry!r:.80}")
        if retry:
            return bound
    return None


async def process_output_step(bounds: Sequence[Bound], step: StepResult) -> None:
    """Run `process_output_step`: the model has answered, no tool has started."""
    hook = "process_output_step"
    for bound in bounds:
        if not bound.has(hook):
            continue
        scope = bound.scope
        phase = conversation(scope)
        args = ProcessOutputStepArgs(
            **bound.common(),
            messages=list(phase),
            message_list=scope.message_list,
            system_messages=scope.message_list.system_messages,
            step_number=scope.step_number,
            finish_reason=step.finish_reason,
            provider_metadata=step.provider_metadata,
            tool_calls=list(step.tool_calls),
            text=step.text,
            usage=step.usage or Usage(),
            steps=[*scope.steps, step],
        )
        result = await bound.call(hook, args)
        # An empty list is what a guardrail returns that has nothing to change (section 4).
        if result is not None and not (isinstance(result, list) and not result):
            apply_messages(bound, hook, result, phase, "response")


async def process_tool_result(
    bounds: Sequence[Bound],
    call: ToolCall,
    result: Any,
) -> None:
    """Run `process_tool_result`; a new result is read from the message list afterwards."""
    hook = "process_tool_result"
    for bound in bounds:
        if not bound.has(hook):
            continue
        scope = bound.scope
        phase = conversation(scope)
        part = scope.message_list.tool_invocation(call.tool_call_id)
        args = ProcessToolResultArgs(
            **bound.common(),
            messages=list(phase),
            message_list=scope.message_list,
            system_messages=list(scope.message_list.system_messages),
            step_number=scope.step_number,
            tool_name=call.tool_name,
            tool_call_id=call.tool_call_id,
            args=call.args if part is None else part.args,
            result=result if part is None else part.result,
            provider_executed=call.provider_executed,
            steps=scope.steps,
        )
        returned = await bound.call(hook, args)
        if returned is not None:
            apply_messages(bound, hook, returned, phase, "response")


async def process_output_result(bounds: Sequence[Bound], result: OutputResult) -> None:
    """Run `process_output_result`, once after the loop."""
    hook = "process_output_result"
    for bound in bounds:
        if not bound.has(hook):
            continue
        scope = bound.scope
        phase = list(scope.message_list.response)
        args = ProcessOutputResultArgs(
            **bound.common(),
            messages=list(phase),
            message_list=scope.message_list,
            result=result,
        )
        returned = await bound.call(hook, args)
        if returned is not None:
            apply_messages(bound, hook, returned, phase, "response")
