"""How models reach the network: open a streaming POST, iterate over bytes, close."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, fields
from typing import Protocol

from streampipe.errors import ConfigurationError

__all__ = ["Timeout", "Transport", "TransportResponse"]


@dataclass(slots=True, frozen=True)
class Timeout:
    """Limits in seconds; None waits for ever. Each has its own subclass of `ModelTimeoutError`.

    Attributes:
        connect: to reach the provider (`ConnectTimeoutError`).
        first_chunk: from asking to the first chunk of the answer (`FirstChunkTimeoutError`).
        between_chunks: from one chunk to the next (`ChunkTimeoutError`). Pings do not count, nor
            does the time that the consumer takes.
        total: the whole call, with its retries and pauses (`TotalTimeoutError`).

    Raises:
        ConfigurationError: a limit is not positive.
    """

    connect: float | None = 10.0
    first_chunk: float | None = 300.0
    between_chunks: float | None = 300.0
    total: float | None = None

    def __post_init__(self) -> None:
        """Refuse what is no limit."""
        for limit in fields(self):
            seconds = getattr(self, limit.name)
            if seconds is not None and not seconds > 0:
                msg = f"timeout must be a positive number of seconds, or None, not {seconds!r}"
                raise ConfigurationError(f"{limit.name}: {msg}")

    @classmethod
    def of(cls, seconds: float | None) -> Timeout:
        """One number for each wait; connecting never takes longer than by default.

        >>> Timeout.of(60.0)
        Timeout(connect=10.0, first_chunk=60.0, between_chunks=60.0, total=None)

        Raises:
            ConfigurationError: the number is not positive.
        """
        connect = None if seconds is None else min(10.0, seconds)
        return cls(connect, seconds, seconds)


class TransportResponse(Protocol):
    """An answer whose head has arrived."""

    @property
    def status(self) -> int:
        """HTTP status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Header fields, names in lower case."""
        ...

    def body(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes, decompressed.

        Raises:
            ModelError: the connection broke or timed out.
        """
        ...

    async def aclose(self) -> None:
        """Let go of the connection; a body that was not read to its end closes it."""
        ...


class Transport(Protocol):
    """Opens a streaming POST."""

    async def post(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        content: bytes,
        timeout: Timeout,  # noqa: ASYNC109 - it limits each wait, not the whole
    ) -> TransportResponse:
        """Send a request and wait for the head of its answer, whatever its status.

        Only `timeout.connect` is the transport's to keep; the caller cancels it for the rest.

        Raises:
            ConnectTimeoutError: no connection came about within `timeout.connect`.
            ModelError: there was no answer.
        """
        ...
