"""`process_output_stream` as an operator: a list of processors becomes one kernel.

Per chunk and processor the kernel does one call and three cheap checks. Whether a hook is sync or
async, whether it keeps history and whether it sees data chunks is decided when it is built.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from reactivex import Observable

from streampipe.abort import TripWire
from streampipe.chunks import (
    AbortChunk,
    Chunk,
    DataChunk,
    ErrorChunk,
    TextDelta,
    TripwireChunk,
    chunk_from_wire,
)
from streampipe.contracts import (
    Abort,
    Done,
    OutputProcessor,
    ProcessOutputStreamArgs,
    StreamOperatorArgs,
    StreamWriter,
)
from streampipe.contracts.processor import STREAM_OPERATOR as OPERATOR
from streampipe.errors import ProcessorError, WireError
from streampipe.operators._bridge import flowable
from streampipe.operators._core import FAULTS, Emit, Escape, Flowable, Operator, is_cancel
from streampipe.operators._fuse import Opened, Stage, emit_all, fuse
from streampipe.operators._operator import operator
from streampipe.operators._options import checked_list
from streampipe.operators._scope import Bound, Scope, bind, check_processors, data_chunk

HOOK = "process_output_stream"
_DONE = Done()
_STRAIGHT = frozenset({TripwireChunk, ErrorChunk, AbortChunk})
_APART = _STRAIGHT | {DataChunk}

_Stage = tuple[
    Callable[[ProcessOutputStreamArgs], Any],
    ProcessOutputStreamArgs,
    Callable[[Chunk], None] | None,
    int,
]
"""A hook, its args, what remembers its chunks, and the index of the stage after it."""

Pending = list[Any]
"""What hooks left during a call: `(index, data chunk)` of writers, and pulled wires."""


class _PendingWriter(StreamWriter):
    """The writer of a stream hook: its chunks go before the part being processed."""

    __slots__ = ("_index", "_pending", "_run_id")

    def __init__(self, pending: Pending, index: int, run_id: str) -> None:
        self._pending = pending
        self._index = index
        self._run_id = run_id

    def custom(
        self,
        chunk: Mapping[str, Any] | Any,
        *,
        message_id: str | None = None,
    ) -> Awaitable[None]:
        self._pending.append((self._index, data_chunk(chunk, self._run_id, message_id)))
        return _DONE


class OutputStage:
    """The output processors of a run, bound and ready to be compiled into kernels."""

    def __init__(self, bound: Iterable[Bound]) -> None:
        """Prepare every processor that defines the hook; their state lives as long as this."""
        self._token: object = self
        self._pending: Pending = []
        self._bound = [b for b in bound if b.has(HOOK)]
        self._stages = [self._stage(b, i) for i, b in enumerate(self._bound)]
        self._sees_data = [
            bool(getattr(b.processor, "process_data_parts", False)) for b in self._bound
        ]
        self._is_async = [
            inspect.iscoroutinefunction(getattr(b.processor, HOOK)) for b in self._bound
        ]

    @property
    def is_async(self) -> bool:
        """Whether any hook is a coroutine function."""
        return any(self._is_async)

    def owns(self, token: object) -> bool:
        """Whether what escapes with this token was raised by one of these hooks."""
        return token is self._token

    def renew(self) -> None:
        """A new step: bring the args up to date with the run."""
        for (_, args, _, _), bound in zip(self._stages, self._bound, strict=True):
            args.retry_count = bound.scope.retry_count
            args.tracing_context = bound.scope.trace.context

    def _stage(self, bound: Bound, index: int) -> _Stage:
        window: int | None = getattr(bound.processor, "stream_window", None)
        history: deque[Chunk] | list[Chunk] = [] if window is None else deque(maxlen=window)
        args = ProcessOutputStreamArgs(
            **bound.common(
                _PendingWriter(self._pending, index, bound.scope.run_id),
                Abort(bound.id, self._pending.append),
            ),
            part=None,  # type: ignore[arg-type]  # set before every call
            stream_parts=history,
            message_list=bound.scope.message_list,
        )
        remember = None if window == 0 else history.append
        hook = bound.scope.trace.stream_hook(getattr(bound.processor, HOOK), bound.id)
        return hook, args, remember, index + 1

    def _call(self, index: int, part: Chunk) -> Any:
        """Give a chunk to one stage: what the kernels do inline."""
        hook, args, remember, _ = self._stages[index]
        if remember is not None:
            remember(part)
        args.part = part
        return hook(args)

    def opened(self, emit: Emit[Chunk], stage: Stage) -> Opened:
        """The kernel as a stage of a pipeline."""
        self._token = stage.token
        return Opened(self.compile(emit))

    def compile(self, emit: Emit[Chunk]) -> Emit[Chunk]:
        """The kernel: takes a chunk, runs it through every hook, gives `emit` what comes out.

        With sync hooks only it returns what `emit` returns; with an async one, a coroutine. What
        a hook does wrong escapes as `ProcessorError`, a pulled wire as `TripWire`: both as an
        `Escape`, since what stands before it has not failed.
        """
        if not self._stages:
            return emit
        if self.is_async:
            return self._compile_async(emit)
        stages = tuple(self._stages)
        pending = self._pending
        through = self._through

        def kernel(part: Chunk) -> Awaitable[Any] | None:
            cls = part.__class__
            if cls is not TextDelta and cls in _APART:
                return emit_all(through(part, 0), emit)
            index = 1
            result: Any = None
            try:
                for hook, args, remember, index in stages:  # noqa: B007 - read below
                    if remember is not None:
                        remember(part)
                    args.part = part
                    result = hook(args)
                    if result is not part or pending:
                        if result.__class__ is not part.__class__ or pending:
                            break
                        if not result.run_id:
                            result.run_id = part.run_id
                        part = result
                else:
                    index = 0
            except TripWire as wire:
                self._caught(wire, index)
                result = None
            except FAULTS as error:
                raise self._fault(error, index) from error
            if index:
                if (result is None or result == []) and not pending:
                    return None
                return emit_all(self._settle(result, part, index), emit)
            return emit(part)

        return kernel

    def _caught(self, wire: TripWire, index: int) -> None:
        """A wire that was raised without `args.abort` counts as well."""
        wire.processor_id = wire.processor_id or self._bound[index - 1].id
        if wire not in self._pending:
            self._pending.append(wire)

    def _through(self, part: Chunk, start: int) -> Iterator[Chunk]:
        """`part` through the stages from `start` on: the general case, one stage at a time."""
        if part.__class__ in _STRAIGHT:
            yield part
            return
        for index in range(start, len(self._stages)):
            if part.__class__ is DataChunk and not self._sees_data[index]:
                continue
            try:
                result = self._call(index, part)
            except TripWire as wire:
                self._caught(wire, index + 1)
                result = None
            except FAULTS as error:
                raise self._fault(error, index + 1) from error
            if result is part and not self._pending:
                continue
            yield from self._settle(result, part, index + 1)
            return
        yield part

    def _settle(self, result: Any, part: Chunk, index: int) -> Iterator[Chunk]:
        """What stage `index - 1` made of `part`, and what it wrote, through the later stages."""
        wire, written = self._left()
        for origin, chunk in written:
            chunk.run_id = chunk.run_id or part.run_id
            yield from self._through(chunk, origin + 1)
        if wire is not None:
            raise Escape(wire, self._token)
        for chunk in self._chunks(result, part, index):
            yield from self._through(chunk, index)

    def _left(self) -> tuple[TripWire | None, list[tuple[int, Chunk]]]:
        """What a hook left besides its result: a pulled wire, and what it wrote."""
        wires = [entry for entry in self._pending if isinstance(entry, TripWire)]
        written = [entry for entry in self._pending if not isinstance(entry, TripWire)]
        self._pending.clear()
        return (wires[0] if wires else None), written

    def _chunks(self, result: Any, part: Chunk, index: int) -> list[Chunk]:
        """A hook's return value as chunks.

        Raises:
            Escape: it is none; carries the `ProcessorError`.
        """
        if result is None:
            return []
        items = result if isinstance(result, list | tuple) else [result]
        chunks: list[Chunk] = []
        for item in items:
            chunk = item
            if isinstance(item, Mapping):
                try:
                    chunk = chunk_from_wire(item)
                except (WireError, ValueError) as error:
                    raise Escape(self._error(str(error), index), self._token) from error
            elif not isinstance(item, Chunk):
                if inspect.iscoroutine(item):
                    item.close()
                    msg = "returned a coroutine; define the hook itself with 'async def'"
                    raise Escape(self._error(msg, index), self._token)
                msg = f"returned {type(item).__name__}; return a chunk, a list of chunks or None"
                raise Escape(self._error(msg, index), self._token)
            if chunk is not part and not chunk.run_id:
                chunk.run_id = part.run_id
            chunks.append(chunk)
        return chunks

    def _error(self, message: str, index: int) -> ProcessorError:
        return self._bound[index - 1].error(HOOK, message)

    def _fault(self, error: BaseException, index: int) -> BaseException:
        """What a hook raised, on its way to the end of the pipeline.

        Raises:
            asyncio.CancelledError: the run is being cancelled; that goes its own way.
        """
        if is_cancel(error):
            raise error
        wire, _ = self._left()
        if wire is not None:
            return Escape(wire, self._token)
        named = self._error(f"{type(error).__name__}: {error}", index)
        named.__cause__ = error
        return Escape(named, self._token)

    def _compile_async(self, emit: Emit[Chunk]) -> Emit[Chunk]:
        stages = tuple((*s, a) for s, a in zip(self._stages, self._is_async, strict=True))
        pending = self._pending

        async def kernel(part: Chunk) -> None:
            cls = part.__class__
            if cls is not TextDelta and cls in _APART:
                return await self._through_async(part, 0, emit)
            index = 1
            result: Any = None
            try:
                for hook, args, remember, index, is_async in stages:  # noqa: B007 - read below
                    if remember is not None:
                        remember(part)
                    args.part = part
                    result = await hook(args) if is_async else hook(args)
                    if result is not part or pending:
                        if result.__class__ is not part.__class__ or pending:
                            break
                        if not result.run_id:
                            result.run_id = part.run_id
                        part = result
                else:
                    index = 0
            except TripWire as wire:
                self._caught(wire, index)
                result = None
            except FAULTS as error:
                raise self._fault(error, index) from error
            if index:
                return await self._settle_async(result, part, index, emit)
            wait = emit(part)
            if wait is not None:
                await wait
            return None

        return kernel

    async def _through_async(self, part: Chunk, start: int, emit: Emit[Chunk]) -> None:
        for index in range(start, len(self._stages)):
            if part.__class__ in _STRAIGHT:
                break
            if part.__class__ is DataChunk and not self._sees_data[index]:
                continue
            try:
                result = self._call(index, part)
                if self._is_async[index]:
                    result = await result
            except TripWire as wire:
                self._caught(wire, index + 1)
                result = None
            except FAULTS as error:
                raise self._fault(error, index + 1) from error
            if result is not part or self._pending:
                return await self._settle_async(result, part, index + 1, emit)
        wait = emit(part)
        if wait is not None:
            await wait
        return None

    async def _settle_async(self, result: Any, part: Chunk, index: int, emit: Emit[Chunk]) -> None:
        wire, written = self._left()
        for origin, chunk in written:
            chunk.run_id = chunk.run_id or part.run_id
            await self._through_async(chunk, origin + 1, emit)
        if wire is not None:
            raise Escape(wire, self._token)
        for chunk in self._chunks(result, part, index):
            await self._through_async(chunk, index, emit)


@operator
def process_all(
    source: Observable[Chunk], processors: Iterable[OutputProcessor]
) -> Observable[Chunk]:
    """Run every chunk through the `process_output_stream` hooks of `processors`, in list order.

    The list is one kernel, with one state per processor id and subscription. With sync hooks only
    it works on any observable; an async hook needs a running asyncio loop.

    Args:
        source: a stream of chunks.
        processors: processors that define `process_output_stream`, or bring a `stream_operator`.

    Returns:
        What the processors let through. It fails with `TripWire` when one calls `abort`, and with
        `ProcessorError` when one raises or returns what is no chunk; the source is closed then.

    Raises:
        ConfigurationError: an element has no id, and neither the hook nor an operator; two share
            an id.
    """
    return _processed("process_all", source, checked_list("process_all", processors))


def _processed(name: str, source: Observable[Chunk], chain: list[Any]) -> Observable[Chunk]:
    """A source behind processors: those with a hook in kernels, those with an operator between.

    Raises:
        ConfigurationError: one has no id, and neither the hook nor an operator; two share an id.
    """
    check_processors(chain, (HOOK, OPERATOR), name)
    group: list[Any] = []
    for processor in chain:
        if hasattr(processor, OPERATOR):
            source = _brought(fuse(source, _hooked(name, group)) if group else source, processor)
            group = []
        else:
            group.append(processor)
    return fuse(source, _hooked(name, group)) if group or not chain else source


def _brought(source: Observable[Chunk], processor: Any) -> Flowable[Chunk]:
    """A source behind the operator that a processor brings; its state is the subscription's."""

    async def run(emit: Emit[Chunk]) -> None:
        scope = Scope(run_id="", send=emit)

        def open_(onward: Emit[Chunk], _stage: Stage) -> Opened:
            def push(chunk: Chunk) -> Awaitable[Any] | None:
                scope.run_id = scope.run_id or chunk.run_id  # what is written is of their run
                return onward(chunk)

            return Opened(push)

        brought = BroughtOperator(Bound(processor, scope))
        await flowable(brought(fuse(source, Stage("run", open_)))).into(emit)
        await scope.flush()

    return Flowable(run)


class BroughtOperator:
    """The operator that a processor brings for the stream; made for every subscription.

    Attributes:
        bound: the processor.
    """

    def __init__(self, bound: Bound) -> None:
        """Bring it in."""
        self.bound = bound
        self.__name__ = bound.id

    def __call__(self, source: Observable[Chunk]) -> Observable[Chunk]:
        """The operator, made anew, behind a source.

        Raises:
            ProcessorError: the processor makes none.
        """
        return self.made()(source)

    def made(self) -> Operator:
        """The operator, made anew.

        Raises:
            ProcessorError: the processor makes none.
        """
        try:
            args = StreamOperatorArgs(
                **self.bound.common(), message_list=self.bound.scope.message_list
            )
            made = getattr(self.bound.processor, OPERATOR)(args)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise self.bound.error(OPERATOR, what) from error
        if not callable(made):
            what = f"returned {type(made).__name__}; return an operator"
            raise self.bound.error(OPERATOR, what)
        return cast("Operator", made)


def _hooked(name: str, chain: list[Any]) -> Stage:
    """The stage that runs every chunk through the hooks of processors."""

    def bound() -> OutputStage:
        return OutputStage(bind(chain, Scope(run_id="")))  # its chunks say of which run they are

    def open_(emit: Emit[Chunk], stage: Stage) -> Opened:
        return bound().opened(emit, stage)

    return Stage(name, open_, is_async=bound().is_async)


@operator
def process(source: Observable[Chunk], processor: OutputProcessor) -> Observable[Chunk]:
    """Run every chunk through one processor; see `process_all`.

    Args:
        source: a stream of chunks.
        processor: defines `process_output_stream`, or brings a `stream_operator`.

    Returns:
        What the processor lets through. It fails as `process_all` does.

    Raises:
        ConfigurationError: it has no id, and neither the hook nor an operator.
    """
    return _processed("process", source, [processor])
