"""The model's call: the driver that pulls chunks from a model and pushes them through the run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from streampipe.chunks import (
    Chunk,
    FinishChunk,
    ReasoningEnd,
    ReasoningStart,
    ResponseMetadata,
    TextDelta,
    TextEnd,
    TextStart,
    ToolResult,
)
from streampipe.errors import ConfigurationError, IncompleteStreamError, ModelError
from streampipe.operators._core import Emit
from streampipe.operators._hooks import ModelAnswer, ModelCall
from streampipe.operators._kinds import own_copy
from streampipe.operators._scope import Scope


async def call_model(
    answer: ModelAnswer,
    scope: Scope,
    emit: Emit[Chunk],
    *,
    keep: bool,
    check: Callable[[ToolResult], Awaitable[None]],
) -> FinishChunk:
    """Pull a chunk from the model, push it through everything, wait; again until it finishes.

    Parts that the model leaves open are closed, so that whoever holds text back can flush it.

    Args:
        answer: the call, and what is noted of the answer.
        scope: the run.
        emit: takes the chunks on their way to the client.
        keep: note every chunk as the model made it.
        check: looks at the result of a tool that the provider ran, before it is sent on.

    Returns:
        The model's `finish` chunk, which is not sent on: a run has one of its own.

    Raises:
        ModelError: the model failed, or its stream ended without a `finish` chunk.
        ConfigurationError: it cannot be asked so.
    """
    call, run_id = answer.call, scope.run_id
    parts = _OpenParts(run_id)
    source, finish = _source(call)
    try:
        async with aclosing(source) as stream:  # type: ignore[type-var]  # generators have it
            async for chunk in stream:
                if chunk.run_id != run_id:
                    chunk = _adopted(chunk, run_id)  # noqa: PLW2901 - the same chunk, ours now
                if keep:
                    answer.chunks.append(own_copy(chunk))
                if chunk.__class__ is not TextDelta:
                    if isinstance(chunk, FinishChunk):
                        finish = chunk
                        continue
                    if isinstance(chunk, ToolResult) and chunk.provider_executed:
                        await check(chunk)
                    elif isinstance(chunk, ResponseMetadata):
                        answer.raw_response = chunk
                        answer.warnings.extend(chunk.warnings or ())
                    else:
                        parts.note(chunk)
                if scope.stopped:
                    await scope.halt()
                wait = emit(chunk)
                if wait is not None:
                    await wait
    except (ModelError, ConfigurationError):
        raise
    except Exception as error:
        raise _failure(ModelError, f"{type(error).__name__}: {error}", call.model) from error
    if finish is None:
        raise _failure(IncompleteStreamError, "the stream ended without a finish chunk", call.model)
    await _send(parts.closing(), emit)
    return finish


async def _send(chunks: list[Chunk], emit: Emit[Chunk]) -> None:
    for chunk in chunks:
        wait = emit(chunk)
        if wait is not None:
            await wait


def _source(call: ModelCall) -> tuple[AsyncIterator[Chunk], FinishChunk | None]:
    """Where the chunks come from, and how it ends if nothing says so: only a replay may."""
    if call.replay is not None:
        return _replay(call.replay), FinishChunk()
    return call.model.stream(call.request), None


def _adopted(chunk: Chunk, run_id: str) -> Chunk:
    """The chunk as this run's; another run's chunk is not ours to change."""
    if chunk.run_id:
        chunk = replace(chunk)
    chunk.run_id = run_id
    return chunk


class _OpenParts:
    """Which text and reasoning parts the model has opened and not closed."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._open: dict[tuple[type, str], Chunk] = {}

    def note(self, chunk: Chunk) -> None:
        match chunk:
            case TextStart():
                self._open[TextEnd, chunk.id] = TextEnd(chunk.id, run_id=self._run_id)
            case ReasoningStart():
                self._open[ReasoningEnd, chunk.id] = ReasoningEnd(chunk.id, run_id=self._run_id)
            case TextEnd() | ReasoningEnd():
                self._open.pop((type(chunk), chunk.id), None)
            case _:
                pass

    def closing(self) -> list[Chunk]:
        return list(self._open.values())


async def _replay(chunks: list[Chunk]) -> AsyncIterator[Chunk]:
    for chunk in chunks:
        yield replace(chunk)


def _failure(kind: type[ModelError], message: str, model: Any) -> ModelError:
    """An error that names the model, whatever it calls itself."""
    return kind(
        message,
        provider=getattr(model, "provider", type(model).__name__),
        model=getattr(model, "model_id", ""),
        is_retryable=kind is IncompleteStreamError,
    )
