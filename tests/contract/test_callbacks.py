"""Functions given as options: what they raise is named, before a model call where it can be."""

from __future__ import annotations

from typing import Any

import pytest

from streampipe import Agent
from streampipe.errors import CallbackError, ConfigurationError
from streampipe.testing import ScriptedModel, call


def broken(*_: Any) -> Any:
    """Raise."""
    raise ValueError("my mistake")


async def later(_: Any) -> str:
    """Be a coroutine function where none can be."""
    return "x"


def lookup() -> str:
    """Give something."""
    return "found"


async def test_stop_when_that_raises_fails_the_run_by_name() -> None:
    """The steps before it stay; the error says which option, and carries the result."""
    model = ScriptedModel([[call("lookup")], ["never"]])
    agent = Agent(model=model, tools=[lookup], stop_when=broken)
    async with agent.stream("hi") as run:
        kinds = [chunk.type async for chunk in run]
        with pytest.raises(CallbackError, match=r"stop_when: .*ValueError: my mistake") as caught:
            await run.result()
    assert kinds[-2:] == ["error", "finish"]
    assert caught.value.option == "stop_when"
    assert caught.value.result.finish_reason == "error"
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "option",
    ["instructions", "input_processors", "output_processors", "error_processors"],
)
@pytest.mark.parametrize(
    ("function", "error", "told"),
    [
        (broken, CallbackError, "ValueError: my mistake"),
        (later, ConfigurationError, "not 'async def'"),
    ],
)
async def test_functions_of_the_context_are_checked_before_any_call(
    option: str,
    function: Any,
    error: type[Exception],
    told: str,
) -> None:
    """What makes instructions and lists is called first of all."""
    model = ScriptedModel([["never"]])
    options: Any = {option: function}
    with pytest.raises(error, match=rf"{option}.*{told}"):
        await Agent(model=model, **options).generate("hi")
    assert not model.requests


async def test_an_active_tool_that_is_none_is_named() -> None:
    """A typo would hide a tool otherwise."""
    model = ScriptedModel([["never"]])
    agent = Agent(model=model, tools=[lookup], active_tools=["look_up"])
    with pytest.raises(ConfigurationError, match=r"no tool 'look_up'; it has: lookup"):
        await agent.generate("hi")
    assert not model.requests
