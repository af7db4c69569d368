"""The transport over httpx: the one module that imports it."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

import httpx

from streampipe.errors import (
    ConfigurationError,
    ModelConnectionError,
    ModelError,
    ModelTimeoutError,
    ProviderStreamError,
    StreampipeError,
)
from streampipe.models._transport import Timeout, TransportResponse

ERRORS: dict[type[Exception], tuple[type[StreampipeError], bool]] = {
    httpx.TimeoutException: (ModelTimeoutError, True),
    httpx.NetworkError: (ModelConnectionError, True),
    httpx.RemoteProtocolError: (ModelConnectionError, True),
    httpx.LocalProtocolError: (ModelConnectionError, False),
    httpx.ProtocolError: (ModelConnectionError, False),
    httpx.ProxyError: (ModelConnectionError, False),
    httpx.UnsupportedProtocol: (ConfigurationError, False),
    httpx.TransportError: (ModelConnectionError, False),
    httpx.DecodingError: (ProviderStreamError, False),
    httpx.TooManyRedirects: (ModelConnectionError, False),
    httpx.RequestError: (ModelConnectionError, False),
    httpx.HTTPStatusError: (ModelConnectionError, False),
    httpx.HTTPError: (ModelConnectionError, False),
    httpx.StreamError: (ProviderStreamError, False),
    httpx.InvalidURL: (ConfigurationError, False),
}
"""What each failure of httpx is to us, and whether asking again may help; subclasses follow."""

CAUGHT = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL)


def translated(error: Exception) -> StreampipeError:
    """An exception of httpx as one of ours."""
    for cls in type(error).__mro__:
        if cls in ERRORS:
            ours, retryable = ERRORS[cls]
            msg = f"{type(error).__name__}: {error}".rstrip(": ")
            if issubclass(ours, ModelError):
                return ours(msg, is_retryable=retryable)
            return ours(msg)
    raise error  # not one of CAUGHT: a mistake of ours


Client = httpx.AsyncClient


class HttpxTransport:
    """Streaming POSTs by an httpx client: the user's own, else one shared by the event loop."""

    def __init__(self, client: httpx.AsyncClient | None = None) -> None:
        """Use `client`, which stays the caller's to close."""
        self._client = client

    async def post(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        content: bytes,
        timeout: Timeout,
    ) -> TransportResponse:
        """See `Transport.post`."""
        client = self._client or await _shared_client()
        limits = httpx.Timeout(timeout.read, connect=timeout.connect)
        try:
            request = client.build_request(
                "POST", url, headers=dict(headers), content=content, timeout=limits
            )
            return _Response(await client.send(request, stream=True))
        except CAUGHT as error:
            raise translated(error) from error


class _Response:
    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers: Mapping[str, str] = {k.lower(): v for k, v in response.headers.items()}

    async def body(self) -> AsyncIterator[bytes]:
        try:
            async for data in self._response.aiter_bytes():
                yield data
        except CAUGHT as error:
            raise translated(error) from error

    async def aclose(self) -> None:
        await self._response.aclose()


_clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[httpx.AsyncClient, Any]] = (
    weakref.WeakKeyDictionary()
)


async def _shared_client() -> httpx.AsyncClient:
    """The event loop's own client: connections cannot move between loops."""
    loop = asyncio.get_running_loop()
    entry = _clients.get(loop)
    if entry is not None and not entry[0].is_closed:
        return entry[0]
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    client = httpx.AsyncClient(limits=limits)
    keeper = _kept(client)
    _clients[loop] = (client, keeper)
    await anext(keeper)
    return client


async def _kept(client: httpx.AsyncClient) -> AsyncGenerator[None, None]:
    """Closes the client with its loop, which closes the async generators that it has begun."""
    try:
        yield
    finally:
        await client.aclose()
