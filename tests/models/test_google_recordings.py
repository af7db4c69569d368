"""Recorded Google streams come to what the official SDK made of them, and can be sent back."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any
from unittest import mock

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.chunks import (
    Chunk,
    FinishChunk,
    RawChunk,
    ResponseMetadata,
    ToolCall,
    ToolCallDelta,
    ToolCallInputStart,
)
from streampipe.models._http.sse import EventStream
from streampipe.models._protocol import decoding
from streampipe.models.google import GoogleDecoder
from streampipe.testing._chunk_laws import unclosed
from tests.models.streams import answer, conversation_after, cut, decoded, recorded
from tests.models.test_google_request import body_of, user

RECORDED = recorded("google-generate-content")
SMALL = 3_000  # bytes; up to here every single cut is decoded, beyond it some hundred


def chunks_of(*pieces: bytes) -> list[Chunk]:
    """The chunks of a stream in these pieces; made ids count up, so that they can be compared."""
    with mock.patch.object(decoding, "new_id", map(str, itertools.count()).__next__):
        return decoded(pieces, GoogleDecoder())


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
    made = vars(answer(chunks_of(path.read_bytes())))
    for call, wanted in zip(made["tool_calls"], expected["tool_calls"], strict=True):
        assert call["id"]
        if wanted["id"] is None:  # the provider gave none
            call["id"] = None
    assert made == {
        name: expected[name] for name in ("text", "reasoning", "tool_calls", "finish_reason")
    }


def test_the_usage_of_a_recording(path: Path, expected: dict[str, Any]) -> None:
    """Counts are those of the last event; thoughts are part of the output."""
    finish, said = chunks_of(path.read_bytes())[-1], expected["usage"]
    assert isinstance(finish, FinishChunk)
    assert finish.usage is not None
    thoughts = said.get("thoughtsTokenCount", 0)
    assert finish.usage.input_tokens == said["promptTokenCount"]
    assert finish.usage.output_tokens == said["candidatesTokenCount"] + thoughts
    assert finish.usage.total_tokens == said["totalTokenCount"]
    assert finish.usage.reasoning_tokens == thoughts
    assert finish.usage.cached_input_tokens == said.get("cachedContentTokenCount", 0)
    assert finish.usage.total_tokens == finish.usage.input_tokens + finish.usage.output_tokens


def test_the_other_blocks_of_a_recording(path: Path, expected: dict[str, Any]) -> None:
    """Each is a call that the provider ran, or passes raw."""
    chunks = chunks_of(path.read_bytes())
    executed = [c for c in chunks if isinstance(c, ToolCall) and c.provider_executed]
    raw = [chunk for chunk in chunks if isinstance(chunk, RawChunk)]
    assert len(executed) + len(raw) == len(expected["other_blocks"])


def test_a_recording_is_well_formed(path: Path) -> None:
    """Metadata comes first and once, one finish last; every part and call that opens is closed."""
    chunks = chunks_of(path.read_bytes())
    assert isinstance(chunks[0], ResponseMetadata)
    assert chunks[0].model_id
    kinds = [chunk.type for chunk in chunks]
    assert kinds.count("response-metadata") == kinds.count("finish") == 1
    assert kinds[-1] == "finish"
    assert not unclosed(chunks)
    calls = [chunk for chunk in chunks if isinstance(chunk, ToolCall)]
    announced = [c.tool_call_id for c in chunks if isinstance(c, ToolCallInputStart)]
    assert announced == [call.tool_call_id for call in calls]
    assert len(set(announced)) == len(announced)
    for call in calls:
        deltas = [d for d in chunks if isinstance(d, ToolCallDelta)]
        own = (d.args_text_delta for d in deltas if d.tool_call_id == call.tool_call_id)
        assert orjson.loads("".join(own)) == call.args


def test_arguments_stream_as_they_come(path: Path) -> None:
    """A piece of an argument is a delta in the event that brings it, not at the call's end."""
    content = path.read_bytes()
    pieces = content.count(b'"partialArgs"')
    deltas = [c for c in chunks_of(content) if isinstance(c, ToolCallDelta)]
    calls = [c for c in chunks_of(content) if isinstance(c, ToolCall)]
    assert pieces <= len(deltas) <= pieces + len(calls)


@given(data=st.data())
def test_a_recording_may_be_cut_anywhere(data: st.DataObject) -> None:
    """A stream in any number of pieces gives the same chunks."""
    path = data.draw(st.sampled_from([param.values[0] for param in RECORDED]))
    if path is None:
        pytest.skip("no recordings")
    content = path.read_bytes()
    places = data.draw(st.lists(st.integers(0, len(content)), max_size=30))
    assert chunks_of(*cut(content, places)) == chunks_of(content)


def events_of(*pieces: bytes) -> list[str]:
    """The events of a stream in these pieces."""
    stream = EventStream()
    return [event for piece in pieces for event in stream.feed(piece)]


def test_a_recording_may_be_cut_at_every_byte(path: Path) -> None:
    """A stream in two pieces gives the same events, and the same chunks, wherever it is cut.

    Chunks follow from events alone; so longer streams are not decoded at each of their bytes.
    """
    content = path.read_bytes()
    events, whole = events_of(content), chunks_of(content)
    step = 1 if len(content) < SMALL else len(content) // 200
    for place in range(1, len(content)):
        assert events_of(content[:place], content[place:]) == events, f"cut at byte {place}"
        if place % step == 0:
            assert chunks_of(content[:place], content[place:]) == whole, f"cut at byte {place}"


# --- and back ------------------------------------------------------------------------------


async def sent_back(chunks: list[Chunk]) -> list[dict[str, Any]]:
    """The model's parts of the next request, after a run has stored an answer."""
    conversation = await conversation_after(chunks, "google")
    warnings: list[str] = []
    body = body_of(*conversation.prompt(), user("so?"), model_id="gemini-3-pro", warnings=warnings)
    assert not warnings
    roles = [content["role"] for content in body["contents"]]
    assert roles == ["user", "model", "user"]
    parts: list[dict[str, Any]] = body["contents"][1]["parts"]
    return parts


async def test_a_recording_can_be_sent_back(path: Path, expected: dict[str, Any]) -> None:
    """An answer that a run has stored makes a next request, with all signatures where they were."""
    content = path.read_bytes()
    parts = await sent_back(chunks_of(content))
    came = [
        part
        for event in events_of(content)
        for part in orjson.loads(event)["candidates"][0]["content"]["parts"]
    ]
    signatures = [part["thoughtSignature"] for part in came if "thoughtSignature" in part]
    assert [part["thoughtSignature"] for part in parts if "thoughtSignature" in part] == signatures
    for part in parts:
        if "thoughtSignature" in part and "functionCall" in part:
            (origin,) = (p for p in came if p.get("thoughtSignature") == part["thoughtSignature"])
            assert origin["functionCall"]["name"] == part["functionCall"]["name"]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    assert [(call["name"], call["args"]) for call in calls] == [
        (call["name"], call["arguments"]) for call in expected["tool_calls"]
    ]
    assert "".join(part.get("text", "") for part in parts) == expected["text"]


@pytest.mark.parametrize(
    "part",
    [
        {"text": "x"},
        {"text": "x", "thoughtSignature": "c2ln"},
        {"text": "hm", "thought": True, "thoughtSignature": "c2ln"},
        {"text": "", "thoughtSignature": "c2ln"},
        {
            "functionCall": {"id": "1", "name": "f", "args": {"a": [1]}},
            "thoughtSignature": "c2ln",
        },
        {
            "executableCode": {"language": "PYTHON", "code": "1"},
            "thoughtSignature": "c2ln",
        },
        {
            "toolCall": {"id": "1", "toolType": "GOOGLE_MAPS", "args": {}},
            "thoughtSignature": "c2ln",
        },
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}, "thoughtSignature": "c2ln"},
        {"fileData": {"mimeType": "image/png", "fileUri": "gs://b/x"}},
    ],
    ids=[
        *("text", "signed text", "thought", "no text", "call", "code", "tool", "data", "address"),
    ],
)
async def test_a_part_goes_back_as_it_came(part: dict[str, Any]) -> None:
    """Through chunks, a stored message and a prompt, nothing of it is lost."""
    results: dict[str, dict[str, Any]] = {
        "executableCode": {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        "toolCall": {"toolResponse": {"id": "1", "toolType": "GOOGLE_MAPS", "response": {}}},
    }
    result = [found | {"thoughtSignature": "dA=="} for k, found in results.items() if k in part]
    candidate = {"content": {"parts": [part, *result]}, "finishReason": "STOP"}
    stream = b"data: " + orjson.dumps({"candidates": [candidate]}) + b"\r\n\r\n"
    parts = await sent_back(chunks_of(stream))
    assert parts == [part, *result]
