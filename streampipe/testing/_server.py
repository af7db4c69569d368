"""`ModelServer`: a loopback HTTP server that speaks the chat-completions protocol from a script."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from streampipe import models
from streampipe.chunks import Chunk
from streampipe.contracts import Model
from streampipe.errors import ConfigurationError
from streampipe.testing import _chat_wire as wire
from streampipe.testing._script import Delay, Failure, Piece, Turn, turns_of

__all__ = ["ModelServer", "ServedRequest"]

PATH = "/v1/chat/completions"
LARGEST_BODY = 64 << 20  # bytes
_PHRASES = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}

Entry = Turn | Piece | Iterable[Piece] | bytes | Path


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
    """

    def __init__(self, script: Iterable[Entry], *, repeat: bool = False) -> None:
        """Take a script.

        Args:
            script: as `ScriptedModel` takes it; an entry may also be the bytes of an event stream,
                or the path of a file with them. `fail(status=...)` first in its turn is an HTTP
                error, later it breaks the connection.
            repeat: start again after the last turn instead of answering with an error.

        Raises:
            ConfigurationError: an entry cannot be told in this protocol.
        """
        self.requests: list[ServedRequest] = []
        self._entries = [_entry(entry) for entry in script]
        self._repeat = repeat
        self._played = 0
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        """Listen on a free port of loopback."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
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
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections)
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

    def model(self, model_id: str = "scripted", **options: Any) -> Model:
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

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
        try:
            while await self._request(reader, writer):
                pass
        except asyncio.CancelledError:
            pass  # the server stops
        except (ConnectionError, asyncio.IncompleteReadError, _ClientGoneError):
            pass  # the client left; its request says so
        except _BrokenError:
            writer.transport.abort()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; returns whether another may follow."""
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = (*first.split(" "), "", "")[:3]
        fields = (line.partition(":") for line in lines if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in fields}
        length = int(headers.get("content-length") or 0)
        if length > LARGEST_BODY:
            raise ConnectionError
        request = ServedRequest(path, headers)
        content = await reader.readexactly(length)
        self.requests.append(request)
        answer = asyncio.ensure_future(self._answer(request, method, content, writer))
        gone = asyncio.ensure_future(reader.read(1))
        completed = False
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise _ClientGoneError  # at its end, or sending out of turn
            answer.result()
            completed = True
        finally:
            answer.cancel()
            gone.cancel()
            await asyncio.wait({answer, gone})
            request.end(completed=completed)
        return not gone.done() or gone.cancelled()

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
        if self._repeat:
            number %= len(self._entries)
        if number >= len(self._entries):
            told = f"request {number + 1} of a script of {len(self._entries)} turns"
            return await _error(writer, 501, told)
        await _play(self._entries[number], number, str(model), request.body, writer)
        return None


def _entry(entry: Any) -> Turn | bytes:
    if isinstance(entry, bytes):
        return entry
    if isinstance(entry, Path):
        return entry.read_bytes()
    made = turns_of([entry])[0]
    for piece in made.pieces:
        if isinstance(piece, Chunk) or (isinstance(piece, Failure) and piece.error is not None):
            msg = f"{piece!r:.80} cannot be sent over HTTP; ScriptedModel takes it"
            raise ConfigurationError(msg)
    return made


async def _play(
    entry: Turn | bytes,
    number: int,
    model: str,
    body: Mapping[str, Any],
    writer: asyncio.StreamWriter,
) -> None:
    if isinstance(entry, bytes):
        _head(writer, 200, "text/event-stream", None)
        for start in range(0, len(entry), 1 << 16):
            await _write(writer, entry[start : start + (1 << 16)])
        return await _write(writer, b"")
    pieces = list(entry.pieces)
    first = next((piece for piece in pieces if not isinstance(piece, Delay)), None)
    if isinstance(first, Failure):
        for piece in pieces[: pieces.index(first)]:
            await asyncio.sleep(piece.seconds)  # type: ignore[union-attr]  # only delays are there
        told = first.body if first.body is not None else wire.error("scripted failure")
        return await _json(writer, first.status, told)
    if not body.get("stream"):
        return await _json(writer, 200, wire.completion(entry, number, model))
    _head(writer, 200, "text/event-stream", None)
    options = body.get("stream_options") or {}
    for event in wire.events(entry, number, model, usage=bool(options.get("include_usage"))):
        if isinstance(event, Delay):
            await asyncio.sleep(event.seconds)
        elif isinstance(event, Failure):
            raise _BrokenError
        else:
            await _write(writer, event)
    return await _write(writer, b"")


def _head(writer: asyncio.StreamWriter, status: int, kind: str, length: int | None) -> None:
    framing = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    phrase = _PHRASES.get(status, "Error")
    head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: {kind}\r\n{framing}\r\n\r\n"
    writer.write(head.encode())


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    """A piece of a chunked body; an empty one ends it."""
    writer.write(b"%x\r\n%b\r\n" % (len(data), data))
    await writer.drain()


async def _json(writer: asyncio.StreamWriter, status: int, value: Any) -> None:
    data = value.encode() if isinstance(value, str) else orjson.dumps(value)
    kind = "text/plain; charset=utf-8" if isinstance(value, str) else "application/json"
    _head(writer, status, kind, len(data))
    writer.write(data)
    await writer.drain()


async def _error(writer: asyncio.StreamWriter, status: int, message: str) -> None:
    await _json(writer, status, wire.error(message))
