"""Between observables and async iterators, with back-pressure both ways."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

from reactivex import Observable

from streampipe.operators._core import HIGH_WATER, Emit, Flowable, pulled
from streampipe.operators._options import checked_count

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
        ConfigurationError: `high_water` is no whole number of at least 1.
    """
    return pulled(source, checked_count("to_aiter", "high_water", high_water))


def flowable(source: Observable[T]) -> Flowable[T]:
    """Any observable as a `Flowable`: itself if it is one, else through a bounded buffer."""
    if isinstance(source, Flowable):
        return source

    async def run(emit: Emit[T]) -> None:
        async with aclosing(pulled(source, HIGH_WATER)) as items:  # type: ignore[type-var]  # a generator
            async for item in items:
                wait = emit(item)
                if wait is not None:
                    await wait

    return Flowable(run)
