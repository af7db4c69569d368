"""Streams to decode: recorded ones where they are at hand, and events written by the test."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from streampipe import Agent
from streampipe.chunks import (
    Chunk,
    FinishChunk,
    ReasoningDelta,
    TextDelta,
    ToolCall,
)
from streampipe.contracts import ModelRequest
from streampipe.messages import Message, MessageList
from streampipe.models._http.call import Decoder
from streampipe.models._http.sse import EventStream
from streampipe.models.openai_chat import ChatDecoder

STREAMS = Path(__file__).parents[3] / "shared" / "streams"


def recorded(protocol: str) -> list[Any]:
    """The recordings of a protocol as parameters of a test; skipped where there are none."""
    found = [
        pytest.param(path, id=path.stem) for path in sorted((STREAMS / protocol).glob("*.sse"))
    ]
    return found or [pytest.param(None, marks=pytest.mark.skip(reason=f"no {protocol} recordings"))]


RECORDED = recorded("openai-chat")


@dataclass
class Answer:
    """What a stream comes to, as a caller sees it."""

    text: str
    reasoning: str
    tool_calls: list[dict[str, Any]]
    finish_reason: str | None


def answer(chunks: Iterable[Chunk]) -> Answer:
    """What chunks come to."""
    chunks = list(chunks)
    finish = chunks[-1]
    assert isinstance(finish, FinishChunk)
    return Answer(
        "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta)),
        "".join(chunk.text for chunk in chunks if isinstance(chunk, ReasoningDelta)),
        [
            {"id": chunk.tool_call_id, "name": chunk.tool_name, "arguments": chunk.args}
            for chunk in chunks
            if isinstance(chunk, ToolCall)
        ],
        finish.raw_reason,
    )


def decoded(pieces: Iterable[bytes], decoder: Decoder | None = None) -> list[Chunk]:
    """The chunks of a stream that arrives in these pieces; of the chat protocol by default."""
    events, decoder = EventStream(), decoder or ChatDecoder()
    chunks = [c for piece in pieces for event in events.feed(piece) for c in decoder.feed(event)]
    return chunks + decoder.end()


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    """The bytes, cut at these places."""
    edges = [0, *sorted(places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def sse(*events: Any, done: bool = True) -> bytes:
    """An event stream of JSON values, with the protocol's end unless told otherwise."""
    lines = [f"data: {json.dumps(event, ensure_ascii=False)}".encode() for event in events]
    return b"".join(line + b"\n\n" for line in [*lines, *([b"data: [DONE]"] if done else [])])


def event(delta: Any = None, reason: str | None = None, **fields: Any) -> dict[str, Any]:
    """An event of one choice."""
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": reason}
    return {"id": "chat-1", "model": "m", "created": 7, "choices": [choice], **fields}


def chunks_of(*events: Any, done: bool = True) -> list[Chunk]:
    """The chunks of these events."""
    return decoded([sse(*events, done=done)])


def delta(arguments: str | None = None, **fields: Any) -> dict[str, Any]:
    """An item of `tool_calls`; `name` goes where the protocol has it."""
    function = {"name": fields.pop("name")} if "name" in fields else {}
    if arguments is not None:
        function["arguments"] = arguments
    return {"type": "function", "function": function, **fields}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
"""Any JSON value."""


class Replayed:
    """A model that answers with the chunks of a recording."""

    model_id = "recorded"

    def __init__(self, provider: str, chunks: list[Chunk]) -> None:
        """Take the answer, and whose it is."""
        self.provider = provider
        self._chunks = chunks

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Answer."""
        for chunk in self._chunks:
            yield chunk


async def conversation_after(chunks: list[Chunk], provider: str) -> MessageList:
    """The stored conversation, when a provider's answer has gone through a run."""
    result = await Agent(model=Replayed(provider, chunks), max_steps=1).generate("hi")
    conversation = MessageList()
    conversation.add(Message.user("hi"), source="memory")
    for message in result.messages:
        conversation.add(message, source="memory")
    return conversation
