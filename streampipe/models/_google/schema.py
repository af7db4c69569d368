"""JSON schemas as Google's `generateContent` protocol takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from streampipe.contracts import ToolSpec
from streampipe.errors import ConfigurationError
from streampipe.messages._json import json_text

__all__ = ["answer_schema", "tool_schema"]

_KEPT = frozenset(
    {
        "$anchor",
        "$id",
        "$ref",
        "description",
        "format",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "propertyOrdering",
        "required",
        "title",
        "type",
    },
)
_DROPPED = frozenset(
    {"$comment", "$schema", "deprecated", "discriminator", "readOnly", "writeOnly"},
)
"""Keywords that say nothing of what a model may write."""
_REFUSED = frozenset(
    {
        "$dynamicRef",
        "contains",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "if",
        "not",
        "patternProperties",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    },
)
_MAPS = {"$defs": "$defs", "definitions": "$defs", "properties": "properties"}
_ONE = ("additionalProperties", "items")
_SEVERAL = {"allOf": "anyOf", "anyOf": "anyOf", "oneOf": "oneOf", "prefixItems": "prefixItems"}


def tool_schema(tool: ToolSpec) -> dict[str, Any] | None:
    """The parameters of a tool; None for a tool that takes none, whose schema is left out.

    Raises:
        ConfigurationError: the protocol has no like of them; the message names tool and keyword.
    """
    where = f"tool {tool.name!r}"
    schema = _adapted(tool.parameters, where)
    if schema.get("type", "object") != "object":
        _refuse(where, "type", f"parameters are an object, not {schema['type']!r:.80}")
    says_more = schema.keys() - {"additionalProperties", "properties", "title", "type"}
    takes_none = not schema.get("properties") and not schema.get("additionalProperties")
    return None if takes_none and not says_more else schema


def answer_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of an answer.

    The protocol knows a part of JSON Schema. A keyword that it lacks (`pattern`, `maxLength`,
    `default`, ...) is told to the model in the description; the answer is validated against the
    schema as it was, so nothing that it forbids gets through.

    Args:
        schema: a JSON schema.

    Raises:
        ConfigurationError: it holds what words cannot stand for; the message names the keyword.
    """
    return _adapted(schema, "structured_output")


def _adapted(schema: Any, where: str) -> dict[str, Any]:
    if schema is True:
        return {}
    if not isinstance(schema, Mapping):
        _refuse(where, f"{schema!r:.80}", "a schema has to be an object")
    made: dict[str, Any] = {}
    told: list[str] = []
    for keyword, value in schema.items():
        here = f"{where}.{keyword}"
        if keyword in _REFUSED:
            _refuse(where, keyword, "the protocol has no such keyword")
        elif keyword in _MAPS and isinstance(value, Mapping):
            inner = {name: _adapted(found, f"{here}.{name}") for name, found in value.items()}
            made[_MAPS[keyword]] = {**made.get(_MAPS[keyword], {}), **inner}
        elif keyword in _ONE:
            made[keyword] = value if isinstance(value, bool) else _adapted(value, here)
        elif keyword in _SEVERAL and isinstance(value, list):
            _put_several(made, keyword, value, where)
        elif keyword in ("const", "enum"):
            _put_choice(made, told, keyword, value)
        elif keyword in _KEPT:
            made[keyword] = value
        elif keyword not in _DROPPED:
            told.append(f"{keyword}: {json_text(value)}")
    if told:
        said = [made["description"]] if made.get("description") else []
        made["description"] = "\n".join([*said, *told])
    return _referring(made, where)


def _put_several(made: dict[str, Any], keyword: str, value: list[Any], where: str) -> None:
    """Schemas of which several hold, or one; all of one is any of one."""
    if keyword == "allOf" and (len(value) != 1 or "anyOf" in made):
        _refuse(where, keyword, "the protocol has no such keyword; merge its schemas into one")
    if _SEVERAL[keyword] in made:
        _refuse(where, keyword, "it stands beside 'allOf', which becomes 'anyOf'")
    made[_SEVERAL[keyword]] = [
        _adapted(found, f"{where}.{keyword}[{index}]") for index, found in enumerate(value)
    ]


def _put_choice(made: dict[str, Any], told: list[str], keyword: str, value: Any) -> None:
    """One value or some of them: the protocol lists strings and numbers, others are told."""
    values = [value] if keyword == "const" else value
    if isinstance(values, list) and all(
        isinstance(found, str | int | float) and not isinstance(found, bool) for found in values
    ):
        made["enum"] = values
        if all(isinstance(found, str) for found in values):
            made.setdefault("type", "string")
    else:
        told.append(f"{keyword}: {json_text(value)}")


def _referring(made: dict[str, Any], where: str) -> dict[str, Any]:
    """A schema with its reference as the protocol has it: within the schema, and by itself."""
    if "$ref" not in made:
        return made
    ref = made.pop("$ref")
    if not isinstance(ref, str) or not ref.startswith("#"):
        _refuse(where, "$ref", f"it must refer to a definition in the schema, not to {ref!r:.80}")
    reference = {"$ref": ref.replace("#/definitions/", "#/$defs/")}
    if all(keyword.startswith("$") for keyword in made):
        return {**made, **reference}
    if "anyOf" in made:
        _refuse(where, "$ref", "it stands beside 'anyOf'")
    return {**made, "anyOf": [reference]}


def _refuse(where: str, what: str, why: str) -> NoReturn:
    raise ConfigurationError(f"{where}: Google's protocol cannot take {what!r}: {why}")
