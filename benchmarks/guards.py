"""Look for personal data in texts that Faker made, and in what models said; print what was found.

`python -m benchmarks.guards` takes minutes. With `--check` it ends with 1 when a bound is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks._guard_texts import Sample, Value, samples
from streampipe import Agent
from streampipe.contracts import ProcessorViolation
from streampipe.processors import PIIDetector
from streampipe.processors._personal_data import DATA_TYPES
from streampipe.testing import ScriptedModel

__all__ = ["Found", "Tally", "found_in", "main", "recorded_texts", "tallied"]

TEXTS = 10_000
LEAST_RECALL = 0.99
MOST_PER_10_000_WORDS = 1.0
PIECE = 16  # characters
STREAMS = Path(__file__).parents[2] / "shared" / "streams"
TYPE_OF = {rule.name: data_type for data_type, rules in DATA_TYPES.items() for rule in rules}
OUTCOMES = ("found", "partly", "as another", "missed")
HEAD = ("type", "values", "left out", *OUTCOMES, "recall", "precision", "confusion")

NOTE = """\
Half of the values stand behind words that say what they are, half bare. Left out is what is
nobody's by phonenumbers and python-stdnum. Confusion: what was found as this type, but was not."""

Outcome = str
"""What became of a value: "found", "partly", "as another" or "missed"."""


@dataclass(frozen=True, slots=True)
class Found:
    """A part of a text in which the detector sees a type of data."""

    data_type: str
    start: int
    stop: int

    def touches(self, value: Value) -> bool:
        """Whether they have a character in common."""
        return self.start < value.stop and value.start < self.stop

    def covers(self, value: Value) -> bool:
        """Whether the whole value lies within."""
        return self.start <= value.start and value.stop <= self.stop


@dataclass(slots=True)
class Tally:
    """What became of the values of each type, and what else was found.

    Attributes:
        outcomes: how many values of a type had an outcome.
        left_out: values that their judge refuses.
        right: parts found with a value of their type in them.
        wrong: parts found without one: their type, and what they were, "text" if no value at all.
        examples: some texts of each pair of a type and an outcome, and of what was no value.
    """

    outcomes: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    wrong: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def add(self, sample: Sample, found: Sequence[Found]) -> None:
        """Count what was found in one text."""
        for value in sample.values:
            text = sample.text[value.start : value.stop]
            if not value.is_valid:
                self.left_out[value.data_type] += 1
                continue
            outcome = _outcome(value, [one for one in found if one.touches(value)])
            self.outcomes[value.data_type, outcome] += 1
            self._note(value.data_type, outcome, f"{sample.locale}: {text}")
        for one in found:
            touched = [value for value in sample.values if one.touches(value)]
            if any(value.data_type == one.data_type for value in touched):
                self.right[one.data_type] += 1
            elif all(value.is_valid for value in touched):
                kind = touched[0].data_type if touched else "text"
                self.wrong[one.data_type, kind] += 1
                text = sample.text[one.start : one.stop]
                self._note(one.data_type, f"in {kind}", f"{sample.locale}: {text}")

    def _note(self, data_type: str, kind: str, example: str) -> None:
        self.examples.setdefault((data_type, kind), []).append(example)

    def recall(self, data_type: str) -> float:
        """The share of values that were found whole, as what they are."""
        total = sum(count for (of, _), count in self.outcomes.items() if of == data_type)
        return self.outcomes[data_type, "found"] / total if total else 1.0

    def precision(self, data_type: str) -> float:
        """The share of parts found as this type that hold a value of it."""
        wrong = sum(count for (found, _), count in self.wrong.items() if found == data_type)
        right = self.right[data_type]
        return right / (right + wrong) if right + wrong else 1.0

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The table, a row for each type."""
        for data_type in DATA_TYPES:
            counts = {outcome: n for (of, outcome), n in self.outcomes.items() if of == data_type}
            confusion = [
                f"{count} in {kind}"
                for (of, kind), count in self.wrong.most_common()
                if of == data_type
            ]
            yield (
                data_type,
                f"{sum(counts.values()):,}",
                str(self.left_out[data_type]),
                *(str(counts.get(outcome, 0)) for outcome in OUTCOMES),
                f"{self.recall(data_type):.4f}",
                f"{self.precision(data_type):.4f}",
                ", ".join(confusion),
            )


def _outcome(value: Value, touching: Sequence[Found]) -> Outcome:
    covering = [one for one in touching if one.covers(value)]
    if any(one.data_type == value.data_type for one in covering):
        return "found"
    if covering:
        return "as another"
    return "partly" if touching else "missed"


async def found_in(text: str) -> list[Found]:
    """What a detector in a run sees in an answer that comes in pieces."""
    told: list[ProcessorViolation] = []
    pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    guard = PIIDetector(strategy="warn", on_violation=told.append)
    agent = Agent(model=ScriptedModel([pieces]), output_processors=[guard])
    await agent.generate("hi")
    details: list[Any] = [violation.detail for violation in told]
    return [
        Found(TYPE_OF[detail["rule"]], detail["offset"], detail["offset"] + detail["length"])
        for detail in details
    ]


async def tallied(texts: Iterable[Sample]) -> Tally:
    """What is found in texts whose values are known."""
    tally = Tally()
    for sample in texts:
        tally.add(sample, await found_in(sample.text))
    return tally


def recorded_texts(folder: Path = STREAMS) -> list[str]:
    """What models said in recordings: text, reasoning, and the arguments of tools."""
    answers: list[dict[str, Any]] = [
        json.loads(path.read_bytes()) for path in sorted(folder.rglob("*.expected.json"))
    ]
    said = [answer.get(kind) for answer in answers for kind in ("text", "reasoning")]
    calls = [call for answer in answers for call in answer.get("tool_calls") or ()]
    said += [json.dumps(call["arguments"], ensure_ascii=False) for call in calls]
    return [text for text in said if text]


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Rows as a table for people."""
    cells = [HEAD, *rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def examples(tally: Tally, most: int) -> Iterator[str]:
    """What went wrong, at most so many lines of each kind."""
    for (data_type, kind), texts in sorted(tally.examples.items()):
        if kind != "found":
            shown = list(dict.fromkeys(texts))
            yield f"{data_type} {kind}: {', '.join(shown[:most])}"


async def measured(count: int, seed: int, most_examples: int) -> bool:
    """Measure and print; whether every bound is kept."""
    texts = list(samples(count, seed))
    tally = await tallied(texts)
    sys.stdout.write(f"{table(tally.rows())}\n\n{NOTE}\n")
    for line in examples(tally, most_examples):
        sys.stdout.write(f"{line}\n")
    in_prose = sum(n for (_, kind), n in tally.wrong.items() if kind == "text")
    sys.stdout.write(f"Faker's texts: {_rate(in_prose, [sample.text for sample in texts])[1]}\n")
    is_within = all(tally.recall(data_type) >= LEAST_RECALL for data_type in DATA_TYPES)
    said = recorded_texts()
    if not said:
        sys.stdout.write(f"no recordings in {STREAMS.name}: false positives were not counted\n")
        return is_within
    hits = [text[one.start : one.stop] for text in said for one in await found_in(text)]
    rate, told = _rate(len(hits), said)
    sys.stdout.write("\n".join([f"recorded streams: {told}", *map(repr, hits), ""]))
    return is_within and rate <= MOST_PER_10_000_WORDS


def _rate(hits: int, texts: Iterable[str]) -> tuple[float, str]:
    """False positives per 10,000 words, and how that is said."""
    words = sum(len(text.split()) for text in texts)
    rate = hits / words * 10_000
    return rate, f"{hits} false positives in {words:,} words, {rate:.2f} per 10,000"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guards", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a bound is missed")
    parser.add_argument("--texts", type=int, default=TEXTS, help="how many texts")
    parser.add_argument("--seed", type=int, default=0, help="other texts")
    parser.add_argument("--examples", type=int, default=6, help="how many of each mistake")
    options = parser.parse_args(arguments)
    is_within = asyncio.run(measured(options.texts, options.seed, options.examples))
    return int(options.check and not is_within)


if __name__ == "__main__":
    sys.exit(main())
