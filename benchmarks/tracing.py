"""The rows of tracing: what spans cost a run, and a chunk of it."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from benchmarks.measure import Row, Sizes, compare
from benchmarks.work import consume, guards, scripted
from streampipe import Agent
from streampipe.tracing import Tracing

__all__ = ["tracing"]

MICRO = 1e6
MOST_US = 2.5
MOST_RUN_US = 1_000.0
RUNS = 20  # short runs in a round


async def tracing(sizes: Sizes) -> list[Row]:
    """A run with four guards in spans that the SDK keeps in memory, against the same untraced."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans = Tracing(tracer_provider=provider)

    async def runs(chunks: int, count: int, *, traced: Tracing | bool) -> None:
        agent = Agent(model=scripted(chunks), output_processors=guards(), tracing=traced)
        for _ in range(count):
            await consume(agent.stream("hi"))
        exporter.clear()

    plain, told = await compare(
        sizes.rounds,
        lambda: runs(sizes.chunks, 1, traced=False),
        lambda: runs(sizes.chunks, 1, traced=spans),
    )
    short, short_told = await compare(
        sizes.rounds,
        lambda: runs(1, RUNS, traced=False),
        lambda: runs(1, RUNS, traced=spans),
    )
    chunk = (told.median - plain.median) / sizes.chunks * MICRO
    run = (short_told.median - short.median) / RUNS * MICRO
    return [
        Row(
            "tracing, 4 processors, added per chunk",
            f"{chunk:.2f} us",
            f"{told.ratio:.2f}x untraced",
            f"<= {MOST_US} us",
            chunk <= MOST_US,
        ),
        Row(
            "tracing, 7 spans, added per run",
            f"{run:.0f} us",
            f"{short_told.ratio:.2f}x untraced",
            f"<= {MOST_RUN_US:.0f} us",
            run <= MOST_RUN_US,
        ),
    ]
