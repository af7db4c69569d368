"""`BatchParts`: fewer pieces, in time, and nothing else changed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from streampipe import Agent, tool
from streampipe import operators as ops
from streampipe.chunks import Chunk
from streampipe.errors import ConfigurationError
from streampipe.processors import BatchParts
from streampipe.testing import ScriptedModel, call, check_operator, delay, fail, run_virtual


@tool
def look_up(n: int) -> int:
    """Look a number up."""
    return n


def agent_of(script: list[Any], *processors: Any) -> Agent:
    """An agent whose model plays the script."""
    return Agent(model=ScriptedModel(script), tools=[look_up], output_processors=[*processors])


async def texts(agent: Agent) -> list[tuple[float, str]]:
    """The pieces of text that a client gets, and when."""
    now = asyncio.get_running_loop().time
    async with agent.stream("hi") as run:
        return [(now(), text) async for text in run.text_stream]


async def kinds(agent: Agent) -> list[str]:
    """The types of the chunks, text shown by what it says."""
    async with agent.stream("hi") as run:
        return [getattr(chunk, "text", chunk.type) async for chunk in run]


async def test_so_many_pieces_leave_as_one() -> None:
    """The client gets fewer, the result says the same."""
    result = await agent_of([["a", "b", "c"]], BatchParts(2)).generate("hi")
    assert result.text == "abc"
    got = await texts(agent_of([["a", "b", "c"]], BatchParts(2)))
    assert [text for _, text in got] == ["ab", "c"]


def test_a_piece_leaves_in_time_though_the_model_is_silent() -> None:
    """The wait is a timer's: no further chunk is needed to end it."""
    agent = agent_of([["a", delay(0.2), "b", delay(60), "c"]], BatchParts(max_wait=0.5))
    assert run_virtual(texts(agent)) == [(0.5, "ab"), (60.2, "c")]


async def test_text_stays_before_what_came_after_it() -> None:
    """A tool call sends off the text before it."""
    agent = agent_of([["a", "b", call("look_up", {"n": 1})], ["c"]], BatchParts(10))
    got = await kinds(agent)
    assert got.index("ab") < got.index("tool-call")
    assert "c" in got[got.index("tool-result") :]


def test_a_void_attempt_takes_what_was_held_with_it() -> None:
    """What was held of a failed attempt never shows up in the next."""
    script: list[Any] = [["dra", "ft", fail(status=503)], ["final"]]

    class Again:
        id = "again"

        def process_api_error(self, args: Any) -> dict[str, bool]:
            """Try again."""
            return {"retry": True}

    agent = Agent(
        model=ScriptedModel(script),
        output_processors=[BatchParts(5, max_wait=1)],
        error_processors=[Again()],
    )
    got = run_virtual(kinds(agent))
    assert "draft" not in got
    assert got.count("final") == 1


async def test_one_instance_serves_two_runs_at_a_time() -> None:
    """What it holds is the run's."""
    shared = BatchParts(2)
    first, second = agent_of([["a", "b", "c"]], shared), agent_of([["x", "y", "z"]], shared)
    both = await asyncio.gather(texts(first), texts(second))
    assert [[text for _, text in got] for got in both] == [["ab", "c"], ["xy", "z"]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "give size, max_wait or both"),
        ({"size": 0}, "size must be a whole number of 1 or more, not 0"),
        ({"size": "2"}, "size must be a whole number of 1 or more, not '2'"),
        ({"max_wait": 0}, "max_wait must be a finite number of seconds above 0"),
        ({"max_wait": float("nan")}, "max_wait must be a finite number of seconds above 0"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], said: str) -> None:
    """When it is made, by the class's name."""
    with pytest.raises(ConfigurationError, match=f"^BatchParts: .*{said}"):
        BatchParts(**options)


def test_it_is_shown_as_it_is_written() -> None:
    """In a `repr`; and its stages fuse with their neighbours'."""
    assert repr(BatchParts(4)) == "BatchParts(size=4, max_wait=None)"
    assert ops.explain([BatchParts(4), ops.tap(print)]) == "kernel    batch > tap"
    assert BatchParts(4, id="few").id == "few"


def test_it_keeps_the_laws_of_operators() -> None:
    """On generated streams; `ops.batch` itself is held to them on many more."""
    check_operator(lambda: BatchParts(3), text_of_whole=str, allowance=4)


async def test_it_works_without_an_agent() -> None:
    """It is an operator like any other."""
    stream = Agent(model=ScriptedModel([["a", "b"]])).observe("hi").pipe(BatchParts(2), ops.text())
    got: list[Chunk | str] = [item async for item in ops.to_aiter(stream)]
    assert got == ["ab"]
