"""`@tool`: a typed function as something that a model can call."""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, overload

from streampipe.contracts import Tool, ToolContext
from streampipe.errors import ConfigurationError, ToolArgumentsError
from streampipe.tools._docstring import describe
from streampipe.tools._schema import ArgumentSchema, callee

P = ParamSpec("P")
R = TypeVar("R")

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class FunctionTool(Generic[P, R]):
    """A typed function as a tool; still callable as the function it was.

    Attributes:
        name: what the model calls it by.
        description: what the model is told it is for.
        parameters: JSON schema of the arguments.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        """Read the function's signature and docstring.

        Args:
            function: sync (it runs in a thread), async, or an async generator (it streams).
            name: the function's name if None.
            description: the docstring without its sections if None.

        Raises:
            ConfigurationError: the function cannot be a tool; the message says why and what to do.
        """
        self.name = name if name is not None else _name_of(function)
        if not _NAME.fullmatch(self.name):
            msg = (
                f"tool {self.name!r}: a name has 1 to 64 letters, digits, '_' or '-'; "
                "give one with @tool(name=...)"
            )
            raise ConfigurationError(msg)
        if inspect.isgeneratorfunction(callee(function)):
            msg = f"tool {self.name!r} is a sync generator; write 'async def' to stream its result"
            raise ConfigurationError(msg)
        about, described = describe(function)
        self.description = about if description is None else description
        self._arguments = ArgumentSchema(self.name, function, described)
        self.parameters = self._arguments.schema
        self._function = function
        self._in_thread = not (
            inspect.iscoroutinefunction(callee(function))
            or inspect.isasyncgenfunction(callee(function))
        )
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        """The tool's name."""
        return f"FunctionTool({self.name!r})"

    def execute(self, args: Mapping[str, Any], context: ToolContext) -> Any:
        """Validate the arguments and run the function.

        Returns:
            An awaitable of the result, or the async iterator of a streaming tool.

        Raises:
            ToolArgumentsError: the arguments do not fit the schema.
        """
        if not isinstance(args, Mapping):
            msg = f"the arguments of {self.name!r} must be a JSON object, not {args!r:.80}"
            raise ToolArgumentsError(msg, tool_name=self.name)
        kwargs = self._arguments.validate(args)
        if self._arguments.context is not None:
            kwargs[self._arguments.context] = context
        call: Callable[..., Any] = self._function
        if self._in_thread:
            return asyncio.to_thread(call, **kwargs)
        return call(**kwargs)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
) -> FunctionTool[P, R]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
) -> Any:
    """Make a typed function a tool: `@tool`, `@tool(name=...)` or `tool(function)`.

    A parameter annotated `ToolContext` is filled in by the run and not shown to the model.

    >>> @tool
    ... def add(a: int, b: int = 1) -> int:
    ...     '''Add two numbers.
    ...
    ...     Args:
    ...         a: the first one.
    ...     '''
    ...     return a + b
    >>> add.parameters["properties"]["a"]
    {'description': 'the first one.', 'type': 'integer'}
    >>> add(1, 2)
    3

    Raises:
        ConfigurationError: the function cannot be a tool; see `FunctionTool`.
    """
    if function is None:
        return functools.partial(FunctionTool, name=name, description=description)
    return FunctionTool(function, name=name, description=description)


def as_tool(value: Any) -> Tool:
    """A tool as it is, a typed function as a `FunctionTool`.

    Raises:
        ConfigurationError: it is neither.
    """
    if inspect.iscoroutine(value):
        value.close()
        msg = f"tools: {value!r:.80} is a coroutine; give the function itself, do not call it"
        raise ConfigurationError(msg)
    if not isinstance(value, type):
        if isinstance(value, Tool):
            return value
        if callable(value):
            return FunctionTool(value)
    msg = f"tools: {value!r:.80} is no tool; give a function with type hints or a Tool"
    raise ConfigurationError(msg)


def tools_by_name(value: Sequence[Any] | Mapping[str, Any] | None) -> dict[str, Tool]:
    """Tools by the name that the model calls them by.

    Args:
        value: a list of tools and typed functions, or a dict whose keys are the names.

    Raises:
        ConfigurationError: an element is no tool, or two have one name.
    """
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {str(name): _named(as_tool(item), str(name)) for name, item in value.items()}
    if not isinstance(value, list | tuple):
        msg = f"tools must be a list or a dict by name, not {value!r:.80}"
        raise ConfigurationError(msg)
    tools: dict[str, Tool] = {}
    for item in value:
        made = as_tool(item)
        if made.name in tools:
            msg = f"tools: two tools are named {made.name!r}; give one another name"
            raise ConfigurationError(msg)
        tools[made.name] = made
    return tools


class _Renamed:
    """A tool under another name."""

    def __init__(self, inner: Tool, name: str) -> None:
        self.name = name
        self.description = inner.description
        self.parameters = inner.parameters
        self.execute = inner.execute


def _named(item: Tool, name: str) -> Tool:
    return item if item.name == name else _Renamed(item, name)


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None)
    if name is None:
        name = type(function).__name__
    if name == "<lambda>":
        msg = "a lambda cannot be a tool: it has no name and no type hints; write a function"
        raise ConfigurationError(msg)
    return str(name)
