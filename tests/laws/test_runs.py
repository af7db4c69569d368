"""The laws of the engine, over generated runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from reactivex import operators as rx

from streampipe import AbortSignal, Agent, Chunk, ErrorChunk, FinishChunk, TextDelta
from streampipe import operators as ops
from streampipe.testing import ScriptedModel, Turn
from tests.laws.runs import (
    Outcome,
    Plan,
    WatchedModel,
    accepted_steps,
    agent_of,
    chains,
    check_books,
    check_clean,
    check_prompts,
    check_stream,
    limits,
    outcome_of,
    scripts,
    settled,
    several_plans,
    told,
)

budgets = st.sampled_from([2, 1, 3, 0])
paces = st.integers(0, 3)
marks = st.sampled_from([1, 2, 256])
passing: st.SearchStrategy[Any] = st.sampled_from([rx.map(lambda c: c), ops.process_all([])])


async def later(chunk: Chunk) -> Chunk:
    """The same chunk, some turns later."""
    for _ in range(3):
        await asyncio.sleep(0)
    return chunk


@given(
    st.lists(st.text("ab ", min_size=1), max_size=20),
    several_plans(("pass", "write")),
    paces,
    marks,
)
async def test_law_1_chunks_come_in_the_order_that_the_model_sent_them(
    words: list[str],
    chain: list[Plan],
    pace: int,
    high_water: int,
) -> None:
    """Through sync, async and mixed hooks that pass what they see, at any pace of the reader."""
    processors = [replace(plan, rewrite="pass").build() for plan in chain]
    agent = agent_of(ScriptedModel([Turn(tuple(words))]), processors)
    seen = await outcome_of(agent, pace=pace, high_water=high_water)
    assert [c.text for c in seen.chunks if isinstance(c, TextDelta)] == words


@settings(max_examples=5 * settings().max_examples)  # so much comes together in this one
@given(scripts, chains, limits, paces, marks)
async def test_law_2_10_every_run_ends_once_and_its_books_agree(
    script: list[Turn],
    chain: list[Plan],
    limit: dict[str, Any],
    pace: int,
    high_water: int,
) -> None:
    """Whatever hooks, tools, model and reader do: one end, and one truth for all."""
    model = WatchedModel(script)
    agent = agent_of(model, [plan.build() for plan in chain], **limit)
    seen = await outcome_of(agent, pace=pace, high_water=high_water)
    check_stream(seen.chunks)
    check_books(seen, chain)
    check_prompts(model)
    assert seen.result is not None
    assert seen.result.retries <= limit["max_processor_retries"]
    assert len(seen.result.steps) <= limit["max_steps"]
    await check_clean(model)


@given(scripts, chains, st.lists(paces, max_size=3), st.integers(0, 30), marks)
async def test_every_consumer_sees_every_chunk(
    script: list[Turn],
    chain: list[Plan],
    others: list[int],
    leaves_at: int,
    high_water: int,
) -> None:
    """Readers of any pace, attached from the start; one of them leaves, and the rest read on."""
    model = WatchedModel(script)
    run = agent_of(model, [plan.build() for plan in chain]).stream("hi", high_water=high_water)

    async def read(pace: int, most: int | None = None) -> list[Chunk]:
        seen: list[Chunk] = []
        async with aclosing(aiter(run)) as chunks:  # type: ignore[type-var]  # a generator
            async for chunk in chunks:
                seen.append(chunk)
                if len(seen) == most:
                    break
                for _ in range(pace):
                    await asyncio.sleep(0)
        return seen

    left, whole, *rest = await asyncio.gather(read(0, leaves_at + 1), read(0), *map(read, others))
    check_stream(whole)
    assert left == whole[: leaves_at + 1]
    assert all(seen == whole for seen in rest)
    await settled(run)
    await check_clean(model)


@given(scripts, chains, budgets, passing)
async def test_an_operator_that_passes_everything_changes_nothing(
    script: list[Turn],
    chain: list[Plan],
    budget: int,
    operator: Any,
) -> None:
    """An operator among the output processors is one more stage: it sees, and it passes on."""
    seen: list[Outcome] = []
    for operators in ([], [operator]):
        processors = [plan.build() for plan in chain]
        options: Any = {"operators": operators, "max_processor_retries": budget}
        seen.append(await outcome_of(agent_of(ScriptedModel(script), processors, **options)))
    assert told(seen[0].chunks) == told(seen[1].chunks)


@given(scripts, chains, budgets)
async def test_generate_tells_what_stream_tells(
    script: list[Turn],
    chain: list[Plan],
    budget: int,
) -> None:
    """The same run, collected: one engine."""

    def agent() -> Agent:
        processors = [plan.build() for plan in chain]
        return agent_of(ScriptedModel(script), processors, max_processor_retries=budget)

    streamed = await outcome_of(agent())
    run = agent().stream("hi")
    result, error = await settled(run)
    assert streamed.result is not None
    assert (result.text, result.finish_reason, result.retries) == (
        streamed.result.text,
        streamed.result.finish_reason,
        streamed.result.retries,
    )
    assert repr(error) == repr(streamed.error)
    assert result.tripwire == streamed.result.tripwire
    assert told(result.tool_calls) == told(streamed.result.tool_calls)  # type: ignore[arg-type]  # chunks


@given(scripts, chains, budgets)
async def test_law_4_sync_hooks_and_their_async_twins_give_the_same_stream(
    script: list[Turn],
    chain: list[Plan],
    budget: int,
) -> None:
    """Colour makes no difference."""
    seen: list[Outcome] = []
    for asynchronous in (False, True, None):
        processors = [plan.build(asynchronous=asynchronous) for plan in chain]
        agent = agent_of(ScriptedModel(script), processors, max_processor_retries=budget)
        seen.append(await outcome_of(agent))
    assert told(seen[0].chunks) == told(seen[1].chunks) == told(seen[2].chunks)


@given(
    scripts,
    st.lists(passing | st.just(ops.map_async(later, concurrency=2)), max_size=3),
)
async def test_the_hook_at_the_end_of_an_answer_comes_after_all_of_it(
    script: list[Turn],
    operators: list[Any],
) -> None:
    """What `process_llm_response` writes overtakes nothing that an operator still holds."""
    plan = Plan("p", "pass", {"process_llm_response": ["write"] * 4}, {})
    seen = await outcome_of(agent_of(ScriptedModel(script), [plan.build()], operators=operators))
    for step in accepted_steps(seen.chunks)[0]:
        kinds = [chunk.type for chunk in step]
        behind = kinds[kinds.index("data-law") + 1 :]
        assert not {"text-end", "reasoning-end", "tool-call", "response-metadata"} & set(behind)


class ByPrompt:
    """Several scripted models behind one: the prompt says whose turn it is."""

    provider = model_id = "by-prompt"

    def __init__(self, models: dict[str, ScriptedModel]) -> None:
        """Know the models by the prompt that they answer."""
        self.models = models

    def stream(self, request: Any) -> Any:
        """Play on the script of the first user's message."""
        first = next(m for m in request.prompt if m.role == "user")
        return self.models[first.text].stream(request)


@given(scripts, scripts, chains, budgets)
async def test_law_6_two_runs_interleaved_give_what_they_give_alone(
    first: list[Turn],
    second: list[Turn],
    chain: list[Plan],
    budget: int,
) -> None:
    """The same agent and the same processors, at the same time."""

    def agent() -> Agent:
        model = ByPrompt({"one": ScriptedModel(first), "two": ScriptedModel(second)})
        return agent_of(model, [p.build() for p in chain], max_processor_retries=budget)

    async def chunks(of: Agent, prompt: str) -> list[Chunk]:
        seen: list[Chunk] = []
        async with of.stream(prompt) as run:
            async for chunk in run:
                seen.append(chunk)
                await asyncio.sleep(0)  # lets the other run go on
        return seen

    alone = [await chunks(agent(), "one"), await chunks(agent(), "two")]
    shared = agent()
    together = await asyncio.gather(chunks(shared, "one"), chunks(shared, "two"))
    assert [told(seen) for seen in together] == [told(seen) for seen in alone]


@given(scripts, chains, st.integers(0, 30), st.sampled_from(["leave", "cancel", "signal"]))
async def test_law_8_a_run_that_is_stopped_at_any_chunk_leaves_nothing(
    script: list[Turn],
    chain: list[Plan],
    stop_at: int,
    how: str,
) -> None:
    """A consumer that leaves, a cancel and an abort signal, at the n-th chunk."""
    model = WatchedModel(script)
    agent = agent_of(model, [plan.build() for plan in chain], max_processor_retries=1)
    signal = AbortSignal()
    seen = Outcome()
    async with agent.stream("hi", abort_signal=signal, high_water=1) as run:
        async for chunk in run:
            seen.chunks.append(chunk)
            if len(seen.chunks) == stop_at + 1:
                if how == "leave":
                    break
                if how == "cancel":
                    await run.cancel("enough")
                else:
                    signal.abort("enough")
        if how != "leave":
            seen.result, seen.error = await settled(run)
    if how != "leave":
        check_stream(seen.chunks)
        check_books(seen, chain)
    await check_clean(model)


@given(scripts, chains, st.integers(0, 20))
async def test_law_8_disposing_an_observed_run_leaves_nothing(
    script: list[Turn],
    chain: list[Plan],
    stop_at: int,
) -> None:
    """A subscription that is disposed from within `on_next`: nothing comes after it."""
    model = WatchedModel(script)
    agent = agent_of(model, [plan.build() for plan in chain])
    seen: list[Any] = []
    over = asyncio.Event()
    subscription: list[Any] = []

    def on_next(chunk: Chunk) -> None:
        seen.append(chunk)
        if len(seen) == stop_at + 1:
            subscription[0].dispose()
            over.set()

    ends: list[Any] = []

    def on_end(*args: Any) -> None:
        ends.append(args)
        over.set()

    subscription.append(agent.observe("hi").subscribe(on_next, on_end, on_end))
    await over.wait()
    await check_clean(model, turns=5)
    assert len(seen) <= stop_at + 1
    assert len(ends) == (0 if len(seen) == stop_at + 1 else 1)


@given(st.integers(1, 20), st.integers(0, 3), st.lists(passing, max_size=2), st.integers(0, 30))
async def test_law_7_a_stalled_consumer_stops_the_model(
    high_water: int,
    stages: int,
    operators: list[Any],
    read: int,
) -> None:
    """Chunks in flight are bounded by the high-water mark, one more for each async stage."""
    pulled = 0

    class Endless:
        provider = model_id = "endless"

        async def stream(self, request: Any) -> AsyncIterator[Chunk]:
            nonlocal pulled
            for _ in range(1_000):
                pulled += 1
                yield TextDelta("0", "x")
            yield FinishChunk()

    chain = [
        Plan(f"p{i}", "pass", {"process_output_stream": []}, {}).build(asynchronous=True)
        for i in range(stages)
    ]
    agent = Agent(model=Endless(), output_processors=[*operators, *chain])
    async with agent.stream("hi", high_water=high_water) as run:
        got = 0
        stalled = aiter(run)
        while got < read:
            got += isinstance(await anext(stalled), TextDelta)
        if not read:
            await anext(stalled)
        for _ in range(400):
            await asyncio.sleep(0)
        assert pulled - got <= high_water + stages + len(operators) + 1


@given(st.integers(1, 20), st.integers(0, 10))
async def test_law_7_to_aiter_bounds_what_lies_unread(high_water: int, read: int) -> None:
    """The same for a pipeline of operators."""
    pulled = 0

    async def source() -> AsyncIterator[int]:
        nonlocal pulled
        for number in range(1_000):
            pulled += 1
            yield number

    reader: Any = ops.to_aiter(ops.from_aiter(source), high_water=high_water)
    got = [await anext(reader) for _ in range(read)]
    for _ in range(200):
        await asyncio.sleep(0)
    assert got == list(range(read))
    assert pulled - read <= high_water + 1
    await reader.aclose()


@given(scripts, several_plans(("pass", "raise")))
async def test_law_9_a_failure_is_told_once_and_leaves_nothing(
    script: list[Turn],
    chain: list[Plan],
) -> None:
    """One `error` chunk and `finish`; the result raises it; no task or stream is left."""
    model = WatchedModel(script)
    seen = await outcome_of(agent_of(model, [plan.build() for plan in chain]))
    errors = [c for c in seen.chunks if c.type == "error"]
    assert len(errors) == (seen.error is not None)
    if seen.error is not None:
        assert [c.type for c in seen.chunks][-2:] == ["error", "finish"]
    await check_clean(model)


@given(scripts, several_plans(("pass",)), st.integers(0, 10))
async def test_law_9_an_operator_that_raises_fails_the_run_once(
    script: list[Turn],
    chain: list[Plan],
    at: int,
) -> None:
    """A function that a user gave to an operator, at the n-th chunk that reaches it."""
    model = WatchedModel(script)
    reached: list[Chunk] = []

    def breaking(chunk: Chunk) -> Chunk:
        reached.append(chunk)
        if len(reached) == at + 1:
            msg = "the function broke"
            raise RuntimeError(msg)
        return chunk

    processors = [plan.build() for plan in chain]
    seen = await outcome_of(agent_of(model, processors, operators=[rx.map(breaking)]))
    check_stream(seen.chunks)
    check_books(seen, chain)
    told_of = [c for c in seen.chunks if isinstance(c, ErrorChunk) and "function" in repr(c)]
    assert len(reached) <= at + 1
    assert len(told_of) == (len(reached) == at + 1)
    await check_clean(model)


@given(scripts, st.integers(0, 10))
async def test_law_9_a_subscriber_that_raises_is_told_of_it(script: list[Turn], at: int) -> None:
    """What `on_next` raises reaches `on_error` once; nothing more is pushed, the model closed."""
    model = WatchedModel(script)
    broke = RuntimeError("the subscriber broke")
    seen: list[Chunk] = []
    ended: list[Any] = []
    over = asyncio.Event()

    def on_next(chunk: Chunk) -> None:
        seen.append(chunk)
        if len(seen) == at + 1:
            raise broke

    def on_end(error: Any = None) -> None:
        ended.append(error)
        over.set()

    agent_of(model, []).observe("hi").subscribe(on_next, on_end, on_end)
    await over.wait()
    await check_clean(model, turns=5)
    assert len(seen) <= at + 1
    assert ended == [broke if len(seen) == at + 1 else None]
