"""The recorder: what every stage of a pipeline did with every chunk.

A pipeline or a run that is built with a recorder has a probe before and behind each stage; one
built without has none, and is made of the same objects as if there were no recorder at all. From
the one record come the marbles, as text and as a picture.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from reactivex import Observable, abc

from streampipe.chunks import Chunk
from streampipe.errors import ConfigurationError
from streampipe.operators._bridge import flowable
from streampipe.operators._core import Emit, Flowable, is_cancel
from streampipe.operators._fuse import Opened, Stage, fuse
from streampipe.operators._inside import Record
from streampipe.operators._marbles import html_of, marbles_of
from streampipe.operators._options import checked_count
from streampipe.operators._probe import AnyOperator, Lane, Log

LIMIT = 100_000  # records of one run; past it the oldest go
RUNS = 8  # runs of which the records are kept


class Watched(Protocol):
    """A stage of a pipeline as the run builds it in, with a recorder or without."""

    def enter(self, emit: Emit[Any]) -> Emit[Any]:
        """What takes the elements before the stage, given what takes them in the stage."""
        ...

    def leave(self, emit: Emit[Any]) -> Emit[Any]:
        """What takes the stage's elements, given what takes them behind it."""
        ...

    def behind(
        self, source: Observable[Any], operator: AnyOperator, apply: AnyOperator | None = None
    ) -> Observable[Any]:
        """An operator behind a source; `apply`: how, where it is more than to call it."""
        ...

    def stages(self, stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        """Stages of a kernel that together are this one."""
        ...


class Watch(Protocol):
    """A run as its pipeline is built, with a recorder or without."""

    def source(self, emit: Emit[Any]) -> Emit[Any]:
        """What takes the elements of the source, given what takes them behind it."""
        ...

    def client(self, emit: Emit[Any]) -> Emit[Any]:
        """What takes the elements for the client, given the client."""
        ...

    def lane(self, name: str) -> Watched:
        """The next stage."""
        ...

    def split(self, group: list[Any]) -> list[list[Any]]:
        """Processors side by side, as the kernels they are to run in."""
        ...


class Recording(Log):
    """One run, or one subscription, as it was recorded."""

    def lane(self, name: str) -> Lane:
        """The next stage of the pipeline."""
        lane = Lane(self, name)
        self.lanes.append(lane)
        self.stages.append(name)
        return lane

    def split(self, group: list[Any]) -> list[list[Any]]:
        """Processors side by side in a kernel, as kernels of one: each is a stage."""
        return [[element] for element in group]

    def marbles(self, *, width: int = 100) -> str:
        """See `Recorder.marbles`."""
        return marbles_of(self, width)

    def _repr_html_(self) -> str:
        """The marbles as a picture, for notebooks."""
        return html_of(self)


class Recorder:
    """Records what every stage of a pipeline, or of an agent's run, did with every chunk.

    >>> import asyncio
    >>> from streampipe import Recorder, TextDelta
    >>> from streampipe import operators as ops
    >>> recorder = Recorder()
    >>> b = TextDelta("0", "b")
    >>> shout = ops.pipe(ops.filter(lambda c: c != b), ops.map_text(str.upper), recorder=recorder)
    >>> async def main():
    ...     chunks = ops.of(*(TextDelta("0", text) for text in "abc"))
    ...     shouted = shout(chunks).pipe(ops.text())
    ...     return [text async for text in ops.to_aiter(shouted)]
    >>> asyncio.run(main())
    ['A', 'C']
    >>> print(recorder.marbles())
    source            ‹1›  ‹1›  ‹1›
    filter(<lambda>)  ‹1›  ×    ‹1›
    map_text(upper)   ~A        ~C
    client            A         C
    <BLANKLINE>
    ~ rewritten   × dropped   ‹n› n characters, not recorded
    >>> [record.verdict for record in recorder.records if record.stage == "filter(<lambda>)"]
    ['passed', 'dropped', 'passed']

    Give it to `ops.pipe(..., recorder=recorder)`, or to a call: `agent.stream(prompt,
    recorder=recorder)`. It may watch any number of runs, one after the other or at once.

    Attributes:
        content: whether the text of chunks is recorded at every stage. Without it a record has
            the text of what reached the client only: what a guard removed is not kept.
    """

    def __init__(
        self,
        *,
        content: bool = False,
        limit: int = LIMIT,
        runs: int = RUNS,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Record nothing yet.

        Args:
            content: see the class.
            limit: how many records of a run are kept, the newest.
            runs: how many runs are kept, the newest.
            clock: seconds, from a clock that does not go back.

        Raises:
            ConfigurationError: `limit` or `runs` is no whole number of at least 1.
        """
        checked_count("Recorder", "limit", limit)
        checked_count("Recorder", "runs", runs)
        self.content = content
        self._limit = limit
        self._clock = clock
        self._runs: deque[Recording] = deque(maxlen=runs)

    @property
    def runs(self) -> list[Recording]:
        """The runs that were recorded, the oldest first."""
        return list(self._runs)

    @property
    def records(self) -> list[Record]:
        """The records of the newest run, in the order in which the chunks came to the stages."""
        return list(self._runs[-1].records) if self._runs else []

    def open(self, name: str, source: str) -> Recording:
        """Prepare to record a run; it counts as one when its pipeline is built.

        Args:
            name: names it.
            source: what its chunks come from.
        """
        return Recording(
            name, source, self._limit, self._clock, content=self.content, begun=self._runs.append
        )

    def marbles(self, *, width: int = 100) -> str:
        """The newest run as a marble diagram, a lane a stage.

        Args:
            width: characters of a line; a long run is shown from its beginning.

        Returns:
            Lines of text; of no run at all, a line that says so.
        """
        return self._runs[-1].marbles(width=width) if self._runs else "nothing was recorded"

    def _repr_html_(self) -> str:
        """The newest run as a picture, for notebooks."""
        return html_of(self._runs[-1]) if self._runs else "<p>nothing was recorded</p>"


def check_recorder(recorder: object, where: str) -> None:
    """Refuse what is no recorder.

    Raises:
        ConfigurationError: naming the place.
    """
    if not isinstance(recorder, Recorder):
        msg = f"{where}: recorder must be a Recorder(), not {recorder!r:.80}"
        raise ConfigurationError(msg)


def recorded(
    source: Observable[Any],
    operators: Iterable[tuple[str, AnyOperator]],
    recorder: Recorder,
    name: str,
) -> Observable[Any]:
    """Operators, with what they are called, behind a source: recorded at each subscription."""

    def made(recording: Recording) -> Observable[Any]:
        behind = fuse(source, Stage("record", lambda emit, _: Opened(recording.source(emit))))
        for label, operator in operators:
            behind = recording.lane(label).behind(behind, operator)
        return fuse(behind, Stage("record", lambda emit, _: Opened(recording.client(emit))))

    async def run(emit: Emit[Any]) -> None:
        recording = recorder.open(name, "source")
        try:
            await flowable(made(recording)).into(emit)
        except BaseException as error:
            recording.ended(None if is_cancel(error) else error)
            raise
        recording.ended()

    if isinstance(source, Flowable):
        return Flowable(run)

    def subscribe(
        observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        recording = recorder.open(name, "source")

        def on_error(error: Exception) -> None:
            recording.ended(error)
            observer.on_error(error)

        def on_completed() -> None:
            recording.ended()
            observer.on_completed()

        return made(recording).subscribe(
            observer.on_next, on_error, on_completed, scheduler=scheduler
        )

    return Observable(subscribe)


class _Plain:
    """A stage that nobody watches: everything is as it was given."""

    def enter(self, emit: Emit[Any]) -> Emit[Any]:
        return emit

    def leave(self, emit: Emit[Any]) -> Emit[Any]:
        return emit

    def behind(
        self, source: Observable[Any], operator: AnyOperator, apply: AnyOperator | None = None
    ) -> Observable[Any]:
        return (apply or operator)(source)

    def stages(self, stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        return stages


_PLAIN = _Plain()


class Unwatched:
    """A run that nobody watches: its pipeline is built of what it would be built of anyway."""

    def source(self, emit: Emit[Chunk]) -> Emit[Chunk]:
        """What takes the chunks of the source."""
        return emit

    def client(self, emit: Emit[Chunk]) -> Emit[Chunk]:
        """What takes the chunks for the client."""
        return emit

    def lane(self, name: str) -> Watched:  # noqa: ARG002 - as Recording
        """The next stage of the pipeline."""
        return _PLAIN

    def split(self, group: list[Any]) -> list[list[Any]]:
        """Processors side by side: one kernel."""
        return [group]


class NoRecorder:
    """Stands where no recorder was given."""

    def open(self, name: str, source: str) -> Unwatched:  # noqa: ARG002 - as Recorder
        """Begin a run that nobody watches."""
        return UNWATCHED


UNWATCHED = Unwatched()
NO_RECORDER = NoRecorder()
