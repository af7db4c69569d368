"""Structured output: objects as they grow, the whole one, and an answer that does not fit."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict

from streampipe import Agent, ObjectChunk, ObjectResult, StepFinish, ToolCall, ToolResult
from streampipe import operators as ops
from streampipe.errors import ConfigurationError, StructuredOutputError
from streampipe.messages import TextPart
from streampipe.testing import ScriptedModel, chunkings
from tests.contract.guards import Runner, processor


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


class Dated(BaseModel):
    """A model that takes nothing for something else."""

    model_config = ConfigDict(strict=True)
    day: date
    price: Decimal
    size: tuple[int, int]


async def test_what_is_no_json_of_its_own_fits_as_json_has_it(run: Runner) -> None:
    """A strict model's dates and tuples are strings and lists in JSON; large numbers stay whole."""
    text = f'{{"day": "2026-01-02", "price": "1.5", "size": [1, {1 << 70}]}}'
    seen = await run(Agent(model=ScriptedModel([[text]]), structured_output=Dated))
    assert seen.result.object == Dated(
        day=date(2026, 1, 2), price=Decimal("1.5"), size=(1, 1 << 70)
    )


@pytest.mark.parametrize("text", [f"```json\n{TEXT}\n```", f"\ufeff{TEXT}\n", f"\n\n  {TEXT}  "])
async def test_what_models_put_around_json(run: Runner, text: str) -> None:
    """A Markdown fence, a byte order mark and white space are no part of it."""
    seen = await run(Agent(model=ScriptedModel([[text]]), structured_output=City))
    assert seen.result.object == City(**PORTO)


async def test_a_json_schema_is_checked_as_well(run: Runner) -> None:
    """An answer that it forbids fails, or is asked for again; the message says where."""
    schema = {**SCHEMA, "properties": {"n": {"type": "integer", "maximum": 3}}, "required": ["n"]}
    for text, told in (('{"m": 1}', "'n' is a required property"), ('{"n": 5}', "n: 5 is greater")):
        seen = await run(Agent(model=ScriptedModel([[text]]), structured_output=schema))
        assert isinstance(seen.error, StructuredOutputError)
        assert told in str(seen.error)
    model = ScriptedModel([['{"n": 5}'], ['{"n": 3}']])
    seen = await run(Agent(model=model, structured_output=schema, max_processor_retries=1))
    assert seen.result.object == {"n": 3}


def test_without_the_library_a_json_schema_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line that installs it: an answer that nobody checks is not passed off as one."""
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'streampipe-rx\[schema\]'"):
        Agent(model=ScriptedModel([]), structured_output=SCHEMA)
    assert Agent(model=ScriptedModel([]), structured_output=City)


def test_what_is_no_json_schema_is_refused() -> None:
    """When the agent is built."""
    with pytest.raises(ConfigurationError, match="no JSON schema"):
        Agent(model=ScriptedModel([]), structured_output={"type": "objekt"})


async def test_an_answer_behind_a_tool_of_the_provider_s(run: Runner) -> None:
    """Only the caller's own tools make a step something else than an answer."""
    script = [
        ToolCall("s1", "web_search", {"query": "Porto"}, provider_executed=True),
        ToolResult("s1", "web_search", "found", provider_executed=True),
    ]
    seen = await run(Agent(model=ScriptedModel([[*script, TEXT]]), structured_output=City))
    assert seen.result.object == City(**PORTO)
    seen = await run(Agent(model=ScriptedModel([[*script, "prose"]]), structured_output=City))
    assert isinstance(seen.error, StructuredOutputError)


async def test_a_step_with_a_schema_of_its_own(run: Runner) -> None:
    """What a hook asked for in this step is what the answer is held to, and made an instance of."""
    for agent_s in (Place, None):
        agent = Agent(
            model=ScriptedModel([[TEXT]]),
            structured_output=agent_s,
            input_processors=[
                processor(process_input_step=lambda _args: {"structured_output": City})
            ],
        )
        seen = await run(agent)
        assert seen.result.object == City(**PORTO)


@pytest.mark.parametrize(
    ("rewritten", "left"),
    [('{"name": "[X]", "people": 1}', City(name="[X]", people=1)), ("no", None)],
)
async def test_rewritten_messages_hold_another_object(
    run: Runner, rewritten: str, left: City | None
) -> None:
    """After `process_output_result` rewrote the text, nothing of the old object is left."""

    def rewrite(args: Any) -> Any:
        args.messages[-1].parts[:] = [TextPart(rewritten)]
        return args.messages

    agent = Agent(
        model=ScriptedModel([[TEXT]]),
        structured_output=City,
        output_processors=[processor(process_output_result=rewrite)],
    )
    seen = await run(agent)
    assert seen.result.object == left


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
