"""Text that arrives in pieces cut anywhere: what every chunk-safe text operator is built on.

Such an operator is a *machine*: one for each text part, fed its pieces, giving back what may leave.
What a machine still holds keeps its place among the other chunks:

* A tool's chunks, and those that begin or end a step or a run, make the held text leave first: what
  follows them is another stretch of text. So they never wait.
* A chunk that says something beside the text, such as data or a source, may come in the middle of
  what a guard looks for, as may the start of another part. It waits behind the held text, and what
  came behind it stays behind it.
* Texts of other ids go on, since each part is a stream of its own.
* At a void, which is a `step-finish` with reason "retry", what is held is dropped, and all begins
  anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

from streampipe.chunks import (
    AbortChunk,
    Chunk,
    ErrorChunk,
    FinishChunk,
    ReasoningDelta,
    ReasoningEnd,
    StartChunk,
    StepFinish,
    StepStart,
    TextDelta,
    TextEnd,
    ToolCall,
    ToolCallDelta,
    ToolCallInputEnd,
    ToolCallInputStart,
    ToolErrorChunk,
    ToolResult,
    TripwireChunk,
)
from streampipe.errors import ConfigurationError
from streampipe.operators._core import FAULTS, Emit, Enough
from streampipe.operators._fuse import Opened, Stage, emit_all
from streampipe.operators._kinds import OpenParts, is_void, with_text
from streampipe.operators._options import Part, options_of

PARTS: dict[str, tuple[type[Chunk], type[Chunk]]] = {
    "text": (TextDelta, TextEnd),
    "reasoning": (ReasoningDelta, ReasoningEnd),
}
MOST_WAITING = 1024  # chunks behind a text that is held; with one more they pass it
STEP_ENDS = (StepFinish, FinishChunk, ErrorChunk, AbortChunk, TripwireChunk)
APART: frozenset[type[Chunk]] = frozenset(
    (
        ToolCallInputStart,
        ToolCallDelta,
        ToolCallInputEnd,
        ToolCall,
        ToolResult,
        ToolErrorChunk,
        StartChunk,
        StepStart,
        *STEP_ENDS,
    )
)
"""What parts a text in two: the text before these leaves before them."""

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
        """The text ends here, or something comes that parts it: give the rest."""
        ...


Ending = Callable[[Any, Stage], BaseException | None]
"""Looks at a machine when its chunks have left; gives what ends the stream, if it ends."""


class _Slot:
    """A place in the queue: what leaves there, and how many characters of text it still waits for.

    Text of one part that came before what stands behind the slot.
    """

    __slots__ = ("chunks", "owed")

    def __init__(self, chunks: list[Chunk], owed: int = 0) -> None:
        self.chunks = chunks
        self.owed = owed


class _Lane:
    """A text part: its machine, and the places of what it holds."""

    __slots__ = ("_behind", "_make", "_slots", "id", "machine", "metadata", "model")

    def __init__(self, make: Callable[[str], Machine], part_id: str) -> None:
        self.id = part_id
        self.machine = make(part_id)
        self.model: Delta | None = None  # the newest delta: what the rest is made after
        self.metadata: list[dict[str, Any]] = []
        self._make = make
        self._slots: deque[_Slot] = deque()
        self._behind = ""  # the text that is held, while there are slots

    @property
    def waits(self) -> bool:
        """Whether something waits behind text of this part."""
        return bool(self._slots)

    def slot(self) -> _Slot | None:
        """A place for what is held, if none of the slots there are is for it."""
        held = self.machine.held
        owed = held - sum(slot.owed for slot in self._slots)
        if owed <= 0:
            return None
        if not self._slots:
            self._behind = "?" * held  # nobody asks what it is: all of it goes to the first slot
        slot = _Slot([], owed)
        self._slots.append(slot)
        return slot

    def drop(self) -> None:
        """Let go what waits: held text has no place any more."""
        while self._slots:
            self._slots.pop().owed = 0

    def renew(self) -> None:
        """What comes next is a text of its own."""
        self.machine = self._make(self.id)

    def note(self, chunk: Delta) -> None:
        """Keep what pieces to come are made after."""
        self.model = chunk
        if chunk.provider_metadata:
            self.metadata.append(chunk.provider_metadata)

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
            return _bare(model, piece)
        piece.run_id, piece.from_ = model.run_id, model.from_
        return piece

    def placed_whole(self, chunks: list[Chunk]) -> list[Chunk]:
        """Put pieces into the slots that wait for them, none cut; give what stands behind all."""
        over = 0  # characters of the last piece that the slots behind wait for, too
        for at, chunk in enumerate(chunks):
            if not self._slots:
                return chunks[at:]
            self._slots[0].chunks.append(chunk)
            over += len(chunk.text) if isinstance(chunk, Delta) else 0
            while self._slots and over >= self._slots[0].owed:
                slot = self._slots.popleft()
                over -= slot.owed
                slot.owed = 0
            if self._slots:
                self._slots[0].owed -= over
                over = 0
        return []

    def placed(self, chunks: list[Chunk], text: str, held: int) -> list[Chunk]:
        """Put what is made of held text and `text` into its slots; give what stands behind all.

        Args:
            chunks: what has left the machine.
            text: what it was fed for that.
            held: how much it holds now.
        """
        behind = self._behind + text
        left, self._behind = behind[: len(behind) - held], behind[len(behind) - held :]
        while self._slots:
            slot = self._slots[0]
            taken = min(slot.owed, len(left))
            left = left[taken:]
            slot.owed -= taken
            before, chunks = _parted(chunks, left)
            slot.chunks += before
            if slot.owed:
                break
            self._slots.popleft()
        return chunks


def _bare(model: Delta, text: str) -> Delta:
    """A piece of the same part, without its metadata."""
    made = with_text(model, text)
    made.provider_metadata = None
    return made


def _parted(chunks: list[Chunk], tail: str) -> tuple[list[Chunk], list[Chunk]]:
    """Chunks, parted where the end of the text that they are made of begins.

    Where that end is in what was replaced, the replacement stands before it as a whole.
    """
    before, after = list(chunks), list[Chunk]()
    while before and tail:
        last = before[-1]
        text = last.text if isinstance(last, Delta) else ""
        size = 0
        while size < min(len(text), len(tail)) and text[-size - 1] == tail[-size - 1]:
            size += 1
        if isinstance(last, Delta) and size < len(text):
            if size:
                before[-1] = with_text(last, text[:-size])
                after.insert(0, _bare(last, text[-size:]))
            break
        after.insert(0, before.pop())
        tail = tail[: len(tail) - size]
    return before, after


class TextFlow:
    """The lanes of one subscription, and the queue behind text that is held."""

    def __init__(
        self,
        make: Callable[[str], Machine],
        parts: Iterable[str],
        emit: Emit[Chunk],
        stage: Stage,
        ending: Ending | None = None,
        *,
        lasting: bool = False,
        whole: bool = False,
    ) -> None:
        """Start with no text part."""
        self._whole = whole
        self._make = make
        self._emit = emit
        self._stage = stage
        self._ending = ending
        self._lasting = lasting
        self._lanes: dict[tuple[type[Chunk], str], _Lane] = {}
        self._waiting: deque[_Slot] = deque()
        self._open = OpenParts()  # for an `ending`
        self._deltas = {PARTS[part][0] for part in parts}
        self._ends = {PARTS[part][1]: PARTS[part][0] for part in parts}

    def push(self, chunk: Any) -> Awaitable[Any] | None:
        """Take a chunk."""
        cls = chunk.__class__
        if cls not in self._deltas:
            return self._other(chunk, cls)
        lane = self._lanes.get((cls, chunk.id))
        if lane is None:
            lane = self._lane(chunk, cls)
        if lane.waits:
            return self._fill(lane, chunk)
        text = chunk.text
        try:
            out = lane.machine.feed(text)
        except FAULTS as error:
            raise self._stage.fault(error, chunk) from error
        last = None if self._ending is None else self._ending(lane.machine, self._stage)
        if last is None and not self._waiting and not lane.metadata:
            if out is text or out == text:
                lane.model = chunk
                return self._emit(chunk)
            if not chunk.provider_metadata and isinstance(out, str):
                lane.model = chunk
                return self._emit(with_text(chunk, out)) if out else None
        lane.note(chunk)
        made = lane.made(out)
        return self._left(self._queued(made) if self._waiting else made, last)

    def _lane(self, chunk: Any, cls: type[Chunk]) -> _Lane:
        lane = self._lanes[cls, chunk.id] = _Lane(self._make, chunk.id)
        if self._ending is not None:
            self._open.open(chunk)
        return lane

    def _fed(self, lane: _Lane, text: str, chunk: Delta) -> Out:
        try:
            return lane.machine.feed(text)
        except FAULTS as error:
            raise self._stage.fault(error, chunk) from error

    def _fill(self, lane: _Lane, chunk: Delta) -> Awaitable[Any] | None:
        """More of a text that others wait behind, up to where none does any more.

        Character by character, which tells of each how much is held then.
        """
        lane.note(chunk)
        if self._whole:
            behind = lane.placed_whole(lane.made(self._fed(lane, chunk.text, chunk)))
            return self._left(self._queued(behind), self._last(lane))
        behind = []
        text = chunk.text
        for place, char in enumerate(text, 1):
            made = lane.made(self._fed(lane, char, chunk))
            behind = lane.placed(made, char, lane.machine.held)
            if not lane.waits:
                behind += lane.made(self._fed(lane, text[place:], chunk))
                break
        return self._left(self._queued(behind), self._last(lane))

    def _left(self, chunks: list[Chunk], last: BaseException | None) -> Awaitable[Any] | None:
        """Emit these, and end the stream if it ends here."""
        if last is None:
            return emit_all(chunks, self._emit)
        if isinstance(last, Enough):  # nothing was blocked: what is held elsewhere may leave
            chunks = [*chunks, *self._settled(is_end=True)[0], *self._open.close()]
        wait = emit_all(chunks, self._emit)
        if wait is not None:
            return _raise_after(wait, last)
        raise last

    def _queued(self, chunks: list[Chunk]) -> list[Chunk]:
        """Put chunks behind all that waits; give what need not wait.

        A text may be left open and held for ever, so only so much waits: then it passes.
        """
        self._waiting.append(_Slot(chunks))
        if len(self._waiting) > MOST_WAITING:
            for lane in self._lanes.values():
                lane.drop()
        return self._ready()

    def _ready(self) -> list[Chunk]:
        """What stands before the first text that is still held."""
        ready: list[Chunk] = []
        waiting = self._waiting
        while waiting and not waiting[0].owed:
            ready += waiting.popleft().chunks
        if waiting:  # a held text may have released its beginning
            ready += waiting[0].chunks
            waiting[0].chunks = []
        return ready

    def _other(self, chunk: Any, cls: type[Chunk]) -> Awaitable[Any] | None:
        if self._ending is not None:
            self._open.note(chunk)
        delta = self._ends.get(cls)
        if delta is not None and (delta, chunk.id) in self._lanes:
            return self._end(delta, chunk)
        if not self._lanes:
            return self._emit(chunk)
        if cls in APART:
            return self._apart(chunk, cls)
        slots = [lane.slot() for lane in self._lanes.values()]
        self._waiting += [slot for slot in slots if slot is not None]
        if not self._waiting:
            return self._emit(chunk)
        return emit_all(self._queued([chunk]), self._emit)

    def _apart(self, chunk: Chunk, cls: type[Chunk]) -> Awaitable[Any] | None:
        """What parts the text: what is held leaves before it, or is dropped when it is void."""
        if cls in STEP_ENDS:
            self._open.close()
        if is_void(chunk):
            for lane in self._lanes.values():
                lane.drop()
            self._lanes = {}
            return emit_all([*self._ready(), chunk], self._emit)
        chunks, last = self._settled(is_end=cls in STEP_ENDS)
        return self._left(chunks if last is not None else [*chunks, chunk], last)

    def _end(self, delta: type[Chunk], end: Any) -> Awaitable[Any] | None:
        lane = self._lanes.pop((delta, end.id))
        chunks = self._rest(lane)
        last = self._last(lane)
        if last is None:
            chunks.append(end)
        else:  # what ends the stream closes the text too
            self._open.ends[end.__class__, end.id] = end
        return self._left(self._queued(chunks) if self._waiting else chunks, last)

    def _last(self, lane: _Lane) -> BaseException | None:
        return None if self._ending is None else self._ending(lane.machine, self._stage)

    def _rest(self, lane: _Lane) -> list[Chunk]:
        """What a machine still held, but for what belongs into slots."""
        try:
            out = lane.machine.finish()
        except FAULTS as error:
            raise self._stage.fault(error, when="at the text's end") from error
        made = lane.made(out)
        chunks = lane.placed_whole(made) if self._whole else lane.placed(made, "", 0)
        if self._whole:
            lane.drop()
        if not self._lasting:
            lane.renew()
        return chunks

    def flush(self) -> Awaitable[Any] | None:
        """The source has completed: let go of everything."""
        return self._left(*self._settled(is_end=True))

    def held(self, chunk: Any) -> int:
        """How many characters of a chunk's text part are held back."""
        lane = self._lanes.get((chunk.__class__, chunk.id))
        return 0 if lane is None else lane.machine.held

    def _settled(self, *, is_end: bool) -> tuple[list[Chunk], BaseException | None]:
        """Everything that is held or waits, in its order; and what ends the stream, if that does.

        Args:
            is_end: whether all texts end here.
        """
        last: BaseException | None = None
        for lane in self._lanes.values():
            if is_end or lane.machine.held:
                self._waiting.append(_Slot(self._rest(lane)))
                last = last or self._last(lane)
        if is_end:
            self._lanes = {}
        return self._ready(), last


async def _raise_after(wait: Awaitable[Any], error: BaseException) -> None:
    await wait
    raise error


def text_stage(
    name: str,
    make: Callable[[str], Machine],
    parts: Iterable[Part] = ("text",),
    ending: Ending | None = None,
    *,
    lasting: bool = False,
    whole: bool = False,
) -> Stage:
    """A stage that gives every text part of these kinds a machine of its own.

    Args:
        name: the operator's name.
        make: makes the machine of a part; gets the part's id.
        parts: kinds of part.
        ending: looks whether the stream ends with a text.
        lasting: whether a part's machine goes on behind what parts the text; else it gets another.
        whole: whether a piece that other chunks have come into leaves uncut, before them; else it
            is cut where they came.

    Raises:
        ConfigurationError: `parts` is not known, or `make` refuses its options.
    """
    parts = checked_parts(name, parts)
    with options_of(name):
        make("")

    def open_(emit: Emit[Chunk], stage: Stage) -> Opened:
        flow = TextFlow(make, parts, emit, stage, ending, lasting=lasting, whole=whole)
        return Opened(flow.push, flow.flush, flow.held)

    return Stage(name, open_)


def checked_parts(name: str, parts: Iterable[Part]) -> tuple[Part, ...]:
    """Which kinds of part an operator is to cover.

    Raises:
        ConfigurationError: there is none, or one that is not known.
    """
    given = tuple(parts) if isinstance(parts, Iterable) and not isinstance(parts, str) else ()
    if not given or any(part not in PARTS for part in given):
        msg = f"{name}: parts must be some of {', '.join(PARTS)}, not {parts!r}"
        raise ConfigurationError(msg)
    return given
