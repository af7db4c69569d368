"""The row of the recorder: what watching a stage costs."""

from __future__ import annotations

from benchmarks.measure import Row, Sizes, compare
from benchmarks.pipelines import six
from benchmarks.work import consume, scripted
from streampipe import Agent, Recorder

__all__ = ["recording"]

MICRO = 1e6
MOST_US = 2.0
STAGES = 8  # the model, six operators, the client


async def recording(sizes: Sizes) -> list[Row]:
    """A run with six operators that is recorded, against the same run unrecorded."""
    agent = Agent(model=scripted(sizes.chunks), output_processors=six())
    recorder = Recorder(runs=1)
    plain, recorded = await compare(
        sizes.rounds,
        lambda: consume(agent.stream("hi")),
        lambda: consume(agent.stream("hi", recorder=recorder)),
    )
    added = (recorded.median - plain.median) / sizes.chunks / STAGES * MICRO
    return [
        Row(
            "recorder, added per chunk and stage",
            f"{added:.2f} us",
            f"{recorded.ratio:.2f}x unrecorded",
            f"<= {MOST_US} us",
            added <= MOST_US,
        ),
    ]
