"""The rows of the table: what is measured, and what it may cost."""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import subprocess
import sys
import tracemalloc
from collections.abc import Awaitable, Callable

import httpx

from benchmarks.measure import Row, Sizes, compare
from benchmarks.pipelines import six_operators, stages
from benchmarks.protocols import protocols
from benchmarks.recording import recording
from benchmarks.redaction import redaction
from benchmarks.shelf import a_slow_guard, whole_shelf
from benchmarks.tracing import tracing
from benchmarks.work import (
    TurnTakingModel,
    by_hand,
    by_hand_async,
    consume,
    event_stream,
    guards,
    read_by_hand,
    scripted,
)
from streampipe import Agent
from streampipe.testing import ModelServer

__all__ = ["ROWS", "Measure"]

Measure = Callable[[Sizes], Awaitable[list[Row]]]
MICRO = 1e6
KIB = 1024
MOST_RATIO = 2.5
MOST_US = 2.2
MOST_ASYNC_US = 3.0
MOST_EVENT_US = 8.0
MOST_KIB = 40.0
MOST_MS = 250.0
TOLERANCE = 0.2
IMPORT = """
import json, sys, time
begin = time.process_time()
import streampipe
print(json.dumps([time.process_time() - begin, "httpx" in sys.modules]))
"""


async def whole_run(sizes: Sizes) -> list[Row]:
    """A whole run against a hand-written loop over the same model with the same guards."""
    model, chain = scripted(sizes.chunks), guards()
    agent = Agent(model=model, output_processors=chain)
    _, run = await compare(
        sizes.rounds,
        lambda: by_hand(model, chain),
        lambda: consume(agent.stream("hi")),
    )
    micros = run.median / sizes.chunks * MICRO
    return [
        Row(
            "whole run, 4 sync processors, per chunk",
            f"{micros:.2f} us",
            f"{run.ratio:.2f}x by hand",
            f"<= {MOST_RATIO}x and {MOST_US} us",
            run.ratio <= MOST_RATIO and micros <= MOST_US,
        ),
    ]


async def whole_async_run(sizes: Sizes) -> list[Row]:
    """The same with hooks that are coroutines."""
    model, chain = scripted(sizes.chunks), guards(asynchronous=True)
    agent = Agent(model=model, output_processors=chain)
    _, run = await compare(
        sizes.rounds,
        lambda: by_hand_async(model, chain),
        lambda: consume(agent.stream("hi")),
    )
    micros = run.median / sizes.chunks * MICRO
    return [
        Row(
            "whole run, 4 async processors, per chunk",
            f"{micros:.2f} us",
            f"{run.ratio:.2f}x by hand",
            f"<= {MOST_ASYNC_US} us",
            micros <= MOST_ASYNC_US,
        ),
    ]


async def over_http(sizes: Sizes) -> list[Row]:
    """Bytes of a provider on loopback against httpx, its lines and orjson by hand."""
    body = event_stream(sizes.chunks)
    async with ModelServer([body], repeat=True) as server, httpx.AsyncClient() as client:
        chain = guards()
        agent = Agent(model=server.model(), output_processors=chain)
        url = f"{server.base_url}/chat/completions"
        _, run = await compare(
            max(1, sizes.rounds // 2),
            lambda: read_by_hand(client, url, chain),
            lambda: consume(agent.stream("hi")),
        )
    micros = run.median / sizes.chunks * MICRO
    return [
        Row(
            "SSE on loopback, 4 processors, per event",
            f"{micros:.2f} us",
            f"{run.ratio:.2f}x by hand",
            f"<= {MOST_EVENT_US} us",
            micros <= MOST_EVENT_US,
        ),
    ]


async def at_once(sizes: Sizes) -> list[Row]:
    """Many runs at once: what one that waits keeps in memory, and how fast all are together."""
    kib = await idle_kib(sizes)
    agent = Agent(model=TurnTakingModel(sizes.run_chunks), output_processors=guards())

    async def one_by_one() -> None:
        for _ in range(sizes.runs):
            await consume(agent.stream("hi"))

    async def together() -> None:
        await asyncio.gather(*(consume(agent.stream("hi")) for _ in range(sizes.runs)))

    _, run = await compare(max(1, sizes.rounds // 8), one_by_one, together)
    share = 1 / run.ratio
    rate = sizes.runs * sizes.run_chunks / run.median
    runs = f"{sizes.runs:,} runs at once"
    return [
        Row(f"{runs}, idle, each", f"{kib:.1f} KiB", "", f"<= {MOST_KIB:.0f} KiB", kib <= MOST_KIB),
        Row(
            f"{runs}, their sum against one's",
            f"{rate:,.0f} chunks/s",
            f"{share:.2f}x one by one",
            f">= {1 - TOLERANCE:.1f}x",
            share >= 1 - TOLERANCE,
        ),
    ]


async def idle_kib(sizes: Sizes) -> float:
    """KiB that a run keeps while its model is silent, its reader included."""
    gate = asyncio.Event()
    model = TurnTakingModel(sizes.idle_chunks, gate)
    agent = Agent(model=model, output_processors=guards())
    gate.set()
    await consume(agent.stream("hi"))  # what is made once is no part of it
    await model.silent.acquire()
    gate.clear()
    gc.collect()
    tracemalloc.start()
    try:
        tasks = [asyncio.create_task(consume(agent.stream("hi"))) for _ in range(sizes.runs)]
        for _ in tasks:
            await model.silent.acquire()
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gate.set()
    await asyncio.gather(*tasks)
    return held / sizes.runs / KIB


async def length(sizes: Sizes) -> list[Row]:
    """Ten times the chunks cost ten times the time."""
    chunks = 4 * sizes.chunks  # enough that what a run costs once does not show
    short, long = scripted(chunks), scripted(10 * chunks)
    agent = Agent(output_processors=guards())
    _, run = await compare(
        max(1, sizes.rounds // 4),
        lambda: consume(agent.stream("hi", model=short)),
        lambda: consume(agent.stream("hi", model=long)),
    )
    growth = run.ratio / 10
    return [
        Row(
            f"{chunks:,} to {10 * chunks:,} chunks, cost of one",
            f"{run.median / chunks / 10 * MICRO:.2f} us",
            f"{growth:.2f}x the short",
            f"1.0x +-{TOLERANCE:.0%}",
            abs(growth - 1) <= TOLERANCE,
        ),
    ]


async def startup(sizes: Sizes) -> list[Row]:
    """`import streampipe` in a fresh interpreter."""
    command = (sys.executable, "-c", IMPORT)
    seconds: list[float] = []
    heavy = False
    for _ in range(sizes.imports):
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: ASYNC221, S603 - nothing else is to run meanwhile; our own code
        took, with_httpx = json.loads(done.stdout)
        seconds.append(took)
        heavy = heavy or with_httpx
    millis = statistics.median(seconds) * 1000
    return [
        Row(
            f"import streampipe, {'with' if heavy else 'without'} httpx",
            f"{millis:.0f} ms",
            "",
            f"<= {MOST_MS:.0f} ms, without httpx",
            millis <= MOST_MS and not heavy,
        ),
    ]


ROWS: tuple[Measure, ...] = (
    whole_run,
    whole_async_run,
    six_operators,
    stages,
    redaction,
    recording,
    whole_shelf,
    a_slow_guard,
    tracing,
    over_http,
    protocols,
    at_once,
    length,
    startup,
)
