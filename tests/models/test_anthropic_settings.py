"""Requests in the Anthropic protocol: settings, tools, schemas and what only it has."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel, TypeAdapter

from streampipe.contracts import OutputSchema, ToolSpec
from streampipe.errors import ConfigurationError
from streampipe.models._anthropic.schema import answer_schema
from tests.models.streams import JSON
from tests.models.test_anthropic_request import TOOL, body_of, user

NEW = "claude-opus-4-7"


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("claude-3-haiku-20240307", 4_096),
        ("claude-3-5-sonnet-20241022", 8_192),
        ("claude-3-7-sonnet-latest", 64_000),
        ("claude-opus-4-20250514", 32_000),
        ("claude-opus-4-0", 32_000),
        ("claude-opus-4-1-20250805", 32_000),
        ("claude-sonnet-4-20250514", 64_000),
        ("claude-opus-4-5-20251101", 64_000),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", 64_000),
        ("claude-opus-4@20250514", 32_000),
        (NEW, 64_000),
        ("claude-fable-5", 64_000),
        ("another-model", 4_096),
    ],
)
def test_the_limit_of_an_answer(model: str, limit: int) -> None:
    """The protocol needs one: the settings', else one that the family takes."""
    assert body_of(model=model)["max_tokens"] == limit
    assert body_of(model=model, settings={"max_output_tokens": 5})["max_tokens"] == 5
    assert body_of(model=model, settings={"max_output_tokens": None})["max_tokens"] == limit


@pytest.mark.parametrize(
    ("settings", "fields"),
    [
        ({"temperature": 0.5}, {"temperature": 0.5}),
        ({"top_p": 0.5, "top_k": 3}, {"top_p": 0.5, "top_k": 3}),
        ({"stop": "END"}, {"stop_sequences": ["END"]}),
        ({"stop": ["a", "b"]}, {"stop_sequences": ["a", "b"]}),
        ({"reasoning_effort": "high"}, {"output_config": {"effort": "high"}}),
        ({"temperature": None, "stop": None}, {}),
        ({"parallel_tool_calls": False}, {}),
    ],
)
def test_settings(settings: dict[str, Any], fields: dict[str, Any]) -> None:
    """Each under the protocol's own name; None is none."""
    warnings: list[str] = []
    assert body_of(settings=settings, warnings=warnings) == {**body_of(), **fields}
    assert not warnings


@pytest.mark.parametrize(
    "name", ["seed", "frequency_penalty", "presence_penalty", "logit_bias", "made_up"]
)
def test_a_setting_that_the_protocol_lacks_is_told(name: str) -> None:
    """And left out, for the server would refuse the request."""
    warnings: list[str] = []
    assert body_of(settings={name: 1}, warnings=warnings) == body_of()
    assert len(warnings) == 1
    assert repr(name) in warnings[0]


@pytest.mark.parametrize("model", [NEW, "claude-opus-4-8", "claude-sonnet-5", "claude-mythos-5"])
@pytest.mark.parametrize("name", ["temperature", "top_k", "top_p"])
def test_later_models_know_no_sampling(model: str, name: str) -> None:
    """They refuse a request with it, so it is left out, and told."""
    warnings: list[str] = []
    body = body_of(model=model, settings={name: 1}, warnings=warnings)
    assert name not in body
    assert len(warnings) == 1
    assert model in warnings[0]
    options = {"anthropic": {name: 1}}
    assert body_of(model=model, provider_options=options)[name] == 1


@pytest.mark.parametrize("effort", ["minimal", 3, ""])
def test_an_unknown_effort_is_refused(effort: Any) -> None:
    """The message has the allowed values."""
    with pytest.raises(ConfigurationError, match="reasoning_effort must be one of low, medium"):
        body_of(settings={"reasoning_effort": effort})


# --- tools ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        ({"tool_name": "look"}, {"type": "tool", "name": "look"}),
    ],
)
@pytest.mark.parametrize("parallel", [None, True, False])
def test_tool_choice(choice: Any, sent: dict[str, Any], *, parallel: bool | None) -> None:
    """All four forms; whether calls may be parallel is a part of it."""
    body = body_of(tools=[TOOL], tool_choice=choice, settings={"parallel_tool_calls": parallel})
    told = parallel is not None and choice != "none"
    assert body["tool_choice"] == sent | (
        {"disable_parallel_tool_use": not parallel} if told else {}
    )


def test_a_tool_choice_of_no_form_is_refused() -> None:
    """The message has the allowed values."""
    with pytest.raises(ConfigurationError, match="'auto', 'none', 'required' or"):
        body_of(tools=[TOOL], tool_choice="any")


def test_tools() -> None:
    """Name, description and schema; a tool without parameters has an object all the same."""
    assert body_of(tools=[TOOL, ToolSpec("now", "", {})])["tools"] == [
        {"name": "look", "description": "Look it up.", "input_schema": TOOL.parameters},
        {"name": "now", "input_schema": {"type": "object"}},
    ]


def test_a_tools_parameters_may_be_a_reference() -> None:
    """The protocol wants an object at the top, so what is referred to is put there."""
    defs = {"A": {"type": "object", "properties": {"next": {"$ref": "#/$defs/A"}}}}
    (tool,) = body_of(tools=[ToolSpec("f", "", {"$ref": "#/$defs/A", "$defs": defs})])["tools"]
    assert tool["input_schema"] == {**defs["A"], "$defs": defs}


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"anyOf": [{"type": "object"}]}, "'anyOf'"),
        ({"type": "object", "oneOf": []}, "'oneOf'"),
        ({"allOf": []}, "'allOf'"),
        ({"type": "array"}, "'type'"),
        ({"$ref": "#/$defs/A"}, r"'\$ref'"),
        ({"$ref": "https://a.example"}, r"'\$ref'"),
        ({"$ref": 1}, r"'\$ref'"),
    ],
)
def test_parameters_that_the_protocol_cannot_take(schema: dict[str, Any], named: str) -> None:
    """Tool and keyword are named."""
    with pytest.raises(ConfigurationError, match=f"'f'.*{named}"):
        body_of(tools=[ToolSpec("f", "", schema)])


# --- options -------------------------------------------------------------------------------


def test_options_are_merged_last() -> None:
    """Objects key by key, tools are added, everything else takes the place of what is there."""
    search = {"type": "web_search_20250305", "name": "web_search"}
    body = body_of(
        tools=[TOOL],
        settings={"reasoning_effort": "high", "max_output_tokens": 5},
        provider_options={
            "anthropic": {
                "tools": [search],
                "max_tokens": 7,
                "output_config": {"effort": "low"},
                "tool_choice": {"disable_parallel_tool_use": True},
                "thinking": {"type": "adaptive"},
            }
        },
        structured_output=OutputSchema("x", {"type": "string"}),
    )
    assert [tool["name"] for tool in body["tools"]] == ["look", "web_search"]
    assert body["max_tokens"] == 7
    assert body["output_config"] == {
        "effort": "low",
        "format": {"type": "json_schema", "schema": {"type": "string"}},
    }
    assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert body["thinking"] == {"type": "adaptive"}
    assert body_of(provider_options={"anthropic": {"tools": [search]}})["tools"] == [search]


def test_options_of_no_form_are_refused() -> None:
    """They have to be a dict."""
    with pytest.raises(ConfigurationError, match="provider_options"):
        body_of(provider_options={"anthropic": ["x"]})


# --- structured output ---------------------------------------------------------------------


class Colour(Enum):
    """Some colours."""

    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    """A place."""

    x: Annotated[int, Field(ge=0, description="How far.")]
    name: str | None = None


class Shape(BaseModel):
    """What a model is asked for."""

    kind: Literal["shape"]
    colour: Colour
    points: Annotated[list[Point], Field(min_length=1, max_length=9)]
    either: Annotated[int | str, Field(union_mode="left_to_right")]


def test_a_schema_of_models() -> None:
    """Objects are closed, bounds become words, references stay."""
    body = body_of(structured_output=OutputSchema("shape", Shape.model_json_schema()))
    schema = body["output_config"]["format"]["schema"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["points"] == {
        "items": {"$ref": "#/$defs/Point"},
        "minItems": 1,
        "title": "Points",
        "type": "array",
        "description": "maxItems: 9",
    }
    point = schema["$defs"]["Point"]
    assert point["additionalProperties"] is False
    assert point["properties"]["x"]["description"] == "How far.\nminimum: 0"
    assert schema["properties"]["colour"] == {"$ref": "#/$defs/Colour"}


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        (
            {"oneOf": [{"type": "string"}, {"type": "null"}], "discriminator": {}},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
        ),
        ({"type": "string", "format": "uri"}, {"type": "string", "format": "uri"}),
        (
            {"type": "string", "format": "color", "pattern": "^#"},
            {"type": "string", "description": 'format: "color"\npattern: "^#"'},
        ),
        ({"type": "integer", "default": 3}, {"type": "integer", "description": "default: 3"}),
        ({"enum": ["a", None]}, {"enum": ["a", None]}),
        ({"const": 1, "$schema": "x"}, {"const": 1}),
        (
            {"type": ["object", "null"]},
            {"type": ["object", "null"], "properties": {}, "additionalProperties": False},
        ),
    ],
)
def test_keywords_that_are_put_in_other_words(schema: dict[str, Any], made: dict[str, Any]) -> None:
    """What the answer has to fit is still checked by the schema as it was."""
    assert answer_schema(schema) == made


class Tree(BaseModel):
    """What holds itself."""

    children: list[Tree]


class Left(BaseModel):
    """One half of a circle."""

    right: Right | None


class Right(BaseModel):
    """The other."""

    left: Left | None


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        (Tree.model_json_schema(), r"'\$ref': .*recursive"),
        (Left.model_json_schema(), r"'\$ref': .*recursive"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, r"'\$ref': .*recursive"),
        ({"$ref": "https://a.example"}, r"'\$ref'"),
        (TypeAdapter(dict[str, int]).json_schema(), "'additionalProperties'"),
        (TypeAdapter(dict[str, Any]).json_schema(), "'additionalProperties'"),
        (TypeAdapter(tuple[int, str]).json_schema(), "'prefixItems'"),
        (TypeAdapter(list[Any]).json_schema(), r"structured_output\.items.*'type'"),
        (RootModel[Any].model_json_schema(), "'type'"),
        ({"enum": [{}]}, "'enum'"),
        ({"type": "object", "patternProperties": {}}, "'patternProperties'"),
        ({"type": "object", "properties": {"a": {"not": {}}}}, r"properties\.a.*'not'"),
        ({"type": "string", "if": {}}, "'if'"),
        ({"type": "array", "items": True}, "has to be an object"),
    ],
)
def test_a_schema_that_the_protocol_cannot_take(schema: dict[str, Any], named: str) -> None:
    """The place in it is told, and the keyword."""
    with pytest.raises(ConfigurationError, match=named):
        body_of(user("hi"), structured_output=OutputSchema("x", schema))


def test_definitions_that_are_used_often_cost_little() -> None:
    """Each is looked into once, though the ways to it double with every level."""
    defs: dict[str, Any] = {
        f"D{i}": {"anyOf": [{"$ref": f"#/$defs/D{i + 1}"}] * 2} for i in range(40)
    }
    defs["D40"] = {"type": "string"}
    assert answer_schema({"$ref": "#/$defs/D0", "$defs": defs})["$ref"] == "#/$defs/D0"


KEYWORDS = st.sampled_from(
    ["type", "properties", "$defs", "$ref", "items", "anyOf", "enum", "minItems", "format", "title"]
)


@given(st.dictionaries(KEYWORDS, JSON | st.dictionaries(KEYWORDS, JSON, max_size=2)))
def test_any_schema_is_taken_or_refused(schema: dict[str, Any]) -> None:
    """By a `ConfigurationError`, by nothing else; what is taken is JSON."""
    try:
        made = answer_schema(schema)
    except ConfigurationError:
        return
    assert json.dumps(made)
