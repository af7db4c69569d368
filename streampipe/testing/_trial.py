"""One example of a check: a stream, how it is paced and cut, and the runs that laws compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from streampipe.chunks import (
    Chunk,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
)
from streampipe.operators._kinds import with_text
from streampipe.testing._bench import (
    COMPLETED,
    AnyOperator,
    Broken,
    Pace,
    Seen,
    drawn,
    read,
    slow,
    turning,
)
from streampipe.testing._hypothesis import st

__all__ = [
    "DELTAS",
    "PARTS",
    "Case",
    "Promises",
    "Shown",
    "Traits",
    "Trial",
    "joined",
    "part_of",
    "recut",
    "shown",
    "shown_all",
    "told",
]

DELTAS = (TextDelta, ReasoningDelta)
PARTS = (*DELTAS, TextStart, TextEnd, ReasoningStart, ReasoningEnd)
WIDEST = 60  # characters of an element in a report
MOST = 40  # elements of a stream in a report


class Promises(TypedDict, total=False):
    """What `check_operator` is told of an operator. Without any, everything is looked at.

    Attributes:
        elements: for streams of `any` kind: what their elements are; small numbers when absent.
        texts: for streams of chunks: what they say. Give what the operator looks for: whole, in
            parts, and next to itself.
        streams: whole streams, instead of `elements` and `texts`.
        text_of_whole: what becomes of a text that comes in one piece.
        chunking: whether the text that comes out is independent of how it was cut (True).
        preserves_order: whether elements come out in the order of what they are made of (True).
        timed: whether what comes out depends on when elements come in (False).
        ends_early: whether it may complete before its source does (False).
        drops: whether it may leave elements out (False).
        rewrites: whether it may change chunks that are no text, such as a call's arguments (False).
        forgets: whether nothing of a void attempt has a say in the next one (True).
        passes_errors: whether it passes a failure of its source on (True).
        fails: what it may fail with of its own accord, such as `TripWire`: a type, or a tuple.
        faulty: makes the operator with a function that raises; gets that function.
        allowance: how many elements it may hold, beside those that what it gave is made of (2).
        key: what of an element is compared, where two runs cannot give equal ones.
    """

    elements: st.SearchStrategy[Any]
    texts: st.SearchStrategy[str]
    streams: st.SearchStrategy[list[Any]]
    text_of_whole: Callable[[str], str]
    chunking: bool
    preserves_order: bool
    timed: bool
    ends_early: bool
    drops: bool
    rewrites: bool
    forgets: bool
    passes_errors: bool
    fails: type[BaseException] | tuple[type[BaseException], ...]
    faulty: Callable[[Callable[..., Any]], AnyOperator]
    allowance: int
    key: Callable[[Any], object]


@dataclass(frozen=True)
class Traits:
    """An operator, with what is promised of it; see `Promises`."""

    name: str
    make: Callable[[], AnyOperator]
    is_chunks: bool = True
    elements: st.SearchStrategy[Any] | None = None
    texts: st.SearchStrategy[str] | None = None
    streams: st.SearchStrategy[list[Any]] | None = None
    text_of_whole: Callable[[str], str] | None = None
    chunking: bool = True
    preserves_order: bool = True
    timed: bool = False
    ends_early: bool = False
    drops: bool = False
    rewrites: bool = False
    forgets: bool = True
    passes_errors: bool = True
    fails: type[BaseException] | tuple[type[BaseException], ...] = ()
    faulty: Callable[[Callable[..., Any]], AnyOperator] | None = None
    allowance: int = 2
    key: Callable[[Any], object] | None = None


@dataclass(frozen=True)
class Case:
    """What was drawn.

    Attributes:
        stream: the elements.
        pace: bits that say how the source pauses.
        at: where something is cut short, closed or broken.
    """

    stream: list[Any]
    pace: int
    at: int

    def place(self, size: int) -> int:
        """`at` as a number below `size`."""
        return (self.at >> 3) % max(1, size)  # the lowest bits are `is_plain`'s

    @property
    def is_plain(self) -> bool:
        """Whether the costly laws look at it too: one in eight, and the smallest of all."""
        return not self.at & 7


class Trial:
    """A case, and what the operator under test makes of it."""

    def __init__(self, traits: Traits, case: Case, loop: Any) -> None:
        """Prepare; runs happen when they are first asked for."""
        self.traits = traits
        self.case = case
        self.loop = loop
        self._runs: dict[str, Seen] = {}

    async def base(self) -> Seen:
        """The run that most others are compared with: from a `Flowable`, at the drawn pace."""
        return await self.run("base", self.case.stream, drawn(self.case.pace))

    async def turned(self, name: str, stream: Sequence[Any]) -> Seen:
        """A run whose source lets others in after every element."""
        return await self.run(f"{name}, turn by turn", stream, turning)

    async def slow(self) -> Seen:
        """The run at a pace at which everything that an element starts ends before the next."""
        return await self.run("slow", self.case.stream, slow)

    async def run(self, name: str, stream: Sequence[Any], pace: Pace) -> Seen:
        """A run of a fresh operator, made once a case.

        Raises:
            Broken: it does not end, or fails with what it may not fail with.
        """
        seen = self._runs.get(name)
        if seen is None:
            self._runs[name] = seen = await read(self.traits.make(), stream, pace)
            if seen.failed and not isinstance(seen.end, self.traits.fails):
                facts = {"of": shown_all(stream), "got": told(seen)}
                raise Broken("one end", f"it fails by itself: {seen.ending}", **facts)
        return seen

    def differ(self, got: Seen, expected: Seen, *, ordered: bool = True) -> bool:
        """Whether two runs gave different elements, or ended differently."""
        ours, theirs = self._keys(got), self._keys(expected)
        if ended(got) != ended(expected):
            return True
        if ordered and self.traits.preserves_order:
            return ours != theirs
        return Counter(map(repr, ours)) != Counter(map(repr, theirs))

    def begins(self, got: Seen, expected: Seen) -> bool:
        """Whether the elements of a run are the first ones of another."""
        ours = self._keys(got)
        return ours == self._keys(expected)[: len(ours)]

    def _keys(self, seen: Seen) -> list[Any]:
        key = self.traits.key
        return seen.items if key is None else [key(item) for item in seen.items]

    def compare(self, law: str, got: Seen, expected: Seen, what: str, **facts: object) -> None:
        """Find fault where two runs differ.

        Raises:
            Broken: they do.
        """
        if self.differ(got, expected):
            raise Broken(law, what, **facts, expected=told(expected), got=told(got))


def ended(seen: Seen) -> object:
    """An end as something that two runs can agree on."""
    return type(seen.end) if seen.failed else seen.end


class Shown(str):
    """Text for a report that is to stand there as it is, unquoted."""

    __slots__ = ()


def told(seen: Seen) -> Shown:
    """A run in words: its elements, and how it ended if not well."""
    end = "" if seen.end is COMPLETED else f", then {seen.ending}"
    return Shown(shown_all(seen.items) + end)


def joined(items: Sequence[Any]) -> dict[str, str]:
    """The text that came out, by part; strings that are no chunks are one text."""
    pieces: dict[str, list[str]] = {}
    for item in items:
        if isinstance(item, DELTAS):
            pieces.setdefault(part_of(item), []).append(item.text)
        elif isinstance(item, str):
            pieces.setdefault("text", []).append(item)
    texts = {name: "".join(parts) for name, parts in pieces.items()}
    return {name: text for name, text in texts.items() if text}


def part_of(chunk: Any) -> str:
    """The part that a piece, a start or an end belongs to: "text 0"."""
    return f"{chunk.type.partition('-')[0]} {chunk.id}"


def recut(stream: Sequence[Any], *, single: bool) -> list[Any]:
    """The same stream cut at every character of its text, or nowhere.

    Only neighbouring pieces of one part are joined, and none that has provider metadata: where text
    stands between other chunks is not a matter of cutting.
    """
    made: list[Any] = []
    for item in stream:
        last = made[-1] if made else None
        if not isinstance(item, DELTAS) or item.provider_metadata is not None:
            made.append(item)
        elif single:
            made += [with_text(item, character) for character in item.text]
        elif _joins(last, item):
            made[-1] = with_text(item, last.text + item.text)  # type: ignore[union-attr]  # a delta
        else:
            made.append(item)
    return made


def _joins(last: Any, item: TextDelta | ReasoningDelta) -> bool:
    same = isinstance(last, DELTAS) and type(last) is type(item) and last.id == item.id
    return same and last.provider_metadata is None


def shown(item: Any) -> str:
    """An element in few characters."""
    if not isinstance(item, Chunk):
        return f"{item!r:.{WIDEST}}"
    name = getattr(item, "tool_call_id", None) or getattr(item, "id", None)
    metadata = getattr(item, "provider_metadata", None)
    words = [item.type] if name is None else [f"{item.type}({name})"]
    if isinstance(item, DELTAS):
        words = [f"{name}:{item.text!r:.{WIDEST}}"]
    if metadata:
        words.append(f"{{{', '.join(metadata)}}}")
    return " ".join(words)


def shown_all(items: Sequence[Any]) -> Shown:
    """A stream in one line."""
    more = f" | … {len(items) - MOST} more" if len(items) > MOST else ""
    return Shown(" | ".join(map(shown, items[:MOST])) + more or "nothing")
