"""Events of a chat-completions stream to chunks. Pure: no network, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from streampipe.chunks import (
    Chunk,
    FinishChunk,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseMetadata,
    SourceChunk,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolCallDelta,
    ToolCallInputEnd,
    ToolCallInputStart,
    Usage,
)
from streampipe.errors import IncompleteStreamError, ProviderStreamError
from streampipe.messages import new_id

REASONS = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "content_filter": "content-filter",
}


@dataclass(slots=True)
class _Call:
    """A tool call whose arguments are being written."""

    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    started: bool = False


class ChatDecoder:
    """What one stream says, event by event.

    The dialects differ in what they leave out. Tool calls are told apart by their index, else by
    a new id, since ids rotate in some and are empty in later deltas of others; reasoning comes as
    `reasoning_content`, `reasoning` or a list of content parts; usage in any event, the last wins.
    """

    def __init__(self, provider: str = "openai") -> None:
        """Start before the first event."""
        self.done = False
        self._provider = provider
        self._begun = False
        self._open: str = ""  # "text", "reasoning" or nothing
        self._part = -1
        self._id = ""  # of the open part
        self._calls: dict[int, _Call] = {}
        self._latest = -1
        self._sources: set[str] = set()
        self._reason: str | None = None
        self._usage: Mapping[str, Any] | None = None

    def feed(self, event: str) -> list[Chunk]:
        """The chunks of one event.

        Raises:
            ProviderStreamError: the event is no JSON object, or an error of the provider.
        """
        if event == "[DONE]":
            return self._finish()
        try:
            obj = orjson.loads(event)
        except orjson.JSONDecodeError as error:
            msg = f"an event is not JSON ({error}): {event[:120]!r}"
            raise ProviderStreamError(msg) from error
        if not isinstance(obj, dict):
            msg = f"an event is no JSON object: {event[:120]!r}"
            raise ProviderStreamError(msg)
        if obj.get("error"):
            raise ProviderStreamError(_error_text(obj["error"]))
        try:
            return self._event(obj)
        except (TypeError, AttributeError, KeyError) as error:
            msg = f"an event is not of this protocol ({error}): {event[:200]!r}"
            raise ProviderStreamError(msg) from error

    def end(self) -> list[Chunk]:
        """The last chunks, when the connection ended without `[DONE]`.

        Raises:
            IncompleteStreamError: no finish reason had come either.
        """
        if self.done:
            return []
        if self._reason is None:
            msg = "the stream ended without [DONE] or a finish reason"
            raise IncompleteStreamError(msg, is_retryable=True)
        return self._finish()

    # --- an event --------------------------------------------------------------------------

    def _event(self, obj: dict[str, Any]) -> list[Chunk]:
        out: list[Chunk] = []
        if not self._begun and obj.get("id"):
            self._begun = True
            out.append(self._metadata(obj))
        usage = obj.get("usage")
        if usage is None and "x_groq" in obj:
            usage = obj["x_groq"].get("usage")
        if usage is not None:
            self._usage = usage
        if "citations" in obj:
            self._cite(obj["citations"] or (), out)
        for choice in obj.get("choices") or ():
            if choice.get("index"):  # a second answer: we never ask for one
                continue
            reason = choice.get("finish_reason")
            if reason:
                self._reason = reason
            delta = choice.get("delta") or choice.get("message")
            if delta:
                self._delta(delta, out)
        return out

    def _delta(self, delta: dict[str, Any], out: list[Chunk]) -> None:
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if thought:
            self._say("reasoning", thought, out)
        content = delta.get("content")
        if content:
            if isinstance(content, str):
                if self._open == "text":
                    out.append(TextDelta(self._id, content))
                else:
                    self._say("text", content, out)
            else:
                self._content_list(content, out)
        if delta.get("refusal"):
            self._say("text", delta["refusal"], out)
        if delta.get("tool_calls"):
            for call in delta["tool_calls"]:
                self._tool_call(call, out)
        if delta.get("annotations"):
            urls = [a.get("url_citation") or {} for a in delta["annotations"]]
            self._cite([u for u in urls if u.get("url")], out)

    def _content_list(self, content: list[dict[str, Any]], out: list[Chunk]) -> None:
        for part in content:
            if part.get("type") == "thinking":
                inner = part.get("thinking") or ()
                texts = [inner] if isinstance(inner, str) else [t.get("text", "") for t in inner]
                for text in texts:
                    self._say("reasoning", text, out)
            elif part.get("text"):
                self._say("text", part["text"], out)

    def _say(self, kind: str, text: str, out: list[Chunk]) -> None:
        if not isinstance(text, str):
            msg = f"{kind} is {type(text).__name__}, not a string"
            raise TypeError(msg)
        if not text:
            return
        if self._open != kind:
            self._close(out)
            self._open = kind
            self._part += 1
            self._id = str(self._part)
            out.append(TextStart(self._id) if kind == "text" else ReasoningStart(self._id))
        delta = TextDelta if kind == "text" else ReasoningDelta
        out.append(delta(self._id, text))

    def _close(self, out: list[Chunk]) -> None:
        if self._open:
            out.append(TextEnd(self._id) if self._open == "text" else ReasoningEnd(self._id))
            self._open = ""

    def _tool_call(self, delta: dict[str, Any], out: list[Chunk]) -> None:
        self._close(out)
        function = delta.get("function") or {}
        call = self._call_of(delta.get("index"), delta.get("id"))
        if function.get("name") and not call.started:
            call.name = function["name"]
            call.started = True
            out.append(ToolCallInputStart(call.id, call.name))
        text = function.get("arguments")
        if text:
            if not isinstance(text, str):  # some local servers send the object itself
                text = orjson.dumps(text).decode()
            call.pieces.append(text)
            out.append(ToolCallDelta(call.id, text))

    def _call_of(self, index: int | None, call_id: str | None) -> _Call:
        if index is None:
            latest = self._calls.get(self._latest)
            new = latest is None or (call_id and call_id != latest.id)
            index = len(self._calls) if new else self._latest
        call = self._calls.get(index)
        if call is None:
            call = self._calls[index] = _Call(call_id or f"call_{new_id()}")
        self._latest = index
        return call

    def _cite(self, sources: Any, out: list[Chunk]) -> None:
        for source in sources:
            entry = {"url": source} if isinstance(source, str) else source
            url = entry["url"]
            if url not in self._sources:
                self._sources.add(url)
                number = len(self._sources) - 1
                out.append(SourceChunk(f"source-{number}", title=entry.get("title") or "", url=url))

    def _metadata(self, obj: dict[str, Any]) -> ResponseMetadata:
        created = obj.get("created")
        return ResponseMetadata(
            str(obj["id"]),
            obj.get("model"),
            float(created) if created else None,
            self._provider,
        )

    # --- the end ---------------------------------------------------------------------------

    def _finish(self) -> list[Chunk]:
        if self.done:
            return []
        self.done = True
        out: list[Chunk] = []
        self._close(out)
        for call in self._calls.values():
            if not call.started:
                msg = f"tool call {call.id!r} has no name"
                raise ProviderStreamError(msg)
            out += [ToolCallInputEnd(call.id), _whole(call)]
        out.append(
            FinishChunk(
                REASONS.get(self._reason or "", "other"),
                _usage(self._usage),
                provider_metadata={self._provider: {"usage": self._usage}} if self._usage else None,
                raw_reason=self._reason,
            ),
        )
        return out


def _whole(call: _Call) -> ToolCall:
    text = "".join(call.pieces)
    if not text.strip():
        return ToolCall(call.id, call.name, {})
    try:
        return ToolCall(call.id, call.name, orjson.loads(text))
    except orjson.JSONDecodeError:
        return ToolCall(call.id, call.name, None, text)


def _usage(raw: Mapping[str, Any] | None) -> Usage | None:
    if raw is None:
        return None
    inputs = raw.get("prompt_tokens_details") or {}
    outputs = raw.get("completion_tokens_details") or {}
    return Usage(
        raw.get("prompt_tokens") or 0,
        raw.get("completion_tokens") or 0,
        raw.get("total_tokens") or 0,
        outputs.get("reasoning_tokens") or 0,
        inputs.get("cached_tokens") or raw.get("prompt_cache_hit_tokens") or 0,
    )


def _error_text(error: Any) -> str:
    if isinstance(error, Mapping):
        return f"the provider reports an error: {error.get('message') or dict(error)}"
    return f"the provider reports an error: {error}"
