"""A function's signature as a pydantic model: a schema to show, a check of what is sent."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Union

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from streampipe.contracts import ToolContext
from streampipe.errors import ConfigurationError, ToolArgumentsError

_UNFIT: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "takes *{0}; give each argument its own parameter",
    inspect.Parameter.VAR_KEYWORD: "takes **{0}; give each argument its own parameter",
    inspect.Parameter.POSITIONAL_ONLY: "has the positional-only parameter {0!r}; drop the '/'",
}


class ArgumentSchema:
    """The arguments of one tool.

    Attributes:
        schema: JSON schema of the arguments.
        context: name of the parameter that takes the `ToolContext`, if there is one.
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
        self.context: str | None = None
        self._tool = name
        hints = _hints(name, function)
        fields: dict[str, Any] = {}
        for parameter in inspect.signature(function).parameters.values():
            field = self._field(parameter, hints, described)
            if field is not None:
                fields[parameter.name] = field
        # Fields get positions for names: a parameter may be called `schema` or `_x`, a field not.
        self._names = {f"arg{index}": own for index, own in enumerate(fields)}
        try:
            self._model: type[BaseModel] = create_model(
                name,
                __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False),
                **{key: fields[own] for key, own in self._names.items()},
            )
            schema = self._model.model_json_schema(by_alias=True)
        except PydanticUserError as error:
            msg = f"tool {name!r}: its arguments have no JSON schema: {error.message}"
            raise ConfigurationError(msg) from error
        self.schema: dict[str, Any] = _untitled(schema)

    def _field(
        self,
        parameter: inspect.Parameter,
        hints: Mapping[str, Any],
        described: Mapping[str, str],
    ) -> Any:
        unfit = _UNFIT.get(parameter.kind)
        if unfit is not None:
            raise ConfigurationError(f"tool {self._tool!r} {unfit.format(parameter.name)}")
        if parameter.name not in hints:
            msg = (
                f"tool {self._tool!r}: parameter {parameter.name!r} has no type hint; "
                "the model is told its type, so write one"
            )
            raise ConfigurationError(msg)
        hint = hints[parameter.name]
        if _is_context(hint):
            self.context = parameter.name
            return None
        default = ... if parameter.default is parameter.empty else parameter.default
        own: FieldInfo = Field(alias=parameter.name, description=described.get(parameter.name))
        if _has_description(hint):
            own = Field(alias=parameter.name)
        if default is ...:
            return (Annotated[hint, own], ...)
        return (Annotated[hint, own], default)

    def validate(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as keyword arguments of the function, in the types that it asks for.

        Raises:
            ToolArgumentsError: they do not fit; a line a problem, in words for the model.
        """
        try:
            made = self._model.model_validate(args)
        except ValidationError as error:
            problems = "\n".join(
                f"- {'.'.join(map(str, e['loc'])) or 'arguments'}: {_problem(e)}"
                for e in error.errors()
            )
            msg = f"the arguments of {self._tool!r} do not fit its schema:\n{problems}"
            raise ToolArgumentsError(msg, tool_name=self._tool) from error
        return {own: getattr(made, key) for key, own in self._names.items()}


def callee(function: Any) -> Any:
    """The routine behind a callable: what has the hints, and decides between sync and async."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _hints(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    target = callee(function)
    try:
        return typing.get_type_hints(target, localns=_nonlocals(target), include_extras=True)
    except NameError as error:
        msg = (
            f"tool {name!r}: a type hint names what cannot be found ({error}); "
            "define or import it at the top of the module, not under TYPE_CHECKING"
        )
        raise ConfigurationError(msg) from error


def _nonlocals(function: Any) -> dict[str, Any]:
    """What a function sees of the functions around it, for the hints that are strings."""
    names: Sequence[str] = getattr(getattr(function, "__code__", None), "co_freevars", ())
    cells: Sequence[types.CellType] = getattr(function, "__closure__", None) or ()
    found: dict[str, Any] = {}
    for name, cell in zip(names, cells, strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not bound yet: a function that calls itself
            continue
    return found


def _is_context(hint: Any) -> bool:
    if typing.get_origin(hint) in (Union, types.UnionType):
        return any(arg is ToolContext for arg in typing.get_args(hint))
    return hint is ToolContext


def _has_description(hint: Any) -> bool:
    extras = getattr(hint, "__metadata__", ())
    return any(isinstance(extra, FieldInfo) and extra.description for extra in extras)


def _problem(error: Mapping[str, Any]) -> str:
    if error["type"] == "extra_forbidden":
        return "no such argument"
    if error["type"] == "missing":
        return "is required"
    return str(error["msg"])


def _untitled(schema: Any, *, properties: bool = False) -> Any:
    """Without pydantic's titles, which tell a model nothing; a *property* called title stays."""
    if isinstance(schema, Mapping):
        return {
            key: _untitled(value, properties=key in ("properties", "$defs") and not properties)
            for key, value in schema.items()
            if properties or key != "title"
        }
    if isinstance(schema, list):
        return [_untitled(item) for item in schema]
    return schema
