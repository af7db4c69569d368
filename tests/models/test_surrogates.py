"""Halves of characters: joined where both come, replaced where one stands alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.chunks import Chunk, ReasoningDelta, TextDelta, ToolCall, ToolCallDelta
from streampipe.errors import ProviderStreamError
from streampipe.messages._json import all_whole, json_text, whole
from streampipe.models._protocol.decoding import EventDecoder
from streampipe.models._protocol.surrogates import loads
from streampipe.models.anthropic import AnthropicDecoder
from streampipe.models.google import GoogleDecoder
from streampipe.models.openai_chat import ChatDecoder
from streampipe.models.openai_responses import ResponsesDecoder
from streampipe.testing._chunk_laws import unclosed
from tests.models import test_anthropic_decoder as anthropic
from tests.models import test_google_decoder as google
from tests.models import test_responses_decoder as responses
from tests.models.streams import delta, event

UNITS = st.lists(
    st.sampled_from(["a", "\u00e9", "\ud83d\ude00", "\ud83d", "\ude00"]), min_size=1, max_size=6
).map("".join)
"""Texts of whole characters, and of halves."""


def fed(decoder: EventDecoder, *events: Any) -> list[Chunk]:
    """The chunks of events, halves escaped as JSON has them."""
    chunks = [chunk for e in events for chunk in decoder.feed(json.dumps(e))]
    return chunks + decoder.end()


def by_chat(pieces: list[str]) -> list[Chunk]:
    """Chunks of an answer with these pieces of text in the chat protocol."""
    events = [event({"content": piece}) for piece in pieces]
    return fed(ChatDecoder(), *events, event(reason="stop"))


def by_responses(pieces: list[str]) -> list[Chunk]:
    """The same in the Responses protocol."""
    said = [responses.said(piece) for piece in pieces]
    return fed(ResponsesDecoder(), responses.CREATED, *said, responses.completed())


def by_anthropic(pieces: list[str]) -> list[Chunk]:
    """The same in the Anthropic protocol."""
    said = [anthropic.piece("text_delta", text=piece) for piece in pieces]
    block = [anthropic.opened("text"), *said, anthropic.closed()]
    return fed(AnthropicDecoder(), anthropic.begun(), *block, anthropic.reason(), anthropic.STOP)


def by_google(pieces: list[str]) -> list[Chunk]:
    """The same in Google's protocol."""
    said = [google.event({"text": piece}) for piece in pieces]
    return fed(GoogleDecoder(), *said, google.event(reason="STOP"))


@pytest.mark.parametrize("told", [by_chat, by_responses, by_anthropic, by_google])
@given(st.lists(UNITS, min_size=1, max_size=4))
def test_text_comes_out_whole(told: Any, pieces: list[str]) -> None:
    """However it is cut: what its pieces come to, and never half a character in a chunk."""
    chunks = told(pieces)
    texts = [chunk.text for chunk in chunks if isinstance(chunk, TextDelta)]
    assert "".join(texts) == whole("".join(pieces))
    assert all(texts)
    assert all(text.encode() for text in texts)
    assert not unclosed(chunks)


def test_parts_do_not_mix() -> None:
    """Each part waits for its own other half."""
    chunks = fed(
        ResponsesDecoder(),
        responses.CREATED,
        responses.said("\ud83d", 0),
        responses.said("\ud83d", 1),
        responses.said("\ude01", 1),
        responses.said("\ude00", 0),
        responses.completed(),
    )
    texts: dict[str, str] = {}
    for chunk in chunks:
        if isinstance(chunk, TextDelta):
            texts[chunk.id] = texts.get(chunk.id, "") + chunk.text
    assert sorted(texts.values()) == ["\U0001f600", "\U0001f601"]


def test_reasoning_and_arguments_too() -> None:
    """In the chunks of pieces as in the whole call; a half of an argument is replaced."""
    chunks = fed(
        ChatDecoder(),
        event({"reasoning": "a\ud83d"}),
        event({"reasoning": "\ude00"}),
        event({"reasoning": "\ud83d"}),
        event({"tool_calls": [delta('{"a":"\ud83d', index=0, id="1", name="f")]}),
        event({"tool_calls": [delta('\ude00\\ud83d"}', index=0)]}),
        event({"tool_calls": [delta('{"a":"\ud83d', index=1, id="2", name="f")]}),
        event(reason="tool_calls"),
    )
    reasoning = "".join(c.text for c in chunks if isinstance(c, ReasoningDelta))
    assert reasoning == "a\U0001f600\ufffd"
    one, two = [chunk for chunk in chunks if isinstance(chunk, ToolCall)]
    assert one.args == {"a": "\U0001f600\ufffd"}
    assert (two.args, two.args_text) == (None, '{"a":"\ufffd')
    pieces = [c.args_text_delta for c in chunks if isinstance(c, ToolCallDelta)]
    assert "".join(pieces) == '{"a":"\U0001f600\\ud83d"}{"a":"\ufffd'


def test_a_custom_tools_text() -> None:
    """Its input is bare text, which becomes JSON with both halves."""
    item = {"type": "custom_tool_call", "id": "i", "call_id": "x", "name": "f", "input": ""}
    pieces = ["a\ud83d", "\ude00b"]
    chunks = fed(
        ResponsesDecoder(),
        responses.CREATED,
        responses.added(item),
        *(responses.delta("custom_tool_call_input", p, item_id="i") for p in pieces),
        responses.done({**item, "input": "a\U0001f600b"}),
        responses.completed(),
    )
    text = "".join(c.args_text_delta for c in chunks if isinstance(c, ToolCallDelta))
    assert json.loads(text) == {"input": "a\U0001f600b"}


@given(st.recursive(UNITS, lambda inner: st.lists(inner) | st.dictionaries(UNITS, inner)))
def test_values_come_out_whole(value: Any) -> None:
    """A result of a tool can be written, whatever is in it; what is whole stays as it is."""
    text = json_text(value)
    assert text.encode()
    assert json.loads(text) == all_whole(value) == all_whole(all_whole(value))
    assert loads(json.dumps(["\ud83d", value])) == ["\ufffd", all_whole(value)]


@pytest.mark.parametrize(
    "data",
    ['{"a": "\\ud83d"', '{"a": "\\ud83d", "b": NaN}', '["\\ud83d"]', '{"a": "\\uzzzz"}', "{"],
)
def test_what_is_no_json_stays_none(data: str) -> None:
    """Half a character excuses nothing else."""
    with pytest.raises(ProviderStreamError, match="an event"):
        ChatDecoder().feed(data)


def test_an_event_of_half_characters_may_still_be_too_deep() -> None:
    """The looser parser has the same limit."""
    data = '{"a": "\\ud83d", "b": ' + "[" * 300 + "]" * 300 + "}"
    with pytest.raises(ProviderStreamError, match="an event"):
        ChatDecoder().feed(data)
