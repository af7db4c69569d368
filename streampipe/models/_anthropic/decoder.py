"""A stream in the Anthropic Messages protocol: a message of content blocks, each begun and ended.

What a block has beyond our chunks (a signature, citations, who called a tool) stands under the
provider's name in the metadata of its last chunk, named as in the block, so that a later request
can send the block back as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from streampipe.chunks import (
    Chunk,
    FinishChunk,
    RawChunk,
    RedactedReasoning,
    ResponseMetadata,
    ToolCall,
    ToolResult,
    Usage,
)
from streampipe.errors import IncompleteStreamError, ProviderStreamError
from streampipe.models._anthropic.blocks import (
    EXECUTED,
    Block,
    Call,
    Calls,
    Other,
    Sources,
    Text,
    Thinking,
)
from streampipe.models._http.failures import provider_error
from streampipe.models._protocol.decoding import EXCERPT, EventDecoder, count, typed

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
_WHOLE = ("stop", "tool-calls")  # what an answer ends with that was not cut off
_NOTED = ("stop_sequence", "stop_details", "container")


class AnthropicDecoder(EventDecoder):
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
        super().__init__()
        self._provider = provider
        self._warnings = list(warnings)
        self._message: str | None = None  # the id of the message at hand, once one has begun
        self._early: list[Chunk] = []  # what came before it: metadata have to be first
        self._open: dict[int, Block] = {}
        self._count = 0  # of parts: blocks are counted anew with every message
        self._calls = Calls()
        self._bare: ToolCall | None = None  # a call without arguments, cut off or not
        self._sources = Sources(provider)
        self._reason: str | None = None
        self._usage: dict[str, Any] = {}
        self._noted: dict[str, Any] = {}

    def _chunks(self, event: str) -> list[Chunk]:
        if self.done:
            return []
        data = self._object(event)
        kind = data.get("type")
        if kind == "content_block_delta":  # nearly every event is one
            delta = data.get("delta")
            if not isinstance(delta, dict):
                delta = typed(delta, dict, "delta")
            return self._block(data).add(delta, data)
        return self._event(typed(kind, str, "type"), data)

    def _last(self) -> list[Chunk]:
        if self.done:
            return []
        msg = "the stream stopped without message_stop"
        raise IncompleteStreamError(msg, is_retryable=True)

    def _event(self, kind: str, data: dict[str, Any]) -> list[Chunk]:
        match kind:
            case "content_block_start":
                return self._start(data)
            case "content_block_stop":
                return self._stop(_index(data))
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
        self._bare = None
        self._message = name
        self._reason = None
        self._usage, self._noted = {}, {}
        self._note(message, message.get("usage"))
        for index, block in enumerate(content):
            event = {"type": "content_block_start", "index": index, "content_block": block}
            out += self._start(event) + self._stop(index)
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
        reason = REASONS.get(self._reason or "", "other")
        out += self._released(is_whole=reason in _WHOLE)
        for index in list(self._open):
            out += self._stop(index) + self._released(is_whole=False)
        usage = _usage(self._usage)
        noted = {self._provider: {"usage": self._usage, **self._noted}}
        out.append(FinishChunk(reason, usage, noted, self._reason))
        self.done = True
        return out

    # --- blocks ----------------------------------------------------------------------------

    def _block(self, data: dict[str, Any]) -> Block:
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
        if isinstance(before, Call) and before.told == block.get("id"):
            return out  # begun again: one call is not to be made twice
        out += self._released(is_whole=True)  # what another block follows was not cut off
        if before is not None:
            out += self._stop(index) + self._released(is_whole=False)
        opened: Block
        if kind == "text":
            text = Text(self._part_id(), self._provider, self._sources)
            opened, begun = text, text.start(block)
        elif kind == "thinking":
            thinking = Thinking(self._part_id(), self._provider)
            opened, begun = thinking, thinking.start(block)
        elif kind in EXECUTED:
            call = Call(block, self._provider, self._calls)
            opened, begun = call, call.start()
        else:
            opened, begun = Other(), [self._whole(kind, block, data)]
        self._open[index] = opened
        return out + begun

    def _stop(self, index: int) -> list[Chunk]:
        """Close a block; a call without arguments waits for what tells whether it was cut off."""
        block = self._open.pop(index, None)
        out = block.close() if block is not None else []
        call = out[-1] if out else None
        if isinstance(block, Call) and block.is_bare and isinstance(call, ToolCall):
            self._bare = call
            out.pop()
        return out

    def _released(self, *, is_whole: bool) -> list[Chunk]:
        """The call that waits, if one does; without arguments it must not run if it was cut off."""
        call, self._bare = self._bare, None
        if call is None:
            return []
        return [call if is_whole else replace(call, args=None, args_text="")]

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
        told = self._calls.told.get(call_id)
        call = told[-1] if told else None  # it may be of an earlier answer
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
