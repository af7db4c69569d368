"""Recorded Responses streams come to what OpenAI's own SDK made of them, however they arrive."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.chunks import (
    Chunk,
    FileChunk,
    FinishChunk,
    RawChunk,
    ReasoningEnd,
    ReasoningStart,
    RedactedReasoning,
    ResponseMetadata,
    SourceChunk,
    TextStart,
    ToolCall,
    ToolCallDelta,
    ToolResult,
)
from streampipe.contracts import ModelRequest
from streampipe.errors import ModelError, ProviderStreamError, QuotaError
from streampipe.models._http.sse import EventStream
from streampipe.models.openai_responses import ResponsesDecoder, encode_request
from streampipe.testing._chunk_laws import unclosed
from tests.models.streams import answer, conversation_after, cut, decoded, recorded
from tests.models.test_responses_request import judged

RECORDED = recorded("openai-responses")
ERRORS: dict[str | None, type[ModelError]] = {
    "malformed-json-events-parallel-tool-call-wrapper": ProviderStreamError,
    "openai-error": QuotaError,
}
WHOLE = [param for param in RECORDED if param.id not in ERRORS]
SMALLEST = (
    sorted(
        (param for param in WHOLE if param.values[0] is not None),
        key=lambda param: Path(str(param.values[0])).stat().st_size,
    )[:10]
    or RECORDED
)


@pytest.fixture(params=WHOLE)
def path(request: pytest.FixtureRequest) -> Path:
    """Each recording that comes to an end."""
    return Path(request.param)


def read(pieces: Iterable[bytes]) -> list[Chunk]:
    """The chunks of a stream that arrives in these pieces."""
    return decoded(pieces, ResponsesDecoder())


def expected_of(path: Path) -> dict[str, Any]:
    """What a recording comes to."""
    value: dict[str, Any] = orjson.loads(path.with_suffix(".expected.json").read_bytes())
    return value


def test_a_recording_decodes(path: Path) -> None:
    """Text, reasoning, tool calls, finish reason and usage are those that the SDK read."""
    chunks, expected = read([path.read_bytes()]), expected_of(path)
    found = answer(chunks)
    # Of openai-phase and openai-shell-container, deltas are missing: the SDK's helper reads their
    # text off the whole items, and either would be right. We say what came first.
    assert found.text == expected["text"]
    assert found.reasoning == expected["reasoning"]
    assert found.finish_reason == expected["finish_reason"]
    ids = [call["id"] for call in expected["tool_calls"]]
    assert [call for call in found.tool_calls if call["id"] in ids] == expected["tool_calls"]
    finish, usage = chunks[-1], expected["usage"]
    assert isinstance(finish, FinishChunk)
    assert finish.reason in ("stop", "tool-calls")
    assert finish.usage is not None
    assert finish.usage.input_tokens == usage["input_tokens"]
    assert finish.usage.output_tokens == usage["output_tokens"]
    assert finish.usage.total_tokens == usage["total_tokens"]
    assert finish.usage.reasoning_tokens == usage["output_tokens_details"]["reasoning_tokens"]
    assert finish.usage.cached_input_tokens == usage["input_tokens_details"]["cached_tokens"]


CALLERS = (
    "apply_patch_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "tool_search_call",
)
"""What the caller runs in the recordings, where the shell is not in a container."""


def test_everything_else_is_told_too(path: Path) -> None:
    """Calls of other kinds are calls, the provider's own marked so; what is left comes raw."""
    chunks, expected = read([path.read_bytes()]), expected_of(path)
    functions = [call["id"] for call in expected["tool_calls"]]
    told: list[str] = []
    for chunk in chunks:
        if isinstance(chunk, ToolCall) and chunk.tool_call_id not in functions:
            noted = (chunk.provider_metadata or {})["openai"]
            kind = noted.get("item", noted)["type"]
            is_ours = kind in CALLERS and path.stem != "openai-shell-container"
            assert bool(chunk.provider_executed) is not is_ours
            told.append(kind)
        elif isinstance(chunk, ToolResult) and chunk.result["type"].endswith("_output"):
            told.append(chunk.result["type"])
        elif isinstance(chunk, RawChunk):
            told.append(chunk.payload["type"])
    others = [block["type"] for block in expected["other_blocks"]]
    assert [kind for kind in told if not kind.startswith("response.")] == others


def test_results_follow_their_calls(path: Path) -> None:
    """A result that the provider gives belongs to a call that came before it, once."""
    calls: set[str] = set()
    for chunk in read([path.read_bytes()]):
        if isinstance(chunk, ToolCall) and chunk.provider_executed:
            calls.add(chunk.tool_call_id)
        elif isinstance(chunk, ToolResult):
            assert chunk.provider_executed
            calls.remove(chunk.tool_call_id)


def test_a_recording_is_well_formed(path: Path) -> None:
    """Metadata comes first and once, one finish last; every part that opens is closed."""
    chunks = read([path.read_bytes()])
    assert isinstance(chunks[0], ResponseMetadata)
    assert chunks[0].id
    assert chunks[0].model_id
    assert chunks[0].created_at
    kinds = [chunk.type for chunk in chunks]
    assert kinds.count("response-metadata") == kinds.count("finish") == 1
    assert kinds[-1] == "finish"
    assert not unclosed(chunks)
    starts = [c.id for c in chunks if isinstance(c, TextStart | ReasoningStart)]
    assert len(starts) == len(set(starts))
    urls = [chunk.url or chunk.filename for chunk in chunks if isinstance(chunk, SourceChunk)]
    assert len(urls) == len(set(urls))


def test_the_pieces_of_a_call_are_its_arguments(path: Path) -> None:
    """Joined, they are the arguments as JSON, also of input that comes as bare text."""
    pieces: dict[str, str] = {}
    for chunk in read([path.read_bytes()]):
        if isinstance(chunk, ToolCallDelta):
            pieces[chunk.tool_call_id] = pieces.get(chunk.tool_call_id, "") + chunk.args_text_delta
        elif isinstance(chunk, ToolCall) and chunk.tool_call_id in pieces:
            assert orjson.loads(pieces[chunk.tool_call_id]) == chunk.args


@pytest.mark.parametrize("path", [param for param in RECORDED if param.id in ERRORS] or RECORDED)
def test_a_recording_of_an_error(path: Path) -> None:
    """The error is the one that the SDK raised; what came before it is kept."""
    events = EventStream().feed(path.read_bytes())
    decoder = ResponsesDecoder()
    kept: list[Chunk] = []
    with pytest.raises(ModelError) as caught:
        for event in events:
            kept += decoder.feed(event)
    assert isinstance(caught.value, ERRORS[path.stem])
    told = expected_of(path)["error"]
    assert told["message"] in str(caught.value) or told["class"] == "JSONDecodeError"
    # An error event comes behind the answer's beginning; the other has no event that is whole.
    assert [chunk.type for chunk in kept] == ["response-metadata"] * (path.stem == "openai-error")


@given(data=st.data())
def test_a_recording_may_be_cut_anywhere(data: st.DataObject) -> None:
    """A stream in any number of pieces gives the same chunks."""
    path = data.draw(st.sampled_from([param.values[0] for param in WHOLE]))
    if path is None:
        pytest.skip("no recordings")
    content = Path(str(path)).read_bytes()
    places = data.draw(st.lists(st.integers(0, len(content)), max_size=30))
    assert read(cut(content, places)) == read([content])


@pytest.mark.parametrize("path", SMALLEST)
def test_a_small_recording_may_be_cut_at_every_byte(path: Path) -> None:
    """A stream in two pieces gives the same events, and so the same chunks, wherever it is cut.

    Events are what the decoder is given, and making chunks of the same ones again tells nothing.
    """
    data = path.read_bytes()
    whole = list(EventStream().feed(data))
    for place in range(1, len(data)):
        events = EventStream()
        cut_there = [*events.feed(data[:place]), *events.feed(data[place:])]
        assert cut_there == whole, f"cut at byte {place}"
    assert read(data[i : i + 1] for i in range(len(data))) == read([data])


# --- the next request ------------------------------------------------------------------------


async def asked_next(chunks: list[Chunk]) -> list[dict[str, Any]]:
    """The items of the next request, after a run has stored an answer."""
    conversation = await conversation_after(chunks, "openai")
    warnings: list[str] = []
    body = encode_request(ModelRequest(conversation.prompt()), "gpt-5", warnings=warnings)
    assert not warnings
    items: list[dict[str, Any]] = judged(body)["input"]
    return items


async def test_what_was_said_goes_into_the_next_request(path: Path) -> None:
    """Collected and sent again, an answer is typed as the SDK wants it, and nothing is lost."""
    chunks = read([path.read_bytes()])
    items = await asked_next(chunks)
    sealed = {c.signature for c in chunks if isinstance(c, ReasoningEnd) and c.signature}
    sealed |= {c.data for c in chunks if isinstance(c, RedactedReasoning)}
    assert {
        item["encrypted_content"] for item in items if item.get("type") == "reasoning"
    } == sealed
    texts = [item["content"] for item in items if item.get("role") == "assistant"]
    assert "".join(texts) == answer(chunks).text
    kinds = [item.get("type", "message") for item in items]
    assert kinds.count("image_generation_call") == sum(isinstance(c, FileChunk) for c in chunks)
    called = [kind for kind in kinds if kind.endswith(("_call", "program", "_request"))]
    assert len(called) == sum(isinstance(chunk, ToolCall) for chunk in chunks)
