"""The laws of operators: each looks at one case and raises `Broken` where it does not hold.

What is drawn is a stream; what an operator does to its elements is not known. So most laws compare
two runs that have to agree: fast and slow, cut here and there, alone and in company.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import streampipe.operators as ops
from streampipe.chunks import (
    Chunk,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
)
from streampipe.testing._bench import (
    COMPLETED,
    Broken,
    Seen,
    Source,
    drawn,
    finished,
    left_over,
    read,
    slow,
    turning,
    watch,
)
from streampipe.testing._trial import (
    DELTAS,
    PARTS,
    Trial,
    joined,
    recut,
    shown,
    shown_all,
    told,
)

__all__ = ["CHUNK_LAWS", "LAWS", "Injected"]

HIGH_WATER = 2  # elements that the stalled consumer lets lie
LONG = 40  # elements that the source of a stalled consumer would give


class Injected(Exception):  # noqa: N818 - named for where it comes from
    """What a source or a function raises in a check, so that it can be told from real failures."""


async def one_end(trial: Trial) -> None:
    """A stream ends once, not before its source unless it says so, and nothing comes after."""
    traits = trial.traits
    seen = await trial.base()
    if seen.failed and not isinstance(seen.end, traits.fails):
        raise Broken("one end", f"it fails by itself: {seen.ending}", got=told(seen))
    if seen.early and not seen.failed and not traits.ends_early:
        what = "it completes before its source does (say `ends_early=True` if it may)"
        raise Broken("one end", what, got=told(seen))
    await asyncio.sleep(0 if traits.timed else 1)
    left = await left_over(trial.loop, seen.source)
    if left:
        raise Broken("cancel", f"when it has ended, {left}")
    if seen.late:
        raise Broken("one end", "something comes after the end", after=shown_all(seen.late))


async def order(trial: Trial) -> None:
    """What passes keeps its order, and no element overtakes another that takes longer."""
    traits = trial.traits
    seen = await trial.base()
    if traits.is_chunks and traits.preserves_order:
        _in_order(seen)
    if not traits.timed:
        quick = await trial.turned("the stream", trial.case.stream)
        await _alike(trial, quick, await trial.slow())
        await _alike(trial, seen, await trial.slow())


async def _alike(trial: Trial, fast: Seen, slow_: Seen) -> None:
    what = "a source that does not wait for each element to be done gives another result"
    trial.compare("order", fast, slow_, what)


def _in_order(seen: Seen) -> None:
    """Look at each part's pieces, and at all that is no piece of a part.

    Raises:
        Broken: one was overtaken.
    """
    places = {id(item): place for place, item in enumerate(seen.source.sent)}
    last: dict[str, tuple[int, Any]] = {}
    for item in seen.items:
        place = places.get(id(item))
        if place is None:
            continue
        lane = f"{item.type.partition('-')[0]} {item.id}" if isinstance(item, PARTS) else "others"
        before, other = last.get(lane, (-1, None))
        if place < before:
            what = f"{shown(item)} comes out behind {shown(other)}, which came in behind it"
            raise Broken("order", what, got=told(seen))
        last[lane] = place, item


async def plain(trial: Trial) -> None:
    """An ordinary observable as source gives what a `Flowable` gives."""
    if trial.traits.timed:
        return
    pace = drawn(trial.case.pace)
    seen = await read(trial.traits.make(), trial.case.stream, pace, plain=True)
    what = "an ordinary observable as source gives another result than a Flowable"
    trial.compare("sources", seen, await trial.base(), what)


def _ignored(_: object) -> None:
    """Look at an element as `ops.tap` wants it."""


async def fusion(trial: Trial) -> None:
    """Fused with its neighbours it gives what it gives stage by stage."""
    expected = await trial.base()
    for enabled in (True, False):
        with ops.fusion(enabled):
            source = Source(trial.case.stream, drawn(trial.case.pace))
            operator = trial.traits.make()
            stream = operator(source.flow().pipe(ops.tap(_ignored))).pipe(ops.tap(_ignored))
        seen = await finished(*watch(stream, source))
        what = f"between two stages, {'fused' if enabled else 'stage by stage'}, it gives another"
        trial.compare("fusion", seen, expected, f"{what} result than alone")


async def chunking(trial: Trial) -> None:
    """The text of a part does not depend on how it was cut."""
    stream = trial.case.stream
    base = await trial.base()
    whole = trial.traits.whole
    if whole is not None and not base.failed:
        _as_whole(stream, base, whole)
    for name, single in (("uncut", False), ("cut at every character", True)):
        other = recut(stream, single=single)
        seen = await trial.turned(name, other)
        facts = {"one way": shown_all(stream), "other way": shown_all(other)}
        if seen.failed != base.failed:
            what = f"cut in one way it ends with {base.ending}, in another with {seen.ending}"
            raise Broken("chunking", what, **facts)
        if not seen.failed and joined(seen.items) != joined(base.items):
            what = "the joined text depends on how the text was cut"
            got, expected = joined(base.items), joined(seen.items)
            raise Broken("chunking", what, **facts, expected=expected, got=got)


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
            cut = [item.text for item in stream if isinstance(item, DELTAS) and _of(item) == name]
            raise Broken(
                "chunking", what, text=text, cut=cut, expected=expected, got=got.get(name, "")
            )


def _of(item: Any) -> str:
    return f"{item.type.partition('-')[0]} {item.id}"


def _undivided(stream: Sequence[Any]) -> set[str]:
    """Text parts that no chunk of another kind than text interrupts."""
    opened: set[str] = set()
    divided: set[str] = set()
    every: set[str] = set()
    for item in stream:
        if isinstance(item, TextStart):
            opened.add(_of(item))
            every.add(_of(item))
        elif isinstance(item, TextEnd):
            opened.discard(_of(item))
        elif not isinstance(item, TextDelta):
            divided |= opened
    return every - divided


async def isolation(trial: Trial) -> None:
    """Subscriptions side by side give what each gives alone."""
    stream = trial.case.stream
    chunks = trial.traits.is_chunks
    other = recut(stream, single=True) if chunks else stream[::-1]
    name = "cut at every character" if chunks else "backwards"
    alone = [await trial.turned("the stream", stream), await trial.turned(name, other)]
    operator = trial.traits.make()
    sources = [Source(stream, turning), Source(other, turning), Source(stream, turning)]
    first = operator(sources[0].flow())
    started = [watch(first, sources[0]), watch(operator(sources[1].flow()), sources[1])]
    await asyncio.sleep(0)  # the third begins when the first is under way
    started.append(watch(first, sources[0]))
    for (seen, leave), expected in zip(started, (*alone, alone[0]), strict=True):
        await finished(seen, leave)
        what = "a subscription among others gives another result than alone"
        trial.compare("isolation", seen, expected, what)


async def bound(trial: Trial) -> None:
    """Whoever does not read stops the source: it gives no more than may lie unread."""
    traits = trial.traits
    stream = _long(trial.case.stream, chunks=traits.is_chunks)
    if not stream or not trial.case.is_plain:
        return
    # How many elements of the source it takes for one too many of the output. At one turn of the
    # loop an element a timer has no say in that; without timers, slow is what tells most.
    fast = await trial.run("long", stream, turning if traits.timed else slow)
    filled = HIGH_WATER + 1
    if len(fast.items) <= filled + traits.allowance:
        return
    source = Source(stream, turning)
    stalled = Seen(source)
    never: asyncio.Future[None] = trial.loop.create_future()

    def push(item: Any) -> Awaitable[None] | None:
        stalled.push(item)
        return never if len(stalled.items) >= filled else None

    flow = _flow(traits.make()(source.flow()))
    task = trial.loop.create_task(stalled.drive(flow, push))
    await asyncio.sleep(100)
    given, allowed = len(source.sent), fast.needed[filled - 1] + traits.allowance
    task.cancel()
    await asyncio.wait({task})
    if given > allowed:
        raise Broken(
            "bound",
            f"its consumer stopped reading with {filled} elements unread, and still it took "
            f"{given} elements from its source",
            allowed=f"{allowed}: {fast.needed[filled - 1]} that these are made of, and "
            f"{traits.allowance} held (`allowance`)",
        )


def _flow(stream: Any) -> ops.Flowable[Any]:
    """Any stream as a flow that stops when its reader does."""
    if isinstance(stream, ops.Flowable):
        return stream
    items = ops.to_aiter(stream, high_water=1)
    return ops.from_aiter(items)


def _long(stream: Sequence[Any], *, chunks: bool) -> list[Any]:
    """A long stream of the same stuff."""
    if not chunks:
        return [stream[n % len(stream)] for n in range(LONG)] if stream else []
    texts = [item.text for item in stream if isinstance(item, TextDelta) and item.text] or ["a "]
    deltas = (TextDelta("long", texts[n % len(texts)], run_id="run") for n in range(LONG))
    return [TextStart("long", run_id="run"), *deltas, TextEnd("long", run_id="run")]


async def cancel(trial: Trial) -> None:
    """After a subscriber left, the source is closed, and no task and no timer is left."""
    case = trial.case
    base = await trial.base()
    after = case.place(len(base.items) + 1)
    source = Source(case.stream, turning)
    stream = trial.traits.make()(source.flow())
    if case.is_plain:
        await _leave_iterator(stream, after)
    else:
        await _dispose(stream, source, after)
    left = await left_over(trial.loop, source)
    if left:
        raise Broken("cancel", f"its subscriber left after {after} elements, and {left}")


async def _leave_iterator(stream: Any, after: int) -> None:
    async with aclosing(ops.to_aiter(stream)) as items:  # type: ignore[type-var]  # a generator
        if after:
            count = 0
            async for _ in items:
                count += 1
                if count == after:
                    break


async def _dispose(stream: Any, source: Source, after: int) -> None:
    """Dispose as soon as so many elements have come, from within the last."""
    seen = Seen(source)
    subscription: list[Any] = []

    def on_next(item: Any) -> None:
        seen.push(item)
        if len(seen.items) == after:
            leave()

    def leave() -> None:
        subscription[0].dispose()
        seen.completed()

    subscription.append(stream.subscribe(on_next, seen.finish, seen.completed))
    if not after:
        leave()
    await finished(seen, leave)


async def failure(trial: Trial) -> None:
    """What a source, or a function of the user's, raises arrives once, and closes everything."""
    traits, case = trial.traits, trial.case
    if traits.passes_errors:
        await _from_source(trial)
    if traits.faulty is None:
        return
    raised: list[Injected] = []

    def boom(*_: object, **__: object) -> Any:
        raised.append(Injected("a function of the user's"))
        raise raised[-1]

    source = Source(case.stream, drawn(case.pace))
    seen = await finished(*watch(traits.faulty(boom)(source.flow()), source))
    if raised and not _is_from(seen.end, raised):
        what = f"a function given to it raised, but it ended with {seen.ending}"
        raise Broken("failure", what, got=told(seen))
    left = await left_over(trial.loop, source)
    if left:
        raise Broken("failure", f"a function given to it raised, and {left}")


async def _from_source(trial: Trial) -> None:
    case = trial.case
    count = case.place(len(case.stream) + 1)
    error = Injected("the source")
    seen = await read(trial.traits.make(), case.stream[:count], drawn(case.pace), error)
    if trial.traits.ends_early and seen.early:
        return
    if isinstance(seen.end, trial.traits.fails):
        return
    if not _is_from(seen.end, [error]):
        what = f"its source failed after {count} elements, but it ended with {seen.ending}"
        raise Broken("failure", what, got=told(seen))
    left = await left_over(trial.loop, seen.source)
    if left:
        raise Broken("failure", f"its source failed, and {left}")
    if seen.late:
        raise Broken("failure", "something comes after the error", after=shown_all(seen.late))
    if trial.traits.timed or not trial.traits.preserves_order:
        return
    if not trial.begins(seen, await trial.base()):
        # Whoever lets out on a failure what it held back gives what it gives at an end.
        ended = await trial.run("cut short", case.stream[:count], drawn(case.pace))
        if not trial.begins(seen, ended):
            what = "before the error comes what never comes without it"
            raise Broken("failure", what, expected=told(ended), got=told(seen))


def _is_from(end: Any, errors: Sequence[BaseException]) -> bool:
    """Whether an error is one of these, or was raised from it."""
    seen = end if isinstance(end, BaseException) else None
    while seen is not None:
        if any(seen is error for error in errors):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


_OPENS: dict[type[Chunk], str] = {TextStart: "text", ReasoningStart: "reasoning"}
_CLOSES: dict[type[Chunk], str] = {TextEnd: "text", ReasoningEnd: "reasoning"}


async def parts(trial: Trial) -> None:
    """Every part that opens closes, and pieces of it stand in between."""
    seen = await trial.base()
    opened: set[str] = set()
    for item in seen.items:
        name = _of(item) if isinstance(item, PARTS) else ""
        if type(item) in _OPENS:
            if name in opened:
                raise Broken("parts", f"{name} opens twice", got=told(seen))
            opened.add(name)
        elif name and name not in opened:
            what = f"{shown(item)} stands outside of its part"
            raise Broken("parts", what, got=told(seen))
        elif type(item) in _CLOSES:
            opened.discard(name)
    if opened and seen.end is COMPLETED and not seen.early:
        raise Broken("parts", f"{', '.join(sorted(opened))} is not closed", got=told(seen))


async def ids(trial: Trial) -> None:
    """What comes out of a part depends on what went into it, not on other parts."""
    stream = trial.case.stream
    names = sorted({_of(item) for item in stream if isinstance(item, PARTS)})
    if len(names) < 2:  # noqa: PLR2004 - nobody to be mixed up with
        return
    name = names[trial.case.place(len(names))]
    base = await trial.base()
    masked = [_masked(item, name) for item in stream]
    seen = await trial.run("with others masked", masked, drawn(trial.case.pace))
    if base.failed or seen.failed or base.early or seen.early:
        return
    got, expected = joined(base.items).get(name, ""), joined(seen.items).get(name, "")
    if got != expected:
        what = f"the text of {name} depends on the text of other parts"
        raise Broken("ids", what, expected=expected, got=got, out=told(base))


def _masked(item: Any, name: str) -> Any:
    """A piece of another part with its text made unreadable; its length may well count."""
    other = isinstance(item, DELTAS) and _of(item) != name
    return replace(item, text="~" * len(item.text)) if other else item


async def metadata(trial: Trial) -> None:
    """Provider metadata comes out once."""
    seen = await trial.base()
    sent = Counter(_keys(trial.case.stream))
    got = Counter(key for key in _keys(seen.items) if key in sent)
    twice = sorted(key for key, count in got.items() if count > sent[key])
    if twice:
        raise Broken("metadata", f"{', '.join(twice)} comes out twice", got=told(seen))
    lost = sorted(key for key in sent if key not in got)
    if lost and not (trial.traits.drops or seen.failed or seen.early):
        what = f"{', '.join(lost)} is lost (say `drops=True` if it may leave chunks out)"
        raise Broken("metadata", what, got=told(seen))


def _keys(items: Sequence[Any]) -> list[str]:
    return [key for item in items for key in getattr(item, "provider_metadata", None) or ()]


async def place(trial: Trial) -> None:
    """Text that came before a tool call, a source or data does not come out behind it."""
    stream = trial.case.stream
    first = next((n for n, item in enumerate(stream) if isinstance(item, TextDelta)), len(stream))
    barriers = [n for n in range(first, len(stream)) if not isinstance(stream[n], PARTS)]
    if not barriers:
        return
    index = barriers[trial.case.place(len(barriers))]
    base = await trial.base()
    passed = _found(stream[index], base.items)
    if passed is None:
        return
    before = [*stream[:index], *_endings(stream[:index])]
    seen = await trial.run("up to a barrier", before, drawn(trial.case.pace))
    if base.failed or seen.failed:
        return
    got, expected = joined(base.items[:passed]), joined(seen.items)
    if got != expected:
        what = f"text that came before {shown(stream[index])} comes out behind it, or the reverse"
        raise Broken("place", what, before_it=expected, got=got, out=told(base))


def _found(barrier: Any, items: Sequence[Any]) -> int | None:
    """Where a chunk came out; what it says may have been rewritten."""

    def mark(item: Any) -> tuple[object, ...]:
        names = ("tool_call_id", "id", "filename")
        return type(item), item.type, *(getattr(item, name, None) for name in names)

    # Two pieces of a call look alike, and text may stand between them: compare them as they are.
    exact = [n for n, item in enumerate(items) if item == barrier]
    if len(exact) == 1:
        return exact[0]
    alike = [
        n for n, item in enumerate(items) if isinstance(item, Chunk) and mark(item) == mark(barrier)
    ]
    return alike[0] if len(alike) == 1 else None


def _endings(stream: Sequence[Any]) -> list[Chunk]:
    """The chunks that close what is open."""
    opened: dict[str, Chunk] = {}
    for item in stream:
        if isinstance(item, TextStart):
            opened[_of(item)] = TextEnd(item.id, run_id=item.run_id)
        elif isinstance(item, ReasoningStart):
            opened[_of(item)] = ReasoningEnd(item.id, run_id=item.run_id)
        elif type(item) in _CLOSES:
            opened.pop(_of(item), None)
    return [replace(chunk) for chunk in opened.values()]


Law = Callable[[Trial], Awaitable[None]]
LAWS: dict[str, Law] = {
    "one end": one_end,
    "order": order,
    "failure": failure,
    "cancel": cancel,
    "isolation": isolation,
    "bound": bound,
    "sources": plain,
    "fusion": fusion,
}
CHUNK_LAWS: dict[str, Law] = {
    "chunking": chunking,
    "parts": parts,
    "ids": ids,
    "metadata": metadata,
    "place": place,
}
