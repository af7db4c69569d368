"""The transport over httpx: the one module that imports it."""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import AsyncGenerator, Mapping

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
from streampipe.models._transport import Timeout, TransportResponse

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

    def __init__(self, client: HttpClient | None = None) -> None:
        """Use `client`, which stays the caller's to close."""
        self._client = client

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
        client = self._client or await _shared_client()
        if client.is_closed:
            msg = "the http_client of this model is closed: close it after its last call"
            raise ConfigurationError(msg)
        limits = httpx.Timeout(None, connect=timeout.connect, pool=timeout.connect)
        try:
            request = client.build_request(
                "POST", url, headers=dict(headers), content=content, timeout=limits
            )
            return _Response(await client.send(request, stream=True), url)
        except CAUGHT as error:
            raise translated(error, url) from error


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


# Plain keys: weak ones would never go, since a client's connections refer to their loop. A loop
# that is shut down in order (as `asyncio.run` does) takes its entry along.
_clients: dict[asyncio.AbstractEventLoop, HttpClient] = {}
_keepers: dict[asyncio.AbstractEventLoop, AsyncGenerator[None, None]] = {}


async def _shared_client() -> HttpClient:
    """The event loop's own client: connections cannot move between loops."""
    loop = asyncio.get_running_loop()
    client = _clients.get(loop)
    if client is None or client.is_closed:
        for closed in [other for other in _clients if other.is_closed()]:
            _forget(closed)  # closed without being shut down: nothing can be closed any more
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
        client = HttpClient(limits=limits, verify=_tls())
        _clients[loop] = client
        _keepers[loop] = _kept(loop, client)
        await anext(_keepers[loop])
    return client


async def _kept(
    loop: asyncio.AbstractEventLoop,
    client: HttpClient,
) -> AsyncGenerator[None, None]:
    """Closes the client with its loop, which closes the async generators that it has begun."""
    try:
        yield
    finally:
        _forget(loop)
        await client.aclose()


def _forget(loop: asyncio.AbstractEventLoop) -> None:
    _clients.pop(loop, None)
    _keepers.pop(loop, None)


@functools.cache
def _tls() -> ssl.SSLContext:
    """The default certificates, read once a process: that takes longer than a short call."""
    return httpx.create_ssl_context()
