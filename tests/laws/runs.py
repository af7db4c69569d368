"""Generated runs: scripts, tools, processors and consumers, and what must hold of every one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from streampipe import (
    Agent,
    Chunk,
    FinishChunk,
    ReasoningEnd,
    ReasoningStart,
    RunResult,
    StepFinish,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolErrorChunk,
    ToolResult,
    TripwireChunk,
    tool,
)
from streampipe.contracts import HOOKS, ModelRequest
from streampipe.errors import StreampipeError
from streampipe.messages import ToolCallPart, ToolResultPart
from streampipe.testing import ScriptedModel, Turn, call, delay, fail, reasoning

# --- tools ---------------------------------------------------------------------------------


@tool
async def echo(n: int) -> int:
    """Give a number back."""
    await asyncio.sleep(0)
    return n


@tool
def double(n: int) -> int:
    """Double a number, in a thread."""
    return 2 * n


@tool
async def boom() -> None:
    """Raise."""
    msg = "the tool broke"
    raise RuntimeError(msg)


@tool
async def count(n: int) -> AsyncIterator[int]:
    """Stream the numbers up to n."""
    for number in range(n):
        yield number


TOOLS = [echo, double, boom, count]

# --- scripts -------------------------------------------------------------------------------

texts = st.sampled_from(["a", "b ", "secret", "é", "cd"])
calls = st.sampled_from(
    [
        call("echo", {"n": 1}, pieces=2),
        call("double", {"n": 2}),
        call("echo", {"n": "none"}),
        call("echo", "{no json"),
        call("boom"),
        call("count", {"n": 2}),
        call("missing", {"x": 1}),
    ],
)
failures = st.sampled_from([fail(status=400), fail(RuntimeError("the model broke"))])
pieces = st.one_of(texts, texts, texts, calls, st.just(reasoning("hm ")), st.just(delay(0)))


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    """A turn; one in some fails or stops without an end."""
    made: list[Any] = draw(st.lists(pieces, max_size=5))
    made += draw(st.lists(calls, max_size=2))  # else few runs would get to a second step
    fate = draw(st.sampled_from(["whole"] * 8 + ["fails", "stops"]))
    if fate == "fails":
        made.insert(draw(st.integers(0, len(made))), draw(failures))
    return Turn(tuple(made), incomplete=fate == "stops")


scripts = st.lists(turns(), min_size=2, max_size=4)
limits = st.fixed_dictionaries(
    {
        "max_processor_retries": st.sampled_from([2, 1, 3, 0]),
        "max_steps": st.integers(1, 3),
        "tool_concurrency": st.sampled_from([1, 3]),
    },
)

# --- processors ----------------------------------------------------------------------------

ACTS = ("retry", "write", "pass", "abort", "raise", "swallow")
DROPPED: dict[str, Any] = {"drop": ToolCall, "withhold": (ToolResult, ToolErrorChunk)}
STEP_HOOKS = tuple(h for h in HOOKS if h not in ("process_input", "process_api_error"))
REWRITES = ("pass", "upper", "drop", "twice", "hold", "withhold")


@dataclass(frozen=True)
class Plan:
    """What a processor does: at each call of each hook, and to the chunks that it sees."""

    name: str
    rewrite: str
    acts: dict[str, list[str]]
    colours: dict[str, bool]  # whether a hook is a coroutine

    def build(self, *, asynchronous: bool | None = None) -> Any:
        """The processor; `asynchronous` overrides the colour of every hook."""
        made = SimpleNamespace(id=self.name)
        for hook in self.acts:
            is_async = self.colours.get(hook, False) if asynchronous is None else asynchronous
            setattr(made, hook, self._hook(hook, is_async=is_async))
        return made

    def _hook(self, hook: str, *, is_async: bool) -> Any:
        def sync_hook(args: Any) -> Any:
            number = args.state.setdefault(hook, 0)
            args.state[hook] = number + 1
            acts = self.acts[hook]
            act = acts[number] if number < len(acts) else "pass"
            if act in ("abort", "retry"):
                args.abort(f"{self.name} says no", retry=act == "retry")
            if act == "swallow":
                try:
                    args.abort("swallowed")
                except BaseException:  # noqa: BLE001 - what is tried
                    args.state["swallowed"] = True
            if act == "raise":
                msg = "the hook broke"
                raise RuntimeError(msg)
            if act == "write":
                args.writer.custom({"type": "data-law", "data": number})
            return self._result(hook, args)

        async def async_hook(args: Any) -> Any:
            await asyncio.sleep(0)
            return sync_hook(args)

        return async_hook if is_async else sync_hook

    def _result(self, hook: str, args: Any) -> Any:
        if hook == "process_input":
            return args.messages
        if hook == "process_api_error":
            return {"retry": True}
        if hook != "process_output_stream":
            return None
        return _rewritten(self.rewrite, args)


def _rewritten(rewrite: str, args: Any) -> Any:
    part, state = args.part, args.state
    if rewrite == "hold":
        if isinstance(part, TextDelta):
            state.setdefault(part.id, []).append(part.text)
            return None
        if isinstance(part, TextEnd):
            return [TextDelta(part.id, "".join(state.pop(part.id, []))), part]
        if isinstance(part, StepFinish) and part.reason == "retry":
            state.clear()
        return part
    if not isinstance(part, TextDelta) or rewrite == "pass":
        return None if isinstance(part, DROPPED.get(rewrite, ())) else part
    if rewrite == "upper":
        return TextDelta(part.id, part.text.upper())
    if rewrite == "twice":
        return [part, TextDelta(part.id, part.text)]
    return None if part.text == "b " else part


@st.composite
def plans(draw: st.DrawFn, name: str, acts: tuple[str, ...], of: tuple[str, ...]) -> Plan:
    """A processor with some of the hooks."""
    hooks = draw(st.lists(st.sampled_from(of), min_size=1, max_size=4, unique=True))
    most = {hook: 12 if hook == "process_output_stream" else 4 for hook in hooks}
    return Plan(
        name,
        draw(st.sampled_from(REWRITES)),
        {
            hook: draw(st.lists(st.sampled_from(acts), min_size=1, max_size=most[hook]))
            for hook in hooks
        },
        {hook: draw(st.booleans()) for hook in hooks},
    )


@st.composite
def several_plans(
    draw: st.DrawFn,
    acts: tuple[str, ...] = ACTS,
    of: tuple[str, ...] = HOOKS,
) -> list[Plan]:
    """Up to three processors with ids of their own, and of one mind.

    A run in which anything may go wrong ends at its first chunks; one with few kinds of trouble
    gets as far as a second step, or to the end of its budget.
    """
    trouble = draw(st.lists(st.sampled_from(acts), min_size=1, max_size=2))
    chosen = ("pass", *trouble)
    return [
        draw(plans(f"p{index}", chosen, of)) for index in range(draw(st.sampled_from([2, 1, 3, 0])))
    ]


chains = several_plans() | several_plans(("retry",), STEP_HOOKS)


class WatchedModel(ScriptedModel):
    """A scripted model that knows how many of its streams are open."""

    open = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Play the next turn."""
        self.open += 1
        try:
            async with aclosing(super().stream(request)) as chunks:  # type: ignore[type-var]  # has it
                async for chunk in chunks:
                    yield chunk
        finally:
            self.open -= 1


def agent_of(
    model: Any,
    processors: list[Any],
    *,
    operators: Sequence[Any] = (),
    **options: Any,
) -> Agent:
    """An agent with each processor in every list that takes its hooks.

    Its tools run one by one, unless told otherwise: a thread's pace shall not order the chunks.
    """
    options = {"tool_concurrency": 1, **options}

    def those_with(*hooks: str) -> list[Any]:
        return [p for p in processors if any(hasattr(p, hook) for hook in hooks)]

    return Agent(
        model=model,
        tools=TOOLS,
        input_processors=those_with(*HOOKS[:4]),
        output_processors=[*operators, *those_with(*HOOKS[4:8])],
        error_processors=those_with("process_api_error"),
        **options,
    )


# --- running -------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What came of a run."""

    chunks: list[Chunk] = field(default_factory=list)
    result: RunResult | None = None
    error: BaseException | None = None


async def outcome_of(agent: Agent, prompt: str = "hi", *, pace: int = 0, **options: Any) -> Outcome:
    """Run by `stream`, reading everything, with `pace` turns of the loop after each chunk."""
    seen = Outcome()
    async with agent.stream(prompt, **options) as run:
        async for chunk in run:
            seen.chunks.append(chunk)
            for _ in range(pace):
                await asyncio.sleep(0)
        seen.result, seen.error = await settled(run)
    return seen


async def settled(run: Any) -> tuple[RunResult, BaseException | None]:
    """A run's result, whether it failed or not."""
    try:
        return await run.result(), None
    except StreampipeError as error:
        result: RunResult = error.result
        return result, error


def told(chunks: list[Chunk]) -> list[dict[str, Any]]:
    """Chunks as JSON values, without the ids that are new in every run."""
    wires = [chunk.to_wire() for chunk in chunks]
    for wire in wires:
        del wire["runId"]
        payload = wire.get("payload")
        if isinstance(payload, dict):
            payload.pop("messageId", None)
    return wires


# --- what must hold ------------------------------------------------------------------------


def accepted_steps(chunks: list[Chunk]) -> tuple[list[list[Chunk]], bool]:
    """The chunks of the steps that stand, and whether the end of the run may void the last.

    A step is void when `step-finish` says `retry`, or when the run is stopped within it. What
    stops a run between two steps voids the one before if that was judged (process_output_result).
    """
    steps: list[list[Chunk]] = []
    current: list[Chunk] | None = None
    unsure = False
    for chunk in chunks:
        if isinstance(chunk, StepStart):
            assert current is None, "a step began within a step"
            current = []
        elif isinstance(chunk, StepFinish):
            if chunk.reason != "retry":
                assert current is not None, "a step ended that had not begun"
                steps.append(current)
            elif current is None:
                steps.pop()
            current = None
        elif chunk.type in ("tripwire", "error", "abort"):
            unsure = current is None
            current = None
        elif current is not None:
            current.append(chunk)
    return steps, unsure


def check_stream(chunks: list[Chunk]) -> None:
    """Law 2, and the balance of what is opened and closed."""
    finishes = [chunk for chunk in chunks if isinstance(chunk, FinishChunk)]
    assert len(finishes) == 1
    assert chunks[-1] is finishes[0]
    assert sum(c.type in ("tripwire", "error", "abort") for c in chunks) <= 1
    opened: list[tuple[str, str]] = []
    for chunk in chunks:
        if isinstance(chunk, TextStart | ReasoningStart):
            opened.append((chunk.type.split("-")[0], chunk.id))
        elif isinstance(chunk, TextEnd | ReasoningEnd):
            opened.remove((chunk.type.split("-")[0], chunk.id))
        elif isinstance(chunk, StepStart | FinishChunk):
            assert not opened
    assert {c.run_id for c in chunks} == {chunks[0].run_id}


def check_books(seen: Outcome, chain: Sequence[Plan] = ()) -> None:
    """Law 10: the client's chunks and the result tell the same, whatever `chain` did to them."""
    result = seen.result
    assert result is not None
    steps, unsure = accepted_steps(seen.chunks)
    if unsure and len(result.steps) < len(steps):
        steps.pop()
    assert len(result.steps) == len(steps)
    flat = [chunk for step in steps for chunk in step]
    assert result.text == "".join(c.text for c in flat if isinstance(c, TextDelta))
    assert result.tool_calls == [c for c in flat if isinstance(c, ToolCall)]
    assert result.tool_results == [c for c in flat if isinstance(c, ToolResult)]
    assert result.finish_reason == seen.chunks[-1].reason  # type: ignore[attr-defined]  # a finish
    wires = [c for c in seen.chunks if isinstance(c, TripwireChunk)]
    assert (result.tripwire is None) == (not wires)
    assert (result.error is None) == all(c.type != "error" for c in seen.chunks)
    assert result.error is seen.error
    assert result.retries == sum(
        isinstance(c, StepFinish) and c.reason == "retry" for c in seen.chunks
    )
    stored = "".join(message.text for message in result.messages)
    assert stored == result.text
    for step in steps:
        asked = {c.tool_call_id for c in step if isinstance(c, ToolCall)}
        answered = {c.tool_call_id for c in step if isinstance(c, ToolResult | ToolErrorChunk)}
        withheld = any(plan.rewrite == "withhold" for plan in chain)
        assert answered <= asked if withheld else answered == asked


def check_prompts(model: ScriptedModel) -> None:
    """Every tool call in a prompt has its result there."""
    for request in model.requests:
        parts = [part for message in request.prompt for part in message.content]
        asked = [p.tool_call_id for p in parts if isinstance(p, ToolCallPart)]
        answered = [p.tool_call_id for p in parts if isinstance(p, ToolResultPart)]
        assert sorted(asked) == sorted(answered)


async def check_clean(model: WatchedModel, turns: int = 0) -> None:
    """Law 8: no stream open, after `turns` of the loop at most; no task left soon after."""
    for _ in range(turns):
        await asyncio.sleep(0)
    assert model.open == 0
    for _ in range(5):  # an iterator that was dropped is closed by a task of the loop's
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
