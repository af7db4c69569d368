"""`map_async`: an async function for every element, in order or as they finish."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from reactivex import Observable

from streampipe.operators._bridge import flowable
from streampipe.operators._core import FAULTS, Emit, Flowable, is_cancel
from streampipe.operators._functions import check_async_function, to_await
from streampipe.operators._fuse import Fused, Opened, Stage
from streampipe.operators._operator import operator
from streampipe.operators._options import checked_count

T = TypeVar("T")
R = TypeVar("R")


@operator
def map_async(
    source: Observable[T],
    fn: Callable[[T], Awaitable[R]],
    *,
    concurrency: int = 1,
    ordered: bool = True,
) -> Observable[R]:
    """Await `fn` for every element.

    Args:
        source: any observable.
        fn: an async function.
        concurrency: how many calls may run at once; that many elements are held at most.
        ordered: keep the source's order; otherwise results come as they are ready.

    Returns:
        The results. It fails with `OperatorError` when `fn` raises, and with its `TripWire` when it
        raises that: the source is closed and calls still running are cancelled. Disposing does the
        same without an error.

    Raises:
        ConfigurationError: `fn` is no function, or `concurrency` no whole number of at least 1.
    """
    check_async_function("map_async", "fn", fn)
    checked_count("map_async", "concurrency", concurrency)

    def open_(emit: Emit[R], stage: Stage) -> Opened:
        def push(answer: Answer) -> Awaitable[Any] | None:
            if answer.error is not None:
                raise stage.fault(answer.error, answer.item) from answer.error
            return emit(answer.result)

        return Opened(push)

    return answered(source, fn, Stage("map_async", open_), concurrency, ordered=ordered)


class Answer(NamedTuple):
    """What a call came to.

    Attributes:
        item: the element that it was for.
        result: what it gave.
        error: what it raised; None if it gave a result.
    """

    item: Any
    result: Any = None
    error: BaseException | None = None


def answered(
    source: Observable[Any],
    fn: Callable[[Any], Awaitable[Any]],
    stage: Stage,
    concurrency: int,
    *,
    ordered: bool = True,
    asks: Callable[[Any], bool] | None = None,
) -> Flowable[Any]:
    """Await `fn` for every element; `stage` takes the answers, failures among them, at their turn.

    Where `asks` is false of an element, there is no call for it: its answer is None.

    Together they are one boundary: what the stage raises has passed everything before it.
    """
    if concurrency == 1:
        answers = _one_by_one(source, fn, asks)
    else:
        answers = _windowed(source, fn, concurrency, asks, ordered=ordered)
    return Flowable(Fused(answers, (stage,)).into)


async def _asked(fn: Callable[[Any], Awaitable[Any]], item: Any) -> Answer:
    try:
        return Answer(item, await to_await(fn(item), "fn", "for a plain function there is map"))
    except FAULTS as error:
        if is_cancel(error):
            raise
        return Answer(item, error=error)


def _one_by_one(
    source: Observable[Any],
    fn: Callable[[Any], Awaitable[Any]],
    asks: Callable[[Any], bool] | None,
) -> Flowable[Answer]:
    async def run(emit: Emit[Answer]) -> None:
        async def ask(item: Any) -> None:
            wait = emit(await _asked(fn, item))
            if wait is not None:
                await wait

        def step(item: Any) -> Awaitable[Any] | None:
            return ask(item) if asks is None or asks(item) else emit(Answer(item))

        await flowable(source).into(step)

    return Flowable(run)


class _Window:
    """The calls in flight, and the two waits around them: for room and for an answer."""

    def __init__(self, size: int, *, ordered: bool) -> None:
        self.tasks: deque[asyncio.Future[Answer]] = deque()
        self.size = size
        self.ordered = ordered
        self.changed = asyncio.Event()

    def ready(self) -> asyncio.Future[Answer] | None:
        """The next task whose answer may leave."""
        if self.ordered:
            return self.tasks[0] if self.tasks and self.tasks[0].done() else None
        return next((task for task in self.tasks if task.done()), None)

    async def room(self) -> None:
        while len(self.tasks) >= self.size:
            self.changed.clear()
            await self.changed.wait()


def _windowed(
    source: Observable[Any],
    fn: Callable[[Any], Awaitable[Any]],
    concurrency: int,
    asks: Callable[[Any], bool] | None,
    *,
    ordered: bool,
) -> Flowable[Answer]:
    async def run(emit: Emit[Answer]) -> None:
        window = _Window(concurrency, ordered=ordered)
        loop = asyncio.get_running_loop()

        async def enter(item: Any) -> None:
            await window.room()
            if asks is not None and not asks(item):
                answer: asyncio.Future[Answer] = loop.create_future()
                answer.set_result(Answer(item))
                window.tasks.append(answer)
                window.changed.set()
                return
            task = loop.create_task(_asked(fn, item))
            task.add_done_callback(lambda _: window.changed.set())
            window.tasks.append(task)

        reader = loop.create_task(flowable(source).into(enter))
        reader.add_done_callback(lambda _: window.changed.set())
        try:
            while window.tasks or not reader.done():
                task = window.ready()
                if task is None:
                    window.changed.clear()
                    await window.changed.wait()
                    continue
                window.tasks.remove(task)
                window.changed.set()
                wait = emit(task.result())
                if wait is not None:
                    await wait
            await reader
        finally:
            await _closed(reader, window.tasks)

    return Flowable(run)


async def _closed(reader: asyncio.Task[None], calls: deque[asyncio.Future[Answer]]) -> None:
    """Cancel what still runs, and wait until it has ended.

    Raises:
        BaseException: what the source failed with while it closed.
    """
    was_done = reader.done()
    every: list[asyncio.Future[Any]] = [reader, *calls]
    running = [task for task in every if not task.done()]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running)
    for task in calls:
        if not task.cancelled():
            task.exception()  # nobody else asks
    error = None if reader.cancelled() else reader.exception()
    if not was_done and error is not None:
        raise error
