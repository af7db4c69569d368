"""What was measured, as a page."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from benchmarks.peers.figures import Figure, Scale
from benchmarks.peers.offline import TELEMETRY_OFF
from benchmarks.peers.peer import Absent

__all__ = ["Report", "page", "table"]

STEEP = 1.25
INTRODUCTION = """\
# Peers

The same text, in pieces, through the same four small steps (count words, limit the length, keep
the last piece, replace tabs), read to its end. Each peer has the model or source that is native to
it, and which answers without delay: what is left is what the peer itself costs. Each streams in the
leanest of its documented ways that we found. Where a framework has a place of its own for steps,
that is one row, and the steps as plain generators around its stream are another."""
READING = """\
Microseconds are the processor's, in the main thread, for one chunk; the steps, and a run's
beginning and end, are in them. They are the medians of {rounds} rounds, in which all rows of a
table take turns. *By hand* is the ratio to the first row of the table, over {short:,} chunks:
the median of the rounds' own ratios. *Growth* is what a chunk of {long:,} costs over a chunk of
{short:,}: for a peer that is linear, 1 or a little less. Python's garbage collector runs between
rounds, not in them; that of Node.js runs when it likes. Before anything is timed, the text that
came out and what the steps kept are compared with what both should be.

A framework does more than the loop: it keeps a history, counts tokens, looks for tool calls. The
ratio says what that comes to for a chunk, not whether it is worth it."""


@dataclass(slots=True, frozen=True)
class Report:
    """All that the page is made of.

    Attributes:
        rows: the figures, in the order in which they are printed.
        absent: the peers that were not measured.
        outside: whom the peers asked for outside this machine; it was refused.
        scale: how much was measured.
        day: when.
    """

    rows: Sequence[Figure]
    absent: Sequence[Absent]
    outside: Sequence[str]
    scale: Scale
    day: date


def table(rows: Sequence[Figure], scale: Scale) -> str:
    """The rows of one group as a Markdown table."""
    short, long = scale.lengths
    head = ("peer", "how", f"us/chunk of {short:,}", f"of {long:,}", "by hand", "growth")
    cells = [
        (
            row.name,
            row.path,
            f"{row.short:.2f}",
            f"{row.long:.2f}",
            f"{row.ratio:.1f}x",
            f"{row.growth:.2f}x",
        )
        for row in rows
    ]
    rule = ("---", "---", "---:", "---:", "---:", "---:")
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *cells))


def notes(report: Report) -> list[str]:
    """What the tables do not say themselves."""
    steep = [f"{row.name} ({row.path})" for row in report.rows if row.growth > STEEP]
    missing = [f"{peer.name} ({peer.reason})" for peer in report.absent]
    asked = ", ".join(sorted(set(report.outside)))
    switches = ", ".join(f"`{name}={value}`" for name, value in sorted(TELEMETRY_OFF.items()))
    return [
        f"A chunk costs more the longer the stream, in: {'; '.join(steep) or 'none of them'}.",
        f"Not measured: {'; '.join(missing) or 'none'}.",
        f"Telemetry is off: {switches}.",
        f"What leaves the machine is refused; asked for while measuring: {asked or 'nothing'}.",
        "A fake model's own work is in its peer's row: it builds its events, and may count tokens.",
        "On the wire, the server runs in the same thread: its part is in every row of that table.",
    ]


def page(report: Report) -> str:
    """The whole page."""
    scale = report.scale
    short, long = scale.lengths
    machine = f"{os.cpu_count()} cores, {platform.system()}"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    command = "`make bench-peers` (`python -m benchmarks.peers`)"
    groups: dict[str, list[Figure]] = {}
    for row in report.rows:
        groups.setdefault(row.group, []).append(row)
    parts = [
        INTRODUCTION,
        f"Written by {command} on {report.day.isoformat()}: {machine}, {python}.",
        *(f"## {name}\n\n{table(rows, scale)}" for name, rows in groups.items()),
        "## How to read it",
        READING.format(rounds=scale.rounds, short=short, long=long),
        "\n".join(f"- {note}" for note in notes(report)),
    ]
    return "\n\n".join(parts) + "\n"
