"""Fusion: adjacent synchronous stages as one kernel.

A synchronous stage is a function from `emit` to `push`: it is given what takes its elements and
gives back what takes those before it. So a chain of stages is built back to front, once a
subscription, into one function that runs an element through all of them: no observer, no queue and
no look-up between two stages, and back-pressure comes for free, since `push` returns what `emit`
returns. An operator that is built on `fuse` joins the kernel before it; any other (an async one, or
one of `reactivex`) is a boundary, behind which the next kernel begins. `explain` shows both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from typing import Any, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from streampipe.abort import TripWire
from streampipe.errors import OperatorError, StructuredOutputError
from streampipe.operators._bridge import flowable
from streampipe.operators._core import (
    FAULTS,
    Emit,
    Enough,
    Escape,
    Flowable,
    is_cancel,
    met_cancel,
    unwrapped,
)
from streampipe.operators._functions import UnfitError
from streampipe.text import RuleError

T = TypeVar("T")

TOLD = (*FAULTS, Escape)
"""What a subscriber is told of; anything else, such as a KeyboardInterrupt, ends the program."""

TELLING = (OperatorError, RuleError, StructuredOutputError)
"""What says in its message what is wrong and quotes no text; any other error may quote some."""

Flush = Callable[[], Awaitable[Any] | None]
"""Emits what a stage still holds when its source has completed."""


class Opened:
    """A stage in a kernel, with the state of one subscription.

    Attributes:
        push: takes an element.
        flush: called once, when the source has completed; None if the stage holds nothing.
        held: how many characters of the text part of an element the stage holds back; None if it
            does not say. For a recorder.
    """

    __slots__ = ("flush", "held", "push")

    def __init__(
        self,
        push: Emit[Any],
        flush: Flush | None = None,
        held: Callable[[Any], int] | None = None,
    ) -> None:
        """Name the parts."""
        self.push = push
        self.flush = flush
        self.held = held


class Blamed:
    """Whom the failure of a function of the user's is told of: the operator that it was given to.

    Attributes:
        name: the operator's name, for errors and pictures.
        reveals: whether errors quote the element; see `revealing`.
        token: what its signals are told apart by.
    """

    __slots__ = ("name", "reveals", "token")

    def __init__(self, name: str) -> None:
        """Name the operator."""
        self.name = name
        self.reveals = _revealing.get()
        self.token: object = self

    def fault(
        self, error: BaseException, item: object = None, *, when: str | None = None
    ) -> BaseException:
        """What to raise when a function of the user's raised `error`, for `item` or at `when`.

        Its message has the operator's name and the kind of element, not the text of either:
        it may reach a client. The cause is chained, and the message says so. A block is the
        stage's, as it is.

        Raises:
            BaseException: the error itself when it is a signal: a cancel of this very task.
        """
        if is_cancel(error) or isinstance(error, Escape):
            raise error
        if isinstance(error, TripWire):
            return Escape(error, self.token)
        if isinstance(error, asyncio.CancelledError):
            return Escape(met_cancel(error, self.name), self.token)
        kind = getattr(item, "type", None) or type(item).__name__
        where = when or f"on {kind}"
        what = f"{type(error).__name__} {where}"
        if isinstance(error, UnfitError):
            what = f"{error} ({where})"
        elif isinstance(error, TELLING):
            what = f"{what}: {error}"
        elif self.reveals:
            what = f"{what}: {error}; the element was {item!r:.200}"
        else:
            what = f"{what}; see __cause__"
        named = OperatorError(what, operator=self.name)
        named.__cause__ = error
        return Escape(named, self.token)


class Stage(Blamed):
    """One synchronous step of a pipeline, ready to be opened for any number of subscriptions.

    In a kernel it is a copy of its own: the copy is what its signals are told apart by.

    Attributes:
        is_async: whether `push` may return a coroutine whatever `emit` returns: the stage then
            needs a running loop.
        goes_on: whether it is the rest of an operator that begins with the stage before it.
    """

    __slots__ = ("_open", "goes_on", "is_async")

    def __init__(
        self,
        name: str,
        open_: Callable[[Emit[Any], Stage], Opened],
        *,
        is_async: bool = False,
        goes_on: bool = False,
    ) -> None:
        """Make a stage of a function that is called once a subscription.

        Args:
            name: the operator's name.
            open_: gets `emit` and this stage, whose `fault` it uses.
            is_async: see the class.
            goes_on: see the class.
        """
        super().__init__(name)
        self.is_async = is_async
        self.goes_on = goes_on
        self._open = open_

    def open(self, emit: Emit[Any]) -> Opened:
        """Bind the stage to what takes its elements, with a state of its own."""
        return self._open(emit, self)

    def telling(self, note: Callable[[Opened], None]) -> Stage:
        """The same stage; `note` is told when it is opened."""
        inner = self._open

        def open_(emit: Emit[Any], stage: Stage) -> Opened:
            opened = inner(emit, stage)
            note(opened)
            return opened

        made = copy(self)
        made._open = open_  # noqa: SLF001 - our own copy
        return made

    def behind(self, source: Observable[Any]) -> Observable[Any]:
        """The stage behind a source, in its last kernel where there is one."""
        return fuse(source, self)


def emit_all(items: Iterable[Any], emit: Emit[Any]) -> Awaitable[Any] | None:
    """Emit elements in order; returns the rest as an awaitable as soon as one has to wait."""
    left = iter(items)
    for item in left:
        wait = emit(item)
        if wait is not None:
            return _emit_rest(wait, left, emit)
    return None


async def _emit_rest(wait: Awaitable[Any], left: Iterator[Any], emit: Emit[Any]) -> None:
    await wait
    for item in left:
        following = emit(item)
        if following is not None:
            await following


class Kernel:
    """Stages bound to one `emit`: `push` runs an element through all of them."""

    __slots__ = ("_flushes", "push", "stages")

    def __init__(
        self, stages: tuple[Stage, ...], emit: Emit[Any], owner: Stage | None = None
    ) -> None:
        """Open the stages, back to front; inside another stage, `owner`, their signals are its."""
        self.stages = [copy(stage) for stage in stages]
        for stage in self.stages:
            stage.token = stage if owner is None else owner.token
        flushes: list[Flush | None] = []
        for stage in reversed(self.stages):
            try:
                opened = stage.open(emit)
            except Escape as escape:  # nothing runs before it yet that it would have to pass
                raise escape.error from escape.error.__cause__
            flushes.append(opened.flush)
            emit = opened.push
        flushes.reverse()
        self._flushes = flushes
        self.push = emit

    def owns(self, token: object) -> bool:
        """Whether a signal with this token is of one of these stages."""
        return any(stage.token is token for stage in self.stages)

    def after(self, enough: Enough) -> int:
        """The index behind the stage that has seen enough.

        Raises:
            Enough: it is none of these; or the stage that they are inside, which then completes.
        """
        for index, stage in enumerate(self.stages):
            if stage is enough.stage:
                return index + 1
        raise enough

    def flush(self, start: int = 0) -> Awaitable[Any] | None:
        """Flush the stages from `start` on, each through those behind it."""
        for index in range(start, len(self._flushes)):
            flush = self._flushes[index]
            if flush is None:
                continue
            try:
                wait = flush()
            except Enough as enough:
                return self.flush(self.after(enough))
            if wait is not None:
                return self._flush_rest(wait, index + 1)
        return None

    async def _flush_rest(self, wait: Awaitable[Any], start: int) -> None:
        try:
            await wait
        except Enough as enough:
            start = self.after(enough)
        following = self.flush(start)
        if following is not None:
            await following


class Fused(Flowable[Any]):
    """Stages behind a `Flowable`, run as one kernel."""

    def __init__(self, source: Flowable[Any], stages: tuple[Stage, ...]) -> None:
        """Put stages behind a source."""
        super().__init__(self._run)
        self.source: Observable[Any] = source
        self.stages = stages
        self._flow = source

    async def _run(self, emit: Emit[Any]) -> None:
        kernel = Kernel(self.stages, emit)
        start = 0
        try:
            try:
                await self._flow.into(kernel.push)
            except Enough as enough:
                start = kernel.after(enough)
            wait = kernel.flush(start)
            if wait is not None:
                await wait
        except Escape as escape:
            if not kernel.owns(escape.stage):
                raise
            raise escape.error from escape.error.__cause__


class FusedRx(Observable[Any]):
    """Stages behind an ordinary observable: no loop needed, on whatever thread the source is."""

    def __init__(self, source: Observable[Any], stages: tuple[Stage, ...]) -> None:
        """Put stages behind a source."""
        super().__init__(self._subscribe_stages)
        self.source = source
        self.stages = stages

    def _subscribe_stages(
        self,
        observer: abc.ObserverBase[Any],
        scheduler: abc.SchedulerBase | None = None,
    ) -> abc.DisposableBase:
        try:
            kernel = Kernel(self.stages, observer.on_next)
        except TOLD as error:
            observer.on_error(error)  # type: ignore[arg-type]  # a TripWire too
            return Disposable()
        over = False

        def on_next(item: Any) -> None:
            nonlocal over
            if over:
                return
            try:
                kernel.push(item)
            except Enough as enough:
                over = True
                complete(kernel.after(enough))
            except TOLD as error:
                over = True
                observer.on_error(unwrapped(error))  # type: ignore[arg-type]  # a TripWire too

        def complete(start: int) -> None:
            try:
                kernel.flush(start)
            except TOLD as error:
                observer.on_error(unwrapped(error))  # type: ignore[arg-type]  # a TripWire too
            else:
                observer.on_completed()

        def on_completed() -> None:
            nonlocal over
            if not over:
                over = True
                complete(0)

        def on_error(error: Exception) -> None:
            nonlocal over
            if not over:
                over = True
                observer.on_error(error)

        return self.source.subscribe(on_next, on_error, on_completed, scheduler=scheduler)


_fusing: ContextVar[bool] = ContextVar("fusing", default=True)
_revealing: ContextVar[bool] = ContextVar("revealing", default=False)


@contextmanager
def fusion(enabled: bool) -> Iterator[None]:  # noqa: FBT001 - `fusion(False)` reads as it is meant
    """Within the block pipelines are built fused or, for comparison, stage by stage.

    Args:
        enabled: False builds a kernel for every single stage. It changes no result, only speed.

    Yields:
        Nothing.
    """
    token = _fusing.set(enabled)
    try:
        yield
    finally:
        _fusing.reset(token)


@contextmanager
def revealing() -> Iterator[None]:
    """Operators that are made within the block quote in their errors the element at fault.

    For debugging: without it no text of a chunk is ever in an `OperatorError`.

    Yields:
        Nothing.
    """
    token = _revealing.set(True)
    try:
        yield
    finally:
        _revealing.reset(token)


def fuse(source: Observable[Any], stage: Stage) -> Observable[Any]:
    """`stage` behind `source`: in its last kernel where there is one, else as a new kernel."""
    if isinstance(source, Fused) and _fusing.get():
        return Fused(source._flow, (*source.stages, stage))  # noqa: SLF001 - our own class
    if isinstance(source, Flowable):
        return Fused(source, (stage,))
    if stage.is_async:
        return fuse(flowable(source), stage)
    if isinstance(source, FusedRx) and _fusing.get():
        return FusedRx(source.source, (*source.stages, stage))
    return FusedRx(source, (stage,))
