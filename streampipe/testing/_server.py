"""`ModelServer`: a loopback HTTP server that speaks the chat-completions protocol from a script."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import orjson

from streampipe import models
from streampipe.chunks import Chunk
from streampipe.errors import ConfigurationError
from streampipe.testing import _chat_wire as wire
from streampipe.testing._script import Delay, Failure, Piece, Turn, turns_of

if TYPE_CHECKING:  # it needs an HTTP client, which is imported when a model is asked for
    from streampipe.models import OpenAIChatModel

__all__ = ["Answer", "Connection", "ModelServer", "ServedRequest"]

PATH = "/v1/chat/completions"
LARGEST_BODY = 64 << 20  # bytes
PIECE = 1 << 16  # bytes of a long body that are written at once
_PHRASES = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}


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


Entry = Turn | Piece | Iterable[Piece] | Answer | bytes | Path


@dataclass(slots=True, eq=False)
class Connection:
    """A connection of a client.

    Attributes:
        opened: `time.monotonic()` when it was accepted.
        closed: the same when it was seen to be closed, by whichever side.
    """

    opened: float = field(default_factory=time.monotonic)
    closed: float | None = None
    _over: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    async def wait(self) -> float:
        """Wait until it is closed; returns when that was, on the monotonic clock."""
        await self._over.wait()
        return self.closed or 0.0

    def end(self) -> None:
        """Note the end; the first time counts."""
        if self.closed is None:
            self.closed = time.monotonic()
            self._over.set()


@dataclass(slots=True, eq=False)
class ServedRequest:
    """A request that came in, and what became of its answer.

    Attributes:
        path: the path that was asked for.
        headers: names in lower case.
        body: the decoded JSON, None when it was none.
        ended: `time.monotonic()` when the answer was out, or the client was seen to be gone.
        completed: whether the whole answer went out.
    """

    path: str
    headers: dict[str, str]
    body: Any = None
    ended: float | None = None
    completed: bool = False
    _over: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    async def wait(self) -> float:
        """Wait until the answer has ended; returns when that was, on the monotonic clock."""
        await self._over.wait()
        return self.ended or 0.0

    def end(self, *, completed: bool) -> None:
        """Note the end."""
        self.ended = time.monotonic()
        self.completed = completed
        self._over.set()


class _ClientGoneError(Exception):
    """The client closed the connection before its answer was out."""


class _BrokenError(Exception):
    """The script breaks the connection here."""


class _Reader(asyncio.StreamReader):
    """Tells at once that the client has gone, also while an answer is being written."""

    def __init__(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._connection = connection

    def feed_eof(self) -> None:
        super().feed_eof()
        self._connection.end()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self._connection.end()


class ModelServer:
    """Answers chat-completions requests on loopback, a turn of the script each.

    ```python
    from streampipe import Agent
    from streampipe.testing import ModelServer

    async with ModelServer([["Hello", " there"]]) as server:
        agent = Agent(model=server.model())
        assert (await agent.generate("hi")).text == "Hello there"
    ```

    Attributes:
        requests: what it was asked, oldest first.
        connections: the connections it was asked over, oldest first.
    """

    def __init__(self, script: Iterable[Entry] = (), *, repeat: bool = False) -> None:
        """Take a script.

        Args:
            script: as `ScriptedModel` takes it; an entry may also be the bytes of an event stream,
                the path of a file with them, or an `Answer`. `fail(status=...)` first in its turn
                is an HTTP error, later it breaks the connection.
            repeat: start again after the last turn instead of answering with an error.

        Raises:
            ConfigurationError: an entry cannot be told in this protocol.
        """
        self.requests: list[ServedRequest] = []
        self.connections: list[Connection] = []
        self._entries = [_entry(entry) for entry in script]
        self._repeat = repeat
        self._played = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        """Listen on a free port of loopback."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._protocol, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the port and every connection, and wait until they are closed."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await server.wait_closed()

    @property
    def base_url(self) -> str:
        """Where it listens, with `/v1`.

        Raises:
            ConfigurationError: it does not.
        """
        if self._server is None:
            msg = "the model server is not running; use it in 'async with ModelServer(...)'"
            raise ConfigurationError(msg)
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/v1"

    async def closed(self) -> float:
        """Wait until every connection so far is closed; returns when the last one was.

        On the monotonic clock; 0.0 when there was no connection.
        """
        return max([await connection.wait() for connection in self.connections], default=0.0)

    def model(self, model_id: str = "scripted", **options: Any) -> OpenAIChatModel:
        """A model that asks this server; `options` are those of `OpenAIChatModel`."""
        options.setdefault("api_key", "no-key")
        return models.OpenAIChatModel(model_id, base_url=self.base_url, **options)

    def assert_complete(self) -> None:
        """Check that every turn was played.

        Raises:
            AssertionError: turns are left.
        """
        left = len(self._entries) - self._played
        if left > 0:
            msg = f"{left} of {len(self._entries)} scripted turns were not asked for"
            raise AssertionError(msg)

    # --- a connection ----------------------------------------------------------------------

    def _protocol(self) -> asyncio.Protocol:
        """What serves the next connection."""
        loop = asyncio.get_running_loop()
        connection = Connection()
        self.connections.append(connection)
        serve = functools.partial(self._serve, connection)
        return asyncio.StreamReaderProtocol(_Reader(connection, loop), serve, loop=loop)

    async def _serve(
        self,
        connection: Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            while True:
                await self._request(connection, reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()  # the server stops: nobody waits for what is still unsent
        except (ConnectionError, asyncio.IncompleteReadError, _ClientGoneError):
            pass  # the client left; its request says so
        except _BrokenError:
            pass  # what was said before goes out; the end of the body does not
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            connection.end()

    async def _request(
        self,
        connection: Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """One request and its answer.

        Raises:
            _ClientGoneError: the client closed the connection before the answer was out.
            _BrokenError: the script breaks the connection.
            ConnectionError: what came is no HTTP request that is served here.
            asyncio.IncompleteReadError: the client has no further request.
        """
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = (*first.split(" "), "", "")[:3]
        fields = (line.partition(":") for line in lines if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in fields}
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > LARGEST_BODY:
            raise ConnectionError
        request = ServedRequest(path, headers)
        content = await reader.readexactly(int(length))
        self.requests.append(request)
        answer = asyncio.ensure_future(self._answer(request, method, content, writer))
        gone = asyncio.ensure_future(connection.wait())
        completed = False
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise _ClientGoneError
            answer.result()
            completed = True
        finally:
            answer.cancel()
            gone.cancel()
            await asyncio.wait({answer, gone})
            request.end(completed=completed)

    async def _answer(
        self,
        request: ServedRequest,
        method: str,
        content: bytes,
        writer: asyncio.StreamWriter,
    ) -> None:
        if request.path != PATH:
            return await _error(writer, 404, f"no such path {request.path!r}; there is {PATH}")
        if method != "POST":
            return await _error(writer, 405, "use POST")
        try:
            request.body = orjson.loads(content)
            model, messages = request.body["model"], request.body["messages"]
        except (orjson.JSONDecodeError, TypeError, KeyError) as error:
            return await _error(writer, 400, f"the body is no chat-completions request: {error!r}")
        if not isinstance(messages, list) or not messages:
            return await _error(writer, 400, "'messages' must be a list with at least one message")
        number = self._played
        self._played += 1
        if self._repeat and self._entries:
            number %= len(self._entries)
        if number >= len(self._entries):
            told = f"request {number + 1} of a script of {len(self._entries)} turns"
            return await _error(writer, 500, f"the script is at its end: {told}")
        await _play(self._entries[number], number, str(model), request.body, writer)
        return None


def _entry(entry: Any) -> Turn | Answer:
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
        wire.completion(made, 0, "")
        list(wire.events(made, 0, "", usage=True))
    except TypeError as error:
        msg = f"a turn of the script is no JSON ({error}): {made.pieces!r:.80}"
        raise ConfigurationError(msg) from error
    return made


async def _play(
    entry: Turn | Answer,
    number: int,
    model: str,
    body: Mapping[str, Any],
    writer: asyncio.StreamWriter,
) -> None:
    if isinstance(entry, Answer):
        return await _send(entry, writer)
    first = next((piece for piece in entry.pieces if not isinstance(piece, Delay)), None)
    if isinstance(first, Failure):
        await asyncio.sleep(_pauses(entry.pieces[: entry.pieces.index(first)]))
        told = first.body if first.body is not None else wire.error("scripted failure")
        return await _json(writer, first.status, told)
    if not body.get("stream"):
        await asyncio.sleep(_pauses(entry.pieces))
        if entry.incomplete or any(isinstance(piece, Failure) for piece in entry.pieces):
            raise _BrokenError
        return await _json(writer, 200, wire.completion(entry, number, model))
    begun = False
    options = body.get("stream_options") or {}
    for event in wire.events(entry, number, model, usage=bool(options.get("include_usage"))):
        if isinstance(event, Delay):
            await asyncio.sleep(event.seconds)
            continue
        if isinstance(event, Failure):
            raise _BrokenError
        if not begun:  # as servers do: no head before there is something to say
            begun = True
            _head(writer, 200, {"content-type": "text/event-stream"})
        await _write(writer, event)
    return await _write(writer, b"")


def _pauses(pieces: Iterable[Piece]) -> float:
    return sum(piece.seconds for piece in pieces if isinstance(piece, Delay))


async def _send(answer: Answer, writer: asyncio.StreamWriter) -> None:
    body = answer.body.read_bytes() if isinstance(answer.body, Path) else answer.body
    if isinstance(body, bytes):
        body = [body[start : start + PIECE] for start in range(0, len(body), PIECE)]
    _head(writer, answer.status, {"content-type": "text/event-stream", **answer.headers})
    for piece in body:
        if piece:  # an empty one would be the end
            await _write(writer, piece)
    await _write(writer, b"")


def _head(
    writer: asyncio.StreamWriter,
    status: int,
    headers: Mapping[str, str],
    length: int | None = None,
) -> None:
    """The head of an answer; the body is chunked when its length is not given."""
    framing = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} {_PHRASES.get(status, 'Error')}\r\n{fields}{framing}\r\n\r\n"
    writer.write(head.encode())


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    """A piece of a chunked body; an empty one ends it."""
    writer.write(b"%x\r\n%b\r\n" % (len(data), data))
    await writer.drain()


async def _json(writer: asyncio.StreamWriter, status: int, value: Any) -> None:
    data = value.encode() if isinstance(value, str) else orjson.dumps(value)
    kind = "text/plain; charset=utf-8" if isinstance(value, str) else "application/json"
    _head(writer, status, {"content-type": kind}, len(data))
    writer.write(data)
    await writer.drain()


async def _error(writer: asyncio.StreamWriter, status: int, message: str) -> None:
    await _json(writer, status, wire.error(message))
