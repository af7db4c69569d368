"""`SmoothStream`: text at an even pace."""

from __future__ import annotations

import streampipe.operators as ops
from streampipe.chunks import Chunk
from streampipe.operators._compose import Pipeline
from streampipe.operators._cut import By
from streampipe.operators._options import options_of
from streampipe.processors._options import Name, Seconds, checked_options

__all__ = ["SmoothStream"]


class SmoothStream(Pipeline[Chunk, Chunk]):
    """Sends the text in even pieces and at an even pace, however the model's own pieces come.

    It is `ops.smooth` by a name of its own, and an operator like that one: it keeps the model
    waiting while a piece is, so nothing piles up. A model that is slower than the pace is not
    slowed down. Put it last: what comes before it need not wait.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.testing import ScriptedModel
    >>> model = ScriptedModel([["on", "e two th", "ree"]])
    >>> agent = Agent(model=model, output_processors=[SmoothStream(0.001)])
    >>> async def main():
    ...     async with agent.stream("Count.") as run:
    ...         return [text async for text in run.text_stream]
    >>> asyncio.run(main())
    ['one ', 'two ', 'three']

    Attributes:
        id: what it goes by.
        delay: seconds from one piece to the next, at least.
        by: what a piece is.
    """

    @checked_options
    def __init__(
        self,
        delay: Seconds,
        by: By = "word",
        *,
        id: Name = "smooth-stream",  # noqa: A002 - named as the attribute
    ) -> None:
        """Say how fast, and in what pieces.

        Args:
            delay: seconds from one piece to the next, at least; above 0.
            by: "word", "line", "sentence" or "grapheme"; or a compiled pattern of what ends a
                piece. A piece of more than 200 characters leaves in several.
            id: what it goes by.

        Raises:
            ConfigurationError: `delay` is no finite number above 0, or `by` is none of these.
        """
        with options_of(type(self).__name__):
            super().__init__([ops.smooth(delay, by)], name=id)
        self.id = id
        self.delay = delay
        self.by = by

    def __repr__(self) -> str:
        """As it is written."""
        return f"SmoothStream({self.delay!r}, by={self.by!r})"
