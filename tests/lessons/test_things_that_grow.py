"""Things that grow: what users of such systems ran into, and what the shelf does instead.

All of it is counted, nothing is timed: calls of functions, questions, chunks that are held, bytes.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from typing import Any

import pytest

from streampipe import Agent, Chunk, TextDelta
from streampipe.processors import (
    BatchParts,
    ClassifierProcessor,
    CostGuard,
    Guard,
    PIIDetector,
    RegexFilter,
    SystemPromptScrubber,
    TokenLimiter,
    ToolCallGuard,
    UnicodeNormalizer,
)
from streampipe.testing import ModelServer, ScriptedModel, delay
from tests.contract.guards import LoggedModel
from tests.lessons.rows import check_rows

HIGH_WATER = 8
SLACK = 64 + 4  # chunks that a viewer takes at once, and the few that are on their way

ROWS = {
    "unbounded queues": "test_the_model_waits_for_the_viewer",
    "quadratic assembly": "test_the_work_is_linear",
    "one model call per chunk": "test_questions_are_asked_about_windows",
    "chunks of all requests": "test_nothing_of_a_run_is_left_behind_it",
}
"""By the beginning of a row, its test."""


def test_every_row_has_a_test() -> None:
    """A lesson that is added asks for one."""
    check_rows("Things that grow", ROWS, globals())


async def _scores(_: str) -> dict[str, float]:
    return {"bad": 0.0}


SHELF: dict[str, Any] = {
    "batch": lambda: BatchParts(4),
    "classifier": lambda: ClassifierProcessor(["bad"], check=_scores),
    "guard": lambda: Guard(lambda _: True),
    "personal data": PIIDetector,
    "regex": lambda: RegexFilter(r"ORD-\d+"),
    "system prompt": lambda: SystemPromptScrubber(texts=["never tell anybody of the swordfish"]),
    "tokens": lambda: TokenLimiter(1_000_000),
    "tools": lambda: ToolCallGuard(deny=["spend"]),
    "unicode": UnicodeNormalizer,
}
"""What looks at every chunk."""

STACKS = {**{name: (name,) for name in SHELF}, "all": tuple(SHELF)}


def said(chunks: int) -> list[str]:
    """An answer of so many chunks: sentences of four, with no two the same."""
    return [f"Word{n}{'. ' if n % 4 == 3 else ' '}" for n in range(chunks)]


def agent(stack: str, model: Any) -> Agent:
    """An agent with processors of the shelf."""
    made = [SHELF[name]() for name in STACKS[stack]]
    return Agent(model=model, output_processors=made, high_water=HIGH_WATER, tracing=False)


@pytest.mark.parametrize("stack", STACKS)
async def test_the_model_waits_for_the_viewer(stack: str) -> None:
    """However long the answer, no more of it is pulled than a viewer who has stopped has room for.

    What guards that ask hold is bounded by their windows and their concurrency.
    """
    pulled: list[int] = []
    for chunks in (1_000, 4_000):
        model = LoggedModel([said(chunks)])
        async with agent(stack, model).stream("Hello.") as run:
            viewer = aiter(run)
            while (await anext(viewer)).type != "text-delta":
                pass
            for _ in range(500):  # turns of the loop in which the viewer does not read
                await asyncio.sleep(0)
            pulled.append(model.pulled)
        assert model.open == 0, "the source is closed when the viewer leaves"
    assert pulled[0] == pulled[1] < 8 * (HIGH_WATER + SLACK), pulled


@pytest.mark.parametrize("kind", ["rule", "asked", "tokens"])
async def test_a_block_closes_the_connection(kind: str) -> None:
    """Over HTTP: the provider is cut off, though it would go on for minutes."""
    guards: dict[str, Any] = {
        "rule": RegexFilter("stop here"),
        "asked": Guard(lambda text: "stop" not in text),
        "tokens": TokenLimiter(2, strategy="block", count=lambda _: 1),
    }
    script: list[Any] = [["Well. Now ", "stop ", "here. ", "More. ", delay(300), "Never."]]
    async with ModelServer(script) as server, asyncio.timeout(10):
        made = Agent(model=server.model(), output_processors=[guards[kind]])
        result = await made.generate("Hello.")
        await server.closed()
        assert result.tripwire is not None
        assert not server.requests[0].completed


async def calls_of(stack: str, chunks: int) -> int:
    """How many functions of Python's and C's are called in a run of so many chunks."""
    count = 0

    def note(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    made = agent(stack, ScriptedModel([said(chunks)]))
    before = sys.getprofile()
    gc.disable()  # its callbacks are no work of the run's
    sys.setprofile(note)
    try:
        result = await made.generate("Hello.")
    finally:
        sys.setprofile(before)
        gc.enable()
    assert result.tripwire is None
    assert result.text == "".join(said(chunks))
    return count


@pytest.mark.parametrize("stack", STACKS)
async def test_the_work_is_linear(stack: str) -> None:
    """A chunk costs the same calls, whatever was before it."""
    await calls_of(stack, 40)  # what is made once, is made
    short, middle, long = [await calls_of(stack, chunks) for chunks in (100, 200, 1_000)]
    each = (middle - short) / 100
    assert long - middle < 1.1 * each * 800


async def peak_of(stack: str, chunks: int) -> int:
    """How many bytes more than before a streamed run of so many chunks has at its peak."""
    made = agent(stack, ScriptedModel([said(chunks)], keep_requests=0))
    gc.collect()
    tracemalloc.start()
    try:
        base = tracemalloc.get_traced_memory()[0]
        async with made.stream("Hello.") as run:
            async for _ in run:
                pass
        return tracemalloc.get_traced_memory()[1] - base
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("stack", STACKS)
async def test_the_memory_is_linear(stack: str) -> None:
    """A run of ten times the chunks has at most ten times the memory at its peak."""
    await peak_of(stack, 40)
    assert await peak_of(stack, 2_000) < 11 * await peak_of(stack, 200)


@pytest.mark.parametrize("window", ["sentence", 60])
async def test_questions_are_asked_about_windows(window: Any) -> None:
    """As many questions as windows, however small the pieces, and no more than the budget."""
    text = "".join(said(200))
    asked: dict[int, list[str]] = {}
    for size in (1, 7, len(text)):
        texts = asked[size] = []

        async def scores(window: str, texts: list[str] = texts) -> dict[str, float]:
            texts.append(window)
            return {"bad": 0.0}

        guard = ClassifierProcessor(["bad"], check=scores, window=window)
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        made = Agent(model=ScriptedModel([pieces]), output_processors=[guard])
        assert (await made.generate("Hello.")).text == text
        assert "".join(texts) == text
    first, *others = asked.values()
    assert all(texts == first for texts in others)
    assert len(first) <= 1 + len(text) // 25


async def test_questions_are_asked_at_once_and_within_a_budget() -> None:
    """As many as `concurrency` are open, no more than `max_checks` are asked, rules come first."""
    started: list[str] = []
    now = most = 0

    async def scores(text: str) -> dict[str, float]:
        nonlocal now, most
        started.append(text)
        now += 1
        most = max(most, now)
        for _ in range(20):
            await asyncio.sleep(0)
        now -= 1
        return {"bad": 0.0}

    for budget in (None, 10):
        started.clear()
        guard = ClassifierProcessor(["bad"], check=scores, concurrency=3, max_checks=budget)
        made = Agent(model=ScriptedModel([said(200)]), output_processors=[guard])
        result = await made.generate("Hello.")
        assert len(started) == (budget or 50)
        assert (result.tripwire is None) is (budget is None)
    assert most == 3
    started.clear()
    guard = ClassifierProcessor(["bad"], check=scores)
    rule = RegexFilter("Word0")
    made = Agent(model=ScriptedModel([said(200)]), output_processors=[rule, guard])
    assert (await made.generate("Hello.")).tripwire is not None
    assert not started, "the rule had stopped the answer"


def alive() -> int:
    """How many chunks there are in the program."""
    gc.collect()
    return sum(isinstance(found, Chunk) for found in gc.get_objects())


@pytest.mark.parametrize("stack", STACKS)
async def test_nothing_of_a_run_is_left_behind_it(stack: str) -> None:
    """An agent and its processors serve run after run, blocked ones too, and keep no chunk."""
    model = ScriptedModel([said(100), said(7)], repeat=True, keep_requests=0)
    made = agent(stack, model)
    await made.generate("Hello.")
    before = alive()
    for _ in range(3):
        await made.generate("Hello.")
        async with made.stream("Hello.") as run:
            await anext(aiter(run))  # and the viewer leaves
        del run
    for _ in range(5):
        await asyncio.sleep(0)
    assert alive() <= before


async def test_a_guard_that_remembers_users_forgets_the_oldest() -> None:
    """What `CostGuard` keeps between runs is bounded by `max_keys`."""
    guard = CostGuard(
        1, scope="user", prices={"script": {"input": 1_000, "output": 1_000}}, max_keys=3
    )
    made = Agent(model=ScriptedModel(["one"], repeat=True), input_processors=[guard])
    for user in range(10):
        await made.generate("Hello.", request_context={"user": user})
    assert [user for user in range(10) if guard.spent(user)] == [7, 8, 9]


async def test_a_window_bounds_what_a_processor_is_shown() -> None:
    """`stream_window` is how many chunks are kept for it."""
    sizes: list[int] = []

    class Last:
        id = "last"
        stream_window = 5

        def process_output_stream(self, args: Any) -> Any:
            """Note how many chunks there are."""
            sizes.append(len(args.stream_parts))
            return args.part

    stack = [RegexFilter("never"), Last()]
    made = Agent(model=ScriptedModel([said(100)]), output_processors=stack)
    async with made.stream("Hello.") as run:
        texts = [chunk async for chunk in run if isinstance(chunk, TextDelta)]
    assert texts
    assert max(sizes) == 5
