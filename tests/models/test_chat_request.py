"""Requests in the chat protocol: every kind of part, setting and option, as OpenAI types them."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from pydantic import BaseModel, TypeAdapter, ValidationError

from streampipe.contracts import ModelRequest, OutputSchema, ToolSpec
from streampipe.errors import ConfigurationError
from streampipe.messages import (
    DataPart,
    FilePart,
    Part,
    PromptMessage,
    ReasoningPart,
    SourcePart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from streampipe.models.openai_chat import encode_request

JUDGE = TypeAdapter[Any](CompletionCreateParamsStreaming)
TOOL = ToolSpec(
    "look", "Look it up.", {"type": "object", "properties": {"id": {"type": "integer"}}}
)


def body_of(
    *prompt: PromptMessage,
    provider: str = "openai",
    warnings: list[str] | None = None,
    **request: Any,
) -> dict[str, Any]:
    """The body of a request, after OpenAI's own types have accepted it."""
    asked = ModelRequest(list(prompt) or [user("hi")], **request)
    before = copy.deepcopy(asked)
    body = encode_request(asked, "m", provider=provider, warnings=warnings)
    assert asked == before, "the request is left as it is"
    sent = orjson.loads(orjson.dumps(body))
    if provider == "openai":
        walk(JUDGE.validate_python(sent, strict=True))
    return body


def walk(value: Any) -> None:
    """Look at everything in a value: pydantic checks an `Iterable` only while it is read."""
    if isinstance(value, Mapping):
        for inner in value.values():
            walk(inner)
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for inner in value:
            walk(inner)


def test_the_judge_judges() -> None:
    """The types that bodies are held to do refuse what is wrong deep inside."""
    part = {"type": "image_url", "image_url": {"link": "https://a.example"}}
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": [part]}]}
    with pytest.raises(ValidationError):
        walk(JUDGE.validate_python(body, strict=True))


def message_of(message: PromptMessage, **options: Any) -> Any:
    """The one message of the body that a message becomes."""
    (made,) = body_of(message, **options)["messages"]
    return made


def user(*parts: str | Part) -> PromptMessage:
    """A user's message."""
    return PromptMessage("user", [TextPart(p) if isinstance(p, str) else p for p in parts])


def assistant(*parts: str | Part) -> PromptMessage:
    """An assistant's message."""
    return PromptMessage("assistant", user(*parts).content)


def test_the_smallest_request() -> None:
    """Model, messages, streaming, and usage at the end of the stream; nothing else."""
    assert body_of() == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_text_messages_of_every_role() -> None:
    """One text is a string, several are parts; empty ones are nothing."""
    assert message_of(PromptMessage.system("Be brief.")) == {
        "role": "system",
        "content": "Be brief.",
    }
    assert message_of(user("a", "", "b"))["content"] == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]
    assert message_of(assistant("a", "b")) == {"role": "assistant", "content": "ab"}
    assert body_of(user(""), user("x"))["messages"] == [{"role": "user", "content": "x"}]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        pytest.param(
            FilePart("https://a.example/x.png", "image/png"),
            {"type": "image_url", "image_url": {"url": "https://a.example/x.png"}},
            id="image by address",
        ),
        pytest.param(
            FilePart("aGk=", "image/png"),
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            id="image by data",
        ),
        pytest.param(
            FilePart("data:image/gif;base64,aGk=", "image/gif"),
            {"type": "image_url", "image_url": {"url": "data:image/gif;base64,aGk="}},
            id="image by data address",
        ),
        pytest.param(
            FilePart("aGk=", "audio/mpeg"),
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
            id="sound",
        ),
        pytest.param(
            FilePart("data:audio/x-wav;base64,aGk=", "audio/x-wav"),
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
            id="sound by data address",
        ),
        pytest.param(
            FilePart("aGk=", "application/pdf", "a.pdf"),
            {
                "type": "file",
                "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="},
            },
            id="file",
        ),
        pytest.param(
            FilePart("https://a.example/a.pdf", "application/pdf"),
            {"type": "file", "file": {"filename": "file", "file_data": "https://a.example/a.pdf"}},
            id="file by address",
        ),
    ],
)
def test_files(part: FilePart, expected: Any) -> None:
    """Images by address or data, sound by data, others as files."""
    assert message_of(user("see", part))["content"] == [{"type": "text", "text": "see"}, expected]


def test_sound_by_address_is_refused() -> None:
    """The protocol has no place for it; the error says what to give instead."""
    with pytest.raises(ConfigurationError, match="base64"):
        body_of(user(FilePart("https://a.example/a.mp3", "audio/mpeg")))


def test_a_round_of_tools() -> None:
    """A call, its result, a failed one: ids match, the failure is told in words."""
    messages = body_of(
        user("hi"),
        assistant("Looking.", ToolCallPart("1", "look", {"id": 7}), ToolCallPart("2", "look")),
        PromptMessage(
            "tool",
            [
                ToolResultPart("1", "look", {"colour": "blue"}),
                ToolResultPart("2", "look", "no id", is_error=True),
            ],
        ),
    )["messages"]
    assert messages[1] == {
        "role": "assistant",
        "content": "Looking.",
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"id":7}'}},
            {"id": "2", "type": "function", "function": {"name": "look", "arguments": "{}"}},
        ],
    }
    assert messages[2:] == [
        {"role": "tool", "tool_call_id": "1", "content": '{"colour":"blue"}'},
        {"role": "tool", "tool_call_id": "2", "content": "Error: no id"},
    ]


def test_a_call_without_words() -> None:
    """No text beside a call is null, as OpenAI writes it."""
    assert message_of(assistant(ToolCallPart("1", "look", {})))["content"] is None


class Colour(BaseModel):
    """What a tool may return."""

    name: str


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, "null"),
        (1.5, "1.5"),
        ([1, "ä"], '[1,"ä"]'),
        (Colour(name="blue"), '{"name":"blue"}'),
        (b"\xff", '"_w=="'),
        ({"o": object}, None),
    ],
)
def test_a_result_of_any_kind_becomes_text(result: Any, text: str | None) -> None:
    """Strings stand as they are, everything else is JSON; nothing is refused."""
    made = message_of(PromptMessage("tool", [ToolResultPart("1", "look", result)]))["content"]
    assert made == text if text is not None else "object" in made


def test_reasoning_goes_back_where_it_is_wanted() -> None:
    """DeepSeek wants the reasoning of a tool loop back, its own only; the others make their own."""
    noted = {"deepseek": {"field": "reasoning_content"}, "openai": {"field": "reasoning_content"}}
    own = ReasoningPart("hm", provider_metadata=noted)
    said = assistant(own, ReasoningPart(" another's"), ToolCallPart("1", "look", {}))
    assert message_of(said, provider="deepseek")["reasoning_content"] == "hm"
    assert "reasoning_content" not in message_of(said)
    assert body_of(user("x"), assistant(own))["messages"] == [{"role": "user", "content": "x"}]


def test_reasoning_items_go_back_as_they_came() -> None:
    """OpenRouter passes them on to the provider behind it, signatures and ciphers included."""
    details = [{"type": "reasoning.encrypted", "data": "abc", "index": 0}]
    own = ReasoningPart("hm", provider_metadata={"openrouter": {"reasoning_details": details}})
    said = assistant(own, ToolCallPart("1", "look", {}))
    assert message_of(said, provider="openrouter")["reasoning_details"] == details
    assert "reasoning_details" not in message_of(said, provider="deepseek")


def test_tools_and_how_free_the_model_is() -> None:
    """Tools as functions; the choice is sent with them only."""
    tools = [TOOL]
    assert body_of(tools=tools)["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "look",
                "description": "Look it up.",
                "parameters": TOOL.parameters,
            },
        }
    ]
    for choice in ("auto", "none", "required"):
        assert body_of(tools=tools, tool_choice=choice)["tool_choice"] == choice
    assert body_of(tools=tools, tool_choice={"tool_name": "look"})["tool_choice"] == {
        "type": "function",
        "function": {"name": "look"},
    }
    assert "tool_choice" not in body_of(tool_choice="required")


@pytest.mark.parametrize("choice", ["any", {"name": "look"}, {"tool_name": 7}, None, 3])
def test_another_tool_choice_is_refused(choice: Any) -> None:
    """The error lists what there is."""
    with pytest.raises(ConfigurationError, match="tool_choice must be 'auto'"):
        body_of(tools=[TOOL], tool_choice=choice)


@pytest.mark.parametrize(
    ("provider", "limit", "seed"),
    [
        ("openai", "max_completion_tokens", "seed"),
        ("mistral", "max_tokens", "random_seed"),
        ("ollama", "max_tokens", "seed"),
        ("somebody", "max_tokens", "seed"),
    ],
)
def test_settings(provider: str, limit: str, seed: str) -> None:
    """Settings go by the name that the provider knows; None is not sent."""
    settings = {
        "max_output_tokens": 9,
        "seed": 3,
        "temperature": 0.5,
        "top_p": 1.0,
        "stop": ["x"],
        "presence_penalty": None,
    }
    body = body_of(settings=settings, provider=provider)
    assert {key: body[key] for key in (limit, seed)} == {limit: 9, seed: 3}
    assert (body["temperature"], body["top_p"], body["stop"]) == (0.5, 1.0, ["x"])
    assert "presence_penalty" not in body
    assert {"max_tokens", "max_completion_tokens"} & body.keys() == {limit}


def test_mistral_is_sent_no_stream_options() -> None:
    """It refuses keys that it does not know, and sends usage without being asked."""
    assert "stream_options" not in body_of(provider="mistral")


def test_what_the_protocol_lacks_is_left_out_and_told() -> None:
    """Neither a setting nor a part vanishes without a word."""
    warnings: list[str] = []
    body = body_of(
        user("x", SourcePart("s")),
        assistant("y", FilePart("aGk=", "image/png")),
        PromptMessage("tool", [DataPart(type="data-x"), ToolResultPart("1", "look", "z")]),
        settings={"top_k": 5},
        warnings=warnings,
    )
    assert "top_k" not in body
    assert len(body["messages"]) == 3
    for word in ("top_k", "source", "file", "data-x"):
        assert sum(word in warning for warning in warnings) == 1


def test_structured_output() -> None:
    """A JSON schema, under a name that the protocol allows."""
    schema = {"type": "object", "properties": {}}
    wanted = body_of(structured_output=OutputSchema("list[Colour] 🌍" + "x" * 99, schema))
    made = wanted["response_format"]
    assert made["type"] == "json_schema"
    assert made["json_schema"]["schema"] == schema
    assert made["json_schema"]["name"].startswith("list_Colour___x")
    assert len(made["json_schema"]["name"]) == 64


def test_provider_options_have_the_last_word() -> None:
    """They are merged over everything else; other providers' are not."""
    options = {"openai": {"temperature": 1.5, "user": "u"}, "groq": {"user": "v"}}
    body = body_of(settings={"temperature": 0.1}, provider_options=options)
    assert (body["temperature"], body["user"]) == (1.5, "u")


def test_provider_options_add_to_tools_and_to_what_the_stream_tells() -> None:
    """Else a call's usage, or the agent's own tools, would be lost with them."""
    own = {"type": "custom", "custom": {"name": "shell"}}
    options = {"openai": {"stream_options": {"include_obfuscation": False}, "tools": [own]}}
    body = body_of(tools=[TOOL], provider_options=options)
    assert body["stream_options"] == {"include_usage": True, "include_obfuscation": False}
    assert [tool["type"] for tool in body["tools"]] == ["function", "custom"]


def test_provider_options_that_are_no_fields_are_refused() -> None:
    """The error names the provider."""
    with pytest.raises(ConfigurationError, match=r"'openai'.*dict"):
        body_of(provider_options={"openai": ["x"]})


PARTS = st.one_of(
    st.builds(TextPart, st.text()),
    st.builds(ReasoningPart, st.text()),
    st.builds(
        FilePart,
        st.just("aGk="),
        st.sampled_from(["image/png", "audio/wav", "application/pdf", "text/plain"]),
    ),
    st.builds(
        ToolCallPart,
        st.text(),
        st.text(),
        st.dictionaries(st.text(), st.integers() | st.text() | st.none()),
    ),
    st.builds(
        ToolResultPart, st.text(), st.text(), st.text() | st.lists(st.integers()), st.booleans()
    ),
)
ROLES = st.sampled_from(["system", "user", "assistant", "tool"])


@given(st.lists(st.builds(PromptMessage, ROLES, st.lists(PARTS)), min_size=1))
def test_any_prompt_is_valid(prompt: list[PromptMessage]) -> None:
    """Whatever parts stand in whatever message, OpenAI's types accept the body."""
    body_of(*prompt)
