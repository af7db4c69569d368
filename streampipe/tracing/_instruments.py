"""The tracer and the histograms, made once for many runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opentelemetry import metrics, trace
from opentelemetry.metrics import Histogram, Meter, MeterProvider
from opentelemetry.trace import Tracer, TracerProvider
from opentelemetry.util.types import AttributeValue

from streampipe.chunks import Usage

SCOPE = "streampipe"

# The bounds of buckets that the conventions ask for.
_SECONDS = [0.01 * 2**n for n in range(14)]
_FIRST = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
_TOKENS = [4**n for n in range(14)]

Attributes = Mapping[str, AttributeValue]


@dataclass(slots=True, frozen=True)
class Instruments:
    """What spans and measurements of runs are made with.

    Attributes:
        tracer: makes spans.
        duration: seconds of a model call.
        first_chunk: seconds until its first chunk.
        tokens: tokens of a model call.
    """

    tracer: Tracer
    duration: Histogram
    first_chunk: Histogram
    tokens: Histogram

    def count(self, usage: Usage, attributes: Attributes) -> None:
        """Measure a model call's tokens."""
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if tokens:
                self.tokens.record(tokens, {**attributes, "gen_ai.token.type": kind})


def instruments(
    tracer_provider: TracerProvider | None,
    meter_provider: MeterProvider | None,
) -> Instruments:
    """The instruments of two providers, or of the program's own, also if it sets one up later."""
    meter = metrics.get_meter(SCOPE, meter_provider=meter_provider)
    return Instruments(
        trace.get_tracer(SCOPE, tracer_provider=tracer_provider),
        _histogram(meter, "operation.duration", "s", "GenAI operation duration.", _SECONDS),
        _histogram(
            meter, "operation.time_to_first_chunk", "s", "Time to receive the first chunk.", _FIRST
        ),
        _histogram(meter, "token.usage", "{token}", "Number of tokens used.", _TOKENS),
    )


def _histogram(
    meter: Meter, name: str, unit: str, description: str, bounds: list[float]
) -> Histogram:
    return meter.create_histogram(
        f"gen_ai.client.{name}", unit, description, explicit_bucket_boundaries_advisory=bounds
    )
