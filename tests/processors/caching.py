"""Agents with a `ResponseCache`, and what is asked of them."""

from __future__ import annotations

from typing import Any

from streampipe import Agent, tool
from streampipe.contracts import RunResult
from streampipe.processors import ResponseCache
from streampipe.testing import ScriptedModel, call

CALLS: Any = [[call("search", {"n": 1}, id="c1"), "Let me see."], ["Done."]]
"""A call of `search`, and the answer after it."""


@tool
async def search(n: int) -> int:
    """Find a number."""
    return n


def agent_of(model: Any, cache: ResponseCache, **options: Any) -> Agent:
    """An agent with a cache behind the other processors."""
    before = {name: options.pop(name, []) for name in ("input_processors", "output_processors")}
    lists: Any = {name: [*processors, cache] for name, processors in before.items()}
    return Agent(model=model, **lists, **options)


async def second(cache: ResponseCache, **options: Any) -> tuple[RunResult, int]:
    """A run after another one, of another agent, and how often it asked its model."""
    model = ScriptedModel([["asked"]], repeat=True)
    result = await agent_of(model, cache, **options).generate("hi")
    return result, model.calls


async def is_stored(cache: ResponseCache, **options: Any) -> bool:
    """Whether the answer to "hi" is known."""
    return not (await second(cache, **options))[1]


def changes(args: Any) -> Any:
    """Another setting."""
    return {"model_settings": {"seed": 7}}


class Rewrites:
    """Adds to the prompt."""

    id = "rewrites"

    def process_llm_request(self, args: Any) -> Any:
        """Say one thing more."""
        return {"prompt": [*args.prompt, "Be brief."]}
