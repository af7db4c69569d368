"""Signals: how a run is stopped on purpose.

Why `TripWire` is no `Exception`: a guard that says stop must be obeyed. Hooks are full of code
such as

```python no-run
try:
    verdict = await classify(text)
    if verdict.bad:
        args.abort("unsafe")
except Exception:          # meant for network trouble
    verdict = None         # ... and would have swallowed the block
```

so the signal derives from `BaseException`, as `asyncio.CancelledError` does, and the run also
remembers that the abort was called: even a bare `except:` around it cannot undo a block.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["AbortSignal", "TripWire"]


class TripWire(BaseException):
    """A processor stopped the run, or asked for the step to be tried again.

    Attributes:
        reason: what the client is told, and the model when `retry` is granted.
        retry: whether the step should be tried again.
        metadata: structured data for whoever reads the `tripwire` chunk.
        processor_id: id of the processor that pulled the wire.
    """

    def __init__(
        self,
        reason: str = "",
        *,
        retry: bool = False,
        metadata: Any = None,
        processor_id: str = "",
    ) -> None:
        """Carry what the `tripwire` chunk will say."""
        super().__init__(reason)
        self.reason = reason
        self.retry = retry
        self.metadata = metadata
        self.processor_id = processor_id


class AbortSignal:
    """Tells a run, its hooks and its tools to stop. One signal may stop many runs.

    Thread-safe. `abort()` may be called more than once; the first reason counts.

    >>> signal = AbortSignal()
    >>> signal.abort("user left")
    >>> signal.aborted, signal.reason
    (True, 'user left')
    """

    __slots__ = ("_callbacks", "_lock", "aborted", "reason")

    def __init__(self) -> None:
        """Start unaborted."""
        self.aborted = False
        self.reason = ""
        self._callbacks: dict[object, Callable[[], None]] = {}
        self._lock = threading.Lock()

    def abort(self, reason: str = "aborted") -> None:
        """Stop everything that listens to this signal.

        Raises:
            Exception: what the first of the callbacks that failed raised; all have been called.
        """
        with self._lock:
            if self.aborted:
                return
            self.aborted = True
            self.reason = reason
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        failures: list[Exception] = []
        for callback in callbacks:
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - raised when everybody has been told
                failures.append(error)
        if failures:
            raise failures[0]

    def on_abort(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once when aborted (at once if it is already); returns the unsubscriber.

        The callback runs in the thread that calls `abort()`.
        """
        key = object()  # not the callback: one function may be registered for many runs
        with self._lock:
            if not self.aborted:
                self._callbacks[key] = callback
                return lambda: self._forget(key)
        callback()
        return lambda: None

    def _forget(self, key: object) -> None:
        with self._lock:
            self._callbacks.pop(key, None)

    async def wait(self) -> None:
        """Return once aborted."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def settle() -> None:
            if not done.done():
                done.set_result(None)

        def wake() -> None:
            loop.call_soon_threadsafe(settle)

        forget = self.on_abort(wake)
        try:
            await done
        finally:
            forget()
