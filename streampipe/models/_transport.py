"""How models reach the network: open a streaming POST, iterate over bytes, close."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Protocol

from streampipe.errors import ConfigurationError

__all__ = ["Timeout", "Transport", "TransportResponse"]


@dataclass(slots=True, frozen=True)
class Timeout:
    """Limits in seconds; None waits for ever.

    Attributes:
        connect: to reach the provider.
        read: between two pieces of the answer, the first one included.
    """

    connect: float | None = 10.0
    read: float | None = 300.0

    @classmethod
    def of(cls, seconds: float | None) -> Timeout:
        """One number for both; connecting never takes longer than by default.

        >>> Timeout.of(60.0)
        Timeout(connect=10.0, read=60.0)

        Raises:
            ConfigurationError: the number is not positive.
        """
        if seconds is None:
            return cls(None, None)
        if seconds <= 0:
            msg = f"timeout must be a positive number of seconds, or None, not {seconds!r}"
            raise ConfigurationError(msg)
        return cls(min(10.0, seconds), seconds)


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

        Raises:
            ModelError: there was no answer.
        """
        ...
