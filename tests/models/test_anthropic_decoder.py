"""The Anthropic Messages protocol as servers speak it: how answers begin, end and go wrong."""

from __future__ import annotations

import json
import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.chunks import (
    Chunk,
    FinishChunk,
    ReasoningDelta,
    ResponseMetadata,
    TextDelta,
    ToolCall,
    ToolCallInputEnd,
    Usage,
)
from streampipe.errors import (
    AuthenticationError,
    IncompleteStreamError,
    InvalidRequestError,
    ModelError,
    OverloadedError,
    ProviderError,
    ProviderStreamError,
    RateLimitError,
    ServerError,
)
from streampipe.models.anthropic import AnthropicDecoder
from streampipe.testing._chunk_laws import unclosed
from tests.models.streams import JSON, answer, decoded, sse

Event = dict[str, Any]
STOP: Event = {"type": "message_stop"}


def begun(content: Any = (), **fields: Any) -> Event:
    """The event that begins a message."""
    message = {"id": "msg-1", "model": "m", "content": list(content), **fields}
    return {"type": "message_start", "message": message}


def opened(kind: str, index: int = 0, **fields: Any) -> Event:
    """The event that begins a block."""
    block = {"type": kind, **fields}
    return {"type": "content_block_start", "index": index, "content_block": block}


def piece(kind: str, index: int = 0, **fields: Any) -> Event:
    """An event with a piece of a block."""
    delta = {"type": kind, **fields}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def closed(index: int = 0) -> Event:
    """The event that ends a block."""
    return {"type": "content_block_stop", "index": index}


def reason(why: str | None = "end_turn", usage: Any = None, **fields: Any) -> Event:
    """The event that says why the answer ends."""
    return {"type": "message_delta", "delta": {"stop_reason": why, **fields}, "usage": usage}


def said(text: str, index: int = 0) -> list[Event]:
    """The events of a block of text."""
    return [opened("text", index, text=""), piece("text_delta", index, text=text), closed(index)]


def chunks_of(*events: Any) -> list[Chunk]:
    """The chunks of exactly these events."""
    return decoded([sse(*events, done=False)], AnthropicDecoder())


def answered(*events: Any) -> list[Chunk]:
    """The chunks of these events within a whole answer, metadata and finish left out."""
    return chunks_of(begun(), *events, reason(), STOP)[1:-1]


def finish_of(chunks: list[Chunk]) -> FinishChunk:
    """The last chunk."""
    finish = chunks[-1]
    assert isinstance(finish, FinishChunk)
    return finish


def test_the_order_of_chunks() -> None:
    """Metadata, then blocks as they come, each closed at its end, then the finish."""
    chunks = chunks_of(
        begun(usage={"input_tokens": 5, "output_tokens": 1}),
        {"type": "ping"},
        opened("thinking", 0, thinking="", signature=""),
        piece("thinking_delta", 0, thinking="hm"),
        piece("signature_delta", 0, signature="s"),
        closed(0),
        opened("text", 1, text=""),
        piece("text_delta", 1, text="I will"),
        closed(1),
        opened("tool_use", 2, id="1", name="f", input={}),
        piece("input_json_delta", 2, partial_json=""),
        piece("input_json_delta", 2, partial_json='{"a":'),
        piece("input_json_delta", 2, partial_json="1}"),
        closed(2),
        reason("tool_use", {"output_tokens": 7}),
        STOP,
    )
    assert [chunk.type for chunk in chunks] == [
        "response-metadata",
        "reasoning-start",
        "reasoning-delta",
        "reasoning-end",
        "text-start",
        "text-delta",
        "text-end",
        "tool-call-input-streaming-start",
        "tool-call-delta",
        "tool-call-delta",
        "tool-call-input-streaming-end",
        "tool-call",
        "finish",
    ]
    assert chunks[0] == ResponseMetadata("msg-1", "m", provider="anthropic")
    assert chunks[-2] == ToolCall("1", "f", {"a": 1})
    finish = finish_of(chunks)
    assert (finish.reason, finish.raw_reason) == ("tool-calls", "tool_use")
    assert finish.usage == Usage(5, 7)
    assert len({chunk.id for chunk in chunks if isinstance(chunk, TextDelta | ReasoningDelta)}) == 2


def test_blocks_may_be_open_side_by_side() -> None:
    """Each piece goes to the block of its index."""
    chunks = answered(
        opened("text", 0),
        opened("text", 1),
        piece("text_delta", 1, text="b"),
        piece("text_delta", 0, text="a"),
        closed(1),
        closed(0),
    )
    assert not unclosed(chunks)
    assert {c.id: c.text for c in chunks if isinstance(c, TextDelta)} == {"0": "a", "1": "b"}


@pytest.mark.parametrize(
    ("raw", "meant"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool-calls"),
        ("refusal", "content-filter"),
        ("pause_turn", "other"),
        ("compaction", "other"),
    ],
)
def test_finish_reasons(raw: str, meant: str) -> None:
    """Reasons are ours; what the provider wrote is kept beside them."""
    finish = finish_of(chunks_of(begun(), reason(raw), STOP))
    assert (finish.reason, finish.raw_reason) == (meant, raw)


def test_what_else_is_said_of_the_answer() -> None:
    """Raw usage, the stop sequence, a container and the like stand in the finish chunk."""
    finish = finish_of(
        chunks_of(
            begun(usage={"input_tokens": 3, "service_tier": "standard"}),
            {
                **reason("stop_sequence", {"output_tokens": 2}, stop_sequence="END"),
                "context_management": {"applied_edits": []},
            },
            reason(None, None, container={"id": "c"}, stop_details=None),
            STOP,
        )
    )
    assert finish.raw_reason == "stop_sequence", "null later takes nothing back"
    assert finish.provider_metadata == {
        "anthropic": {
            "usage": {"input_tokens": 3, "service_tier": "standard", "output_tokens": 2},
            "stop_sequence": "END",
            "container": {"id": "c"},
            "context_management": {"applied_edits": []},
        }
    }


@pytest.mark.parametrize(
    ("first", "last", "usage"),
    [
        pytest.param(
            {"input_tokens": 3, "output_tokens": 1}, {"output_tokens": 9}, Usage(3, 9), id="spread"
        ),
        pytest.param(
            {"input_tokens": 3}, {"input_tokens": 8, "output_tokens": 9}, Usage(8, 9), id="again"
        ),
        pytest.param(
            {"input_tokens": 3, "output_tokens": 1},
            {"input_tokens": None, "output_tokens": 9},
            Usage(3, 9),
            id="null",
        ),
        pytest.param({"input_tokens": 3, "output_tokens": 4}, None, Usage(3, 4), id="first only"),
        pytest.param(None, None, Usage(), id="none"),
        pytest.param(
            {"input_tokens": 2, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 400},
            {"output_tokens": 5, "output_tokens_details": {"thinking_tokens": 4}},
            Usage(432, 5, 437, 4, 30),
            id="cache and thinking",
        ),
    ],
)
def test_usage_is_a_running_total(first: Any, last: Any, usage: Usage) -> None:
    """What is told later counts; the cache's part of the input is input too."""
    assert finish_of(chunks_of(begun(usage=first), reason(usage=last), STOP)).usage == usage


# --- how messages begin --------------------------------------------------------------------


def test_a_message_that_begins_twice() -> None:
    """The second start is no news, even if it carries content."""
    twice = begun([{"type": "text", "text": "x"}])
    assert chunks_of(twice, twice, reason(), STOP) == chunks_of(twice, reason(), STOP)


def test_a_message_that_is_whole_when_it_begins() -> None:
    """Its blocks come as if they had been streamed, and its reason counts."""
    content: list[Event] = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "x"},
        {"type": "odd"},
        {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}},
    ]

    def streamed(index: int, **block: Any) -> list[Event]:
        return [opened(block.pop("type"), index, **block), closed(index)]

    whole = chunks_of(begun(content, stop_reason="tool_use", usage={"output_tokens": 3}), STOP)
    in_pieces = chunks_of(
        begun(),
        *(event for index, block in enumerate(content) for event in streamed(index, **block)),
        reason("tool_use", {"output_tokens": 3}),
        STOP,
    )
    assert whole == in_pieces
    assert answer(whole).text == "x"


@pytest.mark.parametrize("name", ["msg-2", "msg-1"])
def test_a_message_spliced_into_another(name: str) -> None:
    """What was open is closed, but a call that was half written is never made."""
    chunks = chunks_of(
        begun(usage={"input_tokens": 50, "cache_read_input_tokens": 9}),
        opened("text", 0),
        piece("text_delta", 0, text="no"),
        opened("tool_use", 1, id="1", name="f"),
        piece("input_json_delta", 1, partial_json="{}"),
        begun(id=name, usage={"input_tokens": 3}),
        *said("yes"),
        reason(usage={"output_tokens": 4}),
        STOP,
    )
    kinds = [chunk.type for chunk in chunks]
    assert kinds.count("response-metadata") == kinds.count("finish") == 1
    assert "tool-call" not in kinds
    assert ToolCallInputEnd("1") in chunks
    assert not unclosed(chunks)
    assert [c.id for c in chunks if isinstance(c, TextDelta)] == ["0", "1"]
    assert finish_of(chunks).usage == Usage(3, 4)


def test_a_stream_without_its_start() -> None:
    """Metadata comes first all the same."""
    chunks = chunks_of(*said("x"), reason(), STOP)
    assert chunks[0] == ResponseMetadata(provider="anthropic")
    assert answer(chunks).text == "x"


def test_warnings_are_told_with_the_metadata() -> None:
    """What the request left out, and whose model it is."""
    chunks = decoded([sse(STOP, done=False)], AnthropicDecoder("acme", ["no seed"]))
    assert chunks[0] == ResponseMetadata(provider="acme", warnings=["no seed"])


# --- how streams end -----------------------------------------------------------------------


def test_the_end_without_a_reason() -> None:
    """The protocol's end counts, though nobody said why."""
    finish = finish_of(chunks_of(begun(), STOP))
    assert (finish.reason, finish.raw_reason) == ("other", None)


@pytest.mark.parametrize(
    "events", [[], [begun()], [begun(), *said("x")], [begun(), *said("x"), reason()]]
)
def test_a_stream_that_just_stops_is_an_error(events: list[Event]) -> None:
    """Even behind a reason: the answer is incomplete, and asking again may help."""
    with pytest.raises(IncompleteStreamError, match="message_stop") as caught:
        chunks_of(*events)
    assert caught.value.is_retryable


def test_the_decoder_says_when_it_is_done() -> None:
    """After `message_stop` nothing counts any more, not even garbage."""
    decoder = AnthropicDecoder()
    assert not decoder.done
    assert decoder.feed(orjson.dumps(STOP).decode())
    assert decoder.done
    assert decoder.feed("garbage") == decoder.end() == []


@pytest.mark.parametrize(
    ("event", "named"),
    [
        ("no object", "JSON object"),
        ({"type": 1}, "^type must be str"),
        ({"type": "message_start", "message": []}, "^message must be dict"),
        (begun(id=1), "message.id"),
        (begun(model=[]), "message.model"),
        (begun(usage=7), "usage"),
        (begun([1]), "content_block must be dict"),
        ({"type": "message_start", "message": {"content": {}}}, "message.content"),
        ({**opened("text"), "index": "0"}, "index"),
        ({**opened("text"), "content_block": 1}, "content_block"),
        (opened("text", text=1), "content_block.text"),
        (opened("text", citations=[1]), r"content_block.citations\[\]"),
        (opened("thinking", thinking=1), "content_block.thinking"),
        (opened("thinking", signature=1), "content_block.signature"),
        (opened("tool_use", id="1"), "content_block.name is missing"),
        (opened("tool_use", id=1, name="f"), "content_block.id"),
        (opened("tool_use", id="1", name="f", input=[1]), "content_block.input"),
        (piece("text_delta", text="x"), "block 0, which is not open"),
        ({**closed(), "index": 0.5}, "index"),
        (reason(1), "stop_reason"),  # type: ignore[arg-type]  # that is the point
        (reason(usage=[1]), "usage"),
    ],
)
def test_what_the_protocol_does_not_allow(event: Any, named: str) -> None:
    """The field at fault is named."""
    with pytest.raises(ProviderStreamError, match=named):
        chunks_of(event, STOP)


@pytest.mark.parametrize(
    ("kind", "delta", "named"),
    [
        ("text", {"type": "text_delta", "text": 1}, "delta.text"),
        ("text", {"type": "citations_delta", "citation": "x"}, "delta.citation"),
        ("thinking", {"type": "thinking_delta", "thinking": {}}, "delta.thinking"),
        ("thinking", {"type": "signature_delta", "signature": 1}, "delta.signature"),
        ("tool_use", {"type": "input_json_delta", "partial_json": {}}, "delta.partial_json"),
        ("text", "x", "^delta must be dict"),
    ],
)
def test_pieces_that_the_protocol_does_not_allow(kind: str, delta: Any, named: str) -> None:
    """The field at fault is named."""
    event = {"type": "content_block_delta", "index": 0, "delta": delta}
    with pytest.raises(ProviderStreamError, match=named):
        chunks_of(opened(kind, id="1", name="f"), event)


@pytest.mark.parametrize(
    ("kind", "error", "retryable"),
    [
        ("overloaded_error", OverloadedError, True),
        ("rate_limit_error", RateLimitError, True),
        ("api_error", ServerError, True),
        ("invalid_request_error", InvalidRequestError, False),
        ("authentication_error", AuthenticationError, False),
        ("new_error", ProviderError, False),
    ],
)
def test_an_error_in_the_stream(kind: str, error: type[ModelError], *, retryable: bool) -> None:
    """A 200 that turns into an error says what the provider said."""
    event = {"type": "error", "error": {"type": kind, "message": "told"}}
    with pytest.raises(error, match="told") as caught:
        chunks_of(begun(), event)
    assert caught.value.is_retryable is retryable


def test_an_error_that_says_nothing() -> None:
    """It is an error all the same."""
    with pytest.raises(ProviderError):
        chunks_of(begun(), {"type": "error"})


TOOL = {"id": "1", "name": "f"}
GOOD = [
    event
    for index in (0, 1)
    for event in (
        opened("text", index, text="a", citations=[{"url": "b"}]),
        opened("thinking", index, thinking="a", signature="b"),
        opened("tool_use", index, **TOOL, input={}),
        opened("server_tool_use", index, **TOOL, input={"a": 1}),
        opened("mcp_tool_result", index, tool_use_id="1", content=[], is_error=True),
        opened("redacted_thinking", index, data="a"),
        opened("compaction", index, content=None),
        piece("text_delta", index, text="a"),
        piece("thinking_delta", index, thinking="a"),
        piece("signature_delta", index, signature="a"),
        piece("input_json_delta", index, partial_json="{}"),
        piece("citations_delta", index, citation={"url": "a"}),
        closed(index),
    )
] + [
    begun(id="1"),
    begun([{"type": "tool_use", **TOOL}, {"type": "text", "text": "a"}], id="2"),
    reason(usage={"output_tokens": 1, "output_tokens_details": {"thinking_tokens": 1}}),
    {"type": "ping"},
    {"type": "odd"},
]
FOLLOWS = {
    "tool-call-input-streaming-start": "",
    "tool-call-delta": "open",
    "tool-call-input-streaming-end": "open",
    "tool-call": "written",
}
BECOMES = dict(zip(FOLLOWS, ("open", "open", "written", "made"), strict=True))


@given(st.lists(st.sampled_from(GOOD), max_size=12))
def test_any_order_of_events(events: list[Event]) -> None:
    """Whatever comes after whatever, it is refused, or parts and calls open and close in order."""
    try:
        chunks = chunks_of(*events, STOP)
    except ProviderStreamError:
        return
    assert [chunk.type for chunk in chunks].count("finish") == 1
    assert chunks[0].type == "response-metadata"
    assert chunks[-1].type == "finish"
    assert not unclosed(chunks)
    calls: dict[str, str] = {}
    for chunk in chunks:
        if chunk.type in FOLLOWS:
            name = chunk.to_wire()["payload"]["toolCallId"]
            assert calls.get(name, "") == FOLLOWS[chunk.type], chunk.type
            calls[name] = BECOMES[chunk.type]
    assert "open" not in calls.values()


@st.composite
def spoilt(draw: st.DrawFn) -> Event:
    """A good event, one value of which is some JSON."""
    event: Event = json.loads(json.dumps(draw(st.sampled_from(GOOD))))
    inside = [value for value in event.values() if isinstance(value, dict)]
    place = draw(st.sampled_from([event, *inside]))
    place[draw(st.sampled_from(sorted(place)))] = draw(JSON)
    return event


@given(st.lists(st.sampled_from(GOOD) | spoilt() | JSON, max_size=8))
def test_nothing_but_model_errors(events: list[Any]) -> None:
    """Whatever JSON comes, it is decoded or refused; the decoder itself never breaks."""
    decoder = AnthropicDecoder()
    for event in [*events, STOP]:
        try:
            decoder.feed(json.dumps(event))
        except ModelError:
            continue  # what follows is tried all the same


@pytest.mark.parametrize(
    ("start", "each"),
    [
        (opened("text"), piece("text_delta", text="word ")),
        (opened("text"), piece("citations_delta", citation={"url": "x"})),
        (opened("thinking"), piece("thinking_delta", thinking="word ")),
        (opened("tool_use", id="1", name="f"), piece("input_json_delta", partial_json="1,")),
        ({"type": "ping"}, opened("text")),
    ],
    ids=["text", "citations", "thinking", "arguments", "blocks"],
)
def test_time_is_linear(start: Event, each: Event) -> None:
    """Ten times the events take about ten times as long."""
    first, text = (orjson.dumps(event).decode() for event in (start, each))
    last = orjson.dumps(STOP).decode()

    def seconds(events: int) -> float:
        best = 9.0
        for _ in range(3):
            decoder = AnthropicDecoder()
            begin = time.process_time()  # a busy machine does not count
            decoder.feed(first)
            for _ in range(events):
                decoder.feed(text)
            decoder.feed(last)
            best = min(best, time.process_time() - begin)
        return best

    assert seconds(5_000) < 30 * seconds(500)
