"""pydantic-ai: its function model, and steps in the run or behind it.

It is installed by `make bench-peers` only, so the type checkers may not find it:
"""
# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import replace
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessEventStream
from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.models.function import FunctionModel

from benchmarks.peers.peer import Peer
from benchmarks.peers.work import Run, Step, Work

__all__ = ["PEERS"]


def scripted(work: Work) -> Any:
    """A model that says the texts."""

    async def say(_messages: Any, _info: Any) -> AsyncIterator[str]:
        for text in work.texts:
            yield text

    return FunctionModel(stream_function=say)


def processor(step: Step) -> Any:
    """A step as a capability; the first piece comes in the event that begins its part."""

    async def process(_context: Any, events: AsyncIterable[Any]) -> AsyncIterator[Any]:
        async for event in events:
            if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                event.delta.content_delta = step(event.delta.content_delta)
                yield event
            elif isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                # A copy: the part itself goes on to gather the whole text.
                yield replace(event, part=replace(event.part, content=step(event.part.content)))
            else:
                yield event

    return ProcessEventStream(process)


def capabilities(work: Work) -> Run:
    """The steps in the run's own stream of events."""
    # The first capability is the outermost one: it gets an event last.
    stages = [processor(step) for step in reversed(work.steps.chain)]
    agent = Agent(scripted(work), capabilities=stages)

    async def run() -> list[str]:
        got: list[str] = []
        async with agent.iter("hi") as nodes:
            async for node in nodes:
                if not Agent.is_model_request_node(node):
                    continue
                async with node.stream(nodes.ctx) as events:
                    async for event in events:
                        if isinstance(event, PartDeltaEvent):
                            got.append(event.delta.content_delta)
                        elif isinstance(event, PartStartEvent):
                            got.append(event.part.content)
        return got

    return run


async def stage(texts: AsyncIterable[str], step: Step) -> AsyncIterator[str]:
    """A step as a generator around the stream."""
    async for text in texts:
        yield step(text)


def generators(work: Work) -> Run:
    """The steps behind the run, in its reader's hands."""
    agent = Agent(scripted(work))

    async def run() -> list[str]:
        async with agent.run_stream("hi") as result:
            texts = result.stream_text(delta=True, debounce_by=None)
            for step in work.steps.chain:
                texts = stage(texts, step)
            return [text async for text in texts]

    return run


PEERS = (
    Peer("`agent.iter()`, `node.stream()`, 4 `ProcessEventStream`", capabilities),
    Peer("`run_stream()`, `stream_text(delta=True)`, 4 generators around it", generators),
)
