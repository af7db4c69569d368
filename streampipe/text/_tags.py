"""Reasoning that a model writes into its text, between tags."""

from __future__ import annotations

import re
from typing import NamedTuple

from streampipe.errors import ConfigurationError

__all__ = ["TagSplitter"]

_NAME = re.compile(r"[A-Za-z_][\w.:-]*")
_MOST_TRIMMED = 64  # characters of white space before a tag: as many have to be held


class _Mode(NamedTuple):
    """Where the text is, and the tags that mean something there."""

    inside: bool
    tags: tuple[str, ...]
    find: re.Pattern[str]

    @classmethod
    def of(cls, tags: list[str], *, inside: bool) -> _Mode:
        return cls(inside, tuple(tags), re.compile("|".join(map(re.escape, tags))))


class TagSplitter:
    """Tells what stands between tags from what does not, and takes the tags away.

    Tags are `<name>` and `</name>`, exactly so. They do not nest: inside, only the closing tag of
    the same name means anything, so whatever a model writes about tags stays text. A closing tag
    outside stays text too. Without a closing tag the rest is inside.

    >>> tags = TagSplitter("think")
    >>> tags.feed("<thi"), tags.feed("nk>Hm</think>Yes")
    ([], [(True, 'Hm'), (False, 'Yes')])
    """

    __slots__ = ("_after", "_held", "_mode", "_skip", "_trim")

    def __init__(self, *names: str, implicit_open: bool = False, trim: bool = False) -> None:
        """Start before the first character.

        Args:
            names: names of the tags, case-sensitive.
            implicit_open: the text begins inside, as with models whose prompt ends in the opening
                tag. Then the first closing tag of any name ends that; an opening tag before it is
                taken away.
            trim: whether white space directly before and behind a tag goes with it; before a tag
                64 characters of it at most.

        Raises:
            ConfigurationError: there is no name, or one that cannot stand in a tag.
        """
        if not names or not all(isinstance(n, str) and _NAME.fullmatch(n) for n in names):
            msg = (
                f"TagSplitter: the tags' names are {names!r}; give one or more of letters, digits "
                "and _ . : -, without < and >"
            )
            raise ConfigurationError(msg)
        opening = [f"<{name}>" for name in names]
        closing = [f"</{name}>" for name in names]
        outside = _Mode.of(opening, inside=False)
        self._after = dict.fromkeys(closing, outside)
        for tag, end in zip(opening, closing, strict=True):
            self._after[tag] = _Mode.of([end], inside=True)
        self._mode = _Mode.of(opening + closing, inside=True) if implicit_open else outside
        self._trim = trim
        self._skip = False  # white space behind a tag
        self._held = ""

    @property
    def inside(self) -> bool:
        """Whether what comes next is inside, as far as is known."""
        return self._mode.inside

    @property
    def held(self) -> int:
        """How many characters wait to be told from a tag, or from white space before one."""
        return len(self._held)

    def feed(self, piece: str) -> list[tuple[bool, str]]:
        """Take the next characters; give what is known, each with whether it is inside."""
        if "<" not in piece and not self._held and not self._trim:
            return [(self._mode.inside, piece)] if piece else []
        text = self._held + piece
        out: list[tuple[bool, str]] = []
        begin = 0
        while tag := self._mode.find.search(text, begin):
            self._give(self._trimmed(self._unskipped(text[begin : tag.start()])), out)
            self._mode = self._after[tag.group()]
            self._skip = self._trim
            begin = tag.end()
        rest = self._unskipped(text[begin:])
        decided = self._trimmed(rest[: self._tag_start(rest)])
        self._give(decided, out)
        self._held = rest[len(decided) :]
        return out

    def finish(self) -> list[tuple[bool, str]]:
        """The text has ended: what is held was no tag."""
        out: list[tuple[bool, str]] = []
        self._give(self._held, out)
        self._held = ""
        return out

    def _give(self, text: str, out: list[tuple[bool, str]]) -> None:
        if text:
            out.append((self._mode.inside, text))

    def _tag_start(self, text: str) -> int:
        """Where at the end of `text` a tag may have begun; its length, if none has."""
        start = text.rfind("<")
        if start >= 0 and any(tag.startswith(text[start:]) for tag in self._mode.tags):
            return start
        return len(text)

    def _unskipped(self, text: str) -> str:
        """`text` without the white space that follows a tag, which may go on in the next piece."""
        if self._skip:
            text = text.lstrip()
            self._skip = not text
        return text

    def _trimmed(self, text: str) -> str:
        """`text` without the white space that a tag behind it takes along."""
        if not self._trim:
            return text
        return text[: max(len(text.rstrip()), len(text) - _MOST_TRIMMED)]
