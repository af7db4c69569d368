"""Requests in the Responses protocol: messages, settings, tools, schemas, as OpenAI types them."""

from __future__ import annotations

import copy
from datetime import datetime
from typing import Any

import orjson
import pytest
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

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
)
from streampipe.models.openai_responses import encode_request

JUDGE = TypeAdapter[Any](ResponseCreateParamsStreaming)
OPEN = {"type": "object", "properties": {"id": {"type": "integer"}}}
TOOL = ToolSpec("look", "Look it up.", OPEN)


def judged(body: dict[str, Any]) -> dict[str, Any]:
    """A body as it is sent, after OpenAI's own types have accepted every field of it.

    Written anew from what they read: they pass over fields that they do not know, and look into
    some lists only then.
    """
    sent: dict[str, Any] = orjson.loads(orjson.dumps(body))
    read = JUDGE.validate_python(sent, strict=True)
    assert orjson.loads(JUDGE.dump_json(read, warnings=False)) == sent
    return sent


def body_of(
    *prompt: PromptMessage, model_id: str = "m", warnings: list[str] | None = None, **request: Any
) -> dict[str, Any]:
    """The judged body of a request."""
    asked = ModelRequest(list(prompt) or [user("hi")], **request)
    before = copy.deepcopy(asked)
    body = encode_request(asked, model_id, warnings=warnings)
    assert asked == before, "the request is left as it is"
    return judged(body)


def items_of(*prompt: PromptMessage, warnings: list[str] | None = None) -> list[dict[str, Any]]:
    """The items that a prompt becomes, without warnings unless they are asked for."""
    told: list[str] = [] if warnings is None else warnings
    items: list[dict[str, Any]] = body_of(*prompt, warnings=told)["input"]
    assert warnings is not None or not told
    return items


def user(*parts: str | Part) -> PromptMessage:
    """A user's message."""
    return PromptMessage("user", [TextPart(p) if isinstance(p, str) else p for p in parts])


def assistant(*parts: str | Part) -> PromptMessage:
    """An assistant's message."""
    return PromptMessage("assistant", user(*parts).content)


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": [{"type": "input_image", "detail": "auto", "link": "x"}]},
        {"role": "user", "content": [{"type": "image", "detail": "auto"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "text", "text": "x"}]},
        {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text"}]},
    ],
)
def test_the_judge_judges(item: dict[str, Any]) -> None:
    """The types that bodies are held to do refuse what is wrong deep inside."""
    with pytest.raises((ValidationError, PydanticSerializationError, AssertionError)):
        judged({"model": "m", "stream": True, "input": [item]})


def test_the_smallest_request() -> None:
    """Model, input, streaming, and that nothing is to be kept; nothing else."""
    assert body_of() == {
        "model": "m",
        "input": [{"role": "user", "content": "hi"}],
        "stream": True,
        "store": False,
    }


# --- what users say ------------------------------------------------------------------------


def test_text_messages_of_every_role() -> None:
    """One text is a string, several are parts of a user's message; empty ones are nothing."""
    assert items_of(
        PromptMessage.system("Be brief."), PromptMessage.system(""), user("a", "", "b"), user("")
    ) == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
        },
    ]
    assert items_of(assistant("a", "", "b")) == [{"role": "assistant", "content": "ab"}]
    cached = TextPart("Be brief.", {"openai": {"prompt_cache_breakpoint": {"mode": "explicit"}}})
    (item,) = items_of(PromptMessage("system", [cached]))
    assert item["content"][0].keys() == {"type", "text", "prompt_cache_breakpoint"}


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        pytest.param(
            FilePart("https://a.example/x.png", "image/png"),
            {"type": "input_image", "detail": "auto", "image_url": "https://a.example/x.png"},
            id="image by address",
        ),
        pytest.param(
            FilePart("aGk=", "image/png"),
            {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk="},
            id="image as base64",
        ),
        pytest.param(
            FilePart("data:image/png;base64,aGk=", "image/png"),
            {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk="},
            id="image as data URL",
        ),
        pytest.param(
            FilePart(
                "aGk=",
                "image/png",
                provider_metadata={
                    "openai": {"detail": "low", "prompt_cache_breakpoint": {"mode": "explicit"}}
                },
            ),
            {
                "type": "input_image",
                "detail": "low",
                "image_url": "data:image/png;base64,aGk=",
                "prompt_cache_breakpoint": {"mode": "explicit"},
            },
            id="options of a part",
        ),
        pytest.param(
            FilePart("", "image/png", provider_metadata={"openai": {"file_id": "file-1"}}),
            {"type": "input_image", "detail": "auto", "file_id": "file-1"},
            id="image that was uploaded",
        ),
        pytest.param(
            FilePart("aGk=", "application/pdf", "a.pdf"),
            {
                "type": "input_file",
                "filename": "a.pdf",
                "file_data": "data:application/pdf;base64,aGk=",
            },
            id="file",
        ),
        pytest.param(
            FilePart("aGk=", "application/pdf"),
            {
                "type": "input_file",
                "filename": "file.pdf",
                "file_data": "data:application/pdf;base64,aGk=",
            },
            id="file without a name",
        ),
        pytest.param(
            FilePart("https://a.example/x.pdf", "application/pdf", "x.pdf"),
            {"type": "input_file", "file_url": "https://a.example/x.pdf"},
            id="file by address",
        ),
        pytest.param(
            FilePart("", "application/pdf", provider_metadata={"openai": {"file_id": "file-1"}}),
            {"type": "input_file", "file_id": "file-1"},
            id="file that was uploaded",
        ),
        pytest.param(
            TextPart("x", {"openai": {"prompt_cache_breakpoint": {"mode": "explicit"}}}),
            {
                "type": "input_text",
                "text": "x",
                "prompt_cache_breakpoint": {"mode": "explicit"},
            },
            id="text up to which a cache goes",
        ),
    ],
)
def test_parts_of_a_users_message(part: Part, expected: dict[str, Any]) -> None:
    """Each in the form that the protocol has for it."""
    assert items_of(user(part)) == [{"role": "user", "content": [expected]}]


@pytest.mark.parametrize(
    "message",
    [
        user(FilePart("aGk=", "audio/wav")),
        user(FilePart("aGk=", "video/mp4")),
        user(FilePart("gs://bucket/a.pdf", "application/pdf")),
        user(DataPart({"a": 1}, type="data-x")),
        PromptMessage("system", [ReasoningPart("x")]),
        assistant(SourcePart("s", url="https://a.example")),
        assistant(FilePart("aGk=", "image/png")),
        PromptMessage("tool", [TextPart("x")]),
    ],
)
def test_what_cannot_be_sent_is_told(message: PromptMessage) -> None:
    """Nothing is lost in silence."""
    warnings: list[str] = []
    assert items_of(message, warnings=warnings) == []
    (told,) = warnings
    assert f"a {message.role} message was left out" in told


# --- settings and options --------------------------------------------------------------------


def test_settings() -> None:
    """What the protocol has is sent, None is nothing."""
    body = body_of(
        settings={
            "temperature": 0.5,
            "top_p": 0.9,
            "max_output_tokens": 50,
            "parallel_tool_calls": False,
            "reasoning_effort": "low",
            "reasoning_summary": "auto",
            "seed": None,
        }
    )
    assert body["temperature"] == 0.5
    assert body["top_p"] == 0.9
    assert body["max_output_tokens"] == 50
    assert body["parallel_tool_calls"] is False
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}


@pytest.mark.parametrize(
    "name", ["frequency_penalty", "presence_penalty", "seed", "stop", "top_k", "novelty"]
)
def test_settings_that_the_protocol_does_not_have(name: str) -> None:
    """They are left out, with a warning that names them."""
    warnings: list[str] = []
    assert body_of(settings={name: 1}, warnings=warnings) == body_of()
    (told,) = warnings
    assert f"setting {name!r} is no part of the responses protocol" in told


@pytest.mark.parametrize(
    ("model_id", "settings", "is_asked"),
    [
        ("gpt-5-mini", {}, True),
        ("gpt-5.1-codex-max", {}, True),
        ("o4-mini", {}, True),
        ("openai/gpt-oss-120b", {}, True),
        ("gpt-5-chat-latest", {}, False),
        ("gpt-4.1", {}, False),
        ("gpt-4o", {}, False),
        ("grok-4", {}, False),
        ("grok-4", {"reasoning_effort": "low"}, True),
    ],
)
def test_who_is_asked_for_encrypted_reasoning(
    model_id: str,
    settings: dict[str, Any],
    is_asked: bool,  # noqa: FBT001 - of the table
) -> None:
    """Models that reason, and those that are told how much to; others would refuse."""
    body = body_of(model_id=model_id, settings=settings)
    assert body.get("include") == (["reasoning.encrypted_content"] if is_asked else None)


def test_provider_options_are_merged_last() -> None:
    """Nested settings key by key, lists by adding to them, all else as a whole."""
    search = {"type": "web_search"}
    custom = {"type": "custom", "name": "look"}
    body = body_of(
        model_id="gpt-5",
        tools=[TOOL, ToolSpec("web", "", OPEN)],
        settings={"reasoning_effort": "low", "temperature": 0.5},
        structured_output=OutputSchema("a", OPEN),
        provider_options={
            "openai": {
                "store": True,
                "temperature": 1.0,
                "reasoning": {"summary": "auto"},
                "text": {"verbosity": "low"},
                "include": ["web_search_call.action.sources", "reasoning.encrypted_content"],
                "tools": [search, custom],
                "tool_choice": {"type": "web_search_preview"},
                "metadata": {"a": "b"},
            },
            "acme": {"store": False},
        },
    )
    assert body["store"] is True
    assert body["temperature"] == 1.0
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert body["text"].keys() == {"format", "verbosity"}
    assert body["include"] == ["web_search_call.action.sources", "reasoning.encrypted_content"]
    assert [tool.get("name") for tool in body["tools"]] == ["web", None, "look"]
    assert body["tools"][1:] == [search, custom], "one tool of a name, and the provider's own wins"
    assert body["tool_choice"] == {"type": "web_search_preview"}
    assert body["metadata"] == {"a": "b"}


def test_options_of_the_wrong_form_are_refused() -> None:
    """The message names them."""
    with pytest.raises(ConfigurationError, match="provider_options\\['openai'\\] must be a dict"):
        body_of(provider_options={"openai": ["store"]})


# --- tools and schemas -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ({"tool_name": "look"}, {"type": "function", "name": "look"}),
    ],
)
def test_tools_and_how_free_the_model_is(choice: Any, sent: Any) -> None:
    """All four forms of a choice; a schema that is not for strict mode stays as it is."""
    body = body_of(tools=[TOOL], tool_choice=choice)
    assert body["tool_choice"] == sent
    assert body["tools"] == [
        {
            "type": "function",
            "name": "look",
            "description": "Look it up.",
            "parameters": OPEN,
            "strict": False,
        }
    ]


def test_a_choice_that_is_none() -> None:
    """It is refused before anything is sent."""
    with pytest.raises(ConfigurationError, match="tool_choice must be"):
        body_of(tools=[TOOL], tool_choice="any")


def tool_of(schema: dict[str, Any]) -> dict[str, Any]:
    """A tool as it is sent."""
    (tool,) = body_of(tools=[ToolSpec("f", "", schema)])["tools"]
    return dict(tool)


class Inner(BaseModel):
    """A nested type."""

    names: list[str]
    size: int | None
    at: datetime


class Outer(BaseModel):
    """A type that strict mode can take."""

    inner: Inner
    others: list[Inner]


class Tree(BaseModel):
    """A type that contains itself."""

    children: list[Tree]


@pytest.mark.parametrize("kind", [Outer, Tree, Inner])
def test_a_schema_for_strict_mode(kind: type[BaseModel]) -> None:
    """It is sent so, with every object closed; nothing else of it changes."""
    schema = kind.model_json_schema()
    before = copy.deepcopy(schema)
    body = body_of(structured_output=OutputSchema("Outer[int]", schema))
    sent = body["text"]["format"]
    assert (sent["type"], sent["name"], sent["strict"]) == ("json_schema", "Outer_int_", True)
    assert schema == before
    objects = [sent["schema"], *sent["schema"].get("$defs", {}).values()]
    for made in objects:
        assert made["additionalProperties"] is False
        assert made["required"] == list(made["properties"])
    assert tool_of(schema)["strict"] is True


NAME = {"type": "string"}


@pytest.mark.parametrize(
    "field",
    [
        {"type": "string", "minLength": 1},
        {"type": "string", "format": "uri"},
        {"type": "array"},
        {"type": "object", "additionalProperties": NAME},
        {"type": "object", "properties": {"a": NAME}},
        {"type": "array", "items": {"type": "object", "properties": {"a": NAME}}},
        {"anyOf": [NAME, {"type": "string", "default": "x"}]},
        {"$ref": "#/$defs/A", "description": "x"},
        {"description": "anything"},
        {"enum": [1, "a"]},
        {},
        True,
        {"type": "object", "properties": ["no schema"]},
        {"type": "object", "required": "no schema"},
        {"type": "string", "$defs": ["no schema"]},
    ],
)
def test_a_schema_that_strict_mode_would_change_or_refuse(field: Any) -> None:
    """It is sent as it is, and not strict."""
    schema = {"type": "object", "properties": {"x": field}, "required": ["x"]}
    schema["$defs"] = {"A": NAME}
    sent = tool_of(schema)
    assert (sent["parameters"], sent["strict"]) == (schema, False)


def test_a_choice_at_the_root_is_not_for_strict_mode() -> None:
    """It is for objects alone."""
    schema = {"type": "object", "anyOf": [{"type": "object", "required": [], "properties": {}}]}
    sent = tool_of(schema)
    assert (sent["parameters"], sent["strict"]) == (schema, False)


def test_a_tool_without_arguments() -> None:
    """It takes an empty object."""
    assert tool_of({})["parameters"] == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"type": "array", "items": NAME}, "'type'"),
        ({"anyOf": [OPEN, OPEN]}, "'anyOf'"),
        ({"enum": ["a"]}, "'enum'"),
        ({"$ref": "#/$defs/Gone"}, "'\\$ref'"),
        ({"$ref": "https://a.example/schema"}, "'\\$ref'"),
    ],
)
def test_a_schema_that_the_protocol_cannot_take(schema: dict[str, Any], keyword: str) -> None:
    """The error names whose it is and the keyword."""
    with pytest.raises(ConfigurationError, match=f"structured_output 'a': .*{keyword}"):
        body_of(structured_output=OutputSchema("a", schema))
    with pytest.raises(ConfigurationError, match=f"tool 'f': .*{keyword}"):
        tool_of(schema)
