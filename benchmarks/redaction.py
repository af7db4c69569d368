"""The row of redaction: twelve preset rules over prose in pieces of four characters."""

from __future__ import annotations

from benchmarks.measure import Row, Sizes, compare
from benchmarks.work import consume
from streampipe import Agent
from streampipe import operators as ops
from streampipe.testing import ScriptedModel
from streampipe.text import Scanner, pii, presets

__all__ = ["redaction"]

MICRO = 1e6
MOST_US = 2.0
PIECE = 4  # characters
PROSE = (
    "The parcel of order 1047 left Porto on 2026-12-02 and costs 12.50 EUR. Well-known carriers, "
    "such as the one of Ms. Silva, need 3 to 5 days; what is late is told by mail (not by phone). "
)
KEYS = ("openai-key", "github-key", "aws-key", "bearer", "jwt")
RULES = (*pii, *(rule for rule in presets["secrets"] if rule.name in KEYS))


def pieces(count: int) -> list[str]:
    """So many pieces of prose, as a model sends them."""
    text = PROSE * (count * PIECE // len(PROSE) + 1)
    return [text[at * PIECE : (at + 1) * PIECE] for at in range(count)]


async def redaction(sizes: Sizes) -> list[Row]:
    """The scanner against a loop that leaves each piece as it is, and the operator in a run."""
    texts = pieces(sizes.chunks)
    model = ScriptedModel([texts], repeat=True, keep_requests=0)
    bare, guarded = Agent(model=model), Agent(model=model, output_processors=[ops.redact(RULES)])

    async def leave() -> None:
        for text in texts:
            str(text)

    async def scan() -> None:
        scanner = Scanner(RULES)
        for text in texts:
            scanner.feed(text)
        scanner.finish()

    left, scanned = await compare(sizes.rounds, leave, scan)
    run, redacted = await compare(
        sizes.rounds,
        lambda: consume(bare.stream("hi")),
        lambda: consume(guarded.stream("hi")),
    )
    alone = (scanned.median - left.median) / sizes.chunks * MICRO
    added = (redacted.median - run.median) / sizes.chunks * MICRO
    rules = f"{len(RULES)} rules, {PIECE} characters"
    return [
        Row(
            f"scanner, {rules}, per chunk",
            f"{alone:.2f} us",
            f"{scanned.ratio:.2f}x as it is",
            f"<= {MOST_US} us",
            alone <= MOST_US,
        ),
        Row(
            f"redact in a run, {rules}, per chunk",
            f"{added:.2f} us",
            f"{redacted.ratio:.2f}x a bare run",
            f"<= {MOST_US} us",
            added <= MOST_US,
        ),
    ]
