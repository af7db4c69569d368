"""`map_async`: an async function for every element, in order or as they finish."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from reactivex import Observable

from streampipe.errors import ConfigurationError
from streampipe.operators._bridge import flowable
from streampipe.operators._core import (
    FAULTS,
    Emit,
    Escape,
    Flowable,
    is_cancel,
    met_cancel,
    run_stage,
)
from streampipe.operators._operator import operator

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
        The results. What `fn` raises ends the stream with that error: the source is closed and
        calls still running are cancelled. Disposing does the same without an error.

    Raises:
        ConfigurationError: `concurrency` is below 1.
    """
    if concurrency < 1:
        msg = f"map_async: concurrency must be at least 1, not {concurrency}"
        raise ConfigurationError(msg)
    if concurrency == 1:
        return _one_by_one(source, fn)
    return _windowed(source, fn, concurrency, ordered=ordered)


def _one_by_one(source: Observable[T], fn: Callable[[T], Awaitable[R]]) -> Flowable[R]:
    async def run(emit: Emit[R]) -> None:
        stage = object()

        async def step(item: T) -> None:
            try:
                result = await fn(item)
            except FAULTS as error:
                if is_cancel(error):
                    raise
                raise Escape(_fault(error), stage) from error
            wait = emit(result)
            if wait is not None:
                await wait

        await run_stage(flowable(source), step, stage)

    return Flowable(run)


class _Window:
    """The calls in flight, and the two waits around them: for room and for a result."""

    def __init__(self, size: int, *, ordered: bool) -> None:
        self.tasks: deque[asyncio.Task[Any]] = deque()
        self.size = size
        self.ordered = ordered
        self.changed = asyncio.Event()

    def ready(self) -> asyncio.Task[Any] | None:
        """The next task whose result may leave."""
        if self.ordered:
            return self.tasks[0] if self.tasks and self.tasks[0].done() else None
        return next((task for task in self.tasks if task.done()), None)

    async def room(self) -> None:
        while len(self.tasks) >= self.size:
            self.changed.clear()
            await self.changed.wait()


def _windowed(
    source: Observable[T],
    fn: Callable[[T], Awaitable[R]],
    concurrency: int,
    *,
    ordered: bool,
) -> Flowable[R]:
    async def run(emit: Emit[R]) -> None:
        window = _Window(concurrency, ordered=ordered)

        async def call(item: T) -> R:
            return await fn(item)

        async def enter(item: T) -> None:
            await window.room()
            task = asyncio.get_running_loop().create_task(call(item))
            task.add_done_callback(lambda _: window.changed.set())
            window.tasks.append(task)
            await asyncio.sleep(0)

        reader = asyncio.get_running_loop().create_task(flowable(source).into(enter))
        reader.add_done_callback(lambda _: window.changed.set())
        try:
            while window.tasks or not reader.done():
                task = window.ready()
                if task is None:
                    if reader.done() and not window.tasks:
                        break
                    window.changed.clear()
                    await window.changed.wait()
                    continue
                window.tasks.remove(task)
                window.changed.set()
                wait = emit(_result(task))
                if wait is not None:
                    await wait
            await reader
        finally:
            await _end(reader, *window.tasks)

    return Flowable(run)


def _result(task: asyncio.Task[R]) -> R:
    """A call's result; no escape is needed, since the source runs beside and not above."""
    try:
        return task.result()
    except asyncio.CancelledError as error:
        raise _fault(error) from error


def _fault(error: BaseException) -> BaseException:
    return met_cancel(error, "map_async") if isinstance(error, asyncio.CancelledError) else error


async def _end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks, wait for them, and take note of how they ended."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running)
    for task in tasks:
        if not task.cancelled():
            task.exception()
