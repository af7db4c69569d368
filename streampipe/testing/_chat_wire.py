"""A script's turn as a server of the chat-completions protocol tells it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from streampipe.chunks import Usage
from streampipe.testing._script import Call, Delay, Failure, Reasoning, Turn

CREATED = 1_700_000_000  # a script has no clock
_REASONS = {"tool-calls": "tool_calls", "content-filter": "content_filter"}


def error(message: str, status: int = 500) -> dict[str, Any]:  # noqa: ARG001 - as other wires
    """An error body."""
    return {"error": {"message": message, "type": "scripted"}}


def events(
    turn: Turn, number: int, model: str, *, usage: bool
) -> Iterator[bytes | Delay | Failure]:
    """The events of a streamed answer, as bytes; delays and failures where the script has them."""

    def event(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return _event(_envelope("chat.completion.chunk", number, model, [choice]))

    opening = event({"role": "assistant", "content": ""})
    begun = False
    calls = 0
    for place, piece in enumerate(turn.pieces):
        if not begun and not isinstance(piece, Delay):
            begun = True
            yield opening
        match piece:
            case str():
                yield event({"content": piece})
            case Reasoning():
                yield event({"reasoning_content": piece.text})
            case Call():
                for delta in _call(piece, calls, f"call-{number}-{place}"):
                    yield event({"tool_calls": [delta]})
                calls += 1
            case Delay() | Failure():
                yield piece
            case _:
                pass  # the server refuses other pieces when it is built
    if not begun:
        yield opening
    if turn.incomplete:
        return
    yield event({}, _REASONS.get(turn.reason, turn.reason))
    if usage:
        last = _envelope("chat.completion.chunk", number, model, [])
        yield _event({**last, "usage": _usage(turn)})
    yield b"data: [DONE]\n\n"


def completion(turn: Turn, number: int, model: str) -> dict[str, Any]:
    """The answer to a request that does not ask for a stream."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(piece for piece in turn.pieces if isinstance(piece, str)) or None,
    }
    thoughts = "".join(piece.text for piece in turn.pieces if isinstance(piece, Reasoning))
    if thoughts:
        message["reasoning_content"] = thoughts
    calls = [
        {
            "id": piece.id or f"call-{number}-{place}",
            "type": "function",
            "function": {"name": piece.name, "arguments": _arguments(piece)},
        }
        for place, piece in enumerate(turn.pieces)
        if isinstance(piece, Call)
    ]
    if calls:
        message["tool_calls"] = calls
    reason = _REASONS.get(turn.reason, turn.reason)
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {**_envelope("chat.completion", number, model, [choice]), "usage": _usage(turn)}


def _envelope(kind: str, number: int, model: str, choices: list[Any]) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{number}",
        "object": kind,
        "created": CREATED,
        "model": model,
        "choices": choices,
    }


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"


def _arguments(piece: Call) -> str:
    if isinstance(piece.arguments, str):
        return piece.arguments
    return orjson.dumps(piece.arguments).decode()


def _call(piece: Call, index: int, default_id: str) -> Iterator[dict[str, Any]]:
    text = _arguments(piece)
    yield {
        "index": index,
        "id": piece.id or default_id,
        "type": "function",
        "function": {"name": piece.name, "arguments": ""},
    }
    size = max(1, -(-len(text) // max(1, piece.pieces)))
    for start in range(0, len(text), size):
        yield {"index": index, "function": {"arguments": text[start : start + size]}}


def _usage(turn: Turn) -> dict[str, Any]:
    usage = turn.usage or Usage(1, len(turn.pieces))
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
