"""The stored JSON form of messages: as the contract draws it, both ways, nothing lost."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.errors import WireError
from streampipe.messages import (
    DataPart,
    FilePart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    SourcePart,
    StepStartPart,
    TextPart,
    ToolInvocationPart,
    message_from,
    message_to_stored,
)
from tests.contract.test_section_8_wire import JSON

TIME = "2024-05-06T07:08:09+00:00"
META = {"provider": {"any_key": 1}}

# Each part in the stored form, and as ours.
PARTS: dict[str, tuple[dict[str, Any], Part]] = {
    "text": (
        {"type": "text", "text": "hi", "providerMetadata": META},
        TextPart("hi", META),
    ),
    "reasoning": (
        {
            "type": "reasoning",
            "reasoning": "hm",
            "details": [
                {"type": "text", "text": "hm", "signature": "s"},
                {"type": "redacted", "data": "x"},
            ],
            "providerMetadata": META,
        },
        ReasoningPart("hm", "s", "x", META),
    ),
    "file": (
        {"type": "file", "data": "aGk=", "mimeType": "text/plain", "filename": "hi.txt"},
        FilePart("aGk=", "text/plain", "hi.txt"),
    ),
    "call": (
        {
            "type": "tool-invocation",
            "toolInvocation": {
                "toolCallId": "c1",
                "toolName": "f",
                "args": {"snake_key": 1},
                "state": "call",
            },
        },
        ToolInvocationPart("c1", "f", {"snake_key": 1}),
    ),
    "result": (
        {
            "type": "tool-invocation",
            "toolInvocation": {
                "toolCallId": "c1",
                "toolName": "f",
                "args": {},
                "state": "result",
                "result": None,
            },
        },
        ToolInvocationPart("c1", "f", {}, "result"),
    ),
    "error": (
        {
            "type": "tool-invocation",
            "toolInvocation": {
                "toolCallId": "c1",
                "toolName": "f",
                "args": {},
                "state": "result",
                "result": "boom",
                "isError": True,
                "providerExecuted": True,
            },
        },
        ToolInvocationPart("c1", "f", {}, "result", "boom", is_error=True, provider_executed=True),
    ),
    "source": (
        {
            "type": "source",
            "source": {"id": "s1", "sourceType": "url", "title": "t", "url": "https://a.example"},
        },
        SourcePart("s1", "url", "t", "https://a.example"),
    ),
    "data": ({"type": "data-mood", "data": {"a_b": [1]}}, DataPart({"a_b": [1]}, type="data-mood")),
    "step": ({"type": "step-start"}, StepStartPart()),
    "unknown": (
        {"type": "hologram", "any_key": {"x": 1}},
        OtherPart({"type": "hologram", "any_key": {"x": 1}}, type="hologram"),
    ),
}


def stored(*parts: Any, **more: Any) -> dict[str, Any]:
    """A stored message."""
    content = {"format": 2, "parts": list(parts)}
    return {"id": "m1", "role": "assistant", "createdAt": TIME, "content": content, **more}


# --- parts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PARTS)
def test_each_part_reads_and_writes_its_stored_form(name: str) -> None:
    """The example is read as the part, and written as it was; strictly read it is the same."""
    form, part = PARTS[name]
    read = message_from(stored(form))
    assert read.parts == [part]
    assert message_from(stored(form), strict=True).parts == [part]
    assert message_to_stored(read)["content"]["parts"] == [form]


@pytest.mark.parametrize("name", [name for name in PARTS if name != "unknown"])
def test_keys_of_others_are_kept_unless_read_strictly(name: str) -> None:
    """A key that is not ours comes out again; what a hook returns must not have one."""
    form, _ = PARTS[name]
    form = {**form, "theirKey": {"x": 1}}
    assert message_to_stored(message_from(stored(form)))["content"]["parts"] == [form]
    with pytest.raises(WireError, match=f"^part '{form['type']}': unknown key 'theirKey'; known:"):
        message_from(stored(form), strict=True)


def test_our_own_names_are_read_too() -> None:
    """A hook may return parts as dicts of our field names, nested or flat."""
    flat = {"type": "tool-invocation", "tool_call_id": "c1", "tool_name": "f", "args": {"a": 1}}
    nested = {"type": "tool-invocation", "toolInvocation": {"tool_call_id": "c1", "toolName": "f"}}
    read = message_from({"role": "assistant", "parts": [flat, nested]}, strict=True)
    assert read.parts == [ToolInvocationPart("c1", "f", {"a": 1}), ToolInvocationPart("c1", "f")]
    (part,) = message_from(stored({"type": "reasoning", "text": "hm", "signature": "s"})).parts
    assert part == ReasoningPart("hm", "s")


def test_reasoning_without_a_joined_text_is_joined() -> None:
    """The details alone say what was thought."""
    details = [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "signature": "s"}]
    (part,) = message_from(stored({"type": "reasoning", "details": details})).parts
    assert part == ReasoningPart("ab", "s")


# --- messages ------------------------------------------------------------------------------


def test_the_whole_of_a_stored_message() -> None:
    """Envelope and content, with the text written out beside the parts."""
    message = Message(
        "user",
        [TextPart("a"), StepStartPart(), TextPart("b")],
        "m1",
        datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
        "t1",
        "r1",
        {"k": 1},
        {"theirKey": True},
    )
    form = {
        "id": "m1",
        "role": "user",
        "createdAt": TIME,
        "threadId": "t1",
        "resourceId": "r1",
        "theirKey": True,
        "content": {
            "format": 2,
            "parts": [
                {"type": "text", "text": "a"},
                {"type": "step-start"},
                {"type": "text", "text": "b"},
            ],
            "content": "ab",
            "metadata": {"k": 1},
        },
    }
    assert message_to_stored(message) == form
    assert message_from(form) == message
    with pytest.raises(WireError, match=r"^message: unknown key 'theirKey'; known: content"):
        message_from(form, strict=True)


@pytest.mark.parametrize(
    "content",
    [
        "legacy",
        {"format": 2, "content": "legacy"},
        {"format": 2, "parts": [], "content": "legacy"},
        {"content": "legacy"},
        [{"type": "text", "text": "legacy"}],
    ],
    ids=["chat", "flat", "no parts", "format 1", "parts"],
)
def test_older_contents_are_read(content: Any) -> None:
    """A flat text counts where there are no parts; written it is in the one form."""
    message = message_from({"role": "user", "content": content})
    assert message.parts == [TextPart("legacy")]
    assert message_to_stored(message)["content"]["parts"] == [{"type": "text", "text": "legacy"}]


def test_parts_count_where_there_is_a_flat_text_too() -> None:
    """The flat text repeats what the parts say, and may be stale."""
    content = {"format": 2, "parts": [{"type": "text", "text": "new"}], "content": "stale"}
    assert message_from({"role": "user", "content": content}).text == "new"


@pytest.mark.parametrize("content", [None, "", [], {}, {"format": 2, "parts": []}])
def test_no_content_is_no_parts(content: Any) -> None:
    """A message may be empty, as an assistant's that only ran tools elsewhere."""
    assert message_from({"role": "assistant", "content": content}).parts == []


@pytest.mark.parametrize(
    "time",
    [
        TIME,
        "2024-05-06T07:08:09Z",
        "2024-05-06T09:08:09+02:00",
        1714979289000,
        1714979289000.0,
        datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
    ],
    ids=["iso", "zulu", "zone", "ms", "float ms", "datetime"],
)
def test_times_are_read_in_every_form(time: Any) -> None:
    """ISO 8601, milliseconds, or a datetime."""
    for key in ("createdAt", "created_at"):
        read = message_from({"role": "user", "content": "x", key: time})
        assert read.created_at == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


def test_what_is_missing_is_made() -> None:
    """An id of its own, and now."""
    before = datetime.now(UTC)
    one, two = (message_from({"role": "user", "content": "x"}) for _ in range(2))
    assert one.id
    assert one.id != two.id
    assert before <= one.created_at <= datetime.now(UTC)
    assert (one.thread_id, one.resource_id, one.metadata, one.extra) == (None, None, None, None)


def test_a_message_is_itself() -> None:
    """Reading a `Message` gives that very message."""
    message = Message.user("hi")
    assert message_from(message) is message
    assert message_from("hi").role == "user"


# --- generated -----------------------------------------------------------------------------

TEXT = st.text(max_size=6)
MAYBE_TEXT = st.none() | TEXT
METAS = st.none() | st.dictionaries(TEXT, JSON, max_size=2)
ANY_PART: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, TEXT, METAS),
    st.builds(ReasoningPart, TEXT, MAYBE_TEXT, JSON, METAS),
    st.builds(FilePart, TEXT, TEXT, MAYBE_TEXT, METAS),
    st.builds(
        ToolInvocationPart,
        TEXT,
        TEXT,
        JSON,
        st.sampled_from(["partial-call", "call", "result"]),
        JSON,
        st.booleans(),
        st.none() | st.booleans(),
        METAS,
    ),
    st.builds(SourcePart, TEXT, TEXT, TEXT, MAYBE_TEXT, MAYBE_TEXT, MAYBE_TEXT, METAS),
    st.builds(DataPart, JSON, type=TEXT.map("data-".__add__)),
    st.builds(StepStartPart),
)
ANY_MESSAGE = st.builds(
    Message,
    st.sampled_from(["user", "assistant", "system", "tool"]),
    st.lists(ANY_PART, max_size=4),
    st.text(min_size=1, max_size=6),
    st.datetimes(timezones=st.just(UTC)),
    MAYBE_TEXT,
    MAYBE_TEXT,
    METAS,
)


@given(ANY_MESSAGE)
def test_every_message_survives_storage(message: Message) -> None:
    """Written as JSON text and read, strictly or not, a message is what it was."""
    form = json.loads(json.dumps(message_to_stored(message)))
    assert message_from(form) == message
    assert message_from(form, strict=True) == message


@given(ANY_MESSAGE)
def test_storing_shares_nothing_that_is_ours(message: Message) -> None:
    """A stored form may be changed; the message's parts and fields stay."""
    before = repr(message)
    form = message_to_stored(message)
    for part in form["content"]["parts"]:
        part.clear()
    form["content"].clear()
    form.clear()
    assert repr(message) == before


# --- bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "told"),
    [
        (None, "not NoneType"),
        (7, "not int"),
        ({}, "'role' must be one of user, assistant, system, tool, not None"),
        ({"role": "judge"}, "not 'judge'"),
        ({"role": ["user"]}, r"not \['user'\]"),
        ({"role": "user", "content": 5}, "'content' must be a string, .* not 5"),
        ({"role": "user", "parts": {"a": 1}}, "'content' must be a string"),
        ({"role": "user", "content": [5]}, "message part is an object .* not 5"),
        ({"role": "user", "content": [{"text": "x"}]}, "with a string 'type'"),
        ({"role": "user", "content": [{"type": 5}]}, "with a string 'type'"),
        ({"role": "user", "content": "x", "createdAt": "noon"}, "'createdAt' is no time: 'noon'"),
        ({"role": "user", "content": "x", "createdAt": []}, r"'createdAt' is no time: \[\]"),
        ({"role": "user", "content": "x", "createdAt": 1e17}, "'createdAt' is no time"),
    ],
    ids=str,
)
def test_what_is_no_message_is_refused(form: Any, told: str) -> None:
    """The error says what is wrong with which key."""
    with pytest.raises(WireError, match=told):
        message_from(form)
