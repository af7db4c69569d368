"""The tools of a step: run side by side, shown in the order of their calls."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from streampipe.chunks import Chunk, DataChunk, ToolCall, ToolErrorChunk, ToolResult
from streampipe.contracts import Done, StreamWriter, ToolContext
from streampipe.errors import (
    ToolArgumentsError,
    ToolExecutionError,
    ToolFailure,
    UnknownToolError,
)
from streampipe.operators._core import Emit
from streampipe.operators._hooks import process_tool_result
from streampipe.operators._scope import Bound, Scope, data_chunk

WITHHELD = "[withheld by an output processor]"
_DONE = Done()


class _ToolWriter(StreamWriter):
    """A tool's writer: its chunks join the stream while the tool works, from any thread."""

    def __init__(self, inbox: _Inbox, run_id: str) -> None:
        self._inbox = inbox
        self._run_id = run_id

    def custom(
        self,
        chunk: Mapping[str, Any] | Any,
        *,
        message_id: str | None = None,
    ) -> Awaitable[None]:
        self._inbox.put(data_chunk(chunk, self._run_id, message_id))
        return self._inbox.room()


class _Inbox:
    """What running tools hand to the task that owns the run: chunks, and the index of an end."""

    def __init__(self, high_water: int = 256) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._queue: asyncio.Queue[Chunk | int] = asyncio.Queue()
        self._high_water = high_water
        self._drained = asyncio.Event()

    def put(self, item: Chunk | int) -> None:
        if threading.get_ident() == self._thread:
            self._queue.put_nowait(item)
        else:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, item)

    def room(self) -> Awaitable[None]:
        """What a writer may await: done, unless the client is far behind."""
        if threading.get_ident() != self._thread or self._queue.qsize() < self._high_water:
            return _DONE
        return self._wait()

    async def _wait(self) -> None:
        while self._queue.qsize() >= self._high_water:
            self._drained.clear()
            await self._drained.wait()

    async def get(self) -> Chunk | int:
        item = await self._queue.get()
        self._drained.set()
        return item


class ToolRun:
    """The calls of one step."""

    def __init__(
        self,
        calls: Sequence[ToolCall],
        tools: Mapping[str, Any],
        scope: Scope,
        concurrency: int,
    ) -> None:
        """Prepare the calls.

        Args:
            calls: what the model called and the processors let through, in order.
            tools: the tools that the step has.
            scope: the run.
            concurrency: how many tools may run at once.
        """
        self._calls = calls
        self._tools = tools
        self._scope = scope
        self._slots = asyncio.Semaphore(concurrency)
        self._inbox = _Inbox()
        self._outcomes: dict[int, Any] = {}

    async def into(self, emit: Emit[Chunk], bounds: Sequence[Bound]) -> None:
        """Run the tools; emit what they write as it comes and their results in call order.

        Raises:
            TripWire, ProcessorError: a `process_tool_result` hook blocked or failed; tools that
                still run are cancelled.
        """
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(self._one(i, call)) for i, call in enumerate(self._calls)]
        try:
            shown = 0
            ended: set[int] = set()  # in the inbox a tool's end stands behind all that it wrote
            while shown < len(self._calls):
                item = await self._inbox.get()
                if isinstance(item, Chunk):
                    await _send(emit, item)
                    continue
                ended.add(item)
                while shown in ended:
                    await self._show(self._calls[shown], self._outcomes.pop(shown), emit, bounds)
                    shown += 1
        finally:
            running = [task for task in tasks if not task.done()]
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)

    async def _show(
        self,
        call: ToolCall,
        outcome: Any,
        emit: Emit[Chunk],
        bounds: Sequence[Bound],
    ) -> None:
        if isinstance(outcome, ToolFailure):
            await _send(emit, tool_error(call, outcome))
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            await _send(emit, await checked_result(call, outcome, self._scope, bounds))

    async def _one(self, index: int, call: ToolCall) -> None:
        try:
            async with self._slots:
                self._outcomes[index] = await self._scope.trace.tool(self._execute)(call)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self._outcomes[index] = _failure(call, asyncio.CancelledError("cancelled itself"))
        except ToolFailure as failure:
            self._outcomes[index] = failure
        except Exception as error:  # noqa: BLE001 - the model is told, and the cause is chained
            self._outcomes[index] = _failure(call, error)
        except BaseException as error:  # noqa: BLE001 - a signal: raised where the run is owned
            self._outcomes[index] = error
        finally:
            self._inbox.put(index)

    async def _execute(self, call: ToolCall) -> Any:
        name = call.tool_name
        if call.args_text is not None:
            msg = f"the arguments of {name!r} are not valid JSON: {call.args_text[:200]!r}"
            raise ToolArgumentsError(msg, tool_name=name)
        tool = self._tools.get(name)
        if tool is None:
            known = ", ".join(self._tools) or "none"
            msg = f"there is no tool {name!r}; available tools: {known}"
            raise UnknownToolError(msg, tool_name=name)
        scope = self._scope
        context = ToolContext(
            writer=_ToolWriter(self._inbox, scope.run_id),
            abort_signal=scope.abort_signal,
            request_context=scope.request_context,
            message_list=scope.message_list,
            tool_call_id=call.tool_call_id,
            run_id=scope.run_id,
            step_number=scope.step_number,
            agent=scope.agent,
        )
        result = tool.execute({} if call.args is None else call.args, context)
        if isinstance(result, AsyncIterator):
            result = await self._progress(call, result)
        elif inspect.isawaitable(result):
            result = await result
        return to_jsonable_python(result, fallback=str)

    async def _progress(self, call: ToolCall, values: AsyncIterator[Any]) -> Any:
        """A streaming tool: every value but the last is progress, the last is the result."""
        last: Any = None
        first = True
        async with aclosing(values) as items:  # type: ignore[type-var]  # generators have aclose
            async for value in items:
                if not first:
                    self._inbox.put(
                        DataChunk(
                            "data-tool-progress",
                            {
                                "toolCallId": call.tool_call_id,
                                "toolName": call.tool_name,
                                "output": to_jsonable_python(last, fallback=str),
                            },
                            transient=True,
                            run_id=self._scope.run_id,
                        ),
                    )
                    await self._inbox.room()
                last, first = value, False
        return last


async def checked_result(
    call: ToolCall,
    result: Any,
    scope: Scope,
    bounds: Sequence[Bound],
) -> ToolResult:
    """A tool's result after every `process_tool_result` hook, as the chunk that is shown.

    Raises:
        TripWire, ProcessorError: a hook blocked or failed.
    """
    scope.message_list.update_tool_invocation(call.tool_call_id, result=result)
    await process_tool_result(bounds, call, result)
    part = scope.message_list.tool_invocation(call.tool_call_id)
    return ToolResult(
        call.tool_call_id,
        call.tool_name,
        result if part is None else part.result,
        call.args,
        provider_executed=call.provider_executed,
        run_id=scope.run_id,
    )


def tool_error(call: ToolCall, failure: ToolFailure) -> ToolErrorChunk:
    """A failed call as the chunk that is shown, to the model too."""
    return ToolErrorChunk(
        call.tool_call_id,
        call.tool_name,
        str(failure),
        call.args if call.args_text is None else call.args_text,
        run_id=call.run_id,
    )


def _failure(call: ToolCall, error: BaseException) -> ToolExecutionError:
    kind = (
        "result is not serialisable"
        if isinstance(error, PydanticSerializationError)
        else (type(error).__name__)
    )
    failure = ToolExecutionError(f"{kind}: {error}", tool_name=call.tool_name)
    failure.__cause__ = error
    return failure


async def _send(emit: Emit[Chunk], chunk: Chunk) -> None:
    wait = emit(chunk)
    if wait is not None:
        await wait
