"""`ToolCallFilter`: what a model is not sent, and what it must still be sent."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streampipe import Agent, Message, tool
from streampipe.errors import ConfigurationError
from streampipe.messages import ReasoningPart, ToolCallPart, ToolResultPart
from streampipe.processors import ToolCallFilter
from streampipe.testing import ScriptedModel, call, check_processor, run_virtual
from tests.processors.conversations import answered, conversations, sent, used

EXAMPLES = max(1_000, 10 * settings().max_examples)


@tool
def look_up(q: str) -> str:
    """Look something up."""
    return f"much about {q}"


async def prompted(prompt: list[Any], processor: ToolCallFilter) -> list[str]:
    """What a model is sent for a prompt."""
    model = ScriptedModel(["ok"])
    await Agent(model=model, input_processors=[processor]).generate(prompt)
    return sent(model.requests[0])


HISTORY = [
    Message.user("one"),
    answered("I look.", used("a", "a1"), used("b", "b1", {"n": 1}), "Found."),
    Message.user("two"),
]


async def test_calls_and_results_of_earlier_turns_go() -> None:
    """What was said stays."""
    assert await prompted(HISTORY, ToolCallFilter()) == [
        "user: one",
        "assistant: I look.",
        "assistant: Found.",
        "user: two",
    ]


async def test_only_the_tools_that_are_named_go() -> None:
    """Calls of another keep their results."""
    assert await prompted(HISTORY, ToolCallFilter(["a"])) == [
        "user: one",
        "assistant: I look., call b1",
        "tool: result b1",
        "assistant: Found.",
        "user: two",
    ]


async def test_what_tools_returned_can_stay_as_text() -> None:
    """Without the call there is no result, but what it said can be said."""
    assert (await prompted(HISTORY, ToolCallFilter(keep_results=True)))[1] == (
        'assistant: I look., a returned: found\n, b returned: {"n":1}\n'
    )


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (2**70, "1180591620717411303424"),
        ({"a": "\ud800"}, '{"a":"\ufffd"}'),
        (b"x", '"eA=="'),
        ({(1, 2): float("nan")}, '{"1,2":"NaN"}'),
    ],
    ids=["large", "half", "bytes", "key"],
)
async def test_whatever_a_tool_returned_can_stay(result: Any, told: str) -> None:
    """One odd result that was stored must not end every later turn."""
    history = [Message.user("one"), answered(used("a", "a1", result)), Message.user("two")]
    got = await prompted(history, ToolCallFilter(keep_results=True))
    assert got[1] == f"assistant: a returned: {told}\n"


async def test_a_failure_is_told_as_one() -> None:
    """With its words."""
    failed = used("a", "a1", "no such city")
    failed.is_error = True
    history = [Message.user("one"), answered(failed), Message.user("two")]
    got = await prompted(history, ToolCallFilter(keep_results=True))
    assert got[1] == "assistant: a failed: no such city\n"


async def test_the_newest_turns_stay() -> None:
    """`keep_turns` counts turns, from a user's message to the next; two in a row begin one."""
    history = [
        Message.user("one"),
        answered(used("a", "a1")),
        Message.user("two"),
        Message.user("and"),
        answered(used("a", "a2")),
        Message.user("three"),
    ]
    got = await prompted(history, ToolCallFilter(keep_turns=2))
    assert got == [
        "user: one",
        "user: two",
        "user: and",
        "assistant: call a2",
        "tool: result a2",
        "user: three",
    ]
    assert "tool: result a1" in await prompted(history, ToolCallFilter(keep_turns=3))


async def test_reasoning_goes_with_the_calls_it_led_to() -> None:
    """It stays where another call is left of its message."""
    thought = ReasoningPart("which?", signature="s")
    alone = [Message.user("one"), answered(thought, used("a", "a1")), Message.user("two")]
    assert await prompted(alone, ToolCallFilter()) == ["user: one", "user: two"]
    both = answered(thought, used("a", "a1"), used("b", "b1"))
    got = await prompted([Message.user("one"), both, Message.user("two")], ToolCallFilter(["a"]))
    assert got[1] == "assistant: (which?), call b1"


async def test_the_current_turn_stays_whole() -> None:
    """A tool's answer of this run reaches the model, or it would call again."""
    model = ScriptedModel([[call("look_up", {"q": "soup"}, id="now")], ["Warm."]])
    agent = Agent(model=model, tools=[look_up], input_processors=[ToolCallFilter()])
    result = await agent.generate(HISTORY)
    assert sent(model.requests[1])[-2:] == ["assistant: call now", "tool: result now"]
    assert "result a1" not in str(sent(model.requests[1]))
    assert result.text == "Warm."


async def test_the_conversation_stays_whole() -> None:
    """Who stores it stores all of it, and what was handed in is as it was."""
    seen: list[Any] = []

    class Last:
        id = "last"

        def process_output_result(self, args: Any) -> None:
            """Look at the whole conversation."""
            seen.extend(args.message_list.all.to_stored())

    history = deepcopy(HISTORY)
    agent = Agent(
        model=ScriptedModel(["ok"]),
        input_processors=[ToolCallFilter()],
        output_processors=[Last()],
    )
    await agent.generate(history)
    parts = seen[1]["content"]["parts"]
    assert [part["type"] for part in parts].count("tool-invocation") == 2
    assert history == HISTORY


@given(
    conversations(),
    st.sampled_from([None, ["a"], ["b"]]),
    st.integers(1, 3),
    st.booleans(),
)
def test_calls_and_results_go_together(
    history: list[Message], exclude: Any, after: int, keep: Any
) -> None:
    """Whatever the conversation: no call without result, no result without call, no text lost."""
    processor = ToolCallFilter(exclude, keep_turns=after, keep_results=keep)
    model, whole = ScriptedModel(["ok"]), ScriptedModel(["ok"])
    run_virtual(Agent(model=model, input_processors=[processor]).generate(history))
    run_virtual(Agent(model=whole).generate(history))
    got, before = model.requests[0].prompt, whole.requests[0].prompt
    parts = [part for message in got for part in message.content]
    calls = [p.tool_call_id for p in parts if isinstance(p, ToolCallPart)]
    results = [p.tool_call_id for p in parts if isinstance(p, ToolResultPart)]
    assert calls == results
    assert all(message.content for message in got)
    said = "".join(message.text for message in got)
    if not keep:
        assert said == "".join(message.text for message in before)
    users = [m.text for m in got if m.role == "user"]
    assert users == [m.text for m in before if m.role == "user"]


async def test_one_instance_serves_two_runs_at_a_time() -> None:
    """It keeps nothing."""
    shared = ToolCallFilter()
    alike = [Message.user("one"), answered("Hm.", used("a", "x")), Message.user("two")]
    both = await asyncio.gather(prompted(HISTORY, shared), prompted(alike, shared))
    assert both[1] == ["user: one", "assistant: Hm.", "user: two"]
    assert len(both[0]) == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"exclude": ""}, "exclude must be a list of names, not ''"),
        ({"exclude": [1]}, r"exclude must be a list of names, not \[1\]"),
        ({"exclude": []}, "exclude names no tool"),
        ({"keep_turns": 0}, "keep_turns must be a whole number of 1 or more, not 0"),
        ({"keep_turns": True}, "keep_turns must be a whole number of 1 or more, not True"),
        ({"keep_results": "yes"}, "keep_results must be True or False, not 'yes'"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], said: str) -> None:
    """When it is made, by the class's name."""
    with pytest.raises(ConfigurationError, match=f"^ToolCallFilter: {said}"):
        ToolCallFilter(**options)


def test_what_it_is_not_for_is_refused() -> None:
    """An output processor it is not."""
    with pytest.raises(ConfigurationError, match="process_llm_request"):
        Agent(model=ScriptedModel(["ok"]), output_processors=[ToolCallFilter()])


def test_it_keeps_the_laws_of_processors() -> None:
    """In generated runs, whatever the model says."""
    check_processor(ToolCallFilter, max_examples=EXAMPLES)
