"""The transport over httpx: the one module that imports it."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import ssl
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import httpx

from streampipe.errors import (
    ConfigurationError,
    ConnectTimeoutError,
    ModelConnectionError,
    ModelError,
    ModelTimeoutError,
    ProviderStreamError,
    StreampipeError,
)
from streampipe.models._http.transport import Timeout, TransportResponse

HttpClient = httpx.AsyncClient
"""What `http_client=` takes."""

ERRORS: dict[type[Exception], tuple[type[StreampipeError], bool]] = {
    httpx.HTTPError: (ModelConnectionError, False),
    httpx.TimeoutException: (ModelTimeoutError, True),
    httpx.ConnectTimeout: (ConnectTimeoutError, True),
    httpx.PoolTimeout: (ConnectTimeoutError, True),
    httpx.NetworkError: (ModelConnectionError, True),
    httpx.RemoteProtocolError: (ModelConnectionError, True),
    httpx.DecodingError: (ProviderStreamError, False),
    httpx.UnsupportedProtocol: (ConfigurationError, False),
    httpx.InvalidURL: (ConfigurationError, False),
    httpx.StreamError: (ProviderStreamError, False),
}
"""What a failure of httpx is to us, and whether asking again may help: by the nearest class."""

CONNECTED = 0.05  # seconds that a cancel waits for a connection to be made or to fail
CAUGHT = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL)


def translated(error: Exception, url: str) -> StreampipeError:
    """An exception of httpx as one of ours, naming the host."""
    ours, retryable = next(ERRORS[cls] for cls in type(error).__mro__ if cls in ERRORS)
    # The address may hold a password; and one that is invalid has no host to name.
    host = "base_url" if ours is ConfigurationError else httpx.URL(url).netloc.decode()
    msg = f"{host}: {type(error).__name__}: {error}".removesuffix(": ")
    return ours(msg, is_retryable=retryable) if issubclass(ours, ModelError) else ours(msg)


class HttpxTransport:
    """Streaming POSTs by an httpx client: the user's own, else one shared by the event loop."""

    def __init__(self, client: HttpClient | None = None, *, http2: bool = False) -> None:
        """Use `client`, which stays the caller's to close.

        Args:
            client: the client to use instead of the loop's own.
            http2: whether the loop's own client offers HTTP/2; a server that has none is asked in
                HTTP/1.1.

        Raises:
            ConfigurationError: HTTP/2 is asked for, and the extra that speaks it is missing.
        """
        if http2 and importlib.util.find_spec("h2") is None:
            msg = "http2=True needs the extra 'http2': pip install 'streampipe-rx[http2]'"
            raise ConfigurationError(msg)
        self._client = client
        self._http2 = http2

    async def post(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        content: bytes,
        timeout: Timeout,  # noqa: ASYNC109 - it limits each wait, not the whole
    ) -> TransportResponse:
        """Send a request and wait for the head of its answer, whatever its status.

        Raises:
            ModelError: there was no answer; `ERRORS` says which one it is.
            ConfigurationError: the address is none, or the given client is closed.
        """
        client = self._client or await _shared_client(http2=self._http2)
        if client.is_closed:
            msg = "the http_client of this model is closed: close it after its last call"
            raise ConfigurationError(msg)
        limits = httpx.Timeout(None, connect=timeout.connect, pool=timeout.connect)
        try:
            request = client.build_request(
                "POST", url, headers=dict(headers), content=content, timeout=limits
            )
            return _Response(await _sent(client, request), url)
        except CAUGHT as error:
            raise translated(error, url) from error


async def _sent(client: HttpClient, request: httpx.Request) -> httpx.Response:
    """Send a request, and wait for the head of its answer.

    A request that is cancelled between its connection and its first byte leaves the connection in
    the pool of httpcore, open and of no use to anybody. So a cancel waits until that is over: for
    the time of a connection, which on loopback is none; a slow one ends on its own.
    """
    begun = asyncio.Event()

    async def trace(event: str, _info: Mapping[str, Any]) -> None:
        if event.endswith("send_request_headers.started"):
            begun.set()

    request.extensions["trace"] = trace
    sending = asyncio.ensure_future(client.send(request, stream=True))
    try:
        return await asyncio.shield(sending)
    except asyncio.CancelledError:
        ending = asyncio.ensure_future(_given_up(sending, begun))
        await asyncio.wait({ending}, timeout=CONNECTED)
        raise


async def _given_up(sending: asyncio.Future[httpx.Response], begun: asyncio.Event) -> None:
    """End a request that nobody waits for any more, once it can be ended."""
    waiting: asyncio.Future[Any] = asyncio.ensure_future(begun.wait())
    either: set[asyncio.Future[Any]] = {sending, waiting}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    sending.cancel()
    await asyncio.wait(either)
    if not sending.cancelled() and sending.exception() is None:
        await sending.result().aclose()


class _Response:
    def __init__(self, response: httpx.Response, url: str) -> None:
        self._response = response
        self._url = url
        self.status = response.status_code
        self.headers: Mapping[str, str] = {k.lower(): v for k, v in response.headers.items()}

    async def body(self) -> AsyncGenerator[bytes, None]:
        try:
            async for data in self._response.aiter_bytes():
                yield data
        except CAUGHT as error:
            raise translated(error, self._url) from error

    async def aclose(self) -> None:
        await self._response.aclose()


class _Pool:
    """The clients of one event loop, by whether they offer HTTP/2: connections cannot move."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.clients: dict[bool, HttpClient] = {}
        self._keeper = self._kept(loop)

    async def client(self, *, http2: bool) -> HttpClient:
        if not self.clients:
            await anext(self._keeper, None)
        client = self.clients.get(http2)
        if client is None or client.is_closed:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
            client = self.clients[http2] = HttpClient(limits=limits, verify=_tls(), http2=http2)
        return client

    async def _kept(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None, None]:
        """Closes the clients with their loop, which closes the async generators it has begun."""
        try:
            yield
        finally:
            _pools.pop(loop, None)
            for client in self.clients.values():
                await client.aclose()


# Plain keys: weak ones would never go, since a client's connections refer to their loop. A loop
# that is shut down in order (as `asyncio.run` does) takes its entry along.
_pools: dict[asyncio.AbstractEventLoop, _Pool] = {}


async def _shared_client(*, http2: bool = False) -> HttpClient:
    """The event loop's own client."""
    loop = asyncio.get_running_loop()
    if loop not in _pools:
        for closed in [other for other in _pools if other.is_closed()]:
            del _pools[closed]  # closed without being shut down: nothing can be closed any more
        _pools[loop] = _Pool(loop)
    return await _pools[loop].client(http2=http2)


@functools.cache
def _tls() -> ssl.SSLContext:
    """The default certificates, read once a process: that takes longer than a short call."""
    return httpx.create_ssl_context()
