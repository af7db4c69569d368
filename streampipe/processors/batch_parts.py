"""`BatchParts`: fewer and larger pieces of text."""

from __future__ import annotations

import streampipe.operators as ops
from streampipe.chunks import Chunk
from streampipe.operators._compose import Pipeline
from streampipe.operators._options import options_of
from streampipe.processors._options import Count, Name, Seconds, checked_options

__all__ = ["BatchParts"]


class BatchParts(Pipeline[Chunk, Chunk]):
    """Joins adjacent text-deltas, or reasoning-deltas, so that the client gets fewer of them.

    It is `ops.batch` by a name of its own: what is held leaves after `max_wait` although the model
    is silent, which takes a timer, and a hook that is called chunk by chunk has none. So it is an
    operator, and stands in `output_processors` as any operator does: what it holds is sent before
    any other chunk and at the end of the answer, and dropped when the attempt is void.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.testing import ScriptedModel
    >>> model = ScriptedModel([["one", " two", " three"]])
    >>> agent = Agent(model=model, output_processors=[BatchParts(2)])
    >>> async def main():
    ...     async with agent.stream("Count.") as run:
    ...         return [text async for text in run.text_stream]
    >>> asyncio.run(main())
    ['one two', ' three']

    Attributes:
        id: what it goes by.
        size: how many deltas are joined at most; None: as many as come within `max_wait`.
        max_wait: how many seconds a delta is held at most; None: until the batch is full.
    """

    @checked_options
    def __init__(
        self,
        size: Count | None = None,
        *,
        max_wait: Seconds | None = None,
        id: Name = "batch-parts",  # noqa: A002 - named as the attribute
    ) -> None:
        """Say what ends a batch: at least one of the two.

        Args:
            size: how many deltas are joined at most, at least 1.
            max_wait: how many seconds a delta is held at most, above 0.
            id: what it goes by.

        Raises:
            ConfigurationError: neither is given, `size` is below 1, or `max_wait` is no finite
                number above 0.
        """
        with options_of(type(self).__name__):
            super().__init__([ops.batch(size, max_wait=max_wait)], name=id)
        self.id = id
        self.size = size
        self.max_wait = max_wait

    def __repr__(self) -> str:
        """As it is written."""
        return f"BatchParts(size={self.size!r}, max_wait={self.max_wait!r})"
