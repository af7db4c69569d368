"""A function's signature as a pydantic model: a schema to show, a check of what is sent."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Union

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, SchemaError, to_json

from streampipe.contracts import ToolContext
from streampipe.errors import ConfigurationError, ToolArgumentsError
from streampipe.tools._callable import hints_of, parameters_of

_UNFIT: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "takes *{0}; give each argument its own parameter",
    inspect.Parameter.VAR_KEYWORD: "takes **{0}; give each argument its own parameter",
    inspect.Parameter.POSITIONAL_ONLY: "has the positional-only parameter {0!r}; drop the '/'",
}
# What pydantic raises for a type that it cannot check or describe. TypeError: a constraint such as
# `Field(max_length=3)` on a type that has no length.
_NO_SCHEMA = (PydanticUserError, PydanticUndefinedAnnotation, SchemaError, TypeError)
_VERBATIM = {"const", "default", "enum", "examples"}  # JSON values of the user's, not schemas
MOST_PROBLEMS = 20  # a model learns nothing from the thousandth


class ArgumentSchema:
    """The arguments of one tool.

    Attributes:
        schema: JSON schema of the arguments.
        contexts: names of the parameters that take the `ToolContext`.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], described: Mapping[str, str]
    ) -> None:
        """Work out the arguments of `function`.

        Args:
            name: the tool's name.
            function: a typed function.
            described: what the docstring says of each parameter.

        Raises:
            ConfigurationError: a parameter has no type hint, or is of a kind or type that no JSON
                object can fill; the message names the tool and the parameter.
        """
        self.contexts: list[str] = []
        self._tool = name
        hints = self._hints(function)
        fields: dict[str, Any] = {}
        for parameter in parameters_of(function):
            hint = self._hint(parameter, hints)
            if _is_context(hint):
                self.contexts.append(parameter.name)
            else:
                fields[parameter.name] = _field(parameter, hint, described)
        # Fields get positions for names: a parameter may be called `schema` or `_x`, a field not.
        self._names = {f"arg{index}": own for index, own in enumerate(fields)}
        try:
            self._model, schema = self._build(fields)
        except _NO_SCHEMA as error:
            raise self._no_schema(fields, error) from error
        self.schema: dict[str, Any] = _untitled(schema)

    def _hints(self, function: Callable[..., Any]) -> dict[str, Any]:
        try:
            return hints_of(function)
        except NameError as error:
            msg = (
                f"tool {self._tool!r}: a type hint names what cannot be found ({error}); "
                "define or import it at the top of the module, not under TYPE_CHECKING"
            )
            raise ConfigurationError(msg) from error

    def _hint(self, parameter: inspect.Parameter, hints: Mapping[str, Any]) -> Any:
        unfit = _UNFIT.get(parameter.kind)
        if unfit is not None:
            raise ConfigurationError(f"tool {self._tool!r} {unfit.format(parameter.name)}")
        if parameter.name not in hints:
            todo = (
                "a method becomes a tool when it is bound: tool(obj.method)"
                if parameter.name in ("self", "cls")
                else "the model is told its type, so write one"
            )
            msg = f"tool {self._tool!r}: parameter {parameter.name!r} has no type hint; {todo}"
            raise ConfigurationError(msg)
        return hints[parameter.name]

    def _build(self, fields: Mapping[str, Any]) -> tuple[type[BaseModel], dict[str, Any]]:
        model: type[BaseModel] = create_model(
            self._tool,
            __config__=ConfigDict(extra="forbid"),
            **{f"arg{index}": field for index, field in enumerate(fields.values())},
        )
        return model, model.model_json_schema(by_alias=True)

    def _no_schema(self, fields: Mapping[str, Any], error: Exception) -> ConfigurationError:
        """The error for fields of which at least one has no schema, naming the first."""
        fault = ""
        for own, field in fields.items():
            try:
                self._build({own: field})
            except _NO_SCHEMA as first:
                fault, error = own, first
                break
        reason = error.message if isinstance(error, PydanticUserError) else str(error)
        msg = (
            f"tool {self._tool!r}: the type of parameter {fault!r} has no JSON schema; "
            f"use JSON's types, dataclasses or pydantic models ({reason.splitlines()[0]})"
        )
        return ConfigurationError(msg)

    def validate(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as keyword arguments of the function, in the types that it asks for.

        They are checked as JSON, whatever they are now: a date is text, a set is an array.

        Raises:
            ToolArgumentsError: they do not fit; a line a problem, in words for the model.
        """
        try:
            made = self._model.model_validate_json(to_json(args))
        except PydanticSerializationError as error:
            msg = f"the arguments of {self._tool!r} are no JSON: {error}"
            raise ToolArgumentsError(msg, tool_name=self._tool) from error
        except ValidationError as error:
            lines = list(dict.fromkeys(self._problems(error, args)))
            if len(lines) > MOST_PROBLEMS:
                lines[MOST_PROBLEMS:] = [f"and {len(lines) - MOST_PROBLEMS} more"]
            problems = "\n".join(lines)
            msg = f"the arguments of {self._tool!r} do not fit its schema:\n{problems}"
            raise ToolArgumentsError(msg, tool_name=self._tool) from error
        return {own: getattr(made, key) for key, own in self._names.items()}

    def _problems(self, error: ValidationError, args: Mapping[str, Any]) -> Iterator[str]:
        for problem in error.errors(include_url=False, include_context=False, include_input=False):
            place = _place(problem["loc"], args, missing=problem["type"].startswith("missing"))
            where = ".".join(map(str, place)) or "arguments"
            if problem["type"] != "extra_forbidden":
                yield f"{where}: {problem['msg']}"
            elif len(place) > 1:
                yield f"{where}: unknown key"
            else:
                known = ", ".join(self._names.values()) or "none"
                yield f"{where}: unknown argument; known: {known}"


def _field(parameter: inspect.Parameter, hint: Any, described: Mapping[str, str]) -> Any:
    about = described.get(parameter.name)
    if about and not _has_description(hint):
        hint = Annotated[hint, Field(description=about)]
    own: Any = Field(alias=parameter.name)
    default = ... if parameter.default is parameter.empty else parameter.default
    return (Annotated[hint, own], default)


def _is_context(hint: Any) -> bool:
    """Whether it is `ToolContext`, or that and None."""
    if typing.get_origin(hint) is Annotated:
        hint = hint.__origin__
    if typing.get_origin(hint) in (Union, types.UnionType):
        return set(typing.get_args(hint)) == {ToolContext, type(None)}
    return hint is ToolContext


def _has_description(hint: Any) -> bool:
    extras = getattr(hint, "__metadata__", ())
    return any(isinstance(extra, FieldInfo) and extra.description for extra in extras)


def _place(location: tuple[int | str, ...], args: Any, *, missing: bool) -> list[int | str]:
    """Where in the arguments a problem is.

    A location also names the members of unions and the validators on its way, which mean nothing
    to a model: a step that leads nowhere in the arguments is left out, unless it is the last one
    and what is `missing`.
    """
    place: list[int | str] = []
    here = args
    for index, step in enumerate(location):
        last = index == len(location) - 1
        if isinstance(here, Mapping) and (step in here or (missing and last)):
            place.append(step)
            here = here.get(step)
        elif isinstance(here, list | tuple) and isinstance(step, int) and step < len(here):
            place.append(step)
            here = here[step]
    return place


def _untitled(schema: Any, *, properties: bool = False) -> Any:
    """Without pydantic's titles, which tell a model nothing; a *property* called title stays."""
    if isinstance(schema, Mapping):
        return {
            key: value
            if key in _VERBATIM and not properties
            else _untitled(value, properties=key in ("properties", "$defs") and not properties)
            for key, value in schema.items()
            if properties or key != "title"
        }
    if isinstance(schema, list):
        return [_untitled(item) for item in schema]
    return schema
