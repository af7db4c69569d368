"""The work that is measured: a scripted model, and four guards that keep state.

The run calls the guards as its processors; the hand-written loop calls the very same methods. So
what is compared is all that lies around them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson

from streampipe import Chunk, FinishChunk, TextDelta, TextEnd, TextStart, Usage
from streampipe.contracts import ModelRequest, ProcessOutputStreamArgs
from streampipe.testing import ScriptedModel

__all__ = [
    "TurnTakingModel",
    "by_hand",
    "by_hand_async",
    "consume",
    "event_stream",
    "guards",
    "read_by_hand",
    "scripted",
]

REQUEST = ModelRequest([])
LONGEST = 1 << 40
WORDS = ("The ", "stream ", "goes", " on, ", "word\tfor ", "word. ")


class CountWords:
    """Counts."""

    id = "count-words"

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Count spaces."""
        part = args.part
        if isinstance(part, TextDelta):
            args.state["words"] = args.state.get("words", 0) + part.text.count(" ")
        return part


class LimitLength:
    """Blocks what gets too long."""

    id = "limit-length"

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Add up."""
        part = args.part
        if isinstance(part, TextDelta):
            length = args.state["length"] = args.state.get("length", 0) + len(part.text)
            if length > LONGEST:
                args.abort("too long")
        return part


class KeepLast:
    """Remembers."""

    id = "keep-last"

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Keep the newest text."""
        part = args.part
        if isinstance(part, TextDelta):
            args.state["last"] = part.text
        return part


class Tidy:
    """Rewrites in place."""

    id = "tidy"

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Replace tabs, and count the chunks that had some."""
        part = args.part
        if isinstance(part, TextDelta) and "\t" in part.text:
            part.text = part.text.replace("\t", " ")
            args.state["tabs"] = args.state.get("tabs", 0) + 1
        return part


# The same with coroutines, written out: a wrapper would be a call more to measure.


class AsyncCountWords:
    """Counts."""

    id = "count-words"

    async def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Count spaces."""
        part = args.part
        if isinstance(part, TextDelta):
            args.state["words"] = args.state.get("words", 0) + part.text.count(" ")
        return part


class AsyncLimitLength:
    """Blocks what gets too long."""

    id = "limit-length"

    async def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Add up."""
        part = args.part
        if isinstance(part, TextDelta):
            length = args.state["length"] = args.state.get("length", 0) + len(part.text)
            if length > LONGEST:
                args.abort("too long")
        return part


class AsyncKeepLast:
    """Remembers."""

    id = "keep-last"

    async def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Keep the newest text."""
        part = args.part
        if isinstance(part, TextDelta):
            args.state["last"] = part.text
        return part


class AsyncTidy:
    """Rewrites in place."""

    id = "tidy"

    async def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Replace tabs, and count the chunks that had some."""
        part = args.part
        if isinstance(part, TextDelta) and "\t" in part.text:
            part.text = part.text.replace("\t", " ")
            args.state["tabs"] = args.state.get("tabs", 0) + 1
        return part


def guards(*, asynchronous: bool = False) -> list[Any]:
    """The four."""
    if asynchronous:
        return [AsyncCountWords(), AsyncLimitLength(), AsyncKeepLast(), AsyncTidy()]
    return [CountWords(), LimitLength(), KeepLast(), Tidy()]


def scripted(chunks: int) -> ScriptedModel:
    """A model that says so many pieces of text, as often as it is asked."""
    text = [WORDS[number % len(WORDS)] for number in range(chunks)]
    return ScriptedModel([text], repeat=True, keep_requests=0)


@dataclass(slots=True)
class Args:
    """As much of a hook's args as the guards need."""

    part: Any = None
    state: dict[str, Any] = field(default_factory=dict[str, Any])


async def by_hand(model: Any, chain: list[Any]) -> None:
    """What one would write without a library."""
    stages = [(guard.process_output_stream, Args()) for guard in chain]
    async for chunk in model.stream(REQUEST):
        part = chunk
        for hook, args in stages:
            args.part = part
            part = hook(args)


async def by_hand_async(model: Any, chain: list[Any]) -> None:
    """The same for hooks that are coroutines."""
    stages = [(guard.process_output_stream, Args()) for guard in chain]
    async for chunk in model.stream(REQUEST):
        part = chunk
        for hook, args in stages:
            args.part = part
            part = await hook(args)


async def consume(stream: AsyncIterable[Any]) -> None:
    """Read to the end."""
    async for _ in stream:
        pass


class TurnTakingModel:
    """A model as the network makes it: a few chunks at once, then everybody else's turn.

    Attributes:
        gate: with one, the model stops there, in the middle of its answer.
        silent: counts the calls that came to the gate.
    """

    provider = "benchmark"
    model_id = "turn-taking"
    at_once = 8

    def __init__(self, chunks: int, gate: asyncio.Event | None = None) -> None:
        """Say so many pieces of text."""
        self.chunks = chunks
        self.gate = gate
        self.silent = asyncio.Semaphore(0)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:  # noqa: ARG002 - it says the same to all
        """Answer."""
        yield TextStart("0")
        for number in range(self.chunks):
            yield TextDelta("0", WORDS[number % len(WORDS)])
            if number % self.at_once == 0:
                await asyncio.sleep(0)
        if self.gate is not None:
            self.silent.release()
            await self.gate.wait()
        yield TextEnd("0")
        yield FinishChunk("stop", Usage(1, self.chunks))


def event_stream(chunks: int) -> bytes:
    """The bytes of a chat completion of so many pieces of text."""
    frame = {"id": "c1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m"}

    def event(delta: dict[str, str], reason: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return b"data: " + orjson.dumps({**frame, "choices": [choice]}) + b"\n\n"

    texts = (event({"content": WORDS[number % len(WORDS)]}, None) for number in range(chunks))
    return b"".join((*texts, event({}, "stop"), b"data: [DONE]\n\n"))


async def read_by_hand(client: httpx.AsyncClient, url: str, chain: list[Any]) -> None:
    """What one would write without a library against a provider."""
    stages = [(guard.process_output_stream, Args()) for guard in chain]
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    async with client.stream("POST", url, json=body) as response:
        async for line in response.aiter_lines():
            if not line.startswith("data: ") or line == "data: [DONE]":
                continue
            text = orjson.loads(line[6:])["choices"][0]["delta"].get("content")
            if text is not None:
                part: Chunk = TextDelta("0", text)
                for hook, args in stages:
                    args.part = part
                    part = hook(args)
