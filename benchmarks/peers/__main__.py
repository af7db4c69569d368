"""Measure the peers that are installed, and write the page.

`make bench-peers` installs them all and takes a few minutes. `python -m benchmarks.peers` measures
those that it finds; the page says which are missing, and why.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.peers import with_mastra
from benchmarks.peers.figures import Scale, load_all, measured
from benchmarks.peers.offline import TELEMETRY_OFF, loopback_only
from benchmarks.peers.peer import CANDIDATES, Absent
from benchmarks.peers.report import Report, page

QUICK = Scale(rounds=3, chunks=60)
RESULTS = Path(__file__).resolve().parent.parent / "RESULTS.md"


def report(scale: Scale) -> Report:
    """Measure everybody; the peers that run in Python first."""
    os.environ.update(TELEMETRY_OFF)  # before they are imported: some read it only then
    with loopback_only() as outside:
        peers, absent = load_all(CANDIDATES)
        gc.collect()
        gc.freeze()  # the libraries themselves: they need not be looked through in each round
        try:
            rows = asyncio.run(measured(peers, scale))
        finally:
            gc.unfreeze()
    mastra = with_mastra.measured(scale)
    if isinstance(mastra, Absent):
        absent.append(mastra)
    else:
        rows += mastra[0]
        outside += mastra[1]
    return Report(rows, absent, outside, scale, datetime.now(UTC).date())


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write and print; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="measure little, and only print")
    options = parser.parse_args(arguments)
    text = page(report(QUICK if options.quick else Scale()))
    if not options.quick:
        RESULTS.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
