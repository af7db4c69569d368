"""One call of a provider over HTTP, whatever its protocol: request, retries, bytes to chunks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol

import orjson
from pydantic_core import PydanticSerializationError, to_json

from streampipe.chunks import Chunk, ResponseMetadata
from streampipe.contracts.model import OnRetry
from streampipe.errors import (
    ConfigurationError,
    IncompleteStreamError,
    ModelConnectionError,
    ModelError,
    ModelTimeoutError,
    ProviderStreamError,
)
from streampipe.models._http.clock import Clock, pause_before
from streampipe.models._http.failures import provider_error, request_id_of
from streampipe.models._http.sse import EventStream
from streampipe.models._http.transport import Timeout, Transport, TransportResponse

DRAIN = 0.1  # seconds to wait for the body's end after the protocol's: then the connection lives on
EXCERPT = 200  # characters of an answer that is no stream that an error shows
LARGEST_ERROR = 1 << 20  # bytes of an error's body that are read


class Decoder(Protocol):
    """A protocol's events to chunks. Pure: it knows nothing of the network.

    Attributes:
        done: the protocol's end was seen.
    """

    done: bool

    def feed(self, event: str) -> list[Chunk]:
        """The chunks of one event.

        Raises:
            ProviderStreamError: the event is not what the protocol allows.
            ProviderError: the event is the provider's own error.
        """
        ...

    def end(self) -> list[Chunk]:
        """The last chunks, when the connection has ended.

        Raises:
            IncompleteStreamError: it ended before the protocol did.
        """
        ...


Prepare = Callable[[], tuple[Mapping[str, Any], Callable[[], Decoder]]]
"""Makes a request's body, and what makes a decoder for each attempt."""


@dataclass(slots=True, kw_only=True)
class ProviderCall:
    """Where and how a provider is asked.

    Attributes:
        provider, model: for errors.
        url: the endpoint.
        headers: sent with every request; the key is among them.
        secret: the key; empty without one.
        secrets: the key and what else is secret in the headers: cut out of what the provider says.
        transport: the network.
        max_retries: how often a retryable failure is tried again before the first chunk.
        timeout: limits of the call.
    """

    provider: str
    model: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    secret: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    transport: Transport = field(repr=False)
    max_retries: int
    timeout: Timeout

    async def stream(
        self, prepare: Prepare, on_retry: OnRetry | None = None
    ) -> AsyncGenerator[Chunk, None]:
        """Ask, and yield the answer's chunks. Closing the generator closes the connection.

        Only what fails before the first chunk is tried again: later, the consumer has seen a part.

        Args:
            prepare: makes the body and the decoders.
            on_retry: is told of each failure that is tried again, and of the pause before it.

        Raises:
            ModelError: what went wrong, after the retries that could help.
            ConfigurationError: the request cannot be sent as it is.
        """
        body, new_decoder = prepare()
        content = _json(body)
        failures = 0
        released = False
        clock = Clock(self.timeout)
        while True:
            try:
                response = await clock.within(self._open(content))
                try:
                    async with aclosing(self._chunks(response, new_decoder(), clock)) as chunks:
                        async for chunk in chunks:
                            released = True
                            yield chunk
                    return  # noqa: TRY300 - there is no attempt after one that ended well
                except ModelError as error:
                    error.request_id = error.request_id or request_id_of(response.headers)
                    raise
                finally:
                    await response.aclose()
            except ModelError as error:
                self._place(error)
                error.mid_stream = released
                if released or not error.is_retryable or failures >= self.max_retries:
                    raise
                pause = pause_before(failures, error.retry_after)
                if pause is None or pause >= clock.left():
                    raise
                if on_retry is not None:
                    on_retry(error, pause)
            await asyncio.sleep(pause)
            clock.begin()
            failures += 1

    async def _open(self, content: bytes) -> TransportResponse:
        """The answer's head, if it is the head of an event stream."""
        response = await self.transport.post(
            self.url,
            headers={
                "accept": "text/event-stream",
                "content-type": "application/json",
                **self.headers,
            },
            content=content,
            timeout=self.timeout,
        )
        try:
            kind = response.headers.get("content-type") or "text/event-stream"
            if response.status != HTTPStatus.OK:
                text = await self._text(response)
                body = _parsed(text)
                raise provider_error(
                    text if body is None else body,
                    status=response.status,
                    headers=response.headers,
                )
            if not kind.lower().startswith("text/event-stream"):
                text = await self._text(response)
                raise _no_stream(text, kind, response)
        except BaseException:
            await response.aclose()
            raise
        return response

    async def _chunks(
        self,
        response: TransportResponse,
        decoder: Decoder,
        clock: Clock,
    ) -> AsyncGenerator[Chunk, None]:
        """The answer's chunks.

        What the provider says of its answer waits for the answer itself: a refusal often comes
        right behind it, and until then all can be tried again.
        """
        events = EventStream()
        head: list[Chunk] | None = []
        async with aclosing(_unbroken(response)) as body:
            while (data := await clock.within(anext(body, None))) is not None:
                for event in events.feed(data):
                    try:
                        chunks = decoder.feed(event)
                    except ModelError as error:
                        self._quote_no_secret(error, event)
                        raise
                    if head is not None:
                        head += chunks
                        if all(isinstance(chunk, ResponseMetadata) for chunk in head):
                            continue
                        chunks, head = head, None
                    for chunk in chunks:
                        yield chunk
                    if chunks:
                        clock.heard()
                if decoder.done:
                    await _whole(_drain(body))
                    return
        for chunk in (head or []) + decoder.end():
            yield chunk

    async def _text(self, response: TransportResponse) -> str:
        """The body of an answer that is no stream, without our key, should it be quoted there."""
        pieces: list[bytes] = []
        size = 0
        try:
            async with aclosing(_unbroken(response)) as body:
                async for data in body:
                    pieces.append(data)
                    size += len(data)
                    if size > LARGEST_ERROR:
                        break
        except ModelError as error:
            pieces.append(f" [the rest is missing: {error}]".encode())
        # Replacing bad bytes is right here: it is a message for people, whatever was sent.
        return str(_masked(b"".join(pieces).decode(errors="replace"), self.secrets))

    def _quote_no_secret(self, error: ModelError, event: str) -> None:
        """An excerpt may hold a part of a secret, which no search for the whole would find."""
        if any(secret in event for secret in self.secrets):
            error.args = ("an event was refused that quotes a secret; so it is not shown",)
            error.body = None

    def _place(self, error: ModelError) -> None:
        """Name the model at fault, which nobody below knows, and keep the key to ourselves."""
        if not error.provider:
            error.provider, error.model = self.provider, self.model
            error.args = (_masked(f"{self.provider}/{self.model}: {error}", self.secrets),)
            error.body = _masked(error.body, self.secrets)


def _masked(value: Any, secrets: tuple[str, ...]) -> Any:
    """JSON values without secrets, wherever in them they stand."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "***")
        return value
    if isinstance(value, Mapping):
        return {_masked(name, secrets): _masked(inner, secrets) for name, inner in value.items()}
    return [_masked(inner, secrets) for inner in value] if isinstance(value, list) else value


def _no_stream(text: str, kind: str, response: TransportResponse) -> ModelError:
    """What a 200 is that is no event stream: the provider's own error, or a proxy's page."""
    body = _parsed(text)
    if isinstance(body, Mapping) and body.get("error"):
        return provider_error(body, headers=response.headers)
    msg = f"answered {kind!r} where an event stream was asked for: {text[:EXCERPT]!r}"
    told = request_id_of(response.headers)
    return ProviderStreamError(msg, status=response.status, body=text, request_id=told)


def _json(body: Mapping[str, Any]) -> bytes:
    """The body's bytes; by pydantic where a whole number has more than 64 bits."""
    try:
        return orjson.dumps(body)
    except TypeError:
        pass
    try:
        return to_json(body)
    except PydanticSerializationError as error:
        msg = f"the request is no JSON ({error}): check prompt, tools, settings, provider_options"
        raise ConfigurationError(msg) from error


async def _unbroken(response: TransportResponse) -> AsyncGenerator[bytes, None]:
    """The body; a connection that breaks within it makes the stream incomplete."""
    try:
        async with aclosing(response.body()) as body:
            async for data in body:
                yield data
    except ModelTimeoutError:
        raise
    except ModelConnectionError as error:
        msg = f"the connection broke in mid-stream ({error})"
        raise IncompleteStreamError(msg, is_retryable=True) from error


async def _whole(work: Coroutine[Any, Any, None]) -> None:
    """Do a short piece of work to its end, also when it is cancelled.

    A connection of httpcore that is given back and cancelled at that moment stays in its pool,
    neither free nor closed.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


async def _drain(body: AsyncIterator[bytes]) -> None:
    """Read to the body's end, so that the connection can serve the next call."""
    try:
        async with asyncio.timeout(DRAIN):
            async for _ in body:
                pass
    except (TimeoutError, ModelError):
        return  # the answer is whole; only the connection's reuse is lost


def _parsed(text: str) -> Any:
    """JSON text as values; None when it is none: a proxy's page, say."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
