"""A model call as it is watched: what came when, and what it came to."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Any

from opentelemetry.trace import Span
from opentelemetry.util.types import AttributeValue

from streampipe.chunks import Chunk, FinishChunk, ResponseMetadata
from streampipe.contracts.model import OnRetry
from streampipe.errors import ModelError
from streampipe.operators._core import Emit
from streampipe.tracing._attributes import kind_of, provider_name, usage_attributes
from streampipe.tracing._content import Said
from streampipe.tracing._instruments import Instruments


class WatchedCall:
    """One call of a model; its chunks go through `push`.

    A slow reader makes a model wait, and that is in the time between two chunks. How long a call
    took is measured when it was whole or failed, not when somebody stopped it.
    """

    def __init__(
        self,
        emit: Emit[Chunk],
        span: Span,
        instruments: Instruments,
        attributes: dict[str, AttributeValue],
        *,
        content: bool,
    ) -> None:
        """Begin now.

        Args:
            emit: takes the chunks.
            span: is told of the call.
            instruments: measure it.
            attributes: name the model; those of the measurements.
            content: whether the answer is told.
        """
        self._emit = emit
        self._span = span
        self._instruments = instruments
        self._attributes = attributes
        self._said = Said() if content else None
        self._begun = self._first = self._last = time.perf_counter()
        self._chunks = 0

    def push(self, chunk: Chunk) -> Awaitable[Any] | None:
        """Note a chunk, and pass it on."""
        self._last = time.perf_counter()
        if not self._chunks:
            self._first = self._last
        self._chunks += 1
        if chunk.__class__ is ResponseMetadata:
            self._response(chunk)
        elif self._said is not None:
            self._said.note(chunk)
        return self._emit(chunk)

    def _response(self, chunk: Any) -> None:
        """What the provider says of itself; a fallback's model is known only now."""
        told = {
            "gen_ai.response.id": chunk.id,
            "gen_ai.response.model": chunk.model_id,
            "gen_ai.provider.name": chunk.provider and provider_name(chunk.provider),
        }
        known = {name: value for name, value in told.items() if value}
        self._span.set_attributes(known)
        known.pop("gen_ai.response.id", None)  # in a measurement it would be a series of its own
        self._attributes.update(known)

    def finished(self, finish: FinishChunk) -> None:
        """The whole answer has come."""
        span = self._span
        span.set_attribute("gen_ai.response.finish_reasons", [finish.reason])
        if finish.usage is not None:
            span.set_attributes(usage_attributes(finish.usage))
            self._instruments.count(finish.usage, self._attributes)
        if self._said is not None:
            span.set_attribute("gen_ai.output.messages", self._said.json(finish.reason))
        self._measure()

    def retried_before(self, told: OnRetry | None) -> OnRetry:
        """What is told when the model's client asks again: this span, then whoever was before."""

        def retried(error: ModelError, pause: float) -> None:
            self._span.add_event(
                "streampipe.retry", {"error.type": kind_of(error), "streampipe.retry.pause": pause}
            )
            if told is not None:
                told(error, pause)

        return retried

    def failed(self, error: ModelError) -> None:
        """The model failed."""
        self._attributes["error.type"] = kind_of(error)
        self._measure()

    def _measure(self) -> None:
        seconds = time.perf_counter() - self._begun
        self._instruments.duration.record(seconds, self._attributes)

    def over(self) -> None:
        """Nothing more will come: tell how what came did come."""
        if not self._chunks:
            return
        first = self._first - self._begun
        self._instruments.first_chunk.record(first, self._attributes)
        self._span.set_attribute("gen_ai.response.time_to_first_chunk", first)
        self._span.set_attribute("streampipe.chunks", self._chunks)
        if self._chunks > 1:
            mean = (self._last - self._first) / (self._chunks - 1)
            self._span.set_attribute("streampipe.time_per_output_chunk", mean)
