"""`@tool`: what becomes a tool, how it runs, and what is refused."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from types import SimpleNamespace
from typing import Any, Generic, TypeVar, assert_type

import pytest

from streampipe.contracts import Tool, ToolContext
from streampipe.errors import ConfigurationError, ToolArgumentsError
from streampipe.tools import FunctionTool, as_tool, tool, tools_by_name
from tests.tools.contexts import made_context, passed_on

T = TypeVar("T")
CONTEXT = made_context(user="u1")
TAG: contextvars.ContextVar[str] = contextvars.ContextVar("TAG", default="none")


def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: the first one.
        b: the second one.
    """
    return a + b


async def add_later(a: int, b: int = 1) -> int:
    """Add two numbers, later."""
    await asyncio.sleep(0)
    return a + b


class Adder:
    """Adds what it was made with."""

    def __init__(self, more: int) -> None:
        """Remember how much."""
        self.more = more
        self.name = "not the tool's name"  # an object's own attributes are no business of the tool

    def __call__(self, a: int) -> int:
        """Add it to a number."""
        return a + self.more

    def plus(self, a: int) -> int:
        """Add it, by a method."""
        return a + self.more

    async def plus_later(self, a: int) -> int:
        """Add it, later."""
        return a + self.more

    @classmethod
    def none(cls, a: int) -> int:
        """Add nothing."""
        return a

    @staticmethod
    def one(a: int) -> int:
        """Add one."""
        return a + 1


class Foreign:
    """A tool that was made without `@tool`."""

    def __init__(self, name: str = "foreign") -> None:
        """Go by a name."""
        self.name = name
        self.description = "d"
        self.parameters: dict[str, Any] = {"type": "object", "properties": {}}

    def execute(self, args: Mapping[str, Any], context: ToolContext) -> Any:
        """Give the arguments back."""
        return dict(args)


# --- making one ----------------------------------------------------------------------------


def test_bare_decorator_makes_a_tool_that_still_is_the_function() -> None:
    """`@tool` gives a Tool with the function's name and words; a call is a call as before."""
    made = tool(add)
    assert isinstance(made, Tool)
    assert made.name == made.__name__ == "add"
    assert made.__doc__ == inspect.getdoc(add)
    assert made.description == "Add two numbers."
    assert made(2) == 3
    assert made(2, b=3) == 5
    assert inspect.signature(made) == inspect.signature(add)
    assert repr(made) == "FunctionTool('add')"


def test_name_and_description_can_be_given() -> None:
    """`@tool(name=..., description=...)` overrides both, for the model only."""

    @tool(name="sum-up", description="Sums.")
    def f(a: int) -> int:
        """Not told."""
        return a

    assert (f.name, f.description, f.__name__) == ("sum-up", "Sums.", "f")
    assert f(3) == 3
    plain = tool(add, name="plus")
    assert (plain.name, plain.description) == ("plus", "Add two numbers.")


async def test_type_checkers_keep_the_signature() -> None:
    """The decorated function is called with the parameters that it had, and gives its type."""

    @tool
    def double(a: int) -> str:
        return str(2 * a)

    @tool(name="later")
    async def later(a: int) -> str:
        return str(a)

    assert_type(double(2), str)
    assert_type(await later(2), str)
    with pytest.raises(TypeError):
        double("2", "3")  # type: ignore[call-arg, arg-type]  # what a type checker has to see


def test_without_a_docstring_nothing_is_said() -> None:
    """An undocumented function has an empty description and undescribed parameters."""

    @tool
    def f(a: int) -> int:
        return a

    assert f.description == ""
    assert f.parameters["properties"] == {"a": {"type": "integer"}}


def test_a_tool_of_a_tool_has_its_schema() -> None:
    """Decorated twice, or given another name, it is still one function."""
    made = tool(tool(tool(add, description="Mine."), name="plus"))
    assert (made.name, made.description) == ("plus", "Mine.")
    assert made.parameters == tool(add).parameters
    assert made(1) == 2


@pytest.mark.parametrize(
    ("function", "name", "description", "result"),
    [
        (functools.partial(add, b=5), "add", "Add two numbers.", 8),
        (functools.partial(functools.partial(add), b=5), "add", "Add two numbers.", 8),
        (Adder(5), "Adder", "Add it to a number.", 8),
        (Adder(5).plus, "plus", "Add it, by a method.", 8),
        (Adder(5).plus_later, "plus_later", "Add it, later.", 8),
        (Adder.none, "none", "Add nothing.", 3),
        (Adder.one, "one", "Add one.", 4),
        (staticmethod(add), "add", "Add two numbers.", 4),
    ],
)
async def test_other_callables_work(
    function: Callable[..., Any], name: str, description: str, result: int
) -> None:
    """Partials, callable objects, methods and static methods are functions too."""
    made = tool(function)
    assert (made.name, made.description) == (name, description)
    assert made.parameters["required"] == ["a"]
    assert await made.execute({"a": 3}, CONTEXT) == result


def test_what_a_partial_has_bound_is_not_shown() -> None:
    """A bound argument, which may be a secret, is neither told to the model nor taken from it."""

    def search(query: str, api_key: str) -> str:
        return query + api_key

    made = tool(functools.partial(search, api_key="hush"))
    assert "hush" not in str(made.parameters)
    assert list(made.parameters["properties"]) == ["query"]
    with pytest.raises(ToolArgumentsError, match="api_key: unknown argument; known: query"):
        made.execute({"query": "q", "api_key": "mine"}, CONTEXT)


# --- running it ------------------------------------------------------------------------------


async def test_sync_functions_run_in_a_thread_with_their_context_variables() -> None:
    """The loop goes on meanwhile, and context variables are what they are for the caller."""
    here = threading.get_ident()

    @tool
    def where() -> tuple[bool, str]:
        return threading.get_ident() == here, TAG.get()

    TAG.set("mine")
    assert await where.execute({}, CONTEXT) == (False, "mine")


async def test_async_functions_run_in_the_loop() -> None:
    """An async function is awaited by whoever awaits `execute`, in its own thread."""
    made = tool(add_later)
    assert await made.execute({"a": 2}, CONTEXT) == 3
    assert await made(2) == 3


async def test_async_generators_stream() -> None:
    """`execute` gives the async iterator itself."""

    @tool
    async def count(to: int) -> AsyncIterator[int]:
        for number in range(to):
            yield number

    values = count.execute({"to": 3}, CONTEXT)
    assert isinstance(values, AsyncIterator)
    assert [value async for value in values] == [0, 1, 2]


async def test_a_plain_wrapper_is_what_it_wraps() -> None:
    """A decorator under `@tool` that passes on what an async function gives changes nothing."""

    async def count(to: int) -> AsyncIterator[int]:
        yield to

    assert await tool(passed_on(add_later)).execute({"a": 2}, CONTEXT) == 3
    assert await tool(passed_on(add)).execute({"a": 2}, CONTEXT) == 3
    streamed = tool(passed_on(count)).execute({"to": 7}, CONTEXT)
    assert [value async for value in streamed] == [7]


async def test_an_awaitable_from_a_sync_function_is_awaited() -> None:
    """A sync function that returns a coroutine gives the coroutine's result."""

    @tool
    def indirect(a: int) -> Any:
        return add_later(a)

    assert await indirect.execute({"a": 2}, CONTEXT) == 3


@pytest.mark.parametrize("error", [ValueError("boom"), KeyError("k"), StopIteration()])
async def test_what_a_tool_raises_comes_out(error: Exception) -> None:
    """A failure is the caller's; a StopIteration, which no future passes on, hangs nobody."""

    @tool
    def f() -> None:
        raise error

    with pytest.raises((type(error), RuntimeError)) as caught:
        await asyncio.wait_for(f.execute({}, CONTEXT), 5)
    assert error in (caught.value, caught.value.__cause__)


# --- the context -----------------------------------------------------------------------------


async def test_the_context_is_injected_and_not_shown() -> None:
    """A parameter annotated `ToolContext`, of any name, optional or not, is the run's."""

    @tool
    def who(greeting: str, ctx: ToolContext, again: ToolContext | None = None) -> str:
        assert again is ctx
        return f"{greeting} {ctx.request_context['user']}"

    assert list(who.parameters["properties"]) == ["greeting"]
    assert who.parameters["required"] == ["greeting"]
    assert await who.execute({"greeting": "hi"}, CONTEXT) == "hi u1"
    assert who("hello", CONTEXT, CONTEXT) == "hello u1"


def test_the_context_cannot_be_sent_by_the_model() -> None:
    """An argument with the context's name is an unknown argument."""

    @tool
    def who(ctx: ToolContext) -> str:
        return ctx.run_id

    with pytest.raises(ToolArgumentsError, match="ctx: unknown argument; known: none"):
        who.execute({"ctx": {"run_id": "forged"}}, CONTEXT)


# --- refusals --------------------------------------------------------------------------------


def unhinted(a, b: int = 1):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, D103 - the fault
    return a, b


def any_number(*numbers: int) -> int:
    """Take any number of them."""
    return sum(numbers)


def any_option(**options: int) -> int:
    """Take any option."""
    return sum(options.values())


def by_place(a: int, /) -> int:
    """Take an argument by its place."""
    return a


def counting(to: int) -> Any:
    """Yield without being async."""
    yield from range(to)


class Opaque:
    """A type that JSON has no form for."""


def opaque(fine: int, what: Opaque) -> int:
    """Take what JSON cannot say."""
    return fine


def unresolved(a: Nowhere) -> int:  # type: ignore[name-defined]  # noqa: F821 - the fault
    """Name a type that is not there."""
    return 0


REFUSED: dict[str, tuple[Any, str]] = {
    "no hint": (unhinted, "'unhinted': parameter 'a' has no type hint; .* write one"),
    "args": (any_number, r"'any_number' takes \*numbers; give each argument its own parameter"),
    "kwargs": (any_option, r"'any_option' takes \*\*options; give each"),
    "positional only": (by_place, "'by_place' has the positional-only parameter 'a'; drop the '/'"),
    "sync generator": (counting, "'counting' is a sync generator; write 'async def'"),
    "opaque type": (opaque, "'opaque': the type of parameter 'what' has no JSON schema; use"),
    "unknown type": (unresolved, "'unresolved': a type hint names what cannot be found"),
    "lambda": (lambda: 0, "a lambda cannot be a tool"),
    "class": (Adder, "the class 'Adder' cannot be a tool; .* callable instance"),
    "no function": (7, "7 cannot be a tool, since it cannot be called"),
    "classmethod object": (classmethod(lambda cls: 0), "put @tool below @classmethod"),
    "method of a class": (Adder.plus, r"parameter 'self' .* bound: tool\(obj\.method\)"),
    "built-in": (max, "does not tell its parameters"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_a_tool_is_refused_with_what_to_do(case: str) -> None:
    """The message names the tool, the parameter and the way out, when the tool is made."""
    function, told = REFUSED[case]
    with pytest.raises(ConfigurationError, match=told):
        tool(function)


@pytest.mark.parametrize("name", ["", "two words", "naïve", "a.b", "x" * 65, "tool\n"])
def test_a_name_that_providers_refuse_is_refused_here(name: str) -> None:
    """Letters, digits, '_' and '-', 1 to 64 of them; wherever the name comes from."""
    told = "1 to 64 letters"
    with pytest.raises(ConfigurationError, match=told):
        tool(add, name=name)
    with pytest.raises(ConfigurationError, match=told):
        as_tool(Foreign(name))
    with pytest.raises(ConfigurationError, match=told):
        tools_by_name({name: add})
    with pytest.raises(ConfigurationError, match=told):
        tools_by_name({name: Foreign()})


@pytest.mark.parametrize("args", [None, [], "a", 7])
def test_arguments_have_to_be_an_object(args: Any) -> None:
    """Anything else is told to the model in its words."""
    with pytest.raises(ToolArgumentsError, match="must be a JSON object") as caught:
        tool(add).execute(args, CONTEXT)
    assert caught.value.tool_name == "add"


# --- many of them ----------------------------------------------------------------------------


def test_as_tool_takes_a_tool_as_it_is_and_makes_one_of_a_function() -> None:
    """Foreign tools need no base class."""
    made, foreign = tool(add), Foreign()
    assert as_tool(made) is made
    assert as_tool(foreign) is foreign
    assert isinstance(as_tool(add), FunctionTool)
    with pytest.raises(ConfigurationError, match="a lambda"):
        as_tool(lambda: 0)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (Foreign, "'Foreign' is a class; give an instance"),
        ("add", "'add' is no tool; give a function with type hints or a Tool"),
        (None, "None is no tool"),
        (SimpleNamespace(name="x", execute=add), "is no tool"),
    ],
)
def test_as_tool_refuses_anything_else(value: Any, told: str) -> None:
    """The message says what it was given and what it takes."""
    with pytest.raises(ConfigurationError, match=told):
        as_tool(value)


def test_a_called_function_is_refused_and_closed() -> None:
    """A coroutine in the place of its function is a common slip; no second complaint follows."""
    coroutine = add_later(1)
    with pytest.raises(ConfigurationError, match="is a coroutine; give the function itself"):
        as_tool(coroutine)
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED


def test_tools_come_by_name_in_order() -> None:
    """A list goes by the tools' own names, None is none."""
    foreign = Foreign()
    got = tools_by_name([add_later, foreign, tool(add, name="plus")])
    assert list(got) == ["add_later", "foreign", "plus"]
    assert got["foreign"] is foreign
    assert tools_by_name(()) == tools_by_name(None) == {}


async def test_a_dict_s_key_is_the_name() -> None:
    """A tool under a key goes by it in every way, its failures too."""
    described = tool(add, description="Mine.")
    got = tools_by_name({"plus": described, "theirs": Foreign(), "add_later": add_later})
    assert [made.name for made in got.values()] == list(got) == ["plus", "theirs", "add_later"]
    assert got["plus"].description == "Mine."
    assert described.name == "add"
    assert await got["plus"].execute({"a": 1}, CONTEXT) == 2
    assert got["theirs"].execute({"a": 1}, CONTEXT) == {"a": 1}
    with pytest.raises(ToolArgumentsError, match="of 'plus'") as caught:
        got["plus"].execute({}, CONTEXT)
    assert caught.value.tool_name == "plus"


def test_two_of_one_name_are_refused() -> None:
    """Both are named by their places."""
    with pytest.raises(ConfigurationError, match=r"tools\[0\] and tools\[2\] are both named 'add'"):
        tools_by_name([add, add_later, tool(add_later, name="add")])


@pytest.mark.parametrize("value", ["add", add_later, 7, {1: add}, {"add"}])
def test_tools_that_are_neither_list_nor_dict_are_refused(value: Any) -> None:
    """A lone tool, a string and a set, which has no order, are no list."""
    with pytest.raises(ConfigurationError, match=r"tools must be a list or a dict|1 to 64"):
        tools_by_name(value)


class _Box(Generic[T]):
    """Holds one value."""

    def __init__(self, value: T) -> None:
        self.value = value

    def get(self, default: int) -> T:
        """The value."""
        return self.value


async def test_methods_of_generic_classes_work() -> None:
    """What a method returns is never looked at, so it may be of any type."""
    assert await tool(_Box("x").get).execute({"default": 1}, CONTEXT) == "x"
