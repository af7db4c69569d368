"""Measure, and print the table.

`python -m benchmarks` takes about a minute and ends with 0: figures depend on the machine. With
`--check` it ends with 1 when a row is over its budget. `--quick` measures little, to see it work.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import astuple

from benchmarks.measure import Row, Sizes, few_to_collect
from benchmarks.rows import ROWS

HEAD = ("row", "measured", "ratio", "budget", "within?")
QUICK = Sizes(rounds=3, chunks=200, runs=20, run_chunks=16, idle_chunks=2, imports=1)
NOTE = """\
A ratio is to what it names, run side by side, in the medians of many rounds; it says the same on
any machine. Time is the processor's own."""


def table(rows: Sequence[Row]) -> str:
    """The rows as a table for people."""
    cells = [HEAD, *((*astuple(row)[:-1], "yes" if row.within else "NO") for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


async def measured(sizes: Sizes) -> list[Row]:
    """Every row, measured now."""
    with few_to_collect():
        return [row for measure in ROWS for row in await measure(sizes)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a budget is missed")
    parser.add_argument("--quick", action="store_true", help="measure little")
    options = parser.parse_args(arguments)
    rows = asyncio.run(measured(QUICK if options.quick else Sizes()))
    sys.stdout.write(f"{table(rows)}\n\n{NOTE}\n")
    return int(options.check and not all(row.within for row in rows))


if __name__ == "__main__":
    sys.exit(main())
