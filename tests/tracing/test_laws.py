"""What holds of the spans of any run, however it ends."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import INVALID_SPAN, StatusCode, get_current_span
from reactivex import operators as rx

from streampipe import AbortSignal, Chunk
from streampipe import operators as ops
from streampipe.contracts import RunResult
from streampipe.testing import ScriptedModel, Turn
from tests.laws.runs import (
    Plan,
    WatchedModel,
    agent_of,
    chains,
    check_clean,
    limits,
    outcome_of,
    scripts,
    settled,
)
from tests.laws.runs import told as wires
from tests.tracing.spans import Spans, events, parent_id, span_id, told

between = st.sampled_from([[], [rx.filter(lambda _: True)], [ops.filter(lambda _: True)]])
ways = st.sampled_from(["read", "leave", "cancel", "signal", "dispose"])
PARENTS = {
    "step": {"invoke_agent"},
    "chat": {"step"},
    "execute_tool": {"step"},
    "process_input": {"invoke_agent"},
    "process_output_result": {"step"},
    "process_output_stream": {"step"},
}


def kind(span: ReadableSpan) -> str:
    """What a span is of: the first word of its name."""
    return span.name.partition(" ")[0]


def check_spans(spans: Spans) -> None:
    """Every span was ended, once, within its parent, which is of the right kind."""
    ended = [span_id(span) for span in spans.ended]
    assert sorted(ended) == sorted(map(span_id, spans.started))
    assert len(ended) == len(set(ended))
    by_id = {span_id(span): span for span in spans.ended}
    for span in spans.ended:
        parent = by_id.get(parent_id(span) or 0)
        if kind(span) == "invoke_agent":
            assert parent is None
            continue
        assert parent is not None
        assert kind(parent) in PARENTS.get(kind(span), {"step", "invoke_agent"})
        assert (parent.start_time or 0) <= (span.start_time or 0)
        assert (span.end_time or 0) <= (parent.end_time or 0)
    assert get_current_span() is INVALID_SPAN, "the consumer's context is its own"


def check_root(spans: Spans, result: RunResult) -> None:
    """The run's span says what the result says."""
    root = spans.one("invoke_agent")
    outcome = told(root).get("streampipe.outcome")
    assert (outcome == "failed") == (result.error is not None)
    assert (outcome == "blocked") == (result.tripwire is not None)
    assert (outcome == "cancelled") == (result.finish_reason == "aborted")
    assert (root.status.status_code is StatusCode.ERROR) == (outcome == "failed")
    assert told(root)["gen_ai.response.finish_reasons"] == (result.finish_reason,)
    steps = spans.named("step")
    granted = [step for step in steps if "streampipe.retry" in [name for name, _ in events(step)]]
    assert len(granted) == result.retries
    retried = [step for step in steps if told(step).get("streampipe.outcome") == "retried"]
    # What came after the last retry was granted may have stopped the run before another attempt.
    assert retried in (granted, granted[:-1])
    for tokens in ("input_tokens", "output_tokens"):
        name = f"gen_ai.usage.{tokens}"
        counted = sum(told(span).get(name, 0) for span in spans.named("chat"))
        assert counted == told(root).get(name, 0) == getattr(result.usage, tokens)


@given(scripts, chains, limits, between, st.integers(0, 30), ways)
async def test_every_span_is_ended_once_and_within_its_parent(  # noqa: PLR0917 - what is varied
    script: list[Turn],
    chain: list[Plan],
    limit: dict[str, Any],
    operators: list[Any],
    stop_at: int,
    how: str,
) -> None:
    """Whatever hooks, tools, model and reader do, and at whatever chunk the reader stops."""
    model, spans = WatchedModel(script), Spans()
    processors = [plan.build() for plan in chain]
    agent = agent_of(model, processors, operators=operators, **limit, tracing=spans.tracing)
    if how == "dispose":
        await disposed(agent.observe("hi"), stop_at)
    else:
        await stopped(agent, spans, stop_at, how)
    await check_clean(model, turns=5)
    check_spans(spans)


async def disposed(chunks: Any, stop_at: int) -> None:
    """Read some chunks of an observable, and go."""
    reader = ops.to_aiter(chunks)
    seen = 0
    async for _ in reader:
        seen += 1
        if seen == stop_at + 1:
            break
    await reader.aclose()  # type: ignore[attr-defined]  # a generator


async def stopped(agent: Any, spans: Spans, stop_at: int, how: str) -> None:
    """Read some chunks of a run, then stop it in one of the ways, or read on."""
    signal = AbortSignal()
    seen: list[Chunk] = []
    async with agent.stream("hi", abort_signal=signal, high_water=1) as run:
        async for chunk in run:
            seen.append(chunk)
            if len(seen) == stop_at + 1:
                if how == "leave":
                    break
                if how == "cancel":
                    await run.cancel("enough")
                elif how == "signal":
                    signal.abort("enough")
        if how == "leave":
            return
        result, _ = await settled(run)
    check_root(spans, result)


@given(scripts, chains, limits, between, st.booleans())
async def test_a_run_that_is_traced_is_the_same_run(
    script: list[Turn],
    chain: list[Plan],
    limit: dict[str, Any],
    operators: list[Any],
    content: bool,  # noqa: FBT001 - a case
) -> None:
    """The client is told the same, chunk by chunk, and so is the result."""
    seen = []
    for tracing in (False, Spans(content=content).tracing):
        processors = [plan.build() for plan in chain]
        agent = agent_of(ScriptedModel(script), processors, operators=operators, **limit)
        seen.append(await outcome_of(agent, tracing=tracing))
    plain, traced = seen
    assert wires(traced.chunks) == wires(plain.chunks)
    assert repr(traced.error) == repr(plain.error)
