"""A stream in the Anthropic Messages protocol: a message of content blocks, each begun and ended.

What a block has beyond our chunks (a signature, citations, who called a tool) stands under the
provider's name in the metadata of its last chunk, named as in the block, so that a later request
can send the block back as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from streampipe.chunks import (
    Chunk,
    FinishChunk,
    ProviderMetadata,
    RawChunk,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
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
    Usage,
)
from streampipe.errors import IncompleteStreamError, ProviderStreamError
from streampipe.messages import new_id
from streampipe.models._decoding import EXCERPT, count, object_of, tool_call, typed
from streampipe.models._encoding import json_text
from streampipe.models._failures import provider_error

REASONS: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool-calls",
    "refusal": "content-filter",
}
"""`pause_turn` is not among them: such an answer is not at its end, it is to be asked for more."""

RESULT = "_tool_result"
"""How the type of a block ends that has the result of a tool which the provider ran."""
_CALLS = {"tool_use": None, "server_tool_use": True, "mcp_tool_use": True}
_NOTED = ("stop_sequence", "stop_details", "container")


class _Block(Protocol):
    """A content block that is open."""

    def add(self, delta: dict[str, Any], event: dict[str, Any]) -> list[Chunk]:
        """The chunks of a piece; `event` is where it came in."""
        ...

    def close(self) -> list[Chunk]:
        """The chunks that end it."""
        ...

    def abandon(self) -> list[Chunk]:
        """The chunks that end it when the rest of it will never come."""
        ...


class _Sources:
    """The sources that an answer cites; each is told once, however often it is cited."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._seen: set[str] = set()

    def of(self, citation: dict[str, Any]) -> list[Chunk]:
        address = citation.get("url") or citation.get("source")
        title = citation.get("title") or citation.get("document_title")
        url = address if isinstance(address, str) else None
        key = url or f"document {citation.get('document_index')!r}"
        if key in self._seen:
            return []
        self._seen.add(key)
        return [
            SourceChunk(
                f"source-{len(self._seen)}",
                "url" if url else "document",
                title if isinstance(title, str) else "",
                url,
                provider_metadata={self._provider: citation},
            ),
        ]


class _Text:
    """A text block, which may cite sources."""

    __slots__ = ("_citations", "_id", "_provider", "_sources")

    def __init__(self, part_id: str, provider: str, sources: _Sources) -> None:
        self._id = part_id
        self._provider = provider
        self._sources = sources
        self._citations: list[dict[str, Any]] = []

    def start(self, block: dict[str, Any]) -> list[Chunk]:
        out: list[Chunk] = [TextStart(self._id)]
        text = typed(block.get("text"), str, "content_block.text")
        if text:
            out.append(TextDelta(self._id, text))
        for citation in typed(block.get("citations"), list, "content_block.citations"):
            out += self._cite(typed(citation, dict, "content_block.citations[]"))
        return out

    def add(self, delta: dict[str, Any], event: dict[str, Any]) -> list[Chunk]:
        kind = delta.get("type")
        if kind == "text_delta":
            text = delta.get("text")
            if not isinstance(text, str):
                text = typed(text, str, "delta.text")
            return [TextDelta(self._id, text)] if text else []
        if kind == "citations_delta":
            return self._cite(typed(delta.get("citation"), dict, "delta.citation"))
        return [RawChunk(event)]

    def _cite(self, citation: dict[str, Any]) -> list[Chunk]:
        self._citations.append(citation)
        return self._sources.of(citation)

    def close(self) -> list[Chunk]:
        noted = {self._provider: {"citations": self._citations}} if self._citations else None
        return [TextEnd(self._id, noted)]

    abandon = close


class _Thinking:
    """A block of reasoning, signed at its end."""

    __slots__ = ("_id", "_provider", "_signature")

    def __init__(self, part_id: str, provider: str) -> None:
        self._id = part_id
        self._provider = provider
        self._signature = ""

    def start(self, block: dict[str, Any]) -> list[Chunk]:
        text = typed(block.get("thinking"), str, "content_block.thinking")
        self._signature = typed(block.get("signature"), str, "content_block.signature")
        start = ReasoningStart(self._id)
        return [start, ReasoningDelta(self._id, text)] if text else [start]

    def add(self, delta: dict[str, Any], event: dict[str, Any]) -> list[Chunk]:
        kind = delta.get("type")
        if kind == "thinking_delta":
            text = typed(delta.get("thinking"), str, "delta.thinking")
            return [ReasoningDelta(self._id, text)] if text else []
        if kind == "signature_delta":  # whole, though it is called a delta
            self._signature = typed(delta.get("signature"), str, "delta.signature")
            return []
        return [RawChunk(event)]

    def close(self) -> list[Chunk]:
        if not self._signature:
            return [ReasoningEnd(self._id)]
        noted: ProviderMetadata = {self._provider: {"signature": self._signature}}
        return [ReasoningEnd(self._id, self._signature, noted)]

    abandon = close


class _Call:
    """A tool call, of the caller's tools or of the provider's own."""

    __slots__ = ("_calls", "_executed", "_input", "_metadata", "_name", "_pieces", "id")

    def __init__(
        self,
        block: dict[str, Any],
        provider: str,
        ids: set[str],
        calls: dict[str, ToolCall],
    ) -> None:
        kind = block["type"]
        name = typed(block.get("name"), str, "content_block.name")
        if not name:
            msg = f"content_block.name is missing: {block!r:.{EXCERPT}}"
            raise ProviderStreamError(msg)
        self.id = typed(block.get("id"), str, "content_block.id")
        if not self.id or self.id in ids:  # each call of an answer has one of its own
            self.id = f"toolu_{new_id()}"
        ids.add(self.id)
        self._name = name
        self._executed = _CALLS[kind]
        self._input = typed(block.get("input"), dict, "content_block.input")
        more = {k: v for k, v in block.items() if k not in ("id", "input", "name", "type")}
        if self._executed:
            more["type"] = kind
        self._metadata: ProviderMetadata | None = {provider: more} if more else None
        self._pieces: list[str] = []
        self._calls = calls

    def start(self) -> list[Chunk]:
        return [ToolCallInputStart(self.id, self._name, self._executed, self._metadata)]

    def add(self, delta: dict[str, Any], event: dict[str, Any]) -> list[Chunk]:
        if delta.get("type") != "input_json_delta":
            return [RawChunk(event)]
        text = typed(delta.get("partial_json"), str, "delta.partial_json")
        if not text:
            return []
        self._pieces.append(text)
        return [ToolCallDelta(self.id, text)]

    def close(self) -> list[Chunk]:
        out: list[Chunk] = []
        if self._input and not self._pieces:  # it stood whole where it began
            self._pieces = [json_text(self._input)]
            out.append(ToolCallDelta(self.id, self._pieces[0]))
        call = tool_call(
            self.id,
            self._name,
            "".join(self._pieces),
            provider_executed=self._executed,
            provider_metadata=self._metadata,
        )
        if self._executed:
            self._calls[self.id] = call
        return [*out, ToolCallInputEnd(self.id), call]

    def abandon(self) -> list[Chunk]:
        return [ToolCallInputEnd(self.id)]  # half a call must not run


class _Other:
    """A block that was told whole when it began, or one of a kind unknown here."""

    __slots__ = ()

    def add(self, delta: dict[str, Any], event: dict[str, Any]) -> list[Chunk]:  # noqa: ARG002 - as others
        return [RawChunk(event)]

    def close(self) -> list[Chunk]:
        return []

    abandon = close


class AnthropicDecoder:
    """Events to chunks. Pure, and linear in the length of the stream.

    A `message_start` that comes again is no news. One with a block open, or of another message,
    is an answer begun anew by something between us and the provider: what is open of the first
    answer is closed, its half-written tool calls are never made, and what had gone out of it stays.

    Attributes:
        done: `message_stop` was seen.
    """

    def __init__(self, provider: str = "anthropic", warnings: Iterable[str] = ()) -> None:
        """Start before the first event.

        Args:
            provider: named in the metadata.
            warnings: what the request had to leave out, for the metadata.
        """
        self.done = False
        self._provider = provider
        self._warnings = list(warnings)
        self._message: str | None = None  # the id of the message at hand, once one has begun
        self._early: list[Chunk] = []  # what came before it: metadata have to be first
        self._open: dict[int, _Block] = {}
        self._count = 0  # of parts: blocks are counted anew with every message
        self._ids: set[str] = set()  # of all calls
        self._calls: dict[str, ToolCall] = {}  # of the provider's own tools
        self._sources = _Sources(provider)
        self._reason: str | None = None
        self._usage: dict[str, Any] = {}
        self._noted: dict[str, Any] = {}

    def feed(self, event: str) -> list[Chunk]:
        """The chunks of one event.

        Raises:
            ProviderStreamError: the event is no JSON object, has a field of a type that the
                protocol does not know, or is a piece of a block that is not open.
            ProviderError: it is the provider's own error.
        """
        if self.done:
            return []
        data = object_of(event)
        kind = data.get("type")
        if kind == "content_block_delta":  # nearly every event is one
            delta = data.get("delta")
            if not isinstance(delta, dict):
                delta = typed(delta, dict, "delta")
            return self._block(data).add(delta, data)
        return self._event(typed(kind, str, "type"), data)

    def end(self) -> list[Chunk]:
        """The last chunks, when the connection has ended: none, since `message_stop` gave them.

        Raises:
            IncompleteStreamError: no `message_stop` came before.
        """
        if self.done:
            return []
        msg = "the stream stopped without message_stop"
        raise IncompleteStreamError(msg, is_retryable=True)

    def _event(self, kind: str, data: dict[str, Any]) -> list[Chunk]:
        match kind:
            case "content_block_start":
                return self._start(data)
            case "content_block_stop":
                block = self._open.pop(_index(data), None)
                return block.close() if block is not None else []
            case "message_start":
                return self._begin(typed(data.get("message"), dict, "message"))
            case "message_delta":
                self._note(typed(data.get("delta"), dict, "delta"), data.get("usage"))
                self._keep("context_management", data)
                return []
            case "message_stop":
                return self._finish()
            case "ping":
                return []
        if kind == "error" or data.get("error"):
            raise provider_error(data)
        if self._message is None:
            self._early.append(RawChunk(data))
            return []
        return [RawChunk(data)]

    # --- the message -----------------------------------------------------------------------

    def _begin(self, message: dict[str, Any]) -> list[Chunk]:
        name = typed(message.get("id"), str, "message.id")
        content = typed(message.get("content"), list, "message.content")
        if name == self._message and not self._open:
            return []
        out: list[Chunk] = []
        if self._message is None:
            model = typed(message.get("model"), str, "message.model")
            told = self._warnings or None
            out.append(
                ResponseMetadata(
                    name or None, model or None, provider=self._provider, warnings=told
                )
            )
            out += self._early
        for block in self._open.values():
            out += block.abandon()
        self._open.clear()
        self._message = name
        self._reason = None
        self._usage, self._noted = {}, {}
        self._note(message, message.get("usage"))
        for index, block in enumerate(content):
            event = {"type": "content_block_start", "index": index, "content_block": block}
            out += self._start(event)
            out += self._open.pop(index).close()
        return out

    def _note(self, fields: dict[str, Any], usage: Any) -> None:
        """What is said of the answer; usage is a running total, told in pieces."""
        self._reason = typed(fields.get("stop_reason"), str, "stop_reason") or self._reason
        for name in _NOTED:
            self._keep(name, fields)
        told = typed(usage, dict, "usage")
        self._usage.update({name: value for name, value in told.items() if value is not None})

    def _keep(self, name: str, fields: dict[str, Any]) -> None:
        if fields.get(name) is not None:
            self._noted[name] = fields[name]

    def _finish(self) -> list[Chunk]:
        out = self._begin({}) if self._message is None else []
        for block in self._open.values():
            out += block.close()
        self._open.clear()
        usage = _usage(self._usage)
        noted = {self._provider: {"usage": self._usage, **self._noted}}
        raw = self._reason
        out.append(FinishChunk(REASONS.get(raw or "", "other"), usage, noted, raw))
        self.done = True
        return out

    # --- blocks ----------------------------------------------------------------------------

    def _block(self, data: dict[str, Any]) -> _Block:
        index = data.get("index")
        if not isinstance(index, int):
            index = _index(data)
        block = self._open.get(index)
        if block is None:
            msg = f"a piece of content block {index}, which is not open: {data!r:.{EXCERPT}}"
            raise ProviderStreamError(msg)
        return block

    def _start(self, data: dict[str, Any]) -> list[Chunk]:
        index = _index(data)
        block = typed(data.get("content_block"), dict, "content_block")
        kind = typed(block.get("type"), str, "content_block.type")
        out = self._begin({}) if self._message is None else []
        before = self._open.get(index)
        if before is not None:
            if isinstance(before, _Call) and before.id == block.get("id"):
                return out  # begun again: one call is not to be made twice
            out += before.close()
        opened: _Block
        if kind == "text":
            text = _Text(self._part_id(), self._provider, self._sources)
            opened, begun = text, text.start(block)
        elif kind == "thinking":
            thinking = _Thinking(self._part_id(), self._provider)
            opened, begun = thinking, thinking.start(block)
        elif kind in _CALLS:
            call = _Call(block, self._provider, self._ids, self._calls)
            opened, begun = call, call.start()
        else:
            opened, begun = _Other(), [self._whole(kind, block, data)]
        self._open[index] = opened
        return out + begun

    def _part_id(self) -> str:
        self._count += 1
        return str(self._count - 1)

    def _whole(self, kind: str, block: dict[str, Any], event: dict[str, Any]) -> Chunk:
        """The chunk of a block that has no pieces."""
        if kind == "redacted_thinking":
            noted = {self._provider: {"type": kind}}
            return RedactedReasoning(self._part_id(), block.get("data"), noted)
        call_id = block.get("tool_use_id")
        if not kind.endswith(RESULT) or not isinstance(call_id, str):
            return RawChunk(event)
        content = block.get("content")
        failed = isinstance(content, dict) and str(content.get("type")).endswith("_error")
        call = self._calls.get(call_id)  # it may be of an earlier answer
        return ToolResult(
            call_id,
            call.tool_name if call is not None else kind.removesuffix(RESULT),
            content,
            call.args if call is not None else None,
            is_error=True if failed or block.get("is_error") is True else None,
            provider_executed=True,
        )


def _index(event: dict[str, Any]) -> int:
    return typed(event.get("index"), int, "index")


def _usage(raw: Mapping[str, Any]) -> Usage:
    """The protocol counts what was read from a cache, or written to one, beside the input."""
    cached = count(raw.get("cache_read_input_tokens"))
    written = count(raw.get("cache_creation_input_tokens"))
    said = typed(raw.get("output_tokens_details"), dict, "output_tokens_details")
    return Usage(
        count(raw.get("input_tokens")) + cached + written,
        count(raw.get("output_tokens")),
        reasoning_tokens=count(said.get("thinking_tokens")),
        cached_input_tokens=cached,
    )
