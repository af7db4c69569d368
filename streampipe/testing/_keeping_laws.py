"""The laws of what an operator must keep, and what it must forget: other chunks, ends, voids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import fields, replace
from typing import Any

from streampipe.chunks import (
    Chunk,
    DataChunk,
    FileChunk,
    RawChunk,
    ReasoningSignature,
    RedactedReasoning,
    SourceChunk,
    StepFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolCallDelta,
    ToolCallInputEnd,
    ToolCallInputStart,
)
from streampipe.testing._bench import Broken, Seen, drawn
from streampipe.testing._laws import Law
from streampipe.testing._strategies import NASTY, PROSE
from streampipe.testing._trial import PARTS, Trial, joined, recut, shown, shown_all, told

__all__ = ["KEEPING_LAWS"]

_EVERY: tuple[Chunk, ...] = (
    SourceChunk("every", title="A page", url="https://example.org"),
    FileChunk("aGk=", "text/plain", "every"),
    DataChunk("data-every", {"n": 1}),
    RawChunk({"n": 1}),
    ReasoningSignature("every", "c2lnbmVk"),
    RedactedReasoning("every", "b3BhcXVl"),
    ToolCallInputStart("every", "search"),
    ToolCallDelta("every", '{"n": 1}'),
    ToolCallInputEnd("every"),
    ToolCall("every", "search", {"n": 1}),
)
_BARRIERS = [chunk for chunk in _EVERY if isinstance(chunk, SourceChunk | DataChunk | ToolCall)]
_LONG = "".join((*PROSE, *NASTY, *PROSE))
_VOID = StepFinish("retry", run_id="run")


async def others(trial: Trial) -> None:
    """Chunks that are no text come out as they came in, once; pieces keep run and sender."""
    case = trial.case
    stream, seen = case.stream, await trial.base()
    if case.is_plain:  # what is drawn has few kinds of chunk
        place = case.place(len(stream) + 1)
        every = [replace(chunk, run_id="run") for chunk in _EVERY]
        stream = [*stream[:place], *every, *stream[place:]]
        seen = await trial.run("with every kind", stream, drawn(case.pace))
    _known(stream, seen)
    if trial.traits.rewrites:
        return
    sent, got = _counted(stream), _counted(seen.items)
    for told_of, count in got.items():
        if count > sent.get(told_of, count):
            raise Broken("others", f"{told_of} comes out {count} times", got=told(seen))
    lost = [told_of for told_of in sent if told_of not in got]
    if trial.traits.drops or seen.failed or seen.early:  # then only what is made of it is wrong
        kinds = {type(item) for item in stream}
        made = [item for item in seen.items if _is_other(item) and _facts(item) not in sent]
        lost = [_facts(item) for item in made if type(item) in kinds & {*_CALLS}]
    if lost:
        what = f"{lost[0]} is lost or changed (say `drops=True` or `rewrites=True` if it may be)"
        raise Broken("others", what, **{"from": shown_all(stream)}, comes=told(seen))


_CALLS = (ToolCall, ToolCallInputStart, ToolCallDelta, ToolCallInputEnd)


def _known(stream: Sequence[Any], seen: Seen) -> None:
    """Look whether pieces of text come from whom they came.

    Raises:
        Broken: one does not.
    """
    senders = {(item.run_id, item.from_) for item in stream if isinstance(item, Chunk)}
    for item in seen.items:
        if isinstance(item, PARTS) and (item.run_id, item.from_) not in senders:
            what = f"{shown(item)} has the run {item.run_id!r} and is from {item.from_!r}"
            raise Broken("others", what, sent=sorted(senders), got=told(seen))


def _is_other(item: Any) -> bool:
    return isinstance(item, Chunk) and not isinstance(item, PARTS)


def _facts(item: Chunk) -> str:
    values = {field.name: getattr(item, field.name) for field in fields(item)}
    values.pop("provider_metadata", None)  # the law `metadata` is about it
    return f"{type(item).__name__}({', '.join(f'{k}={v!r}' for k, v in values.items() if v)})"


def _counted(items: Sequence[Any]) -> Counter[str]:
    return Counter(_facts(item) for item in items if _is_other(item))


async def void(trial: Trial) -> None:
    """After a void comes out what comes out of the second attempt alone."""
    traits, case = trial.traits, trial.case
    if traits.timed or not (traits.forgets and traits.preserves_order):
        return
    base = await trial.base()
    first = case.stream[: case.place(len(case.stream) + 1)]
    stream = [*first, _VOID, *case.stream]
    seen = await trial.run("behind a void", stream, drawn(case.pace))
    if base.failed or seen.failed or base.early or seen.early:
        return
    places = [place for place, item in enumerate(seen.items) if item == _VOID]
    start = places[0] + 1 if places else len(seen.items) - len(base.items)
    after = copy(seen)
    after.items = seen.items[max(start, 0) :]
    if trial.differ(after, base):
        what = (
            "it keeps something of an attempt that is void: at a `step-finish` with reason 'retry' "
            "drop what is held and begin anew (say `forgets=False` if it is to go on)"
        )
        facts = {"from": shown_all(stream), "comes": told(seen)}
        raise Broken("void", what, **facts, expected_behind_it=told(base))


async def long(trial: Trial) -> None:
    """A long text is treated as a short one is: cut anywhere, and up to its end."""
    traits = trial.traits
    if not trial.case.is_plain or traits.texts is not None or traits.streams is not None:
        return
    whole = await trial.run("long, whole", _said([_LONG]), drawn(trial.case.pace))
    if traits.chunking:
        single = await trial.run("long, single", _said(_LONG), drawn(trial.case.pace))
        same = joined(whole.items) == joined(single.items)
        if not (whole.failed or single.failed or same):
            what = "the joined text depends on how the text was cut"
            facts = {"text": _LONG, "whole": told(whole), "in characters": told(single)}
            raise Broken("long", what, **facts)
    if traits.drops or whole.early or whole.failed:
        return
    texts: list[dict[str, str]] = []
    for begin in ("", _LONG):
        for end in ("x.", "yz."):
            name = f"{'long' if begin else 'short'} {end}"
            seen = await trial.run(name, _said([begin + end]), drawn(trial.case.pace))
            texts.append(joined(seen.items))
    if texts[0] != texts[1] and texts[2] == texts[3]:
        what = f"what is said behind {len(_LONG)} characters is lost"
        raise Broken("long", f"{what} (say `drops=True` if it may be)", text=_LONG, got=texts[2])


async def stretches(trial: Trial) -> None:
    """What text stands before another chunk does not depend on how the text around it was cut."""
    traits, case = trial.traits, trial.case
    stream = recut(case.stream, single=True)
    places = [n for n, item in enumerate(stream) if isinstance(item, TextDelta)]
    if traits.timed or not traits.chunking or not places:
        return
    place = places[case.place(len(places))] + 1
    barrier = replace(_BARRIERS[case.pace % len(_BARRIERS)], run_id="run")
    before = [recut(stream[:place], single=single) for single in (False, True)]
    behind = [recut(stream[place:], single=single) for single in (False, True)]
    texts: list[dict[str, str]] = []
    for name, first, last in zip(("whole", "single"), before, behind, strict=True):
        seen = await trial.run(f"stretches, {name}", [*first, barrier, *last], drawn(case.pace))
        if barrier not in seen.items or seen.failed or seen.early:
            return
        texts.append(joined(seen.items[: seen.items.index(barrier)]))
    if texts[0] != texts[1]:
        what = f"what text comes out before {shown(barrier)} depends on how the text was cut"
        facts = {"whole": texts[0], "in characters": texts[1]}
        raise Broken("stretches", what, **facts)


def _said(pieces: Sequence[str]) -> list[Any]:
    deltas = (TextDelta("long", piece, run_id="run") for piece in pieces)
    return [TextStart("long", run_id="run"), *deltas, TextEnd("long", run_id="run")]


KEEPING_LAWS: dict[str, Law] = {
    "others": others,
    "void": void,
    "stretches": stretches,
    "long": long,
}
