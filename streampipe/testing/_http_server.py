"""A small HTTP/1.1 server on loopback that notes what it was asked, and sees who has gone."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import orjson

LARGEST_BODY = 64 << 20  # bytes
_PHRASES = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}


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


class BrokenError(Exception):
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


class HttpServer(ABC):
    """Listens on a free port of loopback and answers requests; a subclass says with what.

    Attributes:
        requests: what it was asked, oldest first.
        connections: the connections it was asked over, oldest first.
    """

    def __init__(self) -> None:
        """Listen to nothing yet."""
        self.requests: list[ServedRequest] = []
        self.connections: list[Connection] = []
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    @abstractmethod
    async def _answer(
        self,
        request: ServedRequest,
        method: str,
        content: bytes,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Write the answer to a request.

        Raises:
            BrokenError: the connection is to break here.
        """

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

    async def closed(self) -> float:
        """Wait until every connection so far is closed; returns when the last one was.

        On the monotonic clock; 0.0 when there was no connection.
        """
        return max([await connection.wait() for connection in self.connections], default=0.0)

    @property
    def _port(self) -> int | None:
        """Where it listens; None if it does not."""
        return None if self._server is None else int(self._server.sockets[0].getsockname()[1])

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
        except BrokenError:
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
            BrokenError: the script breaks the connection.
            ConnectionError: what came is no HTTP request that is served here.
            asyncio.IncompleteReadError: the client has no further request.
        """
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = (*first.split(" "), "", "")[:3]
        fields = (line.partition(":") for line in lines if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in fields}
        request = ServedRequest(path, headers)
        content = await _content(reader, headers)
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


async def _content(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    """The body of a request: of the length that it tells, or in chunks.

    Raises:
        ConnectionError: it has neither form, or is too large.
    """
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(_size(headers.get("content-length", "0"), 10))
    content = b""
    while True:
        line = await reader.readuntil(b"\r\n")
        size = _size(line.partition(b";")[0].strip().decode("latin-1"), 16)
        if not size:
            break
        content += (await reader.readexactly(size + 2))[:-2]
        _size(str(len(content)), 10)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # a trailer
    return content


def _size(text: str, base: int) -> int:
    """A number of bytes.

    Raises:
        ConnectionError: it is none, or too large.
    """
    digits = "[0-9]+" if base == 10 else "[0-9a-fA-F]+"  # noqa: PLR2004 - the usual one
    size = int(text, base) if re.fullmatch(digits, text) else -1
    if not 0 <= size <= LARGEST_BODY:
        raise ConnectionError
    return size


def head(
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


async def write(writer: asyncio.StreamWriter, data: bytes) -> None:
    """A piece of a chunked body; an empty one ends it."""
    writer.write(b"%x\r\n%b\r\n" % (len(data), data))
    await writer.drain()


async def write_json(writer: asyncio.StreamWriter, status: int, value: Any) -> None:
    data = orjson.dumps(value)
    head(writer, status, {"content-type": "application/json"}, len(data))
    writer.write(data)
    await writer.drain()
