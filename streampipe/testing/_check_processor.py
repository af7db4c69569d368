"""`check_processor`: hold a processor to the laws of operators, and to those of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Unpack

import streampipe.operators as ops
from streampipe.agent import Agent
from streampipe.chunks import (
    Chunk,
    FinishChunk,
    StepFinish,
    StepStart,
    TextDelta,
    ToolCall,
    ToolErrorChunk,
    ToolResult,
)
from streampipe.contracts import ERROR_HOOKS, HOOKS, INPUT_HOOKS, OUTPUT_HOOKS, RunResult
from streampipe.contracts.processor import STREAM_OPERATOR
from streampipe.errors import ConfigurationError, StreampipeError
from streampipe.testing._bench import Broken, drawn, read
from streampipe.testing._check_operator import check_laws, promised
from streampipe.testing._chunk_laws import CHUNK_LAWS, unclosed
from streampipe.testing._clock import VirtualLoop
from streampipe.testing._examine import chosen_laws, examine
from streampipe.testing._keeping_laws import KEEPING_LAWS
from streampipe.testing._laws import LAWS, Law
from streampipe.testing._script import Turn
from streampipe.testing._scripted import ScriptedModel
from streampipe.testing._strategies import agent_scripts
from streampipe.testing._trial import Promises, Shown, Traits, Trial, shown_all
from streampipe.tools import tool

__all__ = ["PROCESSOR_LAWS", "check_processor"]

HOOK = "process_output_stream"
PROCESSOR_LAWS: tuple[str, ...] = (*LAWS, *CHUNK_LAWS, *KEEPING_LAWS, "colour", "books")
"""The names of the laws that `check_processor` knows."""


def check_processor(
    make: Callable[[], Any],
    *,
    laws: Collection[str] | None = None,
    max_examples: int | None = None,
    **promises: Unpack[Promises],
) -> None:
    """Hold a processor to the laws, on generated streams and in generated runs.

    A `process_output_stream` hook, or the `stream_operator` in its place, is held to the laws of
    operators (see `check_operator`); the hook also to `colour`: with an async twin the stream is
    the same. Every processor is held to `books`, in runs of an agent: what the client got in
    accepted steps is what the result says; one `finish`, at the end; parts that open close; a tool
    call has its result; nothing is left behind.

    Args:
        make: makes the processor anew.
        laws: the names of the laws to look at; all that apply when None.
        max_examples: how many streams; None for what the active Hypothesis profile says. A quarter
            as many runs.
        promises: what the hook does, and what it does not promise; see `Promises`.

    Raises:
        LawError: a law does not hold; the message has the smallest example that shows it.
        ConfigurationError: an option is wrong; what `make` makes has no id or no hook.
        RuntimeError: it is called from within a running event loop.
        BaseException: what `make` raises.
    """
    made = make()
    hooks = [hook for hook in (*HOOKS, STREAM_OPERATOR) if hasattr(made, hook)]
    if not hooks or not isinstance(getattr(made, "id", None), str):
        raise ConfigurationError(
            f"check_processor: make has to return a processor, with an id and a hook, "
            f"not {made!r:.80}"
        )
    asked = chosen_laws("check_processor", laws, PROCESSOR_LAWS)
    subject = f"check_processor({made.id!r})"
    traits = promised(subject, lambda: ops.process(make()), promises)
    known: Mapping[str, Law] = {
        **LAWS,
        **CHUNK_LAWS,
        **KEEPING_LAWS,
        "colour": _colour_of(make),
    }
    wanted = {name: law for name, law in known.items() if name in asked}
    if not traits.chunking:
        wanted.pop("chunking", None)
    if HOOK not in hooks:
        wanted.pop("colour", None)
    if wanted and (HOOK in hooks or STREAM_OPERATOR in hooks):
        check_laws(traits, wanted, max_examples)
    if "books" in asked:
        _check_books(subject, make, traits, max_examples)


class _Twin:
    """A processor whose stream hook lets others in before it answers."""

    def __init__(self, processor: Any) -> None:
        self.id: str = processor.id
        self._processor = processor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._processor, name)

    async def process_output_stream(self, args: Any) -> Any:
        await asyncio.sleep(0)
        result = self._processor.process_output_stream(args)
        return await result if hasattr(result, "__await__") else result


def _colour_of(make: Callable[[], Any]) -> Law:
    async def colour(trial: Trial) -> None:
        """A sync hook and its async twin give the same stream."""
        twin = ops.process(_Twin(make()))
        seen = await read(twin, trial.case.stream, drawn(trial.case.pace))
        what = "as a coroutine that lets others in, the hook gives another result"
        trial.compare("colour", seen, await trial.base(), what)

    return colour


@tool
async def search(n: int) -> int:
    """Find a number."""
    return n


def _check_books(
    subject: str, make: Callable[[], Any], traits: Traits, max_examples: int | None
) -> None:
    async def verdict(script: list[Turn], _: VirtualLoop, __: str) -> None:
        model = ScriptedModel(script)
        agent = _agent(model, make())
        chunks: list[Chunk] = []
        async with agent.stream("Find a number.") as run:
            async for chunk in run:
                chunks.append(chunk)  # noqa: PERF401 - a failure shows what came before it
            try:
                result = await run.result()
            except StreampipeError as error:
                if not isinstance(error, traits.fails):
                    what = f"the run fails: {type(error).__name__}: {error}"
                    raise Broken("books", what, got=shown_all(chunks)) from error
                result = error.result
        _balance(chunks, result, make(), traits)

    scripts = agent_scripts(tools=("search",), texts=traits.texts, max_turns=2)
    examine(subject, scripts, verdict, _described, max_examples, share=0.25)


def _agent(model: ScriptedModel, processor: Any) -> Agent:
    def those(hooks: Collection[str]) -> list[Any]:
        return [processor] if any(hasattr(processor, hook) for hook in hooks) else []

    return Agent(
        model=model,
        tools=[search],
        input_processors=those(INPUT_HOOKS),
        output_processors=those((*OUTPUT_HOOKS, STREAM_OPERATOR)),
        error_processors=those(ERROR_HOOKS),
        max_processor_retries=1,
        tool_concurrency=1,
    )


def _described(script: Sequence[Turn]) -> Mapping[str, object]:
    return {
        f"turn {number}": Shown(", ".join(map(repr, turn.pieces)) or "nothing")
        for number, turn in enumerate(script)
    }


def _balance(chunks: list[Chunk], result: RunResult, processor: Any, traits: Traits) -> None:
    """Compare what the client got with the result.

    Raises:
        Broken: they tell different things.
    """
    got = shown_all(chunks)
    if [chunk for chunk in chunks if isinstance(chunk, FinishChunk)] != chunks[-1:]:
        raise Broken("books", "a run ends with one finish chunk, and with nothing else", got=got)
    for attempt in _attempts(chunks):
        problem = unclosed(attempt)
        if problem:
            raise Broken("books", problem, got=got)
    accepted = [chunk for step in _accepted(chunks) for chunk in step]
    text = "".join(chunk.text for chunk in accepted if isinstance(chunk, TextDelta))
    if not hasattr(processor, "process_output_result") and text != result.text:
        what = "the text that the client got is not that of the result"
        raise Broken("books", what, expected=text, result=result.text, got=got)
    calls = [chunk for chunk in accepted if isinstance(chunk, ToolCall)]
    if calls != result.tool_calls:
        what = "the tool calls that the client got are not those of the result"
        raise Broken("books", what, expected=calls, result=result.tool_calls, got=got)
    ends = (ToolResult, ToolErrorChunk)
    answered = {chunk.tool_call_id for chunk in accepted if isinstance(chunk, ends)}
    silent = [call.tool_call_id for call in calls if call.tool_call_id not in answered]
    if silent and not (traits.drops or result.tripwire):
        what = f"the call {silent[0]} has neither result nor error"
        raise Broken("books", what, got=got)


def _attempts(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """The chunks of every attempt at a step, the void ones too."""
    attempts: list[list[Chunk]] = []
    for chunk in chunks:
        if isinstance(chunk, StepStart) or not attempts:
            attempts.append([])
        attempts[-1].append(chunk)
    return attempts


def _accepted(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """The chunks of the steps that stand: neither rejected nor stopped."""
    steps: list[list[Chunk]] = []
    for attempt in _attempts(chunks):
        ends = [chunk for chunk in attempt if isinstance(chunk, StepFinish)]
        stopped = any(chunk.type in ("tripwire", "error", "abort") for chunk in attempt)
        if ends and ends[-1].reason != "retry" and not stopped:
            steps.append(attempt)
    return steps
