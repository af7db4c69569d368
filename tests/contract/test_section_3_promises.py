"""Section 3 of the contract: what the hooks' arguments promise, sentence by sentence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from streampipe import (
    Agent,
    Message,
    ToolCall,
    ToolResult,
)
from streampipe.contracts import HOOKS
from streampipe.errors import ProcessorError
from streampipe.messages import TextPart
from streampipe.testing import ScriptedModel, call, fail
from tests.contract.guards import (
    ALL_HOOKS,
    Runner,
    list_of,
    lookup_into,
    processor,
    unchanged,
)
from tests.contract.listeners import CALL, RETRY, given, joined, listening

NUMBERED = tuple(
    hook
    for hook in HOOKS
    if hook not in ("process_input", "process_output_stream", "process_output_result")
)
"""The hooks that are told the number of the step."""


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("hook", ["process_output_step", "process_output_result"])
async def test_3_editing_a_message_in_place_is_seen_downstream_and_stored(
    run: Runner, hook: str, *, asynchronous: bool
) -> None:
    """By the next processor, the next prompt and the messages of the result."""
    read: list[str] = []

    def edit(args: Any) -> None:
        for message in args.messages:
            for part in message.parts:
                if isinstance(part, TextPart):
                    part.text = part.text.replace("one", "ONE")

    async def edit_later(args: Any) -> None:
        edit(args)

    chain = [
        processor("edit", **{hook: edit_later if asynchronous else edit}),
        processor("read", **{hook: lambda args: read.extend(joined(args.messages[-1:]))}),
    ]
    script: list[Any] = [["one", CALL], ["one"]] if hook == "process_output_step" else [["one"]]
    model = ScriptedModel(script)
    agent = Agent(model=model, tools=[lookup_into([])], output_processors=chain)
    seen = await run(agent)
    assert read == ["ONE"] * len(script)
    assert joined(seen.result.messages) == ["ONE"] * len(script)
    if hook == "process_output_step":
        assert [m.text for m in model.requests[1].prompt][:2] == ["hi", "ONE"]


@pytest.mark.parametrize("hook", ["process_input", "process_input_step"])
async def test_3_editing_an_input_message_in_place_is_seen_by_the_model(
    run: Runner, hook: str
) -> None:
    """And not by the caller: the prompt that the user gave stays as it was."""

    def edit(args: Any) -> Any:
        args.messages[0].parts[0].text = "HI"
        return unchanged(hook, args)

    question = Message.user("hi")
    model = ScriptedModel(["a"])
    agent = Agent(model=model, input_processors=[processor("edit", **{hook: edit})])
    await run(agent, question)
    assert joined(model.requests[0].prompt) == ["HI"]
    assert question.text == "hi"


@pytest.mark.parametrize("hook", NUMBERED)
async def test_3_step_number_counts_from_0_and_steps_are_the_finished_ones(
    run: Runner, hook: str
) -> None:
    """A rejected attempt counts as nothing; in `process_output_step` the step at hand is last."""
    log: list[Any] = []
    options = listening(
        hook, log, lambda args: (args.step_number, [step.text for step in args.steps])
    )
    script: list[Any] = [
        ["no", fail()],
        ["one", CALL],
        ["no", fail()],
        ["two", CALL],
        ["no", fail()],
        ["three"],
    ]
    options = {"error_processors": [RETRY], **options}
    await run(Agent(model=ScriptedModel(script), tools=[lookup_into([])], **options))
    done = {0: [], 1: ["one"], 2: ["one", "two"]}
    if hook == "process_output_step":
        done = {0: ["one"], 1: ["one", "two"], 2: ["one", "two", "three"]}
    once = [(number, done[number]) for number in range(2 if hook == "process_tool_result" else 3)]
    before_the_answer = ("process_input_step", "process_llm_request")
    assert log == [entry for entry in once for _ in range(2 if hook in before_the_answer else 1)]


@pytest.mark.parametrize("hook", [hook for hook in HOOKS if hook != "process_input"])
async def test_3_retry_count_starts_at_0_and_counts_the_runs_retries(
    run: Runner, hook: str
) -> None:
    """It is not set back by a step that is accepted."""
    log: list[int] = []
    options = listening(hook, log, lambda args: args.retry_count)
    script: list[Any] = [["one", CALL], ["no", fail()], ["no", fail()], ["two", CALL], ["three"]]
    options = {"error_processors": [RETRY], **options}
    await run(Agent(model=ScriptedModel(script), tools=[lookup_into([])], **options))
    expected = {
        "process_api_error": [0, 1],
        "process_input_step": [0, 0, 1, 2, 2],
        "process_llm_request": [0, 0, 1, 2, 2],
        "process_output_stream": [0, 0, 1, 2, 2],
        "process_tool_result": [0, 2],
        "process_output_result": [2],
    }
    assert log == expected.get(hook, [0, 2, 2])


@dataclass
class Found:
    """What a tool gives that is no JSON yet."""

    day: date
    tags: set[str]


async def test_3_the_result_of_a_client_tool_is_made_json_serialisable_first(run: Runner) -> None:
    """The hook is given what the model and the client will see."""

    def find() -> Found:
        """Find."""
        return Found(date(2026, 1, 2), {"x"})

    log: list[Any] = []
    options = listening("process_tool_result", log, lambda args: args.result)
    agent = Agent(model=ScriptedModel([[call("find")], ["b"]]), tools=[find], **options)
    seen = await run(agent)
    assert log == [{"day": "2026-01-02", "tags": ["x"]}]
    assert [r.result for r in seen.result.tool_results] == log


async def test_3_the_result_of_a_provider_executed_tool_is_raw(run: Runner) -> None:
    """The very object that the model's stream carried, and the hook is told whose it is."""
    raw = {"hits": {1, 2}}
    searched: list[Any] = [
        ToolCall("s1", "web_search", {"q": "x"}, provider_executed=True),
        ToolResult("s1", "web_search", raw, {"q": "x"}, provider_executed=True),
        "found",
    ]
    [seen] = await given(run, "process_tool_result", [searched])
    assert seen["result"] is raw
    assert seen["provider_executed"] is True
    assert (seen["tool_name"], seen["tool_call_id"], seen["args"]) == (
        "web_search",
        "s1",
        {"q": "x"},
    )


@pytest.mark.parametrize("hook", HOOKS)
async def test_3_a_field_that_the_hook_does_not_have_is_an_error_that_names_it(
    run: Runner, hook: str
) -> None:
    """A mistyped field: the error names the processor, the hook and the field."""
    guard = processor("p", **{hook: lambda args: args.massages})
    options: dict[str, Any] = {list_of(hook): [guard]}
    script = ALL_HOOKS if hook == "process_api_error" else ALL_HOOKS[1:]
    seen = await run(Agent(model=ScriptedModel(script), tools=[lookup_into([])], **options))
    assert isinstance(seen.error, ProcessorError)
    assert (seen.error.processor_id, seen.error.hook) == ("p", hook)
    assert "'massages'" in str(seen.error)
