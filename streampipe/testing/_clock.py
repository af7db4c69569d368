"""A jumping clock: an event loop in which waiting takes no time.

When nothing is ready to run, the clock jumps to the next timer. So a test of a timeout of an hour
takes no hour, its order of events is the same on every machine, and `asyncio.sleep(0.3)` takes
exactly 0.3 s on the loop's clock.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar

__all__ = ["DeadlockError", "VirtualLoop", "run_virtual"]

T = TypeVar("T")


class DeadlockError(RuntimeError):
    """Everything waits for something, and nothing is left that could wake anything up."""


class _Clock:
    """The loop's time, in seconds since the loop was made."""

    def __init__(self) -> None:
        self.now = 0.0
        self.jobs = 0  # calls that run in a thread pool now
        self.describe: Callable[[], str] = str


class _JumpingSelector(selectors.DefaultSelector):
    """Waits for sockets and threads as any selector does, and for nothing else at all."""

    def __init__(self, clock: _Clock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        clock = self._clock
        # The loop itself registers one: the pipe that `call_soon_threadsafe` wakes it with.
        alone = not clock.jobs and len(self.get_map()) == 1
        if timeout is not None and timeout <= 0:
            # Whoever wrote into the pipe has put its call among the ready ones before: no look.
            return [] if alone else super().select(0)
        if not alone:
            began = time.monotonic()
            events = super().select(timeout)
            waited = time.monotonic() - began
            clock.now += waited if events or timeout is None else timeout
            return events
        events = super().select(0)
        if events:
            return events
        if timeout is None:
            raise DeadlockError(clock.describe())
        clock.now += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps; a factory for `asyncio.Runner(loop_factory=VirtualLoop)`.

    `time()` starts at 0. While a socket is registered, or a call runs in a thread pool, the loop
    waits as a real one does and its clock goes at the common pace. A thread of your own that calls
    `call_soon_threadsafe` is heard, but not waited for: start it with `asyncio.to_thread`.

    A wait that nothing can end raises `DeadlockError` from `run_until_complete` and `run_forever`,
    where a real loop would hang.

    >>> import asyncio
    >>> with asyncio.Runner(loop_factory=VirtualLoop) as runner:
    ...     runner.run(asyncio.sleep(3600))
    ...     runner.get_loop().time()
    3600.0
    """

    def __init__(self) -> None:
        """Start at time 0."""
        self._clock = clock = _Clock()
        super().__init__(_JumpingSelector(clock))
        clock.describe = self._described

    def time(self) -> float:
        """Seconds since the loop was made, on its own clock."""
        return self._clock.now

    def run_in_executor(  # type: ignore[override]  # the stub's signature differs between versions
        self,
        executor: Executor | None,
        func: Callable[..., T],
        *args: Any,
    ) -> asyncio.Future[T]:
        """Run a function in a thread pool; the clock goes at the common pace until it is done."""
        future: asyncio.Future[T] = super().run_in_executor(executor, func, *args)
        self._clock.jobs += 1
        future.add_done_callback(self._job_done)
        return future

    def _job_done(self, _: asyncio.Future[Any]) -> None:
        self._clock.jobs -= 1

    async def shutdown_default_executor(self, *args: Any, **kwargs: Any) -> None:
        """Wait for the thread pool to end: by a thread of its own, so it counts as a job."""
        self._clock.jobs += 1
        try:
            await super().shutdown_default_executor(*args, **kwargs)
        finally:
            self._clock.jobs -= 1

    def pending_timers(self) -> int:
        """How many calls are planned for later (`call_later`, `sleep`, timeouts)."""
        planned: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]  # no stub
        return sum(not handle.cancelled() for handle in planned)

    def _described(self) -> str:
        waiting = sorted(task.get_name() for task in asyncio.all_tasks(self) if not task.done())
        return (
            f"deadlock at {self.time():g} s: nothing is ready, and no timer, socket or thread is "
            f"left that could wake a task; waiting: {', '.join(waiting) or 'no task'}"
        )


def refuse_nesting(what: str) -> None:
    """Say that something cannot be called from a coroutine.

    Raises:
        RuntimeError: an event loop runs in this thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # none runs, as it has to be
        return
    raise RuntimeError(f"{what} runs an event loop: call it from a function, not from a coroutine")


def run_virtual(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a jumping clock, as `asyncio.run` does on the real one.

    >>> import asyncio
    >>> async def slow():
    ...     await asyncio.sleep(86_400)
    ...     return asyncio.get_running_loop().time()
    >>> run_virtual(slow())
    86400.0

    Args:
        coroutine: what to run; tasks that it leaves behind are cancelled.

    Returns:
        What the coroutine returns.

    Raises:
        DeadlockError: it waits for something that can never happen.
        RuntimeError: an event loop runs already.
        BaseException: what the coroutine raises.
    """
    refuse_nesting("run_virtual")
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)
