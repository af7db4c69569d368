"""Prompts in the Anthropic protocol: every kind of part, as the official SDK types it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import orjson
import pytest
from anthropic.types.beta.message_create_params import (
    MessageCreateParamsStreaming as BetaMessageCreateParamsStreaming,
)
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from streampipe.contracts import ModelRequest, ToolSpec
from streampipe.messages import (
    DataPart,
    FilePart,
    Part,
    PromptMessage,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from streampipe.models.anthropic import encode_request
from streampipe.testing import message_lists

JUDGE = TypeAdapter[Any](MessageCreateParamsStreaming)
BETA_JUDGE = TypeAdapter[Any](BetaMessageCreateParamsStreaming)
TOOL = ToolSpec(
    "look", "Look it up.", {"type": "object", "properties": {"id": {"type": "integer"}}}
)
CACHED = {"anthropic": {"cache_control": {"type": "ephemeral"}}}


def body_of(
    *prompt: PromptMessage,
    model: str = "claude-sonnet-4-5",
    provider: str = "anthropic",
    warnings: list[str] | None = None,
    judge: TypeAdapter[Any] = JUDGE,
    **request: Any,
) -> dict[str, Any]:
    """The body of a request, after the SDK's own types have accepted it."""
    asked = ModelRequest(list(prompt) or [user("hi")], **request)
    before = copy.deepcopy(asked)
    body = encode_request(asked, model, provider=provider, warnings=warnings)
    assert asked == before, "the request is left as it is"
    walk(judge.validate_python(orjson.loads(orjson.dumps(body)), strict=True))
    return body


def walk(value: Any) -> None:
    """Look at everything in a value: pydantic checks an `Iterable` only while it is read."""
    if isinstance(value, Mapping):
        for inner in value.values():
            walk(inner)
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for inner in value:
            walk(inner)


def user(*parts: Part | str) -> PromptMessage:
    """A user's message."""
    return PromptMessage("user", [TextPart(p) if isinstance(p, str) else p for p in parts])


def assistant(*parts: Part) -> PromptMessage:
    """An assistant's message."""
    return PromptMessage("assistant", list(parts))


def given_back(*parts: Part) -> PromptMessage:
    """A message with results of tools."""
    return PromptMessage("tool", list(parts))


def content_of(*prompt: PromptMessage, **options: Any) -> list[dict[str, Any]]:
    """The blocks of the only message."""
    (message,) = body_of(*prompt, **options)["messages"]
    blocks: list[dict[str, Any]] = message["content"]
    return blocks


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "x"}},
        {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text"}]},
        {"type": "tool_use", "id": "1", "name": "f", "input": "{}"},
        {"type": "thinking", "thinking": "x"},
    ],
)
def test_the_judge_can_say_no(block: dict[str, Any]) -> None:
    """A block that is wrong is refused, however deep it is."""
    body = {**body_of(), "messages": [{"role": "user", "content": [block]}]}
    with pytest.raises(ValidationError):
        walk(JUDGE.validate_python(body, strict=True))


def test_a_plain_request() -> None:
    """A prompt and nothing else."""
    assert body_of(user("hi")) == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 64_000,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "stream": True,
    }


# --- the prompt ----------------------------------------------------------------------------


def test_system_messages_stand_apart() -> None:
    """All of them, in their order, each part with a cache mark of its own."""
    body = body_of(
        PromptMessage("system", [TextPart("Be brief.", CACHED), TextPart(" ")]),
        user("hi"),
        PromptMessage.system("Be kind."),
    )
    assert body["system"] == [
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "Be kind."},
    ]
    assert [message["role"] for message in body["messages"]] == ["user"]


def test_messages_take_turns() -> None:
    """Those of one role that follow one another become one; an empty one is none."""
    body = body_of(
        user("a"), user("b"), assistant(), assistant(TextPart("c")), user("", " \n"), user("d")
    )
    said = [(m["role"], [b["text"] for b in m["content"]]) for m in body["messages"]]
    assert said == [("user", ["a", "b"]), ("assistant", ["c"]), ("user", ["d"])]


def test_results_of_tools() -> None:
    """They are the user's, and stand before what the user says."""
    call = ToolCallPart("1", "look", {"id": 7})
    body = body_of(
        user("hi"),
        assistant(TextPart("so"), call, ToolCallPart("2", "look", None)),
        user("well?"),
        given_back(ToolResultPart("1", "look", {"a": 1}), ToolResultPart("2", "look", "no", True)),  # noqa: FBT003 - a part's field
    )
    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "so"},
                {"type": "tool_use", "id": "1", "name": "look", "input": {"id": 7}},
                {"type": "tool_use", "id": "2", "name": "look", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": '{"a":1}'},
                {"type": "tool_result", "tool_use_id": "2", "content": "no", "is_error": True},
                {"type": "text", "text": "well?"},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ([{"type": "text", "text": "x"}], [{"type": "text", "text": "x"}]),
        ([{"type": "text", "text": ""}], ""),
        (
            [
                {"type": "text", "text": "see"},
                {"type": "image", "data": "aGk=", "mime_type": "image/png"},
                {
                    "type": "file",
                    "data": "https://a.example",
                    "mime_type": "application/pdf",
                    "filename": "a",
                },
            ],
            [
                {"type": "text", "text": "see"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
                },
                {
                    "type": "document",
                    "source": {"type": "url", "url": "https://a.example"},
                    "title": "a",
                },
            ],
        ),
        ([], "[]"),
        (["x"], '["x"]'),
        ([{"type": "text"}], '[{"type":"text"}]'),
        (
            [{"type": "file", "data": "aGk=", "mime_type": "audio/wav"}],
            '[{"type":"file","data":"aGk=","mime_type":"audio/wav"}]',
        ),
        (7, "7"),
        (None, "null"),
        ("", ""),
    ],
)
def test_what_a_result_may_be(result: Any, content: Any) -> None:
    """Content parts go natively; what is none, or none for the protocol, as JSON text."""
    (block,) = content_of(given_back(ToolResultPart("1", "look", result)))
    assert block["content"] == content


def test_arguments_that_are_no_object() -> None:
    """The protocol has none: they are left out, and that is told."""
    told: list[str] = []
    (block,) = content_of(assistant(ToolCallPart("1", "look", [1])), warnings=told)
    assert block["input"] == {}
    assert len(told) == 1
    assert "'look'" in told[0]


BASE64 = {"type": "base64", "data": "aGk="}


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (
            FilePart("aGk=", "image/png"),
            {"type": "image", "source": {**BASE64, "media_type": "image/png"}},
        ),
        (
            FilePart("data:image/png;base64,aGk=", "image/jpg"),
            {"type": "image", "source": {**BASE64, "media_type": "image/jpeg"}},
        ),
        (
            FilePart("https://a.example", "image/svg+xml"),
            {"type": "image", "source": {"type": "url", "url": "https://a.example"}},
        ),
        (
            FilePart("aGk=", "application/pdf", "a.pdf"),
            {
                "type": "document",
                "source": {**BASE64, "media_type": "application/pdf"},
                "title": "a.pdf",
            },
        ),
        (
            FilePart("https://a.example", "application/pdf"),
            {"type": "document", "source": {"type": "url", "url": "https://a.example"}},
        ),
        (
            FilePart("w6Q=", "text/csv; charset=utf-8", None, CACHED),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "ä"},
                "cache_control": {"type": "ephemeral"},
            },
        ),
        (
            FilePart("e30=", "application/json"),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "{}"},
            },
        ),
    ],
)
def test_files(part: FilePart, block: dict[str, Any]) -> None:
    """Images, PDFs and text, as data or by address."""
    assert content_of(user(part)) == [block]


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (FilePart("aGk=", "audio/wav"), "'audio/wav'"),
        (FilePart("aGk=", "image/bmp"), "'image/bmp'"),
        (FilePart("https://a.example", "text/plain"), "only images and PDFs"),
        (FilePart("gs://a/b", "image/png"), "gs://a/b"),
        (FilePart("/w==", "text/plain"), "UTF-8"),
        (FilePart("??", "text/plain"), "UTF-8"),
        (DataPart("x", type="data-x"), "'data-x'"),
        (ToolCallPart("1", "f", {}), "'tool-call'"),
        (ReasoningPart("x"), "'reasoning'"),
    ],
)
def test_what_cannot_be_sent_is_told(part: Part, told: str) -> None:
    """Nothing is lost in silence."""
    warnings: list[str] = []
    assert len(content_of(user("hi", part), warnings=warnings)) == 1
    assert len(warnings) == 1
    assert told in warnings[0]


@pytest.mark.parametrize("role", ["system", "assistant", "tool"])
def test_a_part_in_the_wrong_message_is_told(role: Any) -> None:
    """Only users give files."""
    warnings: list[str] = []
    body_of(PromptMessage(role, [FilePart("aGk=", "image/png")]), user("hi"), warnings=warnings)
    assert warnings == [f"a 'file' part of a {role} message was left out: no part of the protocol"]


SIGNED = {"anthropic": {"signature": "sig"}}
REDACTED = {"anthropic": {"type": "redacted_thinking"}}


@pytest.mark.parametrize(
    ("part", "blocks"),
    [
        (
            ReasoningPart("hm", "sig", None, SIGNED),
            [{"type": "thinking", "thinking": "hm", "signature": "sig"}],
        ),
        (
            ReasoningPart("", "sig", None, SIGNED),
            [{"type": "thinking", "thinking": "", "signature": "sig"}],
        ),
        (
            ReasoningPart(redacted="x9", provider_metadata=REDACTED),
            [{"type": "redacted_thinking", "data": "x9"}],
        ),
        (ReasoningPart("hm"), []),
        (ReasoningPart("hm", "sig", None, {"openai": {"signature": "sig"}}), []),
        (ReasoningPart("hm", "sig"), []),
        (ReasoningPart(redacted="x9"), []),
    ],
)
def test_reasoning_goes_to_its_maker_only(
    part: ReasoningPart, blocks: list[dict[str, Any]]
) -> None:
    """With signature or encrypted; anybody else's is left out, and no warning made of it."""
    warnings: list[str] = []
    body = body_of(user("hi"), assistant(part, TextPart("x")), warnings=warnings)
    assert body["messages"][1]["content"] == [*blocks, {"type": "text", "text": "x"}]
    assert not warnings


def test_the_name_of_the_provider_decides() -> None:
    """Metadata and options of another name are another's."""
    part = TextPart("x", {"acme": {"cache_control": {"type": "ephemeral", "ttl": "1h"}}, **CACHED})
    options = {"anthropic": {"inference_geo": "eu"}, "acme": {"inference_geo": "us"}}
    body = body_of(user(part), provider="acme", provider_options=options)
    assert body["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert body["inference_geo"] == "us"


# --- tools that the provider ran -----------------------------------------------------------


def ran(name: str, kind: str = "server_tool_use", **more: Any) -> ToolCallPart:
    """A call that the provider made and ran."""
    return ToolCallPart("s1", name, {"q": 1}, True, {"anthropic": {"type": kind, **more}})  # noqa: FBT003 - a part's field


@pytest.mark.parametrize(
    ("name", "kind", "result"),
    [
        ("web_search", "web_search_tool_result", []),
        (
            "tool_search_tool_bm25",
            "tool_search_tool_result",
            {"type": "tool_search_tool_search_result", "tool_references": []},
        ),
    ],
)
def test_a_servers_tool_stays_the_assistants(name: str, kind: str, result: Any) -> None:
    """Its result stands behind its call, though a prompt has it in a message of its own."""
    body = body_of(
        user("hi"),
        assistant(ran(name), ToolCallPart("2", "look", {})),
        given_back(ToolResultPart("s1", name, result), ToolResultPart("2", "look", "x")),
        assistant(TextPart("so")),
    )
    asked, said, given, end = body["messages"]
    assert [block["type"] for block in said["content"]] == ["server_tool_use", kind, "tool_use"]
    assert said["content"][1] == {"type": kind, "tool_use_id": "s1", "content": result}
    assert [block["tool_use_id"] for block in given["content"]] == ["2"]
    assert (asked["role"], end["role"]) == ("user", "assistant")


def test_a_servers_tool_without_a_result() -> None:
    """Its call waits for the caller's own tools."""
    said = body_of(user("hi"), assistant(ran("code_execution")))["messages"][1]
    assert [block["type"] for block in said["content"]] == ["server_tool_use"]


def test_a_tool_of_an_mcp_server() -> None:
    """Its server is named, and whether it failed."""
    body = body_of(
        user("hi"),
        assistant(ran("echo", "mcp_tool_use", server_name="here")),
        given_back(ToolResultPart("s1", "echo", [{"type": "text", "text": "x"}], True)),  # noqa: FBT003 - a part's field
        judge=BETA_JUDGE,
    )
    assert body["messages"][1]["content"] == [
        {
            "type": "mcp_tool_use",
            "id": "s1",
            "name": "echo",
            "input": {"q": 1},
            "server_name": "here",
        },
        {
            "type": "mcp_tool_result",
            "tool_use_id": "s1",
            "content": [{"type": "text", "text": "x"}],
            "is_error": True,
        },
    ]


def test_another_providers_tool_is_told() -> None:
    """Call and result are left out together."""
    warnings: list[str] = []
    call = ToolCallPart("s1", "file_search", {}, True, {"openai": {"type": "x"}})  # noqa: FBT003 - a part's field
    body = body_of(
        user("hi"),
        assistant(call, TextPart("so")),
        given_back(ToolResultPart("s1", "file_search", "x")),
        warnings=warnings,
    )
    assert [len(message["content"]) for message in body["messages"]] == [1, 1]
    assert len(warnings) == 1
    assert "'file_search'" in warnings[0]


# --- any prompt ----------------------------------------------------------------------------

RESULTS = st.one_of(
    st.text(),
    st.lists(
        st.builds(lambda text: {"type": "text", "text": text}, st.text())
        | st.builds(
            lambda mime: {"type": "image", "data": "aGk=", "mime_type": mime},
            st.sampled_from(["image/png", "image/bmp"]),
        )
        | st.integers(),
        max_size=2,
    ),
)
TYPES = st.sampled_from(["image/png", "image/bmp", "audio/wav", "application/pdf", "text/plain"])
PARTS = st.one_of(
    st.builds(TextPart, st.text()),
    st.builds(ReasoningPart, st.text(), st.none(), st.none(), st.sampled_from([None, SIGNED])),
    st.builds(ReasoningPart, st.just(""), st.none(), st.text(), st.just(REDACTED)),
    st.builds(FilePart, st.sampled_from(["aGk=", "https://a.example"]), TYPES, st.text()),
    st.builds(
        ToolCallPart,
        st.sampled_from("123"),
        st.text(),
        st.none() | st.dictionaries(st.text(), st.integers(-9, 9) | st.text()) | st.text(),
    ),
    st.builds(ToolResultPart, st.sampled_from("123"), st.text(), RESULTS, st.booleans()),
    st.builds(DataPart, st.text()),
)
ROLES = st.sampled_from(["system", "user", "assistant", "tool"])


@given(st.lists(st.builds(PromptMessage, ROLES, st.lists(PARTS, max_size=4)), max_size=5))
def test_any_prompt_is_valid(prompt: list[PromptMessage]) -> None:
    """Whatever parts stand in whatever message, the SDK's types accept it, and roles take turns."""
    body = body_of(*prompt)
    roles = [message["role"] for message in body["messages"]]
    assert all(before != after for before, after in pairwise(roles))


@given(message_lists())
def test_any_conversation_is_valid(conversation: Any) -> None:
    """Each call of an assistant has its result right behind it, in the user's message."""
    messages = body_of(*conversation.prompt())["messages"]
    for said, back in pairwise([*messages, {"role": "user", "content": []}]):
        calls = [block["id"] for block in said["content"] if block["type"] == "tool_use"]
        results = [b["tool_use_id"] for b in back["content"] if b["type"] == "tool_result"]
        assert said["role"] == "user" or calls == results
