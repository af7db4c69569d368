"""`PrepareStep`: a function in the place of a processor."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import settings

from streampipe import Agent, tool
from streampipe.contracts import ProcessInputStepArgs, ProcessInputStepResult
from streampipe.errors import ConfigurationError, ProcessorError
from streampipe.processors import PrepareStep
from streampipe.testing import ScriptedModel, call, check_processor

EXAMPLES = max(1_000, 10 * settings().max_examples)


@tool
def look_up(q: str) -> str:
    """Look something up."""
    return q


def warmer(args: ProcessInputStepArgs) -> ProcessInputStepResult:
    """Add a degree."""
    args.state["steps"] = args.state.get("steps", 0) + 1
    warm = args.model_settings.get("temperature", 0) + args.state["steps"]
    return ProcessInputStepResult(model_settings={"temperature": warm})


async def warmer_later(args: ProcessInputStepArgs) -> ProcessInputStepResult:
    """Add a degree, in a moment."""
    await asyncio.sleep(0)
    return warmer(args)


async def temperatures(*processors: Any, **options: Any) -> list[Any]:
    """The settings of the two steps of a run."""
    model = ScriptedModel([[call("look_up", {"q": "x"})], ["ok"]])
    agent = Agent(model=model, tools=[look_up], input_processors=[*processors])
    await agent.generate("hi", **options)
    return [request.settings.get("temperature") for request in model.requests]


@pytest.mark.parametrize("function", [warmer, warmer_later])
async def test_the_function_is_called_before_every_step(function: Any) -> None:
    """Plain or async, with a state that lasts as long as the run."""
    assert await temperatures(PrepareStep(function)) == [1, 2]


async def test_it_has_a_place_in_the_list() -> None:
    """Each on what the one before it left, each with its own state; the option comes last."""
    both = [PrepareStep(warmer), PrepareStep(warmer, id="again")]
    assert await temperatures(*both) == [2, 4]
    assert await temperatures(*both, prepare_step=warmer) == [3, 6]


async def test_none_changes_nothing() -> None:
    """As of every hook."""
    assert await temperatures(PrepareStep(lambda args: None)) == [None, None]


async def test_what_a_step_may_not_return_ends_the_run() -> None:
    """By the processor's name."""
    wrong: Any = PrepareStep(lambda args: {"temperature": 1})
    with pytest.raises(ProcessorError, match=r"'prepare-step', process_input_step: .*temperature"):
        await temperatures(wrong)


async def test_it_may_block() -> None:
    """With `args.abort`."""

    def never(args: ProcessInputStepArgs) -> None:
        args.abort("not today")

    agent = Agent(model=ScriptedModel(["ok"]), input_processors=[PrepareStep(never)])
    result = await agent.generate("hi")
    assert result.tripwire is not None
    assert (result.tripwire.processor_id, result.tripwire.reason) == ("prepare-step", "not today")


async def test_one_instance_serves_two_runs_at_a_time() -> None:
    """The state is the run's."""
    shared = PrepareStep(warmer_later)
    first, second = await asyncio.gather(temperatures(shared), temperatures(shared))
    assert first == second == [1, 2]


def yields(args: ProcessInputStepArgs) -> Any:
    """Yield instead of returning."""
    yield args


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ({"model": "x"}, r"function must be a function, not \{'model': 'x'\}"),
        (None, "function must be a function, not None"),
        (yields, "function yields, so it cannot be awaited"),
    ],
)
def test_what_is_no_function_is_refused(function: Any, said: str) -> None:
    """When it is made, by the class's name."""
    with pytest.raises(ConfigurationError, match=f"^PrepareStep: {said}"):
        PrepareStep(function)


def test_it_keeps_the_laws_of_processors() -> None:
    """In generated runs, whatever the model says."""
    check_processor(lambda: PrepareStep(warmer), max_examples=EXAMPLES)
