"""Operators that are broken on purpose, each with an honest twin: what the kit is worth.

A fault is what somebody could have written. The kit has to find it, by the law that it breaks, with
nothing said that would not be said of the twin, and has nothing to find in the twin.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import strategies as st
from reactivex import Observable

from streampipe.chunks import (
    Chunk,
    DataChunk,
    ReasoningSignature,
    SourceChunk,
    StepFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
)
from streampipe.operators import Flowable, from_aiter, map_async, to_aiter
from streampipe.testing import LawError, check_operator

Emit = Callable[[Any], Awaitable[Any] | None]
Operator = Callable[[Observable[Any]], Observable[Any]]
Step = Callable[[Any, "Out"], Awaitable[None]]

SECRET = "secret"  # noqa: S105 - what the redactors look for
SECRETIVE = st.lists(st.sampled_from(["s", "e", "c", "r", "t", SECRET, "sec", "ret", " "]))
HIDDEN = {"texts": SECRETIVE.map("".join), "text_of_whole": lambda t: t.replace(SECRET, "[X]")}


MISSING: Any = object()


@dataclass
class Out:
    """Where an operator's elements go, and what it keeps for a subscription."""

    emit: Emit
    held: list[Any] = field(default_factory=list)

    async def __call__(self, *items: Any) -> None:
        """Emit, and wait as long as is asked for."""
        for item in items:
            wait = self.emit(item)
            if wait is not None:
                await wait


async def nothing(out: Out) -> None:
    """Have no last word."""


def stage(step: Step, flush: Callable[[Out], Awaitable[None]] = nothing) -> Operator:
    """An operator of a coroutine for each element, and one for the end."""

    def apply(source: Observable[Any]) -> Observable[Any]:
        async def run(emit: Emit) -> None:
            out = Out(emit)
            async for item in reading(source):
                await step(item, out)
            await flush(out)

        return Flowable(run)

    return apply


def reading(source: Observable[Any]) -> Any:
    """A source, element by element, with nothing read ahead."""
    return to_aiter(source, high_water=1)


# --- hold-back -----------------------------------------------------------------------------


def redact(hold: int) -> Operator:
    """Hide a word that may come in pieces, holding back so many characters of each text."""

    async def step(item: Any, out: Out) -> None:
        if not isinstance(item, TextDelta):
            await release(out, item.id if isinstance(item, TextStart | TextEnd) else None)
            await out(item)
            return
        held = {chunk.id: chunk for chunk in out.held}
        before = held.get(item.id)
        if before is not None:
            out.held.remove(before)
        text = (before.text if before else "") + item.text
        text = text.replace(SECRET, "[X]")
        keep = next((n for n in range(min(hold, len(text)), 0, -1) if is_start(text[-n:])), 0)
        both = {
            **(before.provider_metadata or {} if before else {}),
            **(item.provider_metadata or {}),
        }
        if keep:
            kept = replace(item, text=text[len(text) - keep :], provider_metadata=both or None)
            out.held.append(kept)
            both = {}
        if text[: len(text) - keep] or both:
            made = replace(item, text=text[: len(text) - keep], provider_metadata=both or None)
            await out(made)

    async def release(out: Out, only: str | None) -> None:
        going = [chunk for chunk in out.held if only in (None, chunk.id)]
        out.held[:] = [chunk for chunk in out.held if chunk not in going]
        await out(*going)

    return stage(step, lambda out: release(out, None))


def is_start(text: str) -> bool:
    """Whether a text may yet become the secret."""
    return SECRET.startswith(text)


# --- ends ----------------------------------------------------------------------------------


def passing(*, until: Callable[[Any], bool]) -> Operator:
    """Let elements pass, up to one."""

    def apply(source: Observable[Any]) -> Observable[Any]:
        async def run(emit: Emit) -> None:
            out = Out(emit)
            async for item in reading(source):
                await out(item)
                if until(item):
                    return

        return Flowable(run)

    return apply


def batched(*, flush: bool) -> Operator:
    """Three pieces of text at a time; at the end, what is left."""

    async def step(item: Any, out: Out) -> None:
        if isinstance(item, TextDelta):
            out.held.append(item)
        if not isinstance(item, TextDelta) or len(out.held) == 3:
            if flush or len(out.held) == 3 or isinstance(item, TextDelta):
                await out(*out.held)
            out.held.clear()
            if not isinstance(item, TextDelta):
                await out(item)

    return stage(step)


def swallowing(kinds: type[BaseException]) -> Operator:
    """Take some failures of the source for its end."""

    def apply(source: Observable[Any]) -> Observable[Any]:
        async def run(emit: Emit) -> None:
            out = Out(emit)
            try:
                async for item in reading(source):
                    await out(item)
            except kinds:
                return

        return Flowable(run)

    return apply


# --- tasks ---------------------------------------------------------------------------------


def ticking(*, stop: bool) -> Operator:
    """Count seconds beside the stream."""

    def apply(source: Observable[Any]) -> Observable[Any]:
        async def run(emit: Emit) -> None:
            out = Out(emit)

            async def tick() -> None:
                while True:  # noqa: ASYNC110 - a clock that ticks has nothing else to wait for
                    await asyncio.sleep(1)

            task = asyncio.get_running_loop().create_task(tick())
            try:
                async for item in reading(source):
                    await out(item)
            finally:
                if stop:
                    task.cancel()

        return Flowable(run)

    return apply


async def moody(item: Any) -> Any:
    """Take a different time for different elements."""
    await asyncio.sleep(0.01 * (len(repr(item)) % 3))
    return item


def queued(*, size: int) -> Operator:
    """Read the source in a task of its own, ahead of whoever reads from here."""

    def apply(source: Observable[Any]) -> Observable[Any]:
        async def ahead() -> AsyncIterator[Any]:
            queue: asyncio.Queue[Any] = asyncio.Queue(size)
            end = object()

            async def fill() -> None:
                try:
                    async for item in reading(source):
                        await queue.put(item)
                except Exception:
                    await queue.put(end)
                    raise
                await queue.put(end)

            task = asyncio.get_running_loop().create_task(fill())
            try:
                while (item := await queue.get()) is not end:
                    yield item
                await task
            finally:
                task.cancel()
                await asyncio.wait({task})

        return from_aiter(ahead)

    return apply


# --- state and chunks ----------------------------------------------------------------------


def numbered(*, shared: bool) -> Operator:
    """Number the pieces of text."""
    everywhere: list[int] = []

    def apply(source: Observable[Any]) -> Observable[Any]:
        async def run(emit: Emit) -> None:
            count = everywhere if shared else []
            out = Out(emit)
            async for item in reading(source):
                if isinstance(item, TextDelta):
                    count.append(1)
                    await out(replace(item, text=f"{len(count)}:{item.text}"))
                else:
                    await out(item)

        return Flowable(run)

    return apply


def merged(*, same_part: bool) -> Operator:
    """Join neighbouring pieces of text."""

    async def flush(out: Out) -> None:
        held = out.held.copy()
        out.held.clear()
        await out(*held)

    async def step(item: Any, out: Out) -> None:
        last: Any = next(iter(out.held), MISSING)
        joins = isinstance(item, TextDelta) and last is not MISSING
        if joins and (last.id == item.id or not same_part):
            both = {**(last.provider_metadata or {}), **(item.provider_metadata or {})}
            text = last.text + item.text
            out.held[0] = replace(last, text=text, provider_metadata=both or None)
            return
        await flush(out)
        if isinstance(item, TextDelta):
            out.held.append(item)
        else:
            await out(item)

    return stage(step, flush)


def late(*, barrier: Callable[[Chunk], bool]) -> Operator:
    """Hold one piece of each text back, up to the next or to what is a barrier."""

    async def step(item: Any, out: Out) -> None:
        if isinstance(item, TextDelta):
            before = [chunk for chunk in out.held if chunk.id == item.id]
            out.held[:] = [chunk for chunk in out.held if chunk.id != item.id]
            await out(*before)
            out.held.append(item)
            return
        going = [c for c in out.held if barrier(item) or c.id == getattr(item, "id", None)]
        out.held[:] = [chunk for chunk in out.held if chunk not in going]
        await out(*going, item)

    return stage(step)


def never(_: object) -> bool:
    """No element is this."""
    return False


@dataclass(frozen=True)
class Fault:
    """A broken operator, the law that it breaks, its honest twin, and what is said of both."""

    law: str
    broken: Callable[[], Operator]
    honest: Callable[[], Operator]
    options: dict[str, Any] = field(default_factory=dict)


def changed(fn: Callable[[Any], Any]) -> Callable[[], Operator]:
    """An operator that makes something else of single chunks; None drops them."""

    async def step(item: Any, out: Out) -> None:
        made = fn(item)
        await out(*[] if made is None else [made])

    return lambda: stage(step)


def said(fn: Callable[[str], str]) -> Callable[[], Operator]:
    """An operator that makes another text of each piece."""
    return changed(lambda c: replace(c, text=fn(c.text)) if isinstance(c, TextDelta) else c)


def called(**values: Any) -> Callable[[], Operator]:
    """An operator that changes calls."""
    return changed(lambda c: replace(c, **values) if isinstance(c, ToolCall) else c)


def without(*kinds: type[Chunk]) -> Callable[[], Operator]:
    """An operator that forgets to pass some kinds of chunk."""
    return changed(lambda c: None if isinstance(c, kinds) else c)


def cut_off(most: int, size: Callable[[str], int] = len) -> Callable[[], Operator]:
    """An operator that loses what comes behind so many characters, or so many pieces."""

    async def step(item: Any, out: Out) -> None:
        if isinstance(item, TextStart):
            out.held.clear()
        if isinstance(item, TextDelta):
            left = max(0, most - sum(out.held))
            out.held.append(size(item.text))
            item = replace(item, text=item.text[:left] if size is len or not left else item.text)
        await out(item)

    return lambda: stage(step)


def halved() -> Operator:
    """Cut each piece in two, and give the metadata to both."""

    async def step(item: Any, out: Out) -> None:
        if isinstance(item, TextDelta) and len(item.text) > 1:
            await out(replace(item, text=item.text[:1]), replace(item, text=item.text[1:]))
        else:
            await out(item)

    return stage(step)


MISSED = {
    "metadata of both halves": ("metadata", halved),
    "wiped arguments": ("others", called(args={})),
    "another call id": ("others", called(tool_call_id="new")),
    "lost signature": ("others", without(ReasoningSignature)),
    "lost sources": ("others", without(SourceChunk)),
    "lost run": (
        "others",
        changed(lambda c: replace(c, run_id="") if isinstance(c, TextDelta) else c),
    ),
    "composed piece by piece": ("long", said(lambda text: unicodedata.normalize("NFC", text))),
    "line ends piece by piece": ("long", said(lambda text: text.replace("\r\n", "\n"))),
    "cut off after 30 characters": ("long", cut_off(30)),
    "cut off after 20 pieces": ("long", cut_off(20, lambda text: 1)),
}
"""Faults that all the other laws let pass; their honest twin passes everything as it is."""


@pytest.mark.parametrize("name", MISSED)
def test_what_is_lost_or_changed_is_found(name: str) -> None:
    """In few cases, whatever is drawn."""
    law, broken = MISSED[name]
    with pytest.raises(LawError) as caught:
        check_operator(broken)
    assert caught.value.law in {law, "chunking"}


def test_what_may_be_changed_or_lost_is_not_found() -> None:
    """Once it is said; and who changes nothing passes without saying anything."""
    check_operator(changed(lambda c: c))
    check_operator(called(args={}), rewrites=True, laws=["others"])
    check_operator(without(SourceChunk), drops=True, laws=["others"])
    check_operator(late_at_a_void, forgets=False, laws=["void"])


def late_at_a_void() -> Operator:
    """Hold one piece of each text back, over a void too."""
    return late(barrier=lambda chunk: not isinstance(chunk, StepFinish))


def overtaken(*, by_a_piece: bool) -> Operator:
    """Let calls go; or keep each until a piece of text has come, and let that go first."""

    async def step(item: Any, out: Out) -> None:
        if by_a_piece and isinstance(item, ToolCall | SourceChunk | DataChunk):
            out.held.append(item)
            return
        waiting = out.held.copy()
        out.held.clear()
        await out(*[item, *waiting] if isinstance(item, TextDelta) else [*waiting, item])

    async def flush(out: Out) -> None:
        await out(*out.held)

    return stage(step, flush)


FAULTS = {
    "text before the call that it came behind": Fault(
        "stretches", lambda: overtaken(by_a_piece=True), lambda: overtaken(by_a_piece=False)
    ),
    "kept over a void": Fault("void", late_at_a_void, lambda: late(barrier=lambda chunk: True)),
    "off-by-one hold-back": Fault("chunking", lambda: redact(4), lambda: redact(5), HIDDEN),
    "early terminal": Fault(
        "one end",
        lambda: passing(until=lambda item: isinstance(item, TextEnd)),
        lambda: passing(until=never),
    ),
    "dropped tail": Fault(
        "long", lambda: batched(flush=False), lambda: batched(flush=True), {"drops": True}
    ),
    "leaked task": Fault("cancel", lambda: ticking(stop=False), lambda: ticking(stop=True)),
    "shared state": Fault(
        "isolation",
        lambda: numbered(shared=True),
        lambda: numbered(shared=False),
        {"chunking": False, "laws": {"isolation", "one end", "cancel", "failure"}},
    ),
    "unordered async": Fault(
        "order",
        lambda: map_async(moody, concurrency=3, ordered=False),
        lambda: map_async(moody, concurrency=3),
        {"allowance": 5},
    ),
    "swallowed error": Fault(
        "failure", lambda: swallowing(Exception), lambda: swallowing(ZeroDivisionError)
    ),
    "unbounded buffer": Fault(
        "bound", lambda: queued(size=0), lambda: queued(size=3), {"allowance": 6}
    ),
    "wrong id on merge": Fault(
        "ids", lambda: merged(same_part=False), lambda: merged(same_part=True)
    ),
    "text after tool call": Fault(
        "place",
        lambda: late(barrier=lambda chunk: isinstance(chunk, TextStart)),
        lambda: late(barrier=lambda chunk: True),
    ),
}


@pytest.fixture(params=list(FAULTS.values()), ids=list(FAULTS))
def fault(request: pytest.FixtureRequest) -> Fault:
    """Each fault."""
    found = request.param
    assert isinstance(found, Fault)
    return found


def test_a_fault_is_found_by_the_law_that_it_breaks(fault: Fault) -> None:
    """A broken operator fails its check, and the message names the law."""
    with pytest.raises(LawError) as caught:
        check_operator(fault.broken, **fault.options)
    assert caught.value.law == fault.law
    assert f"law {fault.law!r} is broken" in str(caught.value)


def test_an_honest_twin_passes(fault: Fault) -> None:
    """The same operator without the fault passes the same check."""
    check_operator(fault.honest, **fault.options)
