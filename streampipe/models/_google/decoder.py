"""A stream of Google's `generateContent` protocol, from the Gemini API or from Vertex."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import orjson

from streampipe.chunks import (
    Chunk,
    FileChunk,
    FinishChunk,
    ProviderMetadata,
    RawChunk,
    ResponseMetadata,
    SourceChunk,
    ToolCall,
    ToolCallDelta,
    ToolCallInputEnd,
    ToolCallInputStart,
    ToolResult,
    Usage,
)
from streampipe.errors import IncompleteStreamError, ProviderStreamError
from streampipe.messages._json import whole
from streampipe.models._google.arguments import PartialArguments
from streampipe.models._http.failures import provider_error
from streampipe.models._protocol.decoding import EXCERPT, CallIds, EventDecoder, Parts, count, typed
from streampipe.models._protocol.encoding import digest_of

REASONS: Mapping[str, str] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "BLOCKLIST": "content-filter",
    "IMAGE_PROHIBITED_CONTENT": "content-filter",
    "IMAGE_RECITATION": "content-filter",
    "IMAGE_SAFETY": "content-filter",
    "MODEL_ARMOR": "content-filter",
    "PROHIBITED_CONTENT": "content-filter",
    "RECITATION": "content-filter",
    "SAFETY": "content-filter",
    "SPII": "content-filter",
    "MALFORMED_FUNCTION_CALL": "error",
    "MALFORMED_RESPONSE": "error",
    "MISSING_THOUGHT_SIGNATURE": "error",
    "TOO_MANY_TOOL_CALLS": "error",
    "UNEXPECTED_TOOL_CALL": "error",
}
_OK = "OUTCOME_OK"
CODE = "code_execution"  # the tool that runs what the model writes; the protocol has no name for it

_READ = frozenset({"content", "finishReason", "index", "tokenCount"})
"""Fields of a candidate that become chunks; the others are noted for the finish."""
_CONTENTS = frozenset(
    {
        "codeExecutionResult",
        "executableCode",
        "fileData",
        "functionCall",
        "inlineData",
        "toolCall",
        "toolResponse",
    },
)
"""What a part may hold beside text."""
_MARKS = frozenset({"text", "thought", "thoughtSignature"})


class _Call:
    """A call whose arguments may come in pieces."""

    __slots__ = ("arguments", "id", "name", "sent", "signature", "text", "told")

    def __init__(self, call_id: str, told: str, name: str) -> None:
        self.id = call_id
        self.told = told  # the provider's id; another call may have it too
        self.name = name
        self.signature = ""
        self.arguments = PartialArguments()
        self.text: list[str] = []
        self.sent = 0  # pieces of the text that went out as deltas

    def fresh(self) -> str:
        """The text that has not gone out yet, which it now does."""
        text = "".join(self.text[self.sent :])
        self.sent = len(self.text)
        return text


class GoogleDecoder(EventDecoder):
    """Events to chunks. Pure, and linear in the length of the stream.

    The protocol has no end marker: a finish reason, then the end of the body. So `done` is true
    only after `end`, and what comes behind the reason (sources, usage) still counts.

    Attributes:
        done: the stream has ended cleanly.
    """

    def __init__(self, provider: str = "google", warnings: Iterable[str] = ()) -> None:
        """Start before the first event.

        Args:
            provider: named in the metadata; what has to go back to it is noted under this name.
            warnings: what the request had to leave out, for the metadata.
        """
        super().__init__()
        self._provider = provider
        self._warnings = list(warnings)
        self._begun = False
        self._parts = Parts()
        self._call: _Call | None = None  # the call whose arguments are still to come
        self._called = False  # a function of the caller's
        self._ids = CallIds()
        self._run: tuple[str, ToolCall] | None = None  # the newest at the provider, and its id
        self._sources: set[str] = set()
        self._reason = ""
        self._is_blocked = False
        self._usage: dict[str, Any] = {}
        self._notes: dict[str, Any] = {}

    def _chunks(self, event: str) -> list[Chunk]:
        out: list[Chunk] = []
        if self.done:
            return out
        data = self._response(event)
        if not self._begun:
            self._begin(data, out)
        for candidate in typed(data.get("candidates"), list, "candidates"):
            self._candidate(typed(candidate, dict, "candidates[]"), out)
        if "usageMetadata" in data:  # running totals; the last of each counts
            self._usage.update(typed(data["usageMetadata"], dict, "usageMetadata"))
        if "promptFeedback" in data:
            self._feedback(data["promptFeedback"])
        return out

    def _last(self) -> list[Chunk]:
        out: list[Chunk] = []
        if self.done:
            return out
        if not self._reason:
            msg = "the stream stopped without a finishReason"
            raise IncompleteStreamError(msg, is_retryable=True)
        self._parts.close(out)
        raw = self._reason
        self._end_call(out, is_whole=raw == "STOP")
        reason = "content-filter" if self._is_blocked else REASONS.get(raw, "other")
        if reason == "stop" and self._called:
            reason = "tool-calls"
        notes = {self._provider: self._notes} if self._notes else None
        out.append(FinishChunk(reason, _usage(self._usage), notes, raw))
        self.done = True
        return out

    def _response(self, event: str) -> dict[str, Any]:
        """An event's data, which is no error: those come as an object, or as a list of one."""
        if event[:1] == "[":
            items = _parsed(event)
            first = items[0] if isinstance(items, list) and items else None
            if isinstance(first, dict) and "error" in first:
                raise provider_error(items)
        data = self._object(event)
        if data.get("error"):
            raise provider_error(data)
        return data

    def _begin(self, data: Mapping[str, Any], out: list[Chunk]) -> None:
        self._begun = True
        out.append(
            ResponseMetadata(
                typed(data.get("responseId"), str, "responseId") or None,
                typed(data.get("modelVersion"), str, "modelVersion") or None,
                _seconds(typed(data.get("createTime"), str, "createTime")),
                self._provider,
                warnings=self._warnings or None,
            ),
        )

    def _feedback(self, value: Any) -> None:
        """What the provider thinks of the prompt; where it blocks it, no candidate comes."""
        feedback = typed(value, dict, "promptFeedback")
        blocked = typed(feedback.get("blockReason"), str, "promptFeedback.blockReason")
        if blocked:
            self._reason = blocked
            self._is_blocked = True
            self._notes["promptFeedback"] = feedback

    def _candidate(self, candidate: dict[str, Any], out: list[Chunk]) -> None:
        if candidate.get("index"):
            return  # an alternative (`candidateCount` > 1): a run has one answer
        content = candidate.get("content")
        if content is not None:
            parts = typed(content, dict, "content").get("parts")
            for part in typed(parts, list, "content.parts"):
                text = part.get("text") if part.__class__ is dict else None
                if text:
                    self._parts.write("reasoning" if part.get("thought") else "text", text, out)
                if text is None or len(part) > 1:
                    self._part(typed(part, dict, "content.parts[]"), out)
        if not candidate.keys() <= _READ:
            self._note(candidate, out)
        reason = candidate.get("finishReason")
        if reason is not None:
            self._reason = typed(reason, str, "finishReason") or self._reason

    def _note(self, candidate: dict[str, Any], out: list[Chunk]) -> None:
        """What is said of an answer beside it: sources, ratings, the reason in words."""
        for name in candidate.keys() - _READ:
            if candidate[name] is not None:
                self._notes[name] = candidate[name]
        grounding = typed(candidate.get("groundingMetadata"), dict, "groundingMetadata")
        for item in typed(grounding.get("groundingChunks"), list, "groundingChunks"):
            for source in typed(item, dict, "groundingChunks[]").values():
                self._source(source, out)  # the one key says of what kind it is: web, maps, ...
        citations = typed(candidate.get("citationMetadata"), dict, "citationMetadata")
        for name in ("citations", "citationSources"):  # Vertex's name, and the Gemini API's
            for source in typed(citations.get(name), list, name):
                self._source(source, out)

    def _source(self, source: Any, out: list[Chunk]) -> None:
        if not isinstance(source, dict):
            return
        url = _text(source, "uri", "sourceUri")
        title = _text(source, "title", "documentName", "domain")
        if (url or title) and (url or title) not in self._sources:
            self._sources.add(url or title)
            kind = "url" if url else "document"
            number = len(self._sources)
            out.append(SourceChunk(f"source-{number}", kind, title, url or None))

    def _part(self, part: dict[str, Any], out: list[Chunk]) -> None:
        """What a part has beside text."""
        signature = typed(part.get("thoughtSignature"), str, "thoughtSignature")
        found = [name for name in part if name in _CONTENTS and part[name] is not None]
        for name in found:
            self._parts.close(out)
            self._content(name, typed(part[name], dict, name), part, signature, out)
        if not found and not part.keys() <= _MARKS:  # of a kind that is unknown here
            self._parts.close(out)
            out.append(RawChunk(part))
        elif not found and signature:
            self._sign(signature, out, is_thought=bool(part.get("thought")))

    def _sign(self, signature: str, out: list[Chunk], *, is_thought: bool) -> None:
        """Close the part that is signed: what follows the signature is not covered by it.

        Streams bring a text's signature behind it, with an empty text. Where there is no part that
        it could belong to, it stands as reasoning without words, for no other part may be empty.
        """
        noted: dict[str, Any] = {"thoughtSignature": signature}
        if self._parts.is_open("text") and not is_thought:
            self._parts.close(out, provider_metadata={self._provider: noted})
            return
        if not is_thought:
            noted["thought"] = False
        if not (is_thought and self._parts.is_open("reasoning")):
            self._parts.begin("reasoning", out)
        noted["digest"] = digest_of(whole("".join(self._parts.pieces)))
        self._parts.close(out, signature=signature, provider_metadata={self._provider: noted})

    def _content(
        self,
        name: str,
        value: dict[str, Any],
        part: dict[str, Any],
        signature: str,
        out: list[Chunk],
    ) -> None:
        """The content of a part that is no text."""
        match name:
            case "functionCall":
                self._function_call(value, signature, out)
            case "executableCode":
                self._run_begins(name, CODE, value, signature, out)
            case "toolCall":
                tool = typed(value.get("toolType"), str, "toolCall.toolType")
                self._run_begins(name, tool.lower() or "tool", value, signature, out)
            case "codeExecutionResult" | "toolResponse":
                self._run_ends(name, value, signature, out)
            case "inlineData" | "fileData" if not part.get("thought"):
                place = "data" if name == "inlineData" else "fileUri"
                out.append(
                    FileChunk(
                        typed(value.get(place), str, f"{name}.{place}"),
                        typed(value.get("mimeType"), str, f"{name}.mimeType")
                        or "application/octet-stream",
                        typed(value.get("displayName"), str, f"{name}.displayName") or None,
                        self._signed(signature),
                    ),
                )
            case _:
                out.append(RawChunk(part))  # a thought's picture, which is no part of the answer

    def _signed(self, signature: str, **more: Any) -> ProviderMetadata | None:
        noted = {**more, "thoughtSignature": signature} if signature else more
        return {self._provider: noted} if noted else None

    # --- calls of the caller's functions ---------------------------------------------------

    def _function_call(self, value: dict[str, Any], signature: str, out: list[Chunk]) -> None:
        """A whole call, or a piece of one: the first has the name, later ones belong to it.

        The last one does not say `willContinue`; where it went missing, the next call ends it.
        """
        name = typed(value.get("name"), str, "functionCall.name")
        call_id = typed(value.get("id"), str, "functionCall.id")
        args = typed(value.get("args"), dict, "functionCall.args")
        pieces = typed(value.get("partialArgs"), list, "functionCall.partialArgs")
        call = self._call
        if name and not (
            call is not None and call_id == call.told and call_id and name == call.name
        ):
            self._end_call(out)
            call = self._call = _Call(self._ids.of(call_id), call_id, name)
            self._called = True
            out.append(ToolCallInputStart(call.id, name))
        if call is None:
            if not args and not pieces:
                return  # the end of a call that has ended already
            msg = f"functionCall.name is missing: {value!r:.{EXCERPT}}"
            raise ProviderStreamError(msg)
        call.signature = signature or call.signature
        for piece in pieces:
            call.text.append(call.arguments.add(typed(piece, dict, "functionCall.partialArgs[]")))
        for key, arg in args.items():
            call.text.append(call.arguments.put([key], arg, f"$.{key}"))
        if not value.get("willContinue"):
            self._end_call(out)
        elif text := call.fresh():
            out.append(ToolCallDelta(call.id, text))

    def _end_call(self, out: list[Chunk], *, is_whole: bool = True) -> None:
        """End the call that is open, if one is.

        One that the model did not get to the end of must not be run with half its arguments: it is
        told as text that is no JSON.
        """
        call, self._call = self._call, None
        if call is None:
            return
        if is_whole:
            call.text.append(call.arguments.end())
        if text := call.fresh():
            out.append(ToolCallDelta(call.id, text))
        out += (
            ToolCallInputEnd(call.id),
            ToolCall(
                call.id,
                call.name,
                call.arguments.value if is_whole else None,
                None if is_whole else "".join(call.text),
                provider_metadata=self._signed(call.signature),
            ),
        )

    # --- tools that run at the provider ----------------------------------------------------

    def _run_begins(
        self, kind: str, tool: str, value: dict[str, Any], signature: str, out: list[Chunk]
    ) -> None:
        told = typed(value.get("id"), str, f"{kind}.id")
        call_id = self._ids.of(told)
        args = value
        if kind == "toolCall":
            args = typed(value.get("args"), dict, "toolCall.args")
        noted = self._signed(signature, **{kind: value})
        run = ToolCall(call_id, tool, args, provider_executed=True, provider_metadata=noted)
        self._run = (told, run)
        out += (
            ToolCallInputStart(call_id, tool, provider_executed=True),
            ToolCallDelta(call_id, _json(args, kind)),
            ToolCallInputEnd(call_id),
            run,
        )

    def _run_ends(self, kind: str, value: dict[str, Any], signature: str, out: list[Chunk]) -> None:
        """A result, as it came; its signature stands in it, since a stored result has no other."""
        call_id = typed(value.get("id"), str, f"{kind}.id")
        told, run = self._run or ("", None)
        if run is None or call_id not in ("", told):
            tool = typed(value.get("toolType"), str, f"{kind}.toolType").lower()
            run = ToolCall(call_id or self._ids.of(""), tool or CODE)
        out.append(
            ToolResult(
                run.tool_call_id,
                run.tool_name,
                {**value, "thoughtSignature": signature} if signature else value,
                run.args,
                is_error=True if value.get("outcome", _OK) != _OK else None,
                provider_executed=True,
            ),
        )


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None  # `_object` says what is wrong


def _json(value: Any, where: str) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        msg = f"{where} is nested too deeply to be written as JSON"
        raise ProviderStreamError(msg) from error


def _text(source: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that is a text; empty if none is."""
    found = (source.get(name) for name in names)
    return next((value for value in found if isinstance(value, str) and value), "")


def _seconds(time: str) -> float | None:
    """A time as ISO 8601 writes it, in seconds since 1970; None for what is none."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except (ValueError, OverflowError):
        return None


def _usage(said: Mapping[str, Any]) -> Usage | None:
    """Tokens; thoughts are part of the output here, and results of Google's tools of the input."""
    if not said:
        return None
    thoughts = count(said.get("thoughtsTokenCount"))
    return Usage(
        count(said.get("promptTokenCount")) + count(said.get("toolUsePromptTokenCount")),
        count(said.get("candidatesTokenCount")) + thoughts,
        count(said.get("totalTokenCount")),
        thoughts,
        count(said.get("cachedContentTokenCount")),
    )
