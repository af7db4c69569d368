"""`ModelServer`: a loopback HTTP server that speaks the providers' protocols from a script."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from streampipe.chunks import Chunk
from streampipe.errors import ConfigurationError
from streampipe.testing._faults import Action, Broken, Faulty, Stalled
from streampipe.testing._http_server import (
    BrokenError,
    HttpServer,
    ServedRequest,
    head,
    write,
    write_json,
)
from streampipe.testing._protocols import PROTOCOLS, Asked, ProtocolName, Wire, spoken_at
from streampipe.testing._script import Delay, Failure, Piece, Turn, turns_of

if TYPE_CHECKING:  # it needs an HTTP client, which is imported when a model is asked for
    from streampipe.models._http.endpoint import HttpModel

__all__ = ["Answer", "ModelServer"]

PIECE = 1 << 16  # bytes of a long body that are written at once
EVENT_STREAM = {"content-type": "text/event-stream"}


@dataclass(slots=True, frozen=True)
class Answer:
    """An answer as it goes over the wire, for what a turn cannot say.

    Attributes:
        body: the bytes, a file of them, or several pieces that are sent one by one.
        status: HTTP status code.
        headers: besides those of the framing; an event stream unless they say otherwise.
    """

    body: bytes | Path | Sequence[bytes] = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Entry = Turn | Piece | Iterable[Piece] | Answer | bytes | Path | Faulty


class ModelServer(HttpServer):
    """Answers requests on loopback, a turn of the script each, in the protocol they come in.

    ```python
    from streampipe import Agent
    from streampipe.testing import ModelServer

    async with ModelServer([["Hello", " there"]]) as server:
        agent = Agent(model=server.model())
        assert (await agent.generate("hi")).text == "Hello there"
    ```

    It speaks OpenAI's Chat Completions and Responses, Anthropic's Messages and Google's
    generateContent, streamed and whole, and tells the protocol by the path that is asked.

    Attributes:
        requests: what it was asked, oldest first.
        connections: the connections it was asked over, oldest first.
    """

    def __init__(self, script: Iterable[Entry] = (), *, repeat: bool = False) -> None:
        """Take a script.

        Args:
            script: as `ScriptedModel` takes it; an entry may also be the bytes of an event stream,
                the path of a file with them, an `Answer`, or any of these gone wrong on its way
                (see `faulty`). `fail(status=...)` first in its turn is an HTTP error, later it
                breaks the connection.
            repeat: start again after the last turn instead of answering with an error.

        Raises:
            ConfigurationError: an entry cannot be told over HTTP.
        """
        super().__init__()
        self._entries = [_entry(entry) for entry in script]
        self._repeat = repeat
        self._played = 0
        self._misplaced: list[str] = []  # faults whose place is not in their answer

    @property
    def base_url(self) -> str:
        """Where it listens, with `/v1`: for all protocols but Google's.

        Raises:
            ConfigurationError: it does not.
        """
        return self.address("openai-chat")

    def address(self, protocol: ProtocolName) -> str:
        """The base URL for a protocol's clients.

        Raises:
            ConfigurationError: the server does not run, or there is no such protocol.
        """
        if self._port is None:
            msg = "the model server is not running; use it in 'async with ModelServer(...)'"
            raise ConfigurationError(msg)
        if protocol not in PROTOCOLS:
            known = ", ".join(PROTOCOLS)
            raise ConfigurationError(f"protocol must be one of {known}, not {protocol!r}")
        return f"http://127.0.0.1:{self._port}{PROTOCOLS[protocol].prefix}"

    def model(
        self,
        model_id: str = "scripted",
        *,
        protocol: ProtocolName = "openai-chat",
        **options: Any,
    ) -> HttpModel:
        """A model that asks this server.

        Args:
            model_id: the model's name.
            protocol: how it asks.
            options: those of the model's class.

        Raises:
            ConfigurationError: the server does not run, or an option is wrong.
        """
        options.setdefault("api_key", "no-key")
        options.setdefault("base_url", self.address(protocol))
        made: HttpModel = PROTOCOLS[protocol].model()(model_id, **options)
        return made

    def assert_complete(self) -> None:
        """Check that every turn was played, and went wrong where it was to.

        Raises:
            AssertionError: turns are left, or an answer did not hold the bytes of a `faulty`.
        """
        if self._misplaced:
            raise AssertionError(self._misplaced[0])
        left = len(self._entries) - self._played
        if left > 0:
            msg = f"{left} of {len(self._entries)} scripted turns were not asked for"
            raise AssertionError(msg)

    async def _answer(
        self,
        request: ServedRequest,
        method: str,
        content: bytes,
        writer: asyncio.StreamWriter,
    ) -> None:
        spoken = spoken_at(request.path)
        if spoken is None:
            known = ", ".join(each.path.pattern for each in PROTOCOLS.values())
            told = {"error": {"message": f"no such path {request.path!r}; there is {known}"}}
            return await write_json(writer, 404, told)
        wire = spoken.wire
        if method != "POST":
            return await write_json(writer, 405, wire.error("use POST", 405))
        try:
            request.body = orjson.loads(content)
            asked = spoken.asked(request.path, request.body)
        except (orjson.JSONDecodeError, TypeError, KeyError, AttributeError, ValueError) as error:
            told = wire.error(f"the body is no request of this protocol: {error!r}", 400)
            return await write_json(writer, 400, told)
        number = self._played
        self._played += 1
        if self._repeat and self._entries:
            number %= len(self._entries)
        if number >= len(self._entries):
            place = f"request {number + 1} of a script of {len(self._entries)} turns"
            msg = f"the script is at its end: {place}"
            return await write_json(writer, 500, wire.error(msg, 500))
        try:
            answer, actions = _planned(self._entries[number], number, asked, wire)
        except ConfigurationError as error:
            self._misplaced.append(str(error))
            return await write_json(writer, 500, wire.error(str(error), 500))
        return await _act(actions, answer, writer)


def _entry(entry: Any) -> Turn | Answer | Faulty:
    if isinstance(entry, Faulty):
        inner = _entry(entry.entry)
        if isinstance(inner, Turn) and _refusal(inner) is not None:
            msg = "faulty(fail(...)): an HTTP error is sent whole; put an Answer(...) in its place"
            raise ConfigurationError(msg)
        return replace(entry, entry=inner)
    if isinstance(entry, bytes | Path):
        entry = Answer(entry)
    if isinstance(entry, Answer):
        if isinstance(entry.body, Path) and not entry.body.is_file():
            msg = f"the script names a file that is not there: {entry.body}"
            raise ConfigurationError(msg)
        return entry
    made = turns_of([entry])[0]
    for piece in made.pieces:
        if isinstance(piece, Chunk) or (isinstance(piece, Failure) and piece.error is not None):
            msg = f"{piece!r:.80} cannot be sent over HTTP; ScriptedModel takes it"
            raise ConfigurationError(msg)
    try:
        for spoken in PROTOCOLS.values():
            orjson.dumps(spoken.wire.completion(made, 0, ""))
            list(spoken.wire.events(made, 0, "", usage=True))
    except TypeError as error:
        msg = f"a turn of the script is no JSON ({error}): {made.pieces!r:.80}"
        raise ConfigurationError(msg) from error
    return made


def _refusal(turn: Turn) -> Failure | None:
    """The failure that a turn begins with, if it does: an HTTP error."""
    first = next((piece for piece in turn.pieces if not isinstance(piece, Delay)), None)
    return first if isinstance(first, Failure) else None


def _planned(
    entry: Turn | Answer | Faulty, number: int, asked: Asked, wire: Wire
) -> tuple[Answer, list[Action]]:
    """An answer's head, and what is done about its body.

    Raises:
        ConfigurationError: it does not hold the bytes where it should go wrong.
    """
    actions: list[Action]
    if isinstance(entry, Faulty):
        made, actions = _planned(entry.entry, number, asked, wire)
        return made, entry.applied(actions)
    if isinstance(entry, Answer):
        made = Answer(b"", entry.status, {**EVENT_STREAM, **entry.headers})
        return made, list(_pieces(entry))
    failure = _refusal(entry)
    if failure is not None:
        pause = _pauses(entry.pieces[: entry.pieces.index(failure)])
        told = failure.body
        if told is None:
            told = wire.error("scripted failure", failure.status)
        return _whole(told, failure.status), [Delay(pause), _bytes(told)]
    if asked.stream:
        events = wire.events(entry, number, asked.model, usage=asked.usage)
        actions = [Broken() if isinstance(event, Failure) else event for event in events]
        return Answer(b"", 200, EVENT_STREAM), actions
    body = wire.completion(entry, number, asked.model)
    breaks = entry.incomplete or any(isinstance(piece, Failure) for piece in entry.pieces)
    last = Broken() if breaks else _bytes(body)
    return _whole(body, 200), [Delay(_pauses(entry.pieces)), last]


def _whole(value: Any, status: int) -> Answer:
    """The head of an answer that is no event stream."""
    kind = "text/plain; charset=utf-8" if isinstance(value, str) else "application/json"
    return Answer(b"", status, {"content-type": kind})


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else orjson.dumps(value)


async def _act(actions: list[Action], answer: Answer, writer: asyncio.StreamWriter) -> None:
    """Send an answer; as servers do, no head before there is something to say.

    Raises:
        BrokenError: the answer breaks off here.
    """
    begun = False
    for action in actions:
        if isinstance(action, Delay):
            await asyncio.sleep(action.seconds)
        elif isinstance(action, Stalled):
            await asyncio.Event().wait()  # until the client has gone, or the server stops
        elif isinstance(action, Broken):
            raise BrokenError
        elif action:  # an empty piece would be the end
            if not begun:
                begun = True
                head(writer, answer.status, answer.headers)
            await write(writer, action)
    if not begun:
        head(writer, answer.status, answer.headers)
    await write(writer, b"")


def _pieces(answer: Answer) -> Iterable[bytes]:
    body = answer.body.read_bytes() if isinstance(answer.body, Path) else answer.body
    if isinstance(body, bytes):
        return [body[start : start + PIECE] for start in range(0, len(body), PIECE)]
    return body


def _pauses(pieces: Iterable[Piece]) -> float:
    return sum(piece.seconds for piece in pieces if isinstance(piece, Delay))
