"""A script's turn as a server of the Anthropic Messages protocol tells it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from streampipe.chunks import Usage
from streampipe.testing._script import Call, Delay, Failure, Piece, Reasoning, Turn

_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool-calls": "tool_use",
    "content-filter": "refusal",
}
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def error(message: str, status: int = 500) -> dict[str, Any]:
    """An error body; its type is the one that belongs to the HTTP status."""
    kind = _ERRORS.get(status, "invalid_request_error" if status < 500 else "api_error")  # noqa: PLR2004 - where the server's faults begin
    return {"type": "error", "error": {"type": kind, "message": message}}


def events(
    turn: Turn,
    number: int,
    model: str,
    *,
    usage: bool,  # noqa: ARG001 - the protocol always tells it
) -> Iterator[bytes | Delay | Failure]:
    """The events of a streamed answer, as bytes; delays and failures where the script has them.

    Pieces of text that follow one another are one block, and so are pieces of reasoning.
    """
    blocks = _Blocks(number)
    begun = False
    for place, piece in enumerate(turn.pieces):
        if not begun and not isinstance(piece, Delay):
            begun = True
            yield from _opening(turn, number, model)
        if isinstance(piece, Delay | Failure):
            yield piece
        else:
            yield from blocks.write(piece, place)
    if not begun:
        yield from _opening(turn, number, model)
    if turn.incomplete:
        return
    yield from blocks.close()
    told = _usage(turn)
    yield _event(
        "message_delta",
        delta={"stop_reason": _REASONS.get(turn.reason, turn.reason), "stop_sequence": None},
        usage=told,
    )
    yield _event("message_stop")


def completion(turn: Turn, number: int, model: str) -> dict[str, Any]:
    """The answer to a request that does not ask for a stream."""
    content: list[dict[str, Any]] = []
    for place, piece in enumerate(turn.pieces):
        last = content[-1] if content else {}
        match piece:
            case str() if last.get("type") == "text":
                last["text"] += piece
            case str():
                content.append({"type": "text", "text": piece})
            case Reasoning() if last.get("type") == "thinking":
                last["thinking"] += piece.text
            case Reasoning():
                signature = _signature(number, len(content))
                content.append({"type": "thinking", "thinking": piece.text, "signature": signature})
            case Call():
                content.append({**_call(piece, number, place), "input": _input(piece)})
            case _:
                pass  # the server refuses other pieces when it is built
    message = _message(number, model, _usage(turn))
    reason = _REASONS.get(turn.reason, turn.reason)
    return {**message, "content": content, "stop_reason": reason}


class _Blocks:
    """The content blocks of an answer, one open at a time."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._index = -1
        self._open = ""  # the type of the block that is open, if one is

    def write(self, piece: Piece, place: int) -> Iterator[bytes]:
        match piece:
            case str():
                if self._open != "text":
                    yield from self._start({"type": "text", "text": ""})
                yield self._delta({"type": "text_delta", "text": piece})
            case Reasoning():
                if self._open != "thinking":
                    yield from self._start({"type": "thinking", "thinking": "", "signature": ""})
                yield self._delta({"type": "thinking_delta", "thinking": piece.text})
            case Call():
                yield from self._start({**_call(piece, self._number, place), "input": {}})
                yield self._delta({"type": "input_json_delta", "partial_json": ""})
                for text in _cut(_arguments(piece), piece.pieces):
                    yield self._delta({"type": "input_json_delta", "partial_json": text})
                yield from self.close()
            case _:
                pass  # the server refuses other pieces when it is built

    def close(self) -> Iterator[bytes]:
        if self._open == "thinking":
            signature = _signature(self._number, self._index)
            yield self._delta({"type": "signature_delta", "signature": signature})
        if self._open:
            self._open = ""
            yield _event("content_block_stop", index=self._index)

    def _start(self, block: dict[str, Any]) -> Iterator[bytes]:
        yield from self.close()
        self._index += 1
        self._open = block["type"]
        yield _event("content_block_start", index=self._index, content_block=block)

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return _event("content_block_delta", index=self._index, delta=delta)


def _event(kind: str, **fields: Any) -> bytes:
    data = orjson.dumps({"type": kind, **fields})
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


def _opening(turn: Turn, number: int, model: str) -> Iterator[bytes]:
    usage = {**_usage(turn), "output_tokens": 1}
    yield _event("message_start", message=_message(number, model, usage))
    yield _event("ping")


def _message(number: int, model: str, usage: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _signature(number: int, index: int) -> str:
    return f"signature-{number}-{index}"


def _call(piece: Call, number: int, place: int) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": piece.id or f"toolu_{number}_{place}",
        "name": piece.name,
    }


def _arguments(piece: Call) -> str:
    if isinstance(piece.arguments, str):
        return piece.arguments
    return orjson.dumps(piece.arguments).decode()


def _input(piece: Call) -> Any:
    """The arguments as a whole answer has them: an object, so none where they are no JSON."""
    try:
        return orjson.loads(_arguments(piece))
    except orjson.JSONDecodeError:
        return {}


def _cut(text: str, pieces: int) -> Iterator[str]:
    size = max(1, -(-len(text) // max(1, pieces)))
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _usage(turn: Turn) -> dict[str, Any]:
    """What was read from a cache is counted beside the input."""
    usage = turn.usage or Usage(1, len(turn.pieces))
    return {
        "input_tokens": max(0, usage.input_tokens - usage.cached_input_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_input_tokens,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
    }
