"""Processors that note or change what they are given, for the tests of the hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import pytest

from streampipe import (
    Agent,
    Chunk,
)
from streampipe.messages import PromptMessage
from streampipe.testing import ScriptedModel, call
from tests.contract.guards import (
    ALL_HOOKS,
    Runner,
    Seen,
    is_text,
    list_of,
    lookup_into,
    processor,
    unchanged,
)

Change = Callable[[Chunk], Any]


def stream_processor(
    change: Change, name: str = "p", /, *, asynchronous: bool = False, **attributes: Any
) -> Any:
    """A processor that makes `change(part)` of every chunk; async, after a turn of the loop."""

    async def later(args: Any) -> Any:
        await asyncio.sleep(0)
        return change(args.part)

    hook = later if asynchronous else lambda args: change(args.part)
    return processor(name, process_output_stream=hook, **attributes)


def keeping(log: list[Chunk], name: str = "keep", /, **attributes: Any) -> Any:
    """A processor that notes every chunk, as it was then, and lets it pass."""

    def keep(part: Chunk) -> Chunk:
        log.append(replace(part))
        return part

    return stream_processor(keep, name, **attributes)


def agent_with(*processors: Any, script: Sequence[Any], **options: Any) -> Agent:
    """An agent with these output processors and the tool `lookup`."""
    return Agent(
        model=ScriptedModel(script),
        tools=[lookup_into([]), break_down],
        output_processors=list(processors),
        **options,
    )


def break_down(word: str) -> str:
    """A tool that fails."""
    raise ValueError(word)


def prompts_of(agent: Agent) -> list[list[PromptMessage]]:
    """What the agent's model was asked, call by call."""
    model = agent.options.get("model")
    assert isinstance(model, ScriptedModel)
    return [request.prompt for request in model.requests]


def snapshot(args: Any) -> dict[str, Any]:
    """The args as they are now: the object is only valid during the call."""
    return {field.name: getattr(args, field.name) for field in fields(args)}


def listening(hook: str, log: list[Any], take: Callable[[Any], Any] = snapshot) -> dict[str, Any]:
    """The option with a processor that notes `take(args)` at each call of `hook`."""

    def listen(args: Any) -> Any:
        if hook != "process_output_stream" or is_text(args):
            log.append(take(args))
        return {"retry": True} if hook == "process_api_error" else unchanged(hook, args)

    return {list_of(hook): [processor("p", **{hook: listen})]}


async def given(run: Runner, hook: str, script: Any = None, **options: Any) -> list[dict[str, Any]]:
    """What the hook was given at each call of a run."""
    log: list[dict[str, Any]] = []
    model = ScriptedModel(ALL_HOOKS if script is None else script)
    prompt = options.pop("prompt", "hi")
    options = {"max_processor_retries": 3, "error_processors": [RETRY], **options}
    agent = Agent(
        id="a",
        model=model,
        tools=[lookup_into([])],
        **{**options, **listening(hook, log)},
    )
    await run(agent, prompt)
    assert log
    return log


RETRY = processor("retry", process_api_error=lambda _: {"retry": True})
CALL = call("lookup", {"word": "x"}, id="c1")


def joined(messages: Any) -> list[str]:
    """The texts of messages."""
    return [message.text for message in messages]


@dataclass
class Asked:
    """A run, and what its model was asked: role and text of each message, call by call."""

    seen: Seen
    model: ScriptedModel

    @property
    def prompts(self) -> list[list[tuple[str, str]]]:
        """The prompts of the calls."""
        return [[(m.role, m.text) for m in request.prompt] for request in self.model.requests]


Ask = Callable[..., Any]


def each_form(typed: Callable[..., Any]) -> pytest.MarkDecorator:
    """Once as a plain dict, once as the typed result."""
    return pytest.mark.parametrize("form", [dict, typed])
