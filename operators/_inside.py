"""What is inside a stage that is being recorded, and what is made of it.

A stage is looked at from outside. A chunk that leaves as the object that came in is the same
chunk. Any other is told from the text: of what came in and has not left, it is what the new
chunk's text begins with, piece by piece; where a stage has rewritten the text, it is all of it
but what the stage says it still holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from streampipe.chunks import ReasoningDelta, TextDelta

Fate = Literal["passed", "rewritten", "held", "dropped", "blocked", "voided"]

MOST_INSIDE = 1024  # elements in a stage of which nothing has left; past it the oldest is dropped
MOST_TEXTS = 64  # text parts that are remembered although nothing of them is inside
DELTAS: frozenset[type[Any]] = frozenset({TextDelta, ReasoningDelta})


@dataclass(slots=True, eq=False)
class Record:
    """What one stage did with one element that came to it.

    Attributes:
        stage: the stage's name: a processor's id, an operator as it is written, `model` or
            `source`, `client`.
        place: the stage's index: 0 is the source, the last is the client.
        origins: ordinals of the source's elements that it came from, ascending: one for what is
            as the source made it, several for what was merged. Elements that nothing came in for,
            such as a run's lifecycle chunks, are counted as the source's.
        kind: the chunk's type, or the element's class.
        part: the id of the text part it belongs to, else empty.
        size: characters of text, 0 for what is no text.
        text: the text; None unless it reached the client or `content` was asked for.
        tick: how many elements the source had given when it came.
        came_from: the index of the stage that it left.
        step, attempt: of the run, both from 0.
        time_in: when it came, seconds on the recorder's clock.
        time_out: when the last of it left; None if nothing of it did.
        verdict: `passed` (left as it came), `rewritten` (what left was made of it), `held` (left
            later as it came, or has not left yet), `dropped` (nothing of it left), `blocked`
            (a wire was pulled on it, or its stage failed on it), `voided` (lost to what happened
            elsewhere: it was held, or had reached the client, when its attempt was rejected, or
            was held when the run was stopped).
        reason: why it was blocked or voided, else empty.
    """

    stage: str
    place: int
    origins: tuple[int, ...]
    kind: str
    part: str
    size: int
    text: str | None
    tick: int
    came_from: int
    step: int
    attempt: int
    time_in: float
    time_out: float | None = None
    verdict: Fate = "held"
    reason: str = ""


class _Entry:
    """An element inside a stage: what it looked like, and what of its text has not left."""

    __slots__ = ("element", "key", "looks", "queue", "record", "rest")

    def __init__(
        self, element: Any, record: Record, looks: Any, rest: str, queue: deque[_Entry]
    ) -> None:
        self.element = element
        self.record = record
        self.looks = looks
        self.rest = rest
        self.queue = queue
        self.key = id(element)


class Inside:
    """The elements inside one stage.

    Attributes:
        held: how many characters of a chunk's text part the stage holds, if it says so.
        apart: whether the stage works at a pace of its own.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with none."""
        self.held: Callable[[Any], int] | None = None
        self.apart = False
        self._clock = clock
        self._inside: dict[int, _Entry] = {}
        self._texts: dict[tuple[type, str], deque[_Entry]] = {}
        self._others: deque[_Entry] = deque()
        self._current: _Entry | None = None
        self._last: tuple[int, ...] = ()
        self._aside = 0

    def came(self, element: Any, record: Record) -> None:
        """An element comes to the stage."""
        if element.__class__ in DELTAS:
            text = element.text
            entry = _Entry(element, record, text, text, self._queue(element))
        else:
            entry = _Entry(element, record, hash(repr(element)), "", self._others)
        entry.queue.append(entry)
        self._current = entry
        self._last = record.origins
        inside = self._inside
        if entry.key in inside:
            self._set_aside(inside[entry.key])
        inside[entry.key] = entry
        if len(inside) > MOST_INSIDE:
            self._forget(next(iter(inside.values())))

    def _set_aside(self, entry: _Entry) -> None:
        """The same object comes once more: what came before is found by another key."""
        self._aside -= 1  # no id of an object
        entry.key = self._aside
        self._inside[entry.key] = entry

    def leaves(self, element: Any) -> tuple[int, ...]:
        """An element leaves the stage.

        Returns:
            Its origins.
        """
        entry = self._inside.get(id(element))
        if entry is None:
            return self._made(element)
        self._same(element, entry)
        return entry.record.origins

    def _queue(self, element: Any) -> deque[_Entry]:
        key = (element.__class__, element.id)
        queue = self._texts.get(key)
        if queue is None:
            if len(self._texts) >= MOST_TEXTS:
                self._texts = {key: queue for key, queue in self._texts.items() if queue}
            queue = self._texts[key] = deque()
        return queue

    def _same(self, element: Any, entry: _Entry) -> None:
        """The object that came in leaves."""
        if element.__class__ in DELTAS:
            while entry.queue[0] is not entry:  # a text keeps its order
                self._forget(entry.queue[0])
            same = element.text == entry.looks
        else:
            same = entry.looks == hash(repr(element))
        self._left(entry, same=same)

    def _left(self, entry: _Entry, *, same: bool) -> None:
        """All of an element has left."""
        record = entry.record
        if not same:
            record.verdict = "rewritten"
        elif entry is self._current:
            record.verdict = "passed"
        else:
            record.verdict = "held"
        record.time_out = self._clock()
        self._gone(entry)

    def _gone(self, entry: _Entry) -> None:
        self._inside.pop(entry.key, None)
        queue = entry.queue
        if queue[0] is entry:
            queue.popleft()
        else:
            queue.remove(entry)

    def _forget(self, entry: _Entry) -> None:
        """Of what came in nothing will leave any more."""
        if entry.record.time_out is None and entry.record.verdict == "held":
            entry.record.verdict = "dropped"
        self._gone(entry)

    def _made(self, element: Any) -> tuple[int, ...]:
        """The origins of an element that the stage made."""
        if element.__class__ in DELTAS:
            queue = self._texts.get((element.__class__, element.id))
            taken = self._taken(queue, element) if queue else []
        else:
            taken = self._oldest(element) if self.apart else []
        if taken:
            self._last = tuple(sorted({n for entry in taken for n in entry.record.origins}))
        elif self._current is not None and element.__class__ not in DELTAS:
            self._part(self._current)
        return self._last

    def _oldest(self, element: Any) -> list[_Entry]:
        """A stage with a pace of its own gives one for one, the oldest first."""
        for entry in self._inside.values():
            if entry.element.__class__ is element.__class__:
                self._left(entry, same=False)
                return [entry]
        return []

    def _part(self, entry: _Entry) -> None:
        """Something was made of an element, which may still be inside."""
        record = entry.record
        if record.verdict == "held":
            record.verdict = "rewritten"
            record.time_out = self._clock()

    def _taken(self, queue: deque[_Entry], element: Any) -> list[_Entry]:
        """Which elements a new text is made of."""
        text = element.text
        if queue[0].rest == text:
            return self._whole(queue[0], text)
        if _begins(queue, text):
            return self._cut(queue, text)
        current = self._current
        if current in queue and current is not None and current.rest == text:
            while queue[0] is not current:
                self._forget(queue[0])
            return self._whole(current, text)
        if self.apart:  # one for one, at a pace of its own
            return self._whole(queue[0], text)
        held = self.held(element) if self.held is not None else 0
        return self._cut(queue, "".join(entry.rest for entry in queue)[: -held or None])

    def _whole(self, entry: _Entry, text: str) -> list[_Entry]:
        self._left(entry, same=text == entry.looks)
        return [entry]

    def _cut(self, queue: deque[_Entry], text: str) -> list[_Entry]:
        """Take as many characters as a text has from the oldest elements."""
        left = len(text)
        taken: list[_Entry] = []
        while queue and (left or not queue[0].rest):
            entry = queue[0]
            taken.append(entry)
            if len(entry.rest) > left:
                entry.rest = entry.rest[left:]
                self._part(entry)
                break
            left -= len(entry.rest)
            self._left(entry, same=False)
        return taken

    def block(self, reason: str) -> None:
        """The stage stopped the run on the oldest element in it: those before it have left.

        With none inside it did so between two elements, as a hook that is given no chunk does.
        """
        for entry in self._inside.values():
            entry.record.verdict = "blocked"
            entry.record.reason = reason
            return

    def settle(self, reason: str) -> None:
        """Nothing leaves any more: what is inside was dropped, or voided for a reason."""
        for entry in self._inside.values():
            record = entry.record
            if record.verdict == "held" and record.time_out is None:
                record.verdict = "voided" if reason else "dropped"
                record.reason = reason
        self._inside.clear()
        self._texts.clear()
        self._others.clear()
        self._current = None


def _begins(queue: deque[_Entry], text: str) -> bool:
    """Whether what waits begins with a text, which is then its oldest elements cut anew."""
    place = 0
    for entry in queue:
        rest = entry.rest
        if place + len(rest) >= len(text):
            return rest.startswith(text[place:])
        if not text.startswith(rest, place):
            return False
        place += len(rest)
    return False
