"""Section 3 of the contract: what every hook is given."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pytest

from streampipe import (
    AbortSignal,
    Agent,
    FinishChunk,
    MessageList,
    RequestContext,
    ResponseMetadata,
    Usage,
    contracts,
)
from streampipe.contracts import HOOKS, ModelRequest
from streampipe.errors import ProviderError
from streampipe.testing import ScriptedModel, call, fail, reasoning, turn
from tests.contract.guards import (
    ALL_HOOKS,
    Runner,
    is_text,
    list_of,
    lookup_into,
    processor,
    types,
    unchanged,
)
from tests.contract.listeners import CALL, RETRY, given, joined, listening, snapshot

COMMON = {
    "abort",
    "retry_count",
    "request_context",
    "tracing_context",
    "abort_signal",
    "writer",
    "run_id",
    "agent",
}
STEP = {"step_number", "steps", "state"}
MESSAGES = {"messages", "message_list"}
SYSTEM = {*MESSAGES, "system_messages"}

FIELDS: dict[str, tuple[str, set[str]]] = {
    "process_input": ("ProcessInputArgs", {*SYSTEM, "state"}),
    "process_input_step": (
        "ProcessInputStepArgs",
        {
            *SYSTEM,
            *STEP,
            "model",
            "tools",
            "active_tools",
            "tool_choice",
            "provider_options",
            "model_settings",
            "structured_output",
        },
    ),
    "process_llm_request": ("ProcessLLMRequestArgs", {"prompt", "model", "message_list", *STEP}),
    "process_llm_response": (
        "ProcessLLMResponseArgs",
        {"chunks", "model", "from_cache", "warnings", "request", "raw_response", *STEP},
    ),
    "process_api_error": ("ProcessAPIErrorArgs", {"error", *MESSAGES, *STEP}),
    "process_output_stream": (
        "ProcessOutputStreamArgs",
        {"part", "stream_parts", "message_list", "state"},
    ),
    "process_output_step": (
        "ProcessOutputStepArgs",
        {
            *SYSTEM,
            *STEP,
            "finish_reason",
            "provider_metadata",
            "tool_calls",
            "text",
            "usage",
        },
    ),
    "process_tool_result": (
        "ProcessToolResultArgs",
        {*SYSTEM, *STEP, "tool_name", "tool_call_id", "args", "result", "provider_executed"},
    ),
    "process_output_result": ("ProcessOutputResultArgs", {*MESSAGES, "result", "state"}),
}
"""The table of section 3: the class of each hook's args, and its further fields."""


# --- the table ----------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", HOOKS)
async def test_3_args_have_the_fields_of_the_table_and_no_other(run: Runner, hook: str) -> None:
    """The common fields, and the row of the hook; so does the class of the contract."""
    name, row = FIELDS[hook]
    for seen in await given(run, hook):
        assert set(seen) == COMMON | row
    assert {field.name for field in fields(getattr(contracts, name))} == COMMON | row


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("hook", HOOKS)
async def test_3_common_fields_are_the_runs(run: Runner, hook: str, *, asynchronous: bool) -> None:
    """The call's own context and signal, the run's id, the agent; the args are of their class."""
    log: list[Any] = []
    kinds: list[type] = []

    def listen(args: Any) -> Any:
        kinds.append(type(args))
        log.append(snapshot(args))
        return {"retry": True} if hook == "process_api_error" else unchanged(hook, args)

    async def listen_later(args: Any) -> Any:
        return listen(args)

    guard = processor("p", **{hook: listen_later if asynchronous else listen})
    context, signal = RequestContext(user="u1"), AbortSignal()
    options: dict[str, Any] = {"error_processors": [RETRY], list_of(hook): [guard]}
    agent = Agent(model=ScriptedModel(ALL_HOOKS), tools=[lookup_into([])], **options)
    seen = await run(agent, request_context=context, abort_signal=signal)
    assert set(kinds) == {getattr(contracts, FIELDS[hook][0])}
    for args in log:
        assert args["request_context"] is context
        assert args["abort_signal"] is signal
        assert args["agent"] is agent
        assert args["run_id"] == seen.result.run_id
        assert args["tracing_context"] is None
        assert callable(args["abort"])
        assert callable(args["writer"].custom)
        assert args["retry_count"] in (0, 1)


async def test_3_one_args_object_is_reused_within_a_step() -> None:
    """A stream hook gets the same object for every chunk: it is valid during the call only."""
    kept: list[Any] = []

    def keep(args: Any) -> Any:
        kept.append(args)
        return args.part

    agent = Agent(
        model=ScriptedModel([["a", "b"]]),
        output_processors=[processor(process_output_stream=keep)],
    )
    await agent.generate("hi")
    assert len({id(args) for args in kept}) == 1
    assert kept[0].part.type == "finish"


# --- rows ---------------------------------------------------------------------------------------


async def test_3_process_input_gets_messages_and_system_messages_apart(run: Runner) -> None:
    """No system message is among `messages`; `message_list` is the live list of the run."""
    prompt = [{"role": "system", "content": "S2"}, "q1", {"role": "assistant", "content": "a1"}]
    [seen] = await given(run, "process_input", ["a"], instructions="S1", prompt=prompt)
    assert joined(seen["messages"]) == ["q1", "a1"]
    assert joined(seen["system_messages"]) == ["S1", "S2"]
    assert {message.role for message in seen["system_messages"]} == {"system"}
    assert isinstance(seen["message_list"], MessageList)
    assert isinstance(seen["messages"], list)


async def test_3_process_input_step_gets_what_the_step_will_ask(run: Runner) -> None:
    """Model, tools and settings as they are; no system message among `messages`."""

    @dataclass
    class Answer:
        n: int

    first, last = await given(
        run,
        "process_input_step",
        [["one", CALL], ['{"n": 1}']],
        instructions="S",
        model_settings={"seed": 1},
        provider_options={"x": {"y": 2}},
        tool_choice="required",
        structured_output=Answer,
    )
    assert isinstance(first["model"], ScriptedModel)
    assert list(first["tools"]) == first["active_tools"] == ["lookup"]
    assert first["tool_choice"] == "required"
    assert first["model_settings"] == {"seed": 1}
    assert first["provider_options"] == {"x": {"y": 2}}
    assert first["structured_output"] is Answer
    assert joined(first["system_messages"]) == joined(last["system_messages"]) == ["S"]
    assert joined(first["messages"]) == ["hi"]
    assert joined(last["messages"]) == ["hi", "one"]


async def test_3_active_tools_are_the_names_that_the_model_is_shown(run: Runner) -> None:
    """`tools` has all of them."""
    [seen] = await given(run, "process_input_step", ["a"], active_tools=[])
    assert seen["active_tools"] == []
    assert list(seen["tools"]) == ["lookup"]


async def test_3_process_llm_request_gets_the_outbound_prompt_and_the_model(run: Runner) -> None:
    """System messages first, then the conversation, tool calls and results as the model sees it."""
    first, last = await given(
        run, "process_llm_request", [["one", CALL], ["two"]], instructions="S"
    )
    assert [(m.role, m.text) for m in first["prompt"]] == [("system", "S"), ("user", "hi")]
    assert [m.role for m in last["prompt"]] == ["system", "user", "assistant", "tool"]
    assert isinstance(first["model"], ScriptedModel)
    assert joined(first["message_list"].input) == ["hi"]


async def test_3_process_llm_response_gets_chunks_as_the_model_produced_them(run: Runner) -> None:
    """Before output processors: what those drop or rewrite in place is there as it was."""

    def censor(args: Any) -> Any:
        if is_text(args):
            args.part.text = "***"
        return None if args.part.type.startswith("reasoning") else args.part

    meta = ResponseMetadata("r", "m", warnings=["no seed"])
    [seen] = await given(
        run,
        "process_llm_response",
        [[meta, reasoning("hm"), "rude"]],
        output_processors=[processor(process_output_stream=censor)],
    )
    said = [getattr(chunk, "text", None) for chunk in seen["chunks"]]
    assert [text for text in said if text] == ["hm", "rude"]
    assert types(seen["chunks"])[-1] == "finish"
    assert seen["warnings"] == ["no seed"]
    assert seen["raw_response"].id == "r"
    assert isinstance(seen["request"], ModelRequest)
    assert joined(seen["request"].prompt) == ["hi"]
    assert seen["from_cache"] is False


async def test_3_from_cache_tells_a_replayed_response(run: Runner) -> None:
    """True where `process_llm_request` gave the response, so that a cache does not store it."""
    replay = processor("cache", process_llm_request=lambda _: {"response": []})
    log: list[Any] = []
    listen = listening("process_llm_response", log)["input_processors"]
    await run(Agent(model=ScriptedModel([]), input_processors=[replay, *listen]))
    assert [args["from_cache"] for args in log] == [True]


async def test_3_process_api_error_gets_the_error_and_the_messages(run: Runner) -> None:
    """All messages at the time of the error; nothing of the answer that failed."""
    [seen] = await given(
        run, "process_api_error", [["one", CALL], ["half", fail(status=400)], ["c"]]
    )
    assert isinstance(seen["error"], ProviderError)
    assert seen["error"].status == 400
    assert joined(seen["messages"]) == ["hi", "one"]
    assert seen["step_number"] == 1


async def test_3_process_output_stream_gets_the_part_and_the_list(run: Runner) -> None:
    """The chunk at hand, last of `stream_parts`."""
    log: list[Any] = []
    options = listening(
        "process_output_stream",
        log,
        lambda args: (args.part.text, args.stream_parts[-1] is args.part, args.message_list),
    )
    await run(Agent(model=ScriptedModel([["a", "b"]]), **options))
    assert [entry[:2] for entry in log] == [("a", True), ("b", True)]
    assert joined(log[0][2].input) == ["hi"]


async def test_3_process_output_step_gets_the_models_answer(run: Runner) -> None:
    """Text, calls, usage, reason and provider metadata of this step; its message is the last."""
    usage = Usage(3, 4)
    first, last = await given(
        run,
        "process_output_step",
        [turn("one", CALL, usage=usage), turn("two", finish_reason="length")],
        instructions="S",
    )
    assert (first["text"], last["text"]) == ("one", "two")
    assert [(c.tool_name, c.tool_call_id, c.args) for c in first["tool_calls"]] == [
        ("lookup", "c1", {"word": "x"})
    ]
    assert last["tool_calls"] == []
    assert (first["finish_reason"], last["finish_reason"]) == ("tool-calls", "length")
    assert first["usage"] == usage
    assert first["provider_metadata"] is None
    assert joined(first["messages"]) == ["hi", "one"]
    assert joined(last["messages"]) == ["hi", "one", "two"]
    assert joined(first["system_messages"]) == ["S"]


async def test_3_process_output_step_gets_the_providers_metadata(run: Runner) -> None:
    """What the provider said at the step's end, as of a content filter."""
    end = FinishChunk("content-filter", provider_metadata={"scripted": {"score": 1}})
    [seen] = await given(run, "process_output_step", [turn("x", end, incomplete=True)])
    assert seen["provider_metadata"] == {"scripted": {"score": 1}}
    assert seen["finish_reason"] == "content-filter"


async def test_3_process_tool_result_gets_the_call_and_what_it_gave(run: Runner) -> None:
    """One call for each tool, in the order of the calls; the assistant's message is there."""
    twice = ["one", CALL, call("lookup", {"word": "y"}, id="c2")]
    first, second = await given(run, "process_tool_result", [twice, ["two"]], instructions="S")
    assert (first["tool_name"], first["tool_call_id"]) == ("lookup", "c1")
    assert (first["args"], first["result"]) == ({"word": "x"}, "meaning of x")
    assert (second["args"], second["result"]) == ({"word": "y"}, "meaning of y")
    assert first["provider_executed"] is None
    assert joined(first["messages"]) == ["hi", "one"]
    assert joined(first["system_messages"]) == ["S"]


async def test_3_process_output_result_gets_the_whole_answer(run: Runner) -> None:
    """Text, usage, reason and steps of the run; `messages` are those of the response."""
    script = [turn("one", CALL, usage=Usage(1, 2)), turn("two", usage=Usage(3, 4))]
    [seen] = await given(run, "process_output_result", script)
    result = seen["result"]
    assert result.text == "onetwo"
    assert result.usage == Usage(4, 6)
    assert result.finish_reason == "stop"
    assert [step.text for step in result.steps] == ["one", "two"]
    assert joined(seen["messages"]) == ["one", "two"]
    assert joined(seen["message_list"].all) == ["hi", "one", "two"]
