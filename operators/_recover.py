"""Operators that look at a failed model call and try again."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from reactivex import Observable

from streampipe.chunks import Chunk, StepFinish, TripwireData
from streampipe.errors import ConfigurationError, ModelError
from streampipe.operators._bridge import flowable
from streampipe.operators._core import Emit, Flowable
from streampipe.operators._operator import operator

ErrorHandler = Callable[[ModelError, int], Awaitable[bool | None] | bool | None]
"""Gets the failure and how many attempts came before it; true asks for another one."""


@operator
def catch_api_error(source: Observable[Chunk], handler: ErrorHandler) -> Flowable[Chunk]:
    """On a `ModelError` of the source, ask `handler`; if it says so, subscribe to the source again.

    The attempts are kept apart by a `step-finish` chunk with reason `retry`: what came since the
    last `step-start` (or the beginning) is void.

    Args:
        source: a cold stream of chunks.
        handler: sync or async; returns whether to try again. It sees failures of the source only,
            never those of operators further down.

    Returns:
        The chunks of all attempts. It fails with the `ModelError` when the handler declines, and
        with what the handler raises.
    """

    async def run(emit: Emit[Chunk]) -> None:
        attempts = flowable(source)
        attempt = 0
        while True:
            try:
                await attempts.into(emit)
                return  # noqa: TRY300 - the loop is for attempts that failed
            except ModelError as error:
                answer: Any = handler(error, attempt)
                if inspect.isawaitable(answer):
                    answer = await answer
                if not answer:
                    raise
                attempt += 1
                notice = StepFinish("retry", tripwire=TripwireData(str(error), retry=True))
            wait = emit(notice)
            if wait is not None:
                await wait

    return Flowable(run)


@operator
def retry(source: Observable[Chunk], count: int = 1) -> Observable[Chunk]:
    """Subscribe to the source again on a retryable `ModelError`, at most `count` times.

    Attempts are kept apart as `catch_api_error` does.

    Raises:
        ConfigurationError: `count` is negative.
    """
    if count < 0:
        msg = f"retry: count must not be negative, but is {count}"
        raise ConfigurationError(msg)

    def handler(error: ModelError, attempt: int) -> bool:
        return error.is_retryable and attempt < count

    return source.pipe(catch_api_error(handler))
