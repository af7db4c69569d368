"""The bench that operators are tried on: sources that tell what was done to them, runs, witnesses.

Everything happens on a jumping clock, so a source that pauses for ten seconds costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from streampipe.chunks import Chunk
from streampipe.operators import Flowable
from streampipe.operators._core import Emit, unwrapped

__all__ = [
    "COMPLETED",
    "AnyOperator",
    "Broken",
    "Pace",
    "Seen",
    "Source",
    "cleared",
    "copied",
    "drawn",
    "finished",
    "left_over",
    "read",
    "slow",
    "turning",
    "watch",
]

AnyOperator = Callable[[Observable[Any]], Observable[Any]]
COMPLETED = "completed"
DEADLINE = 3600.0  # virtual seconds after which a stream that is still open counts as stuck
PATIENCE = 25  # turns of the loop that whatever was closed has for ending

Pace = Callable[[int], float | None]
"""How long a source pauses after its n-th element, in seconds; None is not at all."""


class Broken(Exception):  # noqa: N818 - a finding on its way to the report, which is the error
    """A law does not hold.

    Attributes:
        law: its name.
        what: what happened instead.
        facts: what to show of it, by title.
    """

    def __init__(self, law: str, what: str, **facts: object) -> None:
        """Say which law, and how it is broken."""
        super().__init__(law, what)
        self.law = law
        self.what = what
        self.facts = facts


def slow(_: int) -> float:
    """Ten seconds between two elements: everything has time to finish."""
    return 10.0


def turning(_: int) -> float:
    """One turn of the loop between two elements: others get theirs."""
    return 0.0


def drawn(bits: int) -> Pace:
    """Pauses out of the bits of a number; 0 is a source that never pauses."""
    pauses = (None, 0.0, 0.01, 1.0)
    return lambda index: pauses[bits >> 2 * (index % 24) & 3]


def copied(item: Any) -> Any:
    """A chunk of one's own, so that an operator that changes it in place changes no other run."""
    if not isinstance(item, Chunk):
        return item
    cls: Any = type(item)
    own = object.__new__(cls)
    for name in _names(cls):  # in half of `replace`'s time: a check copies most of all
        setattr(own, name, getattr(item, name))
    return own


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls))


class Source:
    """A stream of known elements that tells what was done to it.

    Attributes:
        sent: the very elements that the newest subscription got.
        opened: how many subscriptions began.
        closed: how many ended, whatever the way.
        finished: whether the newest subscription got everything.
    """

    def __init__(
        self,
        items: Sequence[Any],
        pace: Pace = slow,
        error: BaseException | None = None,
    ) -> None:
        """Give `items`, pausing after each; then fail with `error`, if there is one."""
        self.sent: list[Any] = []
        self.opened = 0
        self.closed = 0
        self.finished = False
        self._items = items
        self._pace = pace
        self._error = error

    def flow(self) -> Flowable[Any]:
        """As a `Flowable`: it waits for whoever reads it."""
        return Flowable(self._run)

    def plain(self) -> Observable[Any]:
        """As an ordinary observable: it pushes, and knows of no waiting."""

        def subscribe(
            observer: abc.ObserverBase[Any], _: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            task = asyncio.get_running_loop().create_task(self._push(observer))
            return Disposable(lambda: _cancel(task))

        return Observable(subscribe)

    async def _run(self, emit: Emit[Any]) -> None:
        self.opened += 1
        self.finished = False
        self.sent = sent = []
        pace = self._pace
        try:
            for index, item in enumerate(self._items):
                mine = copied(item)
                sent.append(mine)
                wait = emit(mine)
                if wait is not None:
                    await wait
                pause = pace(index)
                if pause is not None:
                    await asyncio.sleep(pause)
            self.finished = True
            if self._error is not None:
                raise self._error
        finally:
            self.closed += 1

    async def _push(self, observer: abc.ObserverBase[Any]) -> None:
        try:
            await self._run(observer.on_next)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the observer's
            observer.on_error(error)  # type: ignore[arg-type]  # Rx says Exception
        else:
            observer.on_completed()


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


class Seen:
    """What came of a subscription.

    Attributes:
        items: the elements.
        needed: how many elements the source had given by then, for each.
        end: `COMPLETED`, what it failed with, or None while it goes on.
        early: whether it ended before its source did.
        late: what came after the end.
    """

    def __init__(self, source: Source) -> None:
        """Watch what a source becomes."""
        self.source = source
        self.items: list[Any] = []
        self.needed: list[int] = []
        self.end: Any = None
        self.early = False
        self.late: list[Any] = []
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def failed(self) -> bool:
        """Whether it ended with an error."""
        return self.end is not None and self.end is not COMPLETED

    @property
    def ending(self) -> str:
        """The end in words."""
        return repr(self.end) if self.failed else str(self.end)

    def push(self, item: Any) -> None:
        """Take an element."""
        if self.end is not None:
            self.late.append(item)
            return
        self.items.append(item)
        self.needed.append(len(self.source.sent))

    def finish(self, end: object) -> None:
        """Take the end."""
        if self.end is not None:
            self.late.append(end)
            return
        self.end = end
        self.early = not self.source.finished
        if not self.over.done():
            self.over.set_result(None)

    def completed(self) -> None:
        """Take the end of a stream that ended well."""
        self.finish(COMPLETED)

    async def drive(self, stream: Flowable[Any], push: Emit[Any] | None = None) -> None:
        """Run a flow to its end, without the guards that a subscription puts around it."""
        try:
            await stream.into(push or self.push)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            self.finish(unwrapped(error))
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            self.completed()

    def expire(self) -> None:
        """Give up waiting."""
        if not self.over.done():
            self.over.set_result(None)


def watch(stream: Observable[Any], source: Source) -> tuple[Seen, Callable[[], object]]:
    """Subscribe; returns what will be seen, and how to leave.

    A `Flowable` is driven directly: Rx's own guard would hide what comes after the end.
    """
    seen = Seen(source)
    if isinstance(stream, Flowable):
        task = asyncio.get_running_loop().create_task(seen.drive(stream))
        return seen, task.cancel
    subscription = stream.subscribe(seen.push, seen.finish, seen.completed)
    return seen, subscription.dispose


async def finished(seen: Seen, leave: Callable[[], object]) -> Seen:
    """Wait for the end of a subscription.

    Raises:
        Broken: it does not end.
    """
    deadline = asyncio.get_running_loop().call_later(DEADLINE, seen.expire)
    await seen.over
    deadline.cancel()
    if seen.end is None:
        leave()
        raise Broken("one end", "it neither completes nor fails, although its source has ended")
    return seen


async def read(
    operator: AnyOperator,
    items: Sequence[Any],
    pace: Pace,
    error: BaseException | None = None,
    *,
    plain: bool = False,
) -> Seen:
    """Run elements through an operator, from its beginning to its end.

    Raises:
        Broken: it does not end.
    """
    source = Source(items, pace, error)
    stream = operator(source.plain() if plain else source.flow())
    return await finished(*watch(stream, source))


async def left_over(loop: Any, source: Source) -> str:
    """What is still going on, in words, after what was closed had its time; "" if nothing is."""
    me = asyncio.current_task()
    tasks: set[asyncio.Task[Any]] = set()
    for _ in range(PATIENCE):
        tasks = asyncio.all_tasks() - {me}
        if not tasks:
            break
        await asyncio.sleep(0)
    if source.opened > source.closed:
        return f"the source is still open, {len(source.sent)} elements taken from it"
    if tasks:
        names = ", ".join(sorted(map(_named, tasks)))
        return f"a task is left running: {names}"
    timers = loop.pending_timers()
    return f"a timer is left: {timers} calls are planned for later" if timers else ""


def _named(task: asyncio.Task[Any]) -> str:
    coroutine = task.get_coro()
    return str(getattr(coroutine, "__qualname__", coroutine))


async def cleared() -> None:
    """Cancel whatever the last example left behind."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=1)
