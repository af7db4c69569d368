"""Text that arrives in pieces cut anywhere: what every chunk-safe text operator is built on.

Such an operator is a *machine*: one for each text part, fed its pieces, giving back what may leave.
What a machine still holds keeps its place. A chunk of another kind that comes then waits behind
the held text, so a tool call never overtakes the text before it; texts of other ids go on, since
each part is a stream of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

from streampipe.chunks import Chunk, ReasoningDelta, ReasoningEnd, TextDelta, TextEnd
from streampipe.errors import ConfigurationError, OperatorError
from streampipe.operators._core import FAULTS, Emit, Enough
from streampipe.operators._fuse import Opened, Stage, emit_all
from streampipe.operators._kinds import with_text

PARTS: dict[str, tuple[type[Chunk], type[Chunk]]] = {
    "text": (TextDelta, TextEnd),
    "reasoning": (ReasoningDelta, ReasoningEnd),
}
MOST_WAITING = 1024  # chunks of other kinds behind a text that is held; past it nothing leaves

Delta = TextDelta | ReasoningDelta


Out = str | Sequence[str | Chunk]


class Machine(Protocol):
    """One text: fed piece by piece, it gives what may leave.

    As one piece, or as several: strings, and chunks where what it makes is no piece of its text.
    """

    @property
    def held(self) -> int:
        """How many characters it holds back."""
        ...

    def feed(self, piece: str, /) -> Out:
        """Take a piece; give what may leave now."""
        ...

    def finish(self) -> Out:
        """The text has ended: give the rest."""
        ...


Last = tuple[list[Chunk], BaseException]
"""How a stream ends: what is still emitted, and what is raised then."""

Ending = Callable[[Any, Delta, Stage], Last | None]
"""Looks at a machine when its chunks have left; says how the stream ends, if it does."""


class _Lane:
    """A text part: its machine, and what is kept until its held text leaves."""

    __slots__ = ("machine", "metadata", "model", "slot")

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.model: Delta | None = None  # the newest delta: what the rest is made after
        self.metadata: list[dict[str, Any]] = []
        self.slot: list[Chunk] | None = None

    def made(self, out: Out) -> list[Chunk]:
        """What leaves, as chunks; each metadata that came goes out once, with the first of them."""
        model = self.model
        if model is None:
            return []
        pieces = [out] if isinstance(out, str) else out
        chunks = [self._chunk(piece, model) for piece in pieces if piece]
        if not self.metadata or (not chunks and self.machine.held):
            return chunks
        carriers = [*chunks[:1], *(with_text(model, "") for _ in self.metadata)]
        carriers = carriers[: len(self.metadata)]
        for carrier, metadata in zip(carriers, self.metadata, strict=True):
            carrier.provider_metadata = metadata  # type: ignore[attr-defined]  # deltas and starts
        self.metadata = []
        return [*carriers, *chunks[1:]]

    def _chunk(self, piece: str | Chunk, model: Delta) -> Chunk:
        if isinstance(piece, str):
            chunk: Chunk = with_text(model, piece)
            chunk.provider_metadata = None  # type: ignore[attr-defined]  # a delta has it
            return chunk
        piece.run_id, piece.from_ = model.run_id, model.from_
        return piece


class TextFlow:
    """The lanes of one subscription, and the queue behind text that is held."""

    def __init__(
        self,
        make: Callable[[str], Machine],
        parts: Iterable[str],
        emit: Emit[Chunk],
        stage: Stage,
        ending: Ending | None = None,
    ) -> None:
        """Start with no text part."""
        self._make = make
        self._emit = emit
        self._stage = stage
        self._ending = ending
        self._lanes: dict[tuple[type[Chunk], str], _Lane] = {}
        self._waiting: deque[list[Chunk]] = deque()
        self._deltas = {PARTS[part][0] for part in parts}
        self._ends = {PARTS[part][1]: PARTS[part][0] for part in parts}

    def push(self, chunk: Any) -> Awaitable[Any] | None:
        """Take a chunk."""
        cls = chunk.__class__
        if cls not in self._deltas:
            return self._other(chunk, cls)
        lane = self._lanes.get((cls, chunk.id))
        if lane is None:
            lane = self._lanes[cls, chunk.id] = _Lane(self._make(chunk.id))
        if lane.slot is not None:
            return self._fill(lane, lane.slot, chunk)
        text = chunk.text
        out = self._fed(lane, text, chunk)
        if not self._waiting and not lane.metadata and self._ending is None:
            if out is text or out == text:
                lane.model = chunk
                return self._emit(chunk)
            if not chunk.provider_metadata and isinstance(out, str):
                lane.model = chunk
                return self._emit(with_text(chunk, out)) if out else None
        made = self._made(lane, chunk, out)
        if not self._waiting:
            return self._leave(made, lane, chunk)
        self._waiting.append(made)
        return self._leave(self._ready(), lane, chunk)

    def _fed(self, lane: _Lane, text: str, chunk: Delta) -> Out:
        try:
            return lane.machine.feed(text)
        except FAULTS as error:
            raise self._stage.fault(error, chunk) from error

    def _made(self, lane: _Lane, chunk: Delta, out: Out) -> list[Chunk]:
        lane.model = chunk
        if chunk.provider_metadata:
            lane.metadata.append(chunk.provider_metadata)
        return lane.made(out)

    def _fill(self, lane: _Lane, slot: list[Chunk], chunk: Delta) -> Awaitable[Any] | None:
        """More of a text that others wait behind: as much of it as lets the held text go.

        Character by character, so that nothing that came after the others leaves before them.
        """
        text = chunk.text
        if chunk.provider_metadata:
            lane.metadata.append(chunk.provider_metadata)
        lane.model = chunk
        for place, char in enumerate(text, 1):
            slot += lane.made(self._fed(lane, char, chunk))
            if lane.machine.held <= place:
                lane.slot = None
                self._waiting.append(lane.made(self._fed(lane, text[place:], chunk)))
                break
        return self._leave(self._ready(), lane, chunk)

    def _leave(self, chunks: list[Chunk], lane: _Lane, chunk: Delta) -> Awaitable[Any] | None:
        """Emit, then look whether the stream ends here."""
        return self._left(chunks, self._last(lane, chunk))

    def _left(self, chunks: list[Chunk], last: Last | None) -> Awaitable[Any] | None:
        """Emit these, and end the stream if it ends here."""
        if last is None:
            return emit_all(chunks, self._emit)
        if isinstance(last[1], Enough):  # nothing was blocked: what is held elsewhere may leave
            chunks = [*chunks, *self._drained()]
        wait = emit_all([*chunks, *last[0]], self._emit)
        if wait is not None:
            return _raise_after(wait, last[1])
        raise last[1]

    def _ready(self) -> list[Chunk]:
        """What stands before the first text that is still held."""
        ready: list[Chunk] = []
        slots = [lane.slot for lane in self._lanes.values() if lane.slot is not None]
        waiting = self._waiting
        while waiting and not any(waiting[0] is slot for slot in slots):
            ready += waiting.popleft()
        if waiting:  # a held text may have released its beginning
            ready += waiting[0]
            waiting[0].clear()
        return ready

    def _other(self, chunk: Chunk, cls: type[Chunk]) -> Awaitable[Any] | None:
        delta = self._ends.get(cls)
        if delta is not None:
            key = (delta, str(getattr(chunk, "id", "")))
            if key in self._lanes:
                return self._end(key, chunk)
        if not self._lanes:
            return self._emit(chunk)
        for lane in self._lanes.values():
            if lane.machine.held and lane.slot is None:
                lane.slot = []
                self._waiting.append(lane.slot)
        if not self._waiting:
            return self._emit(chunk)
        self._waiting.append([chunk])
        if len(self._waiting) > MOST_WAITING:
            msg = f"{MOST_WAITING} chunks wait behind a text that is held and does not go on"
            raise self._stage.fault(OperatorError(msg, operator=self._stage.name), chunk)
        return None

    def _end(self, key: tuple[type[Chunk], str], end: Chunk) -> Awaitable[Any] | None:
        lane = self._lanes[key]
        rest = self._rest(lane)
        del self._lanes[key]
        last = None if lane.model is None else self._last(lane, lane.model)
        closing = [end] if last is None else []  # else what ends the stream closes the text too
        if lane.slot is not None:
            lane.slot += rest
            rest = []
        if not self._waiting:
            return self._left([*rest, *closing], last)
        self._waiting.append([*rest, *closing])
        return self._left(self._ready(), last)

    def _last(self, lane: _Lane, model: Delta) -> Last | None:
        return None if self._ending is None else self._ending(lane.machine, model, self._stage)

    def _rest(self, lane: _Lane) -> list[Chunk]:
        try:
            out = lane.machine.finish()
        except FAULTS as error:
            raise self._stage.fault(error, when="at the text's end") from error
        return lane.made(out)

    def flush(self) -> Awaitable[Any] | None:
        """The source has completed: let go of everything."""
        lanes = list(self._lanes.values())
        chunks = self._drained()
        for lane in lanes:
            if lane.model is not None and self._last(lane, lane.model) is not None:
                return self._leave(chunks, lane, lane.model)
        return emit_all(chunks, self._emit)

    def held(self, chunk: Any) -> int:
        """How many characters of a chunk's text part are held back."""
        lane = self._lanes.get((chunk.__class__, chunk.id))
        return 0 if lane is None else lane.machine.held

    def _drained(self) -> list[Chunk]:
        """Everything that is held or waits, in its order."""
        for lane in self._lanes.values():
            rest = self._rest(lane)
            if lane.slot is not None:
                lane.slot += rest
            else:
                self._waiting.append(rest)
        self._lanes = {}
        return self._ready()


async def _raise_after(wait: Awaitable[Any], error: BaseException) -> None:
    await wait
    raise error


def text_stage(
    name: str,
    make: Callable[[str], Machine],
    parts: Iterable[str] = ("text",),
    ending: Ending | None = None,
) -> Stage:
    """A stage that gives every text part of these kinds a machine of its own."""
    parts = checked_parts(name, parts)
    try:
        make("")
    except ConfigurationError as error:
        msg = f"{name}: {error}"
        raise ConfigurationError(msg) from error

    def open_(emit: Emit[Chunk], stage: Stage) -> Opened:
        flow = TextFlow(make, parts, emit, stage, ending)
        return Opened(flow.push, flow.flush, flow.held)

    return Stage(name, open_)


def checked_parts(name: str, parts: Iterable[str]) -> tuple[str, ...]:
    """Which kinds of part an operator is to cover.

    Raises:
        ConfigurationError: there is none, or one that is not known.
    """
    given = (parts,) if isinstance(parts, str) else tuple(parts)
    if not given or any(part not in PARTS for part in given):
        msg = f"{name}: parts must be some of {', '.join(PARTS)}, not {parts!r}"
        raise ConfigurationError(msg)
    return given
