"""A stream in the OpenAI Chat Completions protocol, in the many ways it is spoken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import orjson
from pydantic_core import from_json

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
from streampipe.models._call import is_retryable

REASONS: Mapping[str, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "content_filter": "content-filter",
}
_EXCERPT = 120  # characters of an event that an error shows
_PARTS: dict[str, tuple[type[Any], type[Any], type[Any]]] = {
    "text": (TextStart, TextDelta, TextEnd),
    "reasoning": (ReasoningStart, ReasoningDelta, ReasoningEnd),
}
T = TypeVar("T")


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
        if len(text) == self.size and text == "".join(self.pieces) and _parsed(text) is not None:
            return False
        self.pieces.append(text)
        self.size += len(text)
        return True

    def whole(self) -> ToolCall:
        text = "".join(self.pieces)
        if text.strip() in ("", "null"):  # how servers write a call without arguments
            return ToolCall(self.id, self.name, {})
        args = _parsed(text)
        return ToolCall(self.id, self.name, args, text if args is None else None)


def _parsed(text: str) -> Any:
    """Arguments as values; None when they are no JSON.

    By pydantic: orjson would make a float of a whole number of more than 64 bits, such as an id.
    """
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        return None


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
        self._open = ""  # the kind of the part that is open, if one is
        self._parts = 0
        self._id = ""  # of the newest part
        self._calls: list[_Call] = []
        self._by_key: dict[int | str, _Call] = {}  # the newest call of an index or id
        self._sources: set[str] = set()
        self._reason: str | None = None
        self._usage: Usage | None = None

    def feed(self, event: str) -> list[Chunk]:
        """The chunks of one event.

        Raises:
            ProviderStreamError: the event is no JSON object, has a field of a type that the
                protocol does not know, or is the provider's own error.
        """
        if self.done:
            return []
        if event.strip() == "[DONE]":
            return self._finish()
        try:
            data = orjson.loads(event)
        except orjson.JSONDecodeError as error:
            msg = f"an event is no JSON ({error}): {event[:_EXCERPT]!r}"
            raise ProviderStreamError(msg) from error
        if not isinstance(data, dict):
            msg = f"an event must be a JSON object: {event[:_EXCERPT]!r}"
            raise ProviderStreamError(msg)
        if data.get("error") or data.get("object") == "error":
            raise _error(data.get("error") or data)
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
        choices = _typed(data.get("choices"), list, "choices")
        if not self._begun and (choices or data.get("id")):  # a filter's report has neither
            self._begin(data, out)
        usage = data.get("usage") or _typed(data.get("x_groq"), dict, "x_groq").get("usage")
        if usage:  # the last one counts: some servers send a running total with every event
            self._usage = _usage(usage)
        if "citations" in data:
            self._source(data["citations"], out)
        for item in choices:
            choice = _typed(item, dict, "choices[]")
            if choice.get("index"):
                continue  # an alternative answer (`n` > 1): a run has one
            self._delta(_typed(choice.get("delta"), dict, "delta"), out)
            self._reason = _typed(choice.get("finish_reason"), str, "finish_reason") or self._reason
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
            self._write("reasoning", reasoning, out)
        content = delta.get("content")
        if isinstance(content, list):
            for part in content:
                self._content_part(_typed(part, dict, "content[]"), out)
        elif content:
            self._write("text", content, out)
        if delta.get("refusal"):  # said instead of content, and to the user: so it is text
            self._write("text", delta["refusal"], out)
        if "annotations" in delta:
            self._source(delta["annotations"], out)
        for item in _typed(delta.get("tool_calls"), list, "tool_calls"):
            self._call(_typed(item, dict, "tool_calls[]"), out)
        if delta.get("function_call"):  # what tool calls were before there could be several
            self._call({"index": "function_call", "function": delta["function_call"]}, out)

    def _content_part(self, part: dict[str, Any], out: list[Chunk]) -> None:
        """Content as a list of parts; a thinking part holds a list of text parts of its own."""
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            if isinstance(inner, str):
                inner = [{"text": inner}]
            for piece in _typed(inner, list, "thinking"):
                self._write("reasoning", _typed(piece, dict, "thinking[]").get("text"), out)
        elif part.get("text"):
            self._write("text", part["text"], out)

    def _write(self, kind: str, text: Any, out: list[Chunk]) -> None:
        if not text:
            return
        if text.__class__ is not str:
            msg = f"{kind} must be a string, not {text!r:.{_EXCERPT}}"
            raise ProviderStreamError(msg)
        if self._open != kind:
            self._close(out)
            self._open = kind
            self._id = str(self._parts)
            self._parts += 1
            out.append(_PARTS[kind][0](self._id))
        out.append(_PARTS[kind][1](self._id, text))

    def _close(self, out: list[Chunk]) -> None:
        if self._open:
            out.append(_PARTS[self._open][2](self._id))
            self._open = ""

    def _call(self, item: dict[str, Any], out: list[Chunk]) -> None:
        function = _typed(item.get("function"), dict, "tool_calls[].function")
        call_id = _typed(item.get("id"), str, "tool_calls[].id")
        name = _typed(function.get("name"), str, "tool_calls[].function.name")
        text = _typed(function.get("arguments"), str, "tool_calls[].function.arguments")
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
        for item in _typed(found, list, "citations"):
            source = item if isinstance(item, dict) else {"url": item}
            source = _typed(source.get("url_citation"), dict, "url_citation") or source
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
                msg = f"a tool call has no name: {''.join(call.pieces)[:_EXCERPT]!r}"
                raise ProviderStreamError(msg)
            out += (ToolCallInputEnd(call.id), call.whole())
        raw = self._reason
        out.append(FinishChunk(REASONS.get(raw or "", "other"), self._usage, raw_reason=raw))
        self.done = True
        return out


def _typed(value: Any, kind: type[T], where: str) -> T:
    """A field that may be absent or null, which is the same as empty.

    Raises:
        ProviderStreamError: it is of another type.
    """
    if value is None:
        return kind()
    if not isinstance(value, kind):
        msg = f"{where} must be {kind.__name__}, not {value!r:.{_EXCERPT}}"
        raise ProviderStreamError(msg)
    return value


def _usage(raw: Any) -> Usage:
    usage = _typed(raw, dict, "usage")
    said = _typed(usage.get("completion_tokens_details"), dict, "completion_tokens_details")
    asked = _typed(usage.get("prompt_tokens_details"), dict, "prompt_tokens_details")
    return Usage(
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        _count(usage.get("total_tokens")),
        _count(said.get("reasoning_tokens")),
        _count(asked.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")),
    )


def _count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _error(error: Any) -> ProviderStreamError:
    """The provider's own error in a stream that began well."""
    code = None
    if isinstance(error, Mapping):
        code = error.get("code")
        error = error.get("message") or orjson.dumps(dict(error)).decode()
    retryable = isinstance(code, int) and is_retryable(code)
    msg = f"the provider reports an error: {str(error)[:1000]}"
    return ProviderStreamError(msg, is_retryable=retryable)
