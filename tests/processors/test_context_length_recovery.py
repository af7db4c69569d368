"""`ContextLengthRecovery`: what a prompt that is too long can do without."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streampipe import Agent, Message, tool
from streampipe.contracts import ModelRequest, ProcessorViolation
from streampipe.errors import ConfigurationError, ContextLengthError, RateLimitError
from streampipe.messages import ToolCallPart, ToolResultPart
from streampipe.processors import ContextLengthRecovery
from streampipe.processors._turns import turn_starts
from streampipe.testing import ScriptedModel, call, check_processor, fail, run_virtual
from tests.processors.conversations import answered, conversations, sent, used

EXAMPLES = max(1_000, 10 * settings().max_examples)
TOO_LONG = [fail(ContextLengthError("the prompt is too long"))]
TURNS = [
    Message.user("one"),
    answered("I look.", used("a", "a1")),
    Message.user("two"),
    answered("yes"),
    Message.user("three"),
    answered("no"),
    Message.user("four"),
]


@tool
def look_up(q: str) -> str:
    """Look something up."""
    return q


def agent_of(model: ScriptedModel, processor: Any, **options: Any) -> Agent:
    """An agent with an error processor."""
    return Agent(model=model, tools=[look_up], error_processors=[processor], **options)


def users(request: ModelRequest) -> list[str]:
    """What the user said in a prompt."""
    return [message.text for message in request.prompt if message.role == "user"]


async def asked(refusals: int, processor: ContextLengthRecovery) -> list[list[str]]:
    """What the user said in each of the prompts that are sent until one is taken, or all fail."""
    model = ScriptedModel([*[TOO_LONG] * refusals, ["ok"]])
    try:
        await agent_of(model, processor).generate(TURNS)
    except ContextLengthError as error:
        assert error.result.retries == len(model.requests) - 1  # noqa: PT017 - either end is fine
    return [users(request) for request in model.requests]


async def test_the_oldest_turn_goes_first() -> None:
    """One at each refusal, its tool call and result with it."""
    model = ScriptedModel([TOO_LONG, ["ok"]])
    result = await agent_of(model, ContextLengthRecovery()).generate(TURNS)
    assert (result.text, result.retries) == ("ok", 1)
    assert sent(model.requests[1]) == [
        "user: two",
        "assistant: yes",
        "user: three",
        "assistant: no",
        "user: four",
    ]


@pytest.mark.parametrize(
    ("options", "prompts"),
    [
        ({}, ["one two three four", "two three four", "three four", "four"]),
        ({"drop": "half"}, ["one two three four", "three four", "four"]),
        ({"keep_turns": 3}, ["one two three four", "two three four"]),
        ({"max_retries": 2}, ["one two three four", "two three four", "three four"]),
        ({"keep_turns": 9}, ["one two three four"]),
    ],
)
async def test_so_much_goes_until_nothing_may(options: Any, prompts: list[str]) -> None:
    """Then the failure stands; the current turn is never left out."""
    assert await asked(9, ContextLengthRecovery(**options)) == [text.split() for text in prompts]


async def test_what_was_left_out_is_told() -> None:
    """To `on_violation`, in words and in numbers; what it raises is of no matter."""
    told: list[ProcessorViolation] = []

    async def on_violation(violation: ProcessorViolation) -> None:
        """Note it, then fail."""
        await asyncio.sleep(0)
        told.append(violation)
        raise ValueError("who cares")

    await asked(2, ContextLengthRecovery(drop="half", on_violation=on_violation, id="shorter"))
    assert told == [
        ProcessorViolation(
            "shorter",
            "the prompt was too long: left out the oldest 2 of 4 turns",
            {"left_out": 2, "total": 2, "kept": 2},
        ),
        ProcessorViolation(
            "shorter",
            "the prompt was too long: left out the oldest 1 of 2 turns",
            {"left_out": 1, "total": 3, "kept": 1},
        ),
    ]


async def test_system_messages_stay() -> None:
    """Instructions are of no turn."""
    model = ScriptedModel([TOO_LONG, ["ok"]])
    agent = agent_of(model, ContextLengthRecovery(drop="half"), instructions="Be brief.")
    await agent.generate([Message.user("one"), answered("yes"), Message.user("two")])
    assert sent(model.requests[1]) == ["system: Be brief.", "user: two"]


async def test_it_holds_for_the_steps_that_follow() -> None:
    """What was too long in one step would be in the next."""
    model = ScriptedModel([TOO_LONG, [call("look_up", {"q": "x"}, id="now")], ["ok"]])
    await agent_of(model, ContextLengthRecovery(drop="half")).generate(TURNS)
    assert sent(model.requests[2])[2:] == ["user: four", "assistant: call now", "tool: result now"]


async def test_the_conversation_stays_whole() -> None:
    """Who stores it stores all of it."""
    seen: list[str] = []

    class Last:
        id = "last"

        def process_output_result(self, args: Any) -> None:
            """Look at the whole conversation."""
            seen.extend(message.text for message in args.message_list.all)

    model = ScriptedModel([TOO_LONG, ["ok"]])
    agent = agent_of(model, ContextLengthRecovery(), output_processors=[Last()])
    await agent.generate(TURNS)
    assert seen == [*(message.text for message in TURNS), "ok"]


async def test_another_failure_stands() -> None:
    """It is for prompts that are too long."""
    model = ScriptedModel([[fail(RateLimitError("slow down"))], ["never"]])
    with pytest.raises(RateLimitError):
        await agent_of(model, ContextLengthRecovery()).generate(TURNS)
    assert len(model.requests) == 1


@given(conversations(), st.sampled_from(["oldest", "half"]), st.integers(1, 3), st.integers(0, 4))
def test_what_is_left_is_the_end_of_it(history: Any, drop: Any, keep: int, refusals: int) -> None:
    """Whatever the conversation: whole turns, calls with results, and the current turn at least."""
    model = ScriptedModel([*[TOO_LONG] * refusals, ["ok"]])
    processor = ContextLengthRecovery(drop=drop, keep_turns=keep, max_retries=9)

    async def main() -> None:
        try:
            await agent_of(model, processor).generate(history)
        except ContextLengthError:
            assert len(turn_starts(model.requests[-1].prompt)) <= keep

    run_virtual(main())
    first = sent(model.requests[0])
    for before, request in zip(model.requests, model.requests[1:], strict=False):
        left = sent(request)
        assert left == first[-len(left) :]
        assert len(left) < len(sent(before))
        assert left[0].startswith("user: ")
        parts = [part for message in request.prompt for part in message.content]
        calls = [p.tool_call_id for p in parts if isinstance(p, ToolCallPart)]
        assert calls == [p.tool_call_id for p in parts if isinstance(p, ToolResultPart)]


async def test_one_instance_serves_two_runs_at_a_time() -> None:
    """What one run leaves out the other is sent."""
    shared = ContextLengthRecovery(drop="half")
    refused, fine = await asyncio.gather(asked(1, shared), asked(0, shared))
    assert refused == [["one", "two", "three", "four"], ["three", "four"]]
    assert fine == [["one", "two", "three", "four"]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"keep_turns": 0}, "keep_turns must be a whole number of 1 or more, not 0"),
        ({"max_retries": 0}, "max_retries must be a whole number of 1 or more, not 0"),
        ({"drop": "newest"}, "drop must be one of oldest, half, not 'newest'"),
        ({"drop": ["half"]}, r"drop must be one of oldest, half, not \['half'\]"),
        ({"on_violation": "print"}, "on_violation must be a function, not 'print'"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], said: str) -> None:
    """When it is made, by the class's name."""
    with pytest.raises(ConfigurationError, match=f"^ContextLengthRecovery: {said}"):
        ContextLengthRecovery(**options)


def test_it_keeps_the_laws_of_processors() -> None:
    """In generated runs, whatever the model says."""
    check_processor(ContextLengthRecovery, max_examples=EXAMPLES)
