"""Write `docs/operators.md` from the registry, or with `--check` hold the page to it.

Every marble on the page is what the operator gave just now, on a clock that jumps.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streampipe import Chunk, ObjectChunk, ReasoningDelta, TextDelta, TextEnd, ToolCall
from streampipe import operators as ops
from streampipe.errors import ModelError
from streampipe.operators._operator import HOLE, REGISTRY
from streampipe.testing import run_virtual
from streampipe.text import Rule

PAGE = Path(__file__).resolve().parent.parent / "docs" / "operators.md"
TICK = 1.0  # seconds of the jumping clock between two places of a marble
HEAD = """\
# Operators

`from streampipe import operators as ops`. Each takes an observable and gives one, for use in
`pipe()`. Each that emits chunks can stand in `output_processors`, where it is given what the model
streams; one that emits anything else fails the run there. In a docstring `source` is the stream
that `pipe()` hands over; `help(ops.redact)` shows how it is called, without it. This page is made
by `python scripts/operators_page.py`: the marbles are what the operators gave.

A marble has a place for every second: `-` is a second in which nothing came, `(a b)` came together,
`|` is the end and `#` a failure. A string is a text-delta; other chunks show their type.

*kernel*: works element by element, costs no queue and no task, and shares one kernel with its
neighbours. *boundary*: has a pace of its own; the next kernel begins behind it.
`ops.explain(pipeline)` shows which is which, `ops.pipe(...)` makes a value of a pipeline, and
`ops.fusion(False)` builds every stage by itself. In annotations, `ops.Operator[A, B]` is the
type of an operator from a stream of `A` to one of `B`.

## Sources

What is put before the first operator: an agent's run (`agent.observe(...)`), any observable of
`reactivex`, or one of these. They are cold, and wait for a slow reader.

| source | what it gives |
| --- | --- |
| `ops.of(*items)` | these elements |
| `ops.from_aiter(source)` | an async iterable; of a function that makes one, each time another |
| `ops.create(run)` | what the coroutine function `run(emit)` emits |
| `ops.concat(*sources)` | one stream after the other |

And back: `ops.to_aiter(stream)` is a stream as an async iterator.

```python
from streampipe import operators as ops

pieces = ops.of("a ", "b ", "c").pipe(ops.map(str.upper))
assert [piece async for piece in ops.to_aiter(pieces)] == ["A ", "B ", "C"]
```

## Failures

What a function of yours raises fails the stream with `OperatorError`. Its message has the
operator's name and the kind of element, not what the function said: that may quote the stream, and
the message may reach a client. It is in `__cause__`. A function that returned the wrong
thing is told in the message itself; within `ops.revealing()` the element is shown, too.

A block (`ops.block`, `ops.check_async`, `ops.raise_errors`, a processor's `abort`) is no failure
but a signal: `TripWire` is a `BaseException`, so `except Exception` does not see it.

```python
from streampipe import TextDelta, TripWire

guarded = ops.of(TextDelta("0", "the swordfish")).pipe(ops.block("swordfish"), ops.text())
try:
    said = [text async for text in ops.to_aiter(guarded)]
except TripWire as wire:
    assert wire.processor_id == "block"
```
"""
FAMILIES = {
    "_element": "Elements",
    "_kinds": "By kind of chunk",
    "_rules": "Rules over text",
    "_cut": "Text cut elsewhere",
    "_json": "JSON",
    "_time": "Time",
    "_pace": "Pace",
    "_map_async": "Async functions",
    "_check_async": "Async checks",
    "_recover": "Recovery",
    "_arrange": "Loops",
    "_compose": "Branches",
    "_parallel": "Side by side",
    "_process": "Processors",
    "_output": "The end of a pipeline",
    "_lift": "The other hooks",
}


@dataclass(slots=True, frozen=True)
class Sample:
    """How an operator is shown: the code, and the seconds of its source, each with its elements."""

    code: str
    seconds: Sequence[Any]
    fails: bool = False


async def slowly(chunk: Chunk) -> Chunk:
    """Take two seconds."""
    await asyncio.sleep(2)
    return chunk


async def is_short(chunk: Chunk) -> bool:
    """Take a second to look."""
    await asyncio.sleep(1)
    return len(getattr(chunk, "text", "")) < len("long")


async def polite(text: str) -> bool:
    """Take a second to read."""
    await asyncio.sleep(1)
    return "damn" not in text


class Shout:
    """A processor."""

    id = "shout"

    def process_output_stream(self, args: Any) -> Any:
        """Say it louder."""
        return TextDelta("0", args.part.text.upper()) if args.part.type == "text-delta" else None


class Polite(Shout):
    """A guard."""

    id = "polite"

    def process_output_stream(self, args: Any) -> Any:
        """Block rude words."""
        if "damn" in getattr(args.part, "text", ""):
            args.abort("rude")
        return args.part


CALL = ToolCall("t1", "look", {})
THOUGHT = ReasoningDelta("1", "hm")
WORDS = ["a ", "b ", "c"]
NAMES = {**globals(), "ops": ops, "Rule": Rule}
SAMPLES = {
    "map": Sample("ops.map(lambda c: c.type)", ["a", CALL]),
    "filter": Sample("ops.filter(lambda c: c.type != 'tool-call')", ["a", CALL, "b"]),
    "flat_map": Sample("ops.flat_map(lambda c: [c, c])", ["a", "b"]),
    "scan": Sample("ops.scan(lambda n, c: n + len(c.text), 0)", ["ab", "c", "def"]),
    "stateful": Sample(
        "ops.stateful(list, lambda kept, c: kept.append(c) or [], lambda kept: kept)", WORDS
    ),
    "tap": Sample("ops.tap(lambda c: None)", ["a", "b"]),
    "take_while": Sample("ops.take_while(lambda c: c.type != 'tool-call')", ["a", CALL, "b"]),
    "distinct_until_changed": Sample("ops.distinct_until_changed()", ["a", "a", "b", "a"]),
    "of_type": Sample("ops.of_type(ToolCall)", ["a", CALL]),
    "map_text": Sample("ops.map_text(str.upper)", ["a", CALL, "b"]),
    "text": Sample("ops.text()", ["a", CALL, THOUGHT, "b"]),
    "accumulate_text": Sample("ops.accumulate_text()", WORDS),
    "tool_calls": Sample("ops.tool_calls()", ["a", CALL]),
    "reasoning": Sample("ops.reasoning()", ["a", THOUGHT]),
    "redact": Sample("ops.redact(r'sk-[a-z0-9]{4,}', '[KEY]')", ["key s", "k-ab", "cd12", " ok"]),
    "block": Sample("ops.block(Rule('key', r'sk-[a-z0-9]{4,}'))", ["key s", "k-ab", "cd12", " ok"]),
    "detect": Sample("ops.detect(r'sk-[a-z0-9]{4,}', print_match)", ["s", "k-abcd", " ok"]),
    "replace": Sample("ops.replace('cat', 'dog')", ["my c", "at", " sat"]),
    "rechunk": Sample("ops.rechunk('word')", ["Hel", "lo wo", "rld ag", "ain"]),
    "stop_at": Sample("ops.stop_at('STOP')", ["go ST", "OP on", "x"]),
    "limit_text": Sample("ops.limit_text(chars=4)", ["ab", "cde", "f"]),
    "split_tags": Sample("ops.split_tags('think')", ["<thi", "nk>hm", "</think>", "so"]),
    "json_objects": Sample("ops.json_objects()", ['{"a": 1', ', "b"', ": 2}", TextEnd("0")]),
    "json_lines": Sample("ops.json_lines()", ['{"a"', ": 1}\n{}", TextEnd("0")]),
    "throttle": Sample("ops.throttle(2)", ["a", "b", "c", "d"]),
    "debounce": Sample("ops.debounce(2)", ["a", "b", None, None, None, "c"]),
    "heartbeat": Sample("ops.heartbeat(2)", ["a", None, None, None, None, "b"]),
    "timeout_first": Sample("ops.timeout_first(2)", [None, None, None, "a"]),
    "timeout_idle": Sample("ops.timeout_idle(2)", ["a", "b", None, None, None, "c"]),
    "deadline": Sample("ops.deadline(2.5)", ["a", "b", "c", "d"]),
    "batch": Sample("ops.batch(max_wait=2)", ["a", "b", None, "c", CALL, "d"]),
    "smooth": Sample("ops.smooth(1, 'word')", ["a b c "]),
    "map_async": Sample("ops.map_async(slowly, concurrency=2)", ["a", "b", "c"]),
    "filter_async": Sample("ops.filter_async(is_short)", ["a", "long", "b"]),
    "check_async": Sample(
        "ops.check_async(polite, window='sentence')", ["Hi. ", "Well, ", "damn it. ", "Bye."]
    ),
    "catch_api_error": Sample("ops.catch_api_error(lambda error, n: n < 1)", ["a"], fails=True),
    "retry_api": Sample("ops.retry_api(1, backoff=2, jitter=False)", ["a"], fails=True),
    "fallback": Sample("ops.fallback(ops.of(TextDelta('0', 'b')))", ["a"], fails=True),
    "branch": Sample("ops.branch(lambda c: c.type == 'text-delta', Shout())", ["a", CALL]),
    "parallel": Sample("ops.parallel(Polite(), Shout())", ["a", "damn", "b"]),
    "process": Sample("ops.process(Shout())", ["a", CALL]),
    "process_all": Sample("ops.process_all([Polite(), Shout()])", ["a", "damn", "b"]),
    "to_wire": Sample("ops.to_wire()", ["a"]),
    "to_jsonl": Sample("ops.to_jsonl()", ["a"]),
    "to_sse": Sample("ops.to_sse()", ["a"]),
    "materialize_errors": Sample("ops.materialize_errors()", ["a"], fails=True),
    "raise_errors": Sample(
        "ops.pipe(ops.materialize_errors(), ops.raise_errors())", ["a"], fails=True
    ),
}


def print_match(_match: ops.Match) -> None:
    """Stand for a listener."""


def element(value: Any) -> Chunk:
    """A string is a piece of text."""
    return TextDelta("0", value) if isinstance(value, str) else value


def shown(value: Any) -> str:
    """An element in few characters."""
    if isinstance(value, TextDelta):
        return repr(value.text)
    if isinstance(value, ReasoningDelta):
        return f"reasoning:{value.text!r}"
    if isinstance(value, ObjectChunk):
        return f"object:{value.object}"
    if isinstance(value, Chunk):
        return value.type
    text = repr(value)
    return text if len(text) <= len(PAGE.name) * 2 else f"{text[:16]}..."


Came = list[tuple[float, str]]


async def source(sample: Sample, came: Came, start: float) -> AsyncIterator[Chunk]:
    """The sample's elements, one a second; what came is noted by the seconds since `start`."""
    now = asyncio.get_running_loop().time
    began = now()
    for second, value in enumerate(sample.seconds):
        await asyncio.sleep(max(0.0, began + second * TICK - now()))
        if value is not None:
            came.append((now() - start, shown(element(value))))
            yield element(value)
    await asyncio.sleep(max(0.0, began + len(sample.seconds) * TICK - now()))
    if sample.fails:
        came.append((now() - start, "#"))
        msg = "the model failed"
        raise ModelError(msg, is_retryable=True)
    came.append((now() - start, "|"))


async def played(sample: Sample) -> tuple[Came, Came]:
    """What went in and what came out, each with its time."""
    went: Came = []
    came: Came = []
    now = asyncio.get_running_loop().time
    began = now()
    operator = eval(sample.code, {**NAMES, "print_match": print_match})  # noqa: S307 - our own table
    try:
        async for item in ops.to_aiter(
            operator(ops.from_aiter(lambda: source(sample, went, began)))
        ):
            came.append((now() - began, shown(item)))
        came.append((now() - began, "|"))
    except BaseException as error:  # noqa: BLE001 - a TripWire too: shown as what it is
        came.append((now() - began, f"#{type(error).__name__}"))
    return went, came


def marble(came: Came) -> str:
    """Elements by the second."""
    last = int(max((at for at, _ in came), default=0.0) / TICK)
    places: list[list[str]] = [[] for _ in range(last + 1)]
    for at, what in came:
        places[int(at / TICK)].append(what)
    return " ".join(
        "-" if not place else place[0] if len(place) == 1 else f"({' '.join(place)})"
        for place in places
    )


def summary(function: Callable[..., Any]) -> str:
    """The first sentence of its docstring."""
    doc = inspect.getdoc(function) or ""
    return " ".join(doc.split("\n\n")[0].split())


def runs(name: str) -> str:
    """Whether it joins a kernel."""
    operator = eval(SAMPLES[name].code, {**NAMES, "print_match": print_match})  # noqa: S307 - as above
    return "kernel" if operator(HOLE) is not HOLE and operator.stages is not None else "boundary"


def cell(text: str) -> str:
    """A text as code in a table."""
    return f"`{text}`".replace("|", "\\|")


# What runs as something else with other options.
ALSO = {"batch": "; kernel without `max_wait`"}


def row(name: str) -> str:
    """An operator's row."""
    function = REGISTRY[name]
    sample = SAMPLES.get(name)
    if sample is None:
        return f"| `{name}` | boundary | {summary(function)} | |"
    went, came = run_virtual(played(sample))
    picture = f"{cell(sample.code)}<br>{cell(marble(went))}<br>{cell(marble(came))}"
    return f"| `{name}` | {runs(name)}{ALSO.get(name, '')} | {summary(function)} | {picture} |"


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for module, title in FAMILIES.items():
        names = [n for n, f in REGISTRY.items() if f.__module__.endswith(f".{module}")]
        if names:
            head = f"## {title}\n\n| operator | runs as | what it does | for example |"
            parts.append("\n".join([head, "| --- | --- | --- | --- |", *map(row, names), ""]))
    return "\n".join(parts)


def main() -> int:
    """Write the page; gives 1 when it is only to be checked and is not what would be written."""
    made = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(made, encoding="utf-8")
        return 0
    if made != PAGE.read_text(encoding="utf-8"):
        print(f"{PAGE.name} is not what it would be; run scripts/operators_page.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
