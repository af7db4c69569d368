"""Strategies: what is drawn is well-formed, varied, and plain when it is smallest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import regex  # type: ignore[import-untyped]  # it ships no types
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from streampipe.agent import Agent
from streampipe.chunks import (
    Chunk,
    FinishChunk,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    chunk_from_wire,
)
from streampipe.errors import ConfigurationError, ModelError
from streampipe.messages import MessageList, ToolCallPart, ToolResultPart
from streampipe.testing import (
    Call,
    Failure,
    ScriptedModel,
    Turn,
    agent_scripts,
    chunk_streams,
    chunkings,
    message_lists,
    run_virtual,
    texts,
)
from streampipe.testing._chunk_laws import unclosed


def can_draw(strategy: st.SearchStrategy[Any], wanted: Callable[[Any], object]) -> None:
    """Fail unless an example of this kind is found soon."""
    limits = settings(
        max_examples=2_000,
        phases=[Phase.generate],  # any will do, it need not be the smallest
        suppress_health_check=[*HealthCheck],  # pyright: ignore[reportArgumentType]  # an enum
        database=None,
    )
    find(strategy, lambda drawn: bool(wanted(drawn)), settings=limits)


@given(texts())
def test_texts_can_be_sent(text: str) -> None:
    """Every text is valid UTF-8."""
    assert text.encode().decode() == text


NASTY: dict[str, Callable[[Any], object]] = {
    "CRLF": lambda text: "\r\n" in text,
    "NUL": lambda text: "\0" in text,
    "joiner": lambda text: "\u200d" in text,
    "CJK": lambda text: regex.search(r"\p{Han}", text),
    "right to left": lambda text: regex.search(r"\p{Arabic}|\p{Hebrew}", text),
    "combining mark": lambda text: regex.search(r"\p{M}", text),
    "secret": lambda text: "sk-" in text,
    "prose": lambda text: "The sky " in text,
    "nothing": lambda text: not text,
}


@pytest.mark.parametrize("wanted", NASTY.values(), ids=NASTY)
def test_texts_are_nasty(wanted: Callable[[Any], object]) -> None:
    """What breaks code that was written for prose comes up."""
    can_draw(texts(), wanted)


@given(st.data(), texts())
def test_a_cutting_joins_to_its_text(data: st.DataObject, text: str) -> None:
    """However it was cut, nothing is lost and nothing is new."""
    assert "".join(data.draw(chunkings(text))) == text


CUTTINGS: dict[str, Callable[[Any], object]] = {
    "empty pieces": lambda pieces: "" in pieces,
    "whole": lambda pieces: len(pieces) == 1,
    "characters": lambda pieces: pieces == list("e\u0301\r\nx"),
    "within clusters": lambda pieces: (
        [piece for piece in pieces if piece] == ["e", "\u0301\r", "\nx"]
    ),
    "between clusters": lambda pieces: [p for p in pieces if p] == ["e\u0301\r\n", "x"],
}


@pytest.mark.parametrize("wanted", CUTTINGS.values(), ids=CUTTINGS)
def test_cuttings_are_of_every_kind(wanted: Callable[[Any], object]) -> None:
    """Whole, at every character, within clusters only, anywhere, with empty pieces."""
    can_draw(chunkings("e\u0301\r\nx"), wanted)


@given(chunk_streams(finished=True))
def test_a_stream_is_one_that_a_model_may_send(stream: list[Chunk]) -> None:
    """Parts open and close; calls carry what their pieces say; a finish comes last."""
    assert not unclosed(stream)
    assert [chunk for chunk in stream if isinstance(chunk, FinishChunk)] == stream[-1:]
    assert stream[-1].reason in ("stop", "tool-calls")  # type: ignore[attr-defined]  # a finish
    assert [chunk_from_wire(chunk.to_wire()) for chunk in stream] == stream
    for call in stream:
        if isinstance(call, ToolCall):
            pieces = [
                chunk.args_text_delta
                for chunk in stream
                if isinstance(chunk, ToolCallDelta) and chunk.tool_call_id == call.tool_call_id
            ]
            assert "".join(pieces)


@given(chunk_streams())
def test_provider_metadata_is_told_apart(stream: list[Chunk]) -> None:
    """No two chunks share a key of metadata."""
    keys = [key for chunk in stream for key in getattr(chunk, "provider_metadata", None) or ()]
    assert len(keys) == len(set(keys))


STREAMS: dict[str, Callable[[Any], object]] = {
    "interleaved": lambda stream: (
        [c.id for c in stream if isinstance(c, TextDelta)][:3] == ["text-0", "text-1", "text-0"]
    ),
    "metadata": lambda stream: any(getattr(c, "provider_metadata", None) for c in stream),
    "many kinds": lambda stream: {c.type for c in stream} >= {"text-delta", "tool-call", "source"},
    "empty": lambda stream: not stream,
}


@pytest.mark.parametrize("wanted", STREAMS.values(), ids=STREAMS)
def test_streams_are_of_every_kind(wanted: Callable[[Any], object]) -> None:
    """Interleaved, with metadata, with several kinds of part, empty."""
    can_draw(chunk_streams(), wanted)


@given(chunk_streams(texts=st.just("x"), kinds=("text",), max_parts=1, finished=False))
def test_a_stream_says_what_it_is_told_to(stream: list[Chunk]) -> None:
    """Texts, kinds and number of parts are the caller's."""
    said = "".join(chunk.text for chunk in stream if isinstance(chunk, TextDelta))
    assert said == ("x" if stream else "")


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: chunk_streams(kinds=("poem",)), "poem"),
        (lambda: chunk_streams(kinds=()), r"\[\]"),
        (lambda: agent_scripts(max_turns=0), "max_turns"),
    ],
    ids=["kind", "kinds", "turns"],
)
def test_a_bad_option_is_refused(make: Callable[[], object], what: str) -> None:
    """At once, by its name."""
    with pytest.raises(ConfigurationError, match=what):
        make()


@given(message_lists())
def test_a_conversation_can_be_prompted_with(messages: MessageList) -> None:
    """It ends with a user's message, has unique ids, and every call in it has its result."""
    assert messages.all[-1].role == "user"
    assert len({message.id for message in messages}) == len(messages)
    asked = [part for message in messages.prompt() for part in message.content]
    calls = [part.tool_call_id for part in asked if isinstance(part, ToolCallPart)]
    assert calls == [part.tool_call_id for part in asked if isinstance(part, ToolResultPart)]
    assert len(messages.remembered) + len(messages.input) == len(messages)


@given(agent_scripts(tools=("look",), failures=True))
def test_a_script_can_be_played(script: list[Turn]) -> None:
    """A model plays each of its turns; only turns that are to fail do."""
    fails = any(isinstance(piece, Failure) for turn in script for piece in turn.pieces)

    async def play() -> None:
        model = ScriptedModel(script)
        for _ in script:
            try:
                await Agent(model=model, max_steps=1).generate("hi")
            except (ModelError, RuntimeError):
                assert fails or any(turn.incomplete for turn in script)
        model.assert_complete()

    run_virtual(play())


@given(agent_scripts(tools=("look",)))
def test_the_last_turn_calls_no_tool(script: list[Turn]) -> None:
    """So that a run of the script comes to its end."""
    assert not any(isinstance(piece, Call) for piece in script[-1].pieces)
    assert not any(isinstance(piece, Failure) for turn in script for piece in turn.pieces)
