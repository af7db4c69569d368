"""Recorded Anthropic streams come to what the official SDK made of them, and can be sent back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.chunks import (
    Chunk,
    FinishChunk,
    RawChunk,
    ReasoningEnd,
    ResponseMetadata,
    SourceChunk,
    ToolCall,
    ToolCallInputStart,
    ToolResult,
)
from streampipe.models.anthropic import AnthropicDecoder
from streampipe.testing._chunk_laws import unclosed
from tests.models.streams import STREAMS, answer, conversation_after, cut, decoded, recorded
from tests.models.test_anthropic_request import BETA_JUDGE, body_of, user

PROTOCOL = "anthropic-messages"
RECORDED = recorded(PROTOCOL)
SMALLEST = 10
# An answer that breaks off and begins anew: the expectation has the second one alone. What had
# gone out of the first cannot be called back by a stream, so its reasoning stays.
SPLICED = {"spliced-message-start": "I will call the tool.Let me call the tool."}


def chunks_of(*pieces: bytes) -> list[Chunk]:
    """The chunks of a stream in these pieces."""
    return decoded(pieces, AnthropicDecoder())


@pytest.fixture(params=RECORDED)
def path(request: pytest.FixtureRequest) -> Path:
    """Each recording."""
    return Path(request.param)


@pytest.fixture
def expected(path: Path) -> dict[str, Any]:
    """What it comes to."""
    value: dict[str, Any] = orjson.loads(path.with_suffix(".expected.json").read_bytes())
    return value


def test_a_recording_decodes(path: Path, expected: dict[str, Any]) -> None:
    """Text, reasoning, tool calls and finish reason are those that the SDK read."""
    assert expected["error"] is None
    chunks = chunks_of(path.read_bytes())
    own = [c for c in chunks if not (isinstance(c, ToolCall) and c.provider_executed)]
    assert vars(answer(own)) == {
        "text": expected["text"],
        "reasoning": SPLICED.get(path.stem, expected["reasoning"]),
        "tool_calls": expected["tool_calls"],
        "finish_reason": expected["finish_reason"],
    }


def test_the_usage_of_a_recording(path: Path, expected: dict[str, Any]) -> None:
    """Counts are those that the SDK put together, and all it said is kept as it came."""
    finish, said = chunks_of(path.read_bytes())[-1], expected["usage"]
    assert isinstance(finish, FinishChunk)
    assert finish.usage is not None
    cached = said.get("cache_read_input_tokens", 0)
    written = said.get("cache_creation_input_tokens", 0)
    assert finish.usage.input_tokens == said["input_tokens"] + cached + written
    assert finish.usage.output_tokens == said["output_tokens"]
    assert finish.usage.total_tokens == finish.usage.input_tokens + said["output_tokens"]
    assert finish.usage.cached_input_tokens == cached
    assert finish.provider_metadata is not None
    noted = finish.provider_metadata["anthropic"]
    assert {name: noted["usage"].get(name) for name in said} == said
    detail = expected["finish_detail"] or {}
    assert {name: noted.get(name) for name in detail} == detail


def test_the_other_blocks_of_a_recording(path: Path, expected: dict[str, Any]) -> None:
    """Each is a call or a result of a tool that the provider ran, or passes raw; in its order."""
    found: list[tuple[str, str | None]] = []
    for chunk in chunks_of(path.read_bytes()):
        if isinstance(chunk, ToolCall) and chunk.provider_executed:
            found.append(("call", chunk.tool_call_id))
        elif isinstance(chunk, ToolResult):
            assert chunk.provider_executed
            assert chunk.result is not None
            found.append(("result", chunk.tool_call_id))
        elif isinstance(chunk, RawChunk) and "content_block" in chunk.payload:
            found.append((chunk.payload["content_block"]["type"], None))
    kinds = {"server_tool_use": "call", "mcp_tool_use": "call"}
    assert found == [
        (
            "result" if b["type"].endswith("_tool_result") else kinds.get(b["type"], b["type"]),
            b["id"],
        )
        for b in expected["other_blocks"]
    ]


def test_a_recording_is_well_formed(path: Path) -> None:
    """Metadata comes first and once, one finish last; every part and call that opens is closed."""
    chunks = chunks_of(path.read_bytes())
    assert isinstance(chunks[0], ResponseMetadata)
    assert chunks[0].model_id
    kinds = [chunk.type for chunk in chunks]
    assert kinds.count("response-metadata") == kinds.count("finish") == 1
    assert kinds[-1] == "finish"
    assert not unclosed(chunks)
    announced = [c.tool_call_id for c in chunks if isinstance(c, ToolCallInputStart)]
    made = [chunk.tool_call_id for chunk in chunks if isinstance(chunk, ToolCall)]
    dropped = ["toolu_first"] if path.stem in SPLICED else []
    assert announced == dropped + made
    starts = [chunk for chunk in chunks if chunk.type in ("text-start", "reasoning-start")]
    assert len({vars_of(chunk)["id"] for chunk in starts}) == len(starts)


def vars_of(chunk: Chunk) -> dict[str, Any]:
    """The payload of a chunk."""
    payload: dict[str, Any] = chunk.to_wire()["payload"]
    return payload


@given(data=st.data())
def test_a_recording_may_be_cut_anywhere(data: st.DataObject) -> None:
    """A stream in any number of pieces gives the same chunks."""
    path = data.draw(st.sampled_from([param.values[0] for param in RECORDED]))
    if path is None:
        pytest.skip("no recordings")
    content = path.read_bytes()
    places = data.draw(st.lists(st.integers(0, len(content)), max_size=30))
    assert chunks_of(*cut(content, places)) == chunks_of(content)


def smallest() -> list[Any]:
    """The recordings that every cut is tried on."""
    found = sorted((STREAMS / PROTOCOL).glob("*.sse"), key=lambda path: path.stat().st_size)
    return [pytest.param(path, id=path.stem) for path in found[:SMALLEST]] or RECORDED


@pytest.mark.parametrize("path", smallest())
def test_a_recording_may_be_cut_at_every_byte(path: Path) -> None:
    """A stream in two pieces gives the same chunks wherever it is cut."""
    content = path.read_bytes()
    whole = chunks_of(content)
    for place in range(1, len(content)):
        assert chunks_of(content[:place], content[place:]) == whole, f"cut at byte {place}"


def test_citations_become_sources_once() -> None:
    """A page that is cited again and again is told once."""
    path = STREAMS / PROTOCOL / "anthropic-web-search-tool.sse"
    if not path.exists():
        pytest.skip("no recordings")
    sources = [c.url for c in chunks_of(path.read_bytes()) if isinstance(c, SourceChunk)]
    cited = path.read_bytes().count(b'"citations_delta"')
    assert 1 < len(sources) == len(set(sources)) < cited


# --- and back ------------------------------------------------------------------------------


async def sent_back(chunks: list[Chunk]) -> list[dict[str, Any]]:
    """The blocks of the next request, after a run has stored an answer."""
    conversation = await conversation_after(chunks, "anthropic")
    warnings: list[str] = []
    body = body_of(*conversation.prompt(), user("so?"), judge=BETA_JUDGE, warnings=warnings)
    assert not warnings
    return [block for message in body["messages"] for block in message["content"]]


async def test_a_recording_can_be_sent_back(path: Path) -> None:
    """An answer that a run has stored makes a next request, with all that its maker needs again.

    Signatures, citations, and the tools that the provider ran are those of the stream.
    """
    blocks = await sent_back(chunks_of(path.read_bytes()))
    chunks = chunks_of(path.read_bytes())
    signed = [c.signature for c in chunks if isinstance(c, ReasoningEnd) and c.signature]
    assert [b["signature"] for b in blocks if b["type"] == "thinking"] == signed
    made = [chunk for chunk in chunks if isinstance(chunk, ToolCall)]
    sent = [(b["id"], b["name"], b["input"]) for b in blocks if b["type"].endswith("tool_use")]
    assert sent == [(call.tool_call_id, call.tool_name, call.args) for call in made]
    given = {b["tool_use_id"]: b["content"] for b in blocks if b["type"].endswith("tool_result")}
    assert given.keys() >= {call.tool_call_id for call in made if not call.provider_executed}
    results = [chunk for chunk in chunks if isinstance(chunk, ToolResult)]
    for result in results:
        if result.args is not None:  # its call is of this answer
            assert given[result.tool_call_id] == result.result
    cited = path.read_bytes().count(b'"citations_delta"')
    assert sum(len(block.get("citations", ())) for block in blocks) == cited


def whole_message(*content: dict[str, Any]) -> bytes:
    """A stream of a message that is whole when it begins."""
    message = {"id": "m", "model": "m", "content": list(content)}
    events = ({"type": "message_start", "message": message}, {"type": "message_stop"})
    return b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in events)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "x9"},
        {
            "type": "tool_use",
            "id": "1",
            "name": "f",
            "input": {"a": 1},
            "caller": {"type": "direct"},
        },
        {"type": "text", "text": "x"},
    ],
    ids=lambda block: block["type"],
)
async def test_a_block_goes_back_as_it_came(block: dict[str, Any]) -> None:
    """Through chunks, a stored message and a prompt, nothing of it is lost."""
    assert block in await sent_back(chunks_of(whole_message(block)))
