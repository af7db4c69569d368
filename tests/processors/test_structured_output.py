"""`StructuredOutput`: an answer in words, and the object that a second model makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Any

import pytest
from hypothesis import settings
from pydantic import BaseModel

from streampipe import Agent, DataChunk, Processor, TextDelta, TripWire, tool
from streampipe.chunks import Chunk, ObjectChunk, ObjectResult, Usage
from streampipe.contracts import ModelRequest, RunResult
from streampipe.errors import ConfigurationError, ProcessorError, StructuredOutputError
from streampipe.messages import DataPart
from streampipe.processors import StructuredOutput
from streampipe.testing import ScriptedModel, call, check_processor, delay, fail, run_virtual

PORTO = ['{"name": "Porto", ', '"people": 250000}']
WRONG = ['{"name": "Porto", "people": "many"}']


class City(BaseModel):
    """What is asked for."""

    name: str
    people: int


@dataclass
class Town:
    """The same as a dataclass."""

    name: str
    people: int


class Unknown:
    """What pydantic knows nothing of."""


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["name", "people"],
}
FALLBACK = City(name="unknown", people=0)


@tool
def census(name: str) -> int:
    """Count the people of a city."""
    return 250_000


def agent_of(script: list[Any], *processors: Any, **options: Any) -> Agent:
    """An agent whose model plays the script."""
    model = ScriptedModel(script)
    return Agent(model=model, tools=[census], output_processors=[*processors], **options)


async def chunks_of(agent: Agent) -> list[Chunk]:
    """What a client gets."""
    async with agent.stream("How big is Porto?") as run:
        return [chunk async for chunk in run]


def told(result: RunResult) -> list[Any]:
    """What the stored messages say of the shaping."""
    parts = [part for message in result.messages for part in message.parts]
    return [part.data for part in parts if isinstance(part, DataPart)]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (City, City(name="Porto", people=250_000)),
        (Town, Town("Porto", 250_000)),
        (SCHEMA, {"name": "Porto", "people": 250_000}),
    ],
)
async def test_the_run_has_an_object_of_the_type_that_was_asked_for(
    schema: Any, expected: Any
) -> None:
    """The text stays what the first model said."""
    small = ScriptedModel([PORTO])
    result = await agent_of(
        [["About ", "250,000."]], StructuredOutput(schema, model=small)
    ).generate("How big is Porto?")
    assert (result.text, result.object) == ("About 250,000.", expected)
    assert result.messages[-1].text == "About 250,000."


async def test_the_second_model_sees_the_answer_and_the_schema_and_nothing_else() -> None:
    """Neither the conversation nor the tools; the first model is asked for words."""
    first, small = ScriptedModel([["About ", "250,000."]]), ScriptedModel([PORTO])
    shaping = StructuredOutput(
        City, model=small, instructions="People are a whole number.", model_settings={"seed": 1}
    )
    agent = Agent(model=first, tools=[census], output_processors=[shaping])
    await agent.generate("How big is Porto?")
    (asked,) = small.requests
    assert [message.text for message in asked.prompt if message.role == "user"] == [
        "About 250,000."
    ]
    assert asked.prompt[-2].text == "People are a whole number."
    assert (asked.tools, asked.settings) == ([], {"seed": 1})
    assert asked.structured_output is not None
    assert asked.structured_output.name == "City"
    assert first.requests[0].structured_output is None


async def test_the_object_grows_behind_the_text_and_before_the_end_of_the_step() -> None:
    """In chunks of this run; the last one is whole."""
    shaping = StructuredOutput(City, model=ScriptedModel([PORTO]))
    got = await chunks_of(agent_of([["About 250,000."]], shaping))
    objects = [c for c in got if isinstance(c, ObjectChunk | ObjectResult)]
    assert objects[0].object == {"name": "Porto"}
    assert isinstance(objects[-1], ObjectResult)
    assert objects[-1].object == {"name": "Porto", "people": 250_000}
    kinds = [chunk.type for chunk in got]
    assert kinds.index("text-end") < kinds.index("object")
    assert kinds.index("object-result") < kinds.index("step-finish")
    assert len({chunk.run_id for chunk in got}) == 1
    assert [c.text for c in got if isinstance(c, TextDelta)] == ["About 250,000."]


async def test_the_object_stream_of_the_run_has_it() -> None:
    """A client reads objects as it would without a second model."""
    shaping = StructuredOutput(City, model=ScriptedModel([PORTO]))
    async with agent_of([["About 250,000."]], shaping).stream("How big?") as run:
        grown = [value async for value in run.object_stream]
    assert grown[-1] == {"name": "Porto", "people": 250_000}


async def test_a_step_that_calls_a_tool_is_not_shaped() -> None:
    """The last step's text is the answer."""
    small = ScriptedModel([PORTO])
    script = [["Let me see.", call("census", {"name": "Porto"})], ["250,000."]]
    result = await agent_of(script, StructuredOutput(City, model=small)).generate("How big?")
    assert len(small.requests) == 1
    assert small.requests[0].prompt[-1].text == "250,000."
    assert result.object == City(name="Porto", people=250_000)


async def test_a_run_that_ends_with_calls_has_no_object() -> None:
    """There is no answer to shape."""
    small = ScriptedModel([])
    script = [["Let me see.", call("census", {"name": "Porto"})]]
    agent = agent_of(script, StructuredOutput(City, model=small), max_steps=1)
    assert (await agent.generate("How big?")).object is None
    assert small.requests == []


async def test_an_answer_that_does_not_fit_is_asked_for_again_with_the_reason() -> None:
    """The first model is not asked again."""
    small = ScriptedModel([WRONG, PORTO])
    result = await agent_of([["Big."]], StructuredOutput(City, model=small)).generate("How big?")
    assert result.object == City(name="Porto", people=250_000)
    again = "".join(message.text for message in small.requests[1].prompt)
    assert "does not fit City: people" in again
    assert result.retries == 0


async def test_strict_fails_the_run() -> None:
    """As an answer of the agent's own model does that does not fit."""
    found: list[Any] = []
    shaping = StructuredOutput(
        City, model=ScriptedModel([WRONG]), max_retries=0, on_violation=found.append
    )
    with pytest.raises(StructuredOutputError, match=r"structured-output: .*people: ") as caught:
        await agent_of([["Big."]], shaping).generate("How big?")
    assert caught.value.result is not None
    assert caught.value.result.object is None
    assert [violation.processor_id for violation in found] == ["structured-output"]


async def test_a_second_model_that_fails_fails_the_run_in_the_name_of_the_processor() -> None:
    """And says what happened to whom; its own error is chained."""
    shaping = StructuredOutput(City, model=ScriptedModel([[fail(status=500)]]))
    with pytest.raises(ProcessorError, match="the model that shapes failed") as caught:
        await agent_of([["Big."]], shaping).generate("How big?")
    assert (caught.value.processor_id, caught.value.hook) == (
        "structured-output",
        "stream_operator",
    )
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("script", [[WRONG], [['{"name": "Por', fail(status=500)]]])
async def test_warn_leaves_the_run_without_an_object(
    script: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """What had grown is taken back, and the client is told."""
    shaping = StructuredOutput(
        City, model=ScriptedModel(script), max_retries=0, error_strategy="warn"
    )
    result = await agent_of([["Big."]], shaping).generate("How big?")
    assert (result.text, result.object, result.finish_reason) == ("Big.", None, "stop")
    (said,) = told(result)
    assert said["outcome"] == "none"
    assert said["problem"]
    assert "structured-output" in caplog.text


@pytest.mark.parametrize("fallback", [FALLBACK, asdict(Town("unknown", 0))])
async def test_fallback_is_the_object_and_is_said_to_be_one(fallback: Any) -> None:
    """An instance or JSON values, it comes out as the type."""
    shaping = StructuredOutput(
        City,
        model=ScriptedModel([WRONG, WRONG]),
        error_strategy="fallback",
        fallback=fallback,
    )
    result = await agent_of([["Big."]], shaping).generate("How big?")
    assert result.object == FALLBACK
    assert [said["outcome"] for said in told(result)] == ["fallback"]


async def test_an_answer_without_text_is_not_shaped() -> None:
    """Nobody is asked; it is as if the second model had failed."""
    small = ScriptedModel([])
    with pytest.raises(StructuredOutputError, match="the answer has no text"):
        await agent_of([[" \n"]], StructuredOutput(City, model=small)).generate("How big?")
    assert small.requests == []


async def test_what_the_second_model_used_is_told() -> None:
    """In a chunk that is stored with the message; it is no part of the run's own usage."""
    shaping = StructuredOutput(City, model=ScriptedModel([WRONG, PORTO]))
    result = await agent_of([["Big."]], shaping).generate("How big?")
    (said,) = told(result)
    assert (said["outcome"], said["problem"], said["retries"]) == ("shaped", None, 1)
    assert Usage(**said["usage"]).total_tokens > 0
    alone = await agent_of([["Big."]]).generate("How big?")
    assert result.usage == alone.usage


class Judge(Processor):
    """Blocks a secret."""

    id = "judge"

    def process_output_stream(self, args: Any) -> Any:
        """Let a chunk pass without it."""
        if isinstance(args.part, TextDelta) and "secret" in args.part.text:
            args.abort("not that")
        return args.part


async def test_a_blocked_answer_is_not_shaped() -> None:
    """The second model is not asked."""
    small = ScriptedModel([])
    shaping = StructuredOutput(City, model=small)
    agent = agent_of([["secret"]], Judge(), shaping)
    result = await agent.generate("How big?")
    assert (result.object, small.requests) == (None, [])
    assert result.tripwire is not None


async def test_a_rejected_attempt_takes_its_object_with_it() -> None:
    """The object is that of the answer that stands."""

    class Whole:
        id = "whole"

        def process_output_step(self, args: Any) -> None:
            """Ask for another answer in place of the first."""
            if args.text == "Small.":
                args.abort("it is not small", retry=True)

    small = ScriptedModel([['{"name": "Porto", "people": 1}'], PORTO])
    agent = agent_of(
        [["Small."], ["Big."]],
        Whole(),
        StructuredOutput(City, model=small),
        max_processor_retries=1,
    )
    result = await agent.generate("How big?")
    assert (result.text, result.object) == ("Big.", City(name="Porto", people=250_000))
    assert [said["outcome"] for said in told(result)] == ["shaped"]
    assert small.requests[1].prompt[-1].text == "Big."


async def test_it_shapes_what_the_processors_before_it_let_through() -> None:
    """So a redacted name does not come back by way of the object."""

    class Redact:
        id = "redact"

        def process_output_stream(self, args: Any) -> Any:
            """Hide the name."""
            if isinstance(args.part, TextDelta):
                args.part.text = args.part.text.replace("Porto", "[CITY]")
            return args.part

    small = ScriptedModel([PORTO])
    await agent_of([["Porto is big."]], Redact(), StructuredOutput(City, model=small)).generate("?")
    assert small.requests[0].prompt[-1].text == "[CITY] is big."


def test_a_cancel_of_the_run_closes_the_second_model_too() -> None:
    """At once, although it has not answered."""
    closed: list[str] = []

    class Slow(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
            """Say nothing for a day."""
            try:
                async for chunk in super().stream(request):
                    yield chunk
            finally:
                closed.append("closed")

    async def main() -> tuple[float, str]:
        agent = agent_of([["Big."]], StructuredOutput(City, model=Slow([[delay(86_400), *PORTO]])))
        loop = asyncio.get_running_loop()
        async with agent.stream("How big?") as run:
            async for chunk in run:
                if chunk.type == "text-end":
                    loop.call_later(1, run.cancel)
            return loop.time(), (await run.result()).finish_reason

    assert run_virtual(main()) == (1.0, "aborted")
    assert closed == ["closed"]


async def test_one_instance_serves_two_runs_at_a_time() -> None:
    """Each has its own object, and its own account."""

    class Echo(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
            """Make a city of the text."""
            said = request.prompt[-1].text
            own = ScriptedModel([[f'{{"name": "{said}", ', delay(0), '"people": 1}']])
            async for chunk in own.stream(request):
                yield chunk

    shaping = StructuredOutput(City, model=Echo([]))
    names = ("Porto", "Braga")
    runs = [agent_of([[name]], shaping).generate("Which?") for name in names]
    results = await asyncio.gather(*runs)
    assert [result.object.name for result in results] == list(names)
    assert [len(told(result)) for result in results] == [1, 1]


async def test_a_later_processor_sees_the_account_and_the_objects() -> None:
    """They are chunks like any others."""
    seen: list[str] = []

    class Watch(Processor):
        id = "watch"
        process_data_parts = True

        def process_output_stream(self, args: Any) -> Any:
            """Note what comes by."""
            if isinstance(args.part, ObjectChunk | ObjectResult | DataChunk):
                seen.append(args.part.type)
            return args.part

    shaping = StructuredOutput(City, model=ScriptedModel([PORTO]))
    await agent_of([["Big."]], shaping, Watch()).generate("How big?")
    assert seen[0] == "object"
    assert seen[-2:] == ["object-result", "data-structured-output"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"schema": None}, "schema must be a type or a JSON schema, not None"),
        ({"schema": {"type": 1}}, "no JSON schema"),
        ({"schema": Unknown}, "has no JSON schema"),
        ({"model": None}, "model must be a model or a router id"),
        ({"model": "nobody/x"}, "nobody"),
        ({"instructions": 3}, "instructions must be a text that is not empty, not 3"),
        ({"instructions": " "}, "instructions must be a text"),
        ({"max_retries": -1}, "max_retries must be a whole number of 0 or more"),
        ({"error_strategy": "ignore"}, "error_strategy must be one of strict, warn, fallback"),
        ({"error_strategy": "fallback"}, "error_strategy='fallback' needs a fallback"),
        ({"fallback": FALLBACK}, "error_strategy='strict' takes no fallback"),
        ({"error_strategy": "fallback", "fallback": {"name": 1}}, "fallback cannot stand"),
        ({"error_strategy": "fallback", "fallback": object()}, "fallback cannot stand"),
        ({"model_settings": 3}, "model_settings must be a dict"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], said: str) -> None:
    """When it is made, by the class's name."""
    given = {"schema": City, "model": ScriptedModel([]), **options}
    with pytest.raises(ConfigurationError, match=f"^StructuredOutput: .*{said}"):
        StructuredOutput(**given)


def test_it_keeps_the_laws_of_processors() -> None:
    """In generated runs, whatever the first model does."""
    check_processor(
        lambda: StructuredOutput(City, model=ScriptedModel([PORTO], repeat=True)),
        max_examples=max(1_000, 10 * settings().max_examples),
        fails=(TripWire, StructuredOutputError),
    )
