"""A stream in the OpenAI Chat Completions protocol, in the many ways it is spoken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from streampipe.chunks import (
    Chunk,
    FinishChunk,
    ResponseMetadata,
    SourceChunk,
    ToolCallDelta,
    ToolCallInputEnd,
    ToolCallInputStart,
    Usage,
)
from streampipe.errors import IncompleteStreamError, ProviderStreamError
from streampipe.messages import new_id
from streampipe.models._decoding import EXCERPT, Parts, count, object_of, parsed, tool_call, typed
from streampipe.models._failures import provider_error

REASONS: Mapping[str, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "content_filter": "content-filter",
}
_REASONING = ("reasoning_content", "reasoning")
THINK, CLOSE = "<think>", "</think>"  # how some servers pass reasoning on, inline


class _Call:
    """A tool call in the making; it is announced once its name is known."""

    __slots__ = ("id", "name", "pieces", "size")

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.name = ""
        self.pieces: list[str] = []
        self.size = 0

    def add(self, text: str) -> bool:
        """Take a piece of the arguments, unless it says again what is already there as a whole.

        Some servers close a call so. An object after an object is no JSON, so nothing is lost; and
        the lengths tell before anything is joined or parsed.
        """
        if len(text) == self.size and text == "".join(self.pieces) and parsed(text) is not None:
            return False
        self.pieces.append(text)
        self.size += len(text)
        return True


class ChatDecoder:
    """Events to chunks. Pure, and linear in the length of the stream.

    Attributes:
        done: `[DONE]` was seen, or the stream ended cleanly after a finish reason.
    """

    def __init__(self, provider: str = "openai", warnings: Iterable[str] = ()) -> None:
        """Start before the first event.

        Args:
            provider: named in the metadata.
            warnings: what the request had to leave out, for the metadata.
        """
        self.done = False
        self._provider = provider
        self._warnings = list(warnings)
        self._begun = False
        self._parts = Parts()
        self._say: Callable[[Any, list[Chunk]], None] = self._first
        self._held = ""  # text that may turn out to be the beginning of a tag
        self._reasoned: dict[str, Any] = {}  # what is noted of the reasoning
        self._details: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._calls: list[_Call] = []
        self._by_key: dict[int | str, _Call] = {}  # the newest call of an index or id
        self._sources: set[str] = set()
        self._reason: str | None = None
        self._usage: Usage | None = None

    def feed(self, event: str) -> list[Chunk]:
        """The chunks of one event.

        Raises:
            ProviderStreamError: the event is no JSON object, or has a field of a type that the
                protocol does not know.
            ProviderError: it is the provider's own error.
        """
        if self.done:
            return []
        if event.strip() == "[DONE]":
            return self._finish()
        data = object_of(event)
        if data.get("error") or data.get("object") == "error":
            raise provider_error(data)
        return self._event(data)

    def end(self) -> list[Chunk]:
        """The last chunks, when the connection has ended.

        Raises:
            IncompleteStreamError: neither `[DONE]` nor a finish reason came before.
        """
        if self.done:
            return []
        if self._reason is None:
            msg = "the stream stopped without a finish reason or [DONE]"
            raise IncompleteStreamError(msg, is_retryable=True)
        return self._finish()

    def _event(self, data: dict[str, Any]) -> list[Chunk]:
        out: list[Chunk] = []
        choices = typed(data.get("choices"), list, "choices")
        if not self._begun and (choices or data.get("id")):  # a filter's report has neither
            self._begin(data, out)
        usage = data.get("usage") or typed(data.get("x_groq"), dict, "x_groq").get("usage")
        if usage:  # the last one counts: some servers send a running total with every event
            self._usage = _usage(usage)
        if "citations" in data:
            self._source(data["citations"], out)
        for item in choices:
            choice = typed(item, dict, "choices[]")
            if choice.get("index"):
                continue  # an alternative answer (`n` > 1): a run has one
            self._delta(typed(choice.get("delta"), dict, "delta"), out)
            self._reason = typed(choice.get("finish_reason"), str, "finish_reason") or self._reason
        return out

    def _begin(self, data: Mapping[str, Any], out: list[Chunk]) -> None:
        self._begun = True
        created = data.get("created")
        out.append(
            ResponseMetadata(
                data.get("id") or None,
                data.get("model") or None,
                float(created) if isinstance(created, int | float) else None,
                self._provider,
                warnings=self._warnings or None,
            ),
        )

    def _delta(self, delta: dict[str, Any], out: list[Chunk]) -> None:
        for field in _REASONING:
            if delta.get(field):
                self._reasoned["field"] = field
                self._write("reasoning", delta[field], out)
                break
        if delta.get("reasoning_details"):
            self._detail(delta, out)
        content = delta.get("content")
        if isinstance(content, list):
            for part in content:
                self._content_part(typed(part, dict, "content[]"), out)
        elif content:
            self._say(content, out)
        if delta.get("refusal"):  # said instead of content, and to the user: so it is text
            self._write("text", delta["refusal"], out)
        if "annotations" in delta:
            self._source(delta["annotations"], out)
        for item in typed(delta.get("tool_calls"), list, "tool_calls"):
            self._call(typed(item, dict, "tool_calls[]"), out)
        if delta.get("function_call"):  # what tool calls were before there could be several
            self._call({"index": "function_call", "function": delta["function_call"]}, out)

    def _content_part(self, part: dict[str, Any], out: list[Chunk]) -> None:
        """Content as a list of parts; a thinking part holds a list of text parts of its own."""
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            if isinstance(inner, str):
                inner = [{"text": inner}]
            for piece in typed(inner, list, "thinking"):
                self._write("reasoning", typed(piece, dict, "thinking[]").get("text"), out)
        elif part.get("text"):
            self._write("text", part["text"], out)

    def _detail(self, delta: dict[str, Any], out: list[Chunk]) -> None:
        """Reasoning as a list of typed items, to be sent back as they came."""
        for item in typed(delta["reasoning_details"], list, "reasoning_details"):
            detail = typed(item, dict, "reasoning_details[]")
            key = (str(detail.get("type")), str(detail.get("index", detail.get("id"))))
            self._details.setdefault(key, []).append(detail)
            if not any(delta.get(field) for field in _REASONING):  # else it says the same again
                self._write("reasoning", detail.get("text") or detail.get("summary"), out)

    def _first(self, text: Any, out: list[Chunk]) -> None:
        """The beginning of the text: with `<think>` there it is reasoning, up to `</think>`."""
        text = self._held + typed(text, str, "content")
        begun = text.lstrip()
        self._held = ""
        if begun.startswith(THINK):
            self._say = self._thought
            self._thought(begun[len(THINK) :].lstrip(), out)
        elif THINK.startswith(begun):
            self._held = text
        else:
            self._say = self._plain
            self._plain(text, out)

    def _thought(self, text: Any, out: list[Chunk]) -> None:
        """Reasoning between the tags; what may be the beginning of the closing one is held."""
        text = self._held + typed(text, str, "content")
        thought, tag, rest = text.partition(CLOSE)
        if tag:
            self._held = ""
            self._write("reasoning", thought, out)
            self._say = self._behind
            return self._behind(rest, out)
        place = text.rfind("<")
        edge = place if place >= 0 and CLOSE.startswith(text[place:]) else len(text)
        self._held = text[edge:]
        return self._write("reasoning", text[:edge], out)

    def _behind(self, text: Any, out: list[Chunk]) -> None:
        """White space behind the closing tag is neither reasoning nor text."""
        text = typed(text, str, "content").lstrip()
        if text:
            self._say = self._plain
            self._plain(text, out)

    def _plain(self, text: Any, out: list[Chunk]) -> None:
        self._write("text", text, out)

    def _write(self, kind: str, text: Any, out: list[Chunk]) -> None:
        if kind != "reasoning" and text and self._parts.is_open("reasoning"):
            self._close(out)
        self._parts.write(kind, text, out)

    def _close(self, out: list[Chunk]) -> None:
        """Close the part that is open; reasoning is noted as this provider's own."""
        held, self._held = self._held, ""
        self._write("reasoning" if self._say == self._thought else "text", held, out)
        if not self._parts.is_open("reasoning"):
            return self._parts.close(out)
        noted, self._reasoned = self._reasoned, {}
        if self._details:
            noted["reasoning_details"] = [_merged(items) for items in self._details.values()]
            self._details = {}
        return self._parts.close(out, provider_metadata={self._provider: noted})

    def _call(self, item: dict[str, Any], out: list[Chunk]) -> None:
        function = typed(item.get("function"), dict, "tool_calls[].function")
        call_id = typed(item.get("id"), str, "tool_calls[].id")
        name = typed(function.get("name"), str, "tool_calls[].function.name")
        text = typed(function.get("arguments"), str, "tool_calls[].function.arguments")
        call = self._call_of(item.get("index"), call_id, name)
        fresh = call.add(text) if text else False
        if name and not call.name:
            call.name = name
            self._close(out)
            out.append(ToolCallInputStart(call.id, name))
            out.extend(ToolCallDelta(call.id, piece) for piece in call.pieces)
        elif fresh and call.name:
            out.append(ToolCallDelta(call.id, text))

    def _call_of(self, index: Any, call_id: str, name: str) -> _Call:
        """The call that a delta belongs to.

        By its index, or its id where there is no index; with neither, it goes on with the newest
        call. A delta that brings a name and has no place, or brings another id too, begins a call
        (seen with parallel calls, all at index 0). Another id without a name begins none: some
        servers change ids as they go.
        """
        key: int | str = index if isinstance(index, int | str) else call_id
        call = self._by_key.get(key) if key != "" else next(reversed(self._calls), None)
        if call is not None and name and call.name and (key == "" or call_id not in ("", call.id)):
            call = None
        if call is None:
            call = _Call(call_id or f"call_{new_id()}")
            self._calls.append(call)
            if key != "":
                self._by_key[key] = call
        return call

    def _source(self, found: Any, out: list[Chunk]) -> None:
        """Sources: `citations` are addresses, all of them with every event; annotations objects."""
        for item in typed(found, list, "citations"):
            source = item if isinstance(item, dict) else {"url": item}
            source = typed(source.get("url_citation"), dict, "url_citation") or source
            url = source.get("url")
            if isinstance(url, str) and url and url not in self._sources:
                title = source.get("title")
                self._sources.add(url)
                out.append(
                    SourceChunk(
                        f"source-{len(self._sources)}",
                        title=title if isinstance(title, str) else "",
                        url=url,
                    ),
                )

    def _finish(self) -> list[Chunk]:
        out: list[Chunk] = []
        if not self._begun:
            self._begin({}, out)
        self._close(out)
        for call in self._calls:
            if not call.name:
                msg = f"a tool call has no name: {''.join(call.pieces)[:EXCERPT]!r}"
                raise ProviderStreamError(msg)
            whole = tool_call(call.id, call.name, "".join(call.pieces))
            out += (ToolCallInputEnd(call.id), whole)
        raw = self._reason
        out.append(FinishChunk(REASONS.get(raw or "", "other"), self._usage, raw_reason=raw))
        self.done = True
        return out


def _merged(items: list[dict[str, Any]]) -> dict[str, Any]:
    """The pieces of one reasoning item as the item that they are."""
    whole: dict[str, Any] = {}
    for name in {name: None for item in items for name in item}:
        values = [item[name] for item in items if item.get(name) is not None]
        texts = name in ("text", "summary", "data") and all(isinstance(v, str) for v in values)
        whole[name] = "".join(values) if texts else next(iter(values), None)
    return whole


def _usage(raw: Any) -> Usage:
    usage = typed(raw, dict, "usage")
    said = typed(usage.get("completion_tokens_details"), dict, "completion_tokens_details")
    asked = typed(usage.get("prompt_tokens_details"), dict, "prompt_tokens_details")
    return Usage(
        count(usage.get("prompt_tokens")),
        count(usage.get("completion_tokens")),
        count(usage.get("total_tokens")),
        count(said.get("reasoning_tokens")),
        count(asked.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")),
    )
