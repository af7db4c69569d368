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
from streampipe.messages._json import whole
from streampipe.models._http.failures import provider_error
from streampipe.models._protocol.decoding import (
    EXCERPT,
    CallIds,
    EventDecoder,
    Parts,
    count,
    parsed,
    tool_call,
    typed,
)
from streampipe.models._protocol.encoding import digest_of

REASONS: Mapping[str, str] = {
    "stop": "stop",
    "length": "length",
    "model_length": "length",  # Mistral's: the context is full
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "content_filter": "content-filter",
}
_REASONING = ("reasoning_content", "reasoning")
_WHOLE = ("stop", "tool-calls")  # what an answer ends with that was not cut off
_FAILED = "the answer broke off with the finish reason 'error'"
THINK, CLOSE = "<think>", "</think>"  # how some servers pass reasoning on, inline


class _Call:
    """A tool call in the making; it is announced once its name is known.

    Attributes:
        id: its own.
        told: the id that the server gave; another call may have it too.
        name: of the tool.
        pieces: of the arguments.
        is_placed: whether it has an index.
    """

    __slots__ = ("_size", "id", "is_placed", "name", "pieces", "told")

    def __init__(self, call_id: str, told: str) -> None:
        self.id = call_id
        self.told = told
        self.name = ""
        self.pieces: list[str] = []
        self.is_placed = False
        self._size = 0

    def add(self, text: str) -> bool:
        """Take a piece of the arguments, unless it says again what is already there as a whole.

        Some servers close a call so. The lengths tell before anything is joined or parsed.
        """
        if len(text) * 4 >= self._size and self._is_after_object(text):  # white space may differ
            said = parsed(text)
            if said is not None and said == parsed("".join(self.pieces)):
                return False
        self.pieces.append(text)
        self._size += len(text)
        return True

    def is_other(self, told: str, name: str, text: str) -> bool:
        """Whether what has a name of its own begins another call, at the place of this one."""
        if not self.name:
            return False
        if name != self.name or told not in ("", self.told):
            return True
        if not self._is_after_object(text):
            return False
        there = parsed("".join(self.pieces))
        return there is not None and there != parsed(text)

    def _is_after_object(self, text: str) -> bool:
        """Whether this is an object right behind an object's end, which is no JSON."""
        before = self.pieces[-1].rstrip()[-1:] if self.pieces else ""
        return before == "}" and text.lstrip()[:1] == "{"


class ChatDecoder(EventDecoder):
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
        super().__init__()
        self._provider = provider
        self._warnings = list(warnings)
        self._begun = False
        self._parts = Parts()
        self._say: Callable[[Any, list[Chunk]], None] = self._first
        self._held = ""  # text that may turn out to be the beginning of a tag
        self._reasoned: dict[str, Any] = {}  # what is noted of the reasoning
        self._details: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._calls: list[_Call] = []
        self._by_index: dict[int | str, _Call] = {}  # the newest call of each
        self._by_id: dict[str, _Call] = {}
        self._ids = CallIds()
        self._sources: set[str] = set()
        self._reason: str | None = None
        self._usage: Usage | None = None

    def _chunks(self, event: str) -> list[Chunk]:
        if self.done:
            return []
        if event.strip() == "[DONE]":
            return self._finish()
        data = self._object(event)
        if data.get("error") or data.get("object") == "error":
            raise provider_error(data)
        return self._event(data)

    def _last(self) -> list[Chunk]:
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
            if choice.get("usage"):
                self._usage = _usage(choice["usage"])
            self._delta(typed(choice.get("delta"), dict, "delta"), out)
            self._reason = typed(choice.get("finish_reason"), str, "finish_reason") or self._reason
            if self._reason == "error":
                raise provider_error(choice if choice.get("error") else {"error": _FAILED})
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
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if reasoning:
            plain = delta.get("reasoning_content")
            self._reasoned["field"] = "reasoning_content" if plain else "reasoning"
            self._write("reasoning", reasoning, out)
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
        if self._parts.is_open("reasoning"):
            self._close(out)
        self._parts.write("text", text, out)

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
            noted["digest"] = digest_of(whole("".join(self._parts.pieces)))
            self._details = {}
        return self._parts.close(out, provider_metadata={self._provider: noted})

    def _call(self, item: dict[str, Any], out: list[Chunk]) -> None:
        function = typed(item.get("function"), dict, "tool_calls[].function")
        call_id = typed(item.get("id"), str, "tool_calls[].id")
        name = typed(function.get("name"), str, "tool_calls[].function.name")
        text = typed(function.get("arguments"), str, "tool_calls[].function.arguments")
        call = self._call_of(item.get("index"), call_id, name, text)
        fresh = call.add(text) if text else False
        if name and not call.name:
            call.name = name
            self._close(out)
            out.append(ToolCallInputStart(call.id, name))
            out.extend(ToolCallDelta(call.id, piece) for piece in call.pieces)
        elif fresh and call.name:
            out.append(ToolCallDelta(call.id, text))

    def _call_of(self, index: Any, told: str, name: str, text: str) -> _Call:
        """The call that a delta belongs to.

        A delta that brings a name may begin another call at the place of one that has a name: with
        another id, another name or another object for its arguments (seen with parallel calls, all
        at index 0). Another id without a name begins none: some servers change ids as they go.
        """
        place = index if isinstance(index, int | str) else None
        call = self._known(place, told, name)
        if call is not None and name and call.is_other(told, name, text):
            call = None
        if call is None:
            call = _Call(self._ids.of(told), told)
            self._calls.append(call)
        if place is not None:
            call.is_placed = True
            self._by_index[place] = call
        if told:
            self._by_id[told] = call
        return call

    def _known(self, place: int | str | None, told: str, name: str) -> _Call | None:
        """The call at an index, else of an id, else the newest that a nameless delta goes on with.

        A call that has an index is found at another one by nothing: it is another call's.
        """
        if place is not None and place in self._by_index:
            return self._by_index[place]
        call = self._by_id.get(told)
        if call is None and self._calls and (place is None or not told):
            newest = self._calls[-1]
            call = None if name and newest.name else newest
        return None if call is not None and call.is_placed and place is not None else call

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
        reason = REASONS.get(self._reason or "", "other")
        for call in self._calls:
            if not call.name:
                msg = f"a tool call has no name: {''.join(call.pieces)[:EXCERPT]!r}"
                raise ProviderStreamError(msg)
            text = "".join(call.pieces)
            made = tool_call(call.id, call.name, text, is_cut=reason not in _WHOLE)
            out += (ToolCallInputEnd(call.id), made)
        out.append(FinishChunk(reason, self._usage, raw_reason=self._reason))
        self.done = True
        return out


def _merged(items: list[dict[str, Any]]) -> dict[str, Any]:
    """The pieces of one reasoning item as the item that they are."""
    made: dict[str, Any] = {}
    for name in {name: None for item in items for name in item}:
        values = [item[name] for item in items if item.get(name) is not None]
        texts = name in ("text", "summary", "data") and all(isinstance(v, str) for v in values)
        made[name] = "".join(values) if texts else next(iter(values), None)
    return made


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
