"""The options of an agent and of its calls, by name and type."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict

from streampipe.abort import AbortSignal
from streampipe.contracts import Model, ProcessInputStepArgs, StepResult, ToolChoice
from streampipe.errors import ConfigurationError
from streampipe.operators import Recorder
from streampipe.tracing import Tracing

StopWhen = Callable[[list[StepResult]], Awaitable[bool] | bool]
Processors = Sequence[Any] | Callable[[Any], Sequence[Any]]


class AgentOptions(TypedDict, total=False):
    """What an agent can be given, and every call can override.

    Attributes:
        instructions: system text, a list of them, or a function of the request context.
        model: a `Model`, or a router id such as `"openai/gpt-5-mini"`.
        tools: tools or typed functions; a list, or a dict by name.
        active_tools: names of the tools that the model is shown; None shows all.
        tool_choice: `"auto"`, `"none"`, `"required"` or `{"tool_name": name}`.
        input_processors, output_processors, error_processors: lists, or functions of the request
            context that return one. A list given on a call replaces the agent's.
        max_processor_retries: the budget that aborts with `retry` and `process_api_error` share;
            0 unless set, 10 with error processors.
        max_steps: most steps of a run, 10 unless set.
        stop_when: one condition or a list, called with the accepted steps; any true one ends the
            loop.
        tool_concurrency: most tools of one step that run at once, 10 unless set.
        model_settings: `temperature`, `max_output_tokens`, `top_p`, `stop`, `seed`, ...
        provider_options: what only one provider knows, by provider name.
        structured_output: a pydantic model, dataclass, TypedDict or JSON schema of the answer.
        high_water: how many chunks may lie unread before the model has to wait, 256 unless set.
        recorder: a `Recorder` that notes what every stage does with every chunk.
        tracing: a `Tracing` or True: the run is told in OpenTelemetry spans; False: it is not;
            None: it is where the program has set up a tracer provider.
        memory: refused in this version.
    """

    instructions: str | Sequence[str] | Callable[[Any], str | Sequence[str]] | None
    model: Model | str | None
    tools: Sequence[Any] | Mapping[str, Any] | None
    active_tools: Sequence[str] | None
    tool_choice: ToolChoice
    input_processors: Processors | None
    output_processors: Processors | None
    error_processors: Processors | None
    max_processor_retries: int | None
    max_steps: int
    stop_when: StopWhen | Iterable[StopWhen] | None
    tool_concurrency: int
    model_settings: Mapping[str, Any] | None
    provider_options: Mapping[str, Any] | None
    structured_output: Any
    high_water: int
    recorder: Recorder | None
    tracing: Tracing | bool | None
    memory: Any


class CallOptions(AgentOptions, total=False):
    """What a call can be given: overrides, and what belongs to one call only.

    Attributes:
        prepare_step: a `process_input_step` hook that runs after those of the input processors.
        request_context: values for hooks, tools and functions that make lists.
        abort_signal: stops the run from outside.
        thread, resource: ids that the response messages carry.
    """

    prepare_step: Callable[[ProcessInputStepArgs], Any] | None
    request_context: Mapping[str, Any] | None
    abort_signal: AbortSignal | None
    thread: str | None
    resource: str | None


AGENT_NAMES = frozenset(AgentOptions.__annotations__)
CALL_NAMES = frozenset(CallOptions.__annotations__)


def check_names(given: Mapping[str, Any], names: frozenset[str], where: str) -> None:
    """Refuse an option that does not exist.

    Raises:
        ConfigurationError: naming it, and the one that was probably meant.
    """
    for name in given:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            msg = f"{where}: unknown option {name!r}{hint} (known: {', '.join(sorted(names))})"
            raise ConfigurationError(msg)
