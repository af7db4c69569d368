"""What a run is made from: the agent's options, the call's overrides, checked and resolved."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from streampipe.abort import AbortSignal
from streampipe.agent._options import StopWhen
from streampipe.agent._output import output_of
from streampipe.contracts import (
    ERROR_HOOKS,
    HOOKS,
    INPUT_HOOKS,
    OUTPUT_HOOKS,
    Model,
    ModelRequest,
    RequestContext,
    ToolSpec,
)
from streampipe.contracts.processor import STREAM_OPERATOR
from streampipe.errors import CallbackError, ConfigurationError
from streampipe.messages import Message, MessageList, message_from
from streampipe.models import resolve_model
from streampipe.models._catalog import provider_of
from streampipe.operators._compose import Pipeline
from streampipe.operators._core import HIGH_WATER
from streampipe.operators._operator import Configured, check_called
from streampipe.operators._record import NO_RECORDER, NoRecorder, Recorder, check_recorder
from streampipe.operators._scope import check_processor_shape
from streampipe.tools import tools_by_name
from streampipe.tracing import NoTracing, Tracing, tracing_of

MAX_STEPS = 10
TOOL_CONCURRENCY = 10
ERROR_RETRIES = 10  # the retry budget when error processors are there and none is set


@dataclass(slots=True, kw_only=True)
class RunSpec:
    """Everything a run needs, valid."""

    agent: Any
    messages: list[Message]
    system: list[str]
    model: Model
    tools: dict[str, Any]
    active_tools: list[str] | None
    tool_choice: Any
    input_processors: list[Any]
    output_processors: list[Any]
    error_processors: list[Any]
    max_retries: int
    max_steps: int
    stop_when: list[StopWhen]
    tool_concurrency: int
    high_water: int
    model_settings: dict[str, Any]
    provider_options: dict[str, Any]
    structured_output: Any
    prepare_step: Callable[..., Any] | None
    request_context: RequestContext
    abort_signal: AbortSignal
    thread: str | None
    resource: str | None
    recorder: Recorder | NoRecorder
    tracing: Tracing | NoTracing


def resolve(agent: Any, prompt: Any, options: Mapping[str, Any]) -> RunSpec:
    """Check the options and bring them into their final form.

    Raises:
        ConfigurationError: an option is wrong; the message names it and what to do.
        WireError: the prompt holds what is no message.
    """
    get = options.get
    context = get("request_context")
    if not isinstance(context, RequestContext):
        context = RequestContext(mapping_of("request_context", context))
    if get("memory") is not None:
        msg = "memory is not there yet: this version keeps no threads; leave memory= out"
        raise ConfigurationError(msg)
    lists = {
        name: processor_list(get(name, None), context, name, hooks) for name, hooks in LISTS.items()
    }
    check_ids(lists)
    number_processors(lists)
    retries = get("max_processor_retries")
    if retries is None:
        retries = ERROR_RETRIES if lists["error_processors"] else 0
    stop_when = get("stop_when")
    if stop_when is not None and not isinstance(stop_when, list | tuple):
        stop_when = [stop_when]
    return RunSpec(
        agent=agent,
        messages=input_messages(prompt),
        system=instructions_of(get("instructions"), context),
        model=model_of(get("model"), agent.id),
        tools=tools_by_name(get("tools")),
        active_tools=names_of("active_tools", get("active_tools")),
        tool_choice=tool_choice_of(get("tool_choice")),
        input_processors=lists["input_processors"],
        output_processors=lists["output_processors"],
        error_processors=lists["error_processors"],
        max_retries=_whole("max_processor_retries", retries, 0),
        max_steps=_whole("max_steps", get("max_steps", MAX_STEPS), 1),
        stop_when=[_function("stop_when", condition) for condition in stop_when or ()],
        tool_concurrency=_whole("tool_concurrency", get("tool_concurrency", TOOL_CONCURRENCY), 1),
        high_water=_whole("high_water", get("high_water", HIGH_WATER), 1),
        model_settings=mapping_of("model_settings", get("model_settings")),
        provider_options=mapping_of("provider_options", get("provider_options")),
        structured_output=get("structured_output"),
        prepare_step=_function("prepare_step", get("prepare_step"), optional=True),
        request_context=context,
        abort_signal=_signal(get("abort_signal")),
        thread=get("thread"),
        resource=get("resource"),
        recorder=_recorder(get("recorder")),
        tracing=tracing_of(get("tracing")),
    )


def _recorder(value: Any) -> Recorder | NoRecorder:
    if value is None:
        return NO_RECORDER
    check_recorder(value, "agent")
    return value  # type: ignore[no-any-return]  # just checked


def _whole(name: str, value: Any, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        msg = f"{name} must be a whole number of at least {least}, not {value!r}"
        raise ConfigurationError(msg)
    return value


def mapping_of(name: str, value: Any) -> dict[str, Any]:
    """The option `name` as a dict of its own; empty if nothing is said.

    Raises:
        ConfigurationError: it is no dict.
    """
    if value is not None and not isinstance(value, Mapping):
        raise ConfigurationError(f"{name} must be a dict, not {value!r:.80}")
    return dict(value or {})


def names_of(name: str, value: Any) -> list[str] | None:
    """The option `name` as a list of names; None if nothing is said.

    Raises:
        ConfigurationError: it is no list of strings.
    """
    if value is None:
        return None
    if not isinstance(value, list | tuple | set) or not all(isinstance(n, str) for n in value):
        raise ConfigurationError(f"{name} must be a list of names, not {value!r:.80}")
    return list(value)


def _function(name: str, value: Any, *, optional: bool = False) -> Any:
    if not callable(value) and not (optional and value is None):
        raise ConfigurationError(f"{name} must be a function, not {value!r:.80}")
    return value


def _signal(value: Any) -> AbortSignal:
    if value is not None and not isinstance(value, AbortSignal):
        raise ConfigurationError(f"abort_signal must be an AbortSignal, not {value!r:.80}")
    return value or AbortSignal()


def tool_choice_of(value: Any) -> Any:
    """How free the model is in calling tools; `auto` if nothing is said.

    Raises:
        ConfigurationError: it is none of the four ways.
    """
    named = isinstance(value, Mapping) and list(value) == ["tool_name"]
    if value is not None and not named and value not in ("auto", "none", "required"):
        msg = (
            "tool_choice must be 'auto', 'none', 'required' or {'tool_name': name}, "
            f"not {value!r:.80}"
        )
        raise ConfigurationError(msg)
    return value or "auto"


LISTS = {
    "input_processors": INPUT_HOOKS,
    "output_processors": (*OUTPUT_HOOKS, STREAM_OPERATOR),
    "error_processors": ERROR_HOOKS,
}


def is_operator(element: Any) -> bool:
    """Whether an element of `output_processors` is an Rx operator rather than a processor."""
    hooks = (*HOOKS, STREAM_OPERATOR)
    return callable(element) and not any(hasattr(element, hook) for hook in hooks)


def processor_list(
    value: Any,
    context: RequestContext | None,
    where: str,
    hooks: tuple[str, ...],
) -> list[Any]:
    """A list of processors, or a function of the request context that returns one.

    Raises:
        ConfigurationError: it is neither, or an element is no processor for this list.
    """
    check_no_operator(value, where)
    if callable(value):
        value = returned_by(value, context, where)
        where = f"{where} (returned by the function)"
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        msg = (
            f"{where} must be a list, or a function of request_context returning one, "
            f"not {value!r:.80}"
        )
        raise ConfigurationError(msg)
    for index, element in enumerate(value):
        place = f"{where}[{index}]"
        if isinstance(element, type):
            check_processor_shape(element, hooks, place)
        check_called(element, place)
        _check_no_slip(element, place)
        if STREAM_OPERATOR in hooks and is_operator(element):
            continue
        check_processor_shape(element, hooks, place)
    return list(value)


def _check_no_slip(element: Any, place: str) -> None:
    """Refuse what is easily put in a list of processors, and says nothing there.

    Raises:
        ConfigurationError: it is a list, the name of a processor, or an async function; the message
            says what to write.
    """
    hint = None
    if isinstance(element, list | tuple):
        hint = "is a list in the list; write its elements out: [*first, *second]"
    elif isinstance(element, str):
        hint = "is a text; processors_from of streampipe.processors makes processors of one"
    elif inspect.iscoroutinefunction(element):
        hint = "is an async function; Guard of streampipe.processors makes a processor of one"
    if hint is not None:
        raise ConfigurationError(f"{place}: {element!r:.80} {hint}")


def check_no_operator(value: Any, where: str) -> None:
    """Refuse an operator where a list of them, or a function that returns one, is meant.

    Raises:
        ConfigurationError: it is one of ours; the message says what to write.
    """
    check_called(value, where)
    if isinstance(value, Configured | Pipeline):
        raise ConfigurationError(f"{where} must be a list: write {where}=[{value!r}]")


def returned_by(function: Callable[[Any], Any], context: Any, option: str) -> Any:
    """What the function given as an option returns for this call.

    Raises:
        CallbackError: it raised.
        ConfigurationError: it is a coroutine function.
    """
    try:
        value = function(context)
    except Exception as error:
        raise CallbackError(option, error) from error
    if inspect.iscoroutine(value):
        value.close()
        msg = f"{option}: the function returned a coroutine; write 'def', not 'async def'"
        raise ConfigurationError(msg)
    return value


def check_ids(lists: Mapping[str, Iterable[Any]]) -> None:
    """Refuse two different processors with one id: their states would collide.

    Raises:
        ConfigurationError: naming the id and both places.
    """
    seen: dict[str, tuple[Any, str]] = {}
    for name, processors in lists.items():
        for processor in processors:
            if is_operator(processor):
                continue
            other, place = seen.setdefault(processor.id, (processor, name))
            if other is not processor:
                msg = (
                    f"two processors with id {processor.id!r} (in {place} and {name}): "
                    "their states would collide; give each its own id"
                )
                raise ConfigurationError(msg)


def number_processors(lists: Mapping[str, Iterable[Any]]) -> None:
    """Tell every processor that has the attribute its place in the list it was put in."""
    for processors in lists.values():
        for index, processor in enumerate(processors):
            if hasattr(processor, "processor_index"):
                processor.processor_index = index


def input_messages(prompt: Any) -> list[Message]:
    """What the user gave, as messages.

    Raises:
        WireError: an element is no message.
        ConfigurationError: there is none.
    """
    if isinstance(prompt, MessageList):
        messages = list(prompt.all)
    elif isinstance(prompt, list | tuple):
        messages = [message_from(item) for item in prompt]
    else:
        messages = [message_from(prompt)]
    if not messages:
        msg = "the prompt is empty: give a string, a message or a list of messages"
        raise ConfigurationError(msg)
    return messages


def instructions_of(value: Any, context: RequestContext) -> list[str]:
    """The instructions as system texts: a string, a list of them, or a function of the context.

    Raises:
        ConfigurationError: it is none of these.
    """
    if callable(value):
        value = returned_by(value, context, "instructions")
    if value is None:
        return []
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        msg = f"instructions must be a string or a list of strings, not {value!r:.80}"
        raise ConfigurationError(msg)
    return [text for text in texts if text]


def model_of(value: Any, agent_id: str) -> Model:
    """A model, or a router id such as `openai/gpt-5-mini`.

    Raises:
        ConfigurationError: there is none, the prefix is unknown, or its API key is missing.
    """
    check_model(value, agent_id)
    model: Model = resolve_model(value) if isinstance(value, str) else value
    return model


def check_request(options: Mapping[str, Any]) -> None:
    """Hold an agent's tools, schema and settings to what its model can be sent, if that can tell.

    Raises:
        ConfigurationError: the model's protocol has no form for one of them, or it is none.
    """
    tools = tools_by_name(options.get("tools"))
    output = output_of(options.get("structured_output"))
    check = getattr(options.get("model"), "check_request", None)
    if callable(check):
        check(
            ModelRequest(
                [],
                [ToolSpec(t.name, t.description, t.parameters) for t in tools.values()],
                tool_choice_of(options.get("tool_choice")),
                mapping_of("model_settings", options.get("model_settings")),
                mapping_of("provider_options", options.get("provider_options")),
                None if output is None else output.schema,
            )
        )


def check_model(value: Any, agent_id: str) -> None:
    """Refuse what is no model; a router id is looked up, but not made: that may need a key.

    Raises:
        ConfigurationError: it is neither a model nor a router id of a known provider.
    """
    if isinstance(value, str):
        provider_of(value)
        return
    if isinstance(value, type) or not callable(getattr(value, "stream", None)):
        msg = (
            f"agent {agent_id!r}: model must be a router id such as 'openai/gpt-5-mini' "
            f"or an object with stream(request), not {value!r:.80}"
        )
        raise ConfigurationError(msg)
