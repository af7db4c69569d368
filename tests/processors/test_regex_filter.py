"""`RegexFilter`: rules on streams, messages, tool calls and results, and what they disclose."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streampipe import Agent, Chunk, Message, TextDelta, ToolCall, ToolCallDelta, TripWire, tool
from streampipe import operators as ops
from streampipe.contracts import ProcessorViolation
from streampipe.errors import ConfigurationError
from streampipe.messages import TextPart
from streampipe.processors import Guard, RegexFilter
from streampipe.testing import ScriptedModel, call, check_processor, chunkings, reasoning, turn

EXAMPLES = max(1_000, 10 * settings().max_examples)
SECRET = "swordfish"  # noqa: S105 - a word to look for
SAID = f"The word is {SECRET}, I think."


@tool
def look(word: str) -> dict[str, Any]:
    """Look something up."""
    return {"found": [f"{word}!", {"also": SECRET}], "count": 1}


async def streamed(agent: Agent, prompt: Any = "hi") -> tuple[list[Chunk], Any]:
    """The chunks of a run, and its result."""
    async with agent.stream(prompt) as run:
        chunks = [chunk async for chunk in run]
        return chunks, await run.result()


def disclosed(chunks: list[Chunk], result: Any) -> str:
    """All that a client, a caller or a store can see of a run."""
    wire = "".join(repr(chunk.to_wire()) for chunk in chunks)
    text = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
    pieces = "".join(c.args_text_delta for c in chunks if isinstance(c, ToolCallDelta))
    return f"{wire} {text} {pieces} {result!r}"


@pytest.mark.parametrize("strategy", ["redact", "block", "warn"])
def test_it_keeps_the_laws(strategy: Any) -> None:
    """Whatever the stream, and wherever its text is cut."""
    check_processor(
        lambda: RegexFilter(r"[ab]c+|\d\d", strategy=strategy, replacement=None),
        max_examples=EXAMPLES // 5,  # the operators themselves have a thousand each
        fails=BaseException,
    )


@given(st.data())
async def test_redaction_does_not_depend_on_the_cutting(data: st.DataObject) -> None:
    """The secret is nowhere, and the rest is as it was, however the model's words are cut."""
    pieces = data.draw(chunkings(SAID))
    agent = Agent(
        model=ScriptedModel([pieces]),
        output_processors=[RegexFilter(SECRET, strategy="redact", replacement="[X]")],
    )
    chunks, result = await streamed(agent)
    assert SECRET not in disclosed(chunks, result)
    assert result.text == SAID.replace(SECRET, "[X]")
    assert result.messages[-1].text == result.text


@given(st.data())
async def test_a_block_discloses_nothing(data: st.DataObject) -> None:
    """No part of the match has left; the step is void, and the client is told which rule."""
    pieces = data.draw(chunkings(SAID))
    agent = Agent(
        model=ScriptedModel([pieces]), output_processors=[RegexFilter(SECRET, id="words")]
    )
    chunks, result = await streamed(agent)
    assert SECRET[:3] not in disclosed(chunks, result)
    assert (result.text, result.steps, result.messages) == ("", [], [])
    assert result.tripwire.processor_id == "words"
    assert result.tripwire.metadata == {"rule": "pattern 1", "offset": 12, "length": 9}


PLACES: dict[str, Any] = {
    "text": [["see ", SECRET]],
    "reasoning": [turn(reasoning(f"hm {SECRET}"), "fine")],
    "tool-arguments": [[call("look", {"word": [SECRET], "n": 1}, pieces=4)], ["done"]],
    "tool-results": [[call("look", {"word": "x"})], ["done"]],
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("strategy", ["redact", "block"])
async def test_where_it_looks(place: Any, strategy: Any) -> None:
    """Each place by its own switch: covered it discloses nothing there, else it lets it through."""
    for covered in (True, False):
        covers: Any = [place] if covered else [other for other in PLACES if other != place]
        guard = RegexFilter(SECRET, strategy=strategy, covers=covers)
        model = ScriptedModel(PLACES[place])
        agent = Agent(model=model, tools=[look], output_processors=[guard])
        chunks, result = await streamed(agent)
        seen = disclosed(chunks, result)
        prompts = "".join(repr(request.prompt) for request in model.requests)
        assert (SECRET in seen) is not covered, place
        if covered:
            assert SECRET not in prompts
            assert (result.tripwire is not None) is (strategy == "block")


async def test_redacted_arguments_are_those_that_the_tool_gets() -> None:
    """What is shown, stored and run is one thing; the pieces that a client puts together fit it."""
    ran: list[str] = []

    @tool
    def note(word: str) -> str:
        """Write down."""
        ran.append(word)
        return "ok"

    model = ScriptedModel([[call("note", {"word": f"a {SECRET}"}, pieces=5)], ["done"]])
    guard = RegexFilter(SECRET, strategy="redact", replacement="[X]", covers=["tool-arguments"])
    agent = Agent(model=model, tools=[note], output_processors=[guard])
    chunks, result = await streamed(agent)
    pieces = [chunk.args_text_delta for chunk in chunks if isinstance(chunk, ToolCallDelta)]
    assert pieces == ['{"word":"a [X]"}']
    assert ran == ["a [X]"]
    assert result.tool_calls[0].args == {"word": "a [X]"}


async def test_arguments_without_a_match_keep_their_pieces() -> None:
    """They come together, when they are whole."""
    model = ScriptedModel([[call("look", {"word": "abcdef"}, pieces=3)], ["done"]])
    guard = RegexFilter(SECRET, covers=["tool-arguments"])
    chunks, _ = await streamed(Agent(model=model, tools=[look], output_processors=[guard]))
    assert len([chunk for chunk in chunks if isinstance(chunk, ToolCallDelta)]) == 3


async def test_what_the_user_says() -> None:
    """As an input processor it looks at the messages before the model gets them."""
    model = ScriptedModel(["fine"])
    redacting = RegexFilter(SECRET, strategy="redact", replacement="[X]")
    await Agent(model=model, input_processors=[redacting]).generate(f"It is {SECRET}.")
    assert model.requests[0].prompt[-1].text == "It is [X]."
    blocked = await Agent(model=model, input_processors=[RegexFilter(SECRET)]).generate(SECRET)
    assert blocked.tripwire is not None
    assert len(model.requests) == 1, "the model was not asked"


@pytest.mark.parametrize("later", [False, True])
async def test_violations_are_reported(later: bool) -> None:  # noqa: FBT001 - a case
    """Rule, offset and length of every match, without the text unless it is asked for."""
    told: list[ProcessorViolation] = []

    async def note_later(violation: ProcessorViolation) -> None:
        told.append(violation)

    note: Any = note_later if later else told.append
    script = [["a ", SECRET[:4], SECRET[4:], f" b {SECRET}"]]
    for strategy in ("warn", "redact"):
        guard: Any = RegexFilter(SECRET, strategy=strategy, on_violation=note)
        await Agent(model=ScriptedModel(script), output_processors=[guard]).generate("hi")
    details = [violation.detail for violation in told]
    found = [{"rule": "pattern 1", "offset": at, "length": 9} for at in (2, 14)]
    assert details == found * 2
    assert SECRET not in repr(told)
    told.clear()
    shown = RegexFilter(SECRET, strategy="warn", show_text=True, on_violation=note)
    await Agent(model=ScriptedModel([[SECRET]]), output_processors=[shown]).generate("hi")
    assert told[0].detail["text"] == SECRET


async def test_presets_by_name() -> None:
    """The rule sets that come along."""
    said = "Write to ada@example.com, key sk-abcdefghijklmnopqrstuvwxyz123456."
    guard = RegexFilter(presets=["pii", "secrets"], strategy="redact")
    agent = Agent(model=ScriptedModel([[said]]), output_processors=[guard])
    text = (await agent.generate("hi")).text
    assert "ada@" not in text
    assert "sk-" not in text


async def test_a_retry_asks_for_another_answer() -> None:
    """With the reason as feedback; the state of the rejected attempt is gone."""
    model = ScriptedModel([[call("look", {"word": SECRET})], ["fine"]])
    guard = RegexFilter(SECRET, retry=True, reason="leave it out", covers=["tool-arguments"])
    agent = Agent(model=model, tools=[look], output_processors=[guard], max_processor_retries=1)
    result = await agent.generate("hi")
    assert (result.text, result.retries) == ("fine", 1)
    assert "leave it out" in repr(model.requests[1].prompt)


async def test_runs_at_once_share_nothing() -> None:
    """One guard in two runs, each with half of a match."""
    guard = RegexFilter(SECRET, strategy="redact")
    one = Agent(model=ScriptedModel([[SECRET[:4]]]), output_processors=[guard])
    two = Agent(model=ScriptedModel([[SECRET[4:]]]), output_processors=[guard])
    async with one.stream("hi") as first, two.stream("hi") as second:
        for run, half in ((first, SECRET[:4]), (second, SECRET[4:])):
            assert (await run.result()).text == half


async def test_a_message_of_many_parts() -> None:
    """Each text is looked at by itself: a match does not go over from one to the next."""
    message = Message("user", [TextPart(SECRET[:4]), TextPart(SECRET[4:])])
    model = ScriptedModel(["fine"])
    await Agent(model=model, input_processors=[RegexFilter(SECRET)]).generate(message)
    assert model.requests[0].prompt[-1].text == SECRET


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "give rules, presets, or both"),
        ({"rules": "x", "strategy": "hide"}, "strategy must be one of block, redact, warn"),
        ({"presets": ["pi"]}, "presets are pii, secrets, urls; there is no 'pi'"),
        ({"rules": "x", "replacement": "y"}, "replacement is for strategy='redact'"),
        ({"rules": "x", "strategy": "warn", "retry": True}, "reason and retry are for"),
        ({"rules": "x", "covers": ["txet"]}, "covers takes text, reasoning, tool-arguments"),
        ({"rules": "x", "covers": []}, "covers takes"),
        ({"rules": "(x"}, "pattern 1"),
        ({"rules": 7}, "rules"),
    ],
)
def test_wrong_options(options: dict[str, Any], told: str) -> None:
    """Each is refused when the guard is built, by name."""
    with pytest.raises(ConfigurationError, match=told):
        RegexFilter(**options)


def test_a_number_in_arguments_and_results_is_looked_at_as_it_is_written() -> None:
    """A card is one without quotes, too; other numbers stay numbers."""

    @tool
    def pay(card: object, amount: int) -> dict[str, object]:
        """Pay with a card."""
        return {"card": 4111111111111111, "amount": amount}

    guard = RegexFilter(
        r"\d{16}",
        strategy="redact",
        replacement="[CARD]",
        covers=["tool-arguments", "tool-results"],
    )
    paying = [call("pay", {"card": 4111111111111111, "amount": 5})]
    agent = Agent(model=ScriptedModel([paying, ["Done."]]), tools=[pay], output_processors=[guard])
    result = asyncio.run(agent.generate("Pay."))
    assert result.tool_calls[0].args == {"card": "[CARD]", "amount": 5}
    assert result.tool_results[0].result == {"card": "[CARD]", "amount": 5}


@pytest.mark.parametrize(
    "guard",
    [
        RegexFilter("swordfish", covers=["tool-arguments"]),
        Guard(lambda text: "swordfish" not in text, covers=["tool-arguments"]),
    ],
    ids=["rules", "asks"],
)
async def test_pieces_of_arguments_without_a_start_are_held_too(guard: Any) -> None:
    """A model of one's own may leave the start out; what nobody has looked at stays here."""
    pieces = [ToolCallDelta("1", '{"word":'), ToolCallDelta("1", '"swordfish"}')]
    source: list[Chunk] = [*pieces, ToolCall("1", "look", {"word": "swordfish"})]
    seen: list[Chunk] = []
    stream = ops.of(*source).pipe(ops.process(guard), ops.tap(seen.append))
    with pytest.raises(TripWire):
        _ = [chunk async for chunk in ops.to_aiter(stream)]
    assert seen == []
