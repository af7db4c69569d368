"""What is told of a run that was stopped."""

from __future__ import annotations

from streampipe.abort import TripWire
from streampipe.chunks import TripwireData


def tripwire_data(wire: TripWire) -> TripwireData:
    """What a client and the result are told of a pulled wire."""
    return TripwireData(wire.reason, wire.retry or None, wire.metadata, wire.processor_id)
