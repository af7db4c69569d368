"""What operators are made of: `Flowable`, and how failures and waits pass through it.

A `Flowable` is an observable with back-pressure: a coroutine that pushes. It is given `emit` and
calls it for every element; what `emit` returns, when it returns something, is awaited before the
next. So a slow end slows the source down through any number of stages, cancelling one task closes
the whole chain, and a stage that only arranges others (concat, catch, feedback) costs nothing per
element, since `emit` passes through it as it is.

Subscribed to as an ordinary observable, it runs as a task of the running asyncio loop; disposing
cancels the task.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from streampipe.abort import TripWire
from streampipe.chunks import Chunk
from streampipe.errors import OperatorError

T = TypeVar("T")

Emit = Callable[[T], Awaitable[Any] | None]
"""Takes an element; returns None, or what has to be awaited before the next one."""
Operator = Callable[[Observable[Chunk]], Observable[Chunk]]

HIGH_WATER = 256
FAIR_SHARE = 256  # elements a driver pushes before it lets other tasks of the loop run


class Escape(BaseException):
    """Carries what a stage's own function raised past the stages before it.

    An exception raised while an element is pushed unwinds through the stages *before* the one at
    fault, where a `catch` would take it for a failure of its source. Wrapped it passes them; the
    end of its own stage unwraps it (see `run_stage`), so that a `catch` behind it does see it.
    """

    def __init__(self, error: BaseException, stage: object = None) -> None:
        """Carry `error` of `stage`, whose end unwraps it; without a stage, the pipeline's does."""
        super().__init__(error)
        self.error = error
        self.stage = stage


class Enough(asyncio.CancelledError):
    """A stage has seen enough: its source is closed, and it completes.

    It unwinds through everything before that stage as a cancel does, since that is what it is to
    them.
    """

    def __init__(self, stage: object) -> None:
        """Carry the stage that completes."""
        super().__init__()
        self.stage = stage


def unwrapped(error: BaseException) -> BaseException:
    """The exception that a subscriber is told of."""
    return error.error if isinstance(error, Escape) else error


FAULTS = (Exception, TripWire, asyncio.CancelledError)
"""What a function of the user's may fail with, a block among it. A cancel is one where it met it by
itself: it waited for a task that somebody had cancelled. See `is_cancel`."""


def is_cancel(error: BaseException) -> bool:
    """Whether it is the running task that is being cancelled, not something it waited for."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    if isinstance(error, Enough):
        return True
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop, so there is nothing to cancel
        return False
    return task is not None and task.cancelling() > 0


def met_cancel(error: BaseException, operator_name: str) -> OperatorError:
    """What a stage failed with that waited for something which was cancelled by somebody else."""
    msg = "something that it waited for was cancelled; the stream itself was not"
    failure = OperatorError(msg, operator=operator_name)
    failure.__cause__ = error
    return failure


class Flow:
    """How much is in flight between a source and its sink, and the wait for room."""

    __slots__ = ("_waiters", "high_water", "pending", "sources")

    def __init__(self, high_water: int = HIGH_WATER) -> None:
        """Allow `high_water` elements in flight before the source has to wait."""
        self.high_water = high_water
        self.pending = 0
        self.sources: set[asyncio.Task[None]] = set()  # tasks that push towards the sink
        self._waiters: list[asyncio.Future[None]] = []

    def take(self, count: int = 1) -> None:
        """Note that elements left; wakes the source once there is room."""
        self.pending -= count
        if self._waiters and self.pending < self.high_water:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def release(self) -> None:
        """Nobody takes elements any more: let the source run to its end."""
        self.high_water = 1 << 62
        self.take(0)

    async def room(self) -> None:
        """Return once fewer than `high_water` elements are in flight."""
        while self.pending >= self.high_water:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter


# The flow of the sink that is being subscribed: how a sink reaches its source through operators
# that know nothing of back-pressure. Tasks made during the subscription inherit it.
current_flow: ContextVar[Flow | None] = ContextVar("current_flow", default=None)


class Flowable(Observable[T]):
    """An observable with back-pressure; see the module's docstring.

    >>> import asyncio
    >>> async def count(emit):
    ...     for number in range(3):
    ...         if (wait := emit(number)) is not None:
    ...             await wait
    >>> got = []
    >>> async def main():
    ...     Flowable(count).subscribe(got.append)
    ...     await asyncio.sleep(0.01)
    >>> asyncio.run(main()); got
    [0, 1, 2]
    """

    def __init__(self, run: Callable[[Emit[T]], Coroutine[Any, Any, None]]) -> None:
        """Wrap a coroutine function that pushes its elements; cold: each subscription runs it.

        Args:
            run: returns when the observable completes, raises when it fails.
        """
        super().__init__(self._drive)
        self.into = run

    def _drive(
        self,
        observer: abc.ObserverBase[T],
        scheduler: abc.SchedulerBase | None = None,  # noqa: ARG002 - Rx's signature
    ) -> abc.DisposableBase:
        driver = _Driver(self.into, observer, current_flow.get())
        return Disposable(driver.dispose)

    def __aiter__(self) -> AsyncIterator[T]:
        """Its elements, as by `to_aiter`; each iteration is a subscription of its own."""
        return pulled(self, HIGH_WATER)


async def run_stage(source: Flowable[T], step: Emit[T], stage: object) -> None:
    """Run a source into the step of a stage.

    What the stage itself raised (as an `Escape` of its own) has passed everything before it, and
    is an ordinary failure for everything behind it.
    """
    try:
        await source.into(step)
    except Escape as escape:
        if escape.stage is not stage:
            raise
        raise escape.error from escape.error.__cause__


class _Driver:
    """The one task that owns a subscription: it runs the source and pushes to the observer."""

    def __init__(
        self,
        run: Callable[[Emit[Any]], Coroutine[Any, Any, None]],
        observer: abc.ObserverBase[Any],
        flow: Flow | None,
    ) -> None:
        self._observer = observer
        self._flow = flow
        self._disposed = False
        self._broken: BaseException | None = None  # what the subscriber's on_next raised
        self._turn = 0
        self._task = asyncio.get_running_loop().create_task(self._own(run))
        if flow is not None:
            flow.sources.add(self._task)
            self._task.add_done_callback(flow.sources.discard)

    def dispose(self) -> None:
        self._disposed = True
        if asyncio.current_task() is not self._task:  # else the next line of _emit ends it
            self._task.cancel()

    def _emit(self, item: Any) -> Awaitable[Any] | None:
        if self._disposed or self._broken is not None:  # whatever the source makes of it
            raise asyncio.CancelledError
        try:
            self._observer.on_next(item)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            self._broken = error
            raise Escape(error) from error
        if self._disposed:
            raise asyncio.CancelledError
        flow = self._flow
        if flow is not None and flow.pending >= flow.high_water:
            return flow.room()
        self._turn += 1
        if self._turn % FAIR_SHARE:
            return None
        return asyncio.sleep(0)

    async def _own(self, run: Callable[[Emit[Any]], Coroutine[Any, Any, None]]) -> None:
        failure: BaseException | None = None
        try:
            await run(self._emit)
        except asyncio.CancelledError as error:
            if self._broken is None and not self._disposed and not is_cancel(error):
                failure = met_cancel(error, "source")
            elif self._broken is None and not self._disposed:  # ended from outside: say so
                self._observer.on_error(asyncio.CancelledError("the stream's task was cancelled"))  # type: ignore[arg-type]  # Rx says Exception
                raise
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - every failure is told to someone
            failure = unwrapped(error)
        else:
            if self._broken is None and not self._disposed:
                self._observer.on_completed()
        failure = self._broken or failure  # a source may make something else of what broke it
        if failure is not None:
            self._fail(failure)

    def _fail(self, error: BaseException) -> None:
        if not self._disposed:
            self._observer.on_error(error)  # type: ignore[arg-type]  # a TripWire is no Exception
            return
        # It detached as it raised, or the source failed after it left: the loop is who remains.
        who = (
            "a subscriber's on_next raised" if error is self._broken else "a closing stream failed"
        )
        context = {"message": who, "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)


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
        except asyncio.CancelledError as error:
            if not is_cancel(error):
                self.end(met_cancel(error, "source"))
                return
            self.end(error)  # ended from outside: its reader must not wait for ever
            raise
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - raised again at the reader
            self.end(unwrapped(error))
        else:
            self.end(None)

    def put(self, item: T) -> bool:
        """Queue an element; returns whether the source has to wait for room now."""
        flow = self.flow
        flow.pending += 1
        self.items.append(item)
        if self._wake is not None:
            self._rouse()
        return flow.pending >= flow.high_water

    def push(self, item: T) -> Awaitable[None] | None:
        """Queue an element; returns the wait for room when there is none left."""
        return self.flow.room() if self.put(item) else None

    def on_next(self, value: T) -> None:
        """Queue an element."""
        self.put(value)

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

    def taken(self, most: int) -> list[T]:
        """Take what is queued, `most` elements at a time; tell the flow once they are used."""
        items = self.items
        if len(items) <= most:
            batch = list(items)
            items.clear()
            return batch
        return [items.popleft() for _ in range(most)]

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
        """End the source, and wait until it has ended.

        Raises:
            BaseException: what the source failed with while it closed.
        """
        was_done = self._done
        if self._subscription is not None:
            self._subscription.dispose()
        tasks = {self._task} if self._task is not None else self.flow.sources
        running = {task for task in tasks if not task.done()} - {asyncio.current_task()}
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        error = self._error
        if not was_done and error is not None and not isinstance(error, asyncio.CancelledError):
            raise error


async def pulled(source: Observable[T], high_water: int) -> AsyncIterator[T]:
    """Read an observable through a bounded buffer; see `to_aiter`."""
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
