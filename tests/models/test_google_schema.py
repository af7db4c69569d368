"""Schemas for Google's protocol: what is kept, told in words, written otherwise, or refused."""

from __future__ import annotations

import copy
from typing import Annotated, Any, Literal

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from streampipe.contracts import ToolSpec
from streampipe.errors import ConfigurationError
from streampipe.models._google.schema import answer_schema, tool_schema

KNOWN = {
    *("$anchor", "$defs", "$id", "$ref", "additionalProperties", "anyOf", "description", "enum"),
    *("format", "items", "maxItems", "maximum", "minItems", "minimum", "oneOf", "prefixItems"),
    *("properties", "propertyOrdering", "required", "title", "type"),
}
"""What Google says that it supports."""


def judge(schema: Any) -> None:
    """Look for anything in a schema that Google does not know."""
    if isinstance(schema, bool):
        return
    assert schema.keys() <= KNOWN
    if "$ref" in schema:
        assert all(keyword.startswith("$") for keyword in schema)
    for maps in ("properties", "$defs"):
        for inner in schema.get(maps, {}).values():
            judge(inner)
    for one in ("items", "additionalProperties"):
        judge(schema.get(one, True))
    for several in ("anyOf", "oneOf", "prefixItems"):
        for inner in schema.get(several, []):
            judge(inner)


class Point(BaseModel):
    """Where it is."""

    x: int = Field(ge=0, lt=10)
    y: Annotated[float, Field(gt=0)] = 1.5


class Tree(BaseModel):
    """Many things that a schema can say."""

    kind: Literal["leaf"]
    name: str = Field(min_length=1, pattern="^a", examples=["ab"])
    place: Point = Field(description="Where.")
    way: list[Point] | None = None
    pair: tuple[int, str] = (1, "x")
    notes: dict[str, int | str] = {}
    children: list[Tree] = []
    colour: Literal["red", "blue", 3] = "red"
    sure: Literal[True] = True


def test_a_model_of_pydantic() -> None:
    """Nothing is left that Google does not know; what a model should know is told."""
    schema = Tree.model_json_schema()
    before = copy.deepcopy(schema)
    made = answer_schema(schema)
    assert schema == before, "the schema is left as it is"
    judge(made)
    tree = made["$defs"]["Tree"]["properties"]
    assert tree["kind"] == {"title": "Kind", "type": "string", "enum": ["leaf"]}
    told = sorted(tree["name"]["description"].splitlines())
    assert told == ['examples: ["ab"]', "minLength: 1", 'pattern: "^a"']
    assert tree["place"] == {"description": "Where.", "anyOf": [{"$ref": "#/$defs/Point"}]}
    assert sorted(tree["sure"]["description"].splitlines()) == ["const: true", "default: true"]
    point = made["$defs"]["Point"]["properties"]
    assert point["x"]["minimum"] == 0
    assert point["x"]["description"] == "exclusiveMaximum: 10"


def test_a_schema_that_google_knows_stays_as_it_is() -> None:
    """Unions, tuples, references and closed objects are sent as they are."""
    schema = {
        "$defs": {"a": {"type": ["string", "null"], "enum": ["x"]}},
        "type": "object",
        "properties": {
            "$ref": {"type": "array", "items": {"$ref": "#/$defs/a"}, "maxItems": 3},
            "not": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
            "pair": {"type": "array", "prefixItems": [{"type": "number"}], "items": False},
        },
        "required": ["not"],
        "additionalProperties": False,
        "propertyOrdering": ["not", "$ref"],
    }
    assert answer_schema(schema) == schema


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"const": "x"}, {"enum": ["x"], "type": "string"}),
        ({"const": 3, "type": "integer"}, {"enum": [3], "type": "integer"}),
        ({"enum": [None, "x"]}, {"description": 'enum: [null,"x"]'}),
        ({"allOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}]}),
        ({"$schema": "https://x", "readOnly": True}, {}),
        ({"x-mine": 1, "description": "A."}, {"description": "A.\nx-mine: 1"}),
        ({"items": True, "type": "array"}, {"items": True, "type": "array"}),
        ({"properties": {"a": True}}, {"properties": {"a": {}}}),
        (
            {"definitions": {"a": {}}, "$ref": "#/definitions/a"},
            {"$defs": {"a": {}}, "$ref": "#/$defs/a"},
        ),
        ({"$ref": "#", "default": 1}, {"description": "default: 1", "anyOf": [{"$ref": "#"}]}),
    ],
)
def test_what_is_written_otherwise(schema: Any, made: Any) -> None:
    """The meaning stays: by another keyword, or in words."""
    assert answer_schema(schema) == made
    assert answer_schema(made) == made


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"not": {}}, "not"),
        ({"if": {}}, "if"),
        ({"properties": {"a": {"patternProperties": {}}}}, "patternProperties"),
        ({"allOf": [{}, {}]}, "allOf"),
        ({"anyOf": [{}], "allOf": [{}]}, "allOf"),
        ({"allOf": [{}], "anyOf": [{}]}, "anyOf"),
        ({"$ref": "https://a.example/schema"}, r"\$ref"),
        ({"$ref": 3}, r"\$ref"),
        ({"$ref": "#/$defs/a", "anyOf": [{}]}, r"\$ref"),
        ({"properties": {"a": False}}, "False"),
        ({"items": "x"}, "x"),
    ],
)
def test_what_has_no_like_is_refused(schema: Any, keyword: str) -> None:
    """The error names the place and the keyword."""
    with pytest.raises(ConfigurationError, match=rf"structured_output.*cannot take.*{keyword}"):
        answer_schema(schema)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"type": "object"}, {"type": "object", "properties": {}, "additionalProperties": False}],
)
def test_a_tool_without_parameters(parameters: dict[str, Any]) -> None:
    """It has no schema: the server refuses an object that can hold nothing."""
    assert tool_schema(ToolSpec("f", "", parameters)) is None


def test_a_tool_of_any_parameters() -> None:
    """An object that may hold anything is one."""
    anything = {"type": "object", "additionalProperties": True}
    assert tool_schema(ToolSpec("f", "", anything)) == anything


def test_parameters_that_are_no_object_are_refused() -> None:
    """The error names the tool."""
    with pytest.raises(ConfigurationError, match=r"tool 'f'.*'type'.*'array'"):
        tool_schema(ToolSpec("f", "", {"type": "array"}))
    with pytest.raises(ConfigurationError, match=r"tool 'f'\.properties\.a.*'not'"):
        tool_schema(ToolSpec("f", "", {"properties": {"a": {"not": {}}}}))


WORDS = st.sampled_from(["const", "default", "pattern", "title", "minLength", "format", "x", "$id"])
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.dictionaries(WORDS, st.text(max_size=2) | st.integers() | st.none(), max_size=3),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.just("object"),
            "properties": st.dictionaries(WORDS, inner, max_size=2),
            "$defs": st.dictionaries(WORDS, inner, max_size=2),
            "items": inner,
            "anyOf": st.lists(inner, max_size=2),
            "additionalProperties": inner | st.booleans(),
            "description": st.text(max_size=3),
            "default": st.none(),
        },
    ),
    max_leaves=6,
)


@given(SCHEMAS)
def test_any_schema_becomes_one_that_google_knows(schema: Any) -> None:
    """No other keyword is left, and adapting it once more changes nothing."""
    made = answer_schema(schema)
    judge(made)
    assert answer_schema(made) == made


def test_the_judge_knows_what_googles_types_know() -> None:
    """The keywords are those that the SDK's own class of JSON schemas has, as far as it goes."""
    fields = {field.alias or name for name, field in types.JSONSchema.model_fields.items()}
    assert {"anyOf", "enum", "items", "properties", "$defs", "$ref"} <= fields & KNOWN
