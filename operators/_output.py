"""Operators at the end of a pipeline: the wire, and errors as chunks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from reactivex import Observable

from streampipe.abort import TripWire
from streampipe.chunks import Chunk, ErrorChunk, ErrorData, FinishChunk, TripwireChunk
from streampipe.errors import ProcessorError, StreampipeError
from streampipe.operators._bridge import flowable
from streampipe.operators._core import FAULTS, Emit, Escape, Flowable
from streampipe.operators._fuse import Opened, Stage, fuse
from streampipe.operators._operator import operator
from streampipe.wire import chunk_to_json

R = TypeVar("R")


def tripwire_chunk(wire: TripWire) -> TripwireChunk:
    """The chunk of a stream that was blocked."""
    return TripwireChunk(wire.reason, wire.retry or None, wire.metadata, wire.processor_id)


def error_chunk(error: BaseException) -> ErrorChunk:
    """The chunk of a stream that failed: the part at fault, not the exception itself."""
    at_fault = error if isinstance(error, ProcessorError) else None
    return ErrorChunk(
        ErrorData(
            type(error).__name__,
            str(error),
            processor_id=at_fault.processor_id if at_fault else None,
            hook=at_fault.hook if at_fault else None,
            status=getattr(error, "status", None),
        ),
    )


def _written(name: str, write: Callable[[Chunk], Any]) -> Stage:
    def open_(emit: Emit[Any], stage: Stage) -> Opened:
        def push(chunk: Chunk) -> Awaitable[Any] | None:
            try:
                made = write(chunk)
            except FAULTS as error:
                raise stage.fault(error, chunk) from error
            return emit(made)

        return Opened(push)

    return Stage(name, open_)


@operator
def to_wire(source: Observable[Chunk]) -> Observable[dict[str, Any]]:
    """Every chunk in its wire form: a JSON-ready dict.

    Returns:
        The dicts. It fails with `OperatorError` when an element is no chunk.
    """
    return fuse(source, _written("to_wire", lambda chunk: chunk.to_wire()))


@operator
def to_jsonl(source: Observable[Chunk]) -> Observable[bytes]:
    r"""Every chunk as a line of JSON, in UTF-8 and with its line end.

    Returns:
        The lines. It fails with `OperatorError` when a value in a chunk is no JSON.
    """
    return fuse(source, _written("to_jsonl", lambda chunk: chunk_to_json(chunk) + b"\n"))


@operator
def to_sse(source: Observable[Chunk]) -> Observable[bytes]:
    r"""Every chunk as a server-sent event: `data: {...}\n\n`, in UTF-8.

    Returns:
        The events. It fails with `OperatorError` when a value in a chunk is no JSON.
    """
    return fuse(
        source, _written("to_sse", lambda chunk: b"data: " + chunk_to_json(chunk) + b"\n\n")
    )


class RemoteError(StreampipeError):
    """What an `error` chunk told of: the failure of a stream that was made elsewhere.

    Attributes:
        data: the chunk's data.
    """

    def __init__(self, data: ErrorData) -> None:
        """Carry what the chunk says."""
        super().__init__(f"{data.name}: {data.message}")
        self.data = data


@operator
def materialize_errors(source: Observable[Chunk]) -> Flowable[Chunk]:
    """A failure as chunks: `error` (or `tripwire`, for a block), then `finish`; then it completes.

    What a reader at the other end of a connection needs, who sees no exception.

    Args:
        source: a stream of chunks.

    Returns:
        The chunks; it fails only as those behind it do. A cancel is none of its business.
    """

    async def run(emit: Emit[Chunk]) -> None:
        last: Chunk
        try:
            await flowable(source).into(emit)
        except TripWire as wire:
            last, reason = tripwire_chunk(wire), "other"
        except Exception as error:  # noqa: BLE001 - told in the chunk
            last, reason = error_chunk(error), "error"
        else:
            return
        for chunk in (last, FinishChunk(reason)):
            wait = emit(chunk)
            if wait is not None:
                await wait

    return Flowable(run)


@operator
def raise_errors(source: Observable[Chunk]) -> Observable[Chunk]:
    """The other way round: an `error` chunk becomes a failure, a `tripwire` chunk a `TripWire`.

    Args:
        source: a stream of chunks.

    Returns:
        The other chunks. It fails with `RemoteError` at an `error` chunk, with `TripWire` at a
        `tripwire` chunk (a `BaseException`: write `except TripWire`); the source is closed then.
    """

    def open_(emit: Emit[Chunk], stage: Stage) -> Opened:
        def push(chunk: Chunk) -> Awaitable[Any] | None:
            if isinstance(chunk, ErrorChunk):
                raise Escape(RemoteError(chunk.error), stage.token)
            if isinstance(chunk, TripwireChunk):
                wire = TripWire(
                    chunk.reason,
                    retry=bool(chunk.retry),
                    metadata=chunk.metadata,
                    processor_id=chunk.processor_id,
                )
                raise Escape(wire, stage.token)
            return emit(chunk)

        return Opened(push)

    return fuse(source, Stage("raise_errors", open_))
