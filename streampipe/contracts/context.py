"""What a run hands to its hooks and tools besides the conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Mapping
from typing import Any, Final, Protocol

__all__ = ["UNSET", "Done", "RequestContext", "StreamWriter"]


class _Unset:
    """Tells "not given" from None."""

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Final[Any] = _Unset()


class RequestContext(dict[str, Any]):
    """Values that travel with one call: user, tenant, feature flags.

    >>> RequestContext(user="u1").get("user")
    'u1'
    """

    def set(self, key: str, value: Any) -> None:
        """Set a value; the same as `context[key] = value`."""
        self[key] = value


class Done(Awaitable[None]):
    """An awaitable that is done, so that a call reads well with and without `await`."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        """Return at once."""
        yield from ()


class StreamWriter(Protocol):
    """Puts custom chunks into the stream."""

    def custom(
        self,
        chunk: Mapping[str, Any] | Any,
        *,
        message_id: str | None = None,
    ) -> Awaitable[None]:
        """Send a `data-*` chunk to the client, before the part being processed.

        Works with and without `await`. Later processors see it where `process_data_parts` is true;
        it is stored as a part of the assistant's message unless the chunk says `transient`.

        Args:
            chunk: a `DataChunk`, or `{"type": "data-…", "data": …, "transient"?: bool}`.
            message_id: id of the response message that the part belongs to; the newest if None.

        Raises:
            ValueError: the type does not start with `data-`.
        """
        ...
