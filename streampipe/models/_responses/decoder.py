"""A stream in the OpenAI Responses protocol.

An answer is a list of items: messages, reasoning, calls of many kinds. An item is announced, its
content comes in pieces, and at last it is told again as a whole; the whole item is what counts,
except for text, which has been passed on by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from streampipe.chunks import (
    Chunk,
    FinishChunk,
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
    Usage,
)
from streampipe.errors import IncompleteStreamError
from streampipe.messages._json import whole
from streampipe.models._http.failures import provider_error
from streampipe.models._protocol.decoding import CallIds, EventDecoder, count, typed
from streampipe.models._protocol.encoding import digest_of
from streampipe.models._responses.calls import CALLS, Call

INCOMPLETE: Mapping[str, str] = {
    "max_output_tokens": "length",
    "content_filter": "content-filter",
}
_REASONING = ("reasoning_text", "summary_text")
_CHUNKS: Mapping[str, tuple[type[Any], type[Any]]] = {
    "output_text": (TextStart, TextDelta),
    "reasoning_text": (ReasoningStart, ReasoningDelta),
    "refusal": (TextStart, TextDelta),  # said to the user instead of an answer
    "summary_text": (ReasoningStart, ReasoningDelta),
}
_PLACES = frozenset(
    {"type", "sequence_number", "obfuscation", "item_id", "output_index", "content_index"},
)
"""What an event says of itself. One that has nothing else says that something goes on."""
_RETOLD = (".added", ".done", "_command.delta", "_content.delta", "_diff.delta")
"""How the types of events end that tell what the whole item will tell, too."""


class _Item:
    """An item of the answer, from its announcement on."""

    __slots__ = ("call", "id", "is_done", "is_said", "part", "phase", "type")

    def __init__(self, kind: str, item: Mapping[str, Any]) -> None:
        self.type = kind
        self.id = typed(item.get("id"), str, "item.id")
        self.phase = item.get("phase")
        self.call: Call | None = None
        self.part: _Part | None = None  # that is open: one at a time
        self.is_said = False  # pieces of it have been passed on
        self.is_done = False


_Place = tuple[str, Any, Any]  # form, index of the item, index in the item


class _Part:
    """A part of text or reasoning that is open; its form is its type in the protocol."""

    __slots__ = ("form", "id", "pieces", "place")

    def __init__(self, part_id: str, place: _Place) -> None:
        self.id = part_id
        self.pieces: list[str] = []  # of reasoning
        self.form = place[0]
        self.place = place


class ResponsesDecoder(EventDecoder):
    """Events to chunks. Pure, and linear in the length of the stream.

    An item is found by its id or by its index in the answer, as some servers give it another id in
    every event, and others every item the same index.

    Attributes:
        done: the event that ends the answer was seen.
    """

    def __init__(self, provider: str = "openai", warnings: Iterable[str] = ()) -> None:
        """Start before the first event.

        Args:
            provider: named in the metadata; what it has to be sent again stands under its name.
            warnings: what the request had to leave out, for the metadata.
        """
        super().__init__()
        self._provider = provider
        self._warnings = list(warnings)
        self._begun = False
        self._items: list[_Item] = []
        self._by_id: dict[str, _Item] = {}
        self._by_index: dict[int, _Item] = {}
        self._count = 0  # parts so far
        self._open: dict[_Place, _Part] = {}
        self._part: _Part | None = None  # the newest, and where it is
        self._place: _Place | None = None
        self._waiting: dict[str, Call] = {}  # the provider's calls, by id and type of the item
        self._sources: set[str] = set()
        self._called = False
        self._ids = CallIds()

    def _chunks(self, event: str) -> list[Chunk]:
        if self.done or (event[:1] != "{" and event.strip() == "[DONE]"):
            return []  # `[DONE]` is the end of another protocol
        data = self._object(event)
        kind = data.get("type")
        out: list[Chunk] = []
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        if handler is None:
            self._on_other(data, out)
        else:
            handler(self, data, out)
        if out and not self._begun:
            out.insert(0, self._metadata({}))
        return out

    def _last(self) -> list[Chunk]:
        if not self.done:
            msg = "the stream stopped without response.completed or another end of the answer"
            raise IncompleteStreamError(msg, is_retryable=True)
        return []

    # --- the answer --------------------------------------------------------------------------

    def _metadata(self, response: Mapping[str, Any]) -> ResponseMetadata:
        self._begun = True
        created = response.get("created_at")
        return ResponseMetadata(
            typed(response.get("id"), str, "response.id") or None,
            typed(response.get("model"), str, "response.model") or None,
            float(created) if isinstance(created, int | float) else None,
            self._provider,
            warnings=self._warnings or None,
        )

    def _noted(self, **values: Any) -> dict[str, Any] | None:
        """Provider metadata of what there is of these values."""
        kept = {name: value for name, value in values.items() if value}
        return {self._provider: kept} if kept else None

    def _on_begin(self, data: dict[str, Any], out: list[Chunk]) -> None:
        if not self._begun:
            out.append(self._metadata(typed(data.get("response"), dict, "response")))

    def _on_end(self, data: dict[str, Any], out: list[Chunk]) -> None:
        response = typed(data.get("response"), dict, "response")
        status = typed(response.get("status"), str, "response.status")
        if status not in ("cancelled", "failed", "incomplete"):
            status = str(data["type"]).removeprefix("response.")
        if status == "failed":
            raise provider_error(data)
        if not self._begun:
            out.append(self._metadata(response))
        is_untold = not self._items  # by a server that sends no pieces
        for item in typed(response.get("output"), list, "response.output"):
            begun = self._found({}, typed(item, dict, "item").get("id"))
            if is_untold or (begun is not None and not begun.is_done):
                self._on_item_done({"item": {"status": status, **item}}, out)
        for left in self._items:
            if not left.is_done:
                self._finish(left, {}, out)
            self._close(left, out)
        details = typed(response.get("incomplete_details"), dict, "incomplete_details")
        why = typed(details.get("reason"), str, "incomplete_details.reason")
        if status == "completed":
            reason = "tool-calls" if self._called else "stop"
        else:
            reason = INCOMPLETE.get(why, "other")
        noted = self._noted(
            service_tier=response.get("service_tier"),
            content_filters=response.get("content_filters"),  # Azure
        )
        usage = response.get("usage")
        spent = None if usage is None else _usage(usage)
        out.append(FinishChunk(reason, spent, noted, raw_reason=why or status))
        self.done = True

    def _on_error(self, data: dict[str, Any], out: list[Chunk]) -> None:
        del out
        raise provider_error(data)

    def _on_other(self, data: dict[str, Any], out: list[Chunk]) -> None:
        if data.get("error") and not isinstance(data.get("type"), str):  # a proxy's
            raise provider_error(data)
        is_retold = str(data.get("type")).endswith(_RETOLD)
        if not (is_retold or data.keys() <= _PLACES):
            out.append(RawChunk(data))

    # --- items -------------------------------------------------------------------------------

    def _found(self, data: Mapping[str, Any], item_id: Any) -> _Item | None:
        """The item that an event is about."""
        found = self._by_id.get(item_id) if isinstance(item_id, str) else None
        if found is None:
            index = data.get("output_index")
            found = self._by_index.get(index) if isinstance(index, int) else None
        return found

    def _start(self, kind: str, item: Mapping[str, Any], index: Any) -> _Item:
        started = _Item(kind, item)
        self._items.append(started)
        if started.id:
            self._by_id[started.id] = started
        if isinstance(index, int):
            self._by_index[index] = started
        return started

    def _on_item(self, data: dict[str, Any], out: list[Chunk]) -> None:
        item = typed(data.get("item"), dict, "item")
        kind = typed(item.get("type"), str, "item.type")
        if item.get("id") and self._found({}, item["id"]):
            return  # said twice
        started = self._start(kind, item, data.get("output_index"))
        if kind in CALLS:
            self._call(started, item, out)

    def _on_item_done(self, data: dict[str, Any], out: list[Chunk]) -> None:
        item = typed(data.get("item"), dict, "item")
        kind = typed(item.get("type"), str, "item.type")
        found = self._found(data, item.get("id"))
        if (
            found is None
            or found.type != kind
            or (
                found.is_done and found.id != (item.get("id") or "")
            )  # all at one index, unannounced
        ):
            found = self._start(kind, item, data.get("output_index"))
        if not found.is_done:
            found.id = typed(item.get("id"), str, "item.id") or found.id
            self._finish(found, item, out)

    def _finish(self, found: _Item, item: dict[str, Any], out: list[Chunk]) -> None:
        """Say what is left to be said of an item; `item` is empty if its end never came."""
        found.is_done = True
        if found.type == "message":
            self._finish_message(found, item, out)
        elif found.type == "reasoning":
            self._finish_reasoning(found, item, out)
        elif found.type in CALLS:
            self._finish_call(found, item, out)
        elif found.type.endswith("_output") and self._result(item, out):
            return
        elif item:
            out.append(RawChunk(item))

    # --- text and reasoning ------------------------------------------------------------------

    def _on_text(self, data: dict[str, Any], out: list[Chunk]) -> None:
        text = data.get("delta")
        if text.__class__ is str and text:
            place = ("output_text", data.get("output_index"), data.get("content_index"))
            part = self._part
            if part is None or place != self._place:
                part = self._part_at(place, data, out)
            logprobs = data.get("logprobs")
            noted = self._noted(logprobs=logprobs) if logprobs else None
            out.append(TextDelta(part.id, text, noted))
        else:
            typed(text, str, "delta")

    def _on_refusal(self, data: dict[str, Any], out: list[Chunk]) -> None:
        self._write("refusal", data, "content_index", out)

    def _on_summary(self, data: dict[str, Any], out: list[Chunk]) -> None:
        self._write("summary_text", data, "summary_index", out)

    def _on_reasoning(self, data: dict[str, Any], out: list[Chunk]) -> None:
        self._write("reasoning_text", data, "content_index", out)

    def _write(self, form: str, data: dict[str, Any], index: str, out: list[Chunk]) -> None:
        text = typed(data.get("delta"), str, "delta")
        if text:
            place = (form, data.get("output_index"), data.get(index))
            part = self._part
            if part is None or place != self._place:
                part = self._part_at(place, data, out)
            part.pieces.append(text)
            out.append(_CHUNKS[form][1](part.id, text))

    def _part_at(self, place: _Place, data: Mapping[str, Any], out: list[Chunk]) -> _Part:
        """The part at a place, opened if it is not."""
        form, index, inner = place
        checked = (form, typed(index, int, "output_index"), typed(inner, int, "a part's index"))
        part = self._open.get(checked)
        if part is None:
            kind = "reasoning" if form in _REASONING else "message"
            item = self._found(data, data.get("item_id"))
            if item is None or item.type != kind:
                item = self._start(kind, {"id": data.get("item_id")}, index)
            part = self._open_part(checked, item, out)
        self._part, self._place = part, place
        return part

    def _open_part(self, place: _Place, item: _Item, out: list[Chunk]) -> _Part:
        """Open a part, and close the one before it: an item has one open part at a time."""
        self._close(item, out)
        part = item.part = self._open[place] = _Part(str(self._count), place)
        item.is_said = True
        self._count += 1
        out.append(_CHUNKS[part.form][0](part.id))
        return part

    def _close(self, item: _Item, out: list[Chunk], signature: str | None = None) -> None:
        """Close the part of an item that is open, if one is."""
        part = item.part
        if part is None:
            return
        item.part = self._part = None
        self._open.pop(part.place, None)
        if part.form in _REASONING:
            form = part.form if part.form == "reasoning_text" else None
            digest = digest_of(whole("".join(part.pieces)))
            noted = self._noted(item_id=item.id, form=form, digest=digest) if item.id else None
            out.append(ReasoningEnd(part.id, signature, noted))
        else:
            out.append(TextEnd(part.id, self._noted(phase=item.phase)))

    def _on_part_done(self, data: dict[str, Any], out: list[Chunk]) -> None:
        """Close a part of text; reasoning waits for its signature."""
        found = self._found(data, data.get("item_id"))
        if found is not None and found.type == "message":
            self._close(found, out)

    def _finish_message(self, found: _Item, item: dict[str, Any], out: list[Chunk]) -> None:
        content = typed(item.get("content"), list, "item.content")
        if not found.is_said:
            self._whole(found, content, out)
        for part in content:
            inner = part.get("annotations") if isinstance(part, dict) else None
            for annotation in typed(inner, list, "annotations"):
                self._source(annotation, out)
        found.phase = item.get("phase") or found.phase
        self._close(found, out)

    def _finish_reasoning(self, found: _Item, item: dict[str, Any], out: list[Chunk]) -> None:
        if not found.is_said:
            self._whole(found, typed(item.get("summary"), list, "item.summary"), out)
        if not found.is_said:
            self._whole(found, typed(item.get("content"), list, "item.content"), out)
        sealed = typed(item.get("encrypted_content"), str, "item.encrypted_content") or None
        if found.part is not None:
            self._close(found, out, sealed)
        elif sealed:
            noted = self._noted(item_id=found.id)
            out.append(RedactedReasoning(str(self._count), sealed, noted))
            self._count += 1

    def _whole(self, found: _Item, content: list[Any], out: list[Chunk]) -> None:
        """Write an item's content of which no piece has come."""
        for value in content:
            part = typed(value, dict, "item.content[]")
            form = typed(part.get("type"), str, "item.content[].type")
            if form not in _CHUNKS:
                out.append(RawChunk(part))
                continue
            text = typed(part.get("refusal" if form == "refusal" else "text"), str, f"{form}.text")
            if text:
                opened = self._open_part((form, -1, self._count), found, out)  # where no delta is
                opened.pieces.append(text)
                out.append(_CHUNKS[form][1](opened.id, text))

    # --- sources -----------------------------------------------------------------------------

    def _on_annotation(self, data: dict[str, Any], out: list[Chunk]) -> None:
        self._source(data.get("annotation"), out)

    def _source(self, value: Any, out: list[Chunk]) -> None:
        """A citation, once: of an address, or of a file that the provider has."""
        annotation = typed(value, dict, "annotation")
        url, file_id = annotation.get("url"), annotation.get("file_id")
        key = url or file_id
        if not isinstance(key, str) or key in self._sources:
            return
        self._sources.add(key)
        source_id = f"source-{len(self._sources)}"
        name = annotation.get("title" if url else "filename")
        name = name if isinstance(name, str) else ""
        if url:
            out.append(SourceChunk(source_id, title=name, url=key))
        else:
            noted = self._noted(file_id=file_id, container_id=annotation.get("container_id"))
            out.append(
                SourceChunk(
                    source_id,
                    "document",
                    title=name,
                    filename=name or None,
                    provider_metadata=noted,
                ),
            )

    # --- calls -------------------------------------------------------------------------------

    def _call(self, found: _Item, item: Mapping[str, Any], out: list[Chunk]) -> Call:
        """The call that an item is, announced if its name is known."""
        if found.call is None:
            found.call = Call(found.type, item, self._provider, self._ids)
        found.call.announce(item, out)
        return found.call

    def _on_input(self, data: dict[str, Any], out: list[Chunk]) -> None:
        text = typed(data.get("delta"), str, "delta")
        found = self._found(data, data.get("item_id"))
        if text and found is not None and found.call is not None and not found.is_done:
            found.call.add(text, out)

    def _on_input_done(self, data: dict[str, Any], out: list[Chunk]) -> None:
        """Take the whole input, of which no piece may have come."""
        found = self._found(data, data.get("item_id"))
        if found is not None and found.call is not None and not found.call.has_input:
            self._on_input({**data, "delta": data.get("arguments")}, out)

    def _finish_call(self, found: _Item, item: dict[str, Any], out: list[Chunk]) -> None:
        call = self._call(found, item, out)
        call.finish(item, out)
        if call.is_ours:
            self._called = True
        else:
            self._waiting[call.told] = self._waiting[found.type] = call

    def _result(self, item: Mapping[str, Any], out: list[Chunk]) -> bool:
        """Take an item that is the result of a call that the provider ran, if it is one."""
        stem = str(item.get("type")).removesuffix("_output")
        keys = (item.get("call_id"), stem, f"{stem}_call")
        known = (self._waiting.get(key) for key in keys if isinstance(key, str))
        call = next((call for call in known if call is not None), None)
        if call is not None:
            out.append(call.result(item))
        return call is not None

    _handlers: ClassVar[Mapping[str, Callable[[Any, dict[str, Any], list[Chunk]], None]]] = {
        "error": _on_error,
        "response.cancelled": _on_end,
        "response.code_interpreter_call_code.delta": _on_input,
        "response.completed": _on_end,
        "response.content_part.done": _on_part_done,
        "response.created": _on_begin,
        "response.custom_tool_call_input.delta": _on_input,
        "response.error": _on_error,
        "response.failed": _on_end,
        "response.function_call_arguments.delta": _on_input,
        "response.function_call_arguments.done": _on_input_done,
        "response.in_progress": _on_begin,
        "response.incomplete": _on_end,
        "response.mcp_call_arguments.delta": _on_input,
        "response.output_item.added": _on_item,
        "response.output_item.done": _on_item_done,
        "response.output_text.annotation.added": _on_annotation,
        "response.output_text.delta": _on_text,
        "response.queued": _on_begin,
        "response.reasoning_summary_text.delta": _on_summary,
        "response.reasoning_text.delta": _on_reasoning,
        "response.refusal.delta": _on_refusal,
    }


def _usage(raw: Any) -> Usage:
    usage = typed(raw, dict, "usage")
    said = typed(usage.get("output_tokens_details"), dict, "output_tokens_details")
    asked = typed(usage.get("input_tokens_details"), dict, "input_tokens_details")
    return Usage(
        count(usage.get("input_tokens")),
        count(usage.get("output_tokens")),
        count(usage.get("total_tokens")),
        count(said.get("reasoning_tokens")),
        count(asked.get("cached_tokens")),
    )
