"""Guards side by side: the same chunk to each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from reactivex import Observable

from streampipe.chunks import Chunk
from streampipe.contracts import OutputProcessor
from streampipe.contracts.processor import STREAM_OPERATOR
from streampipe.errors import ConfigurationError, OperatorError
from streampipe.operators._compose import stages_of
from streampipe.operators._core import Emit, Escape
from streampipe.operators._fuse import TOLD, Kernel, Opened, Stage, emit_all, fuse
from streampipe.operators._joined import ChangedError, Joined
from streampipe.operators._kinds import own_copy
from streampipe.operators._operator import operator
from streampipe.operators._scope import check_processors


@operator
def parallel(source: Observable[Chunk], *processors: OutputProcessor) -> Observable[Chunk]:
    """The same chunk to each of several guards; async ones look at it at the same time.

    Every guard gets a copy of its own, down to the dictionaries and lists in it. What all have
    passed leaves, in the order it came; a guard that holds text back holds it for all. The first in
    the list that blocks decides what is said. One of them may rewrite or drop what comes; where two
    want to, they have to stand one behind the other.

    Args:
        source: a stream of chunks.
        processors: at least two processors with `process_output_stream`.

    Returns:
        The chunks. It fails with `TripWire` when a guard blocks, with `ProcessorError` when one
        raises, and with `OperatorError` when two of them change the stream.

    Raises:
        ConfigurationError: there are fewer than two, or one is no such processor.
    """
    least = 2
    if len(processors) < least:
        msg = f"parallel: takes two processors or more, not {len(processors)}"
        raise ConfigurationError(msg)
    check_processors(list(processors), ("process_output_stream", STREAM_OPERATOR), "parallel")
    ways = [stages_of("parallel", processor) for processor in processors]
    names = [str(processor.id) for processor in processors]
    is_async = any(stage.is_async for way in ways for stage in way)

    stage = Stage("parallel", _side_by_side(ways, names), is_async=is_async)
    return fuse(source, stage)


def _side_by_side(
    ways: list[tuple[Stage, ...]], names: list[str]
) -> Callable[[Emit[Chunk], Stage], Opened]:
    """Give each chunk to all of these ways, and settle what they make of it."""

    def open_(emit: Emit[Chunk], stage: Stage) -> Opened:
        made: list[list[Chunk]] = [[] for _ in ways]
        kernels = [Kernel(way, out.append, stage) for way, out in zip(ways, made, strict=True)]
        joined = Joined(len(ways))

        def settled(ready: Callable[[], Iterator[Chunk]]) -> list[Chunk]:
            try:
                for guard, out in enumerate(made):
                    for chunk in out:
                        joined.passed(guard, chunk)
                    out.clear()
                return list(ready())
            except ChangedError as error:
                who = f"{names[error.first]} and {names[error.second]}"
                msg = f"{who} both change a chunk; put one behind the other"
                raise Escape(OperatorError(msg, operator="parallel"), stage.token) from error

        def push(chunk: Chunk) -> Awaitable[Any] | None:
            joined.came(chunk)
            waits: list[Awaitable[Any]] = []
            for kernel in kernels:
                try:
                    wait = kernel.push(own_copy(chunk))
                except TOLD as error:
                    if not waits:
                        raise
                    return answered(waits, error)  # one before it may block as well
                if wait is not None:
                    waits.append(wait)
            return answered(waits) if waits else emit_all(settled(joined.ready), emit)

        async def answered(waits: list[Awaitable[Any]], error: BaseException | None = None) -> None:
            await _all(waits)
            if error is not None:
                raise error
            wait = emit_all(settled(joined.ready), emit)
            if wait is not None:
                await wait

        return Opened(push, lambda: emit_all(settled(joined.rest), emit))

    return open_


async def _all(waits: list[Awaitable[Any]]) -> None:
    """Wait for all; the first in the list that failed decides.

    Raises:
        BaseException: what that one raised.
    """
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for answer in ended:
        if isinstance(answer, BaseException):
            raise answer
