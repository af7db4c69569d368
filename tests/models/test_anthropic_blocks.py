"""The content blocks of the Anthropic Messages protocol: each kind by itself."""

from __future__ import annotations

from typing import Any

import pytest

from streampipe.chunks import (
    RawChunk,
    ReasoningDelta,
    ReasoningEnd,
    RedactedReasoning,
    ResponseMetadata,
    SourceChunk,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolCallDelta,
    ToolCallInputEnd,
    ToolCallInputStart,
    ToolResult,
)
from streampipe.models._protocol.encoding import digest_of
from streampipe.testing._chunk_laws import unclosed
from tests.models.test_anthropic_decoder import (
    STOP,
    Event,
    answered,
    begun,
    chunks_of,
    closed,
    opened,
    piece,
    said,
)

# --- text ---------------------------------------------------------------------------------


def test_text() -> None:
    """What a block begins with is a piece of it; an empty piece is none."""
    chunks = answered(
        opened("text", text="Hel"),
        piece("text_delta", text=""),
        piece("text_delta", text="lo"),
        closed(),
    )
    assert chunks == [TextStart("0"), TextDelta("0", "Hel"), TextDelta("0", "lo"), TextEnd("0")]


# --- reasoning -----------------------------------------------------------------------------


def signed(text: str) -> dict[str, Any]:
    """What is noted of reasoning with this text."""
    return {"anthropic": {"signature": "sig", "digest": digest_of(text)}}


def test_reasoning_is_signed() -> None:
    """The signature stands on the closing chunk, and under the provider's name to go back."""
    chunks = answered(
        opened("thinking", thinking="so", signature=""),
        piece("thinking_delta", thinking=" it is"),
        piece("thinking_delta", thinking=""),
        piece("signature_delta", signature="sig"),
        closed(),
    )
    assert "".join(c.text for c in chunks if isinstance(c, ReasoningDelta)) == "so it is"
    assert chunks[-1] == ReasoningEnd("0", "sig", signed("so it is"))


def test_reasoning_may_be_left_unsaid() -> None:
    """A block of nothing but a signature is a part all the same: it has to go back."""
    chunks = answered(opened("thinking", thinking="", signature="sig"), closed())
    assert [chunk.type for chunk in chunks] == ["reasoning-start", "reasoning-end"]
    assert chunks[-1] == ReasoningEnd("0", "sig", signed(""))


def test_reasoning_without_a_signature() -> None:
    """Other servers of the protocol sign nothing; then nothing is noted."""
    assert answered(opened("thinking"), closed())[-1] == ReasoningEnd("0")


def test_redacted_reasoning() -> None:
    """Encrypted reasoning comes whole, marked as this provider's."""
    chunks = answered(opened("redacted_thinking", data="x9"), closed())
    assert chunks == [RedactedReasoning("0", "x9", {"anthropic": {"type": "redacted_thinking"}})]


# --- sources -------------------------------------------------------------------------------

PAGE = {"type": "web_search_result_location", "url": "https://a.example", "title": "A"}
DOCUMENT = {"type": "page_location", "document_index": 0, "document_title": "D", "cited_text": "x"}
SEARCHED = {"type": "search_result_location", "source": "https://b.example", "title": None}


def test_a_source_is_told_once() -> None:
    """However often and in whatever block it is cited."""
    chunks = answered(
        opened("text", 0, citations=[PAGE]),
        piece("citations_delta", 0, citation=PAGE),
        piece("citations_delta", 0, citation=DOCUMENT),
        closed(0),
        opened("text", 1),
        piece("citations_delta", 1, citation={**DOCUMENT, "cited_text": "y"}),
        piece("citations_delta", 1, citation=SEARCHED),
        piece("citations_delta", 1, citation={**DOCUMENT, "document_index": 1}),
        closed(1),
    )
    found = [chunk for chunk in chunks if isinstance(chunk, SourceChunk)]
    assert [(c.id, c.source_type, c.title, c.url) for c in found] == [
        ("source-1", "url", "A", "https://a.example"),
        ("source-2", "document", "D", None),
        ("source-3", "url", "", "https://b.example"),
        ("source-4", "document", "D", None),
    ]
    assert found[0].provider_metadata == {"anthropic": PAGE}


def test_citations_stand_on_the_text() -> None:
    """All of them, to go back with it; a text that cites nothing has no metadata."""
    cited = answered(
        opened("text"),
        piece("citations_delta", citation=PAGE),
        piece("citations_delta", citation=PAGE),
        closed(),
    )
    assert cited[-1] == TextEnd("0", {"anthropic": {"citations": [PAGE, PAGE]}})
    assert answered(*said("x"))[-1] == TextEnd("0")


# --- tool calls ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "args", "text"),
    [
        ([], {}, None),
        (["", ""], {}, None),
        (['{"a"', ": 1}"], {"a": 1}, None),
        (['{"id": 123456789012345678901234567890}'], {"id": 123456789012345678901234567890}, None),
        (['{"a": '], None, '{"a": '),
    ],
    ids=["none", "empty", "pieces", "a long number", "no JSON"],
)
def test_arguments(pieces: list[str], args: Any, text: str | None) -> None:
    """They come in pieces; what is no JSON is kept as text."""
    chunks = answered(
        opened("tool_use", id="1", name="f", input={}),
        *(piece("input_json_delta", partial_json=each) for each in pieces),
        closed(),
    )
    assert chunks == [
        ToolCallInputStart("1", "f"),
        *(ToolCallDelta("1", each) for each in pieces if each),
        ToolCallInputEnd("1"),
        ToolCall("1", "f", args, text),
    ]


def test_arguments_that_stand_where_the_call_begins() -> None:
    """They are a piece like any other."""
    chunks = answered(opened("tool_use", id="1", name="f", input={"a": 1}), closed())
    assert chunks == [
        ToolCallInputStart("1", "f"),
        ToolCallDelta("1", '{"a":1}'),
        ToolCallInputEnd("1"),
        ToolCall("1", "f", {"a": 1}),
    ]


def test_who_called_is_noted() -> None:
    """What a call has besides goes back with it."""
    call = answered(opened("tool_use", id="1", name="f", caller={"type": "direct"}), closed())[-1]
    assert call == ToolCall(
        "1", "f", {}, provider_metadata={"anthropic": {"caller": {"type": "direct"}}}
    )


@pytest.mark.parametrize("call_id", [None, "", "1"])
def test_each_call_has_an_id_of_its_own(call_id: str | None) -> None:
    """One that has none, or one that was given before, gets one."""
    chunks = answered(
        opened("tool_use", 0, id=call_id, name="f"),
        closed(0),
        opened("tool_use", 1, id=call_id, name="g"),
        closed(1),
    )
    ids = [chunk.tool_call_id for chunk in chunks if isinstance(chunk, ToolCall)]
    assert len(set(ids)) == 2
    assert ids[0] == call_id or not call_id


def test_a_call_that_begins_twice_is_made_once() -> None:
    """A doubled event runs no tool twice."""
    start = opened("tool_use", id="1", name="f")
    chunks = answered(start, start, piece("input_json_delta", partial_json='{"a":1}'), closed())
    assert [c for c in chunks if isinstance(c, ToolCall)] == [ToolCall("1", "f", {"a": 1})]


def test_a_block_that_nobody_closes() -> None:
    """Another one in its place, or the end of the answer, closes it."""
    chunks = answered(
        opened("text"),
        piece("text_delta", text="a"),
        opened("tool_use", id="1", name="f"),
        piece("input_json_delta", partial_json="{}"),
    )
    assert not unclosed(chunks)
    assert chunks[-1] == ToolCall("1", "f", {})


# --- tools that the provider runs ----------------------------------------------------------


def test_a_servers_tool() -> None:
    """Call and result are told, and that the provider ran it."""
    chunks = answered(
        opened("server_tool_use", 0, id="s1", name="web_search", input={}),
        piece("input_json_delta", 0, partial_json='{"query":"x"}'),
        closed(0),
        opened("web_search_tool_result", 1, tool_use_id="s1", content=[PAGE]),
        closed(1),
    )
    noted = {"anthropic": {"type": "server_tool_use"}}
    assert chunks == [
        ToolCallInputStart("s1", "web_search", True, noted),  # noqa: FBT003 - a chunk's field
        ToolCallDelta("s1", '{"query":"x"}'),
        ToolCallInputEnd("s1"),
        ToolCall(
            "s1", "web_search", {"query": "x"}, provider_executed=True, provider_metadata=noted
        ),
        ToolResult("s1", "web_search", [PAGE], {"query": "x"}, provider_executed=True),
    ]


@pytest.mark.parametrize(
    ("block", "failed"),
    [
        ({"content": [{"type": "text", "text": "x"}], "is_error": False}, None),
        ({"content": [{"type": "text", "text": "x"}], "is_error": True}, True),
        ({"content": {"type": "web_search_tool_result_error", "error_code": "x"}}, True),
        ({"content": {"type": "web_fetch_result"}}, None),
        ({}, None),
    ],
)
def test_a_servers_tool_that_failed(block: Event, *, failed: bool | None) -> None:
    """Either the block says so, or its content is an error."""
    chunks = answered(
        opened("mcp_tool_use", 0, id="s1", name="echo", server_name="here"),
        closed(0),
        opened("mcp_tool_result", 1, tool_use_id="s1", **block),
        closed(1),
    )
    result = chunks[-1]
    assert isinstance(result, ToolResult)
    assert (result.tool_name, result.result) == ("echo", block.get("content"))
    assert result.is_error is failed
    assert chunks[0] == ToolCallInputStart(
        "s1",
        "echo",
        True,  # noqa: FBT003 - a chunk's field
        {"anthropic": {"type": "mcp_tool_use", "server_name": "here"}},
    )


def test_a_result_of_an_earlier_answers_call() -> None:
    """Its tool is read off its type."""
    block = opened("code_execution_tool_result", tool_use_id="s0", content={"stdout": "1"})
    assert answered(block, closed()) == [
        ToolResult("s0", "code_execution", {"stdout": "1"}, provider_executed=True)
    ]


@pytest.mark.parametrize("call_id", [None, 7])
def test_a_result_of_no_call_passes_as_it_came(call_id: Any) -> None:
    """Nobody could tell what it is a result of."""
    block = opened("web_search_tool_result", tool_use_id=call_id, content=[])
    assert answered(block, closed()) == [RawChunk(block)]


# --- what is unknown here ------------------------------------------------------------------


def test_unknown_blocks_pass_as_they_came() -> None:
    """Their start and every piece; their end says nothing."""
    start = opened("compaction", content=None)
    summary = piece("compaction_delta", content="so far")
    assert answered(start, summary, closed()) == [RawChunk(start), RawChunk(summary)]


@pytest.mark.parametrize("kind", ["text", "thinking", "tool_use"])
def test_unknown_pieces_pass_as_they_came(kind: str) -> None:
    """In a block of any kind."""
    odd = piece("odd_delta", odd=1)
    assert RawChunk(odd) in answered(opened(kind, id="1", name="f"), odd, closed())


def test_unknown_events_pass_as_they_came() -> None:
    """Behind the metadata, even if they came before the message."""
    news = {"type": "news", "text": "x"}
    assert answered(news) == [RawChunk(news)]
    chunks = chunks_of(news, begun(), STOP)
    assert chunks[:2] == [ResponseMetadata("msg-1", "m", provider="anthropic"), RawChunk(news)]
