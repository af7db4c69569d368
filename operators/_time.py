"""Operators on when elements come: limits, quiet, and signs of life.

The limits put a timer around the source within the one task that there is: they cost no hand-over.
`debounce` and `heartbeat` emit while their source is silent: it runs as a task beside them, and
hands its elements over one at a time.

All times are seconds on the clock of the running loop.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from reactivex import Observable

from streampipe.abort import TripWire
from streampipe.chunks import DataChunk
from streampipe.errors import OperatorError
from streampipe.operators._bridge import flowable
from streampipe.operators._core import FAULTS, Buffer, Emit, Flowable, is_cancel
from streampipe.operators._functions import check_function
from streampipe.operators._fuse import Opened, Stage, fuse
from streampipe.operators._operator import operator
from streampipe.operators._options import checked_seconds

S = TypeVar("S")
T = TypeVar("T")

Rewind = Callable[[Emit[Any], asyncio.Timeout], Emit[Any]]
"""Puts what moves a timer before what takes the elements."""


@asynccontextmanager
async def beside(source: Observable[T]) -> AsyncIterator[Buffer[T]]:
    """Run a source as a task of its own that waits after every element until it was taken."""
    buffer: Buffer[T] = Buffer(1)
    buffer.open(source)
    try:
        yield buffer
    finally:
        await buffer.close()


async def arrives(buffer: Buffer[Any], by: float | None) -> bool | None:
    """Wait for the next element until the loop's clock says `by`; without it, for ever.

    Returns:
        True when there is one, False when the source has completed, None when it is too late.

    Raises:
        BaseException: what the source failed with.
    """
    if buffer.items:
        return True
    timeout = asyncio.timeout_at(by)
    try:
        async with timeout:
            return await buffer.more()
    except TimeoutError:
        if not timeout.expired():  # the source's own
            raise
        return None


def take(buffer: Buffer[T]) -> T:
    """Take an element that is there, and let the source go on."""
    item = buffer.items.popleft()
    buffer.flow.take()
    return item


@operator
def throttle(source: Observable[T], seconds: float) -> Observable[T]:
    """An element, then none of those that come within so many seconds; then the next, and so on.

    It drops elements, so it is for those of which the newest says all: progress, or the snapshots
    of `accumulate_text`.

    Args:
        source: any observable.
        seconds: how long to drop after each element that passes.

    Returns:
        The elements that pass, at the moment they come. It ends as the source does.

    Raises:
        ConfigurationError: `seconds` is no finite number above 0.
    """
    pause = checked_seconds("throttle", "seconds", seconds)

    def open_(emit: Emit[T], _stage: Stage) -> Opened:
        now = asyncio.get_running_loop().time
        closed_until = -math.inf

        def push(item: T) -> Awaitable[Any] | None:
            nonlocal closed_until
            came = now()
            if came < closed_until:
                return None
            closed_until = came + pause
            return emit(item)

        return Opened(push)

    return fuse(source, Stage("throttle", open_, is_async=True))


@operator
def debounce(source: Observable[T], seconds: float) -> Observable[T]:
    """An element once the source has been silent for so many seconds; those before it are dropped.

    Args:
        source: any observable.
        seconds: how long nothing may come after an element for it to pass.

    Returns:
        The last element of every burst, and the last of all when the source completes. When the
        source fails, it fails at once and drops what it holds.

    Raises:
        ConfigurationError: `seconds` is no finite number above 0.
    """
    quiet = checked_seconds("debounce", "seconds", seconds)

    async def run(emit: Emit[T]) -> None:
        now = asyncio.get_running_loop().time
        newest: list[T] = []
        due: float | None = None
        async with beside(source) as buffer:
            while (there := await arrives(buffer, due)) is not False:
                if there:
                    newest = [take(buffer)]
                    due = now() + quiet
                    continue
                due = None
                wait = emit(newest.pop())
                if wait is not None:
                    await wait
        wait = emit(newest.pop()) if newest else None
        if wait is not None:
            await wait

    return Flowable(run)


@operator
def heartbeat(
    source: Observable[T], seconds: float, make: Callable[[], S] | None = None
) -> Observable[T | S | DataChunk]:
    """A sign of life whenever nothing has come for so many seconds: keeps a connection open.

    Args:
        source: any observable.
        seconds: how long a silence lasts before the first sign, and between two of them.
        make: makes the sign; without it, it is a transient `data-heartbeat` chunk.

    Returns:
        The elements with signs of life between them; the first may come before the first element.
        It fails with `OperatorError` when `make` raises, otherwise it ends as the source does.

    Raises:
        ConfigurationError: `seconds` is no finite number above 0, or `make` is no plain
            function.
    """
    longest = checked_seconds("heartbeat", "seconds", seconds)
    if make is not None:
        check_function("heartbeat", "make", make, "map_async, behind it")

    def sign() -> S | DataChunk:
        if make is None:
            return DataChunk("data-heartbeat", transient=True)
        try:
            return make()
        except FAULTS as error:
            if is_cancel(error) or isinstance(error, TripWire):
                raise
            msg = f"make raised {type(error).__name__}"
            raise OperatorError(msg, operator="heartbeat") from error

    async def run(emit: Emit[T | S | DataChunk]) -> None:
        now = asyncio.get_running_loop().time
        async with beside(source) as buffer:
            while (there := await arrives(buffer, now() + longest)) is not False:
                wait = emit(take(buffer) if there else sign())
                if wait is not None:
                    await wait

    return Flowable(run)


@operator
def timeout_first(source: Observable[T], seconds: float) -> Observable[T]:
    """Fail when the first element does not come within so many seconds of subscribing.

    Args:
        source: any observable.
        seconds: how long to wait for the first element, or for the end of an empty source.

    Returns:
        The same elements. When it is too late, the source is closed and the stream fails with
        `OperatorError`.

    Raises:
        ConfigurationError: `seconds` is no finite number above 0.
    """
    longest = checked_seconds("timeout_first", "seconds", seconds)

    def watch(emit: Emit[T], timeout: asyncio.Timeout) -> Emit[T]:
        def push(item: T) -> Awaitable[Any] | None:
            if timeout.when() is not None:
                timeout.reschedule(None)
            return emit(item)

        return push

    failure = f"nothing came within {longest:g} s"
    return _limited(source, longest, watch, "timeout_first", failure)


@operator
def timeout_idle(source: Observable[T], seconds: float) -> Observable[T]:
    """Fail when the source is silent for so many seconds: before, between or after its elements.

    Only the source's own time counts. While a slow reader keeps it waiting, the clock stands.

    Args:
        source: any observable.
        seconds: how long a silence may last.

    Returns:
        The same elements. When it is too late, the source is closed and the stream fails with
        `OperatorError`.

    Raises:
        ConfigurationError: `seconds` is no finite number above 0.
    """
    longest = checked_seconds("timeout_idle", "seconds", seconds)

    def watch(emit: Emit[T], timeout: asyncio.Timeout) -> Emit[T]:
        now = asyncio.get_running_loop().time

        async def resume(wait: Awaitable[Any]) -> None:
            await wait
            timeout.reschedule(now() + longest)

        def push(item: T) -> Awaitable[Any] | None:
            wait = emit(item)
            if wait is None:
                timeout.reschedule(now() + longest)
                return None
            timeout.reschedule(None)
            return resume(wait)

        return push

    failure = f"nothing came for {longest:g} s"
    return _limited(source, longest, watch, "timeout_idle", failure)


@operator
def deadline(source: Observable[T], seconds: float) -> Observable[T]:
    """Fail when the source has not completed within so many seconds of subscribing.

    All of the time counts, that of a slow reader too: what stands behind this operator is
    interrupted where it waits.

    Args:
        source: any observable.
        seconds: how long everything may take.

    Returns:
        The same elements. When it is too late, the source is closed and the stream fails with
        `OperatorError`.

    Raises:
        ConfigurationError: `seconds` is no finite number above 0.
    """
    longest = checked_seconds("deadline", "seconds", seconds)
    failure = f"the stream was not complete within {longest:g} s"
    return _limited(source, longest, lambda emit, _: emit, "deadline", failure)


def _limited(
    source: Observable[T], seconds: float, watch: Rewind, name: str, failure: str
) -> Flowable[T]:
    """A source within a timer that `watch` moves; when it goes off, the operator `name` fails."""
    flow = flowable(source)

    async def run(emit: Emit[T]) -> None:
        timeout = asyncio.timeout(seconds)
        watched = watch(emit, timeout)

        def push(item: T) -> Awaitable[Any] | None:
            if timeout.expired():  # the source emits while it is being closed
                raise asyncio.CancelledError
            return watched(item)

        try:
            async with timeout:
                await flow.into(push)
        except TimeoutError:
            if not timeout.expired():  # the source's own
                raise
            raise OperatorError(failure, operator=name) from None

    return Flowable(run)
