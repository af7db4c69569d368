"""The JSON schema of a tool's arguments, and what becomes of arguments that do and do not fit."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from streampipe.errors import ConfigurationError, ToolArgumentsError
from streampipe.tools import tool
from tests.tools.contexts import made_context, passed_on

if typing.TYPE_CHECKING:
    from collections import OrderedDict as TypesOnly

CONTEXT = made_context()


class Place(BaseModel):
    """Somewhere."""

    title: str
    zip: int = 0


class Strict(BaseModel):
    """A model that takes nothing for what it is not."""

    model_config = ConfigDict(strict=True, extra="forbid")

    day: dt.date


@dataclasses.dataclass
class Pair:
    """Two numbers."""

    a: int
    b: int = 2


class Unit(enum.Enum):
    """Of temperature."""

    C = "celsius"
    F = "fahrenheit"


def refused(function: Callable[..., Any], args: dict[str, Any]) -> list[str]:
    """The lines that a model is told about arguments that do not fit."""
    with pytest.raises(ToolArgumentsError) as caught:
        tool(function).execute(args, CONTEXT)
    made = tool(function)
    assert caught.value.tool_name == made.name
    head, *lines = str(caught.value).splitlines()
    assert head == f"the arguments of {made.name!r} do not fit its schema:"
    return lines


async def accepted(hint: Any, value: Any) -> Any:
    """What a function is given for an argument of type `hint`."""

    async def f(value: Any) -> Any:
        return value

    f.__annotations__["value"] = hint
    return await tool(f).execute({"value": value}, CONTEXT)


# --- the schema ------------------------------------------------------------------------------


def test_the_schema_is_the_signature() -> None:
    """Types, defaults and descriptions; no titles, and nothing else is let in."""

    def search(
        query: str,
        unit: Literal["c", "f"] = "c",
        tags: list[str] | None = None,
        limit: Annotated[int, Field(description="from 1", ge=1)] = 10,
    ) -> None:
        """Search.

        Args:
            query: what for.
            unit: of what.
            tags: any of them.
            limit: never told, since the annotation says it.
        """

    assert tool(search).parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what for."},
            "unit": {
                "type": "string",
                "enum": ["c", "f"],
                "default": "c",
                "description": "of what.",
            },
            "tags": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "default": None,
                "description": "any of them.",
            },
            "limit": {"type": "integer", "minimum": 1, "default": 10, "description": "from 1"},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_no_arguments_are_an_empty_object() -> None:
    """A function without parameters takes `{}`."""

    def now() -> str:
        return "now"

    assert tool(now).parameters == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


def test_titles_go_but_properties_and_values_called_title_stay() -> None:
    """Only what pydantic adds is taken away."""

    def f(title: str, place: Place, extra: dict[str, str] = {"title": "x"}) -> None:  # noqa: B006
        """Have titles everywhere."""

    schema = tool(f).parameters
    assert schema["properties"]["title"] == {"type": "string"}
    assert schema["properties"]["extra"]["default"] == {"title": "x"}
    place = schema["$defs"]["Place"]
    assert place["properties"]["title"] == {"type": "string"}
    assert "title" not in place


@pytest.mark.parametrize("name", ["schema", "model_config", "copy", "_hidden", "json", "self_"])
async def test_any_name_is_a_parameter_s(name: str) -> None:
    """Names that mean something to pydantic are names like any other."""
    scope: dict[str, Any] = {}
    exec(f"async def f({name}: int) -> int:\n    return {name}", scope)  # noqa: S102 - our own text
    made = tool(scope["f"])
    assert list(made.parameters["properties"]) == [name]
    assert await made.execute({name: 3}, CONTEXT) == 3


async def test_hints_as_text_find_the_locals_around_the_function() -> None:
    """Under `from __future__ import annotations` a type may be local, used in hints only."""

    class Outer(BaseModel):
        a: int

    def deeper() -> Any:
        class Inner(BaseModel):
            b: int

        @tool
        async def f(outer: Outer, inner: Inner | None = None) -> Any:
            return outer, inner

        return f, Inner

    made, inner = deeper()
    got = await made.execute({"outer": {"a": 1}, "inner": {"b": 2}}, CONTEXT)
    assert got == (Outer(a=1), inner(b=2))


async def test_a_nearer_local_hides_a_farther_one() -> None:
    """Names in hints are found as names in code are."""

    class Kind(BaseModel):
        far: int

    def deeper() -> Any:
        class Kind(BaseModel):
            near: int

        @tool
        async def f(kind: Kind) -> Any:
            return kind

        return f

    assert (await deeper().execute({"kind": {"near": 1}}, CONTEXT)).near == 1
    assert Kind(far=1).far == 1


async def test_a_local_that_the_function_uses_is_found_when_its_maker_is_gone() -> None:
    """A function keeps the locals that its body names."""

    def make() -> Any:
        class Local(BaseModel):
            a: int

        async def f(local: Local) -> bool:
            return isinstance(local, Local)

        return f

    assert await tool(make()).execute({"local": {"a": 1}}, CONTEXT)


async def test_hints_under_another_module_s_wrapper_are_the_wrapped_function_s() -> None:
    """Types are looked up where the function was written, not where its decorator was."""

    async def f(place: Place) -> Place:
        return place

    made = tool(passed_on(f))
    assert await made.execute({"place": {"title": "t"}}, CONTEXT) == Place(title="t")


async def test_a_return_hint_need_not_be_there_at_run_time() -> None:
    """What is imported for type checkers only may be what the function returns."""

    @tool
    async def f(a: int) -> TypesOnly[int, int] | None:
        return None

    assert await f.execute({"a": 1}, CONTEXT) is None


def test_a_parameter_s_hint_has_to_be_there() -> None:
    """The message names the tool and what is missing."""
    with pytest.raises(ConfigurationError, match=r"tool 'f': .*'TypesOnly' is not defined"):

        @tool
        def f(a: TypesOnly[int, int]) -> None:
            """Never made."""


@pytest.mark.parametrize(
    "hint",
    [
        Callable[[], int],
        Annotated[int, Field(discriminator="kind")],
        Annotated[str, Field(pattern="(")],
        typing.TextIO,
    ],
    ids=["callable", "constraint", "pattern", "stream"],
)
def test_a_type_without_a_schema_is_refused_by_name(hint: Any) -> None:
    """Whatever pydantic says of it, the message names tool and parameter, on one line."""

    def f(fine: int, value: Any) -> None:
        """Never made."""

    f.__annotations__["value"] = hint
    with pytest.raises(ConfigurationError, match="'f': the type of parameter 'value'") as caught:
        tool(f)
    assert "\n" not in str(caught.value)


# --- arguments that fit ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (dt.date, "2024-02-29", dt.date(2024, 2, 29)),
        (Strict, {"day": "2024-02-29"}, Strict(day=dt.date(2024, 2, 29))),
        (Place, {"title": "t"}, Place(title="t")),
        (list[Pair], [{"a": 1}], [Pair(1, 2)]),
        (Unit, "celsius", Unit.C),
        (set[int], [1, 1, 2], {1, 2}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (bytes, "hi", b"hi"),
        (decimal.Decimal, "0.10", decimal.Decimal("0.10")),
        (float, 1, 1.0),
        (int, "7", 7),
        (dict[int, str], {"1": "a"}, {1: "a"}),
    ],
)
async def test_json_becomes_what_the_function_asks_for(
    hint: Any, value: Any, expected: Any
) -> None:
    """Arguments are read as JSON is, and models arrive as instances."""
    got = await accepted(hint, value)
    assert got == expected
    assert type(got) is type(expected)


async def test_defaults_stand_for_what_is_not_sent() -> None:
    """A default is passed as it is, and never shared between calls."""

    @tool
    async def f(a: int = 1, many: list[int] = []) -> list[int]:  # noqa: B006 - the point
        many.append(a)
        return many

    assert await f.execute({}, CONTEXT) == [1]
    assert await f.execute({}, CONTEXT) == [1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(JSON)
async def test_any_json_passes_as_it_is(value: Any) -> None:
    """A parameter of type Any gets the value itself."""
    assert await accepted(Any, value) == value


# --- arguments that do not ----------------------------------------------------------------------


def forecast(city: str, days: int = 1, place: Place | None = None) -> None:
    """Take what the tests below get wrong."""


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        ({}, ["city: Field required"]),
        ({"city": 7}, ["city: Input should be a valid string"]),
        (
            {"city": "x", "town": 1},
            ["town: unknown argument; known: city, days, place"],
        ),
        (
            {"days": "soon", "city": None},
            [
                "city: Input should be a valid string",
                "days: Input should be a valid integer, unable to parse string as an integer",
            ],
        ),
        ({"city": "x", "place": {}}, ["place.title: Field required"]),
        ({"city": "x", "place": 5}, ["place: Input should be an object"]),
    ],
)
def test_each_problem_is_a_line(args: dict[str, Any], lines: list[str]) -> None:
    """The place in the arguments, then what is wrong with it."""
    assert refused(forecast, args) == lines


def test_a_place_is_named_as_the_model_wrote_it() -> None:
    """Members of unions and validators on the way to a problem are left out."""

    def f(
        many: list[Annotated[int, BeforeValidator(lambda x: x)] | dict[str, Place]],
        day: Strict,
    ) -> None:
        """Take something complicated."""

    lines = refused(f, {"many": [1, {"home": {"title": 3}}], "day": {"day": "x", "hour": 1}})
    assert "many.1.home.title: Input should be a valid string" in lines
    assert "day.hour: unknown key" in lines
    assert not any(word in line for line in lines for word in ("arg0", "function-", "dict[", "Pl"))


def test_a_problem_is_told_once() -> None:
    """Members of a union may all say the same."""

    def f(value: Place | Strict) -> None:
        """Take an object of some kind."""

    assert refused(f, {"value": 5}) == ["value: Input should be an object"]


def test_only_so_many_problems_are_told() -> None:
    """A list of a thousand bad elements does not fill the model's context."""

    def f(many: list[int]) -> None:
        """Take numbers."""

    lines = refused(f, {"many": list("x" * 1_000)})
    assert len(lines) == 21
    assert lines[-1] == "and 980 more"


def test_what_is_no_json_is_refused() -> None:
    """A hook may have put anything into the arguments."""
    with pytest.raises(ToolArgumentsError, match="'forecast' are no JSON"):
        tool(forecast).execute({"city": object()}, CONTEXT)
    with pytest.raises(ToolArgumentsError, match="'forecast' are no JSON"):
        tool(forecast).execute({"city": "\ud800"}, CONTEXT)


@given(st.dictionaries(st.sampled_from(["city", "days", "place", "x"]), JSON))
async def test_arguments_fit_or_the_model_is_told(args: dict[str, Any]) -> None:
    """Whatever is sent, nothing else comes out, and never a link or a name of our own."""
    told = ""
    try:
        await tool(forecast).execute(args, CONTEXT)
    except ToolArgumentsError as error:
        told = str(error)
    assert "http" not in told
    assert "arg0" not in told
