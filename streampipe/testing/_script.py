"""The script of a model: what it says, turn by turn. `ScriptedModel` and `ModelServer` play it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from streampipe.chunks import Chunk, FinishReason, Usage
from streampipe.errors import ConfigurationError

__all__ = [
    "Call",
    "Delay",
    "Failure",
    "Piece",
    "Reasoning",
    "Script",
    "Turn",
    "call",
    "delay",
    "fail",
    "reasoning",
    "turn",
]


@dataclass(slots=True, frozen=True)
class Call:
    """A tool call; `arguments` that are a string are sent as they stand, JSON or not."""

    name: str
    arguments: Any = field(default_factory=dict[str, Any])
    id: str = ""
    pieces: int = 1


@dataclass(slots=True, frozen=True)
class Reasoning:
    """A piece of reasoning."""

    text: str


@dataclass(slots=True, frozen=True)
class Delay:
    """A pause of so many seconds."""

    seconds: float


@dataclass(slots=True, frozen=True)
class Failure:
    """The call fails here: with an exception, or (over HTTP) a status and a body.

    First in its turn it is an HTTP error; later the connection breaks in mid-stream.
    """

    error: BaseException | None = None
    status: int = 500
    body: Any = None


Piece = str | Reasoning | Call | Delay | Failure | Chunk
"""A string is a piece of text. A `Chunk` is sent as it is (by `ScriptedModel` only)."""


@dataclass(slots=True, frozen=True)
class Turn:
    """One answer of the model. Without `finish_reason` it is `tool-calls` or `stop`.

    With `incomplete`, the stream stops without its protocol's end.
    """

    pieces: tuple[Piece, ...]
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    incomplete: bool = False

    @property
    def reason(self) -> FinishReason:
        """The finish reason that the client should see."""
        called = any(isinstance(piece, Call) for piece in self.pieces)
        return self.finish_reason or ("tool-calls" if called else "stop")


Script = Iterable[Turn | Piece | Iterable[Piece]]
"""One entry a turn: a `Turn`, a list of pieces, or a single piece."""


def turn(
    *pieces: Piece,
    finish_reason: FinishReason | None = None,
    usage: Usage | None = None,
    incomplete: bool = False,
) -> Turn:
    """A turn: text pieces as strings, `call(...)`, `reasoning(...)`, `delay(...)`, `fail(...)`."""
    return Turn(pieces, finish_reason, usage, incomplete)


def call(name: str, arguments: Any = None, *, id: str = "", pieces: int = 1) -> Call:  # noqa: A002
    """A tool call, its arguments written in so many pieces."""
    return Call(name, {} if arguments is None else arguments, id, pieces)


def reasoning(text: str) -> Reasoning:
    """A piece of reasoning."""
    return Reasoning(text)


def delay(seconds: float) -> Delay:
    """A pause."""
    return Delay(seconds)


def fail(
    error: BaseException | None = None,
    *,
    status: int = 500,
    body: Any = None,
) -> Failure:
    """A failure: an exception for `ScriptedModel`, a status and body for `ModelServer`."""
    return Failure(error, status, body)


def turns_of(script: Script) -> list[Turn]:
    """A script in its full form.

    Raises:
        ConfigurationError: an entry is no turn and no piece, or the script is a bare string.
    """
    if isinstance(script, str):
        msg = f"a script is a list of turns, each a list of pieces: write [[{script!r:.80}]]"
        raise ConfigurationError(msg)
    turns: list[Turn] = []
    for entry in script:
        if isinstance(entry, Turn):
            turns.append(entry)
        elif isinstance(entry, Piece):
            turns.append(Turn((entry,)))
        elif isinstance(entry, list | tuple):
            turns.append(Turn(tuple(entry)))
        else:
            msg = f"a script's entry is a turn, a piece or a list of pieces, not {entry!r:.80}"
            raise ConfigurationError(msg)
        for piece in turns[-1].pieces:
            if not isinstance(piece, Piece):
                msg = f"turn {len(turns)}: {piece!r:.80} is no piece of a turn"
                raise ConfigurationError(msg)
    return turns
