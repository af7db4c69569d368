"""The hooks that run between chunks as operators, each usable alone in `pipe()`.

A stage of a step is an observable of what the hook looks at: conversations, model calls, answers,
tool results. The run itself calls the same functions of `_hooks`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from reactivex import Observable

from streampipe.abort import TripWire
from streampipe.chunks import Chunk, ToolCall, ToolResult
from streampipe.contracts import (
    ErrorProcessor,
    InputProcessor,
    OutputProcessor,
    OutputResult,
    StepResult,
)
from streampipe.errors import ModelError
from streampipe.messages import MessageList
from streampipe.operators import _hooks as hooks
from streampipe.operators._bridge import flowable
from streampipe.operators._core import Emit, Escape, Flowable, run_stage
from streampipe.operators._hooks import ModelAnswer, ModelCall, StepInput
from streampipe.operators._operator import operator
from streampipe.operators._options import checked_count, checked_list
from streampipe.operators._recover import catch_api_error
from streampipe.operators._scope import Bound, Scope, bind, check_processors

T = TypeVar("T")
Hook = Callable[[Sequence[Bound], T], Awaitable[None]]


def _staged(
    source: Observable[T],
    processors: Iterable[Any],
    name: str,
    messages: MessageList | None,
    hook: Hook[T],
) -> Flowable[T]:
    """Every element through a hook of the processors; one state per processor and subscription."""
    chain = checked_list(f"ops.{name}", processors)
    check_processors(chain, (name,), f"ops.{name}")

    async def run(emit: Emit[T]) -> None:
        scope = Scope(message_list=MessageList() if messages is None else messages)
        bounds = bind(chain, scope)

        stage = object()

        async def through(element: T) -> None:
            if isinstance(element, MessageList):
                scope.message_list = element
            try:
                await hook(bounds, element)
            except (Exception, TripWire) as error:
                raise Escape(error, stage) from error
            wait = emit(element)
            if wait is not None:
                await wait

        await run_stage(flowable(source), through, stage)

    return Flowable(run)


@operator
def process_input(
    source: Observable[MessageList],
    processors: Iterable[InputProcessor],
) -> Flowable[MessageList]:
    """Run each conversation through the `process_input` hooks, in list order.

    Args:
        source: conversations; they are changed in place.
        processors: processors that define `process_input`.

    Returns:
        The conversations. It fails with `TripWire` when a hook calls `abort`, and with
        `ProcessorError` when one raises or returns what its contract does not allow.

    Raises:
        ConfigurationError: an element is no processor with that hook; two share an id.
    """

    async def hook(bounds: Sequence[Bound], _: MessageList) -> None:
        await hooks.process_input(bounds)

    return _staged(source, processors, "process_input", None, hook)


@operator
def process_input_step(
    source: Observable[StepInput],
    processors: Iterable[InputProcessor],
    *,
    messages: MessageList | None = None,
    resolve: Callable[[StepInput], None] = lambda _: None,
) -> Flowable[StepInput]:
    """Run what a step is about to ask through the `process_input_step` hooks.

    Args:
        source: step inputs; they are changed in place.
        processors: processors that define `process_input_step`.
        messages: the conversation that the hooks see.
        resolve: brings overrides into their final form, such as a router id into a model.

    Returns:
        The step inputs. It fails as `process_input` does.

    Raises:
        ConfigurationError: as `process_input`.
    """

    async def hook(bounds: Sequence[Bound], step: StepInput) -> None:
        await hooks.process_input_step(bounds, step, resolve)

    return _staged(source, processors, "process_input_step", messages, hook)


@operator
def process_llm_request(
    source: Observable[ModelCall],
    processors: Iterable[InputProcessor],
    *,
    messages: MessageList | None = None,
) -> Flowable[ModelCall]:
    """Run model calls through the `process_llm_request` hooks: new prompt, or a replayed answer.

    Returns:
        The calls, with `replay` set where a hook gave a response. It fails as `process_input`.

    Raises:
        ConfigurationError: as `process_input`.
    """
    return _staged(source, processors, "process_llm_request", messages, hooks.process_llm_request)


@operator
def process_llm_response(
    source: Observable[ModelAnswer],
    processors: Iterable[InputProcessor],
    *,
    messages: MessageList | None = None,
) -> Flowable[ModelAnswer]:
    """Show finished model answers to the `process_llm_response` hooks; they pass unchanged.

    Returns:
        The answers. It fails as `process_input` does.

    Raises:
        ConfigurationError: as `process_input`.
    """
    return _staged(source, processors, "process_llm_response", messages, hooks.process_llm_response)


@operator
def process_api_error(
    source: Observable[Chunk],
    processors: Iterable[ErrorProcessor],
    *,
    max_retries: int = 10,
    messages: MessageList | None = None,
) -> Observable[Chunk]:
    """On a `ModelError` of the source ask the `process_api_error` hooks whether to try again.

    Args:
        source: a cold stream of chunks.
        processors: processors that define `process_api_error`.
        max_retries: how many attempts may follow the first.
        messages: the conversation that the hooks see.

    Returns:
        The chunks of all attempts, kept apart as `catch_api_error` does. It fails with the
        `ModelError` when no hook asks for a retry, and as `process_input` for what hooks do.

    Raises:
        ConfigurationError: as `process_input`.
    """
    chain = checked_list("ops.process_api_error", processors)
    check_processors(chain, ("process_api_error",), "ops.process_api_error")
    checked_count("ops.process_api_error", "max_retries", max_retries, least=0)

    async def run(emit: Emit[Chunk]) -> None:
        scope = Scope(message_list=MessageList() if messages is None else messages)
        bounds = bind(chain, scope)

        async def handler(error: ModelError, attempt: int) -> bool:
            scope.retry_count = attempt
            asked = await hooks.process_api_error(bounds, error)
            return asked is not None and attempt < max_retries

        await flowable(source.pipe(catch_api_error(handler))).into(emit)

    return Flowable(run)


@operator
def process_output_step(
    source: Observable[StepResult],
    processors: Iterable[OutputProcessor],
    *,
    messages: MessageList | None = None,
) -> Flowable[StepResult]:
    """Run finished steps through the `process_output_step` hooks, before their tools start.

    Returns:
        The steps. It fails as `process_input` does.

    Raises:
        ConfigurationError: as `process_input`.
    """
    return _staged(source, processors, "process_output_step", messages, hooks.process_output_step)


@operator
def process_tool_result(
    source: Observable[Chunk],
    processors: Iterable[OutputProcessor],
    *,
    messages: MessageList | None = None,
) -> Flowable[Chunk]:
    """Run `tool-result` chunks through the `process_tool_result` hooks; others pass.

    A result that a hook replaces by `message_list.update_tool_invocation` is what the chunk shows,
    so `messages` should hold the call. The chunk that came is changed, not copied.

    Returns:
        The chunks. It fails as `process_input` does.

    Raises:
        ConfigurationError: as `process_input`.
    """

    async def hook(bounds: Sequence[Bound], chunk: Chunk) -> None:
        if not isinstance(chunk, ToolResult):
            return
        call = ToolCall(chunk.tool_call_id, chunk.tool_name, chunk.args)
        call.provider_executed = chunk.provider_executed
        conversation = bounds[0].scope.message_list if bounds else MessageList()
        conversation.update_tool_invocation(chunk.tool_call_id, result=chunk.result)
        await hooks.process_tool_result(bounds, call, chunk.result)
        part = conversation.tool_invocation(chunk.tool_call_id)
        if part is not None:
            chunk.result = part.result

    return _staged(source, processors, "process_tool_result", messages, hook)


@operator
def process_output_result(
    source: Observable[OutputResult],
    processors: Iterable[OutputProcessor],
    *,
    messages: MessageList | None = None,
) -> Flowable[OutputResult]:
    """Run finished runs through the `process_output_result` hooks.

    Returns:
        The results. It fails as `process_input` does.

    Raises:
        ConfigurationError: as `process_input`.
    """
    hook = hooks.process_output_result
    return _staged(source, processors, "process_output_result", messages, hook)
