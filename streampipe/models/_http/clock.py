"""When a call has waited long enough: for the first chunk, for the next one, and in all."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable
from typing import TypeVar

from streampipe.errors import (
    ChunkTimeoutError,
    FirstChunkTimeoutError,
    ModelTimeoutError,
    TotalTimeoutError,
)
from streampipe.models._http.transport import Timeout

FIRST_PAUSE = 0.5  # seconds; doubles with every attempt
LONGEST_PAUSE = 60.0

T = TypeVar("T")


class Clock:
    """The limits of one call.

    Only waiting for the provider counts as its silence: a consumer that takes its time is none. And
    only a chunk ends it: comments and pings that keep a connection alive are no answer.
    """

    def __init__(self, limits: Timeout) -> None:
        """Start the time of the whole call."""
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._end = self._after(limits.total)
        self.begin()

    def begin(self) -> None:
        """An attempt begins: from here on its first chunk is waited for."""
        self._silent: type[ModelTimeoutError] = FirstChunkTimeoutError
        self._until: float | None = self._after(self._limits.first_chunk)

    def heard(self) -> None:
        """A chunk came: the time until the next one counts from when it is waited for."""
        self._until = None

    def left(self) -> float:
        """Seconds until the whole call has to be over."""
        return self._end - self._loop.time()

    async def within(self, waited: Awaitable[T]) -> T:
        """Wait, no longer than is left.

        Raises:
            FirstChunkTimeoutError, ChunkTimeoutError, TotalTimeoutError: it took too long.
        """
        if self._until is None:
            self._silent = ChunkTimeoutError
            self._until = self._after(self._limits.between_chunks)
        at = min(self._until, self._end)
        if at == math.inf:
            return await waited
        limit = asyncio.timeout_at(at)
        try:
            async with limit:
                return await waited
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._late() from None

    def _after(self, seconds: float | None) -> float:
        return math.inf if seconds is None else self._loop.time() + seconds

    def _late(self) -> ModelTimeoutError:
        limits = self._limits
        if self._until is None or self._end <= self._until:
            return TotalTimeoutError(f"the call was not over in {limits.total:g} s")
        if self._silent is FirstChunkTimeoutError:
            msg = f"no chunk of the answer came in {limits.first_chunk:g} s"
            return FirstChunkTimeoutError(msg, is_retryable=True)
        msg = f"nothing came for {limits.between_chunks:g} s in the middle of the answer"
        return ChunkTimeoutError(msg, is_retryable=True)


def pause_before(failures: int, asked: float | None) -> float | None:
    """Seconds to wait: what the provider asked for, else exponential with full jitter.

    None when it asked for longer than anybody should be kept waiting: asking earlier would only
    make it worse, so the failure stands, and says how long.
    """
    if asked is not None:
        return asked if asked <= LONGEST_PAUSE else None
    return random.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2**failures))  # noqa: S311 - no secret
