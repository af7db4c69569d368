"""What several guards make of one stream, put together again.

A guard over text holds some of it back, and cuts it anew. So what guards in parallel let through is
compared by how far into the stream each has come, not chunk by chunk: what all have passed leaves,
as it came. One of them may change the stream; from there on what it emits leaves in the stream's
place, once the others have passed as much of the stream as there was then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from streampipe.chunks import Chunk, ReasoningDelta, TextDelta
from streampipe.operators._kinds import with_text

__all__ = ["ChangedError", "Joined"]


class ChangedError(Exception):
    """Two guards change the stream.

    Attributes:
        first: the index of one.
        second: that of the other.
    """

    def __init__(self, first: int, second: int) -> None:
        """Name the two."""
        super().__init__(f"{first} and {second}")
        self.first = first
        self.second = second


class _Place:
    """How far into the stream somebody has come.

    Attributes:
        chunk: how many chunks are behind it.
        offset: characters of the next one that are, too.
        units: the same in characters and chunks without text.
    """

    __slots__ = ("chunk", "offset", "units")

    def __init__(self) -> None:
        self.chunk = 0
        self.offset = 0
        self.units = 0


class Joined:
    """The stream, how far each guard has come in it, and what one of them has made of it."""

    def __init__(self, guards: int) -> None:
        """Before the first chunk."""
        self._stream: deque[Chunk] = deque()  # what has not left, or not been passed by all
        self._gone = 0  # chunks before these
        self._total = 0  # units that have come
        self._places = [_Place() for _ in range(guards)]
        self._left = _Place()
        self._changer: int | None = None
        self._made: deque[tuple[Chunk, int]] = deque()  # by the changer, and when

    def came(self, chunk: Chunk) -> None:
        """A chunk has come; every guard is about to get its copy."""
        self._stream.append(chunk)
        self._total += _units(chunk)

    def passed(self, guard: int, chunk: Chunk) -> None:
        """A guard emits a chunk.

        Raises:
            ChangedError: it is not the stream's, and another guard's was not before.
        """
        if guard != self._changer and not self._follows(self._places[guard], chunk):
            if self._changer is not None:
                raise ChangedError(*sorted((self._changer, guard)))
            self._changer = guard
        if guard == self._changer:
            self._made.append((chunk, self._total))

    def ready(self) -> Iterator[Chunk]:
        """What may leave now."""
        others = [at for at in range(len(self._places)) if at != self._changer]
        floor = min(self._places[at].units for at in others)
        changer = None if self._changer is None else self._places[self._changer]
        if changer is None:
            yield from self._until(floor)
        elif self._left.units < changer.units:
            yield from self._until(min(floor, changer.units))
        if changer is not None and self._left.units == changer.units:
            while self._made and self._made[0][1] <= floor:
                yield self._made.popleft()[0]
        self._forget([self._places[at] for at in others])

    def rest(self) -> Iterator[Chunk]:
        """What leaves at the stream's end; a guard that has not passed all of it has dropped it.

        Raises:
            ChangedError: two have.
        """
        short = [at for at, place in enumerate(self._places) if place.units < self._total]
        dropping = sorted({*short, *([] if self._changer is None else [self._changer])})
        if len(dropping) > 1:
            raise ChangedError(*dropping[:2])
        self._changer = dropping[0] if dropping else None
        yield from self.ready()

    def _until(self, units: int) -> Iterator[Chunk]:
        """The stream as it came, up to there."""
        place = self._left
        while place.units < units or (self._has(place) and not _units(self._at(place))):
            chunk = self._at(place)
            size = _units(chunk)
            taken = min(size - place.offset, units - place.units)
            if isinstance(chunk, TextDelta | ReasoningDelta) and taken < size:
                piece = with_text(chunk, chunk.text[place.offset : place.offset + taken])
                if place.offset:
                    piece.provider_metadata = None  # it went out with the first piece
                yield piece
            else:
                yield chunk
            self._go(place, taken)

    def _follows(self, place: _Place, chunk: Chunk) -> bool:
        """Whether a chunk is what the stream goes on with; then the place is behind it."""
        if not isinstance(chunk, TextDelta | ReasoningDelta):
            self._skip(place)
            fits = self._has(place) and not place.offset and self._at(place) == chunk
            if fits:
                self._go(place, 1)
            return fits
        text = chunk.text
        start = (place.chunk, place.offset, place.units)
        while text:
            self._skip(place)
            other = self._at(place) if self._has(place) else None
            same = other.__class__ is chunk.__class__ and getattr(other, "id", None) == chunk.id
            rest: str = getattr(other, "text", "")[place.offset :] if same else ""
            size = min(len(rest), len(text))
            whole = not place.offset and rest == chunk.text
            if not size or rest[:size] != text[:size] or (whole and other != chunk):
                place.chunk, place.offset, place.units = start
                return False
            text = text[size:]
            self._go(place, size)
        return True

    def _skip(self, place: _Place) -> None:
        """Go past pieces without text: a guard may leave them out."""
        while self._has(place) and not _units(self._at(place)):
            self._go(place, 0)

    def _has(self, place: _Place) -> bool:
        return place.chunk - self._gone < len(self._stream)

    def _at(self, place: _Place) -> Chunk:
        return self._stream[place.chunk - self._gone]

    def _go(self, place: _Place, units: int) -> None:
        place.units += units
        place.offset += units
        if place.offset >= _units(self._at(place)):
            place.chunk += 1
            place.offset = 0

    def _forget(self, places: list[_Place]) -> None:
        """Let go of what has left, and what all have passed."""
        if self._changer is None or self._left.units < self._places[self._changer].units:
            places = [*places, self._left]
        least = min(place.chunk for place in places)
        while self._gone < least:
            self._stream.popleft()
            self._gone += 1


def _units(chunk: Chunk) -> int:
    """How far it is to the chunk behind: its characters, or one if it has no text."""
    return len(chunk.text) if isinstance(chunk, TextDelta | ReasoningDelta) else 1
