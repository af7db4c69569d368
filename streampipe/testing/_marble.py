"""Marbles: streams drawn in time, and operators checked against such drawings.

```text
source        --a--b--|      a column is a unit of time
subscription  ^-------!      subscribed to at ^, left at !
expected      --A--B--|
```

`-` is time that passes, a letter or digit an element, `|` the end, `#` an error, `( )` a group of
things that happen at once: at the time of its opening bracket, although it is as wide as it is
written. Spaces mean nothing, so that lines can be aligned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reactivex import Observable

from streampipe.errors import ConfigurationError
from streampipe.operators import Flowable
from streampipe.operators._core import Emit
from streampipe.testing._clock import run_virtual

__all__ = ["MarbleError", "MarbleSource", "check_marbles", "marble"]

UNIT = 0.01  # seconds a column
END, ERROR = "|", "#"


class MarbleError(Exception):
    """What `#` stands for, unless something else is said."""


@dataclass(frozen=True)
class Event:
    """Something that happens in a column: an element by its name, `|`, `#`, `^` or `!`."""

    column: int
    name: str


def parse(line: str, allowed: str = "") -> list[Event]:
    """The events of a line.

    Args:
        line: the drawing.
        allowed: what may stand in it beside `-`; letters, digits, `|`, `#` and groups when "".

    Raises:
        ConfigurationError: something stands in it that may not.
    """
    events: list[Event] = []
    group: int | None = None
    for column, sign in enumerate(line.replace(" ", "")):
        name_allowed = sign in allowed if allowed else sign.isalnum() or sign in "|#()"
        if sign != "-" and not name_allowed:
            what = f"{' '.join(allowed)} and -" if allowed else "letters, digits, - | # ( )"
            raise ConfigurationError(f"marbles {line!r}: {sign!r} is none of {what}")
        if sign == "(" and group is None:
            group = column
        elif sign == ")" and group is not None:
            group = None
        elif sign in "()" or (sign == "-" and group is not None):
            raise ConfigurationError(f"marbles {line!r}: {sign!r} in column {column} is misplaced")
        elif sign != "-":
            events.append(Event(column if group is None else group, sign))
    if group is not None:
        raise ConfigurationError(f"marbles {line!r}: the group in column {group} is not closed")
    ends = [place for place, event in enumerate(events) if event.name in (END, ERROR)]
    if ends and ends[0] != len(events) - 1:
        raise ConfigurationError(f"marbles {line!r}: something comes after the end")
    return events


def draw(events: Sequence[Event]) -> str:
    """Events as a line; where they lie too close for their groups, with their columns instead."""
    line = ""
    left = list(events)
    while left:
        column = left[0].column
        names = [event.name for event in left if event.column == column]
        del left[: len(names)]
        if column < len(line) or any(len(name) > 1 for name in names):
            return ", ".join(f"{event.name} at {event.column}" for event in events)
        together = f"({''.join(names)})" if len(names) > 1 else names[0]
        line += "-" * (column - len(line)) + together
    return line


class MarbleSource(Flowable[Any]):
    """A drawn stream; cold, so each subscription starts at its first column.

    Attributes:
        subscriptions: for each subscription, when it began and when it was left or ended, in
            seconds on the loop's clock; None while it goes on.
        error: what `#` raises.
        events: what is drawn.
    """

    def __init__(
        self, line: str, values: Mapping[str, Any], error: BaseException | None, unit: float
    ) -> None:
        """Read a line; see `marble`."""
        super().__init__(self._play)
        self.subscriptions: list[tuple[float, float | None]] = []
        self.events = parse(line)
        self._values = values
        self.error = MarbleError(ERROR) if error is None else error
        self._unit = unit

    async def _play(self, emit: Emit[Any]) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        number = len(self.subscriptions)
        self.subscriptions.append((began, None))
        try:
            for event in self.events:
                await asyncio.sleep(began + event.column * self._unit - loop.time())
                if event.name == ERROR:
                    raise self.error
                if event.name == END:
                    return
                wait = emit(self._values.get(event.name, event.name))
                if wait is not None:
                    await wait
            await loop.create_future()  # a line without an end goes on
        finally:
            self.subscriptions[number] = began, loop.time()

    def visits(self, unit: float) -> list[Event]:
        """The subscriptions as events: `^` and `!`."""
        times = [pair for visit in self.subscriptions for pair in zip(visit, "^!", strict=True)]
        return [Event(_column(time, unit), sign) for time, sign in times if time is not None]


def marble(
    line: str,
    values: Mapping[str, Any] | None = None,
    *,
    error: BaseException | None = None,
    unit: float = UNIT,
) -> MarbleSource:
    """A stream as it is drawn; to be run on a jumping clock, see `run_virtual`.

    >>> from streampipe import operators as ops
    >>> async def read(source):
    ...     return [item async for item in ops.to_aiter(source)]
    >>> run_virtual(read(marble("-a-(bc)|", {"b": 2})))
    ['a', 2, 'c']

    Args:
        line: the drawing; one without an end goes on for ever.
        values: the elements by name; a name that is absent stands for itself.
        error: what `#` raises; a `MarbleError` when None.
        unit: how long a column takes, in seconds.

    Returns:
        A cold `Flowable`, which keeps note of its subscriptions.

    Raises:
        ConfigurationError: the line cannot be read.
    """
    return MarbleSource(line, values or {}, error, unit)


def check_marbles(
    operator: Callable[[Observable[Any]], Observable[Any]],
    *,
    source: str,
    expected: str,
    subscription: str | None = None,
    unsubscribe: str | None = None,
    values: Mapping[str, Any] | None = None,
    error: BaseException | None = None,
    expected_error: type[BaseException] | None = None,
    unit: float = UNIT,
) -> None:
    """Check what an operator makes of a drawn stream, and when, and when it leaves its source.

    >>> from reactivex import operators as rx
    >>> check_marbles(
    ...     rx.map(str.upper),
    ...     source="      --a--b--|",
    ...     subscription="^-------!",
    ...     expected="    --A--B--|",
    ... )

    Args:
        operator: what is checked.
        source: the stream that it gets.
        expected: the stream that it has to give.
        subscription: when the source has to be subscribed to (`^`) and left (`!`), by leaving
            early or at its end; not looked at when None.
        unsubscribe: when the subscriber leaves (`!`).
        values: the elements by name; a name that is absent stands for itself.
        error: what `#` raises in the source; a `MarbleError` when None.
        expected_error: the type of what `#` stands for in `expected`; when None, it has to be the
            source's own error, the very object.
        unit: how long a column takes, in seconds.

    Raises:
        AssertionError: it gives something else; the message draws both.
        ConfigurationError: a line cannot be read.
        RuntimeError: it is called from within a running event loop.
    """
    visits = None if subscription is None else parse(subscription, "^!")
    leaves = [event.column for event in parse(unsubscribe or "", "!")]
    drawn = marble(source, values, error=error, unit=unit)
    wanted = parse(expected)
    columns = max(event.column for event in (*wanted, *drawn.events, Event(0, ""))) + REST
    seen, failure = run_virtual(_play(operator(drawn), leaves, unit, columns))
    names = {event.name: event.name for event in (*drawn.events, *wanted)} | dict(values or {})
    got = [Event(column, _name(names, item)) for column, item in seen]
    told = drawn.visits(unit)
    kind = None if failure is None else type(failure)
    is_right = failure is drawn.error if expected_error is None else kind is expected_error
    if got == wanted and visits in (None, told) and (failure is None or is_right):
        return
    lines = {"source": drawn.events, "expected": wanted, "got": got}
    if visits is not None:
        lines |= {"subscription": visits, "subscribed": told}
    raise AssertionError(_message(lines, values, failure))


_Seen = list[tuple[int, Any]]


async def _play(
    stream: Observable[Any], leaves: Sequence[int], unit: float, columns: int
) -> tuple[_Seen, BaseException | None]:
    """Subscribe at 0; gives what came in which column, and the error, if there was one."""
    loop = asyncio.get_running_loop()
    seen: _Seen = []
    failures: list[BaseException] = []

    def note(item: Any) -> None:
        seen.append((_column(loop.time(), unit), item))

    def fail(error: BaseException) -> None:
        failures.append(error)
        note(_FAILED)

    subscription = stream.subscribe(note, fail, lambda: note(_ENDED))
    for column in leaves:
        # Half a column later: whoever leaves has seen what comes in this one.
        loop.call_at((column + 0.5) * unit, subscription.dispose)
    await asyncio.sleep(columns * unit)
    subscription.dispose()
    await asyncio.sleep(0)
    return seen, failures[0] if failures else None


def _column(time: float, unit: float) -> int:
    return int(time / unit + 0.25)  # a sum of floats may fall a little short


_ENDED, _FAILED = object(), object()
REST = 100  # columns that are looked at behind the last that is drawn


def _name(known: Mapping[str, Any], item: Any) -> str:
    """What an element is called in the drawing."""
    if item is _ENDED:
        return END
    if item is _FAILED:
        return ERROR
    for name, value in known.items():
        if type(value) is type(item) and value == item:
            return name
    return f"<{item!r:.40}>"


def _message(
    lines: Mapping[str, Sequence[Event]],
    values: Mapping[str, Any] | None,
    failure: BaseException | None,
) -> str:
    width = max(map(len, lines))
    shown = [f"  {name:{width}}  {draw(events)}" for name, events in lines.items()]
    shown += [f"  {name} = {value!r:.80}" for name, value in (values or {}).items()]
    if failure is not None:
        shown.append(f"  # = {failure!r:.200}")
    return "\n".join(["the marbles differ", *shown])
