"""Structured output: objects as they grow, the whole one, and an answer that does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from typing_extensions import TypedDict

from streampipe import Agent, ObjectChunk, ObjectResult, StepFinish
from streampipe import operators as ops
from streampipe.errors import StructuredOutputError
from streampipe.testing import ScriptedModel, chunkings
from tests.contract.guards import Runner


class City(BaseModel):
    """A pydantic model."""

    name: str
    people: int


@dataclass
class Place:
    """A dataclass."""

    name: str
    people: int


class Spot(TypedDict):
    """A typed dict."""

    name: str
    people: int


PORTO: dict[str, Any] = {"name": "Porto", "people": 230_000}
TEXT = orjson.dumps(PORTO).decode()
SCHEMA = {"title": "city", "type": "object", "properties": {"name": {"type": "string"}}}


@pytest.mark.parametrize(
    ("wanted", "got"),
    [(City, City(**PORTO)), (Place, Place(**PORTO)), (Spot, PORTO), (SCHEMA, PORTO)],
    ids=["model", "dataclass", "typed dict", "schema"],
)
async def test_the_result_is_what_was_asked_for(run: Runner, wanted: Any, got: Any) -> None:
    """An instance of the type, or the JSON value of a schema."""
    seen = await run(Agent(model=ScriptedModel([[TEXT]]), structured_output=wanted))
    assert seen.result.object == got
    assert type(seen.result.object) is type(got)


@given(st.data())
async def test_an_object_grows_whatever_the_cutting(data: st.DataObject) -> None:
    """Every partial object is of a prefix, each differs from the last, and the last is whole."""
    pieces = data.draw(chunkings(TEXT))
    agent = Agent(model=ScriptedModel([pieces]), structured_output=City)
    async with agent.stream("hi") as run:
        objects = [value async for value in run.object_stream]
    *partial, last = objects
    assert last == PORTO
    for value in partial:
        assert PORTO["name"].startswith(value.get("name", ""))
        assert str(PORTO["people"]).startswith(str(value.get("people", "")))
    assert all(one != two for one, two in pairwise(partial))


async def test_objects_are_made_of_what_the_guards_let_through() -> None:
    """What a redactor took out of the text is in no partial object either."""
    agent = Agent(
        model=ScriptedModel([['{"name": "sec', 'ret", "peo', 'ple": 1}']]),
        output_processors=[ops.redact("secret", "[X]")],
        structured_output=City,
    )
    async with agent.stream("hi") as run:
        objects = [value async for value in run.object_stream]
        result = await run.result()
    assert not [value for value in objects if value.get("name", "").startswith("s")]
    assert result.object == City(name="[X]", people=1)


async def test_without_structured_output_there_are_no_objects() -> None:
    """JSON that nobody asked for is text."""
    async with Agent(model=ScriptedModel([[TEXT]])).stream("hi") as run:
        assert not [c async for c in run if isinstance(c, ObjectChunk | ObjectResult)]


async def test_an_answer_that_does_not_fit_is_asked_for_again(run: Runner) -> None:
    """The model is told what the validator says, inside the retry budget."""
    model = ScriptedModel([['{"name": "Porto", "people": "many"}'], ["no JSON"], [TEXT]])
    seen = await run(Agent(model=model, structured_output=City, max_processor_retries=2))
    assert seen.result.object == City(**PORTO)
    assert seen.result.retries == 2
    told = [" ".join(said.text for said in request.prompt) for request in model.requests]
    assert "people: Input should be a valid integer" in told[1]
    assert "no JSON" in told[2]
    assert [step.text for step in seen.result.steps] == [TEXT]


async def test_the_reader_is_told_that_an_object_is_void() -> None:
    """A rejected attempt ends with `step-finish` of reason `retry`; the next one starts anew."""
    model = ScriptedModel([['{"name": 1, ', '"people": 2}'], [TEXT]])
    agent = Agent(model=model, structured_output=City, max_processor_retries=1)
    kinds: list[Any] = []
    async with agent.stream("hi") as run:
        async for chunk in run:
            if isinstance(chunk, ObjectChunk | ObjectResult):
                kinds.append(chunk.object)
            elif isinstance(chunk, StepFinish):
                kinds.append(chunk.reason)
    assert kinds == [{"name": 1}, {"name": 1, "people": 2}, "retry", PORTO, PORTO, "stop"]


async def test_a_spent_budget_is_a_failure(run: Runner) -> None:
    """The error lists where it does not fit; by default nothing is tried again."""
    for budget in (None, 1):
        model = ScriptedModel([['{"name": "Porto"}']], repeat=True)
        seen = await run(Agent(model=model, structured_output=City, max_processor_retries=budget))
        assert isinstance(seen.error, StructuredOutputError)
        assert "people: Field required" in str(seen.error)
        assert seen.result.object is None
        assert seen.result.steps == []
        assert len(model.requests) == 1 + (budget or 0)
