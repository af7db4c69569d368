"""`no_leaks`: what a block of code leaves behind is an error."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from types import AsyncGeneratorType
from typing import Any

__all__ = ["no_leaks"]

TURNS = 25  # of the loop, that what was closed has for ending without any time passing
LOOKS = 10  # how often is looked at what takes time


@asynccontextmanager
async def no_leaks(*, patience: float = 0.1) -> AsyncIterator[None]:
    """Check that a block leaves no task, no open source and no complaint behind.

    Looked at are tasks that began within the block; async generators that were first read within
    it, and are neither at their end nor closed (the sources of `from_aiter`, a model's stream); and
    whatever the event loop's exception handler was told meanwhile, such as an exception that nobody
    retrieved.

    A block that raises is not looked at: its own error says more.

    >>> import asyncio
    >>> async def leak():
    ...     async with no_leaks():
    ...         task = asyncio.create_task(asyncio.sleep(60), name="forgotten")
    >>> asyncio.run(leak())
    Traceback (most recent call last):
    AssertionError: left behind: task 'forgotten' still runs

    Args:
        patience: how long what is being closed may take, in seconds of the loop's clock; a socket
            needs some. Nobody waits longer than until everything has ended.

    Yields:
        Nothing.

    Raises:
        AssertionError: something was left behind; the message lists it.
        BaseException: what the block raises.
    """
    loop = asyncio.get_running_loop()
    before = asyncio.all_tasks()
    complaints: list[dict[str, Any]] = []
    opened: weakref.WeakSet[AsyncGeneratorType[Any, Any]] = weakref.WeakSet()
    handler, hooks = loop.get_exception_handler(), sys.get_asyncgen_hooks()

    def first_read(generator: AsyncGenerator[Any, Any]) -> None:
        if isinstance(generator, AsyncGeneratorType):
            opened.add(generator)
        if hooks.firstiter is not None:
            hooks.firstiter(generator)

    loop.set_exception_handler(lambda _, context: complaints.append(context))
    sys.set_asyncgen_hooks(firstiter=first_read)
    try:
        yield
        await _settled(before, opened, patience)
    finally:
        sys.set_asyncgen_hooks(firstiter=hooks.firstiter)
        loop.set_exception_handler(handler)
    left = _left(before, opened)
    left += [f"the loop was told: {_told(context)}" for context in complaints]
    if left:
        raise AssertionError("left behind: " + "; ".join(left))


async def _settled(
    before: set[asyncio.Task[Any]],
    opened: Iterable[AsyncGeneratorType[Any, Any]],
    patience: float,
) -> None:
    """Wait until everything has ended, or the patience has."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
    gc.collect()  # what was dropped unseen complains when it goes
    await asyncio.sleep(0)
    for _ in range(LOOKS):
        if not _left(before, opened):
            break
        await asyncio.sleep(patience / LOOKS)
        gc.collect()


def _left(
    before: set[asyncio.Task[Any]], opened: Iterable[AsyncGeneratorType[Any, Any]]
) -> list[str]:
    tasks = asyncio.all_tasks() - before - {asyncio.current_task()}
    left = sorted(f"task {task.get_name()!r} still runs" for task in tasks)
    return left + [
        f"source {source.__qualname__!r} is still open"
        for source in opened
        if source.ag_frame is not None and not source.ag_running
    ]


def _told(context: dict[str, Any]) -> str:
    error = context.get("exception")
    return str(context.get("message")) + (f": {error!r:.200}" if error is not None else "")
