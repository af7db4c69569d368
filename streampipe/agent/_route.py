"""The way of a chunk through the output processors, and through Rx operators among them.

A list such as `[p, q, operator, r]` is two kernels with the operator between: `p+q`, then `r`.
What the model streams goes `p+q`, operator, `r`; everything else (lifecycle chunks, tool results,
data) goes `p+q`, `r`. Without operators there is one kernel and one way. What `p+q` had held of the
stream and lets go when such a chunk comes is the stream's: it goes to the operator as well.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Any

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable
from reactivex.subject import Subject

from streampipe.abort import TripWire
from streampipe.agent._spec import is_operator
from streampipe.chunks import (
    AbortChunk,
    Chunk,
    DataChunk,
    ErrorChunk,
    FinishChunk,
    ResponseMetadata,
    StartChunk,
    StepFinish,
    StepStart,
    TextDelta,
    ToolErrorChunk,
    TripwireChunk,
)
from streampipe.contracts.processor import STREAM_OPERATOR
from streampipe.errors import OperatorError, StreampipeError
from streampipe.operators._bridge import flowable
from streampipe.operators._compose import flat, label
from streampipe.operators._core import Buffer, Emit, Escape, Flowable, Operator
from streampipe.operators._fuse import Opened, Stage, fuse
from streampipe.operators._process import BroughtOperator, OutputStage
from streampipe.operators._record import UNWATCHED, Watch, Watched
from streampipe.operators._scope import Bound, Scope

# What an operator in `output_processors` never sees: it is applied to what the model streams.
_BESIDE = frozenset(
    {
        StartChunk,
        StepStart,
        StepFinish,
        FinishChunk,
        ErrorChunk,
        AbortChunk,
        TripwireChunk,
        DataChunk,
        ToolErrorChunk,
        ResponseMetadata,
    },
)


class _Leg:
    """Processors side by side: one kernel, or one for each where they are watched."""

    def __init__(self, bounds: list[Bound], watch: Watch) -> None:
        groups = watch.split(bounds)
        self._stages = [OutputStage(group) for group in groups]
        self._lanes = [watch.lane(group[0].id if group else "") for group in groups]

    def compile(self, end: Emit[Chunk]) -> Emit[Chunk]:
        for stage, lane in zip(reversed(self._stages), reversed(self._lanes), strict=True):
            end = lane.enter(stage.compile(lane.leave(end)))
        return end

    def behind(self, source: Observable[Chunk]) -> Observable[Chunk]:
        for stage, lane in zip(self._stages, self._lanes, strict=True):
            for step in lane.stages((Stage("process_all", stage.opened),)):
                source = fuse(source, step)
        return source

    def renew(self) -> None:
        for stage in self._stages:
            stage.renew()

    def owns(self, token: object) -> bool:
        return any(stage.owns(token) for stage in self._stages)


class _Gate:
    """The way into an operator for what comes beside the stream.

    Attributes:
        into: the operator, while the model streams.
        shut: whether an operator has seen enough of this answer: no more of it leaves.
    """

    def __init__(self) -> None:
        self.into: Emit[Chunk] | None = None
        self.shut = False

    def past(self, onward: Emit[Chunk]) -> Emit[Chunk]:
        """What takes chunks that come beside the stream: those that are none of it go onward."""

        def push(chunk: Chunk) -> Awaitable[Any] | None:
            if chunk.__class__ in _BESIDE or (self.into is None and not self.shut):
                return onward(chunk)
            return None if self.into is None else self.into(chunk)

        return push

    def opened(self, emit: Emit[Chunk], _stage: Stage) -> Opened:
        """A stage in front of the operator that shows the way."""
        self.into = emit
        return Opened(emit)

    def close(self, *, shut: bool) -> None:
        """The stream has ended."""
        self.into = None
        self.shut = shut


class Route:
    """The output processors of a run, and the operators between them."""

    def __init__(self, elements: Iterable[Any], scope: Scope, watch: Watch = UNWATCHED) -> None:
        """Bind the processors and split the list at its operators.

        Args:
            elements: processors and operators.
            scope: the run.
            watch: records what they do, or nothing.
        """
        self.bounds: list[Bound] = []
        self._scope = scope
        self._watch = watch
        self._operators: list[tuple[Operator, Watched, tuple[Stage, ...]]] = []
        self._legs: list[_Leg] = []
        group: list[Bound] = []
        for element, checks in _single(elements):
            if not is_operator(element):
                self.bounds.append(Bound(element, scope))
                if not hasattr(element, STREAM_OPERATOR):
                    group.append(self.bounds[-1])
                    continue
                element = BroughtOperator(self.bounds[-1])  # noqa: PLW2901 - it stands there
            self._legs.append(_Leg(group, watch))
            self._operators.append((element, watch.lane(label(element)), checks))
            group = []
        self._legs.append(_Leg(group, watch))
        self._gates = [_Gate() for _ in self._operators]
        self._last: Emit[Chunk] | None = None
        self._head: Emit[Chunk]

    def compile(self, end: Emit[Chunk]) -> Emit[Chunk]:
        """The head of the chain whose end is `end`."""
        head = self._last = self._legs[-1].compile(end)
        for leg, gate in zip(reversed(self._legs[:-1]), reversed(self._gates), strict=True):
            head = leg.compile(gate.past(head))
        self._head = self._watch.source(head)
        return self._head

    def renew(self) -> None:
        """A new attempt: bring the args of the hooks up to date."""
        for leg in self._legs:
            leg.renew()
        for gate in self._gates:
            gate.close(shut=False)

    def owns(self, token: object) -> bool:
        """Whether what escapes with this token comes from one of the run's own processors."""
        return any(leg.owns(token) for leg in self._legs)

    def wire(self, error: TripWire | Escape) -> TripWire:
        """The wire that was pulled, by one of the run's own processors if it has escaped.

        Raises:
            Escape: `error` itself, when it is something else.
        """
        wire = error.error if isinstance(error, Escape) and self.owns(error.stage) else error
        if not isinstance(wire, TripWire):
            raise error
        return wire

    def through(self, answer: Observable[Chunk]) -> Flowable[Chunk]:
        """The model's stream on its way through the operators; subscribed to once an attempt."""
        if not self._operators:
            return flowable(answer)

        async def run(emit: Emit[Chunk]) -> None:  # noqa: ARG001 - it joins behind its own head
            left_early = True

            async def whole(emit: Emit[Chunk]) -> None:
                nonlocal left_early
                await flowable(answer).into(emit)
                left_early = False

            source = fuse(Flowable(whole), Stage("beside", self._beside))
            ways = zip(self._legs, self._gates, self._operators, strict=False)
            for leg, gate, (operator, lane, checks) in ways:
                step = partial(self._applied, operator)
                entered = fuse(leg.behind(_in_step(source)), Stage("gate", gate.opened))
                source = lane.behind(entered, operator, step)
                for check in checks:
                    source = fuse(source, check)
            try:
                if self._last is not None:
                    await _in_step(source).into(self._last)
                await self._scope.flush()  # what operators wrote and did not wait for
            finally:
                for gate in self._gates:
                    gate.close(shut=left_early)

        return Flowable(run)

    def _beside(self, emit: Emit[Chunk], _stage: Stage) -> Opened:
        """What no operator is given goes the way of the lifecycle chunks."""
        head = self._head
        onward = self._watch.source(emit)

        def push(chunk: Chunk) -> Awaitable[Any] | None:
            cls = chunk.__class__
            return head(chunk) if cls is not TextDelta and cls in _BESIDE else onward(chunk)

        return Opened(push)

    def _applied(self, operator: Operator, source: Observable[Chunk]) -> Observable[Chunk]:
        """An operator behind a source: one of ours as it is, any other kept beside the rest."""
        if isinstance(operator, BroughtOperator):
            operator = operator.made()
        if getattr(operator, "flows", False):
            return operator(source)
        return beside(operator, _in_step(source))


def _single(elements: Iterable[Any]) -> Iterator[tuple[Any, tuple[Stage, ...]]]:
    """The elements, each with what checks what it emits.

    For a pipeline of ours its operators: each of them is a stage. What they hand to each other is
    theirs, only the last has to emit chunks.
    """
    for element in elements:
        row = list(flat([element])) if getattr(element, "flows", False) else [element]
        for place, single in enumerate(row, 1):
            ends = is_operator(single) and place == len(row)
            may_stray = ends and not all(getattr(each, "keeps", False) for each in row)
            yield single, (_chunks_of(single),) if may_stray else ()


def _chunks_of(operator: Operator) -> Stage:
    """Ends the run where an operator emits what is no chunk: nobody behind it could tell it."""
    name = label(operator).partition("(")[0]

    def open_(emit: Emit[Chunk], stage: Stage) -> Opened:
        def push(item: Any) -> Awaitable[Any] | None:
            if isinstance(item, Chunk):
                return emit(item)
            what = type(item).__name__
            msg = f"emitted {what}; an operator in output_processors emits chunks"
            raise Escape(OperatorError(msg, operator=name), stage.token)

        return Opened(push)

    return Stage(name, open_)


def _in_step(source: Observable[Chunk]) -> Flowable[Chunk]:
    """What leaves an operator, one at a time: the model goes on when the client has it.

    Else the model would run ahead of the guards behind the operator, and what a hook writes
    would overtake the chunks between.
    """
    if isinstance(source, Flowable):
        return source

    async def run(emit: Emit[Chunk]) -> None:
        buffer: Buffer[Chunk] = Buffer(1)
        buffer.open(source)
        try:
            while await buffer.more():
                wait = emit(buffer.items.popleft())
                if wait is not None:
                    await wait
                buffer.flow.take()
        finally:
            await buffer.close()

    return Flowable(run)


def beside(operator: Operator, source: Observable[Chunk]) -> Observable[Chunk]:
    """Apply an operator to the model's chunks; the others pass it by, in order.

    What the operator raises is an `OperatorError` that names it.
    """
    name: str = getattr(operator, "__name__", type(operator).__name__)

    def subscribe(
        observer: abc.ObserverBase[Chunk],
        scheduler: abc.SchedulerBase | None = None,
    ) -> abc.DisposableBase:
        inner: Subject[Chunk] = Subject()
        passing: list[Exception] = []

        def on_error(error: Exception) -> None:
            ours = isinstance(error, StreampipeError | TripWire) or error in passing
            observer.on_error(error if ours else _named(error, name))

        def on_next(chunk: Chunk) -> None:
            if chunk.__class__ in _BESIDE:
                observer.on_next(chunk)
            else:
                inner.on_next(chunk)

        def fail(error: Exception) -> None:
            passing.append(error)
            inner.on_error(error)

        applied = _apply(operator, name, inner)
        return CompositeDisposable(
            applied.subscribe(
                observer.on_next,
                on_error,
                observer.on_completed,
                scheduler=scheduler,
            ),
            source.subscribe(on_next, fail, inner.on_completed, scheduler=scheduler),
        )

    return Observable(subscribe)


def _apply(
    operator: Callable[[Any], Any], name: str, source: Observable[Chunk]
) -> Observable[Chunk]:
    try:
        applied = operator(source)
    except Exception as error:
        raise _named(error, name) from error
    if not isinstance(applied, Observable):
        msg = f"returned {type(applied).__name__} for an Observable; an operator returns one"
        raise OperatorError(msg, operator=name)
    return applied


def _named(error: BaseException, name: str) -> OperatorError:
    named = OperatorError(f"{type(error).__name__}: {error}", operator=name)
    named.__cause__ = error
    return named
