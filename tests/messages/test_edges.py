"""Messages where one is easily lost: cached prompts, replacements, keys of others, bad input."""

from __future__ import annotations

from typing import Any

import pytest

from streampipe.errors import MessageListError, WireError
from streampipe.messages import (
    FilePart,
    Message,
    MessageList,
    ToolInvocationPart,
    message_from,
    message_to_stored,
    prompt_message_from,
)

STORED = {"id": "1", "role": "assistant", "createdAt": "2024-01-01T00:00:00+00:00"}


def called(result: str) -> MessageList:
    """A conversation with a tool call whose result is already in a prompt."""
    part = ToolInvocationPart("c", "f", {}, "result", result)
    chat = MessageList()
    chat.add(Message("assistant", [part]), source="response")
    assert result in str(chat.prompt())
    return chat


def test_a_removed_message_is_in_no_later_prompt_and_a_new_one_is() -> None:
    """However the list grew and shrank between two prompts."""
    first, second, third = (Message.user(text) for text in "abc")
    chat = MessageList([first, second])
    chat.prompt()
    chat.add(third)
    chat.remove_by_ids([first.id])
    assert [message.text for message in chat.prompt()] == ["b", "c"]


def test_a_result_that_is_replaced_after_a_prompt_is_in_no_later_one() -> None:
    """A secret that a processor takes out late is not sent again."""
    chat = called("secret")
    chat.update_tool_invocation("c", result="redacted")
    assert "secret" not in str(chat.prompt())


def test_nor_is_one_that_is_changed_in_the_live_part() -> None:
    """Whoever is lent a part may edit it in place."""
    chat = called("secret")
    part = chat.tool_invocation("c")
    assert part is not None
    part.result = "redacted"
    assert "secret" not in str(chat.prompt())


def test_replace_by_an_id_that_is_there_changes_nothing() -> None:
    """It is refused before anything is taken out."""
    first, second = Message.user("a"), Message.user("b")
    chat = MessageList([first, second])
    with pytest.raises(MessageListError, match=second.id):
        chat.replace(first.id, second)
    assert [message.text for message in chat] == ["a", "b"]


def test_replace_by_a_system_message_joins_the_system_messages() -> None:
    """As it does with `add`."""
    first = Message.user("a")
    chat = MessageList([first])
    chat.replace(first.id, {"role": "system", "content": "s"})
    assert len(chat) == 0
    assert [message.text for message in chat.system_messages] == ["s"]


@pytest.mark.parametrize(
    "content",
    [
        {"format": 2, "parts": [], "annotations": [1]},
        {
            "format": 2,
            "parts": [
                {
                    "type": "tool-invocation",
                    "toolInvocation": {
                        "toolCallId": "c",
                        "toolName": "f",
                        "args": {},
                        "state": "call",
                        "step": 1,
                    },
                },
            ],
        },
        {
            "format": 2,
            "parts": [
                {
                    "type": "reasoning",
                    "reasoning": "ab",
                    "details": [
                        {"type": "text", "text": "a", "signature": "1"},
                        {"type": "text", "text": "b", "signature": "2"},
                    ],
                },
            ],
        },
    ],
    ids=["content", "nested", "signatures"],
)
def test_keys_of_others_come_back_where_they_stood(content: Any) -> None:
    """Reading and writing a stored message loses nothing."""
    form = {**STORED, "content": content}
    assert message_to_stored(message_from(form)) == form


def test_signatures_of_a_text_that_was_changed_are_not_kept() -> None:
    """They sign what is no longer there."""
    details = [{"type": "text", "text": text, "signature": text} for text in "ab"]
    part = {"type": "reasoning", "reasoning": "ab", "details": details}
    message = message_from({**STORED, "content": {"format": 2, "parts": [part]}})
    message.parts[0].text = "rewritten"  # type: ignore[attr-defined]  # a reasoning part
    (stored,) = message_to_stored(message)["content"]["parts"]
    assert [detail["text"] for detail in stored["details"]] == ["rewritten"]


def test_strict_reading_refuses_unknown_keys_of_the_content() -> None:
    """It names the key."""
    form = {"role": "user", "content": {"format": 2, "parts": [], "nope": 1}}
    with pytest.raises(WireError, match="nope"):
        message_from(form, strict=True)


@pytest.mark.parametrize(
    "form",
    [
        {"role": "user", "parts": [{"type": "reasoning", "details": ["x"]}]},
        {"role": "user", "parts": [{"type": "reasoning", "details": [{"text": None}]}]},
        {"role": "user", "content": "x", "createdAt": 1e300},
        {"role": "user", "content": "x", "createdAt": True},
        {"role": "user", "content": "x", "id": 5},
        {"role": "user", "content": "x", "metadata": 5},
        {"role": "user", "parts": [{"type": "text", "text": 5}]},
        {"role": "assistant", "parts": [{"type": "tool-invocation", "toolInvocation": 7}]},
    ],
)
def test_what_is_no_message_is_a_wire_error(form: Any) -> None:
    """Found when it is read, not when it is used."""
    with pytest.raises(WireError):
        message_from(form)


def test_prompt_content_is_a_string_or_a_list() -> None:
    """None is nothing, a number is an error."""
    assert prompt_message_from({"role": "assistant", "content": None}).content == []
    with pytest.raises(WireError, match="content"):
        prompt_message_from({"role": "assistant", "content": 5})


def test_a_data_url_is_shown_as_it_is() -> None:
    """It is not wrapped in another one."""
    url = "data:image/png;base64,xx"
    shown = MessageList([Message("user", [FilePart(url, "image/png")])]).all.to_ui()
    assert shown[0]["parts"][0]["url"] == url
