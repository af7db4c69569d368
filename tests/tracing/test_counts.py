"""What a processor did with the chunks of a step is one span, with counts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from streampipe import Agent, FinishChunk, StartChunk, TextDelta
from streampipe.errors import StreampipeError
from streampipe.testing import ScriptedModel, Turn, fail
from tests.tracing.spans import Spans, told

COUNTS = ("streampipe.chunks.in", "streampipe.chunks.out", "streampipe.chunks.dropped")


class Acting:
    """Passes, drops, doubles or rewrites a piece of text, as the piece says."""

    id = "acting"

    def __init__(self) -> None:
        """Count what the run's own ends are."""
        self.seen = 0
        self.outside = 0

    def process_output_stream(self, args: Any) -> Any:
        """Act, and count by hand."""
        part = args.part
        if isinstance(part, StartChunk | FinishChunk):
            self.outside += 1
            return part
        self.seen += 1
        match getattr(part, "text", ""):
            case "drop":
                return None
            case "none":
                return []
            case "twice":
                return [part, TextDelta(part.id, "again")]
            case "other":
                return TextDelta(part.id, "another")
            case _:
                return part


class ActingLater(Acting):
    """The same as a coroutine."""

    async def process_output_stream(self, args: Any) -> Any:
        """Act later."""
        await asyncio.sleep(0)
        return super().process_output_stream(args)


@given(
    st.lists(st.sampled_from(["pass", "drop", "none", "twice", "other"]), max_size=12),
    st.sampled_from([Acting, ActingLater]),
)
async def test_a_hook_s_chunks_are_counted(words: list[str], kind: type[Acting]) -> None:
    """In, out and dropped; sync or async; the run's `start` and `finish` are of no step."""
    spans, acting = Spans(), kind()
    agent = Agent(model=ScriptedModel([Turn(tuple(words))]), output_processors=[acting])
    await agent.generate("hi", tracing=spans.tracing)
    span = told(spans.one("process_output_stream acting"))
    dropped = words.count("drop") + words.count("none")
    assert [span[name] for name in COUNTS] == [
        acting.seen,
        acting.seen - dropped + words.count("twice"),
        dropped,
    ]
    assert acting.outside == 2
    assert span["streampipe.hook.duration"] > 0


@pytest.mark.parametrize("chunks", [1, 500])
async def test_spans_are_as_many_for_a_long_answer_as_for_a_short_one(chunks: int) -> None:
    """None for each chunk."""
    spans = Spans()
    agent = Agent(model=ScriptedModel([["x"] * chunks]), output_processors=[Acting()])
    await agent.generate("hi", tracing=spans.tracing)
    assert len(spans.started) == 4


async def test_a_processor_that_saw_no_chunk_has_no_span() -> None:
    """One behind another that drops everything."""

    class Wall:
        id = "wall"

        def process_output_stream(self, args: Any) -> None:
            """Drop it."""

    spans = Spans()
    agent = Agent(model=ScriptedModel(["hi"]), output_processors=[Wall(), Acting()])
    await agent.generate("hi", tracing=spans.tracing)
    assert [span.name for span in spans.named("process_")] == ["process_output_stream wall"]


async def test_each_step_s_counts_begin_anew() -> None:
    """A second attempt does not count the chunks of the first."""

    class Judge:
        id = "judge"

        def process_output_step(self, args: Any) -> None:
            if args.retry_count == 0:
                args.abort("again", retry=True)

    spans = Spans()
    agent = Agent(
        model=ScriptedModel([["a", "b", "c"], ["a"]]),
        output_processors=[Acting(), Judge()],
        max_processor_retries=1,
    )
    await agent.generate("hi", tracing=spans.tracing)
    first, second = (told(span)[COUNTS[0]] for span in spans.named("process_output_stream"))
    assert first == second + 2


def measured(reader: InMemoryMetricReader) -> dict[str, list[tuple[Any, dict[str, Any]]]]:
    """Every histogram's points: the sum of tokens or the count of seconds, and attributes."""
    data: Any = reader.get_metrics_data()
    found: dict[str, list[tuple[Any, dict[str, Any]]]] = {}
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        tokens = metric.unit == "{token}"
        found[metric.name] = [
            (point.sum if tokens else point.count, dict(point.attributes))
            for point in metric.data.data_points
        ]
    return found


async def test_a_model_call_is_measured() -> None:
    """Duration, time to the first chunk and tokens; a failure by its kind."""
    reader = InMemoryMetricReader()
    meters = MeterProvider([reader], shutdown_on_exit=False)
    spans = Spans(meter_provider=meters)
    agent = Agent(model=ScriptedModel([["a"], ["b"], fail(status=503)]), tracing=spans.tracing)
    for _ in range(2):
        await agent.generate("hi")
    with pytest.raises(StreampipeError):
        await agent.generate("hi")
    asked = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "script",
    }
    answered = {**asked, "gen_ai.response.model": "script"}
    points = measured(reader)
    assert points["gen_ai.client.operation.duration"] == [
        (2, answered),
        (1, {**answered, "error.type": "streampipe.errors.ProviderError"}),
    ]
    assert points["gen_ai.client.operation.time_to_first_chunk"] == [
        (2, answered),
        (1, {**answered, "error.type": "streampipe.errors.ProviderError"}),
    ]
    tokens = {
        attributes["gen_ai.token.type"] for _, attributes in points["gen_ai.client.token.usage"]
    }
    assert tokens == {"input", "output"}
    meters.shutdown()
