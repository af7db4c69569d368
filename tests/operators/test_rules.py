"""Rules over a stream: redact, replace, block and detect, for any way of cutting the text."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe import (
    Agent,
    Chunk,
    DataChunk,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    TripWire,
)
from streampipe import operators as ops
from streampipe.errors import ConfigurationError, OperatorError
from streampipe.testing import ScriptedModel
from streampipe.text import Rule
from tests.operators.sources import elements, pieces, through

KEY = r"sk-[a-z0-9]{4,}"
MAIL = Rule("mail", r"(?<![a-z])[a-z]+@[a-z]+\.[a-z]+", "[MAIL]")
TEXT = "write to ann@host.org or use sk-abc123, not sk-1"
CLEAN = "write to [MAIL] or use [KEY], not sk-1"

cuts = st.lists(st.integers(1, 9), max_size=40)
texts = st.lists(st.sampled_from(["sk-", "ab1", "c4", " ", "ann@", "host", ".org", "s", "k"])).map(
    "".join
)


def said(items: list[Any]) -> str:
    """The text of chunks."""
    return "".join(item.text for item in items if isinstance(item, TextDelta))


@given(texts, cuts)
def test_redact_gives_what_the_whole_text_gives(text: str, sizes: list[int]) -> None:
    """Each rule's matches are those of `re`; the two never overlap here."""
    whole = re.sub(MAIL.pattern, "[MAIL]", re.sub(KEY, "[KEY]", text))
    redact = ops.redact([Rule("key", KEY, "[KEY]"), MAIL])
    if "@" not in text or "sk-" not in text:  # else a mail's name may be part of a key
        assert said(through(redact, pieces(text, sizes)).items) == whole


@given(cuts)
def test_every_part_has_a_text_of_its_own(sizes: list[int]) -> None:
    """A key is not made of two texts, and reasoning is covered too."""
    chunks = [
        TextDelta("a", "sk-ab"),
        TextDelta("b", "12"),
        ReasoningDelta("a", "sk-"),
        TextDelta("a", "12 "),
        ReasoningDelta("a", "abcd "),
        *pieces(TEXT, sizes),
    ]
    out: list[Any] = through(ops.redact(KEY, "[KEY]"), chunks).items
    by_id = {key: "".join(c.text for c in out if (c.type, getattr(c, "id", "")) == key) for key in (
        ("text-delta", "a"), ("text-delta", "b"), ("reasoning-delta", "a"), ("text-delta", "0"),
    )}  # fmt: skip
    assert list(by_id.values()) == [
        "[KEY] ",
        "12",
        "[KEY] ",
        "write to ann@host.org or use [KEY], not sk-1",
    ]


def test_nothing_of_a_match_has_left_before_it_is_known() -> None:
    """Data between its pieces waits behind it; a tool call ends the text that it may be in."""
    chunks = [
        TextDelta("0", "the sk-ab"),
        DataChunk("data-x", 1),
        TextDelta("0", "12"),
        ToolCall("t", "n", {}),
        TextDelta("0", " key"),
    ]
    out = through(ops.redact(KEY, "[KEY]"), chunks).items
    assert [getattr(c, "text", c.type) for c in out] == [
        "the ",
        "[KEY]",
        "data-x",
        "tool-call",
        " key",
    ]


def test_prose_passes_as_the_same_chunks() -> None:
    """A rule that cannot begin costs no new object."""
    chunks: list[Chunk] = [TextDelta("0", "plain ", {"n": 1}), TextDelta("0", "text.")]
    out = through(ops.redact(KEY), chunks).items
    assert all(a is b for a, b in zip(out, chunks, strict=True))


@pytest.mark.parametrize(
    ("given_rules", "replacement", "clean"),
    [
        (KEY, None, "write to ann@host.org or use [REDACTED], not sk-1"),
        (MAIL, None, "write to [MAIL] or use sk-abc123, not sk-1"),
        ((KEY, MAIL), None, "write to [MAIL] or use [REDACTED], not sk-1"),
        ((KEY, MAIL), "*", "write to * or use *, not sk-1"),
        (KEY, str.upper, "write to ann@host.org or use SK-ABC123, not sk-1"),
    ],
)
def test_rules_may_be_given_in_many_forms(given_rules: Any, replacement: Any, clean: str) -> None:
    """A pattern, a rule or several; one replacement for all, or each its own."""
    redact = ops.redact(given_rules, replacement)
    assert said(through(redact, pieces(TEXT, [3, 3, 20])).items) == clean


@given(cuts)
def test_replace_takes_what_it_is_given_as_it_is(sizes: list[int]) -> None:
    """No group references; a function gets the match."""
    assert said(through(ops.replace("use", r"\1"), pieces(TEXT, sizes)).items) == TEXT.replace(
        "use", r"\1"
    )
    loud = ops.replace(r"USE|\bOR\b", lambda text: f"<{text}>", flags=re.IGNORECASE)
    assert said(through(loud, pieces(TEXT, sizes)).items) == TEXT.replace("use", "<use>").replace(
        " or ", " <or> "
    )


@given(texts, cuts)
def test_block_lets_nothing_of_a_match_out(text: str, sizes: list[int]) -> None:
    """What is before it leaves; who blocked, and where, is told without the text."""
    witness = through(ops.block(Rule("key", KEY)), pieces(text, sizes))
    found = re.search(KEY, text)
    if found is None:
        assert (said(witness.items), witness.ends) == (text, ["completed"])
        return
    (wire,) = witness.ends
    assert isinstance(wire, TripWire)
    assert text[: found.start()].startswith(said(witness.items))
    assert said(witness.items) == text[: found.start()]
    assert wire.metadata == {"rule": "key", "offset": found.start(), "length": len(found[0])}
    assert (wire.processor_id, found[0] in str(wire.reason)) == ("block", False)


@given(texts, cuts)
def test_detect_tells_of_every_match_and_changes_nothing(text: str, sizes: list[int]) -> None:
    """With the text only for who asks for it; nothing is held."""
    chunks = pieces(text, sizes)
    found: list[ops.Match] = []
    bare: list[ops.Match] = []
    out = through(ops.detect(KEY, found.append, with_text=True), chunks).items
    through(ops.detect(KEY, bare.append), chunks)
    assert out == chunks
    assert [(m.offset, m.text) for m in found] == [
        (m.start(), m[0]) for m in re.finditer(KEY, text)
    ]
    assert [(m.rule, m.offset, m.length, m.text) for m in bare] == [
        ("pattern 1", m.offset, m.length, None) for m in found
    ]


# --- in a run ------------------------------------------------------------------------------


async def test_a_redacted_run_shows_and_keeps_the_clean_text() -> None:
    """Client, result and messages are fed by the same stream."""
    model = ScriptedModel([list(TEXT)])
    agent = Agent(model=model, output_processors=[ops.redact([Rule("key", KEY, "[KEY]"), MAIL])])
    async with agent.stream("hi") as run:
        seen = "".join([text async for text in run.text_stream])
        result = await run.result()
    assert seen == result.text == result.messages[-1].text == CLEAN


async def test_a_blocked_run_names_the_rule() -> None:
    """And keeps nothing of the step; with `retry` the model gets another try."""
    agent = Agent(
        model=ScriptedModel([list(TEXT), ["fine"]]),
        output_processors=[ops.block(Rule("key", KEY), retry=True)],
        max_processor_retries=1,
    )
    result = await agent.generate("hi")
    assert (result.text, result.retries) == ("fine", 1)
    blocked = await agent.generate("hi", model=ScriptedModel([list(TEXT)]), max_processor_retries=0)
    assert blocked.text == ""
    assert blocked.tripwire is not None
    assert blocked.tripwire.metadata["rule"] == "key"


# --- bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize("make", [ops.redact, ops.block, lambda r: ops.detect(r, print)])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("(", "rule 'pattern 1': the pattern does not compile"),
        ([KEY, r"(a)\1"], "rule 'pattern 2'"),
        ("a*", "it can match nothing at all"),
        ([], "at least one rule"),
        ([3], "takes patterns and rules, not 3"),
    ],
)
def test_a_bad_rule_is_refused_when_it_is_given(make: Any, bad: Any, message: str) -> None:
    """By its name."""
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        make(bad)


async def test_a_match_without_end_fails_closed() -> None:
    """Past `max_match` the stream fails, and nothing of the match has left."""
    endless = ops.redact(Rule("endless", "<[^>]*>", max_match=50))
    seen: list[Chunk] = []
    source = ops.of(*pieces("a <" + "b" * 100, [3] * 30)).pipe(endless, ops.tap(seen.append))
    with pytest.raises(OperatorError, match=r"'redact'.*rule 'endless'.*max_match"):
        await elements(source)
    assert said(seen) == "a "


async def test_functions_that_raise_are_named_without_the_text() -> None:
    """A replacement, a check and a listener."""

    def broken(text: str) -> Any:
        raise ValueError(text)

    for operator in (
        ops.redact(KEY, broken),
        ops.redact(Rule("key", KEY, check=broken)),
        ops.detect(KEY, lambda match: broken("sk-abc123")),
    ):
        with pytest.raises(OperatorError) as caught:
            await elements(ops.of(*pieces("use sk-abc123 now", [])).pipe(operator))
        assert "sk-abc" not in str(caught.value)


def test_an_unknown_part_is_refused() -> None:
    """Tool arguments are JSON, not text: they are not covered."""
    with pytest.raises(ConfigurationError, match="redact: parts must be some of text, reasoning"):
        ops.redact(KEY, parts=["tool-args"])  # type: ignore[list-item]  # the point
