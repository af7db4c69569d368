"""OpenAI Agents SDK: a model of events, and steps around the events of a run.

A run offers no place for a step in its stream; what its documentation shows is a loop over
`stream_events()`. It is installed by `make bench-peers` only, so the type checkers may not find it:
"""
# mypy: disable-error-code="import-not-found", allow-subclassing-any
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from agents import Agent, Runner
from agents.models.interface import Model
from agents.testing import assistant_message
from openai.types.responses import Response, ResponseCompletedEvent, ResponseTextDeltaEvent

from benchmarks.peers.peer import Peer
from benchmarks.peers.work import Run, Step, Work

__all__ = ["PEERS"]

DELTA = "response.output_text.delta"


class SpokenModel(Model):
    """Says the texts; the scripted model that comes with the package costs more for each event."""

    def __init__(self, work: Work) -> None:
        """Take the texts."""
        self.texts = work.texts
        self.response = Response(
            id="r1",
            created_at=0,
            model="m",
            object="response",
            output=[assistant_message("".join(work.texts))],
            parallel_tool_calls=False,
            tool_choice="none",
            tools=[],
        )

    async def get_response(self, *_: Any, **__: Any) -> Any:
        """Refuse.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("it streams only")

    async def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """Answer."""
        for number, text in enumerate(self.texts):
            yield ResponseTextDeltaEvent(
                content_index=0,
                delta=text,
                item_id="m1",
                logprobs=[],
                output_index=0,
                sequence_number=number,
                type="response.output_text.delta",
            )
        yield ResponseCompletedEvent(
            response=self.response,
            sequence_number=len(self.texts),
            type="response.completed",
        )


def is_delta(event: Any) -> bool:
    """Whether an event brings text."""
    return bool(event.type == "raw_response_event" and event.data.type == DELTA)


async def stage(events: AsyncIterable[Any], step: Step) -> AsyncIterator[Any]:
    """A step as a generator around the stream."""
    async for event in events:
        if is_delta(event):
            event.data.delta = step(event.data.delta)
        yield event


def generators(work: Work) -> Run:
    """The steps behind the run, in its reader's hands."""
    agent = Agent(name="spoken", model=SpokenModel(work))

    async def run() -> list[str]:
        events: AsyncIterable[Any] = Runner.run_streamed(agent, "hi").stream_events()
        for step in work.steps.chain:
            events = stage(events, step)
        return [event.data.delta async for event in events if is_delta(event)]

    return run


PEERS = (Peer("`Runner.run_streamed()`, 4 generators around `stream_events()`", generators),)
