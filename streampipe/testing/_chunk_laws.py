"""The laws of operators on streams of chunks: what becomes of texts, parts and their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from streampipe.chunks import (
    Chunk,
    DataChunk,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    SourceChunk,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolCallInputStart,
)
from streampipe.testing._bench import COMPLETED, Broken, Seen, drawn
from streampipe.testing._laws import Law
from streampipe.testing._trial import (
    DELTAS,
    PARTS,
    Trial,
    joined,
    part_of,
    recut,
    shown,
    shown_all,
    told,
)

__all__ = ["CHUNK_LAWS", "unclosed"]


async def chunking(trial: Trial) -> None:
    """The text of a part does not depend on how it was cut."""
    stream = trial.case.stream
    base = await trial.base()
    whole = trial.traits.text_of_whole
    if whole is not None and not base.failed:
        _as_whole(stream, base, whole)
    for name, single in (("uncut", False), ("cut at every character", True)):
        other = recut(stream, single=single)
        seen = await trial.turned(name, other)
        facts: dict[str, object] = {"cut so": shown_all(stream), "or so": shown_all(other)}
        if seen.failed != base.failed:
            what = f"cut in one way it ends with {base.ending}, in another with {seen.ending}"
            raise Broken("chunking", what, **facts)
        got, others = joined(base.items), joined(seen.items)
        if not seen.failed and got != others:
            what = "the joined text depends on how the text was cut"
            raise Broken("chunking", what, **facts, first_gives=got, second_gives=others)


def _as_whole(stream: Sequence[Any], seen: Seen, whole: Callable[[str], str]) -> None:
    """Compare with what becomes of the whole text, where nothing but text comes in between.

    Raises:
        Broken: they differ.
    """
    said, got = joined(stream), joined(seen.items)
    for name in _undivided(stream):
        text = said.get(name, "")
        expected = whole(text)
        if got.get(name, "") != expected:
            what = "the joined text is not what becomes of the text as a whole"
            cut = [
                item.text for item in stream if isinstance(item, DELTAS) and part_of(item) == name
            ]
            raise Broken(
                "chunking", what, text=text, cut=cut, expected=expected, got=got.get(name, "")
            )


def _undivided(stream: Sequence[Any]) -> set[str]:
    """Text parts that no chunk of another kind than text interrupts."""
    opened: set[str] = set()
    divided: set[str] = set()
    every: set[str] = set()
    for item in stream:
        if isinstance(item, TextStart):
            opened.add(part_of(item))
            every.add(part_of(item))
        elif isinstance(item, TextEnd):
            opened.discard(part_of(item))
        elif not isinstance(item, TextDelta):
            divided |= opened
    return every - divided


_OPENS = {TextStart, ReasoningStart}
_CLOSES = {TextEnd, ReasoningEnd}


async def parts(trial: Trial) -> None:
    """Every part that opens closes, and pieces of it stand in between."""
    seen = await trial.base()
    problem = unclosed(seen.items, is_whole=seen.end is COMPLETED and not seen.early)
    if problem:
        raise Broken("parts", problem, got=told(seen))


def unclosed(stream: Sequence[Any], *, is_whole: bool = True) -> str:
    """What is wrong with the parts of a stream; "" if nothing is."""
    opened: set[str] = set()
    for item in stream:
        name = part_of(item) if isinstance(item, PARTS) else ""
        if type(item) in _OPENS:
            if name in opened:
                return f"{name} opens twice"
            opened.add(name)
        elif name and name not in opened:
            return f"{shown(item)} stands outside of its part"
        elif type(item) in _CLOSES:
            opened.discard(name)
    return f"{', '.join(sorted(opened))} is not closed" if opened and is_whole else ""


async def ids(trial: Trial) -> None:
    """What comes out of a part depends on what went into it, not on other parts."""
    texts = [item.text for item in trial.case.stream if isinstance(item, TextDelta) and item.text]
    if not texts:
        return
    other: type[Chunk] = ReasoningDelta if trial.case.at & 1 else TextDelta
    braid = _braid(texts, other, texts[::-1])
    seen = await trial.run("braided", braid, drawn(trial.case.pace))
    masked = _braid(texts, other, ["~" * len(text) for text in texts[::-1]])
    unread = await trial.run("masked", masked, drawn(trial.case.pace))
    if seen.failed or unread.failed or seen.early or unread.early:
        return
    got, expected = joined(seen.items).get("text a", ""), joined(unread.items).get("text a", "")
    if got != expected:
        what = "the text of a part depends on the text of another"
        facts = {"from": shown_all(braid), "comes": told(seen), "but from": shown_all(masked)}
        raise Broken("ids", what, **facts, there_comes=told(unread))


def _braid(texts: Sequence[str], other: type[Chunk], others: Sequence[str]) -> list[Any]:
    """Two parts whose pieces take turns."""
    start, delta, end = (
        (TextStart, TextDelta, TextEnd)
        if other is TextDelta
        else (ReasoningStart, ReasoningDelta, ReasoningEnd)
    )
    pieces: list[Any] = [TextStart("a", run_id="run"), start("b", run_id="run")]
    for ours, theirs in zip(texts, others, strict=True):
        pieces += [TextDelta("a", ours, run_id="run"), delta("b", theirs, run_id="run")]
    return [*pieces, TextEnd("a", run_id="run"), end("b", run_id="run")]


async def metadata(trial: Trial) -> None:
    """Provider metadata comes out once."""
    traits, case = trial.traits, trial.case
    _once(trial, case.stream, await trial.base())
    if case.is_plain and traits.texts is None and traits.streams is None:
        # What is drawn may have none on a piece that is long enough to be cut.
        piece = TextDelta("marked", "Two words. And more.", {"marked": {"n": 1}})
        part = [TextStart("marked"), piece, TextEnd("marked")]
        stream = [replace(chunk, run_id="run") for chunk in part]
        _once(trial, stream, await trial.run("marked", stream, drawn(case.pace)))


def _once(trial: Trial, stream: Sequence[Any], seen: Seen) -> None:
    """Look for metadata that is lost, or comes twice.

    Raises:
        Broken: there is some.
    """
    sent = Counter(_keys(stream))
    got = Counter(key for key in _keys(seen.items) if key in sent)
    twice = sorted(key for key, count in got.items() if count > sent[key])
    if twice:
        raise Broken("metadata", f"{', '.join(twice)} comes out twice", got=told(seen))
    lost = sorted(key for key in sent if key not in got)
    if lost and not (trial.traits.drops or seen.failed or seen.early):
        what = (
            f"{', '.join(lost)} is lost: make a changed piece by "
            "`dataclasses.replace(part, text=...)`, which keeps it "
            "(or say `drops=True`, if chunks may be left out)"
        )
        raise Broken("metadata", what, got=told(seen))


def _keys(items: Sequence[Any]) -> list[str]:
    return [key for item in items for key in getattr(item, "provider_metadata", None) or ()]


_BARRIERS: tuple[Chunk, ...] = (
    ToolCall("barrier", "search", {"n": 1}, run_id="run"),
    SourceChunk("barrier", url="https://example.org", run_id="run"),
    DataChunk("data-barrier", 1, run_id="run"),
    ToolCallInputStart("barrier", "search", run_id="run"),
)


async def place(trial: Trial) -> None:
    """Text that came before a tool call, a source or data does not come out behind it."""
    case = trial.case
    texts = [n for n, item in enumerate(case.stream) if isinstance(item, TextDelta)]
    if not texts:
        return
    index = texts[case.place(len(texts))] + 1
    barrier = _BARRIERS[case.pace % len(_BARRIERS)]
    before = case.stream[:index]
    # More text follows at once: what was held comes out before it, a footer does only behind it.
    more = [_more(piece) for piece in (before[-1], *_endings(before))]
    stream = [*before, barrier, *more, *case.stream[index:]]
    seen = await trial.run("with a barrier", stream, drawn(case.pace))
    passed = next((n for n, item in enumerate(seen.items) if item == barrier), None)
    if passed is None or seen.failed:
        return
    alone = await trial.run("up to it", [*before, *_endings(before)], drawn(case.pace))
    if alone.failed:
        return
    got, later = joined(seen.items[:passed]), joined(seen.items[passed:])
    for name, text in joined(alone.items).items():
        # Whoever holds the barrier back as well may make something else of the text, or let more
        # of it out; what may not be is that a rest of it comes behind.
        rest = text.removeprefix(got.get(name, "")) if text.startswith(got.get(name, "")) else ""
        alike = takewhile(
            lambda pair: pair[0] == pair[1], zip(rest, later.get(name, ""), strict=False)
        )
        moved = "".join(character for character, _ in alike)
        if moved:
            what = f"{moved!r}, which came in before {shown(barrier)}, comes out behind it"
            raise Broken("place", what, **{"from": shown_all(stream)}, comes=told(seen))


def _more(piece: Any) -> Chunk:
    """More text of the part that a chunk belongs to."""
    cls = TextDelta if isinstance(piece, TextDelta | TextEnd) else ReasoningDelta
    return cls(piece.id, "~", run_id=piece.run_id)


def _endings(stream: Sequence[Any]) -> list[Chunk]:
    """The chunks that close what is open."""
    opened: dict[str, Chunk] = {}
    for item in stream:
        if isinstance(item, TextStart):
            opened[part_of(item)] = TextEnd(item.id, run_id=item.run_id)
        elif isinstance(item, ReasoningStart):
            opened[part_of(item)] = ReasoningEnd(item.id, run_id=item.run_id)
        elif type(item) in _CLOSES:
            opened.pop(part_of(item), None)
    return [*opened.values()]


CHUNK_LAWS: dict[str, Law] = {
    "chunking": chunking,
    "parts": parts,
    "ids": ids,
    "metadata": metadata,
    "place": place,
}
