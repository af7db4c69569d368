"""`Run`: one run, asyncio-native, with any number of consumers and the result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from types import TracebackType
from typing import Any, Self

from reactivex import Observable

from streampipe.agent._run import Execution
from streampipe.chunks import Chunk, FinishChunk, ObjectChunk, ObjectResult, TextDelta
from streampipe.contracts import RunResult
from streampipe.errors import RunStateError
from streampipe.operators._bridge import flowable
from streampipe.operators._core import FAIR_SHARE, Buffer, Emit, Flowable

_running: set[asyncio.Task[None]] = set()  # the loop itself holds tasks by weak reference only


class _Broadcast:
    """The one sink: hands every chunk to each consumer; the slowest sets the pace."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.high_water = execution.spec.high_water
        self.begun = False
        self.task: asyncio.Task[None] | None = None
        self._buffers: list[Buffer[Chunk]] = []
        self._turn = 0

    def start(self) -> asyncio.Task[None]:
        if self.task is None:
            self.task = asyncio.get_running_loop().create_task(self._own())
            _running.add(self.task)
            self.task.add_done_callback(_running.discard)
        return self.task

    async def _own(self) -> None:
        error: BaseException | None = None
        try:
            await self.execution.into(self.emit)
        except BaseException as raised:
            error = raised
            raise
        finally:
            for buffer in self._buffers:
                buffer.end(error)

    def emit(self, chunk: Chunk) -> Awaitable[Any] | None:
        self.begun = True
        full = False
        for buffer in self._buffers:
            if buffer.put(chunk):
                full = True
        if full:
            # The end of a run is given; whether anybody has room for more is no matter then.
            is_last = isinstance(chunk, FinishChunk) or self.execution.aborted
            return None if is_last else self._room()
        self._turn += 1
        if self._turn % FAIR_SHARE:
            return None
        return asyncio.sleep(0)

    async def _room(self) -> None:
        for buffer in list(self._buffers):
            await buffer.flow.room()

    def attach(self) -> Buffer[Chunk]:
        if self.begun:
            msg = (
                "this run has already begun: attach every consumer before the first chunk "
                "(for instance with asyncio.gather), hold on to the iterator to go on reading, "
                "or await run.result()"
            )
            raise RunStateError(msg)
        buffer: Buffer[Chunk] = Buffer(self.high_water)
        self._buffers.append(buffer)
        self.start()
        return buffer

    def detach(self, buffer: Buffer[Chunk]) -> None:
        if buffer in self._buffers:
            self._buffers.remove(buffer)
        buffer.items.clear()
        buffer.flow.release()


class _Ended(Awaitable[None]):
    """Awaited, waits for the end of a run; it need not be awaited."""

    def __init__(self, sink: _Broadcast) -> None:
        self._sink = sink

    def __await__(self) -> Generator[Any, None, None]:
        task = self._sink.task
        if task is not None:
            yield from asyncio.wait({task}).__await__()


class Run:
    """One run of an agent; it begins when somebody first asks for a chunk or the result.

    ```python no-run
    async with agent.stream("hi") as run:   # leaving the block cancels what is still going on
        async for chunk in run: ...
        result = await run.result()
    ```

    Every consumer attached before the first chunk sees every chunk, and the slowest sets the pace.
    A run without consumers goes on at its own pace as soon as its result is awaited. A run that
    nobody refers to any more is cancelled.
    """

    def __init__(self, execution: Execution) -> None:
        """Wrap an execution that has not begun.

        Args:
            execution: the run.
        """
        self._sink = _Broadcast(execution)

    @property
    def run_id(self) -> str:
        """Id of the run, the same in every chunk."""
        return self._sink.execution.scope.run_id

    def __aiter__(self) -> AsyncIterator[Chunk]:
        """A consumer of every chunk.

        Raises:
            RunStateError: at the first `anext`, when the run has already begun.
        """
        return self._consume()

    async def _consume(self) -> AsyncIterator[Chunk]:
        buffer = self._sink.attach()
        try:
            while await buffer.more():
                batch = buffer.taken(64)  # few, so that a slow consumer lets go of what it has read
                for chunk in batch:
                    yield chunk
                buffer.flow.take(len(batch))
        finally:
            self._sink.detach(buffer)

    @property
    def text_stream(self) -> AsyncIterator[str]:
        """A consumer of the text alone, piece by piece.

        Text of an attempt that is later rejected comes too; read the chunks to see `step-finish`
        with reason `retry`, or take `result().text`.
        """
        return self._texts()

    async def _texts(self) -> AsyncIterator[str]:
        async for chunk in self:
            if isinstance(chunk, TextDelta):
                yield chunk.text

    @property
    def object_stream(self) -> AsyncIterator[Any]:
        """A consumer of the structured output, as it grows; the last one is whole and valid."""
        return self._objects()

    async def _objects(self) -> AsyncIterator[Any]:
        async for chunk in self:
            if isinstance(chunk, ObjectChunk | ObjectResult):
                yield chunk.object

    def pipe(self, *operators: Callable[[Observable[Any]], Observable[Any]]) -> Flowable[Any]:
        """The run's chunks through operators: a consumer that is an observable.

        Returns:
            A `Flowable`: subscribe to it, or iterate over it with `async for`.
        """

        async def run(emit: Emit[Chunk]) -> None:
            async for chunk in self:
                wait = emit(chunk)
                if wait is not None:
                    await wait

        source: Observable[Any] = Flowable(run)
        for operator in operators:
            source = operator(source)
        return flowable(source)

    async def result(self) -> RunResult:
        """The whole run, once it has ended.

        A block or a cancel is no error: see `result.tripwire` and `result.finish_reason`.

        Raises:
            StreampipeError: what the run failed with; its `result` holds what came before.
            asyncio.CancelledError: the task of the run was cancelled from outside.
        """
        task = self._sink.start()
        await asyncio.wait({task})
        if task.cancelled():
            raise asyncio.CancelledError
        task.result()
        result = self._sink.execution.result
        if result.error is not None:
            raise result.error
        return result

    def cancel(self, reason: str = "cancelled") -> Awaitable[None]:
        """Stop the run: an `abort` chunk, then `finish` with reason `aborted`.

        Returns:
            An awaitable that is done when the run has ended and its connections are closed;
            the cancel takes effect whether or not it is awaited.
        """
        self._sink.execution.abort(reason)
        return _Ended(self._sink)

    async def __aenter__(self) -> Self:
        """Nothing begins yet."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Cancel what is still going on, and wait until it has ended."""
        await self.cancel("the run's context was left")

    def __del__(self) -> None:
        """Cancel a run that nobody refers to any more."""
        sink = getattr(self, "_sink", None)
        task = sink.task if sink is not None else None
        if task is not None and not task.done() and not task.get_loop().is_closed():
            task.cancel()
