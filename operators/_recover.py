"""Operators that look at a failed model call and try again."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable
from typing import Any

from reactivex import Observable

from streampipe.chunks import Chunk, StepFinish, TripwireData
from streampipe.errors import ConfigurationError, ModelError
from streampipe.operators._bridge import flowable
from streampipe.operators._core import Emit, Flowable
from streampipe.operators._functions import check_callable
from streampipe.operators._fuse import emit_all
from streampipe.operators._kinds import OpenParts
from streampipe.operators._operator import operator
from streampipe.operators._options import checked_count, checked_seconds

ErrorHandler = Callable[[ModelError, int], Awaitable[bool | None] | bool | None]
"""Gets the failure and how many attempts came before it; true asks for another one."""

MOST_DOUBLINGS = 64  # of a pause; more would leave the range of floats


@operator
def catch_api_error(source: Observable[Chunk], handler: ErrorHandler) -> Flowable[Chunk]:
    """On a `ModelError` of the source, ask `handler`; if it says so, subscribe to the source again.

    The attempts are kept apart by a `step-finish` chunk with reason `retry`: what came since the
    last `step-start` (or the beginning) is void. Parts that the failure left open end before it.

    Args:
        source: a cold stream of chunks.
        handler: sync or async; returns whether to try again. It sees failures of the source only,
            never those of operators further down.

    Returns:
        The chunks of all attempts. It fails with the `ModelError` when the handler declines, and
        with what the handler raises.

    Raises:
        ConfigurationError: `handler` is no function.
    """
    check_callable("catch_api_error", "handler", handler)

    async def run(emit: Emit[Chunk]) -> None:
        attempts = flowable(source)
        attempt = 0
        while True:
            tried = _Attempt(emit)
            try:
                await attempts.into(tried.push)
                return  # noqa: TRY300 - the loop is for attempts that failed
            except ModelError as error:
                answer: Any = handler(error, attempt)
                if inspect.isawaitable(answer):
                    answer = await answer
                if not answer:
                    raise
                attempt += 1
                wait = emit_all(tried.voided(error), emit)
            if wait is not None:
                await wait

    return Flowable(run)


class _Attempt:
    """What has left of an attempt, and what takes it back."""

    def __init__(self, emit: Emit[Chunk]) -> None:
        self._emit = emit
        self._parts = OpenParts()
        self.begun = False

    def push(self, chunk: Chunk) -> Awaitable[Any] | None:
        """Pass a chunk."""
        self.begun = True
        self._parts.note(chunk)
        return self._emit(chunk)

    def voided(self, error: ModelError) -> list[Chunk]:
        """The ends of the parts that the failure left open, and the chunk that says it is void."""
        tripwire = TripwireData(str(error), retry=True)
        return [*self._parts.close(), StepFinish("retry", tripwire=tripwire)]


@operator
def retry_api(
    source: Observable[Chunk],
    max_retries: int = 2,
    *,
    backoff: float = 0.5,
    max_backoff: float = 30.0,
    jitter: bool = True,
    respect_retry_after: bool = True,
) -> Observable[Chunk]:
    """Subscribe to the source again on a retryable `ModelError`, with growing pauses.

    The pause before retry n is `backoff * 2**n` seconds, at most `max_backoff`; with `jitter` a
    random part of it, so that clients that failed together do not come back together. A provider's
    `Retry-After` is waited for in full when that is longer, but for no longer than `max_backoff`:
    then the failure stands. Attempts are kept apart as `catch_api_error` does.

    Args:
        source: a cold stream of chunks.
        max_retries: how often to try again, at least 0.
        backoff: seconds before the first retry.
        max_backoff: seconds that a pause takes at most.
        jitter: whether to take a random part of the pause.
        respect_retry_after: whether to wait as long as the provider asked for.

    Returns:
        The chunks of all attempts. It fails with the last `ModelError`.

    Raises:
        ConfigurationError: `max_retries`, `backoff` or `max_backoff` is negative, or no (finite)
            number.
    """
    checked_count("retry_api", "max_retries", max_retries, least=0)
    checked_seconds("retry_api", "backoff", backoff, zero=True)
    checked_seconds("retry_api", "max_backoff", max_backoff, zero=True)

    async def handler(error: ModelError, attempt: int) -> bool:
        if not error.is_retryable or attempt >= max_retries:
            return False
        pause = min(backoff * 2 ** min(attempt, MOST_DOUBLINGS), max_backoff)
        if jitter:
            pause *= random.random()  # noqa: S311 - spreads load, keeps no secret
        asked: float | None = getattr(error, "retry_after", None)
        if respect_retry_after and asked is not None:
            if asked > max_backoff:
                return False
            pause = max(pause, asked)
        await asyncio.sleep(pause)
        return True

    return source.pipe(catch_api_error(handler))


@operator
def fallback(source: Observable[Chunk], other: Observable[Chunk]) -> Flowable[Chunk]:
    """Where the source fails with a `ModelError`, `other` goes on in its place.

    If the source had already emitted something, a `step-finish` with reason `retry` voids it, as
    between the attempts of `catch_api_error`: a reader never takes the two for one answer.

    Args:
        source: a stream of chunks.
        other: a cold stream of chunks, subscribed to only then.

    Returns:
        The chunks of the source, or of both. It fails as `other` does.

    Raises:
        ConfigurationError: `other` is no observable.
    """
    if not isinstance(other, Observable):
        msg = f"fallback: other must be an observable, not {other!r:.80}"
        raise ConfigurationError(msg)

    async def run(emit: Emit[Chunk]) -> None:
        tried = _Attempt(emit)
        try:
            await flowable(source).into(tried.push)
            return  # noqa: TRY300 - what follows is for a source that failed
        except ModelError as error:
            wait = emit_all(tried.voided(error), emit) if tried.begun else None
        if wait is not None:
            await wait
        await flowable(other).into(emit)

    return Flowable(run)
