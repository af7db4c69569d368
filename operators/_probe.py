"""Probes: what stands before and behind each stage of a pipeline that is being recorded."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from reactivex import Observable

from streampipe.abort import TripWire
from streampipe.chunks import (
    AbortChunk,
    Chunk,
    ErrorChunk,
    FinishChunk,
    StepFinish,
    StepStart,
    TripwireChunk,
)
from streampipe.operators._core import Emit, Escape, unwrapped
from streampipe.operators._fuse import Opened, Stage, fuse
from streampipe.operators._inside import DELTAS, MOST_INSIDE, Inside, Record

_FAULTS = (Exception, TripWire, Escape)
_NOTED: frozenset[type[Any]] = frozenset(
    {StepStart, StepFinish, FinishChunk, TripwireChunk, ErrorChunk, AbortChunk}
)


AnyOperator = Callable[[Observable[Any]], Observable[Any]]


class Log:
    """The records of one run.

    Attributes:
        name: of the run or the pipeline.
        stages: names of the stages in order, the source first; the client is behind the last.
        records: the newest of them.
        forgotten: how many older ones were let go.
    """

    def __init__(
        self,
        name: str,
        source: str,
        limit: int,
        clock: Callable[[], float],
        *,
        content: bool,
        begun: Callable[[Any], None],
    ) -> None:
        """Begin with no record; `begun` is given this log when its pipeline is built."""
        self._begun = begun
        self.name = name
        self.stages = [source]
        self.records: deque[Record] = deque(maxlen=limit)
        self.content = content
        self.clock = clock
        self.tick = 0
        self.step = 0
        self.attempt = 0
        self.cause: BaseException | None = None
        self.stopped = ""
        self.lanes: list[Lane] = []
        self._between: dict[int, tuple[Any, tuple[int, ...], int]] = {}
        self._count = 0
        self._in_step = False

    @property
    def forgotten(self) -> int:
        """How many records were let go."""
        return self._count - len(self.records)

    def came(self, element: Any, place: int, stage: str, *, seen: bool) -> Record:
        """A record of an element that comes to a stage; `seen`: whether its text may be kept."""
        found = self._between.pop(id(element), None)
        if found is not None and found[0] is element:
            _, origins, came_from = found
        else:
            origins, came_from = (self._ordinal(),), 0
        cls = element.__class__
        if cls in DELTAS:
            kind, part, text = cls.type, element.id, element.text
        elif isinstance(element, Chunk):
            kind, part, text = element.type, "", ""
        else:
            kind, part, text = cls.__name__, "", element if cls is str else ""
        record = Record(
            stage,
            place,
            origins,
            kind,
            part,
            len(text),
            text if seen or self.content else None,
            self.tick,
            came_from,
            self.step,
            self.attempt,
            self.clock(),
        )
        self._count += 1
        self.records.append(record)
        return record

    def moved(self, element: Any, origins: tuple[int, ...], place: int) -> None:
        """An element is on its way from the stage at this place to the next."""
        between = self._between
        between[id(element)] = (element, origins, place)
        if len(between) > MOST_INSIDE:  # taken in by what no probe stands before
            del between[next(iter(between))]

    def _ordinal(self) -> int:
        self.tick += 1
        return self.tick - 1

    def source(self, emit: Emit[Any]) -> Emit[Any]:
        """Give every element of the source its ordinal."""
        name, moved = self.stages[0], self.moved

        def push(element: Any) -> Awaitable[Any] | None:
            if element.__class__ is StepStart:
                self.step, self.attempt = element.step_number, element.attempt
            record = self.came(element, 0, name, seen=False)
            record.verdict = "passed"
            record.time_out = record.time_in
            moved(element, record.origins, 0)
            return emit(element)

        return push

    def client(self, emit: Emit[Any]) -> Emit[Any]:
        """Note what the client is given."""
        place = len(self.stages)
        self._begun(self)

        def push(element: Any) -> Awaitable[Any] | None:
            record = self.came(element, place, "client", seen=True)
            record.verdict = "passed"
            record.time_out = record.time_in
            if element.__class__ in _NOTED:
                self._told(element)
            try:
                return emit(element)
            except _FAULTS as error:  # the client's own; no stage is to blame
                self.cause = unwrapped(error)
                self.stopped = "the client stopped it"
                raise

        return push

    def _told(self, chunk: Any) -> None:
        """What a run says of itself: which stage stopped it, and what is void for that."""
        match chunk:
            case StepFinish(reason="retry", tripwire=wire) if wire is not None:
                self.blamed(wire.processor_id, wire.reason)
                self._void()
            case StepStart():
                self._in_step = True
            case TripwireChunk():
                self.blamed(chunk.processor_id, chunk.reason)
                if self._in_step:  # a block before the first step has nothing to take back
                    self._void()
            case ErrorChunk(error=error):
                self.blamed(error.processor_id or "", error.name)
            case FinishChunk():
                self.ended()
            case _:
                pass

    def blamed(self, stage: str, reason: str) -> None:
        """A stage stopped the run: where no probe saw on what, the oldest in it."""
        if self.cause is None:
            self.stopped = f"{stage or 'the run'} stopped it"
            lane = next((lane for lane in self.lanes if lane.is_called(stage)), None)
            if lane is not None:
                self.stopped = f"{lane.name} stopped it"
                lane.inside.block(reason)
        self.cause = None

    def broke(self, error: BaseException, record: Record) -> None:
        """A stage raised on an element; only the first probe that sees it is of that stage."""
        error = unwrapped(error)
        if error is self.cause:
            return
        self.cause = error
        self.stopped = f"{record.stage} stopped it"
        record.verdict = "blocked"
        record.reason = error.reason if isinstance(error, TripWire) else type(error).__name__

    def _void(self) -> None:
        """The step was rejected or blocked: what had left is void, what is held never leaves."""
        reason, self.stopped = self.stopped, ""
        for lane in self.lanes:
            lane.inside.settle(reason)
        client = len(self.stages)
        told = (record for record in reversed(self.records) if record.place == client)
        next(told)  # the chunk that says so
        for record in told:
            record.verdict = "voided"
            record.reason = reason
            if record.kind == StepStart.type:
                return

    def ended(self, error: BaseException | None = None) -> None:
        """The run is over: what is still inside a stage never leaves."""
        if error is not None:
            error = unwrapped(error)
            reason = error.reason if isinstance(error, TripWire) else type(error).__name__
            who = getattr(error, "processor_id", "") or getattr(error, "operator", "")
            self.blamed(who, reason)
        for lane in self.lanes:
            lane.inside.settle(self.stopped)


class Lane:
    """A stage that is being recorded."""

    def __init__(self, log: Log, name: str) -> None:
        """Take the next place."""
        self.name = name
        self.inside = Inside(log.clock)
        self._log = log
        self._place = len(log.stages)

    def is_called(self, name: str) -> bool:
        """Whether an error with this name of a processor or an operator is of this stage."""
        return bool(name) and (self.name == name or self.name.startswith(f"{name}("))

    def enter(self, emit: Emit[Any]) -> Emit[Any]:
        """Note what comes to the stage."""
        log, came, name, place = self._log, self.inside.came, self.name, self._place

        def push(element: Any) -> Awaitable[Any] | None:
            record = log.came(element, place, name, seen=False)
            came(element, record)
            try:
                wait = emit(element)
            except _FAULTS as error:
                log.broke(error, record)
                raise
            return wait if wait is None else self._waited(wait, record)

        return push

    async def _waited(self, wait: Awaitable[Any], record: Record) -> None:
        try:
            await wait
        except _FAULTS as error:
            self._log.broke(error, record)
            raise

    def leave(self, emit: Emit[Any]) -> Emit[Any]:
        """Note what leaves the stage."""
        moved, leaves, place = self._log.moved, self.inside.leaves, self._place

        def push(element: Any) -> Awaitable[Any] | None:
            moved(element, leaves(element), place)
            return emit(element)

        return push

    def behind(
        self, source: Observable[Any], operator: AnyOperator, apply: AnyOperator | None = None
    ) -> Observable[Any]:
        """An operator behind a source: in its kernel, or where it has a pace of its own, beside."""
        stages: tuple[Stage, ...] | None = getattr(operator, "stages", None)
        if stages is not None:
            for stage in self.stages(stages):
                source = stage.behind(source)
            return source
        self.inside.apart = True
        return fuse((apply or operator)(fuse(source, self._enters())), self._leaves())

    def stages(self, stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        """Stages of a kernel that together are this one."""
        return (self._enters(), *(self._telling(stage) for stage in stages), self._leaves())

    def _enters(self) -> Stage:
        return Stage("record", lambda emit, _: Opened(self.enter(emit)))

    def _leaves(self) -> Stage:
        return Stage("record", lambda emit, _: Opened(self.leave(emit)))

    def _telling(self, stage: Stage) -> Stage:
        """The stage, of which it is known how much text it holds, if it says so."""

        def note(opened: Opened) -> None:
            self.inside.held = opened.held or self.inside.held

        return stage.telling(note)
