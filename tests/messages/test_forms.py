"""Messages as a chat front end draws them, and as a model is given them."""

from __future__ import annotations

from typing import Any

import pytest

from streampipe.errors import WireError
from streampipe.messages import (
    DataPart,
    FilePart,
    Message,
    MessageList,
    OtherPart,
    Part,
    PromptMessage,
    ReasoningPart,
    SourcePart,
    StepStartPart,
    TextPart,
    ToolCallPart,
    ToolInvocationPart,
    ToolResultPart,
    prompt_message_from,
)


def prompt_of(*messages: Message) -> list[PromptMessage]:
    """The prompt of a conversation."""
    return MessageList(messages).all.to_prompt()


def ui_part(part: Part) -> dict[str, Any]:
    """A part as a front end gets it."""
    (message,) = MessageList([Message("assistant", [part])]).all.to_ui()
    (shown,) = message["parts"]
    assert isinstance(shown, dict)
    return shown


# --- the UI form -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (TextPart("hi"), {"type": "text", "text": "hi", "state": "done"}),
        (ReasoningPart("hm", "s"), {"type": "reasoning", "text": "hm", "state": "done"}),
        (
            FilePart("aGk=", "text/plain", "hi.txt"),
            {
                "type": "file",
                "mediaType": "text/plain",
                "url": "data:text/plain;base64,aGk=",
                "filename": "hi.txt",
            },
        ),
        (
            FilePart("https://a.example/x.png", "image/png"),
            {"type": "file", "mediaType": "image/png", "url": "https://a.example/x.png"},
        ),
        (
            SourcePart("s1", "url", "t", "https://a.example"),
            {"type": "source-url", "sourceId": "s1", "url": "https://a.example", "title": "t"},
        ),
        (
            SourcePart("s1", "document", "t", mime_type="text/plain"),
            {
                "type": "source-document",
                "sourceId": "s1",
                "mediaType": "text/plain",
                "title": "t",
            },
        ),
        (DataPart({"a": 1}, type="data-mood"), {"type": "data-mood", "data": {"a": 1}}),
        (StepStartPart(), {"type": "step-start"}),
        (OtherPart({"type": "hologram", "z": 1}, type="hologram"), {"type": "hologram", "z": 1}),
    ],
    ids=["text", "reasoning", "file", "file by URL", "URL", "document", "data", "step", "unknown"],
)
def test_each_part_is_shown(part: Part, shown: dict[str, Any]) -> None:
    """As the AI SDK's UI messages have it."""
    assert ui_part(part) == shown


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (ToolInvocationPart("c", "f", {"a": 1}), {"state": "input-available"}),
        (
            ToolInvocationPart("c", "f", {"a": 1}, "result", [1]),
            {"state": "output-available", "output": [1]},
        ),
        (
            ToolInvocationPart("c", "f", {"a": 1}, "result", "boom", is_error=True),
            {"state": "output-error", "errorText": "boom"},
        ),
    ],
    ids=["call", "result", "error"],
)
def test_a_tool_call_is_shown_by_what_became_of_it(
    part: ToolInvocationPart, shown: dict[str, Any]
) -> None:
    """A call that runs, one with a result, one that failed."""
    base = {"type": "tool-f", "toolCallId": "c", "input": {"a": 1}}
    assert ui_part(part) == {**base, **shown}


def test_a_ui_message_has_its_metadata() -> None:
    """Id, role, parts, and metadata where there is some."""
    message = Message("user", [TextPart("hi")], "m1", metadata={"k": 1})
    (shown,) = MessageList([message]).all.to_ui()
    assert (shown["id"], shown["role"], shown["metadata"]) == ("m1", "user", {"k": 1})
    assert "metadata" not in MessageList(["hi"]).all.to_ui()[0]


# --- the prompt ------------------------------------------------------------------------------


def test_a_step_is_what_was_said_and_called_then_what_came_of_it() -> None:
    """An assistant's message with two steps is two answers, each followed by its results."""
    message = Message(
        "assistant",
        [
            ReasoningPart("hm", "sig", provider_metadata={"p": {"k": 1}}),
            TextPart("let me see"),
            ToolInvocationPart("c1", "f", {"a": 1}, "result", "r1", provider_metadata={"p": {}}),
            ToolInvocationPart("c2", "g", {}, "result", "no", is_error=True),
            StepStartPart(),
            TextPart("done"),
        ],
    )
    assert prompt_of(Message.user("go"), message) == [
        PromptMessage("user", [TextPart("go")]),
        PromptMessage(
            "assistant",
            [
                ReasoningPart("hm", "sig", provider_metadata={"p": {"k": 1}}),
                TextPart("let me see"),
                ToolCallPart("c1", "f", {"a": 1}, provider_metadata={"p": {}}),
                ToolCallPart("c2", "g", {}),
            ],
        ),
        PromptMessage(
            "tool",
            [ToolResultPart("c1", "f", "r1"), ToolResultPart("c2", "g", "no", is_error=True)],
        ),
        PromptMessage("assistant", [TextPart("done")]),
    ]


def test_steps_of_calls_only_are_kept_apart() -> None:
    """The second call was made with the first one's result at hand."""
    parts: list[Part] = [
        ToolInvocationPart("c1", "f", {}, "result", 1),
        StepStartPart(),
        ToolInvocationPart("c2", "f", {}, "result", 2),
    ]
    roles = [m.role for m in prompt_of(Message("assistant", parts))]
    assert roles == ["assistant", "tool"] * 2


def test_text_after_a_result_is_a_step_without_its_marker() -> None:
    """Stored conversations of others may lack the marker; the order is kept anyway."""
    message = Message(
        "assistant", [ToolInvocationPart("c1", "f", {}, "result", 1), TextPart("so it is")]
    )
    assert [m.role for m in prompt_of(message)] == ["assistant", "tool", "assistant"]


def test_a_call_without_a_result_has_none_in_the_prompt() -> None:
    """What has not come back yet is not made up."""
    assert prompt_of(Message("assistant", [ToolInvocationPart("c1", "f", {})])) == [
        PromptMessage("assistant", [ToolCallPart("c1", "f", {})])
    ]


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_what_a_model_has_no_use_for_is_left_out(role: Any) -> None:
    """Sources, data, unknown parts and empty texts; a message of only these is no message."""
    parts = [
        SourcePart("s"),
        DataPart(1, type="data-x"),
        OtherPart({}, type="hologram"),
        TextPart(""),
        StepStartPart(),
    ]
    assert prompt_of(Message(role, list(parts))) == []
    file = FilePart("aGk=", "text/plain")
    assert prompt_of(Message(role, [*parts, file])) == [PromptMessage(role, [file])]


def test_a_prompt_s_parts_are_copies() -> None:
    """Rewriting the prompt leaves the conversation as it is."""
    message = Message("assistant", [TextPart("hi"), ReasoningPart("hm"), FilePart("x")])
    (asked,) = prompt_of(message)
    assert asked.content == message.parts
    assert not any(a is b for a, b in zip(asked.content, message.parts, strict=True))


# --- prompt messages that hooks return ---------------------------------------------------------


def test_prompt_messages_are_read_in_every_form() -> None:
    """A `PromptMessage`, a string, a `Message`, dicts with text and with parts of a prompt."""
    made = PromptMessage.system("x")
    assert prompt_message_from(made) is made
    assert prompt_message_from("x") == made
    assert prompt_message_from(Message.user("x")) == PromptMessage("user", [TextPart("x")])
    assert prompt_message_from({"role": "system", "content": "x"}) == made
    assert prompt_message_from({"role": "user"}) == PromptMessage("user", [])
    call = {"type": "tool-call", "tool_call_id": "c", "tool_name": "f", "args": {}}
    result = {"type": "tool-result", "tool_call_id": "c", "tool_name": "f", "result": 1}
    text = {"type": "text", "text": "hi"}
    read = prompt_message_from({"role": "assistant", "content": [text, call, result]})
    assert read.content == [
        TextPart("hi"),
        ToolCallPart("c", "f", {}),
        ToolResultPart("c", "f", 1),
    ]
    assert read.text == "hi"


@pytest.mark.parametrize(
    ("form", "told"),
    [
        (None, "not None"),
        (7, "a PromptMessage, a string or an object, not 7"),
        ({"content": "x"}, "'role' must be one of"),
        ({"role": "judge", "content": "x"}, "not 'judge'"),
        ({"role": "user", "parts": []}, "unknown key 'parts'; known: role, content"),
        ({"role": "user", "content": [{"type": "text", "txt": 1}]}, "unknown key 'txt'"),
        (
            {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c"}]},
            "part 'tool-result': unknown key 'toolCallId'; known: .*tool_call_id",
        ),
        ({"role": "user", "content": ["x"]}, "a message part is an object"),
    ],
    ids=str,
)
def test_what_is_no_prompt_message_is_refused(form: Any, told: str) -> None:
    """The error names the key at fault."""
    with pytest.raises(WireError, match=told):
        prompt_message_from(form)
