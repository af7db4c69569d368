"""Runs as OpenTelemetry spans."""

from streampipe.tracing._tracing import NoTracing, Tracing, tracing_of

__all__ = ["NoTracing", "Tracing", "tracing_of"]
