"""The rows of the operator library: what a stage of a fused kernel costs."""

from __future__ import annotations

from benchmarks.measure import Row, Side, Sizes, compare
from benchmarks.work import consume, scripted
from streampipe import Agent, Chunk, TextDelta
from streampipe import operators as ops
from streampipe.operators._bridge import flowable
from streampipe.operators._core import Emit, Operator

__all__ = ["six_operators", "stages"]

MICRO = 1e6
MOST_US = 2.2
MOST_STAGE_US = 0.12
STAGES = 10


def same(chunk: Chunk) -> Chunk:
    """Do as little as a function can."""
    return chunk


def six() -> list[Operator]:
    """Six operators as one would stack them."""
    seen: list[int] = [0]

    def count(_chunk: Chunk) -> None:
        seen[0] += 1

    return [
        ops.tap(count),
        ops.filter(lambda chunk: chunk.type != "reasoning-delta"),
        ops.map_text(str.lower),
        ops.map(same),
        ops.flat_map(lambda chunk: (chunk,)),
        ops.take_while(lambda chunk: chunk.type != "error"),
    ]


async def six_operators(sizes: Sizes) -> list[Row]:
    """A whole run with six operators, against the same run without any."""
    model = scripted(sizes.chunks)
    bare, stacked = Agent(model=model), Agent(model=model, output_processors=six())
    _, run = await compare(
        sizes.rounds,
        lambda: consume(bare.stream("hi")),
        lambda: consume(stacked.stream("hi")),
    )
    micros = run.median / sizes.chunks * MICRO
    return [
        Row(
            "whole run, 6 sync operators, per chunk",
            f"{micros:.2f} us",
            f"{run.ratio:.2f}x a bare run",
            f"<= {MOST_US} us",
            micros <= MOST_US,
        ),
    ]


async def stages(sizes: Sizes) -> list[Row]:
    """A further stage of a kernel, over the call of its function by hand."""
    chunks: list[Chunk] = [TextDelta("0", "word ")] * sizes.chunks

    async def source(emit: Emit[Chunk]) -> None:
        for chunk in chunks:
            emit(chunk)

    def kernel(count: int) -> Side:
        made = flowable(ops.create(source).pipe(*[ops.map(same)] * count))
        return lambda: made.into(discard)

    def discard(_chunk: Chunk) -> None:
        return None

    async def by_hand() -> None:
        for chunk in chunks:
            made = chunk
            for _ in range(STAGES):
                made = same(made)

    hand, one, many = await compare(sizes.rounds, by_hand, kernel(1), kernel(1 + STAGES))
    each = (many.median - one.median) / sizes.chunks / STAGES * MICRO
    function = hand.median / sizes.chunks / STAGES * MICRO
    return [
        Row(
            "a further sync stage, over its function",
            f"{each - function:.3f} us",
            f"{each / function:.2f}x the call",
            f"<= {MOST_STAGE_US} us",
            each - function <= MOST_STAGE_US,
        ),
    ]
