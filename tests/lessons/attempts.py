"""A run in which one answer holds what is blocked, and all that can be seen of it afterwards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

import pytest

from streampipe import Agent, Chunk, Recorder, RunResult, tool
from streampipe.chunks import (
    ObjectChunk,
    ObjectResult,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from streampipe.contracts import ProcessorViolation
from streampipe.errors import StreampipeError
from streampipe.messages import (
    Message,
    Part,
    ReasoningPart,
    ToolInvocationPart,
    message_to_stored,
)
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
OBJECT = turn('{"word": "fine"}')
PROVIDER_CALL = ToolCall("p1", "look", {"word": [CANARY], "n": 1}, provider_executed=True)
REMEMBERED: dict[str, Part] = {
    "old reasoning": ReasoningPart(f"Hm. {CANARY}, then."),
    "old arguments": ToolInvocationPart("c1", "look", {"word": [CANARY]}, "result", "seen"),
    "old result": ToolInvocationPart("c1", "fetch", {}, "result", {"found": [CANARY]}),
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """Where the canary stands.

    Attributes:
        answer: what the model says when it gives it away.
        prompt: what the caller sends.
        shown: what of the answer the client may see before the block.
        leaves_early: why the client has seen the canary when the block falls; empty: it has not.
        schema: the structured output that is asked for.
    """

    answer: Turn
    prompt: Any = "Hello."
    shown: str = ""
    leaves_early: str = ""
    schema: Any = None

    @property
    def is_sent(self) -> bool:
        """Whether the canary is in what the caller sends: then the model is not asked at all."""
        return bool(self.prompt != "Hello.")


ATTEMPTS: dict[str, Attempt] = {
    "message": Attempt(turn("never asked"), f"Hello. It is {CANARY}."),
    **{
        place: Attempt(turn("never asked"), [Message("assistant", [part]), Message.user("Well?")])
        for place, part in REMEMBERED.items()
    },
    "request": Attempt(turn(CANARY)),
    "text": Attempt(turn("Safe. It is ", *CUT, ", I think. And more."), shown="Safe. "),
    "object": Attempt(turn('{"word": "', *CUT, '"}'), schema=SCHEMA),
    "reasoning": Attempt(
        turn(*map(reasoning, ("Safe. It is ", *CUT, ". And more. ")), "Well. "), shown="Safe. "
    ),
    "tool-arguments": Attempt(
        turn("Safe. ", call("look", {"word": [CANARY], "n": 1}, pieces=4)), shown="Safe. "
    ),
    "tool-results": Attempt(turn("Safe. ", call("fetch", {"n": 1})), shown="Safe. "),
    "call": Attempt(
        turn("Safe. ", call("look", {"word": [CANARY], "n": 1}, pieces=4)),
        shown="Safe. ",
        leaves_early="ToolCallGuard decides when the model has answered",
    ),
    "provider call": Attempt(turn("Safe. ", PROVIDER_CALL), shown="Safe. "),
}
"""By place: in what is sent, behind a model call, and in each part of an answer."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run.

    Attributes:
        guard: name of the guard's class.
        place: where the canary stands.
        step: the step in which it comes: 0, or 1 behind an accepted one.
        ending: "block"; "retry", which is granted; "exhausted", which is not; "raise": the guard
            fails the run; "unanswered": it could not be told whether the text may leave.
        streams: whether the run is streamed, or collected by `generate()`.
    """

    guard: str
    place: str
    step: int
    ending: str
    streams: bool


def cases(guard: str, place: str) -> Iterator[Case]:
    """Every way in which a guard can block in a place."""
    endings = BLOCKERS[guard].endings
    if ATTEMPTS[place].is_sent:
        steps: tuple[int, ...] = (0,)
        endings = tuple(ending for ending in endings if ending != "retry")  # never granted there
    else:
        steps = (1,) if place == "request" else (0, 1)
    for step, ending, streams in product(steps, endings, (True, False)):
        yield Case(guard, place, step, ending, streams)


@dataclass(slots=True)
class Evidence:
    """All that can be seen of a run; a streamed one is recorded and traced."""

    result: RunResult
    chunks: list[Chunk]
    violations: list[ProcessorViolation]
    model: ScriptedModel
    recorder: Recorder | None = None
    spans: Spans | None = None
    log: str = ""

    def accessors(self) -> dict[str, str]:
        """By its name, what each accessor tells."""
        result = self.result
        told = {each.name: repr(getattr(result, each.name)) for each in fields(result)}
        told |= {
            "stored messages": repr([message_to_stored(message) for message in result.messages]),
            "texts of messages": " ".join(message.text for message in result.messages),
            "on_violation": repr(self.violations),
            "log": self.log,
        }
        if self.recorder is not None:
            records = self.recorder.records
            told["records"] = repr(records) + "".join(record.text or "" for record in records)
            told["marbles"] = self.recorder.marbles(width=10_000)
        if self.spans is not None:
            told["spans"] = self.spans.text()
        return told

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
                case ObjectChunk() | ObjectResult():
                    joined[type(chunk)] += repr(chunk.object)
                case _:
                    pass
        return joined

    def sent(self) -> str:
        """All that the model was sent."""
        return repr([(request.prompt, request.settings) for request in self.model.requests])


RAN: list[str] = []  # tools that were not to run, in the run at hand


@tool
def safe() -> str:
    """Do nothing of note."""
    return "done"


@tool
def look(word: list[str], n: int) -> str:
    """Look something up; nobody is to."""
    RAN.append(f"{word}{n}")
    return "seen"


@tool
def fetch(n: int) -> Any:
    """Fetch what is not to be seen."""
    return {"found": [{"word": CANARY}], "n": n}


async def tried(case: Case, caplog: pytest.LogCaptureFixture) -> Evidence:
    """Run a case."""
    attempt = ATTEMPTS[case.place]
    begun = [] if attempt.schema else ["Begun. "]
    accepted = [turn(*begun, call("safe", {}))] if case.step else []
    better = OBJECT if attempt.schema else turn("fine")
    model = ScriptedModel([*accepted, attempt.answer, better])
    evidence = Evidence(RunResult(""), [], [], model)
    if case.streams:
        evidence.recorder, evidence.spans = Recorder(), Spans()
    guard = BLOCKERS[case.guard].make(evidence.violations.append, case.ending)
    before = attempt.is_sent or case.place == "request"
    agent = Agent(
        model=model,
        tools=[safe, look, fetch],
        input_processors=[guard] if before else [],
        output_processors=[] if before else [guard],
        max_processor_retries=int(case.ending == "retry"),
        structured_output=attempt.schema,
        recorder=evidence.recorder,
        tracing=False if evidence.spans is None else evidence.spans.tracing,
    )
    RAN.clear()
    caplog.clear()
    try:
        if case.streams:
            async with agent.stream(attempt.prompt) as run:
                evidence.chunks = [chunk async for chunk in run]
                evidence.result = await run.result()
        else:
            evidence.result = await agent.generate(attempt.prompt)
    except StreampipeError as error:
        if case.ending != "raise" or error.result is None:
            raise
        evidence.result = error.result
    evidence.log = caplog.text + "".join(repr(vars(record)) for record in caplog.records)
    assert not RAN, f"{case}: a tool ran in spite of the block"
    return evidence
