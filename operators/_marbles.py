"""Marble diagrams of a recorded run: as text, and as a picture.

A column is what one element of the source set going, a lane is what left a stage in it. Where an
element came to a stage and nothing left, a sign says what became of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import category, combining, east_asian_width

from streampipe.operators._inside import Fate, Record
from streampipe.operators._probe import Log

WIDEST = 16  # characters of a label
WIDEST_NAME = 28  # of the name of a lane
MOST_COLUMNS = 200  # of a picture or a text; the rest is counted
SIGNS: dict[Fate, str] = {"held": "…", "dropped": "×", "blocked": "■", "voided": "○"}
LEGEND: dict[Fate, str] = {
    "rewritten": "~ rewritten",
    "held": "… held",
    "dropped": "× dropped",
    "blocked": "■ blocked",
}
JOINER = "\u200d"
UNSEEN = ("Mn", "Me", "Cf")  # categories of what takes no cell: marks, and what steers others
SHOWN = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "⏎"})


@dataclass(slots=True)
class Mark:
    """Something in a cell: an element that left, or the sign of one that did not.

    Attributes:
        label: the text that is shown.
        fate: what the stage did with it.
        title: what else is known of it.
    """

    label: str
    fate: Fate
    title: str

    def __str__(self) -> str:
        """As text: the sign of its fate about the label."""
        if self.fate == "rewritten":
            return f"~{self.label}"
        if self.fate == "voided" and self.label != SIGNS["voided"]:
            return f"({self.label})"
        return self.label


@dataclass(slots=True)
class Grid:
    """A recorded run as rows and columns.

    Attributes:
        lanes: the names of the stages.
        columns: for each column, the marks of each lane.
        left_off: how many columns more there were.
    """

    lanes: list[str]
    columns: list[list[list[Mark]]]
    left_off: int


def grid_of(log: Log) -> Grid:
    """Arrange the records of a run."""
    lanes = [_short(name, WIDEST_NAME) for name in (*log.stages, "client")]
    texts = _Texts(log.records)
    ticks: dict[int, list[Record]] = {}
    for record in log.records:
        ticks.setdefault(record.tick, []).append(record)
    whole = {
        (record.place, record.origins)
        for record in log.records
        if record.verdict in ("passed", "held")
    }
    columns = [
        _column(ticks[tick], len(lanes), texts, whole) for tick in sorted(ticks)[:MOST_COLUMNS]
    ]
    return Grid(lanes, columns, max(0, len(ticks) - MOST_COLUMNS))


def _column(
    records: Iterable[Record],
    lanes: int,
    texts: _Texts,
    whole: set[tuple[int, tuple[int, ...]]],
) -> list[list[Mark]]:
    left: list[list[Mark]] = [[] for _ in range(lanes)]
    stayed: list[list[Mark]] = [[] for _ in range(lanes)]
    client = lanes - 1
    for record in records:
        place, label = record.came_from, _label(record, texts)
        if record.place == client:
            left[client].append(Mark(label, record.verdict, _title(record)))
        if record.place == 0:
            left[0].append(Mark(label, "passed", _title(record)))
        elif place:
            fate: Fate = "passed" if (place, record.origins) in whole else "rewritten"
            left[place].append(Mark(label, fate, _title(record)))
        if 0 < record.place < client and record.verdict not in ("passed", "rewritten"):
            sign = Mark(SIGNS[record.verdict], record.verdict, _title(record))
            stayed[record.place].append(sign)
        elif 0 < record.place < client and record.verdict == "rewritten":
            stayed[record.place].append(Mark(SIGNS["held"], "held", _title(record)))
    return [
        [*out, *(mark for mark in stay if not out or mark.fate == "dropped")]
        for out, stay in zip(left, stayed, strict=True)
    ]


class _Texts:
    """The texts that reached the client: known at every stage behind which nothing changed them."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._reached: dict[tuple[int, ...], str | None] = {}
        self._changed: dict[tuple[int, ...], int] = {}
        for record in records:
            origins = record.origins
            if record.stage == "client" and record.text is not None:
                again = origins in self._reached
                self._reached[origins] = None if again else record.text
            elif record.verdict == "rewritten":
                self._changed[origins] = max(record.place, self._changed.get(origins, 0))

    def of(self, record: Record) -> str | None:
        """The text of a record, if it may be told."""
        if record.text is not None:
            return record.text
        if self._changed.get(record.origins, -1) >= record.place:
            return None
        text = self._reached.get(record.origins)
        return text if text is not None and len(text) == record.size else None


def _label(record: Record, texts: _Texts) -> str:
    if not record.size:
        return record.kind
    text = texts.of(record)
    if text is None:
        return f"‹{record.size}›"
    text = text.translate(SHOWN)
    return _short("".join(char if char.isprintable() else "·" for char in text), WIDEST)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _title(record: Record) -> str:
    who = ", ".join(map(str, record.origins))
    said = [f"{record.kind} {who}", f"{record.stage}: {record.verdict}"]
    if record.reason:
        said.append(record.reason)
    if record.time_out is not None and record.time_out > record.time_in:
        said.append(f"{(record.time_out - record.time_in) * 1000:.3f} ms")
    return " · ".join(said)


def marbles_of(log: Log, width: int) -> str:
    """A run as lines of text, wrapped like music where it is longer than a line."""
    grid = grid_of(log)
    cells = [[" ".join(map(str, marks)) for marks in column] for column in grid.columns]
    margin = max(map(_cells, grid.lanes)) + 2
    systems: list[list[list[str]]] = [[]]
    room = width - margin
    for column in cells:
        needed = max(map(_cells, column)) + 2
        if systems[-1] and needed > room:
            systems.append([])
            room = width - margin
        systems[-1].append(column)
        room -= needed
    blocks = [_system(grid.lanes, system, margin) for system in systems]
    notes = _notes(grid)
    return "\n\n".join([*blocks, *([notes] if notes else [])])


def _system(lanes: Sequence[str], columns: Sequence[Sequence[str]], margin: int) -> str:
    widths = [max(map(_cells, column)) + 2 for column in columns]
    return "\n".join(
        (
            _padded(name, margin)
            + "".join(
                _padded(column[row], width) for column, width in zip(columns, widths, strict=True)
            )
        ).rstrip()
        for row, name in enumerate(lanes)
    )


def _padded(text: str, cells: int) -> str:
    return text + " " * (cells - _cells(text))


def _cells(text: str) -> int:
    """How many cells of a terminal a text takes: two for a wide character, none for a mark on one.

    A joined emoji is drawn as one where the terminal knows it: what is joined to another counts
    nothing.
    """
    cells = 0
    before = ""
    for char in text:
        if before != JOINER and not combining(char) and category(char) not in UNSEEN:
            cells += 2 if east_asian_width(char) in ("W", "F") else 1
        before = char
    return cells


def _notes(grid: Grid, voided: str = "(…) ○ voided") -> str:
    fates = {mark.fate for column in grid.columns for marks in column for mark in marks}
    said = [text for fate, text in LEGEND.items() if fate in fates]
    if "voided" in fates:
        said.append(voided)
    if any("‹" in mark.label for column in grid.columns for marks in column for mark in marks):
        said.append("‹n› n characters, not recorded")
    if grid.left_off:
        said.append(f"{grid.left_off} more columns")
    return "   ".join(said)


# --- as a picture ------------------------------------------------------------------------------

CHAR, ROW, GAP, TOP = 7.3, 40, 12, 14  # pixels: of a character, a lane, between columns, above
DASHED = "dashed: voided"
STYLE: dict[Fate, str] = {
    "passed": 'fill="#ffffff" stroke="#44546a"',
    "rewritten": 'fill="#dcebfb" stroke="#1f5fa8"',
    "held": 'fill="#ffffff" stroke="none"',  # else the lane runs through the sign
    "dropped": 'fill="#ffffff" stroke="none"',
    "blocked": 'fill="#f9d9d6" stroke="#a3211b"',
    "voided": 'fill="#f2f2f2" stroke="#888888" stroke-dasharray="3 2"',
}


def svg_of(log: Log) -> str:
    """A run as an SVG picture: what was rewritten is blue, voided dashed, blocked red.

    It is named after its lanes, not after the run, whose id is another one each time.
    """
    grid = grid_of(log)
    margin = max(map(len, grid.lanes)) * CHAR + 2 * GAP
    body: list[str] = []
    x = margin + GAP
    for column in grid.columns:
        widths = [sum(_wide(mark) + 4 for mark in marks) - 4 for marks in column]
        for row, marks in enumerate(column):
            at = x
            for mark in marks:
                body.append(_drawn(mark, at, TOP + row * ROW + ROW / 2))
                at += _wide(mark) + 4
        x += max([*widths, 0]) + GAP
    right, bottom = x + GAP, TOP + ROW * len(grid.lanes)
    lines = [
        _lane(name, TOP + row * ROW + ROW / 2, margin, right) for row, name in enumerate(grid.lanes)
    ]
    # Without the attribute a picture makes one space of several, and one note of all.
    note = (
        f'<text x="{GAP}" y="{bottom + 14}" class="note" xml:space="preserve">'
        f"{escape(_notes(grid, DASHED))}</text>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{right + GAP:.0f}" '
        f'height="{bottom + 24}" font-family="ui-monospace, monospace" font-size="12">'
        f"<title>{escape(' > '.join(grid.lanes))}: a marble diagram</title>"
        '<rect width="100%" height="100%" fill="#ffffff"/>'
        f"{''.join(lines)}{''.join(body)}{note}</svg>"
    )


def html_of(log: Log) -> str:
    """The picture, as wide as it needs to be."""
    return f'<div style="overflow-x:auto">{svg_of(log)}</div>'


def _wide(mark: Mark) -> float:
    return max(len(_drawn_label(mark)) * CHAR + 10, 20)


def _drawn_label(mark: Mark) -> str:
    return mark.label if mark.fate == "voided" else str(mark)


def _lane(name: str, y: float, left: float, right: float) -> str:
    return (
        f'<text x="{GAP}" y="{y + 4}" font-weight="600">{escape(name)}</text>'
        f'<path d="M{left:.1f} {y}H{right:.1f}m-6 -4 6 4-6 4" fill="none" stroke="#b8c0cc"/>'
    )


def _drawn(mark: Mark, x: float, y: float) -> str:
    width = _wide(mark)
    strike = ' text-decoration="line-through"' if mark.fate == "voided" else ""
    return (
        f"<g><title>{escape(mark.title)}</title>"
        f'<rect x="{x:.1f}" y="{y - 11}" width="{width:.1f}" height="22" rx="11" '
        f"{STYLE[mark.fate]}/>"
        f'<text x="{x + width / 2:.1f}" y="{y + 4}" text-anchor="middle"{strike}>'
        f"{escape(_drawn_label(mark))}</text></g>"
    )
