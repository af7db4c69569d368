"""JSON schemas as the Anthropic Messages protocol takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from streampipe.contracts import ToolSpec
from streampipe.errors import ConfigurationError
from streampipe.messages._json import json_text

__all__ = ["answer_schema", "tool_schema"]

_FORMATS = frozenset(
    {
        "date",
        "date-time",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "time",
        "uri",
        "uuid",
    },
)
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
        "prefixItems",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    },
)
_KEPT = frozenset({"$ref", "const", "description", "enum", "required", "title", "type"})
_DROPPED = frozenset(
    {
        "$anchor",
        "$comment",
        "$id",
        "$schema",
        "additionalProperties",  # closed objects say so anew
        "deprecated",
        "discriminator",
        "examples",
    },
)
_MAPS = ("$defs", "definitions", "properties")
_SEVERAL = {"allOf": "allOf", "anyOf": "anyOf", "oneOf": "anyOf"}


def tool_schema(tool: ToolSpec) -> dict[str, Any]:
    """The parameters of a tool: any schema of an object, as long as it says so at the top.

    Raises:
        ConfigurationError: they are not; the message names tool and keyword.
    """
    schema = dict(tool.parameters)
    root = schema.pop("$ref", None)
    if root is not None:
        found = _found(root, tool.parameters, f"tool {tool.name!r}")
        schema = {**found, **schema}
    for keyword in ("allOf", "anyOf", "oneOf"):
        if keyword in schema:
            msg = (
                f"tool {tool.name!r}: the Anthropic protocol takes no {keyword!r} at the top of a "
                "tool's parameters: make it a property"
            )
            raise ConfigurationError(msg)
    if schema.setdefault("type", "object") != "object":
        msg = (
            f"tool {tool.name!r}: 'type' of the parameters must be 'object', "
            f"not {schema['type']!r:.80}"
        )
        raise ConfigurationError(msg)
    return schema


def _found(ref: Any, root: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """What a reference within a schema refers to.

    Raises:
        ConfigurationError: it refers to nothing in this schema.
    """
    found: Any = root
    if isinstance(ref, str) and ref.startswith("#/"):
        for step in ref[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, Mapping) else None
        if isinstance(found, Mapping):
            return found
    msg = f"{where}: '$ref' must refer to a definition in the schema itself, not to {ref!r:.80}"
    raise ConfigurationError(msg)


def answer_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of an answer as the protocol takes it.

    Objects are closed and `oneOf` becomes `anyOf`; bounds (`minimum`, `maxLength`, ...) are told to
    the model in the description. The answer is validated against the schema as it was, so nothing
    that it forbids gets through.

    Args:
        schema: a JSON schema.

    Raises:
        ConfigurationError: it holds what the protocol has no like of; the message names it.
    """
    return _Adaption(schema).of(schema, "structured_output", ())


class _Adaption:
    """Goes through a schema; into definitions at each reference too, to find a circle."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._straight: set[str] = set()  # references that lead into no circle

    def of(self, schema: Any, where: str, within: tuple[str, ...]) -> dict[str, Any]:
        """A schema, and all that is in it; `within` are the references that led to it."""
        if not isinstance(schema, Mapping):
            _refuse(where, f"{schema!r:.80}", "a schema has to be an object")
        made: dict[str, Any] = {}
        told: list[str] = []
        for keyword, value in schema.items():
            here = f"{where}.{keyword}"
            if keyword in _REFUSED:
                _refuse(where, keyword, "the protocol has no such keyword")
            elif keyword in _MAPS and isinstance(value, Mapping):
                made[keyword] = {k: self.of(v, f"{here}.{k}", within) for k, v in value.items()}
            elif keyword == "items":
                made[keyword] = self.of(value, here, within)
            elif keyword in _SEVERAL and isinstance(value, list):
                several = [self.of(v, f"{here}[{i}]", within) for i, v in enumerate(value)]
                made[_SEVERAL[keyword]] = several
            elif _is_kept(keyword, value):
                made[keyword] = value
            elif keyword not in _DROPPED:
                told.append(f"{keyword}: {json_text(value)}")
        if "$ref" in schema:  # nothing may stand beside it but what it refers to
            self._follow(schema["$ref"], where, within)
            return {k: v for k, v in made.items() if k in ("$ref", "$defs", "definitions")}
        if told:
            said = [made["description"]] if made.get("description") else []
            made["description"] = "\n".join([*said, *told])
        return _closed(made, schema, where)

    def _follow(self, ref: Any, where: str, within: tuple[str, ...]) -> None:
        if ref == "#" or ref in within:
            _refuse(where, "$ref", f"{ref!r} is recursive, and the protocol takes no such schema")
        target = _found(ref, self._root, where)
        if ref not in self._straight:
            self.of(target, ref, (*within, ref))
            self._straight.add(ref)


def _is_kept(keyword: str, value: Any) -> bool:
    if keyword == "format":
        return isinstance(value, str) and value in _FORMATS
    return keyword in _KEPT or (keyword == "minItems" and value in (0, 1))


def _closed(made: dict[str, Any], schema: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A schema that says what it is, and all of what it may have if it is an object.

    Raises:
        ConfigurationError: it does not.
    """
    if not made.keys() & {"type", "enum", "const", "anyOf", "allOf"}:
        _refuse(where, "type", "it is missing, and the protocol takes no value of any kind")
    values = made.get("enum", [])
    if not isinstance(values, list) or any(isinstance(value, dict | list) for value in values):
        _refuse(where, "enum", "it has to be a list, and its values neither objects nor lists")
    kinds = made.get("type")
    if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
        if schema.get("additionalProperties", False) is not False:
            _refuse(where, "additionalProperties", "an object has to name all its properties")
        made.setdefault("properties", {})
        made["additionalProperties"] = False
    return made


def _refuse(where: str, what: str, why: str) -> NoReturn:
    raise ConfigurationError(f"{where}: the Anthropic protocol cannot take {what!r}: {why}")
