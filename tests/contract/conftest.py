"""The fixtures `run` and `ask`: an agent's run, once by `stream` and once by `generate`.

What is streamed is held against the result, so that a test that passes both ways says of both that
they tell the same. A module may define a `run` of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from streampipe import (
    Agent,
    Chunk,
    FinishChunk,
    RunResult,
    StepFinish,
    StepStart,
    TextDelta,
    ToolCall,
    ToolResult,
)
from streampipe.testing import ScriptedModel
from tests.contract.guards import (
    WAYS,
    Runner,
    Seen,
    balanced,
    list_of,
    lookup_into,
    processor,
    types,
)
from tests.contract.listeners import Ask, Asked

STOPPED = {"tripwire", "error", "abort"}


class ComparingRunner(Runner):
    """A runner that compares the chunks of a streamed run with its result."""

    async def __call__(self, agent: Agent, prompt: Any = "hi", **options: Any) -> Seen:
        """Run it to its end and look whether both tell the same."""
        seen = await super().__call__(agent, prompt, **options)
        if seen.chunks is not None:
            tells_the_same(seen.chunks, seen.result)
        return seen


@pytest.fixture(params=WAYS)
def run(request: pytest.FixtureRequest) -> Runner:
    """Each test that asks for it runs twice: by `stream` and by `generate`."""
    return ComparingRunner(request.param)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def ask(run: Runner, request: pytest.FixtureRequest) -> Ask:
    """Runs an agent whose processors have one hook each; sync and async."""

    async def ask_with(
        hook: str,
        *hooks: Callable[[Any], Any],
        script: Any = ("a",),
        prompt: Any = "hi",
        **options: Any,
    ) -> Asked:
        def later(plain: Callable[[Any], Any]) -> Any:
            async def hook_later(args: Any) -> Any:
                return plain(args)

            return hook_later

        chain = [
            processor(f"p{i}", **{hook: later(plain) if request.param else plain})
            for i, plain in enumerate(hooks)
        ]
        model = ScriptedModel(script)
        given: dict[str, Any] = {list_of(hook): chain, "tools": [lookup_into([])], **options}
        return Asked(await run(Agent(id="a", model=model, **given), prompt), model)

    return ask_with


def tells_the_same(chunks: Sequence[Chunk], result: RunResult) -> None:
    """Check that a client that reads the chunks knows what the result says."""
    assert {chunk.run_id for chunk in chunks} == {result.run_id}
    assert balanced(chunks)
    assert types(chunks).count("finish") == 1
    finish = chunks[-1]
    assert isinstance(finish, FinishChunk)
    assert (finish.reason, finish.usage) == (result.finish_reason, result.usage)
    steps = accepted(chunks)
    assert [text_of(step) for step in steps] == [step.text for step in result.steps]
    told = [chunk for step in steps for chunk in step]
    assert [c for c in told if isinstance(c, ToolCall)] == result.tool_calls
    assert [c for c in told if isinstance(c, ToolResult)] == result.tool_results


def accepted(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """The chunks of each accepted step: what came since a `step-start` that was made void is gone.

    A step is void when it ends with reason `retry`, or when the run is stopped within it.
    """
    steps: list[list[Chunk]] = []
    for chunk in chunks:
        if isinstance(chunk, StepStart):
            steps.append([])
        elif steps and (
            chunk.type in STOPPED or (isinstance(chunk, StepFinish) and chunk.reason == "retry")
        ):
            steps.pop()
            if chunk.type in STOPPED:
                break
        elif steps:
            steps[-1].append(chunk)
    return steps


def text_of(chunks: Sequence[Chunk]) -> str:
    """The text among chunks, joined."""
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
