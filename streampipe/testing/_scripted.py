"""`ScriptedModel`: a model that says what it was told to, and remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import orjson

from streampipe.chunks import (
    Chunk,
    FinishChunk,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseMetadata,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolCallDelta,
    ToolCallInputEnd,
    ToolCallInputStart,
    Usage,
)
from streampipe.contracts import ModelRequest
from streampipe.errors import ProviderError, ScriptError
from streampipe.testing._script import Call, Delay, Failure, Reasoning, Script, Turn, turns_of

__all__ = ["ScriptedModel"]


class ScriptedModel:
    """A model that plays a script, a turn a call.

    >>> from streampipe.testing import ScriptedModel, call
    >>> model = ScriptedModel([[call("lookup", {"id": 7})], ["It is ", "blue."]])

    Attributes:
        requests: what it was asked, oldest first.
    """

    provider = "scripted"

    def __init__(
        self,
        script: Script,
        *,
        model_id: str = "script",
        repeat: bool = False,
        keep_requests: int | None = None,
    ) -> None:
        """Take a script: one entry a turn (see `turn`).

        Args:
            script: the turns.
            model_id: the name it goes by.
            repeat: start again after the last turn instead of failing.
            keep_requests: how many of the newest requests are kept; None keeps all.

        Raises:
            ConfigurationError: an entry is no turn.
        """
        self.model_id = model_id
        self.requests: list[ModelRequest] = []
        self.calls = 0
        self._turns = turns_of(script)
        self._repeat = repeat
        self._keep = keep_requests

    def assert_complete(self) -> None:
        """Check that every turn was played.

        Raises:
            AssertionError: turns are left.
        """
        left = len(self._turns) - self.calls
        if left > 0:
            msg = f"{left} of {len(self._turns)} scripted turns were not played"
            raise AssertionError(msg)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Play the next turn.

        Raises:
            ScriptError: the script is at its end.
            ProviderError: the turn says so (`fail(status=...)`).
        """
        self.requests.append(request)
        if self._keep is not None:
            del self.requests[: len(self.requests) - self._keep]
        number = self.calls
        self.calls += 1
        if self._repeat and self._turns:
            number %= len(self._turns)
        if number >= len(self._turns):
            msg = f"call {number + 1} of a script of {len(self._turns)} turns"
            raise ScriptError(msg, provider=self.provider, model=self.model_id)
        async for chunk in _play(self._turns[number], number, self.model_id):
            yield chunk


async def _play(played: Turn, number: int, model_id: str) -> AsyncIterator[Chunk]:
    yield ResponseMetadata(f"response-{number}", model_id, provider="scripted")
    opened = ""  # the part that is open: "text", "reasoning" or none
    part = -1
    for place, piece in enumerate(played.pieces):
        kind = _KINDS.get(type(piece), "")
        if opened and kind != opened and not isinstance(piece, Delay):
            if not isinstance(piece, Failure):
                yield _END[opened](str(part))
            opened = ""
        if kind and kind != opened:
            part += 1
            opened = kind
            yield _START[kind](str(part))
        match piece:
            case str():
                yield TextDelta(str(part), piece)
            case Reasoning():
                yield ReasoningDelta(str(part), piece.text)
            case Call():
                for chunk in _call(piece, f"call-{number}-{place}"):
                    yield chunk
            case Delay():
                await asyncio.sleep(piece.seconds)
            case Failure():
                raise _error(piece, model_id)
            case _:
                yield replace(piece)
    if played.incomplete:
        return
    if opened:
        yield _END[opened](str(part))
    usage = played.usage or Usage(1, len(played.pieces))
    yield FinishChunk(played.reason, replace(usage), raw_reason=played.reason)


_KINDS: dict[type, str] = {str: "text", Reasoning: "reasoning"}
_START: dict[str, Any] = {"text": TextStart, "reasoning": ReasoningStart}
_END: dict[str, Any] = {"text": TextEnd, "reasoning": ReasoningEnd}


def _call(piece: Call, default_id: str) -> list[Chunk]:
    call_id = piece.id or default_id
    written = isinstance(piece.arguments, str)
    text = piece.arguments if written else orjson.dumps(piece.arguments).decode()
    size = max(1, -(-len(text) // max(1, piece.pieces)))
    try:
        whole = ToolCall(call_id, piece.name, orjson.loads(text))
    except orjson.JSONDecodeError:
        whole = ToolCall(call_id, piece.name, None, text)
    return [
        ToolCallInputStart(call_id, piece.name),
        *(ToolCallDelta(call_id, text[i : i + size]) for i in range(0, len(text), size)),
        ToolCallInputEnd(call_id),
        whole,
    ]


def _error(piece: Failure, model_id: str) -> BaseException:
    if piece.error is not None:
        return piece.error
    retryable = piece.status in (408, 409, 429) or piece.status >= 500  # noqa: PLR2004
    return ProviderError(
        str(piece.body or "scripted failure"),
        status=piece.status,
        body=piece.body,
        provider="scripted",
        model=model_id,
        is_retryable=retryable,
    )
