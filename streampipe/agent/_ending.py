"""The chunks that say why a run was stopped."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Any

from streampipe.abort import TripWire
from streampipe.chunks import ErrorChunk, ErrorData, TripwireChunk, TripwireData
from streampipe.errors import ProcessorError


def tripwire_data(wire: TripWire) -> TripwireData:
    """What a client and the result are told of a pulled wire."""
    return TripwireData(wire.reason, wire.retry or None, wire.metadata, wire.processor_id)


def tripwire_chunk(wire: TripWire) -> TripwireChunk:
    """The chunk of a run that was blocked."""
    return TripwireChunk(wire.reason, wire.retry or None, wire.metadata, wire.processor_id)


def error_chunk(error: BaseException) -> ErrorChunk:
    """The chunk of a run that failed: the part at fault, not the exception itself."""
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


def discard(wait: Awaitable[Any]) -> None:
    """Drop a wait that need not be waited for."""
    if inspect.iscoroutine(wait):
        wait.close()
