"""A run in which one answer holds what is blocked, and all that can be seen of it afterwards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest

from streampipe import Agent, Chunk, Recorder, RunResult, tool
from streampipe.chunks import (
    FinishChunk,
    ObjectChunk,
    ObjectResult,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolResult,
)
from streampipe.contracts import ProcessorViolation
from streampipe.messages import message_to_stored
from streampipe.testing import ScriptedModel, Turn, call, reasoning, turn
from tests.lessons.blockers import BLOCKERS, CANARY
from tests.tracing.spans import Spans

__all__ = ["ATTEMPTS", "Attempt", "Case", "Evidence", "cases", "tried"]

CUT = (CANARY[:3], CANARY[3:9], CANARY[9:])
SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """Where the canary stands.

    Attributes:
        answer: what the model says when it gives it away.
        better: what it says when it is asked again.
        shown: what of the answer the client may see before the block.
        leaves_early: why the client has seen the canary when the block falls; empty: it has not.
        in_prompt: whether the canary is in what the caller sent, and not in what the model said.
        schema: the structured output that is asked for.
    """

    answer: Turn
    better: Turn = field(default_factory=lambda: turn("fine"))
    shown: str = ""
    leaves_early: str = ""
    in_prompt: bool = False
    schema: Any = None


PROVIDER_CALL = ToolCall("p1", "look", {"word": [CANARY]}, provider_executed=True)

ATTEMPTS: dict[str, Attempt] = {
    "message": Attempt(turn("never asked"), in_prompt=True),
    "request": Attempt(turn(CANARY)),
    "text": Attempt(turn("Safe. It is ", *CUT, ", I think. And more."), shown="Safe. "),
    "object": Attempt(
        turn('{"word": "', *CUT, '"}'), better=turn('{"word": "fine"}'), schema=SCHEMA
    ),
    "reasoning": Attempt(
        turn(*map(reasoning, ("Safe. It is ", *CUT, ". And more. ")), "Well. "), shown="Safe. "
    ),
    "tool-arguments": Attempt(turn(call("look", {"word": [CANARY], "n": 1}, pieces=4))),
    "tool-results": Attempt(turn("Safe. ", call("fetch", {"n": 1})), shown="Safe. "),
    "call": Attempt(
        turn("Safe. ", call("look", {"word": [CANARY], "n": 1}, pieces=4)),
        shown="Safe. ",
        leaves_early="ToolCallGuard decides when the model has answered",
    ),
    "provider-call": Attempt(turn("Safe. ", PROVIDER_CALL), shown="Safe. "),
}
"""By place: in a message, before a model call, and in each part of an answer."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run.

    Attributes:
        guard: name of the guard's class.
        place: where the canary stands.
        step: the step in which it comes: 0, or 1 behind an accepted one.
        ending: "block", "retry" (granted) or "exhausted" (asked for, with no budget left).
        streams: whether the run is streamed, or collected by `generate()`.
    """

    guard: str
    place: str
    step: int
    ending: str
    streams: bool


def cases(guard: str, place: str) -> Iterator[Case]:
    """Every way in which a guard can block in a place."""
    blocker = BLOCKERS[guard]
    steps = {"message": (0,), "request": (1,)}.get(place, (0, 1))
    granted = ("retry",) if place != "message" else ()  # nothing can be said again there
    endings = ("block", *granted, "exhausted") if blocker.retries else ("block",)
    for step, ending, streams in product(steps, endings, (True, False)):
        yield Case(guard, place, step, ending, streams)


@dataclass(slots=True)
class Evidence:
    """All that can be seen of a run."""

    result: RunResult
    chunks: list[Chunk]
    violations: list[ProcessorViolation]
    model: ScriptedModel
    recorder: Recorder
    spans: Spans
    log: str
    ran: list[str]

    def accessors(self) -> dict[str, str]:
        """By its name, what each accessor tells."""
        result = self.result
        told: dict[str, Any] = {
            name: getattr(result, name) for name in RunResult.__dataclass_fields__
        }
        return {name: repr(value) for name, value in told.items()} | {
            "result": repr(result),
            "messages as stored": repr([message_to_stored(message) for message in result.messages]),
            "message texts": " ".join(message.text for message in result.messages),
            "on_violation": repr(self.violations),
            "log": self.log,
            "recorder": repr(self.recorder.records) + self.recorder.marbles(width=10_000),
            "recorder's page": self.recorder._repr_html_(),  # noqa: SLF001 - a protocol of notebooks
            "spans": self.spans.text(),
        }

    def client(self) -> str:
        """All that the client has: every chunk, and the pieces of each part put together."""
        return " ".join([*(repr(chunk.to_wire()) for chunk in self.chunks), *self.parts().values()])

    def parts(self) -> dict[type[Chunk], str]:
        """What the pieces of each kind come to."""
        joined: dict[type[Chunk], str] = defaultdict(str)
        for chunk in self.chunks:
            match chunk:
                case TextDelta() | ReasoningDelta():
                    joined[type(chunk)] += chunk.text
                case ToolCallDelta():
                    joined[ToolCallDelta] += chunk.args_text_delta
                case ObjectChunk() | ObjectResult() | ToolResult() | FinishChunk():
                    joined[type(chunk)] += repr(chunk)
                case _:
                    pass
        return joined

    def sent(self) -> str:
        """All that the model was sent."""
        return repr([(request.prompt, request.settings) for request in self.model.requests])


async def tried(case: Case, caplog: pytest.LogCaptureFixture) -> Evidence:
    """Run a case."""
    blocker, attempt = BLOCKERS[case.guard], ATTEMPTS[case.place]
    ran: list[str] = []

    @tool
    def safe() -> str:
        """Do nothing of note."""
        return "done"

    @tool
    def look(word: list[str], n: int) -> str:
        """Look something up."""
        ran.append(f"{word}{n}")
        return "seen"

    @tool
    def fetch(n: int) -> Any:
        """Fetch what is not to be seen."""
        return {"found": [{"word": CANARY}], "n": n}

    begun = [] if attempt.schema else ["Begun. "]
    accepted = [turn(*begun, call("safe", {}))] if case.step else []
    model = ScriptedModel([*accepted, attempt.answer, attempt.better])
    violations: list[ProcessorViolation] = []
    guard = blocker.make(violations.append, case.ending != "block")
    before = case.place in ("message", "request")
    evidence = Evidence(RunResult(""), [], violations, model, Recorder(), Spans(), log="", ran=ran)
    agent = Agent(
        model=model,
        tools=[safe, look, fetch],
        input_processors=[guard] if before else [],
        output_processors=[] if before else [guard],
        max_processor_retries=int(case.ending == "retry"),
        structured_output=attempt.schema,
        recorder=evidence.recorder,
        tracing=evidence.spans.tracing,
    )
    prompt = f"Hello. It is {CANARY}." if attempt.in_prompt else "Hello."
    caplog.clear()
    if case.streams:
        async with agent.stream(prompt) as run:
            evidence.chunks = [chunk async for chunk in run]
            evidence.result = await run.result()
    else:
        evidence.result = await agent.generate(prompt)
    evidence.log = caplog.text + "".join(repr(vars(record)) for record in caplog.records)
    return evidence
