"""The content blocks of the Anthropic Messages protocol that come in pieces."""

from __future__ import annotations

from typing import Any, Protocol

from streampipe.chunks import (
    Chunk,
    ProviderMetadata,
    RawChunk,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    SourceChunk,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolCallDelta,
    ToolCallInputEnd,
    ToolCallInputStart,
)
from streampipe.errors import ProviderStreamError
from streampipe.messages._json import json_text, whole
from streampipe.models._protocol.decoding import EXCERPT, CallIds, tool_call, typed
from streampipe.models._protocol.encoding import digest_of

EXECUTED = {"tool_use": None, "server_tool_use": True, "mcp_tool_use": True}
"""The types of calls, and whether the provider runs them."""


class Block(Protocol):
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


class Sources:
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


class Text:
    """A text block, which may cite sources."""

    __slots__ = ("_citations", "_id", "_provider", "_sources")

    def __init__(self, part_id: str, provider: str, sources: Sources) -> None:
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


class Thinking:
    """A block of reasoning, signed at its end."""

    __slots__ = ("_id", "_pieces", "_provider", "_signature")

    def __init__(self, part_id: str, provider: str) -> None:
        self._id = part_id
        self._provider = provider
        self._signature = ""
        self._pieces: list[str] = []

    def start(self, block: dict[str, Any]) -> list[Chunk]:
        text = typed(block.get("thinking"), str, "content_block.thinking")
        self._signature = typed(block.get("signature"), str, "content_block.signature")
        return [ReasoningStart(self._id), *self._said(text)]

    def add(self, delta: dict[str, Any], event: dict[str, Any]) -> list[Chunk]:
        kind = delta.get("type")
        if kind == "thinking_delta":
            text = typed(delta.get("thinking"), str, "delta.thinking")
            return self._said(text)
        if kind == "signature_delta":  # whole, though it is called a delta
            self._signature = typed(delta.get("signature"), str, "delta.signature")
            return []
        return [RawChunk(event)]

    def _said(self, text: str) -> list[Chunk]:
        self._pieces.append(text)
        return [ReasoningDelta(self._id, text)] if text else []

    def close(self) -> list[Chunk]:
        if not self._signature:
            return [ReasoningEnd(self._id)]
        digest = digest_of(whole("".join(self._pieces)))  # the signature holds for this text only
        noted = {"signature": self._signature, "digest": digest}
        return [ReasoningEnd(self._id, self._signature, {self._provider: noted})]

    abandon = close


class Calls:
    """The calls of an answer, in order, by the ids that the provider told."""

    def __init__(self) -> None:
        self.ids = CallIds("toolu_")
        self.told: dict[str, list[ToolCall]] = {}  # once they are whole
        self.begun: set[str] = set()

    def are_told(self, told: str, call: ToolCall) -> bool:
        """Whether this call has been told before; it is noted if not."""
        calls = self.told.setdefault(told, [])
        new = (call.tool_name, call.args, call.args_text)
        if told and new in [(c.tool_name, c.args, c.args_text) for c in calls]:
            return True
        calls.append(call)
        return False


class Call:
    """A tool call, of the caller's tools or of the provider's own.

    One with the id of an earlier call says nothing until it is whole: it may be that call again,
    which is not to be made twice.

    Attributes:
        told: the id that the provider gave.
        is_bare: a call of the caller's tools that came without arguments.
    """

    __slots__ = (
        "_calls",
        "_executed",
        "_id",
        "_input",
        "_is_held",
        "_metadata",
        "_name",
        "_pieces",
        "told",
    )

    def __init__(self, block: dict[str, Any], provider: str, calls: Calls) -> None:
        kind = block["type"]
        name = typed(block.get("name"), str, "content_block.name")
        if not name:
            msg = f"content_block.name is missing: {block!r:.{EXCERPT}}"
            raise ProviderStreamError(msg)
        self.told = typed(block.get("id"), str, "content_block.id")
        self._is_held = self.told in calls.begun and bool(self.told)
        calls.begun.add(self.told)
        self._id = calls.ids.of(self.told)
        self._name = name
        self._executed = EXECUTED[kind]
        self._input = typed(block.get("input"), dict, "content_block.input")
        more = {k: v for k, v in block.items() if k not in ("id", "input", "name", "type")}
        if self._executed:
            more["type"] = kind
        self._metadata: ProviderMetadata | None = {provider: more} if more else None
        self._pieces: list[str] = []
        self._calls = calls

    @property
    def is_bare(self) -> bool:
        return not (self._executed or self._input or "".join(self._pieces).strip())

    def start(self) -> list[Chunk]:
        return [] if self._is_held else [self._begun()]

    def _begun(self) -> Chunk:
        return ToolCallInputStart(self._id, self._name, self._executed, self._metadata)

    def add(self, delta: dict[str, Any], event: dict[str, Any]) -> list[Chunk]:
        if delta.get("type") != "input_json_delta":
            return [RawChunk(event)]
        text = typed(delta.get("partial_json"), str, "delta.partial_json")
        if not text:
            return []
        self._pieces.append(text)
        return [] if self._is_held else [ToolCallDelta(self._id, text)]

    def close(self) -> list[Chunk]:
        out: list[Chunk] = []
        if self._is_held:
            out = [self._begun(), *(ToolCallDelta(self._id, piece) for piece in self._pieces)]
        if self._input and not self._pieces:  # it stood whole where it began
            self._pieces = [json_text(self._input)]
            out.append(ToolCallDelta(self._id, self._pieces[0]))
        call = tool_call(
            self._id,
            self._name,
            "".join(self._pieces),
            provider_executed=self._executed,
            provider_metadata=self._metadata,
        )
        if self._calls.are_told(self.told, call):
            return []
        return [*out, ToolCallInputEnd(self._id), call]

    def abandon(self) -> list[Chunk]:
        return [] if self._is_held else [ToolCallInputEnd(self._id)]  # half a call must not run


class Other:
    """A block that was told whole when it began, or one of a kind unknown here."""

    __slots__ = ()

    def add(self, delta: dict[str, Any], event: dict[str, Any]) -> list[Chunk]:  # noqa: ARG002 - as others
        return [RawChunk(event)]

    def close(self) -> list[Chunk]:
        return []

    abandon = close
