"""What the tests of tracing look at: spans as the SDK was given them, and as a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from streampipe.tracing import Tracing


class Started(SpanProcessor):
    """Remembers every span that was started."""

    def __init__(self) -> None:
        """None yet."""
        self.spans: list[ReadableSpan] = []

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Remember it."""
        self.spans.append(span)


class Spans:
    """A tracer provider of a test's own, and what it was given.

    Attributes:
        tracing: give it to an agent.
        provider: for spans of the test's own.
    """

    def __init__(self, *, content: bool = False, **providers: Any) -> None:
        """Nothing is traced yet."""
        self.provider = TracerProvider(shutdown_on_exit=False)
        self._started = Started()
        self._exporter = InMemorySpanExporter()
        self.provider.add_span_processor(self._started)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracing = Tracing(tracer_provider=self.provider, content=content, **providers)

    @property
    def started(self) -> list[ReadableSpan]:
        """Every span that was started."""
        return self._started.spans

    @property
    def ended(self) -> Sequence[ReadableSpan]:
        """Every span that was ended, in that order."""
        return self._exporter.get_finished_spans()

    def named(self, beginning: str) -> list[ReadableSpan]:
        """The spans whose names begin so, in the order in which they were started."""
        ended = set(map(span_id, self.ended))
        found = [s for s in self.started if s.name.startswith(beginning)]
        assert {span_id(span) for span in found} <= ended
        return found

    def one(self, beginning: str) -> ReadableSpan:
        """The one span whose name begins so."""
        (span,) = self.named(beginning)
        return span

    def tree(self) -> list[str]:
        """The names, each indented below its parent, in the order in which they were started."""
        return [line for root in self._below(None) for line in root]

    def _below(self, parent: int | None, depth: int = 0) -> list[list[str]]:
        found = [span for span in self.started if parent_id(span) == parent]
        return [
            [
                "  " * depth + span.name,
                *(line for lines in self._below(span_id(span), depth + 1) for line in lines),
            ]
            for span in sorted(found, key=lambda span: span.start_time or 0)
        ]

    def text(self) -> str:
        """All that the spans tell, as one text."""
        return "\n".join(span.to_json() for span in self.ended)


def span_id(span: ReadableSpan) -> int:
    """A span's id."""
    assert span.context is not None
    return int(span.context.span_id)


def parent_id(span: ReadableSpan) -> int | None:
    """Its parent's; None of a root."""
    return None if span.parent is None else span.parent.span_id


def told(span: ReadableSpan) -> dict[str, Any]:
    """A span's attributes."""
    return dict(span.attributes or {})


def events(span: ReadableSpan) -> list[tuple[str, dict[str, Any]]]:
    """A span's events, by name and attributes."""
    return [(event.name, dict(event.attributes or {})) for event in span.events]
