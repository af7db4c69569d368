"""Section 7 of the contract: state, messages, and the message list."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe import Agent, Message, MessageList, ToolResult
from streampipe.contracts import HOOKS
from streampipe.errors import MessageListError, WireError
from streampipe.messages import (
    DataPart,
    FilePart,
    OtherPart,
    PromptMessage,
    ReasoningPart,
    SourcePart,
    StepStartPart,
    TextPart,
    ToolInvocationPart,
    message_from,
    message_to_stored,
)
from streampipe.testing import ScriptedModel
from tests.contract.guards import (
    ALL_HOOKS,
    Runner,
    guarded,
    list_of,
    lookup_into,
    model_of,
    processor,
    unchanged,
)


def counting(name: str, states: list[tuple[str, Any]]) -> Any:
    """A processor whose every hook notes its state and counts in it."""

    def hook_of(hook: str) -> Any:
        def count(args: Any) -> Any:
            if not states:
                assert args.state == {}
            args.state["calls"] = args.state.get("calls", 0) + 1
            states.append((hook, args.state))
            return {"retry": True} if hook == "process_api_error" else unchanged(hook, args)

        return count

    return processor(name, **{hook: hook_of(hook) for hook in HOOKS})


def everywhere(*processors: Any) -> dict[str, Any]:
    """Options with these processors in all three lists."""
    return {list_of(hook): list(processors) for hook in HOOKS}


# --- state --------------------------------------------------------------------------------------


async def test_7_state_is_one_dict_in_every_hook_of_a_processor(run: Runner) -> None:
    """Empty at the start, and the same object in all hooks, retries and steps of the run."""
    states: list[tuple[str, Any]] = []
    agent = Agent(
        model=ScriptedModel(ALL_HOOKS), tools=[lookup_into([])], **everywhere(counting("p", states))
    )
    await run(agent)
    assert {hook for hook, _ in states} == set(HOOKS)
    assert len({id(state) for _, state in states}) == 1
    assert states[0][1] == {"calls": len(states)}


async def test_7_state_is_not_shared_with_another_run(run: Runner) -> None:
    """Each run of one agent starts with an empty one, one after another."""
    seen: list[Any] = []

    def note(args: Any) -> None:
        seen.append(dict(args.state))
        args.state["used"] = True

    agent = Agent(
        model=ScriptedModel(["a"], repeat=True),
        output_processors=[processor(process_output_step=note)],
    )
    await run(agent)
    await run(agent)
    assert seen == [{}, {}]


async def test_7_state_is_not_shared_between_runs_at_once() -> None:
    """Runs that are interleaved count each for itself."""

    async def count(args: Any) -> Any:
        args.state["n"] = args.state.get("n", 0) + 1
        await asyncio.sleep(0)
        if args.part.type == "text-end":
            counts.append(args.state["n"])
        return args.part

    counts: list[int] = []
    agent = Agent(
        model=ScriptedModel([["a"] * 20], repeat=True),
        output_processors=[processor(process_output_stream=count)],
    )
    await asyncio.gather(*(agent.generate("hi") for _ in range(5)))
    assert len(counts) == 5
    assert len(set(counts)) == 1


async def test_7_state_is_not_shared_with_another_id(run: Runner) -> None:
    """Two processors of one run have two states."""
    first: list[tuple[str, Any]] = []
    second: list[tuple[str, Any]] = []
    lists = everywhere(counting("first", first), counting("second", second))
    await run(Agent(model=ScriptedModel(["a"]), **lists))
    assert first[0][1] is not second[0][1]
    assert first[0][1] == second[0][1] == {"calls": len(first)}


# --- Message ------------------------------------------------------------------------------------

STORED = {
    "id": "m1",
    "role": "assistant",
    "createdAt": "2026-01-02T03:04:05+00:00",
    "threadId": "t",
    "resourceId": "r",
    "content": {
        "format": 2,
        "parts": [
            {"type": "step-start"},
            {
                "type": "reasoning",
                "reasoning": "hm",
                "details": [{"type": "text", "text": "hm", "signature": "s"}],
            },
            {"type": "text", "text": "It is "},
            {
                "type": "tool-invocation",
                "toolInvocation": {
                    "toolCallId": "c1",
                    "toolName": "lookup",
                    "args": {"snake_key": 1},
                    "state": "result",
                    "result": {"ok": True},
                },
            },
            {
                "type": "source",
                "source": {"id": "s", "sourceType": "url", "title": "t", "url": "u"},
            },
            {"type": "file", "data": "aGk=", "mimeType": "text/plain"},
            {"type": "data-mood", "data": {"level": 3}},
            {"type": "text", "text": "blue."},
        ],
        "content": "It is blue.",
        "metadata": {"score": 1},
    },
}


def test_7_a_message_reads_and_writes_the_stored_form() -> None:
    """Every kind of part has its place in the stored form."""
    message = message_from(STORED)
    assert [type(part) for part in message.parts] == [
        StepStartPart,
        ReasoningPart,
        TextPart,
        ToolInvocationPart,
        SourcePart,
        FilePart,
        DataPart,
        TextPart,
    ]
    assert (message.id, message.role) == ("m1", "assistant")
    assert (message.thread_id, message.resource_id) == ("t", "r")
    assert message.created_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert message.metadata == {"score": 1}
    assert message_to_stored(message) == STORED


def test_7_text_of_a_message_joins_its_text_parts() -> None:
    """With nothing between; other parts do not count."""
    assert message_from(STORED).text == "It is blue."
    assert Message("assistant", [ReasoningPart("hm")]).text == ""


@pytest.mark.parametrize("parts", [None, []])
def test_7_a_legacy_flat_content_is_read_when_there_are_no_parts(parts: Any) -> None:
    """`content.content` is the text of old messages."""
    content = {"format": 2, "content": "old"} | ({} if parts is None else {"parts": parts})
    message = message_from({"role": "user", "content": content})
    assert message.parts == [TextPart("old")]


def test_7_parts_win_over_a_legacy_flat_content() -> None:
    """Where both are there, the parts are the message."""
    content = {"format": 2, "content": "old", "parts": [{"type": "text", "text": "new"}]}
    assert message_from({"role": "user", "content": content}).text == "new"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=4),
    lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
TEXT = st.text(max_size=6)
PARTS = st.one_of(
    st.builds(TextPart, TEXT),
    st.builds(ReasoningPart, TEXT, st.none() | TEXT, st.none() | TEXT),
    st.builds(FilePart, TEXT, st.just("text/plain"), st.none() | TEXT),
    st.builds(
        ToolInvocationPart,
        TEXT,
        TEXT,
        st.dictionaries(TEXT, JSON, max_size=2),
        st.sampled_from(["call", "result"]),
        JSON,
        st.booleans(),
    ),
    st.builds(SourcePart, TEXT, st.just("url"), TEXT, st.none() | TEXT),
    st.builds(DataPart, JSON, type=TEXT.map("data-".__add__)),
    st.builds(StepStartPart),
)
MESSAGES = st.builds(
    Message,
    st.sampled_from(["user", "assistant", "tool"]),
    st.lists(PARTS, min_size=1, max_size=4),
    created_at=st.datetimes(timezones=st.just(UTC)),
    thread_id=st.none() | TEXT,
    metadata=st.none() | st.dictionaries(TEXT, JSON, max_size=2),
)


@given(MESSAGES)
def test_7_every_message_survives_storage(message: Message) -> None:
    """Written and read, a message is what it was."""
    assert message_from(message_to_stored(message)) == message


def test_7_keys_and_parts_of_others_survive_storage() -> None:
    """What is not ours is kept, in its place."""
    stored = {
        "id": "m",
        "role": "user",
        "createdAt": "2026-01-02T03:04:05+00:00",
        "type": "v2",
        "content": {"format": 2, "parts": [{"type": "hologram", "z": 1}, {"type": "step-start"}]},
    }
    message = message_from(stored)
    assert isinstance(message.parts[0], OtherPart)
    assert message_to_stored(message) == stored


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (7, "a message is a Message, a string or an object, not int"),
        ({"content": "x"}, "'role' must be one of user, assistant, system, tool, not None"),
        ({"role": "robot", "content": "x"}, "not 'robot'"),
        ({"role": "user", "content": 7}, "'content' must be"),
        ({"role": "user", "content": [{"text": "x"}]}, "a string 'type'"),
        ({"role": "user", "content": "x", "createdAt": "soon"}, "'createdAt' is no time: 'soon'"),
    ],
)
def test_7_what_is_no_message_is_refused(value: Any, told: str) -> None:
    """The error says what is wrong and what a message is."""
    with pytest.raises(WireError) as caught:
        message_from(value)
    assert told in str(caught.value)


# --- MessageList ----------------------------------------------------------------------------------


@pytest.fixture
def chat() -> MessageList:
    """A conversation with something in every view."""
    chat = MessageList(system=["Be brief."])
    chat.add(Message.user("earlier"), source="memory")
    chat.add("question")
    asked = ToolInvocationPart("c1", "lookup", {"word": "x"})
    chat.add(Message("assistant", [TextPart("let me see"), asked]), source="response")
    return chat


def test_7_views_of_a_message_list(chat: MessageList) -> None:
    """What came from memory, what was given, what the run made, and all of it in order."""
    views = (chat.remembered, chat.input, chat.response, chat.all)
    assert [[m.text for m in view] for view in views] == [
        ["earlier"],
        ["question"],
        ["let me see"],
        ["earlier", "question", "let me see"],
    ]


def test_7_forms_of_a_view(chat: MessageList) -> None:
    """Stored messages, UI messages and prompt messages."""
    view = chat.all
    assert view.to_stored() == [message_to_stored(message) for message in view]
    ui = view.to_ui()
    assert [message["role"] for message in ui] == ["user", "user", "assistant"]
    assert ui[2]["parts"][1] == {
        "type": "tool-lookup",
        "toolCallId": "c1",
        "input": {"word": "x"},
        "state": "input-available",
    }
    prompt = view.to_prompt()
    assert all(isinstance(message, PromptMessage) for message in prompt)
    assert [message.text for message in prompt] == ["earlier", "question", "let me see"]


def test_7_messages_of_a_view_are_live(chat: MessageList) -> None:
    """Editing a part in place is seen by everyone after."""
    part = chat.input[0].parts[0]
    assert isinstance(part, TextPart)
    part.text = "edited"
    assert chat.all[1].text == "edited"


def test_7_add_takes_every_form_and_puts_it_in_its_view(chat: MessageList) -> None:
    """Strings, objects of three forms, and lists of these; system messages join the system's."""
    chat.add(["one", {"role": "user", "content": "two"}])
    chat.add({"role": "assistant", "content": "three"}, source="response")
    chat.add({"role": "system", "content": "Be kind."})
    chat.add_system("Be quick.")
    assert [m.text for m in chat.input] == ["question", "one", "two"]
    assert chat.response[-1].text == "three"
    assert [m.text for m in chat.system_messages] == ["Be brief.", "Be kind.", "Be quick."]


def test_7_remove_by_ids_removes_those_that_are_there(chat: MessageList) -> None:
    """And returns them; unknown ids are no matter."""
    question = chat.input[0]
    assert chat.remove_by_ids([question.id, "unknown"]) == [question]
    assert len(chat) == 2
    assert list(chat.input) == []


def test_7_replace_puts_messages_in_the_place_of_one(chat: MessageList) -> None:
    """They join its view."""
    chat.replace(chat.input[0].id, "first", "second")
    assert [m.text for m in chat.all] == ["earlier", "first", "second", "let me see"]
    assert [m.text for m in chat.input] == ["first", "second"]


def test_7_changes_that_cannot_be_are_refused(chat: MessageList) -> None:
    """An id twice, a message that is not there: the error names the id."""
    with pytest.raises(MessageListError, match="'nobody'"):
        chat.replace("nobody", "x")
    with pytest.raises(MessageListError, match=f"'{chat.input[0].id}' is already in the list"):
        chat.add(chat.input[0])


def test_7_update_tool_invocation_changes_a_call_where_it_stands(chat: MessageList) -> None:
    """Result, arguments and state; it says whether the call was there."""
    assert chat.update_tool_invocation("c1", result={"ok": 1}, args={"word": "y"}) is True
    part = chat.response[0].parts[1]
    assert part == ToolInvocationPart("c1", "lookup", {"word": "y"}, "result", {"ok": 1})
    assert chat.update_tool_invocation("c1", state="call") is True
    assert chat.tool_invocation("c1") is part
    assert chat.update_tool_invocation("unknown", result=1) is False


async def test_7_a_result_replaced_in_process_tool_result_is_shown_everywhere(run: Runner) -> None:
    """In the `tool-result` chunk, the prompt, the step and the stored message."""

    def redact(args: Any) -> None:
        args.message_list.update_tool_invocation(args.tool_call_id, result="[redacted]")

    agent = guarded("process_tool_result", redact)
    seen = await run(agent)
    assert [r.result for r in seen.result.tool_results] == ["[redacted]"]
    assert "meaning" not in repr(seen.result) + model_of(agent).prompts()[1]
    assert "[redacted]" in model_of(agent).prompts()[1]
    assert "[redacted]" in repr(seen.result.messages[0])
    if seen.chunks is not None:
        assert [c.result for c in seen.chunks if isinstance(c, ToolResult)] == ["[redacted]"]


async def test_7_what_the_message_list_holds_at_the_end_is_what_would_be_stored(
    run: Runner,
) -> None:
    """`result.messages` is the response view after the last processor."""
    lists: list[MessageList] = []

    def note(args: Any) -> Any:
        lists.append(args.message_list)
        args.message_list.add({"role": "assistant", "content": "P.S."}, source="response")

    seen = await run(guarded("process_output_result", note))
    assert seen.result.messages == list(lists[0].response)
    assert [message.text for message in seen.result.messages] == ["one", "two", "P.S."]


@pytest.mark.parametrize("way", ["block", "failure"])
async def test_7_a_stopped_run_stores_nothing_of_the_step_that_was_stopped(
    run: Runner, way: str
) -> None:
    """The live list holds the input and the accepted steps, nothing else."""
    lists: list[MessageList] = []

    def stop(args: Any) -> Any:
        lists.append(args.message_list)
        if args.step_number == 1:
            assert args.text == "two"
            if way == "block":
                args.abort("no")
            raise ValueError

    seen = await run(guarded("process_output_step", stop))
    assert [message.text for message in lists[0].all] == ["hi", "one"]
    assert [message.text for message in seen.result.messages] == ["one"]
