"""The rows of the shelf: all that is local at once, and a guard that asks somebody slow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from reactivex import Observable

from benchmarks.measure import Row, Sizes, compare
from benchmarks.work import consume
from streampipe import Agent, Chunk, FinishChunk, TextDelta, TextEnd, TextStart, Usage
from streampipe import operators as ops
from streampipe.contracts import ModelRequest
from streampipe.processors import (
    CostGuard,
    Guard,
    PIIDetector,
    PrefillErrorHandler,
    PromptInjectionDetector,
    ProviderHistoryCompat,
    RegexFilter,
    SystemPromptScrubber,
    TokenLimiter,
    ToolCallFilter,
    ToolCallGuard,
    ToolResultLimiter,
    UnicodeNormalizer,
)
from streampipe.processors._check_guard import Strategy
from streampipe.testing import ScriptedModel, delay, run_virtual
from streampipe.text import Splitter

__all__ = ["a_slow_guard", "added_at_the_end", "first_chunks", "local_agent", "whole_shelf"]

MICRO = 1e6
MOST_US = 15.0
MOST_LATER = 2
MOST_MS = 400.0
CHECK_S = 0.3  # what an answer of the one who is asked takes
PACE_S = 0.02  # 50 chunks a second
CHUNKS = 400
MODELS = ("scripted/script", "scripted/counting")

PROSE = (
    "The order left our house on Monday and should be with you by the end of the week. If it is "
    "not there by Saturday, tell us, and we will ask the carrier where it is. You need not pay "
    "for the parcel that comes back to us, and the money will be on your account within a few "
    "days after we have looked at it. "
)
INSTRUCTIONS = (
    "You are the assistant of a shop. Answer in plain words, never promise a date that the carrier "
    "has not confirmed, and do not speak of other customers or of how the shop is run."
)


def prose(chunks: int, size: int = 4) -> list[str]:
    """Plain prose in so many pieces of a token's size."""
    text = PROSE * (1 + chunks * size // len(PROSE))
    return [text[at * size : (at + 1) * size] for at in range(chunks)]


def local_agent(pieces: Sequence[str], *, guarded: bool) -> Agent:
    """An agent with twelve local processors, several of them in two lists; or with none."""
    model = ScriptedModel([list(pieces)], repeat=True)
    if not guarded:
        return Agent(model=model, instructions=INSTRUCTIONS)
    normalizer = UnicodeNormalizer()
    secrets = RegexFilter(presets=["secrets"], strategy="redact")
    personal = PIIDetector()
    limiter = TokenLimiter(1_000_000)
    compat, prefill = ProviderHistoryCompat(), PrefillErrorHandler()
    return Agent(
        model=model,
        instructions=INSTRUCTIONS,
        input_processors=[
            normalizer,
            PromptInjectionDetector(),
            secrets,
            personal,
            ToolCallFilter(),
            limiter,
            CostGuard(1_000.0, prices={key: {"input": 1.0, "output": 2.0} for key in MODELS}),
        ],
        output_processors=[
            normalizer,
            secrets,
            personal,
            SystemPromptScrubber(),
            ToolCallGuard(deny=["delete_account"]),
            ToolResultLimiter(max_chars=10_000),
            limiter,
        ],
        error_processors=[compat, prefill],
    )


async def whole_shelf(sizes: Sizes) -> list[Row]:
    """Everything local at once, over plain prose."""
    pieces = prose(sizes.chunks)
    bare, guarded = (local_agent(pieces, guarded=each) for each in (False, True))
    plain, run = await compare(
        max(3, sizes.rounds // 4),
        lambda: consume(bare.stream("Where is it?")),
        lambda: consume(guarded.stream("Where is it?")),
    )
    chunk = run.median / sizes.chunks * MICRO
    without, behind = await first_chunks()
    return [
        Row(
            "12 local processors at once, per chunk",
            f"{chunk:.2f} us",
            f"{run.median / plain.median:.2f}x none",
            f"<= {MOST_US:.0f} us",
            chunk <= MOST_US,
        ),
        Row(
            "the same, first text of plain prose",
            f"{behind - without} chunks later",
            "",
            f"<= {MOST_LATER} chunks",
            behind - without <= MOST_LATER,
        ),
    ]


class _Counting:
    """A model that counts the pieces of text it has given."""

    provider = "scripted"
    model_id = "counting"

    def __init__(self, pieces: Sequence[str]) -> None:
        self.given = 0
        self._pieces = pieces

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:  # noqa: ARG002 - a model's
        yield TextStart("0")
        for piece in self._pieces:
            self.given += 1
            yield TextDelta("0", piece)
        yield TextEnd("0")
        yield FinishChunk("stop", Usage(1, self.given))


async def first_chunks() -> tuple[int, int]:
    """How many pieces the model has given when the first text leaves: bare, and with all on."""
    counts: list[int] = []
    for guarded in (False, True):
        agent = local_agent([], guarded=guarded)
        model = _Counting(prose(50))
        seen: list[int] = []

        def note(chunk: Chunk, model: _Counting = model, seen: list[int] = seen) -> None:
            if isinstance(chunk, TextDelta):
                seen.append(model.given)

        noted: Observable[Chunk] = agent.observe("Where is it?", model=model).pipe(ops.tap(note))
        await consume(ops.to_aiter(noted))
        counts.append(seen[0])
    return counts[0], counts[1]


async def a_slow_guard(sizes: Sizes) -> list[Row]:  # noqa: ARG001 - its clock jumps: it costs little
    """A guard whose answers take 300 ms, over 400 chunks at 50 a second."""
    added, asked, windows = await asyncio.to_thread(run_virtual, added_at_the_end())
    return [
        Row(
            "a guard that takes 300 ms, added at the end",
            f"{added * 1000:.0f} ms",
            f"{asked / windows:.2f}x the windows",
            f"<= {MOST_MS:.0f} ms, one question a window",
            added * 1000 <= MOST_MS and asked <= windows,
        ),
    ]


async def added_at_the_end(strategy: Strategy = "block") -> tuple[float, int, int]:
    """Seconds that a slow guard adds to a run, its questions, and the sentences there were."""
    pieces = prose(CHUNKS)
    script = [part for piece in pieces for part in (delay(PACE_S), piece)]
    asked: list[str] = []

    async def fine(text: str) -> bool:
        asked.append(text)
        await asyncio.sleep(CHECK_S)
        return True

    took: list[float] = []
    for guards in ([], [Guard(fine, strategy)]):
        agent = Agent(model=ScriptedModel([script]), output_processors=guards)
        begin = asyncio.get_running_loop().time()
        await consume(agent.stream("Where is it?"))
        took.append(asyncio.get_running_loop().time() - begin)
    cutter = Splitter("sentence")
    sentences = [*cutter.feed("".join(pieces)), *cutter.finish()]
    return took[1] - took[0], len(asked), len(sentences)
