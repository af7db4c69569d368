"""What hooks are told of the run they are in, and what they can do to it."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from streampipe.abort import AbortSignal, TripWire
from streampipe.chunks import Chunk, DataChunk
from streampipe.contracts import (
    HOOKS,
    Abort,
    ProcessorViolation,
    RequestContext,
    StepResult,
    StreamWriter,
)
from streampipe.contracts.processor import STREAM_OPERATOR
from streampipe.errors import ConfigurationError, ProcessorError
from streampipe.messages import MessageList, new_id
from streampipe.operators._core import FAULTS, is_cancel
from streampipe.operators._trace import UNTRACED, Trace

log = logging.getLogger("streampipe")
TURNS_TO_CANCEL = 10  # turns of the loop within which a cancel that is on its way has arrived


def data_chunk(
    chunk: Mapping[str, Any] | Any,
    run_id: str,
    message_id: str | None = None,
) -> DataChunk:
    """What a writer was given, as a chunk.

    Raises:
        ValueError: it is no `data-*` chunk; the message says what it is.
    """
    if isinstance(chunk, DataChunk):
        made = replace(chunk, run_id=run_id)
        made.message_id = message_id or chunk.message_id
        return made
    if not isinstance(chunk, Mapping):
        msg = f"writer.custom takes a data-* chunk or a dict, not {type(chunk).__name__}"
        raise ValueError(msg)  # noqa: TRY004 - the contract says ValueError
    unknown = set(chunk) - {"type", "data", "transient", "runId", "run_id", "from", "from_"}
    if unknown:
        msg = f"writer.custom: unknown key {min(unknown)!r}; known: type, data, transient"
        raise ValueError(msg)
    made = DataChunk(str(chunk.get("type", "")), chunk.get("data"), bool(chunk.get("transient")))
    made.from_ = chunk.get("from_") or chunk.get("from") or "AGENT"
    made.run_id = run_id
    made.message_id = message_id
    return made


@dataclass(slots=True)
class Scope:
    """One run, as its hooks and tools see it.

    `send` takes a chunk to the head of the output chain; `outbox` holds what writers put there
    while a hook runs, until the hook is done or awaits its writer.
    """

    agent: Any = None
    run_id: str = field(default_factory=new_id)
    request_context: RequestContext = field(default_factory=RequestContext)
    abort_signal: AbortSignal = field(default_factory=AbortSignal)
    message_list: MessageList = field(default_factory=MessageList)
    steps: list[StepResult] = field(default_factory=list[StepResult])
    retry_count: int = 0
    step_number: int = 0
    trace: Trace = UNTRACED
    stopped: bool = False  # a cancel is on its way; it arrives where the run waits next
    send: Callable[[Chunk], Awaitable[Any] | None] = field(default=lambda _: None)
    outbox: list[Chunk] = field(default_factory=list[Chunk])
    states: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    async def halt(self) -> None:
        """Wait where the cancel arrives; go no further, whatever a hook did with it.

        Raises:
            asyncio.CancelledError: always, when the run is stopped.
        """
        for _ in range(TURNS_TO_CANCEL):
            await asyncio.sleep(0)
        raise asyncio.CancelledError  # it came and was swallowed

    async def flush(self) -> None:
        """Send what writers left in the outbox."""
        while self.outbox:
            wait = self.send(self.outbox.pop(0))
            if wait is not None:
                await wait


class _Flush(Awaitable[None]):
    """Awaiting a writer sends the chunk at once; not awaiting it leaves that to the run."""

    __slots__ = ("_scope",)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __await__(self) -> Generator[Any, None, None]:
        return self._scope.flush().__await__()


class OutboxWriter(StreamWriter):
    """The writer of hooks that run between chunks."""

    __slots__ = ("_scope",)

    def __init__(self, scope: Scope) -> None:
        """Write to the scope's outbox."""
        self._scope = scope

    def custom(
        self,
        chunk: Mapping[str, Any] | Any,
        *,
        message_id: str | None = None,
    ) -> Awaitable[None]:
        """See `StreamWriter.custom`."""
        self._scope.outbox.append(data_chunk(chunk, self._scope.run_id, message_id))
        return _Flush(self._scope)


class Bound:
    """A processor bound to a run: its state, its abort, and how its hooks are called."""

    __slots__ = ("_writer", "abort", "id", "processor", "scope", "state", "wires")

    def __init__(self, processor: Any, scope: Scope) -> None:
        """Bind `processor` to the run of `scope`."""
        self.processor = processor
        self.id: str = processor.id
        self.scope = scope
        self.state = scope.states.setdefault(self.id, {})
        self.wires: list[Any] = []
        self.abort = Abort(self.id, self.wires.append)
        self._writer = OutboxWriter(scope)

    def has(self, hook: str) -> bool:
        """Whether the processor defines the hook."""
        return callable(getattr(self.processor, hook, None))

    def common(
        self, writer: StreamWriter | None = None, abort: Abort | None = None
    ) -> dict[str, Any]:
        """The fields that the args of every hook have."""
        scope = self.scope
        return {
            "abort": abort or self.abort,
            "retry_count": scope.retry_count,
            "request_context": scope.request_context,
            "tracing_context": scope.trace.context,
            "abort_signal": scope.abort_signal,
            "writer": writer or self._writer,
            "run_id": scope.run_id,
            "agent": scope.agent,
            "state": self.state,
        }

    def call(self, hook: str, args: Any) -> Awaitable[Any]:
        """Call a hook, sync or async; a pulled wire counts even if the hook swallowed it.

        Raises:
            TripWire: the hook called `abort`.
            ProcessorError: it raised anything else.
        """
        return self.scope.trace.hook(self._call, self.id)(hook, args)

    async def _call(self, hook: str, args: Any) -> Any:
        try:
            result = getattr(self.processor, hook)(args)
            if inspect.isawaitable(result):
                result = await result
        except TripWire as wire:
            result = None
            wire.processor_id = wire.processor_id or self.id
            self.wires.append(wire)
        except FAULTS as error:
            if is_cancel(error):
                raise
            if not self.wires:
                raise self.error(hook, f"{type(error).__name__}: {error}") from error
            result = None
        await self.scope.flush()
        if self.scope.stopped:
            await self.scope.halt()
        if self.wires:
            pulled = self.wires[0]
            self.wires.clear()
            raise pulled
        return result

    def error(self, hook: str, message: str) -> ProcessorError:
        """An error that names this processor and hook."""
        return ProcessorError(message, processor_id=self.id, hook=hook)


def bind(processors: Iterable[Any], scope: Scope) -> list[Bound]:
    """Bind processors to a run; one instance in several lists stays one processor."""
    return [Bound(processor, scope) for processor in processors]


def check_processor_shape(processor: Any, hooks: tuple[str, ...], where: str) -> None:
    """Refuse what is no processor, or has none of the hooks that `where` calls.

    Raises:
        ConfigurationError: naming the processor, the place, and what is missing or wrong.
    """
    if isinstance(processor, type):
        msg = f"{where}: {processor.__name__} is a class; give an instance, {processor.__name__}()"
        raise ConfigurationError(msg)
    name = getattr(processor, "id", None)
    if not isinstance(name, str) or not name:
        msg = f"{where}: {processor!r:.80} is no processor: it needs an 'id', a non-empty string"
        raise ConfigurationError(msg)
    has = [hook for hook in (*HOOKS, STREAM_OPERATOR) if callable(getattr(processor, hook, None))]
    if not set(has) & set(hooks):
        msg = (
            f"{where}: processor {name!r} defines none of the hooks that run there "
            f"({', '.join(hooks)}); it defines {', '.join(has) or 'no hook at all'}"
        )
        raise ConfigurationError(msg)
    if {STREAM_OPERATOR, "process_output_stream"} <= set(has):
        msg = (
            f"{where}: processor {name!r} defines process_output_stream and brings a "
            f"{STREAM_OPERATOR}, which stands in its place; leave one of them out"
        )
        raise ConfigurationError(msg)
    window = getattr(processor, "stream_window", None)
    if window is not None and (type(window) is not int or window < 0):
        msg = (
            f"{where}: processor {name!r}: stream_window must be None or a whole number of "
            f"at least 0, not {window!r:.80}"
        )
        raise ConfigurationError(msg)


def check_processors(processors: list[Any], hooks: tuple[str, ...], where: str) -> None:
    """Refuse a list with what is no processor, or with two that share an id.

    Raises:
        ConfigurationError: see `check_processor_shape`; the states of two processors with one id
            would collide.
    """
    seen: dict[str, Any] = {}
    for processor in processors:
        check_processor_shape(processor, hooks, where)
        if seen.setdefault(processor.id, processor) is not processor:
            msg = f"{where}: two processors with id {processor.id!r}; give each its own"
            raise ConfigurationError(msg)


async def report_violation(processor: Any, violation: ProcessorViolation) -> None:
    """Tell a processor's `on_violation`; what it raises is logged and goes no further."""
    callback = getattr(processor, "on_violation", None)
    if callback is None:
        return
    try:
        answer = callback(violation)
        if inspect.isawaitable(answer):
            await answer
    except Exception:
        log.exception("on_violation of processor %r raised", violation.processor_id)
