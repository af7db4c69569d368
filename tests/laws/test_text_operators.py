"""Law 5 for the text operators in a run: what everybody gets does not depend on the cutting."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe import Agent, Chunk, RunResult, TextDelta, TextEnd, TextStart
from streampipe import operators as ops
from streampipe.testing import ScriptedModel
from streampipe.text import Rule, pii, presets, redacted, secrets, urls

KEY = "sk-" + "4f9a77e1" * 3  # put together here, so that no scanner takes it for a key
WORDS = ["mail ", "joe@host.org", " at 192.168.0.1,", KEY, " or ", "<think>", "hm</think>"]
WORDS += ["\u00e9", "\U0001f469\u200d\U0001f467", "\n", "STOP"]
RULES = (*pii, *secrets, *urls)

texts = st.lists(st.sampled_from(WORDS), max_size=8).map("".join)
sizes = st.lists(st.integers(1, 12), max_size=40)
OPERATORS: dict[str, Any] = {
    "redact": ops.redact(RULES),
    "replace": ops.replace("mail", "letter"),
    "detect": ops.detect(RULES, lambda match: None),
    "rechunk": ops.rechunk("grapheme"),
    "stop_at": ops.stop_at("STOP"),
    "limit_text": ops.limit_text(chars=20),
    "split_tags": ops.split_tags("think"),
    "block": ops.block(Rule("key", KEY)),
    "all": ops.pipe(ops.split_tags("think"), ops.redact(RULES), ops.stop_at("STOP"), ops.rechunk()),
}


def cut(text: str, lengths: list[int]) -> list[str]:
    """A text in pieces of these lengths, none empty."""
    pieces: list[str] = []
    for length in lengths:
        if text:
            pieces.append(text[:length])
        text = text[length:]
    return [*pieces, text] if text else pieces


def ran(operator: Any, pieces: list[str]) -> tuple[list[Chunk], RunResult]:
    """A run whose model says these pieces."""

    async def run() -> tuple[list[Chunk], RunResult]:
        agent = Agent(model=ScriptedModel([pieces]), output_processors=[operator])
        async with agent.stream("hi") as stream:
            chunks = [chunk async for chunk in stream]
            return chunks, await stream.result()

    return asyncio.run(run())


def shown(chunks: list[Chunk]) -> str:
    """What a client reads."""
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))


@pytest.mark.parametrize("name", OPERATORS)
@given(text=texts, lengths=sizes)
def test_a_run_does_not_depend_on_the_cutting(name: str, text: str, lengths: list[int]) -> None:
    """Client, result and reasoning are those of the text in one piece; every part is closed."""
    operator = OPERATORS[name]
    chunks, result = ran(operator, cut(text, lengths))
    whole, expected = ran(operator, [text] if text else [])
    assert shown(chunks) == shown(whole)
    assert (result.text, result.reasoning, result.tripwire) == (
        expected.text,
        expected.reasoning,
        expected.tripwire,
    )
    if result.tripwire is None:
        assert shown(chunks) == result.text
    starts = [c.id for c in chunks if isinstance(c, TextStart)]
    assert starts == [c.id for c in chunks if isinstance(c, TextEnd)]


@given(text=texts, lengths=sizes)
def test_a_redacted_run_is_the_redacted_text(text: str, lengths: list[int]) -> None:
    """And nothing that a rule finds is in anything that the run gives away."""
    chunks, result = ran(OPERATORS["redact"], cut(text, lengths))
    assert shown(chunks) == result.text == redacted(text, RULES)
    if KEY not in result.text:  # the presets leave what stands in the middle of a word
        assert KEY not in f"{chunks}{result.messages}{result.steps}"


@given(text=texts, lengths=sizes)
def test_a_blocked_run_shows_nothing_of_the_match(text: str, lengths: list[int]) -> None:
    """What came before it may be seen; the result has nothing of the step."""
    chunks, result = ran(OPERATORS["block"], cut(text, lengths))
    assert shown(chunks) == text.partition(KEY)[0]
    if KEY in text:
        assert result.tripwire is not None
        assert result.text == ""
        assert "sk-" not in f"{chunks}{result}"


def test_the_presets_have_names() -> None:
    """They are what the texts above are made for."""
    assert dict(presets) == {"pii": pii, "secrets": secrets, "urls": urls}
