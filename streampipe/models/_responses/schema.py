"""JSON schemas as the Responses protocol takes them, and as its strict mode does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streampipe.errors import ConfigurationError

_KEYWORDS = frozenset(
    {
        "$defs",
        "$ref",
        "additionalProperties",
        "anyOf",
        "const",
        "definitions",
        "description",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "items",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "multipleOf",
        "pattern",
        "properties",
        "required",
        "title",
        "type",
    },
)
"""What strict mode knows."""
_FORMATS = frozenset(
    {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"},
)
_SHAPES: Mapping[str, type[Any]] = {
    "$defs": dict,
    "anyOf": list,
    "definitions": dict,
    "format": str,
    "properties": dict,
    "required": list,
}
_CHOICES = ("anyOf", "oneOf", "allOf", "enum", "const")
"""What a schema without a type may say instead."""


def object_schema(schema: Mapping[str, Any], what: str) -> dict[str, Any]:
    """A schema with an object at its root, which is all that the protocol takes.

    A root that only refers to a definition, as pydantic writes a type that contains itself, is
    replaced by that definition.

    Args:
        schema: the JSON schema.
        what: whose it is, for the error.

    Raises:
        ConfigurationError: the root is something else, or refers to another document.
    """
    made = dict(schema)
    reference = made.get("$ref")
    if isinstance(reference, str):
        made |= _definition(made, reference, what)
        del made["$ref"]
    keyword = "type" if "type" in made else next((k for k in _CHOICES if k in made), "type")
    made.setdefault(keyword, "object")
    if made.get("type") != "object":
        msg = (
            f"{what}: the schema's root must be an object, which its keyword {keyword!r} does not "
            f"say ({made[keyword]!r:.80}): put it into a field of an object"
        )
        raise ConfigurationError(msg)
    return made


def _definition(schema: Mapping[str, Any], reference: str, what: str) -> dict[str, Any]:
    found: Any = schema
    for name in reference.removeprefix("#/").split("/"):
        found = found.get(name) if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping) or "$ref" in found:
        msg = f"{what}: the schema's root has a '$ref' to {reference!r:.80}, which is not in it"
        raise ConfigurationError(msg)
    return dict(found)


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """An object's schema as strict mode wants it, if it means the same there.

    Objects are closed. A property that may be missing, an open object or a keyword that strict
    mode does not know would come to mean something else, or be refused.

    >>> strict_schema({"type": "object", "properties": {}})
    {'type': 'object', 'properties': {}, 'required': [], 'additionalProperties': False}
    >>> strict_schema({"type": "object", "properties": {"a": {"type": "string"}}}) is None
    True
    """
    return None if "anyOf" in schema else _strict(schema)  # which may not stand at the root


def _strict(schema: Any) -> dict[str, Any] | None:
    if not isinstance(schema, Mapping) or not schema.keys() <= _KEYWORDS:
        return None
    if not all(isinstance(schema.get(name, kind()), kind) for name, kind in _SHAPES.items()):
        return None  # no schema at all: for the server to say so
    if "$ref" in schema:
        return dict(schema) if len(schema) == 1 else None
    if "type" not in schema and "anyOf" not in schema:
        return None  # anything at all, or values of several types
    if "format" in schema and schema["format"] not in _FORMATS:
        return None
    made: dict[str, Any] = dict(schema)
    kinds = made.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "object" in kinds or "properties" in made:
        names = list(made.setdefault("properties", {}))
        if made.get("additionalProperties", False) is not False:
            return None
        if sorted(map(str, made.get("required", []))) != sorted(names):
            return None
        made |= {"required": names, "additionalProperties": False}
    for name in ("properties", "$defs", "definitions"):
        if name in made:
            made[name] = {key: _strict(inner) for key, inner in made[name].items()}
            if None in made[name].values():
                return None
    if "anyOf" in made:
        made["anyOf"] = [_strict(inner) for inner in made["anyOf"]]
        if None in made["anyOf"]:
            return None
    if "array" in kinds or "items" in made:
        made["items"] = _strict(made.get("items"))
        if made["items"] is None:
            return None
    return made
