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
from streampipe.tools._callable import (
    docstring_of,
    is_sync_generator,
    name_of,
    refuse_uncallable,
    runs_in_loop,
)
from streampipe.tools._docstring import describe
from streampipe.tools._schema import ArgumentSchema

P = ParamSpec("P")
R = TypeVar("R")

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class FunctionTool(Generic[P, R]):
    """A typed function as a tool; still callable as the function it was.

    Attributes:
        name: what the model calls it by.
        description: what the model is told it is for.
        parameters: JSON schema of the arguments.
        function: the function itself.
    """

    __name__: str
    name: str
    description: str
    parameters: dict[str, Any]
    function: Callable[P, R]

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        """Read the function's signature and docstring.

        Args:
            function: sync (it runs in a thread, which a cancelled run does not wait for), async,
                or an async generator function (it streams). Bound methods, callable objects and
                `functools.partial` are functions too; what a partial has bound is not shown.
            name: the function's name if None.
            description: the docstring without its sections if None.

        Raises:
            ConfigurationError: the function cannot be a tool; the message says why and what to do.
        """
        if isinstance(function, FunctionTool):  # the same tool, by another name or description
            name = function.name if name is None else name
            description = function.description if description is None else description
            function = function.function
        refuse_uncallable(function)
        self.function = function
        self.__name__ = name_of(function)
        self.name = checked_name(self.__name__ if name is None else name)
        if is_sync_generator(function):
            msg = f"tool {self.name!r} is a sync generator; write 'async def' to stream its result"
            raise ConfigurationError(msg)
        self.__doc__ = docstring_of(function)
        about, described = describe(self.__doc__)
        self.description = about if description is None else description
        self._arguments = ArgumentSchema(self.name, function, described)
        self.parameters = self._arguments.schema
        self._in_loop = runs_in_loop(function)
        self.__module__ = getattr(function, "__module__", self.__module__)
        self.__wrapped__ = function  # for `inspect.signature`

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself."""
        return self.function(*args, **kwargs)

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
            msg = f"the arguments of {self.name!r} must be a JSON object"
            raise ToolArgumentsError(msg, tool_name=self.name)
        kwargs = self._arguments.validate(args)
        kwargs |= dict.fromkeys(self._arguments.contexts, context)
        call: Callable[..., Any] = self.function
        return call(**kwargs) if self._in_loop else _in_thread(call, kwargs)


async def _in_thread(function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    """Run a sync function in a thread; await what it returns if that is to be awaited.

    Raises:
        RuntimeError: it let a StopIteration out, which a future would never pass on.
        Exception: whatever else it raises.
    """

    def call() -> Any:
        try:
            return function(**kwargs)
        except StopIteration as error:
            msg = "the tool raised StopIteration"
            raise RuntimeError(msg) from error

    result = await asyncio.to_thread(call)
    return await result if inspect.isawaitable(result) else result


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
        ConfigurationError: it is neither, or the function cannot be a tool.
    """
    if inspect.iscoroutine(value):
        value.close()  # else Python complains that it was never awaited
        msg = f"tools: {value!r:.80} is a coroutine; give the function itself, do not call it"
        raise ConfigurationError(msg)
    if isinstance(value, type):
        msg = f"tools: {value.__name__!r} is a class; give an instance of it, or a function"
        raise ConfigurationError(msg)
    if isinstance(value, Tool):
        checked_name(value.name)
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
        return {name: _named(as_tool(item), name) for name, item in value.items()}
    if not isinstance(value, list | tuple):
        msg = f"tools must be a list or a dict by name, not {value!r:.80}"
        raise ConfigurationError(msg)
    tools: dict[str, Tool] = {}
    for index, item in enumerate(value):
        made = as_tool(item)
        if made.name in tools:
            first = list(tools).index(made.name)
            both = f"tools[{first}] and tools[{index}]"
            msg = f"{both} are both named {made.name!r}; give one another name"
            raise ConfigurationError(msg)
        tools[made.name] = made
    return tools


def checked_name(name: Any) -> str:
    """A name that every provider takes.

    Raises:
        ConfigurationError: it is none.
    """
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    msg = (
        f"tool {name!r:.80}: a name has 1 to 64 letters, digits, '_' or '-'; "
        "give one with @tool(name=...)"
    )
    raise ConfigurationError(msg)


class _Renamed:
    """A tool of somebody else's under another name."""

    def __init__(self, inner: Tool, name: str) -> None:
        self.name = checked_name(name)
        self.description = inner.description
        self.parameters = inner.parameters
        self.execute = inner.execute


def _named(item: Tool, name: str) -> Tool:
    if item.name == name:
        return item
    return FunctionTool(item, name=name) if isinstance(item, FunctionTool) else _Renamed(item, name)
