"""The laws of operators: each looks at one case and raises `Broken` where it does not hold.

What is drawn is a stream; what an operator does to its elements is not known. So most laws compare
two runs that have to agree: fast and slow, cut here and there, alone and in company.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

import streampipe.operators as ops
from streampipe.chunks import TextDelta, TextEnd, TextStart
from streampipe.testing._bench import (
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
    PARTS,
    Trial,
    part_of,
    recut,
    shown,
    shown_all,
    told,
)

__all__ = ["LAWS", "Injected", "Law"]

HIGH_WATER = 2  # elements that the stalled consumer lets lie
LONG = 40  # elements that the source of a stalled consumer would give


class Injected(Exception):  # noqa: N818 - named for where it comes from
    """What a source or a function raises in a check, so that it can be told from real failures."""


async def one_end(trial: Trial) -> None:
    """A stream ends once, not before its source unless it says so, and nothing comes after."""
    traits = trial.traits
    seen = await trial.base()
    if seen.early and not seen.failed and not traits.ends_early:
        what = "it completes before its source does (say `ends_early=True` if it may)"
        raise Broken("one end", what, got=told(seen))
    await asyncio.sleep(0)  # for what was only put off to the next turn of the loop
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
        lane = part_of(item) if isinstance(item, PARTS) else "others"
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
