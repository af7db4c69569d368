"""`ProviderHistoryCompat`: what is mended, when, and what is left as it is."""

from __future__ import annotations

import asyncio
import re
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streampipe import Agent, Message, tool
from streampipe.contracts import ProcessorViolation
from streampipe.errors import ConfigurationError, ProcessorError, ProviderError
from streampipe.messages import (
    Part,
    PromptMessage,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolInvocationPart,
    ToolResultPart,
)
from streampipe.processors import HISTORY_RULES, HistoryRule, ProviderHistoryCompat
from streampipe.testing import ScriptedModel, call, check_processor, fail, run_virtual
from tests.processors.conversations import answered, conversations, outline, sent, used

EXAMPLES = max(1_000, 10 * settings().max_examples)
RULES = {rule.name: rule for rule in HISTORY_RULES}
IDS = st.sampled_from(["a", "b", "call|1", "x" * 41, "", "123456789"])
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, st.sampled_from(["", " ", "said", "said \n"])),
    st.builds(ReasoningPart, st.just("thought")),
    st.builds(ToolCallPart, IDS, st.just("t")),
    st.builds(ToolResultPart, IDS, st.just("t"), st.just("r")),
)
PROMPTS = st.lists(
    st.builds(
        PromptMessage,
        st.sampled_from(["user", "assistant", "tool", "system"]),
        st.lists(PARTS, max_size=3),
    ),
    max_size=7,
)


@tool
def look_up(q: str) -> str:
    """Look something up."""
    return q


def agent_of(model: ScriptedModel, processor: Any, **options: Any) -> Agent:
    """An agent with an error processor."""
    return Agent(model=model, tools=[look_up], error_processors=[processor], **options)


async def prompted(prompt: Any, *refusals: str, **options: Any) -> list[str]:
    """What a model is sent at last, after it has refused so often."""
    model = ScriptedModel([*([fail(status=400, body=said)] for said in refusals), ["ok"]])
    await agent_of(model, ProviderHistoryCompat(**options)).generate(prompt)
    return sent(model.requests[-1])


def mended(name: str, prompt: list[PromptMessage]) -> list[PromptMessage]:
    """A prompt mended by one rule."""
    return RULES[name].mend(prompt)


async def test_a_strange_id_is_another_in_call_and_result() -> None:
    """The same in both; one that every provider takes stays."""
    history = [
        Message.user("one"),
        answered(used("a", "call|1"), used("a", "ok-1_A")),
        Message.user("two"),
    ]
    got = await prompted(history)
    strange, fine = re.findall(r"call ([^,]+)", got[1])
    assert re.fullmatch(r"[0-9a-f]{32}", strange)
    assert fine == "ok-1_A"
    assert got[2] == f"tool: result {strange}, result {fine}"


async def test_where_ids_have_nine_characters_they_get_nine() -> None:
    """Once the provider has said so."""
    history = [Message.user("one"), answered(used("a", "call_1")), Message.user("two")]
    said = "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."
    assert "assistant: call call_1" in await prompted(history)
    got = await prompted(history, said)
    assert re.fullmatch(r"assistant: call [0-9a-f]{9}", got[1])
    assert got[2].removeprefix("tool: result ") == got[1].removeprefix("assistant: call ")


def test_a_result_without_a_call_goes() -> None:
    """A call that comes later is none of its."""
    prompt = [
        PromptMessage("tool", [ToolResultPart("a", "t", 1)]),
        PromptMessage("assistant", [ToolCallPart("a", "t")]),
        PromptMessage("tool", [ToolResultPart("a", "t", 2), ToolResultPart("b", "t", 3)]),
    ]
    assert outline(mended("orphan-results", prompt)) == ["assistant: call a", "tool: result a"]


async def test_a_call_without_a_result_is_answered() -> None:
    """It says that there is none; beside the other results, or by itself."""
    lost = ToolInvocationPart("lost", "a", {})
    history = [
        Message.user("one"),
        answered(lost, used("a", "kept")),
        answered(ToolInvocationPart("gone", "a", {})),
        Message.user("two"),
        answered(ToolInvocationPart("theirs", "a", {}, provider_executed=True)),
        answered(ToolInvocationPart("last", "a", {})),
    ]
    got = await prompted(history)
    assert got == [
        "user: one",
        "assistant: call lost, call kept",
        "tool: result kept, result lost",
        "assistant: call gone",
        "tool: result gone",
        "user: two",
        "assistant: call theirs",
        "assistant: call last",
        "tool: result last",
    ]
    prompt = [PromptMessage("assistant", [ToolCallPart("a", "t")])]
    (result,) = mended("unanswered-calls", prompt)[1].content
    assert result == ToolResultPart(
        "a", "t", "There is no result: the call was interrupted.", is_error=True
    )


@pytest.mark.parametrize(
    "said",
    [
        'roles must alternate between "user" and "assistant"',
        "A conversation must alternate between user and assistant roles.",
        "found multiple user roles in a row",
        "consecutive user messages are not allowed",
    ],
)
async def test_messages_in_a_row_are_joined_once_refused(said: str) -> None:
    """A provider that takes them gets them as they are."""
    history = [Message.user("one"), Message.user("two"), answered("a"), answered("b", "c"), "three"]
    assert (await prompted(history))[:2] == ["user: one", "user: two"]
    assert await prompted(history, said) == [
        "user: one\n\ntwo",
        "assistant: a\n\nb, c",
        "user: three",
    ]


def test_what_is_joined_keeps_its_parts() -> None:
    """Only text is joined to text, and only where the messages meet."""
    prompt = [
        PromptMessage("system", [TextPart("s")]),
        PromptMessage("system", [TextPart("t")]),
        PromptMessage("assistant", [TextPart("a"), ReasoningPart("b")]),
        PromptMessage("assistant", [TextPart("c"), TextPart("d")]),
        PromptMessage("assistant", [ToolCallPart("1", "t")]),
    ]
    assert outline(mended("same-role-in-a-row", prompt)) == [
        "system: s",
        "system: t",
        "assistant: a, (b), c, d, call 1",
    ]


async def test_white_space_at_the_end_of_a_prefill_goes() -> None:
    """Elsewhere it stays."""
    history = [Message.user("one \n"), answered("a "), Message.user("two "), answered("Once \n")]
    assert await prompted(history) == [
        "user: one \n",
        "assistant: a ",
        "user: two ",
        "assistant: Once",
    ]
    assert await prompted("hi ") == ["user: hi "]


async def test_text_that_says_nothing_goes() -> None:
    """And the message, if it was nothing else."""
    history = [Message.user("one"), answered(" \n"), Message.user("two"), answered(" ", "a"), "x"]
    assert await prompted(history) == ["user: one", "user: two", "assistant: a", "user: x"]


@given(PROMPTS)
def test_a_mended_prompt_is_whole(prompt: list[PromptMessage]) -> None:
    """Whatever came in: all rules together leave nothing that one of them is for."""
    before = deepcopy(prompt)
    got = prompt
    for rule in HISTORY_RULES:
        got = rule.mend(got)
    assert prompt == before, "a rule changed what it was given"
    parts = [part for message in got for part in message.content]
    called: set[str] = set()
    for part in parts:
        if isinstance(part, ToolCallPart):
            called.add(part.tool_call_id)
        if isinstance(part, ToolResultPart):
            assert part.tool_call_id in called
        if isinstance(part, ToolCallPart | ToolResultPart):
            assert re.fullmatch("[A-Za-z0-9]{9}", part.tool_call_id)
        if isinstance(part, TextPart):
            assert part.text.strip()
    results = {part.tool_call_id for part in parts if isinstance(part, ToolResultPart)}
    assert called == results
    assert all(message.content for message in got)


@given(PROMPTS)
def test_mended_twice_is_mended_once(prompt: list[PromptMessage]) -> None:
    """Each rule by itself."""
    for rule in HISTORY_RULES:
        once = rule.mend(prompt)
        assert rule.mend(once) == once, rule.name


@given(conversations())
def test_a_conversation_of_ours_is_sent_as_it_is(history: list[Message]) -> None:
    """Rules find nothing where nothing is wrong."""
    model, plain = ScriptedModel(["ok"]), ScriptedModel(["ok"])
    run_virtual(agent_of(model, ProviderHistoryCompat()).generate(history))
    run_virtual(Agent(model=plain).generate(history))
    assert model.requests[0].prompt == plain.requests[0].prompt


async def test_the_conversation_stays_as_it_is() -> None:
    """Who stores it stores what was said."""
    seen: list[str] = []

    class Last:
        id = "last"

        def process_output_result(self, args: Any) -> None:
            """Look at the whole conversation."""
            seen.extend(message.text for message in args.message_list.all)

    model = ScriptedModel([[fail(status=400, body="roles must alternate")], ["ok"]])
    agent = agent_of(model, ProviderHistoryCompat(), output_processors=[Last()])
    result = await agent.generate([Message.user("one"), Message.user("two")])
    assert (seen, result.retries) == (["one", "two", "ok"], 1)


async def test_it_holds_for_the_steps_that_follow() -> None:
    """A provider that refused once would refuse again."""
    refusal = [fail(status=422, body="roles must alternate")]
    model = ScriptedModel([refusal, [call("look_up", {"q": "x"}, id="now")], ["ok"]])
    result = await agent_of(model, ProviderHistoryCompat()).generate(["one", "two"])
    assert sent(model.requests[2])[0] == "user: one\n\ntwo"
    assert result.retries == 1


async def test_what_a_refusal_called_for_is_told() -> None:
    """Once, by the rules' names."""
    told: list[ProcessorViolation] = []
    await prompted("hi", "roles must alternate", on_violation=told.append)
    words = "the provider refused the conversation; mended from now on: same-role-in-a-row"
    names = ["same-role-in-a-row"]
    assert told == [ProcessorViolation("provider-history-compat", words, names)]


@pytest.mark.parametrize(
    ("refusals", "calls"),
    [
        ([(400, "temperature is too high")], 1),
        ([(400, "take an alternate model")], 1),
        ([(500, "roles must alternate")], 1),
        ([(400, "roles must alternate"), (400, "roles must alternate")], 2),
    ],
)
async def test_another_failure_stands(refusals: list[tuple[int, str]], calls: int) -> None:
    """Of another kind, by another status, or one that mending did not cure."""
    script = [[fail(status=status, body=said)] for status, said in refusals]
    model = ScriptedModel([*script, ["never"]])
    with pytest.raises(ProviderError):
        await agent_of(model, ProviderHistoryCompat()).generate("hi")
    assert len(model.requests) == calls


async def test_a_rule_can_be_the_user_s_own() -> None:
    """Beside the others or in their place, for every prompt or after a refusal."""

    def louder(prompt: list[PromptMessage]) -> list[PromptMessage]:
        """Say it in capitals."""
        return [PromptMessage(m.role, [TextPart(m.text.upper())]) for m in prompt]

    assert await prompted("hi", rules=[HistoryRule("loud", louder)]) == ["user: HI"]
    rules = (*HISTORY_RULES, HistoryRule("loud", louder, re.compile("cannot hear")))
    assert await prompted("hi", rules=rules) == ["user: hi"]
    assert await prompted("hi", "I cannot hear you", rules=rules) == ["user: HI"]


async def test_a_rule_that_gives_no_prompt_ends_the_run() -> None:
    """By the processor's name."""
    rule: Any = HistoryRule("bad", lambda prompt: None)  # type: ignore[arg-type, return-value]  # wrong on purpose
    with pytest.raises(ProcessorError, match="provider-history-compat"):
        await prompted("hi", rules=[rule])


async def test_one_instance_serves_two_runs_at_a_time() -> None:
    """What a refusal called for holds in its run."""
    shared = ProviderHistoryCompat()
    refused = ScriptedModel([[fail(status=400, body="roles must alternate")], ["a"]])
    fine = ScriptedModel(["b"])
    await asyncio.gather(
        agent_of(refused, shared).generate(["one", "two"]),
        agent_of(fine, shared).generate(["one", "two"]),
    )
    assert sent(refused.requests[1]) == ["user: one\n\ntwo"]
    assert sent(fine.requests[0]) == ["user: one", "user: two"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rules": []}, r"rules must be a list of HistoryRule, not \[\]"),
        ({"rules": HISTORY_RULES[0]}, "rules must be a list, not HistoryRule"),
        ({"rules": ["empty-text"]}, r"rules\[0\] is 'empty-text'; give a HistoryRule"),
        ({"rules": [HISTORY_RULES[0]] * 2}, "two rules are named 'tool-call-ids'"),
        ({"on_violation": 1}, "on_violation must be a function, not 1"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], said: str) -> None:
    """When it is made, by the class's name."""
    with pytest.raises(ConfigurationError, match=f"^ProviderHistoryCompat: {said}"):
        ProviderHistoryCompat(**options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("", list), "HistoryRule: name must be a text, not ''"),
        (("x", "strip"), "HistoryRule 'x': mend must be a function, not 'strip'"),
        (("x", list, "400"), "HistoryRule 'x': refused must be None or a compiled pattern"),
    ],
)
def test_a_wrong_rule_is_refused(options: Any, said: str) -> None:
    """When it is made."""
    with pytest.raises(ConfigurationError, match=f"^{said}"):
        HistoryRule(*options)


def test_it_keeps_the_laws_of_processors() -> None:
    """In generated runs, whatever the model says."""
    check_processor(ProviderHistoryCompat, max_examples=EXAMPLES)
