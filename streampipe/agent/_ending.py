"""What is told of a run that was stopped, and what need not be waited for then."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Any

from streampipe.abort import TripWire
from streampipe.chunks import TripwireData


def tripwire_data(wire: TripWire) -> TripwireData:
    """What a client and the result are told of a pulled wire."""
    return TripwireData(wire.reason, wire.retry or None, wire.metadata, wire.processor_id)


def discard(wait: Awaitable[Any]) -> None:
    """Drop a wait that need not be waited for."""
    if inspect.iscoroutine(wait):
        wait.close()
