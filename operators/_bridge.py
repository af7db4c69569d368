"""Between observables and async iterators, with back-pressure both ways."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

from reactivex import Observable, abc

from streampipe.operators._core import (
    HIGH_WATER,
    Emit,
    Flow,
    Flowable,
    current_flow,
    unwrapped,
)

T = TypeVar("T")


def from_aiter(source: AsyncIterable[T] | Callable[[], AsyncIterable[T]]) -> Flowable[T]:
    """An async iterable as an observable; its iterator is closed when the subscription ends.

    Args:
        source: an async iterable, or a function that makes one: then each subscription gets its
            own. An async *generator* object serves one subscription only.

    Returns:
        A `Flowable`. It completes, fails or is cancelled as the iterator is; a slow subscriber
        slows the iterator down.
    """

    async def run(emit: Emit[T]) -> None:
        items = aiter(source() if callable(source) else source)
        try:
            async for item in items:
                wait = emit(item)
                if wait is not None:
                    await wait
        finally:
            close: Callable[[], Awaitable[None]] | None = getattr(items, "aclose", None)
            if close is not None:
                await close()

    return Flowable(run)


def to_aiter(source: Observable[T], *, high_water: int = HIGH_WATER) -> AsyncIterator[T]:
    """An observable as an async iterator.

    The source is subscribed to at the first `anext`. It is asked to wait while `high_water`
    elements lie unread; the request passes through Rx operators in between to every
    `from_aiter`, `Flowable` or run at the source. A source that pushes on its own, such as a
    `Subject` or an interval, cannot wait: its elements queue up.

    Args:
        source: any observable.
        high_water: how many elements may lie unread, at least 1.

    Returns:
        An async generator; closing it (leaving `async with aclosing(...)`) ends the source and
        waits until it has ended. It raises what the source failed with.

    Raises:
        ValueError: `high_water` is below 1.
    """
    if high_water < 1:
        msg = f"to_aiter: high_water must be at least 1, not {high_water}"
        raise ValueError(msg)
    return _pulled(source, high_water)


async def _pulled(source: Observable[T], high_water: int) -> AsyncIterator[T]:
    buffer: Buffer[T] = Buffer(high_water)
    items, flow = buffer.items, buffer.flow
    buffer.open(source)
    try:
        while True:
            while items:
                item = items.popleft()
                flow.take()
                yield item
            if not await buffer.more():
                return
    finally:
        await buffer.close()


class Buffer(abc.ObserverBase[T]):
    """The bounded queue between an observable and its one reader."""

    def __init__(self, high_water: int) -> None:
        """Start empty."""
        self.items: deque[T] = deque()
        self.flow = Flow(high_water)
        self._done = False
        self._error: BaseException | None = None
        self._wake: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._subscription: abc.DisposableBase | None = None

    def open(self, source: Observable[T]) -> None:
        """Start the source: a `Flowable` as a task of ours, anything else by subscribing."""
        if isinstance(source, Flowable):
            self._task = asyncio.get_running_loop().create_task(self._own(source))
            return
        token = current_flow.set(self.flow)
        try:
            self._subscription = source.subscribe(self)
        finally:
            current_flow.reset(token)

    async def _own(self, source: Flowable[T]) -> None:
        try:
            await source.into(self.push)
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - raised again at the reader
            self.end(unwrapped(error))
        else:
            self.end(None)

    def push(self, item: T) -> Awaitable[None] | None:
        """Queue an element; returns the wait for room when there is none left."""
        self.items.append(item)
        flow = self.flow
        flow.pending += 1
        wake = self._wake
        if wake is not None:
            self._wake = None
            if not wake.done():
                wake.set_result(None)
        return flow.room() if flow.pending >= flow.high_water else None

    def on_next(self, value: T) -> None:
        """Queue an element."""
        self.flow.pending += 1
        self.items.append(value)
        self._rouse()

    def on_error(self, error: Exception) -> None:
        """End with an error."""
        self.end(error)

    def on_completed(self) -> None:
        """End well."""
        self.end(None)

    def end(self, error: BaseException | None) -> None:
        """End, well or with an error; what is queued can still be read."""
        self._done = True
        self._error = error
        self._rouse()

    def _rouse(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None and not wake.done():
            wake.set_result(None)

    async def more(self) -> bool:
        """Wait until there is an element (True) or the source has completed (False).

        Raises:
            BaseException: what the source failed with.
        """
        while not self.items:
            if self._done:
                if self._error is not None:
                    raise self._error
                return False
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        return True

    async def close(self) -> None:
        """End the source, and wait until it has ended."""
        if self._subscription is not None:
            self._subscription.dispose()
            await asyncio.sleep(0)
        task = self._task
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})


def flowable(source: Observable[T]) -> Flowable[T]:
    """Any observable as a `Flowable`: itself if it is one, else through a bounded buffer."""
    if isinstance(source, Flowable):
        return source

    async def run(emit: Emit[T]) -> None:
        async with aclosing(_pulled(source, HIGH_WATER)) as items:  # type: ignore[type-var]
            async for item in items:
                wait = emit(item)
                if wait is not None:
                    await wait

    return Flowable(run)
