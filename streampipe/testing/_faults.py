"""What can go wrong with an answer on its way: at any byte of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from streampipe.errors import ConfigurationError
from streampipe.testing._script import Delay

__all__ = ["Fault", "Faulty", "faulty"]

ENDS = (b"\n\n", b"\r\n\r\n")  # of an event
Fault = Literal["cut", "end", "stall", "delay", "garbage", "drip"]


@dataclass(slots=True, frozen=True)
class Broken:
    """The connection breaks here."""


@dataclass(slots=True, frozen=True)
class Stalled:
    """Nothing comes any more, though the connection stays."""


Action = bytes | Delay | Broken | Stalled
"""What a server does next with an answer: send, wait, break off, fall silent."""


@dataclass(slots=True, frozen=True)
class Faulty:
    """An answer that goes wrong on its way; see `faulty`."""

    entry: Any
    fault: Fault
    at: int | bytes
    seconds: float
    data: bytes
    size: int
    whole_event: bool = False

    def applied(self, actions: list[Action]) -> list[Action]:
        """The actions of an answer, gone wrong.

        Raises:
            ConfigurationError: the answer does not hold the bytes that mark the place.
        """
        if self.fault == "drip":
            return list(self._dripping(actions))
        put: dict[str, Callable[[], list[Action]]] = {
            "cut": lambda: [Broken()],
            "end": list,
            "stall": lambda: [Stalled()],
            "delay": lambda: [Delay(self.seconds)],
            "garbage": lambda: [self.data],
        }
        before, after = self._parted(actions)
        ended = self.fault in ("cut", "end", "stall")
        return [*before, *put[self.fault](), *([] if ended else after)]

    def _parted(self, actions: list[Action]) -> tuple[list[Action], list[Action]]:
        """The actions before the place and those behind it."""
        left = self._place(actions)
        before: list[Action] = []
        for number, action in enumerate(actions):
            if not isinstance(action, bytes):
                before.append(action)
            elif left >= len(action):
                left -= len(action)
                before.append(action)
                if not left:
                    return before, actions[number + 1 :]
            else:
                head, tail = action[:left], action[left:]
                return [*before, *([head] if head else [])], [tail, *actions[number + 1 :]]
        return before, []

    def _place(self, actions: list[Action]) -> int:
        if isinstance(self.at, int):
            return self.at
        sent = b"".join(action for action in actions if isinstance(action, bytes))
        place = sent.find(self.at)
        if place < 0:
            msg = f"faulty: the answer does not hold {self.at!r:.80}, where it should go wrong"
            raise ConfigurationError(msg)
        place += len(self.at)
        ends = [sent.find(end, place) + len(end) for end in ENDS if sent.find(end, place) >= 0]
        return min(ends, default=place) if self.whole_event else place

    def _dripping(self, actions: list[Action]) -> Iterator[Action]:
        for action in actions:
            if not isinstance(action, bytes):
                yield action
                continue
            for start in range(0, len(action), self.size):
                yield action[start : start + self.size]
                if self.seconds:
                    yield Delay(self.seconds)


def faulty(
    entry: Any,
    fault: Fault,
    *,
    at: int | bytes = 0,
    seconds: float = 0.0,
    data: bytes = b"\x00\xff{]\n\n",
    size: int = 1,
    whole_event: bool = False,
) -> Faulty:
    """An entry of a script whose answer goes wrong on its way. Faults can be put into one another.

    ```python
    from streampipe.testing import ModelServer, faulty

    ModelServer([
        faulty(["Hello"], "cut", at=120),           # the connection breaks behind byte 120
        faulty(["Hello"], "stall", at=b'"Hello"'),  # silence behind these bytes
        faulty(["Hello"], "garbage", at=0),         # bytes that are no event, first of all
        faulty(["Hello"], "drip", size=1),          # byte by byte
    ])
    ```

    Args:
        entry: any other entry: a turn, pieces, bytes, a file, an `Answer`; but no `fail(...)` as
            the first piece, which `ModelServer` refuses: put an `Answer` with the status there.
        fault: what happens: `"cut"` breaks the connection, `"end"` ends the body as if that were
            all, `"stall"` falls silent until the client leaves, `"delay"` waits `seconds`,
            `"garbage"` sends `data` in between, `"drip"` sends the body in pieces of `size` bytes
            with `seconds` between them.
        at: where in the body: an offset in bytes, or the bytes behind which it happens. The body is
            JSON where no stream was asked for. Bytes that are not in it make the answer an HTTP
            500 that says so, and `ModelServer.assert_complete` fails.
        seconds: of a delay or between drips.
        data: the garbage.
        size: of a drip, in bytes.
        whole_event: whether the event that holds the bytes of `at` still comes whole.

    Raises:
        ConfigurationError: the fault is unknown, or a number is out of range.
    """
    known = ("cut", "end", "stall", "delay", "garbage", "drip")
    if fault not in known:
        raise ConfigurationError(f"faulty: fault must be one of {', '.join(known)}, not {fault!r}")
    if seconds < 0 or size < 1 or (isinstance(at, int) and at < 0):
        msg = f"faulty: seconds={seconds}, size={size}, at={at!r}: none may be below 0, size not 0"
        raise ConfigurationError(msg)
    return Faulty(entry, fault, at, seconds, data, size, whole_event)
