"""`MessageList`: its views, and every change that a processor may make."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.errors import MessageListError, WireError
from streampipe.messages import (
    Message,
    MessageList,
    MessageView,
    PromptMessage,
    Source,
    TextPart,
    ToolCallPart,
    ToolInvocationPart,
    ToolResultPart,
)


def texts(messages: Any) -> list[str]:
    """The text of each message."""
    return [message.text for message in messages]


def conversation() -> MessageList:
    """One message remembered, one given, one made."""
    chat = MessageList(system=["Be brief."])
    chat.add("before", source="memory")
    chat.add("question")
    chat.add(Message.assistant("answer"), source="response")
    return chat


def called(state: Literal["call", "result"] = "call", call_id: str = "c1") -> Message:
    """An assistant's message with one tool call."""
    return Message("assistant", [ToolInvocationPart(call_id, "f", {"a": 1}, state)])


# --- views ---------------------------------------------------------------------------------


def test_views_sort_messages_by_where_they_came_from() -> None:
    """Each message is in `all`, and in the one view of its source."""
    chat = conversation()
    assert texts(chat.all) == texts(chat) == ["before", "question", "answer"]
    assert texts(chat.remembered) == ["before"]
    assert texts(chat.input) == ["question"]
    assert texts(chat.response) == ["answer"]
    assert len(chat) == 3


SOURCES: list[Source] = ["memory", "input", "response"]


@given(st.lists(st.sampled_from(SOURCES), max_size=8))
def test_views_keep_the_order_and_split_the_whole(sources: list[Source]) -> None:
    """Whatever came when: no message is lost, doubled or moved by a view."""
    chat = MessageList()
    for number, source in enumerate(sources):
        chat.add(str(number), source=source)
    for source, view in zip(SOURCES, [chat.remembered, chat.input, chat.response], strict=True):
        assert texts(view) == [str(n) for n, own in enumerate(sources) if own == source]
    assert texts(chat.all) == [str(n) for n in range(len(sources))]


def test_a_view_is_a_snapshot_of_live_messages() -> None:
    """A view keeps its length; what is changed in a message of it is changed in the list."""
    chat = MessageList(["hello"])
    view = chat.all
    chat.add("more")
    assert texts(view) == ["hello"]
    part = view[0].parts[0]
    assert isinstance(part, TextPart)
    part.text = "changed"
    assert texts(chat.all) == ["changed", "more"]
    assert texts([message for message in view[:1]]) == ["changed"]  # noqa: C416 - a slice is a list
    assert "changed" in repr(view)


def test_a_view_writes_three_forms() -> None:
    """Stored, UI and prompt, of this view's messages only, and without system messages."""
    chat = conversation()
    view = chat.response
    assert isinstance(view, MessageView)
    (stored,) = view.to_stored()
    assert stored["content"] == {
        "format": 2,
        "parts": [{"type": "text", "text": "answer"}],
        "content": "answer",
    }
    assert view.to_ui() == [
        {
            "id": view[0].id,
            "role": "assistant",
            "parts": [{"type": "text", "text": "answer", "state": "done"}],
        }
    ]
    assert view.to_prompt() == [PromptMessage("assistant", [TextPart("answer")])]
    assert [message.role for message in chat.all.to_prompt()] == ["user", "user", "assistant"]


def test_the_newest_response_is_told() -> None:
    """`last_response` is the last message if this run made it."""
    chat = conversation()
    assert chat.last_response() is chat.response[0]
    chat.add("another question")
    assert chat.last_response() is None
    assert MessageList().last_response() is None


# --- adding --------------------------------------------------------------------------------


def test_every_form_of_a_message_is_taken() -> None:
    """A string, a message, the stored, the chat and our own form, and lists of them."""
    chat = MessageList()
    chat.add("a string")
    chat.add(Message.assistant("a message"))
    chat.add({"role": "user", "content": "chat form"})
    chat.add({"role": "user", "parts": [{"type": "text", "text": "own form"}]})
    chat.add({"role": "user", "content": {"format": 2, "parts": [{"type": "text", "text": "s"}]}})
    chat.add(["one", ["two"], MessageList(["three"]).all])
    own = ["a string", "a message", "chat form", "own form", "s"]
    assert texts(chat) == [*own, "one", "two", "three"]
    assert len({message.id for message in chat}) == 8


def test_a_message_given_is_the_message_kept() -> None:
    """No copy is made: the list is live."""
    message = Message.user("hello")
    assert MessageList([message]).all[0] is message


def test_a_system_message_joins_the_system_messages() -> None:
    """It is in no view, in front of the prompt, and can be replaced with all others."""
    chat = MessageList(["hello"], system=["one"])
    chat.add({"role": "system", "content": "two"})
    chat.add_system("three")
    chat.add_system(PromptMessage.system("four"))
    chat.add_system({"role": "system", "content": "five"})
    assert texts(chat.system_messages) == ["one", "two", "three", "four", "five"]
    assert texts(chat.all) == ["hello"]
    assert texts(chat.prompt()) == ["one", "two", "three", "four", "five", "hello"]
    chat.system_messages = ["only"]
    assert texts(chat.prompt(PromptMessage.system("extra"))) == ["only", "extra", "hello"]


@pytest.mark.parametrize("bad", [None, 7, object(), {"role": "judge"}, {"content": "x"}, [7]])
def test_what_is_no_message_is_refused(bad: Any) -> None:
    """Nothing is added, and the error says what a message is."""
    chat = MessageList(["hello"])
    with pytest.raises(WireError, match="message"):
        chat.add(bad)
    with pytest.raises(WireError, match="message"):
        MessageList([bad])
    assert texts(chat) == ["hello"]


def test_an_id_is_there_once() -> None:
    """The same message cannot be added twice; the error says what to do instead."""
    message = Message.user("hello")
    chat = MessageList([message])
    with pytest.raises(MessageListError, match=rf"{message.id}.* already .* use replace\(\)"):
        chat.add(message)
    assert len(chat) == 1


# --- removing and replacing ------------------------------------------------------------------


def test_removed_messages_are_given_back() -> None:
    """Ids that are not there are no error; a removed message may be added again."""
    chat = conversation()
    question = chat.input[0]
    assert chat.remove_by_ids([question.id, "nobody's"]) == [question]
    assert chat.remove_by_ids([question.id]) == []
    assert texts(chat) == ["before", "answer"]
    chat.add(question, source="memory")
    assert texts(chat.remembered) == ["before", "question"]


def test_a_replacement_takes_place_and_view() -> None:
    """One message by any number of others, with the same id too."""
    chat = conversation()
    old = chat.input[0]
    chat.replace(old.id, "first", {"role": "user", "content": "second", "id": old.id})
    assert texts(chat) == ["before", "first", "second", "answer"]
    assert texts(chat.input) == ["first", "second"]
    chat.replace(old.id)
    assert texts(chat) == ["before", "first", "answer"]
    assert texts(chat.prompt()) == ["Be brief.", "before", "first", "answer"]


def test_a_bad_replacement_changes_nothing() -> None:
    """An unknown id and what is no message are refused before the list is touched."""
    chat = conversation()
    with pytest.raises(MessageListError, match="no message with id 'nobody'"):
        chat.replace("nobody", "x")
    with pytest.raises(WireError):
        chat.replace(chat.input[0].id, 7)
    assert texts(chat.input) == ["question"]


# --- tool invocations --------------------------------------------------------------------------


def test_a_new_result_is_what_prompt_ui_and_store_show() -> None:
    """Once changed, nothing shows the old result."""
    chat = MessageList(["go"])
    chat.add(called(), source="response")
    assert chat.update_tool_invocation("c1", result="raw")
    assert chat.update_tool_invocation("c1", result="redacted")
    (message,) = chat.response
    assert isinstance(message.parts[0], ToolInvocationPart)
    assert message.parts[0].state == "result"
    for shown in (chat.response.to_stored(), chat.response.to_ui(), chat.response.to_prompt()):
        assert "redacted" in str(shown)
        assert "raw" not in str(shown)
    assert chat.prompt()[-2:] == [
        PromptMessage("assistant", [ToolCallPart("c1", "f", {"a": 1})]),
        PromptMessage("tool", [ToolResultPart("c1", "f", "redacted")]),
    ]


def test_only_what_is_given_is_changed() -> None:
    """Arguments without a result, a result that is None, a state of its own."""
    chat = MessageList()
    chat.add(called(), source="response")
    part = chat.tool_invocation("c1")
    assert part is not None
    assert chat.update_tool_invocation("c1", args={"a": 2}, state="call")
    assert (part.args, part.result, part.state) == ({"a": 2}, None, "call")
    part.result = "before"
    assert chat.update_tool_invocation("c1", result=None)
    assert (part.args, part.result, part.state) == ({"a": 2}, None, "result")


def test_the_newest_of_equal_ids_is_meant() -> None:
    """Models reuse ids: the latest call is the one that is at work."""
    chat = MessageList()
    chat.add([called(), called()], source="response")
    chat.update_tool_invocation("c1", result="new")
    states = [part.state for m in chat for part in m.parts if isinstance(part, ToolInvocationPart)]
    assert states == ["call", "result"]


def test_an_unknown_call_is_told() -> None:
    """False and None, no error: the call may have been removed."""
    chat = conversation()
    assert not chat.update_tool_invocation("c9", result=1)
    assert chat.tool_invocation("c9") is None


# --- what a hook returns -----------------------------------------------------------------------


def test_a_returned_list_replaces_its_phase() -> None:
    """What is missing goes, what is new joins the phase's view, the order is the returned one."""
    chat = conversation()
    chat.add("second question")
    first, second = chat.input
    chat.reconcile(chat.input, [second, "new", first], "input")
    assert texts(chat.input) == ["second question", "new", "question"]
    assert texts(chat.all) == ["before", "second question", "new", "question", "answer"]
    chat.reconcile(chat.input, [], "input")
    assert texts(chat.all) == ["before", "answer"]


def test_a_message_of_another_phase_moves_but_keeps_its_view() -> None:
    """Where it came from does not change by being returned."""
    chat = conversation()
    (remembered,) = chat.remembered
    chat.reconcile(chat.input, [*chat.input, remembered], "input")
    assert texts(chat.all) == ["question", "before", "answer"]
    assert texts(chat.remembered) == ["before"]


def test_returned_system_messages_join_the_others() -> None:
    """A list may hold system messages in between."""
    chat = conversation()
    chat.reconcile(chat.input, [*chat.input, {"role": "system", "content": "Be kind."}], "input")
    assert texts(chat.system_messages) == ["Be brief.", "Be kind."]
    assert texts(chat.input) == ["question"]


@pytest.mark.parametrize(
    ("wanted", "error", "told"),
    [
        ([{"role": "user", "contents": "x"}], WireError, "unknown key 'contents'"),
        (
            [{"role": "user", "parts": [{"type": "text", "txt": "x"}]}],
            WireError,
            "part 'text': unknown key 'txt'",
        ),
        ([7], WireError, "not int"),
        (
            [
                {"role": "user", "content": "x", "id": "1"},
                {"role": "user", "content": "y", "id": "1"},
            ],
            MessageListError,
            "one id twice",
        ),
    ],
    ids=["key", "part key", "no message", "id twice"],
)
def test_a_bad_returned_list_is_refused_whole(
    wanted: list[Any], error: type[Exception], told: str
) -> None:
    """A hook's misspelling is an error by name, and the conversation stays as it was."""
    chat = conversation()
    with pytest.raises(error, match=told):
        chat.reconcile(chat.input, wanted, "input")
    assert texts(chat.all) == ["before", "question", "answer"]


# --- prompts -----------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from(["user", "call", "prompt"]), st.text(max_size=3))))
def test_a_prompt_made_step_by_step_is_the_prompt_made_at_once(
    steps: list[tuple[str, str]],
) -> None:
    """However often it was asked for in between, the prompt is that of the whole conversation."""
    chat = MessageList(system=["s"])
    for number, (what, text) in enumerate(steps):
        if what == "prompt":
            chat.prompt()
        elif what == "user":
            chat.add(text or "-")
        else:
            chat.add(called("result", f"c{number}"), source="response")
    grown = chat.prompt()
    assert grown == [PromptMessage.system("s"), *chat.all.to_prompt()]


def test_rewriting_a_prompt_leaves_the_conversation() -> None:
    """A prompt that hooks may see holds copies of the parts."""
    chat = MessageList(["hello"])
    part = chat.prompt(private=False)[0].content[0]
    assert isinstance(part, TextPart)
    part.text = "rewritten"
    assert texts(chat) == ["hello"]
    assert texts(chat.prompt()) == ["hello"]


def test_changes_between_prompts_are_in_the_next() -> None:
    """Whatever a processor does to messages that a model has seen already."""
    chat = MessageList(["one", "two", "three"])
    assert texts(chat.prompt()) == ["one", "two", "three"]
    first, second, third = chat.all
    first.parts = [TextPart("1")]
    chat.replace(second.id, "2", "2b")
    chat.remove_by_ids([third.id])
    assert texts(chat.prompt()) == ["1", "2", "2b"]
    first.parts = [TextPart("one")]
    assert texts(chat.prompt()) == ["one", "2", "2b"]
    chat.add("4")
    assert texts(chat.prompt()) == ["one", "2", "2b", "4"]
