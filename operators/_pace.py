"""Operators on how text is cut and when its pieces leave: fewer and larger, or even and steady."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable
from typing import Any

from reactivex import Observable

from streampipe.chunks import Chunk, TextDelta
from streampipe.errors import ConfigurationError
from streampipe.operators._core import Emit, Flowable
from streampipe.operators._cut import By
from streampipe.operators._fuse import Opened, Stage, emit_all, fuse
from streampipe.operators._kinds import with_text
from streampipe.operators._operator import operator
from streampipe.operators._options import checked_count, checked_seconds
from streampipe.operators._text import Delta, text_stage
from streampipe.operators._time import arrives, beside, take
from streampipe.text import Splitter


class _Batch:
    """Pieces of one text part, side by side in the stream, that will leave as one."""

    def __init__(self, size: int | None) -> None:
        self.since: float | None = None  # when the first of them came, if there is one
        self._size = math.inf if size is None else size
        self._pieces: list[Delta] = []

    def add(self, chunk: Chunk, now: float = 0.0) -> list[Chunk]:
        """Take a chunk; give what leaves now."""
        if not isinstance(chunk, Delta):
            return [*self.flush(), chunk]
        left = [] if self._takes(chunk) else self.flush()
        if self.since is None:
            self.since = now
        self._pieces.append(chunk)
        return left + self.flush() if len(self._pieces) >= self._size else left

    def flush(self) -> list[Chunk]:
        """Give what is held, as one piece."""
        pieces, self._pieces, self.since = self._pieces, [], None
        if len(pieces) < 2:  # noqa: PLR2004 - nothing to join: the chunk that came may leave itself
            return list(pieces)
        return [with_text(pieces[0], "".join(piece.text for piece in pieces))]

    def _takes(self, chunk: Delta) -> bool:
        """Whether what is said of the pieces held is true of this one too."""
        return not self._pieces or _said_of(self._pieces[0]) == _said_of(chunk)


def _said_of(chunk: Delta) -> tuple[Any, ...]:
    return chunk.__class__, chunk.id, chunk.provider_metadata, chunk.run_id, chunk.from_


@operator
def batch(
    source: Observable[Chunk], size: int | None = None, *, max_wait: float | None = None
) -> Observable[Chunk]:
    """Join adjacent text-deltas, or reasoning-deltas, into fewer and larger ones.

    Only pieces of one id with equal provider metadata are joined, which then stands on the joined
    piece once. Any other chunk sends off what is held and passes at once, so the order never
    changes and nothing waits for text that may not come.

    Args:
        source: a stream of chunks.
        size: how many deltas are joined at most, at least 1.
        max_wait: how many seconds a delta is held at most, whether the source goes on or is silent.

    Returns:
        The chunks. What is held leaves when the source completes, and is dropped when it fails: a
        step that failed is void.

    Raises:
        ConfigurationError: neither option is given, `size` is below 1, or `max_wait` is no finite
            number above 0.
    """
    if size is None and max_wait is None:
        raise ConfigurationError("batch: give size, max_wait or both: nothing else ends a batch")
    if size is not None:
        checked_count("batch", "size", size)
    if max_wait is not None:
        return _timed_batch(source, size, checked_seconds("batch", "max_wait", max_wait))

    def open_(emit: Emit[Chunk], _stage: Stage) -> Opened:
        held = _Batch(size)
        return Opened(
            lambda chunk: emit_all(held.add(chunk), emit), lambda: emit_all(held.flush(), emit)
        )

    return fuse(source, Stage("batch", open_))


def _timed_batch(source: Observable[Chunk], size: int | None, max_wait: float) -> Flowable[Chunk]:
    async def run(emit: Emit[Chunk]) -> None:
        now = asyncio.get_running_loop().time
        held = _Batch(size)
        async with beside(source) as buffer:
            while True:
                due = None if held.since is None else held.since + max_wait
                there = await arrives(buffer, due)
                chunks = held.add(take(buffer), now()) if there else held.flush()
                wait = emit_all(chunks, emit)
                if wait is not None:
                    await wait
                if there is False:
                    return

    return Flowable(run)


@operator
def smooth(source: Observable[Chunk], delay: float, by: By = "word") -> Observable[Chunk]:
    """Text in even pieces (words, lines, or by a pattern) and at an even pace, however it came.

    Pieces are cut as `streampipe.text.Splitter` cuts, so the last word of what has come waits until
    the next shows that it is whole. Chunks of other kinds wait behind text that came before them.

    The source is kept waiting while a piece is: it is read at the pace of the pieces. A source that
    is slower than they are is not slowed down.

    Args:
        source: a stream of chunks.
        delay: seconds from one piece to the next, at least.
        by: "word", "grapheme", "line" or "sentence", or a compiled pattern of what ends a piece, as
            for `rechunk`. A piece of more than 200 characters leaves in several.

    Returns:
        The chunks: the same text, cut anew. What is held leaves at the text's end; when the source
        fails, it is dropped. It fails with `OperatorError` when a match of the pattern grows past
        4096 characters.

    Raises:
        ConfigurationError: `delay` is no finite number above 0, or `by` is none of these.
    """
    pause = checked_seconds("smooth", "delay", delay)
    cut = text_stage("smooth", lambda _: Splitter(by))

    def open_(emit: Emit[Chunk], _stage: Stage) -> Opened:
        now = asyncio.get_running_loop().time
        next_at = -math.inf

        def let_go(chunk: Chunk) -> Awaitable[Any] | None:
            nonlocal next_at
            next_at = now() + pause
            return emit(chunk)

        async def later(chunk: Chunk) -> None:
            await asyncio.sleep(next_at - now())
            wait = let_go(chunk)
            if wait is not None:
                await wait

        def push(chunk: Chunk) -> Awaitable[Any] | None:
            if not isinstance(chunk, TextDelta) or not chunk.text:
                return emit(chunk)
            return let_go(chunk) if now() >= next_at else later(chunk)

        return Opened(push)

    return fuse(fuse(source, cut), Stage("smooth", open_, is_async=True, goes_on=True))
