"""What the decoders of all protocols do alike: read JSON events, write parts, read arguments."""

from __future__ import annotations

import reprlib
from abc import ABC, abstractmethod
from typing import Any, TypeVar

import orjson
from pydantic_core import from_json

from streampipe.chunks import (
    Chunk,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
)
from streampipe.errors import ProviderStreamError
from streampipe.messages import new_id
from streampipe.messages._json import whole
from streampipe.models._protocol import surrogates
from streampipe.models._protocol.surrogates import Halves

DEEPEST = 250  # lists and objects in one another; whoever walks through them needs a stack
EXCERPT = 120  # characters of an event that an error shows
_PARTS: dict[str, tuple[type[Any], type[Any], type[Any]]] = {
    "text": (TextStart, TextDelta, TextEnd),
    "reasoning": (ReasoningStart, ReasoningDelta, ReasoningEnd),
}
T = TypeVar("T")


class EventDecoder(ABC):
    """A protocol's events to chunks, every character of their texts whole.

    Attributes:
        done: the protocol's end was seen.
    """

    def __init__(self) -> None:
        """Start before the first event."""
        self.done = False
        self._halves: Halves | None = None  # from the first half of a character on

    def feed(self, event: str) -> list[Chunk]:
        """The chunks of one event.

        Raises:
            ProviderStreamError: the event is no JSON object, or not what the protocol allows.
            ProviderError: it is the provider's own error.
        """
        chunks = self._chunks(event)
        return chunks if self._halves is None else self._halves.joined(chunks)

    def end(self) -> list[Chunk]:
        """The last chunks, when the connection has ended.

        Raises:
            IncompleteStreamError: it ended before the protocol did.
        """
        chunks = self._last()
        return chunks if self._halves is None else self._halves.joined(chunks)

    @abstractmethod
    def _chunks(self, event: str) -> list[Chunk]:
        """The chunks of one event."""

    @abstractmethod
    def _last(self) -> list[Chunk]:
        """The last chunks."""

    def _object(self, event: str) -> dict[str, Any]:
        """An event's data as the JSON object that it has to be.

        Raises:
            ProviderStreamError: it is none.
        """
        try:
            data = orjson.loads(event)
        except orjson.JSONDecodeError as error:
            data = self._with_halves(event)
            why = f"an event is no JSON ({error})"
        else:
            why = "an event must be a JSON object"
        if len(event) > DEEPEST < event.count("[") + event.count("{") and isinstance(data, dict):
            try:
                orjson.dumps(data)  # it writes nothing that is deeper
            except TypeError:
                data, why = None, "an event is nested too deep"
        if not isinstance(data, dict):  # the parser's error would carry the event: not chained
            raise ProviderStreamError(f"{why}: {event[:EXCERPT]!r}")
        return data

    def _with_halves(self, event: str) -> Any:
        """An event that is no JSON but for halves of characters; None if it is none at all."""
        try:
            data = surrogates.loads(event, is_event=True)
        except ValueError:
            return None
        self._halves = self._halves or Halves()
        return data


class CallIds:
    """The ids of an answer's calls: each call has one of its own."""

    def __init__(self, prefix: str = "call_") -> None:
        """Start with none; `prefix` is how ids of our making begin."""
        self._prefix = prefix
        self._taken: set[str] = set()

    def of(self, told: str) -> str:
        """The id of a new call: as the provider told it, unless it is empty or another call's."""
        call_id = f"{self._prefix}{new_id()}" if not told or told in self._taken else told
        self._taken.add(call_id)
        return call_id


def typed(value: Any, kind: type[T], where: str) -> T:
    """A field that may be absent or null, which is the same as empty.

    Raises:
        ProviderStreamError: it is of another type.
    """
    if value is None:
        return kind()
    if not isinstance(value, kind):
        msg = f"{where} must be {kind.__name__}, not {reprlib.repr(value):.{EXCERPT}}"
        raise ProviderStreamError(msg)
    return value


def count(value: Any) -> int:
    """A number of tokens; 0 where there is none."""
    return max(0, int(value)) if isinstance(value, int | float) else 0


def parsed(text: str) -> Any:
    """JSON text as values; None when it is none.

    By pydantic: orjson would make a float of a whole number of more than 64 bits, such as an id.
    """
    try:
        return from_json(text, allow_inf_nan=False)
    except (TypeError, ValueError):  # it calls a text with half a character no text
        pass
    try:
        return surrogates.loads(text)
    except ValueError:
        return None


def tool_call(call_id: str, name: str, text: str, *, is_cut: bool = False, **more: Any) -> ToolCall:
    """A tool call from its arguments as JSON text; none at all are an empty object.

    Args:
        call_id: its id.
        name: of the tool.
        text: the arguments.
        is_cut: whether the answer may have ended before the call did. What it did not get to the
            end of must not run, least of all without arguments: it is told as text.
        more: further fields.
    """
    if text.strip() in ("", "null"):  # how servers write a call without arguments
        return ToolCall(call_id, name, *((None, text) if is_cut else ({}, None)), **more)
    args = parsed(text)
    return ToolCall(call_id, name, args, whole(text) if args is None else None, **more)


class Parts:
    """Text and reasoning in order, one part open at a time, each with an id of its own.

    For protocols that say what a piece of text is, but not where its part begins and ends.

    Attributes:
        pieces: of the reasoning that is open, or was last; a signature holds for them.
    """

    def __init__(self) -> None:
        """Start with no part open."""
        self.pieces: list[str] = []
        self._open = ""  # the kind of the part that is open, if one is
        self._count = 0
        self._id = ""

    def write(self, kind: str, text: Any, out: list[Chunk]) -> None:
        """Add a piece of `"text"` or `"reasoning"`; one of the other kind begins a new part.

        Raises:
            ProviderStreamError: it is no string.
        """
        if not text:
            return
        if text.__class__ is not str:
            msg = f"{kind} must be a string, not {reprlib.repr(text):.{EXCERPT}}"
            raise ProviderStreamError(msg)
        if self._open != kind:
            self.begin(kind, out)
        if kind == "reasoning":
            self.pieces.append(text)
        out.append(_PARTS[kind][1](self._id, text))

    def begin(self, kind: str, out: list[Chunk]) -> None:
        """Close the part that is open, if one is, and open a new one."""
        self.close(out)
        self._open = kind
        self.pieces = []
        self._id = str(self._count)
        self._count += 1
        out.append(_PARTS[kind][0](self._id))

    def is_open(self, kind: str) -> bool:
        """Whether the part that is open is of this kind."""
        return self._open == kind

    def close(self, out: list[Chunk], **end: Any) -> None:
        """Close the part that is open, if one is; `end` are fields of its closing chunk."""
        if self._open:
            out.append(_PARTS[self._open][2](self._id, **end))
            self._open = ""
