"""Ready-made processors within `ops.parallel`, `ops.branch` and a pipe, as any processor may be."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given, settings

from streampipe import (
    Agent,
    Chunk,
    DataChunk,
    FinishChunk,
    ReasoningDelta,
    TextDelta,
    TextEnd,
    TextStart,
    TripWire,
)
from streampipe import operators as ops
from streampipe.contracts import ModelRequest
from streampipe.errors import ConfigurationError, OperatorError
from streampipe.processors import (
    Guard,
    PIIDetector,
    RegexFilter,
    SystemPromptScrubber,
    UnicodeNormalizer,
)
from streampipe.testing import ScriptedModel, chunkings

ANSWER = "Ask ada@example.com for sk-" + "a1B2" * 12 + " or ORD-42."


async def said(operator: Any, pieces: list[str], **options: Any) -> Any:
    """The result of a run behind an operator."""
    agent = Agent(model=ScriptedModel([pieces]), output_processors=[operator], **options)
    return await agent.generate("Well?")


@given(pieces=chunkings(ANSWER))
@settings(max_examples=20)
async def test_guards_in_parallel_see_the_same_text(pieces: list[str]) -> None:
    """Each the original; one of them blocks, and is named."""
    both = ops.parallel(
        RegexFilter(r"NOT-\d+", id="orders"), PIIDetector(["email"], strategy="block")
    )
    result = await said(both, pieces)
    assert (result.text, result.tripwire.processor_id) == ("", "pii-detector")


@given(pieces=chunkings(ANSWER))
@settings(max_examples=20)
async def test_guards_in_parallel_let_through_what_all_allow(pieces: list[str]) -> None:
    """As it came."""
    both = ops.parallel(
        RegexFilter(r"NOT-\d+", strategy="warn", id="orders"),
        PIIDetector(["email"], strategy="warn"),
    )
    assert (await said(both, pieces)).text == ANSWER


@given(pieces=chunkings(ANSWER))
@settings(max_examples=20)
async def test_one_of_the_guards_in_parallel_may_rewrite(pieces: list[str]) -> None:
    """While others hold text back, and cut it in other places."""
    hiding = PIIDetector(["email"], method="placeholder")
    both = ops.parallel(RegexFilter(r"NOT-\d+", id="orders"), hiding, RegexFilter(presets="urls"))
    assert (await said(both, pieces)).text == ANSWER.replace("ada@example.com", "[EMAIL]")


@given(pieces=chunkings(ANSWER))
@settings(max_examples=20)
async def test_two_that_rewrite_are_named(pieces: list[str]) -> None:
    """Wherever the text was cut, the run fails and says who."""
    both = ops.parallel(PIIDetector(["email"]), RegexFilter("ORD", strategy="redact"))
    with pytest.raises(OperatorError, match="pii-detector and regex-filter both change"):
        await said(both, pieces)


@given(pieces=chunkings(ANSWER))
@settings(max_examples=20)
async def test_a_guard_on_a_branch_sees_what_is_sent_there(pieces: list[str]) -> None:
    """A text goes one way as a whole: its end is what has a guard let go of what it holds."""

    def is_text(chunk: Chunk) -> bool:
        return isinstance(chunk, TextStart | TextDelta | TextEnd)

    branched = ops.branch(is_text, PIIDetector(["email"], method="placeholder"))
    result = await said(branched, pieces)
    assert result.text == ANSWER.replace("ada@example.com", "[EMAIL]")


@given(pieces=chunkings(ANSWER))
@settings(max_examples=20)
async def test_guards_in_a_pipe_work_on_what_the_one_before_let_through(pieces: list[str]) -> None:
    """In the order in which they stand, those that bring an operator among them."""
    chain = ops.pipe(
        ops.process(UnicodeNormalizer()),
        ops.process(RegexFilter(presets="secrets", strategy="redact")),
        ops.process(Guard(lambda text: "sk-" not in text)),
        ops.process(RegexFilter(r"ORD-\d+", strategy="redact", replacement="[ORDER]")),
    )
    text = (await said(chain, pieces)).text
    assert text.startswith("Ask ada@example.com for ")
    assert text.endswith(" or [ORDER].")
    assert "sk-" not in text


@pytest.mark.parametrize(
    "compose",
    [
        lambda guard: ops.parallel(guard, UnicodeNormalizer()),
        lambda guard: ops.branch(lambda chunk: chunk.type == "text-delta", guard),
    ],
    ids=["parallel", "branch"],
)
@pytest.mark.parametrize(
    "make", [lambda: Guard(bool), SystemPromptScrubber], ids=["guard", "scrubber"]
)
def test_a_guard_with_a_pace_of_its_own_is_refused_there(
    compose: Callable[[Any], Any], make: Callable[[], Any]
) -> None:
    """The order would be lost; the message says where it may stand."""
    with pytest.raises(ConfigurationError, match="put it before or behind"):
        compose(make())


async def test_what_a_guard_held_does_not_pass_a_limit_behind_it() -> None:
    """The limit has closed the stream; what was held in front of it has no way out any more."""
    agent = Agent(
        model=ScriptedModel([["Ask ada@example.com now, or later."]]),
        output_processors=[PIIDetector(["email"], method="placeholder"), ops.limit_text(chars=9)],
    )
    assert (await agent.generate("Whom?")).text == "Ask [EMAI"


async def test_what_a_guard_held_does_not_pass_a_guard_behind_it() -> None:
    """A data chunk in mid-answer goes beside the operators; what was held before it does not."""
    asked: list[str] = []

    def note(text: str) -> bool:
        asked.append(text)
        return "ada" not in text

    class Noting:
        provider = "scripted"
        model_id = "noting"

        async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
            yield TextStart("0")
            yield TextDelta("0", "Ask ada")
            yield DataChunk("data-note", 1)
            yield TextDelta("0", " and others. ")
            yield TextEnd("0")
            yield FinishChunk("stop")

    agent = Agent(
        model=Noting(),
        output_processors=[PIIDetector(["email"], method="placeholder"), Guard(note)],
    )
    result = await agent.generate("Whom?")
    assert (result.text, result.tripwire is not None) == ("", True)
    assert "ada" in "".join(asked)


@pytest.mark.parametrize(
    "other", [ReasoningDelta("1", ""), ReasoningDelta("1", "hm"), DataChunk("data-x", 1)], ids=repr
)
async def test_a_chunk_in_mid_sentence_does_not_cut_what_is_asked(other: Chunk) -> None:
    """Else a word in two pieces is asked about in two questions, and passes both."""
    asked: list[str] = []

    def note(text: str) -> bool:
        asked.append(text)
        return "swordfish" not in text

    pieces = [TextStart("0"), TextDelta("0", "It is sword"), other, TextDelta("0", "fish. ")]
    guarded = ops.of(*pieces, TextEnd("0")).pipe(ops.process(Guard(note)))
    with pytest.raises(TripWire):
        _ = [chunk async for chunk in ops.to_aiter(guarded)]
    assert asked == ["It is swordfish. "]
