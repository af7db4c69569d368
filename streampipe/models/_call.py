"""One call of a provider over HTTP, whatever its protocol: request, retries, events to chunks."""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from streampipe.chunks import Chunk
from streampipe.errors import (
    IncompleteStreamError,
    ModelConnectionError,
    ModelError,
    ModelStatusError,
    ModelTimeoutError,
    ProviderStreamError,
)
from streampipe.models._sse import EventStream
from streampipe.models._transport import Timeout, Transport, TransportResponse

RETRIED_STATUS = frozenset({408, 409, 429})  # besides 5xx
FIRST_WAIT = 0.5  # seconds; doubles with every attempt
LONGEST_WAIT = 30.0
DRAIN = 1.0  # seconds to read what comes after the protocol's end, so the connection can be reused


class Decoder(Protocol):
    """A protocol's events to chunks.

    Attributes:
        done: the protocol's end was seen.
    """

    done: bool

    def feed(self, event: str) -> list[Chunk]:
        """The chunks of one event.

        Raises:
            ProviderStreamError: the event is not what the protocol allows.
        """
        ...

    def end(self) -> list[Chunk]:
        """The last chunks, when the connection ended.

        Raises:
            IncompleteStreamError: it ended before the protocol's end.
        """
        ...


@dataclass(slots=True, kw_only=True)
class ProviderCall:
    """Where and how a provider is asked.

    Attributes:
        provider, model: for errors.
        url: the endpoint.
        headers: sent with every request; kept out of `repr`, since the key is among them.
        max_retries: how often a retryable failure is tried again before the first chunk.
    """

    provider: str
    model: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    transport: Transport = field(repr=False)
    max_retries: int
    timeout: Timeout

    async def stream(
        self,
        body: Mapping[str, Any],
        decoder: Callable[[], Decoder],
    ) -> AsyncGenerator[Chunk, None]:
        """Ask, and yield the answer's chunks; closing the generator closes the connection.

        Raises:
            ModelError: what went wrong, after the retries that could help.
        """
        content = orjson.dumps(body)
        attempt = 0
        while True:
            released = False
            try:
                async with aclosing(self._attempt(content, decoder())) as chunks:
                    async for chunk in chunks:
                        released = True
                        yield chunk
                return  # noqa: TRY300 - the loop is for attempts that failed
            except ModelError as error:
                if not error.provider:
                    error = _placed(error, self.provider, self.model)  # noqa: PLW2901
                if released or not error.is_retryable or attempt >= self.max_retries:
                    raise error from error.__cause__
                wait = _wait(attempt, getattr(error, "retry_after", None))
            attempt += 1
            await asyncio.sleep(wait)

    async def _attempt(self, content: bytes, decoder: Decoder) -> AsyncGenerator[Chunk, None]:
        response = await self.transport.post(
            self.url,
            headers={"content-type": "application/json", "accept": "text/event-stream", **self.headers},
            content=content,
            timeout=self.timeout,
        )
        try:
            await self._check_head(response)
            async with aclosing(response.body()) as body:  # type: ignore[type-var]  # a generator
                events = EventStream()
                async for data in body:
                    for event in events.feed(data):
                        for chunk in decoder.feed(event):
                            yield chunk
                    if decoder.done:
                        await _drain(body)
                        return
                for event in events.end():
                    for chunk in decoder.feed(event):
                        yield chunk
                for chunk in decoder.end():
                    yield chunk
        except ModelTimeoutError:
            raise
        except ModelConnectionError as error:
            msg = f"the connection broke in mid-stream ({error})"
            raise IncompleteStreamError(msg, is_retryable=True) from error
        finally:
            await response.aclose()

    async def _check_head(self, response: TransportResponse) -> None:
        if response.status != 200:  # noqa: PLR2004
            raise await self._status_error(response)
        kind = response.headers.get("content-type", "")
        if not kind.startswith(("text/event-stream", "application/octet-stream")):
            text = (await _read(response))[:200]
            msg = f"answered {kind or 'without a content type'} for an event stream: {text!r}"
            raise ProviderStreamError(msg)

    async def _status_error(self, response: TransportResponse) -> ModelStatusError:
        text = await _read(response)
        body: Any = text
        try:
            body = orjson.loads(text)
        except orjson.JSONDecodeError:
            pass  # a proxy's page: the text says what there is to say
        headers = response.headers
        return ModelStatusError(
            _message(body) or text[:200] or "no body",
            status=response.status,
            body=body,
            request_id=headers.get("x-request-id") or headers.get("request-id"),
            retry_after=retry_after(headers.get("retry-after")),
            provider=self.provider,
            model=self.model,
            is_retryable=response.status in RETRIED_STATUS or response.status >= 500,  # noqa: PLR2004
        )


def _placed(error: ModelError, provider: str, model: str) -> ModelError:
    """The error again, naming the model at fault: below, nobody knows it."""
    made = type(error)(str(error), provider=provider, model=model, is_retryable=error.is_retryable)
    made.__cause__ = error.__cause__
    return made


async def _read(response: TransportResponse, limit: int = 1 << 20) -> str:
    pieces: list[bytes] = []
    size = 0
    async for data in response.body():
        pieces.append(data)
        size += len(data)
        if size > limit:
            break
    return b"".join(pieces).decode(errors="replace")


async def _drain(body: AsyncIterator[bytes]) -> None:
    try:
        async with asyncio.timeout(DRAIN):
            async for _ in body:
                pass
    except (TimeoutError, ModelError):
        pass  # the answer is whole; only the connection's reuse is lost


def _message(body: Any) -> str:
    """What an error body says, in the shapes that providers use."""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, Mapping):
        return ""
    error = body.get("error", body)
    if isinstance(error, Mapping):
        error = error.get("message") or error.get("detail") or ""
    return str(error)


def retry_after(value: str | None, *, now: float | None = None) -> float | None:
    """A `Retry-After` header, in seconds or as a date, as seconds from now.

    >>> retry_after("2.5"), retry_after("soon"), retry_after(None)
    (2.5, None, None)
    """
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass  # then it is a date
    try:
        at = email.utils.parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError):
        return None
    return max(0.0, at - (time.time() if now is None else now))


def _wait(attempt: int, asked: float | None) -> float:
    """Seconds to wait: what the provider asked for, else exponential with full jitter."""
    if asked is not None:
        return min(asked, LONGEST_WAIT)
    return random.uniform(0, min(LONGEST_WAIT, FIRST_WAIT * 2**attempt))  # noqa: S311 - no secret
