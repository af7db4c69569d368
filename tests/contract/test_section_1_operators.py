"""Section 1 of the contract: Rx operators among the output processors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import reactivex
from reactivex import Observable
from reactivex import operators as rx
from reactivex.disposable import CompositeDisposable, Disposable

from streampipe import (
    Agent,
    Chunk,
    FileChunk,
    ObjectChunk,
    RawChunk,
    SourceChunk,
    TextDelta,
    TextStart,
)
from streampipe.errors import OperatorError
from streampipe.operators import to_aiter
from streampipe.testing import ScriptedModel, call, fail, reasoning
from tests.contract.guards import Runner, is_text, lookup_into, processor, texts, types

Operator = Callable[[Observable[Any]], Observable[Any]]


def watched(log: list[str], *, seen: list[Chunk] | None = None) -> Operator:
    """An operator that changes nothing and notes when it is subscribed to, ended and let go."""

    def watch(source: Observable[Any]) -> Observable[Any]:
        def subscribe(observer: Any, scheduler: Any = None) -> Any:
            log.append("subscribed")

            def on_next(chunk: Chunk) -> None:
                if seen is not None:
                    seen.append(chunk)
                observer.on_next(chunk)

            def on_completed() -> None:
                log.append("completed")
                observer.on_completed()

            inner = source.subscribe(on_next, observer.on_error, on_completed, scheduler=scheduler)
            return CompositeDisposable(inner, Disposable(lambda: log.append("disposed")))

        return Observable(subscribe)

    return watch


def hold(source: Observable[Any]) -> Observable[Any]:
    """Hold all back until the stream ends."""
    return source.pipe(rx.to_list(), rx.flat_map(reactivex.from_iterable))


def upper(chunk: Any) -> Any:
    """A piece of text in capitals; anything else as it is."""
    return replace(chunk, text=chunk.text.upper()) if isinstance(chunk, TextDelta) else chunk


def kind_of(chunk: Any) -> Any:
    """The chunk's type."""
    return chunk.type


def with_output(*elements: Any, script: Any, **options: Any) -> Agent:
    """An agent with these output processors and the tool `lookup`."""
    return Agent(
        model=ScriptedModel(script),
        tools=[lookup_into([])],
        output_processors=list(elements),
        **options,
    )


TWO_STEPS: list[list[Any]] = [["a", call("lookup", {"word": "x"})], ["b"]]


async def test_1_an_operator_is_applied_to_each_steps_model_stream(run: Runner) -> None:
    """Subscribed when it opens, completed when it ends, let go then; once a step."""
    log: list[str] = []
    seen = await run(with_output(watched(log), script=TWO_STEPS))
    assert log == ["subscribed", "completed", "disposed"] * 2
    assert seen.result.text == "ab"


async def test_1_an_operator_may_change_the_text_that_everybody_sees(run: Runner) -> None:
    """Client, result and the next step's prompt."""
    agent = with_output(rx.map(upper), script=TWO_STEPS)
    seen = await run(agent)
    assert seen.result.text == "AB"
    model = agent.options.get("model")
    assert isinstance(model, ScriptedModel)
    assert [m.text for m in model.requests[1].prompt if m.role == "assistant"] == ["A"]
    if seen.chunks is not None:
        assert texts(seen.chunks) == ["A", "B"]


@pytest.mark.parametrize("held", [True, False])
async def test_1_lifecycle_chunks_and_tool_results_pass_an_operator_by(
    run: Runner, *, held: bool
) -> None:
    """It sees what the model streams only; nothing changes its place for that."""
    given: list[Chunk] = []
    agent = with_output(
        watched([], seen=given), *([hold] if held else []), script=[[reasoning("r"), *TWO_STEPS[0]]]
    )
    seen = await run(agent, max_steps=1)
    model_made = [
        "reasoning-start",
        "reasoning-delta",
        "reasoning-end",
        "text-start",
        "text-delta",
        "text-end",
        "tool-call-input-streaming-start",
        "tool-call-delta",
        "tool-call-input-streaming-end",
        "tool-call",
    ]
    assert types(given) == model_made
    if seen.chunks is not None:
        assert types(seen.chunks) == [
            "start",
            "step-start",
            "response-metadata",
            *model_made,
            "tool-result",
            "step-finish",
            "finish",
        ]


async def test_1_an_operator_sees_every_kind_of_chunk_of_the_model(run: Runner) -> None:
    """Objects, sources, files and raw chunks too."""
    made: list[Any] = [
        ObjectChunk({"a": 1}),
        SourceChunk("s", url="u"),
        FileChunk("aGk=", "text/plain"),
        RawChunk({"x": 1}),
    ]
    given: list[Chunk] = []
    seen = await run(with_output(watched([], seen=given), script=[made]))
    assert types(given) == [chunk.type for chunk in made]
    if seen.chunks is not None:
        assert types(seen.chunks)[3:-2] == types(given)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_1_operators_and_processors_work_in_list_order(
    run: Runner, *, asynchronous: bool
) -> None:
    """A processor before it is given what the model said, one after it what the operator made."""
    given: dict[str, list[str]] = {"before": [], "after": []}

    def listener(name: str) -> Any:
        def listen(args: Any) -> Any:
            if is_text(args):
                given[name].append(args.part.text)
            return args.part

        async def listen_later(args: Any) -> Any:
            return listen(args)

        hook = listen_later if asynchronous else listen
        return processor(name, process_output_stream=hook)

    chain = [listener("before"), rx.map(upper), listener("after")]
    await run(with_output(*chain, script=[["x", "y"]]))
    assert given == {"before": ["x", "y"], "after": ["X", "Y"]}


async def test_1_what_an_operator_holds_is_flushed_before_process_output_step(run: Runner) -> None:
    """The step's text is whole there, with and without a processor after the operator."""
    texts_of_steps: list[str] = []
    look = processor(process_output_step=lambda args: texts_of_steps.append(args.text))
    through = processor("through", process_output_stream=lambda args: args.part)
    await run(with_output(hold, look, script=TWO_STEPS))
    await run(with_output(hold, through, look, script=TWO_STEPS))
    assert texts_of_steps == ["a", "b", "a", "b"]


async def test_1_a_part_that_the_model_left_open_is_closed_before_an_operator_ends(
    run: Runner,
) -> None:
    """So that an operator that waits for the closing chunk can rely on it."""
    given: list[Chunk] = []
    await run(with_output(watched([], seen=given), script=[[TextStart("7"), TextDelta("7", "x")]]))
    assert types(given) == ["text-start", "text-delta", "text-end"]


@pytest.mark.parametrize("ending", ["block", "retry", "model failure", "api retry"])
async def test_1_an_operator_is_disposed_on_a_block_or_a_void(run: Runner, ending: str) -> None:
    """It does not complete: what it holds is discarded."""
    log: list[str] = []

    def stop(args: Any) -> Any:
        if args.part.type == "text-end" and args.retry_count == 0 and "api" not in ending:
            args.abort("no", retry=ending == "retry")
        return args.part

    script: list[Any] = [["a"], ["b"]]
    options: dict[str, Any] = {"max_processor_retries": 1}
    if ending in ("model failure", "api retry"):
        script[0].append(fail())
    if ending == "api retry":
        options["error_processors"] = [
            processor("again", process_api_error=lambda _: {"retry": True})
        ]
    guards = [] if ending == "model failure" else [processor(process_output_stream=stop)]
    seen = await run(with_output(*guards, watched(log), hold, script=script, **options))
    second = ["subscribed", "completed", "disposed"]
    assert log == ["subscribed", "disposed", *(second if "retry" in ending else [])]
    if seen.chunks is not None:
        assert texts(seen.chunks) == (["b"] if "retry" in ending else [])


async def test_1_an_operator_that_fails_is_named(run: Runner) -> None:
    """The run ends with an error that says which, and nothing gets past it."""

    def broken(chunk: Any) -> Any:
        raise ValueError(chunk.type)

    def censor(source: Observable[Any]) -> Observable[Any]:
        return source.pipe(rx.map(broken))

    seen = await run(with_output(censor, script=[["a"]]))
    assert isinstance(seen.error, OperatorError)
    assert seen.error.operator == "censor"
    if seen.chunks is not None:
        assert texts(seen.chunks) == []


async def test_1_operators_over_the_whole_run_are_applied_to_the_run() -> None:
    """`run.pipe` and `observe().pipe` see every chunk of all steps, as the client does."""
    agent = with_output(script=TWO_STEPS * 2)
    async with agent.stream("hi") as stream:
        piped = [kind async for kind in stream.pipe(rx.map(kind_of))]
    observed = to_aiter(agent.observe("hi").pipe(rx.map(kind_of)))
    assert piped == [kind async for kind in observed]
    assert piped[0] == "start"
    assert piped.count("step-start") == 2
    assert piped[-1] == "finish"


@pytest.mark.parametrize("around", [1, 2])
async def test_an_async_processor_among_foreign_operators_is_awaited(
    run: Runner, around: int
) -> None:
    """Before, between and behind operators of reactivex a coroutine hook sees every chunk."""
    first, *others = [rx.map(upper) for _ in range(around)]
    slow = [processor(name, process_output_stream=_slowly) for name in ("before", "between")]
    seen = await run(with_output(slow[0], first, slow[1], *others, script=[["one ", "two"]]))
    assert seen.result.text == "ONE!! TWO!! "


async def _slowly(args: Any) -> Any:
    await asyncio.sleep(0)
    return replace(args.part, text=f"{args.part.text.rstrip()}! ") if is_text(args) else args.part
