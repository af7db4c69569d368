"""Guards that leak: what users of such systems ran into, and what the shelf does instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe import Agent, Chunk, RunResult, TextDelta, tool
from streampipe.chunks import DataChunk, SourceChunk
from streampipe.contracts import ProcessorViolation, ToolContext
from streampipe.errors import ConfigurationError, ProcessorError
from streampipe.processors import (
    BatchParts,
    ClassifierProcessor,
    EntityDetector,
    Guard,
    LanguageDetector,
    ModerationProcessor,
    PIIDetector,
    PromptInjectionDetector,
    RegexFilter,
    SystemPromptScrubber,
    ToolCallGuard,
    UnicodeNormalizer,
)
from streampipe.testing import ScriptedModel, call, chunkings
from tests.lessons.blockers import CANARY, EVERYWHERE, finder, holds
from tests.lessons.rows import check_rows

SAID = f"Server 10.0.0.123 is up. Write to {CANARY}, please. Done."
HIDDEN = f"Server 10.0.0.123 is up. Write to {'*' * 3}, please. Done."
RULES = (CANARY, r"10\.0\.0\.\d{1,2}(?!\d)")

ROWS = {
    "a value cut across two chunks": "test_a_value_cut_anywhere_is_found",
    "an exception in one processor": "test_a_guard_that_fails_lets_nothing_through",
    "model-backed guards fail open": "test_guards_that_ask_fail_closed",
    "a block that a processor's own": "test_a_block_cannot_be_swallowed",
    "tool results, step markers": "test_every_chunk_passes_the_chain",
    "redacted for the viewer": "test_what_is_shown_is_what_is_stored",
    "a batcher in front of a moderator": "test_a_batcher_hides_nothing_from_a_guard_behind_it",
    "tools run before or despite": "test_no_tool_of_a_blocked_step_runs",
    "a shape the guard does not know": "test_every_place_is_covered_or_declared",
}
"""By the beginning of a row, its test."""


def test_every_row_has_a_test() -> None:
    """A lesson that is added asks for one."""
    check_rows("Guards that leak", ROWS, globals())


REDACTORS: dict[str, Any] = {
    "regex": lambda: [RegexFilter(RULES, strategy="redact", replacement="***")],
    "personal data": lambda: [
        RegexFilter(RULES[1], strategy="redact", id="addresses"),
        PIIDetector(["email"], method="mask", preserve_format=False),
        RegexFilter(r"\*{3,}", strategy="redact", replacement="***"),
    ],
    "entities": lambda: [
        EntityDetector(find=finder(""), method="mask"),
        RegexFilter(r"\*{3,}", strategy="redact", replacement="***"),
    ],
    "system prompt": lambda: [
        SystemPromptScrubber(min_words=3, texts=[CANARY], strategy="replace", replacement="***")
    ],
    "stacked": lambda: [
        UnicodeNormalizer(),
        BatchParts(3),
        RegexFilter(RULES, strategy="redact", replacement="***", id="first"),
        Guard(lambda text: not holds(text)),
        RegexFilter(RULES, id="second"),
    ],
}


async def streamed(agent: Agent, prompt: Any = "Hello.") -> tuple[list[Chunk], RunResult]:
    """The chunks of a run, and its result."""
    async with agent.stream(prompt) as run:
        return [chunk async for chunk in run], await run.result()


def text_of(chunks: list[Chunk]) -> str:
    """The text that a client has read."""
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))


@pytest.mark.parametrize("name", REDACTORS)
@given(st.data())
async def test_a_value_cut_anywhere_is_found(name: str, data: st.DataObject) -> None:
    """What is redacted does not depend on the cutting; `10.0.0.1` and `23` are one address."""
    pieces = data.draw(chunkings(SAID))
    agent = Agent(model=ScriptedModel([pieces]), output_processors=REDACTORS[name]())
    chunks, result = await streamed(agent)
    assert text_of(chunks) == result.text == HIDDEN


@given(st.data())
async def test_a_value_cut_anywhere_is_blocked_and_warned_of(data: st.DataObject) -> None:
    """Blocking and warning hold back as redacting does."""
    pieces = data.draw(chunkings(SAID))
    told: list[ProcessorViolation] = []
    warning = RegexFilter(RULES, strategy="warn", id="warn", on_violation=told.append)
    agent = Agent(model=ScriptedModel([pieces]), output_processors=[warning, RegexFilter(RULES)])
    chunks, result = await streamed(agent)
    assert [violation.detail["offset"] for violation in told] == [SAID.index(CANARY)]
    assert result.tripwire is not None
    assert HIDDEN.startswith(text_of(chunks))


def breaks(text: str) -> str:
    """What was to take a match's place, and cannot."""
    raise ZeroDivisionError(len(text))


class Breaks:
    """A processor that fails on a word."""

    id = "breaks"

    def process_output_stream(self, args: Any) -> Any:
        """Fail on the word `Done`."""
        assert "Done" not in getattr(args.part, "text", "")
        return args.part


@pytest.mark.parametrize(
    "stack",
    [
        [RegexFilter(CANARY, strategy="redact", replacement=breaks)],
        [RegexFilter(CANARY, strategy="redact"), Breaks()],
        [Breaks(), RegexFilter(CANARY, strategy="redact")],
        [Guard(lambda text: not holds(text), "raise")],
    ],
    ids=["redaction", "behind", "before", "raise"],
)
async def test_a_guard_that_fails_lets_nothing_through(stack: list[Any]) -> None:
    """The run ends with `error` and `finish`; what was hidden stays hidden, the rest is void."""
    agent = Agent(model=ScriptedModel([["It is ", CANARY, ". ", "Done."]]), output_processors=stack)
    run = agent.stream("Hello.")
    chunks = [chunk async for chunk in run]
    assert [chunk.type for chunk in chunks[-2:]] == ["error", "finish"]
    assert CANARY not in text_of(chunks)
    with pytest.raises(ProcessorError) as failed:
        await run.result()
    assert failed.value.result is not None
    assert (failed.value.result.text, failed.value.result.messages) == ("", [])


def silent() -> ScriptedModel:
    """A model that does not answer."""
    return ScriptedModel([])


UNANSWERED: dict[str, Any] = {
    "classifier": lambda **o: ClassifierProcessor(["bad"], model=silent(), **o),
    "entities": lambda **o: EntityDetector(model=silent(), **o),
    "guard": lambda **o: Guard(breaks, **o),
    "language": lambda **o: LanguageDetector(
        ["en"], detect=lambda _: ("de", 1.0), min_letters=0, translator=silent(), **o
    ),
    "moderation": lambda **o: ModerationProcessor(model=silent(), **o),
    "injection": lambda **o: PromptInjectionDetector(model=silent(), covers=["tool-results"], **o),
    "system prompt": lambda **o: SystemPromptScrubber(texts=["a secret"], model=silent(), **o),
}


@pytest.mark.parametrize("name", UNANSWERED)
async def test_guards_that_ask_fail_closed(name: str) -> None:
    """Without an answer the text does not leave; `error_strategy="allow"` is an explicit choice."""

    @tool
    def fetch() -> str:
        """Fetch."""
        return "fetched"

    for choice in ({}, {"error_strategy": "allow"}):
        told: list[ProcessorViolation] = []
        guard = UNANSWERED[name](on_violation=told.append, **choice)
        script: list[Any] = [["Words."]]
        if name == "injection":
            script = [[call("fetch")], ["Words."]]
        agent = Agent(model=ScriptedModel(script), tools=[fetch], output_processors=[guard])
        result = await agent.generate("Hello.")
        assert result.text == ("Words." if choice else ""), name
        assert (result.tripwire is None) is bool(choice), name
        assert told, "the text that nobody looked at is told of, whatever becomes of it"


class Swallows:
    """A processor of a user's around a guard, which takes whatever the guard raises for a fault."""

    id = "swallows"

    def __init__(self, guard: Any) -> None:
        """Put it around `guard`."""
        self._guard = guard

    def process_output_stream(self, args: Any) -> Any:
        """Let the chunk go if the guard fails."""
        try:
            return self._guard.process_output_stream(args)
        except Exception:  # noqa: BLE001 - the mistake that this is about
            return args.part


async def test_a_block_cannot_be_swallowed() -> None:
    """`except Exception` around a guard does not undo what it says."""
    agent = Agent(
        model=ScriptedModel([["It is ", CANARY, "."]]),
        output_processors=[Swallows(RegexFilter(CANARY))],
    )
    chunks, result = await streamed(agent)
    assert result.tripwire is not None
    assert CANARY not in text_of(chunks)
    assert result.text == ""


class Notes:
    """Notes the types of all chunks that come to it."""

    process_data_parts = True

    def __init__(self, name: str) -> None:
        """Nothing yet."""
        self.id = name
        self.seen: list[Chunk] = []

    def process_output_stream(self, args: Any) -> Any:
        """Note the chunk."""
        self.seen.append(args.part)
        return args.part


async def test_every_chunk_passes_the_chain() -> None:
    """Tool results, step markers and data come to whoever stands behind the guards, as hidden."""

    @tool
    async def fetch(context: ToolContext) -> str:
        """Fetch, and tell of it."""
        await context.writer.custom({"type": "data-progress", "data": 1})
        return f"It is {CANARY}."

    hides = RegexFilter(CANARY, strategy="redact", replacement="***", covers=EVERYWHERE)
    first, last = Notes("first"), Notes("last")
    stack = [first, hides, PIIDetector(), Guard(lambda _: True), BatchParts(4), last]
    model = ScriptedModel([["Well. ", call("fetch")], [f"It is {CANARY}."]])
    chunks, result = await streamed(Agent(model=model, tools=[fetch], output_processors=stack))
    types = {chunk.type for chunk in chunks}
    assert {chunk.type for chunk in last.seen} == {chunk.type for chunk in first.seen}
    assert types - {chunk.type for chunk in last.seen} <= {"start"}
    assert {"step-start", "tool-result", "data-progress", "step-finish", "finish"} <= types
    assert any(isinstance(chunk, DataChunk) for chunk in last.seen)
    assert CANARY not in repr(last.seen) + repr(chunks) + repr(result)


@pytest.mark.parametrize("name", REDACTORS)
async def test_what_is_shown_is_what_is_stored(name: str) -> None:
    """The client, the text, the steps, the messages and the next prompt hold one and the same."""

    @tool
    def safe() -> str:
        """Do nothing of note."""
        return "done"

    model = ScriptedModel([[SAID, call("safe")], ["Bye."]])
    agent = Agent(model=model, tools=[safe], output_processors=REDACTORS[name]())
    chunks, result = await streamed(agent)
    assert text_of(chunks) == result.text == HIDDEN + "Bye."
    assert result.steps[0].text == HIDDEN
    assert "".join(message.text for message in result.messages) == result.text
    assert HIDDEN in repr(model.requests[1].prompt)
    assert CANARY not in repr(result) + repr(model.requests)


async def test_a_batcher_hides_nothing_from_a_guard_behind_it() -> None:
    """A guard sees all of the text, in larger pieces; `stream_parts` are those that came to it."""
    parts: list[str] = []

    class Reads:
        id = "reads"

        def process_output_stream(self, args: Any) -> Any:
            """Note the text that it was given so far."""
            parts[:] = [part.text for part in args.stream_parts if isinstance(part, TextDelta)]
            return args.part

    pieces = [*"It is fine. ", *f"It is {CANARY}. ", "And more."]
    agent = Agent(model=ScriptedModel([pieces]), output_processors=[BatchParts(5), Reads()])
    assert (await agent.generate("Hello.")).text == "".join(parts) == "".join(pieces)
    assert len(parts) < len(pieces)
    for guard in (RegexFilter(CANARY), Guard(lambda text: not holds(text))):
        agent = Agent(model=ScriptedModel([pieces]), output_processors=[BatchParts(5), guard])
        chunks, result = await streamed(agent)
        assert result.tripwire is not None
        assert CANARY not in text_of(chunks)


@pytest.mark.parametrize(
    "guard",
    [
        RegexFilter(CANARY),
        Guard(lambda text: not holds(text)),
        ToolCallGuard(deny=["spend"]),
        RegexFilter(CANARY, covers=["tool-arguments"]),
        SystemPromptScrubber(min_words=3, texts=[CANARY], covers=["tool-arguments"]),
    ],
    ids=["rule", "asked", "call", "arguments", "words in arguments"],
)
async def test_no_tool_of_a_blocked_step_runs(guard: Any) -> None:
    """Neither the tool of the call that is blocked, nor that of a call before it or behind it."""
    ran: list[str] = []

    @tool
    def spend(what: str) -> str:
        """Spend money."""
        ran.append(what)
        return "spent"

    calls = [call("spend", {"what": "a"}), call("spend", {"what": CANARY})]
    script: list[Any] = [[*calls, f"It is {CANARY}.", call("spend", {"what": "b"})]]
    agent = Agent(model=ScriptedModel(script), tools=[spend], output_processors=[guard])
    result = await agent.generate("Hello.")
    assert result.tripwire is not None
    assert not ran


@pytest.mark.parametrize("place", EVERYWHERE)
async def test_every_place_is_covered_or_declared(place: Any) -> None:
    """What a guard covers it says, and a place that there is not is refused."""
    makes: list[Any] = [
        lambda **o: RegexFilter(CANARY, **o),
        lambda **o: PIIDetector(["email"], **o),
        lambda **o: Guard(holds, **o),
        lambda **o: EntityDetector(find=finder(""), **o),
    ]
    for make in makes:
        assert make(covers=[place]).covers == {place}
        with pytest.raises(ConfigurationError, match="covers takes text, reasoning"):
            make(covers=[place, "telepathy"])


SHAPES: dict[str, Any] = {
    "list": {"word": [CANARY]},
    "nested": {"word": {"inner": [{"deep": f"<{CANARY}>"}]}},
    "text": CANARY,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["rule", "asked"])
async def test_a_text_within_a_result_is_found_whatever_its_shape(shape: str, kind: str) -> None:
    """However deep it stands."""

    @tool
    def fetch() -> Any:
        """Fetch."""
        return SHAPES[shape]

    guard: Any = RegexFilter(CANARY, covers=["tool-results"])
    if kind == "asked":
        guard = Guard(lambda text: not holds(text), covers=["tool-results"])
    model = ScriptedModel([[call("fetch")], ["Bye."]])
    result = await Agent(model=model, tools=[fetch], output_processors=[guard]).generate("Hello.")
    assert result.tripwire is not None
    assert CANARY not in repr(result)


PAGE = Path(__file__).resolve().parents[2] / "docs" / "guardrails.md"
DECLARED: dict[str, Any] = {
    "the keys of objects": call("fetch", {"what": {CANARY: 1}}),
    "at sources": SourceChunk("s1", url=f"https://{CANARY}"),
    "`data-*`": DataChunk("data-note", CANARY),
}
"""By what the page says of it, what no rule looks at."""


@pytest.mark.parametrize("told", DECLARED)
async def test_what_no_rule_looks_at_is_declared(told: str) -> None:
    """The guide to guards names it."""

    @tool
    def fetch(what: dict[str, int]) -> str:
        """Fetch."""
        return str(len(what))

    model = ScriptedModel([[DECLARED[told]], ["Bye."]], repeat=True)
    guard = RegexFilter(CANARY, covers=EVERYWHERE)
    chunks, result = await streamed(Agent(model=model, tools=[fetch], output_processors=[guard]))
    assert result.tripwire is None
    assert CANARY in repr([chunk.to_wire() for chunk in chunks])
    assert told in PAGE.read_text(encoding="utf-8").replace("\n", " ")
