"""A script's turn as a server of Google's `generateContent` protocol tells it."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson

from streampipe.chunks import Usage
from streampipe.testing._script import Call, Delay, Failure, Piece, Reasoning, Turn

_REASONS = {
    "content-filter": "SAFETY",
    "error": "MALFORMED_RESPONSE",
    "length": "MAX_TOKENS",
    "other": "OTHER",
    "stop": "STOP",
    "tool-calls": "STOP",  # the protocol does not tell them apart
}
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
MALFORMED = "MALFORMED_FUNCTION_CALL"

Part = dict[str, Any]


def error(message: str, status: int = 500) -> dict[str, Any]:
    """An error body."""
    name = _STATUSES.get(status, "UNKNOWN")
    return {"error": {"code": status, "message": message, "status": name}}


def events(
    turn: Turn, number: int, model: str, *, usage: bool
) -> Iterator[bytes | Delay | Failure]:
    """The events of a streamed answer, as bytes; delays and failures where the script has them.

    A call of more than one piece comes as Vertex streams one: its arguments leaf by leaf, each
    with its path, and texts in so many pieces.
    """

    def event(part: Part, reason: str | None = None, **more: Any) -> bytes:
        return _event(_answer([part], reason, number, model, **more))

    for piece, parts in _told(turn, number):
        if isinstance(piece, Delay | Failure):
            yield piece
        for part in parts:
            yield event(part)
    if not turn.incomplete:
        more = {"usageMetadata": _usage(turn)} if usage else {}
        yield event({"text": ""}, _reason(turn), **more)


def completion(turn: Turn, number: int, model: str) -> dict[str, Any]:
    """The answer to a request that does not ask for a stream."""
    whole = tuple(replace(p, pieces=1) if isinstance(p, Call) else p for p in turn.pieces)
    parts = [part for _, told in _told(replace(turn, pieces=whole), number) for part in told]
    return _answer(parts, _reason(turn), number, model, usageMetadata=_usage(turn))


def _told(turn: Turn, number: int) -> Iterator[tuple[Piece, list[Part]]]:
    """Each piece, with the parts that tell it; the server refuses other pieces when it is built.

    Of the calls of an answer the first is signed, as Gemini does it.
    """
    is_signed = False
    for place, piece in enumerate(turn.pieces):
        parts: list[Part] = []
        match piece:
            case str():
                parts = [{"text": piece}]
            case Reasoning():
                parts = [{"text": piece.text, "thought": True}]
            case Call():
                parts = list(_call(piece, f"call-{number}-{place}"))
                if parts and not is_signed:
                    is_signed = True
                    signature = b64encode(f"signature-{number}-{place}".encode())
                    parts[0]["thoughtSignature"] = signature.decode()
            case _:
                pass
        yield piece, parts


def _answer(
    parts: list[Part], reason: str | None, number: int, model: str, **more: Any
) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    return {
        "candidates": [candidate],
        **more,
        "modelVersion": model,
        "responseId": f"response-{number}",
    }


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\r\n\r\n"


def _reason(turn: Turn) -> str:
    """Why the answer ends. A call that cannot be told ends it, since Google never sends one."""
    calls = [piece for piece in turn.pieces if isinstance(piece, Call)]
    if turn.finish_reason is None and any(_arguments(piece) is None for piece in calls):
        return MALFORMED
    return _REASONS.get(turn.reason, turn.reason)


def _arguments(piece: Call) -> dict[str, Any] | None:
    """A call's arguments; None for what the protocol cannot carry: all but an object."""
    value = piece.arguments
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return None
    return dict(value) if isinstance(value, Mapping) else None


def _call(piece: Call, default_id: str) -> Iterator[Part]:
    arguments = _arguments(piece)
    if arguments is None:
        return
    call = {"id": piece.id or default_id, "name": piece.name}
    leaves = list(_leaves("$", arguments))
    if piece.pieces == 1 or any(value in ({}, []) for _, value in leaves):  # those have no piece
        yield {"functionCall": {**call, "args": arguments}}
        return
    yield {"functionCall": {**call, "willContinue": True}}
    for path, value in leaves:
        for partial in _pieces(path, value, piece.pieces):
            yield {"functionCall": {"partialArgs": [partial], "willContinue": True}}
    yield {"functionCall": {}}


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What a value holds, each with its path; containers that are empty are leaves too."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            is_plain = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII)
            step = f".{name}" if is_plain else f"[{orjson.dumps(name).decode()}]"
            yield from _leaves(path + step, inner)
    elif isinstance(value, list | tuple) and value:
        for index, inner in enumerate(value):
            yield from _leaves(f"{path}[{index}]", inner)
    else:
        yield path, value


def _pieces(path: str, value: Any, pieces: int) -> Iterator[dict[str, Any]]:
    if value is None:
        yield {"jsonPath": path, "nullValue": "NULL_VALUE"}
    elif isinstance(value, bool):
        yield {"jsonPath": path, "boolValue": value}
    elif isinstance(value, int | float):
        yield {"jsonPath": path, "numberValue": value}
    else:
        text = str(value)
        size = max(1, -(-len(text) // pieces))
        for start in range(0, len(text), size):
            part = text[start : start + size]
            yield {"jsonPath": path, "stringValue": part, "willContinue": True}
        yield {"jsonPath": path, "stringValue": ""}


def _usage(turn: Turn) -> dict[str, Any]:
    usage = turn.usage or Usage(1, len(turn.pieces))
    return {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": max(0, usage.output_tokens - usage.reasoning_tokens),
        "totalTokenCount": usage.total_tokens,
        "cachedContentTokenCount": usage.cached_input_tokens,
        "thoughtsTokenCount": usage.reasoning_tokens,
    }
