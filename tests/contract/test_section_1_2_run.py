"""Sections 1 and 2 of the contract: when the hooks run, the three lists, and the interface."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe import Agent, Message, Processor
from streampipe.contracts import (
    ERROR_HOOKS,
    HOOKS,
    INPUT_HOOKS,
    OUTPUT_HOOKS,
    ErrorProcessor,
    InputProcessor,
    OutputProcessor,
    ProcessorViolation,
    RequestContext,
)
from streampipe.errors import ConfigurationError, StreampipeError
from streampipe.testing import ScriptedModel, call, fail
from tests.contract.guards import (
    ALL_HOOKS,
    LoggedModel,
    Runner,
    is_text,
    list_of,
    lookup_into,
    processor,
    unchanged,
)

Log = list[Any]


def noting(name: str, log: Log, *, asynchronous: bool = False, hooks: Any = HOOKS) -> Any:
    """A processor that notes `(hook, name)` at each call, of stream chunks at text only."""

    def hook_of(hook: str) -> Any:
        def note(args: Any) -> Any:
            if hook != "process_output_stream" or is_text(args):
                log.append((hook, name))
            return {"retry": True} if hook == "process_api_error" else unchanged(hook, args)

        async def note_later(args: Any) -> Any:
            return note(args)

        return note_later if asynchronous else note

    return processor(name, **{hook: hook_of(hook) for hook in hooks})


def lists(*processors: Any) -> dict[str, Any]:
    """The three options, each with those of the processors that define one of its hooks."""
    return {
        name: [p for p in processors if any(hasattr(p, hook) for hook in hooks)]
        for name, hooks in {
            "input_processors": INPUT_HOOKS,
            "output_processors": OUTPUT_HOOKS,
            "error_processors": ERROR_HOOKS,
        }.items()
    }


# --- 1: the order of a run ----------------------------------------------------------------------

BEFORE = ["process_input_step", "prepare_step", "process_llm_request", "model"]
ANSWERED = ["process_output_stream", "process_llm_response", "process_output_step"]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_1_hooks_run_in_the_order_of_the_diagram(run: Runner, *, asynchronous: bool) -> None:
    """Input once, each step's hooks every step, tools after `process_output_step`, result once."""
    log: Log = []
    everywhere = noting("p", log, asynchronous=asynchronous)
    agent = Agent(model=LoggedModel(ALL_HOOKS, log), tools=[lookup_into(log)], **lists(everywhere))
    await run(agent, prepare_step=lambda _: log.append("prepare_step"))
    assert [entry if isinstance(entry, str) else entry[0] for entry in log] == [
        "process_input",
        *BEFORE,
        "process_output_stream",
        "process_api_error",
        *BEFORE,
        *ANSWERED,
        "tool",
        "process_tool_result",
        *BEFORE,
        *ANSWERED,
        "process_output_result",
    ]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_1_processors_of_one_list_run_in_list_order(
    run: Runner, *, asynchronous: bool
) -> None:
    """For every hook; whether they are sync or async, mixed or not."""
    log: Log = []
    chain = [noting(name, log, asynchronous=asynchronous and name != "b") for name in "abc"]
    await run(Agent(model=ScriptedModel(ALL_HOOKS), tools=[lookup_into([])], **lists(*chain)))
    for hook in HOOKS:
        names = [name for noted, name in log if noted == hook]
        if hook == "process_api_error":
            assert names == ["a"], "the first that asks for a retry wins"
        else:
            assert names
            assert names == ["a", "b", "c"] * (len(names) // 3)


async def test_1_prepare_step_runs_as_the_last_of_process_input_step(run: Runner) -> None:
    """It sees what the input processors made of the step, and has the last word."""
    seen: Log = []

    def prepare(args: Any) -> Any:
        seen.append((args.tool_choice, args.step_number))
        return {"model_settings": {"seed": 2}}

    model = ScriptedModel(["a"])
    first = processor(
        process_input_step=lambda _: {"tool_choice": "none", "model_settings": {"seed": 1}}
    )
    await run(Agent(model=model, input_processors=[first]), prepare_step=prepare)
    assert seen == [("none", 0)]
    assert model.requests[0].settings == {"seed": 2}
    assert model.requests[0].tool_choice == "none"


async def test_1_process_llm_request_runs_for_input_then_for_error_processors(run: Runner) -> None:
    """An error processor that defines it is asked after the input processors."""
    log: Log = []
    error = noting("e", log, hooks=("process_llm_request", "process_api_error"))
    agent = Agent(
        model=ScriptedModel(["a"]),
        input_processors=[noting("i", log, hooks=["process_llm_request"])],
        error_processors=[error],
    )
    await run(agent)
    assert log == [("process_llm_request", "i"), ("process_llm_request", "e")]


async def test_1_process_api_error_runs_for_error_processors_only(run: Runner) -> None:
    """Defined by a processor of another list, it is not called."""
    log: Log = []
    agent = Agent(
        model=ScriptedModel([[fail()]]),
        input_processors=[noting("i", log, hooks=("process_llm_request", "process_api_error"))],
    )
    seen = await run(agent)
    assert isinstance(seen.error, StreampipeError)
    assert log == [("process_llm_request", "i")]


async def test_1_the_loop_goes_back_while_tools_were_called(run: Runner) -> None:
    """A step without a tool call is the last one."""
    script: list[Any] = [
        [call("lookup", {"word": "x"})],
        [call("lookup", {"word": "y"})],
        ["done"],
        ["more"],
    ]
    model = ScriptedModel(script)
    seen = await run(Agent(model=model, tools=[lookup_into([])]))
    assert [step.step_number for step in seen.result.steps] == [0, 1, 2]
    assert model.calls == 3


def stop_sync(steps: Any) -> bool:
    """Stop after the second step."""
    return len(steps) == 2


async def stop_async(steps: Any) -> bool:
    """Stop after the second step."""
    return len(steps) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"max_steps": 2},
        {"stop_when": stop_sync},
        {"stop_when": stop_async},
        {"stop_when": [lambda _: False, stop_sync]},
    ],
)
async def test_1_the_loop_goes_back_while_a_stop_condition_allows(
    run: Runner, options: dict[str, Any]
) -> None:
    """The tools of the last step have run; `process_output_result` follows as ever."""
    log: Log = []
    model = ScriptedModel([[call("lookup", {"word": "x"})]], repeat=True)
    results = [processor(process_output_result=lambda _: log.append("result"))]
    agent = Agent(model=model, tools=[lookup_into(log)], output_processors=results, **options)
    seen = await run(agent)
    assert model.calls == len(seen.result.steps) == 2
    assert log == ["tool", "tool", "result"]
    assert seen.result.finish_reason == "tool-calls"


# --- 1: each on what the one before it returned -------------------------------------------------


@dataclass
class Chain:
    """How a hook shows what it was given, and how it adds a letter to it."""

    read: Callable[[Any], str]
    add: Callable[[Any, str], Any]
    base: str


def joined(messages: Any) -> str:
    """The texts of messages, joined."""
    return "".join(message.text for message in messages)


def seed_of(args: Any) -> str:
    """What earlier processors have put into the settings."""
    return str(args.model_settings.get("user", ""))


CHAINS = {
    "process_input": Chain(
        lambda args: joined(args.messages),
        lambda args, x: [*args.messages, Message.user(x)],
        "hi",
    ),
    "process_input_step": Chain(
        seed_of, lambda args, x: {"model_settings": {"user": seed_of(args) + x}}, ""
    ),
    "process_llm_request": Chain(
        lambda args: joined(args.prompt),
        lambda args, x: {"prompt": [*args.prompt, {"role": "user", "content": x}]},
        "hi",
    ),
    "process_output_stream": Chain(
        lambda args: args.part.text,
        lambda args, x: replace(args.part, text=args.part.text + x),
        "a",
    ),
    "process_output_step": Chain(
        lambda args: joined(args.messages),
        lambda args, x: [*args.messages, Message.assistant(x)],
        "hia",
    ),
    "process_tool_result": Chain(
        lambda args: args.result,
        lambda args, x: (
            args.message_list.update_tool_invocation(args.tool_call_id, result=args.result + x)
            and None
        ),
        "meaning of x",
    ),
    "process_output_result": Chain(
        lambda args: joined(args.messages),
        lambda args, x: [*args.messages, Message.assistant(x)],
        "a",
    ),
}


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("hook", CHAINS)
async def test_1_each_processor_works_on_what_the_one_before_it_returned(
    run: Runner, hook: str, *, asynchronous: bool
) -> None:
    """Three in a row: each is given what the earlier ones have made of it."""
    chain, seen = CHAINS[hook], []

    def link(name: str) -> Any:
        def add(args: Any) -> Any:
            if hook == "process_output_stream" and not is_text(args):
                return args.part
            seen.append(chain.read(args))
            return chain.add(args, name)

        async def add_later(args: Any) -> Any:
            return add(args)

        return processor(name, **{hook: add_later if asynchronous else add})

    script: list[Any] = [["a"]]
    if hook == "process_tool_result":
        script = [[call("lookup", {"word": "x"})], ["b"]]
    options: dict[str, Any] = {list_of(hook): [link(name) for name in "123"]}
    await run(Agent(model=ScriptedModel(script), tools=[lookup_into([])], **options))
    assert seen == [chain.base, chain.base + "1", chain.base + "12"]


# --- 1: the three lists -------------------------------------------------------------------------


async def test_1_one_instance_in_several_lists_is_one_processor_with_one_state(run: Runner) -> None:
    """It is called once where two of its lists meet, and finds its state in all its hooks."""
    states: Log = []

    class Everywhere(Processor):
        id = "everywhere"

        def process_llm_request(self, args: Any) -> None:
            states.append(args.state)

        def process_output_step(self, args: Any) -> None:
            states.append(args.state)

        def process_api_error(self, args: Any) -> Any:
            states.append(args.state)
            return {"retry": True}

    agent = Agent(model=ScriptedModel([[fail()], ["a"]]), **lists(Everywhere()))
    await run(agent)
    assert len(states) == 4, "request, error, request, step"
    assert all(state is states[0] for state in states)


@pytest.mark.parametrize("where", ["agent", "call"])
@pytest.mark.parametrize("hook", ["process_input", "process_output_step", "process_api_error"])
async def test_1_a_list_may_be_a_function_of_request_context(
    run: Runner, hook: str, where: str
) -> None:
    """It is asked at each call, with the call's own context."""
    log: Log = []

    def make(context: RequestContext) -> list[Any]:
        return [noting(context["tenant"], log, hooks=[hook])]

    script: list[Any] = [[fail()], ["a"]] if hook == "process_api_error" else ["a"]
    given: dict[str, Any] = {list_of(hook): make}
    none: dict[str, Any] = {}
    agent = Agent(model=ScriptedModel(script, repeat=True), **(given if where == "agent" else none))
    options = given if where == "call" else none
    await run(agent, request_context={"tenant": "one"}, **options)
    await run(agent, request_context={"tenant": "two"}, **options)
    assert log == [(hook, "one"), (hook, "two")]


@pytest.mark.parametrize("hook", ["process_input", "process_output_step", "process_api_error"])
async def test_1_a_list_given_on_a_call_replaces_the_agents_for_that_call(
    run: Runner, hook: str
) -> None:
    """Only that list, only that call; an empty one leaves none."""
    log: Log = []
    name = list_of(hook)
    script: list[Any] = [[fail()], ["a"]] if hook == "process_api_error" else ["a"]
    own: dict[str, Any] = {name: [noting("agent's", log, hooks=[hook])]}
    agent = Agent(model=ScriptedModel(script, repeat=True), max_processor_retries=1, **own)
    await run(agent, **{name: [noting("call's", log, hooks=[hook])]})
    assert [who for _, who in log] == ["call's"]
    await run(agent)
    assert [who for _, who in log] == ["call's", "agent's"]
    await run(agent, **{name: []})
    assert [who for _, who in log] == ["call's", "agent's"]


# --- 2: the interface ---------------------------------------------------------------------------


class Hybrid:
    """A processor of all three kinds, with no base class."""

    id = "hybrid"

    def process_input_step(self, args: Any) -> None:
        """Note nothing, change nothing."""

    async def process_output_result(self, args: Any) -> None:
        """Note nothing, change nothing."""

    def process_api_error(self, args: Any) -> None:
        """Note nothing, change nothing."""


async def test_2_a_hybrid_satisfies_several_lists(run: Runner) -> None:
    """The typing protocols take it (the type checkers read this), and so do the lists."""
    hybrid = Hybrid()
    first: InputProcessor = hybrid
    second: OutputProcessor = hybrid
    third: ErrorProcessor = hybrid
    agent = Agent(
        model=ScriptedModel(["a"]),
        input_processors=[first],
        output_processors=[second],
        error_processors=[third],
    )
    assert (await run(agent)).result.text == "a"


def test_2_a_processor_has_defaults_to_inherit() -> None:
    """Everything but the id is optional."""
    plain = Processor()
    assert (plain.name, plain.description, plain.processor_index) == (None, None, None)
    assert plain.process_data_parts is False
    assert plain.stream_window is None
    assert plain.on_violation is None
    assert not any(hasattr(plain, hook) for hook in HOOKS)


async def test_2_processor_index_is_set_by_the_run(run: Runner) -> None:
    """The place in its list, told to those that have the attribute."""

    class Numbered(Processor):
        def __init__(self, name: str) -> None:
            self.id = name

        def process_output_step(self, args: Any) -> None:
            pass

    chain = [Numbered("a"), processor("bare", process_output_step=lambda _: None), Numbered("b")]
    await run(Agent(model=ScriptedModel(["a"]), output_processors=chain))
    assert [getattr(p, "processor_index", "none") for p in chain] == [0, "none", 2]


@given(st.lists(st.booleans(), min_size=1, max_size=3))
async def test_2_a_hook_may_be_a_plain_method_or_a_coroutine(kinds: list[bool]) -> None:
    """Any mixture of them is called in one order and makes one stream."""
    logs: list[Log] = []
    outcomes: Log = []
    for asynchronous in (kinds, [False] * len(kinds)):
        log: Log = []
        chain = [noting(str(i), log, asynchronous=kind) for i, kind in enumerate(asynchronous)]
        agent = Agent(model=ScriptedModel(ALL_HOOKS), tools=[lookup_into(log)], **lists(*chain))
        async with agent.stream("hi") as stream:
            chunks = [chunk async for chunk in stream]
        logs.append(log)
        outcomes.append([(chunk.type, getattr(chunk, "text", "")) for chunk in chunks])
    assert logs[0] == logs[1]
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("hook", HOOKS)
async def test_2_a_hook_that_is_not_defined_is_not_missed(run: Runner, hook: str) -> None:
    """A processor with one hook only, in the list of that hook; the rest of the run is as ever."""
    log: Log = []
    script = ALL_HOOKS if hook == "process_api_error" else ALL_HOOKS[1:]
    agent = Agent(
        model=ScriptedModel(script),
        tools=[lookup_into([])],
        **lists(noting("one", log, hooks=[hook])),
    )
    seen = await run(agent)
    assert {noted for noted, _ in log} == {hook}
    assert seen.result.text == "bc"


@pytest.mark.parametrize("name", ["input_processors", "output_processors", "error_processors"])
def test_2_a_processor_in_a_list_none_of_whose_hooks_it_defines_is_refused(name: str) -> None:
    """The error names the processor and the list."""
    other = "process_input" if name == "output_processors" else "process_output_step"
    lost: dict[str, Any] = {name: [processor("lost", **{other: lambda _: None})]}
    with pytest.raises(ConfigurationError, match=rf"{name}\[0\]: processor 'lost'"):
        Agent(model=ScriptedModel(["a"]), **lost)


def test_2_two_instances_with_one_id_are_refused() -> None:
    """In one list or in two: their states would collide."""
    first = processor("twin", process_output_step=lambda _: None)
    second = processor("twin", process_output_step=lambda _: None, process_input=lambda _: None)
    model = ScriptedModel(["a"])
    with pytest.raises(ConfigurationError, match="two processors with id 'twin'"):
        Agent(model=model, output_processors=[first, second])
    with pytest.raises(ConfigurationError, match="two processors with id 'twin'"):
        Agent(model=model, output_processors=[first], input_processors=[second])
    Agent(model=model, output_processors=[second], input_processors=[second])


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_2_what_on_violation_raises_is_logged_and_swallowed(
    run: Runner, caplog: pytest.LogCaptureFixture, *, asynchronous: bool
) -> None:
    """It is told who, what and which detail; a failure of its own changes nothing of the block."""
    told: Log = []

    def tell(violation: ProcessorViolation) -> None:
        told.append(violation)
        raise OSError("no mail today")

    async def tell_later(violation: ProcessorViolation) -> None:
        tell(violation)

    def block(args: Any) -> None:
        args.abort("too rude", metadata={"score": 3})

    guard = processor(process_output_step=block, on_violation=tell_later if asynchronous else tell)
    with caplog.at_level(logging.ERROR, logger="streampipe"):
        seen = await run(Agent(model=ScriptedModel(["a"]), output_processors=[guard]))
    assert told == [ProcessorViolation("guard", "too rude", {"score": 3})]
    assert {f.name for f in fields(ProcessorViolation)} == {"processor_id", "message", "detail"}
    assert seen.result.tripwire is not None
    assert seen.result.error is None
    assert "guard" in caplog.text
    assert "no mail today" in caplog.text
