"""Operators that cut a text elsewhere, end it, or take something out of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal

from reactivex import Observable

from streampipe.chunks import (
    Chunk,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
)
from streampipe.operators._core import Enough
from streampipe.operators._functions import check_function
from streampipe.operators._fuse import Stage, fuse
from streampipe.operators._operator import operator
from streampipe.operators._options import Part
from streampipe.operators._text import text_stage
from streampipe.text import Limit, Splitter, StopAt, TagSplitter

By = Literal["grapheme", "word", "line", "sentence"] | re.Pattern[str]
"""What a text is cut into, or the pattern of what stands between its pieces; see `Splitter`."""


@operator
def rechunk(
    source: Observable[Chunk],
    by: By = "word",
    *,
    max_hold: int = 200,
    parts: Iterable[Part] = ("text",),
) -> Observable[Chunk]:
    r"""Cut the text into words, lines or what a pattern ends, whatever pieces it came in.

    >>> import re
    >>> from streampipe import operators as ops
    >>> paragraphs = ops.rechunk(re.compile(r"\n\n+"))

    Args:
        source: a stream of chunks.
        by: "grapheme", "word", "line" or "sentence"; or a compiled pattern, within what
            `streampipe.text.Rule` accepts: a piece ends with what it matches.
        max_hold: characters after which a piece leaves even if its end has not come, cut between
            graphemes. Of a pattern's match that is not decided, up to 4096 more are held.
        parts: which parts are covered: "text", "reasoning".

    Returns:
        The chunks, a text-delta for every piece. The same text gives the same pieces. It fails with
        `OperatorError` when a match of the pattern grows past 4096 characters.

    Raises:
        ConfigurationError: `by`, `max_hold` or `parts` is not as described; such as a pattern that
            matches nothing at all, or one whose matches only the whole text could tell.
    """
    return fuse(source, text_stage("rechunk", lambda _: Splitter(by, max_hold=max_hold), parts))


def _when_done(machine: StopAt | Limit, stage: Stage) -> Enough | None:
    """End the stream once nothing more of a text can leave."""
    return Enough(stage.token) if machine.done else None


@operator
def stop_at(
    source: Observable[Chunk],
    *sequences: str,
    include: bool = False,
    close: bool = True,
) -> Observable[Chunk]:
    """Stop at the first of some texts, wherever it was cut.

    Args:
        source: a stream of chunks.
        sequences: the texts, taken literally.
        include: whether the stop sequence itself leaves.
        close: close the source and complete, as a model does at its own stop sequence. Without it
            the rest of the text part is dropped and everything else goes on: what the chunks of a
            whole run need, which have more to tell.

    Returns:
        The chunks before it.

    Raises:
        ConfigurationError: there is no sequence, or an empty one.
    """
    ending = _when_done if close else None
    made = text_stage(
        "stop_at", lambda _: StopAt(*sequences, include=include), ending=ending, lasting=True
    )
    return fuse(source, made)


@operator
def limit_text(
    source: Observable[Chunk],
    *,
    chars: int | None = None,
    tokens: int | None = None,
    count: Callable[[str], int] | None = None,
    close: bool = True,
) -> Observable[Chunk]:
    """Let so much of each text part through, cut between graphemes.

    Args:
        source: a stream of chunks.
        chars: how many characters.
        tokens: how many tokens, taken to be four characters each, or counted by `count`.
        count: how many tokens a word has.
        close: as for `stop_at`: close the source once nothing more can leave.

    Returns:
        The chunks. It fails with `OperatorError` when `count` raises.

    Raises:
        ConfigurationError: not exactly one of `chars` and `tokens` is given, or it is no whole
            number of at least 1; or `count` is no plain function.
    """
    if count is not None:
        check_function("limit_text", "count", count)
    ending = _when_done if close else None
    made = text_stage(
        "limit_text",
        lambda _: Limit(chars=chars, tokens=tokens, count=count),
        ending=ending,
        lasting=True,
    )
    return fuse(source, made)


class _Thoughts:
    """What a text says between tags, as reasoning parts of their own."""

    def __init__(self, text_id: str, tags: TagSplitter) -> None:
        self._text_id = text_id
        self._tags = tags
        self._count = 0
        self._is_open = False

    @property
    def held(self) -> int:
        return self._tags.held

    def feed(self, piece: str) -> list[str | Chunk]:
        return self._parts(self._tags.feed(piece))

    def finish(self) -> list[str | Chunk]:
        out = self._parts(self._tags.finish())
        if self._is_open:
            out.append(self._close())
        return out

    def _parts(self, pieces: list[tuple[bool, str]]) -> list[str | Chunk]:
        out: list[str | Chunk] = []
        for inside, piece in pieces:
            if inside and not self._is_open:
                self._count += 1
                self._is_open = True
                out.append(ReasoningStart(self._id))
            elif self._is_open and not inside:
                out.append(self._close())
            out.append(ReasoningDelta(self._id, piece) if inside else piece)
        return out

    def _close(self) -> Chunk:
        self._is_open = False
        return ReasoningEnd(self._id)

    @property
    def _id(self) -> str:
        return f"{self._text_id}-thought-{self._count}"


@operator
def split_tags(
    source: Observable[Chunk], *names: str, implicit_open: bool = False, trim: bool = False
) -> Observable[Chunk]:
    """Text between tags, such as `<think>...</think>`, becomes reasoning.

    Args:
        source: a stream of chunks.
        names: names of the tags, such as "think".
        implicit_open: the text begins inside, as with models whose prompt ends in the tag.
        trim: whether white space directly around a tag goes with it.

    Returns:
        The chunks: what stands inside as reasoning parts, without the tags. Between two of them
        there is text: a part is closed when text comes, or at the text's end.

    Raises:
        ConfigurationError: there is no name, or one that cannot stand in a tag.
    """

    def make(text_id: str) -> _Thoughts:
        return _Thoughts(text_id, TagSplitter(*names, implicit_open=implicit_open, trim=trim))

    return fuse(source, text_stage("split_tags", make, lasting=True))
