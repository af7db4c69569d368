"""A recorded stream through an agent's output processors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from copy import deepcopy
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streampipe.agent import Agent
from streampipe.chunks import Chunk, RawChunk, ResponseMetadata, ToolCall
from streampipe.cli._lines import style_of, summary
from streampipe.contracts import ModelRequest, ToolContext
from streampipe.models._anthropic.decoder import AnthropicDecoder
from streampipe.models._chat.decoder import ChatDecoder
from streampipe.models._google.decoder import GoogleDecoder
from streampipe.models._http.call import Decoder
from streampipe.models._http.sse import EventStream
from streampipe.models._responses.decoder import ResponsesDecoder

PROTOCOLS: dict[str, Callable[[], Decoder]] = {
    "anthropic": AnthropicDecoder,
    "google": GoogleDecoder,
    "openai-chat": ChatDecoder,
    "openai-responses": ResponsesDecoder,
}

SAYS_NOTHING = (ResponseMetadata, RawChunk)
"""What a decoder also makes of events that it does not know."""

Row = tuple[list[Chunk], list[Chunk]]
"""What came from the model, and what the client got on account of it."""


class _Recorded:
    """A model whose answer is a recording; tells `seen` of every chunk before it is sent."""

    provider = "recorded"
    model_id = "recorded"

    def __init__(
        self,
        data: bytes,
        decoder: Callable[[], Decoder],
        seen: Callable[[Chunk], None],
    ) -> None:
        self._data = data
        self._decoder = decoder
        self._seen = seen

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:  # noqa: ARG002
        events, decoder = EventStream(), self._decoder()
        for event in events.feed(self._data):
            for chunk in decoder.feed(event):
                self._seen(chunk)
                yield chunk
        for chunk in decoder.end():
            self._seen(chunk)
            yield chunk


class _NotRun:
    """Stands for a tool that the recording calls: a replay has no effects."""

    description = ""
    parameters: dict[str, Any] = {"type": "object"}  # noqa: RUF012 - never changed

    def __init__(self, name: str) -> None:
        self.name = name

    def execute(self, args: Any, context: ToolContext) -> Any:  # noqa: ARG002
        return "[not run: this is a replay]"


async def replay_rows(agent: Agent, data: bytes, decoder: Callable[[], Decoder]) -> list[Row]:
    """Run the recording as the answer of one step; tools are not run, no other model is asked."""
    rows: list[Row] = [([], [])]
    names: dict[str, _NotRun] = {}

    def from_model(chunk: Chunk) -> None:
        rows.append(([deepcopy(chunk)], []))  # a processor may change the chunk in place

    def to_client(chunk: Chunk) -> None:
        rows[-1][1].append(chunk)

    for event in _events(data, decoder):
        if isinstance(event, ToolCall):
            names.setdefault(event.tool_name, _NotRun(event.tool_name))
    await agent.observe(
        "(replay)",
        model=_Recorded(data, decoder, from_model),
        tools=names,
        input_processors=[],
        error_processors=[],
        max_steps=1,
    ).into(to_client)
    return rows


def why_unread(data: bytes, protocol: str) -> str | None:
    """Of which other protocol a recording is; None if that is not what is wrong with it."""

    def says_something(decoder: Callable[[], Decoder]) -> bool:
        return any(not isinstance(chunk, SAYS_NOTHING) for chunk in _events(data, decoder))

    if says_something(PROTOCOLS[protocol]):
        return None
    others = [name for name, decoder in PROTOCOLS.items() if says_something(decoder)]
    if not others:  # the run tells what is wrong
        return None
    return f"there is no event of {protocol} in it; it reads as {' or '.join(others)}"


def _events(data: bytes, decoder: Callable[[], Decoder]) -> list[Chunk]:
    """The recording's chunks, as far as they can be read; the run itself tells what is wrong."""
    out: list[Chunk] = []
    stream, reading = EventStream(), decoder()
    try:
        for event in stream.feed(data):
            out += reading.feed(event)
    except Exception:  # noqa: BLE001 - told by the run, as an error chunk
        return out
    return out


def show_rows(rows: list[Row], console: Console) -> None:
    """Print both lanes side by side."""
    frame = box.HEAVY_HEAD if console.is_terminal else box.ASCII
    table = Table("from the model", "to the client", expand=True, box=frame)
    for model, client in rows:
        if model or client:
            table.add_row("\n".join(map(_cell, model)), "\n".join(map(_cell, client)))
    console.print(table)


def _cell(chunk: Chunk) -> str:
    return f"[{style_of(chunk)}]{chunk.type}[/] {escape(summary(chunk))}"
