"""A text ends where a stop sequence begins."""

from __future__ import annotations

import re

from streampipe.errors import ConfigurationError

__all__ = ["StopAt"]


class StopAt:
    """Lets a text through up to the first stop sequence, even one that arrives in pieces.

    The first is the one that ends first; of several that end together, the longest. What may still
    become one is held: an end of the text that is the beginning of a stop sequence, never more.

    >>> stop = StopAt("END")
    >>> stop.feed("the E"), stop.feed("ve of E"), stop.feed("ND of"), stop.done
    ('the ', 'Eve of ', '', True)
    """

    __slots__ = ("_beginnings", "_done", "_first", "_include", "_longest", "_sequences", "_tail")

    def __init__(self, *sequences: str, include: bool = False) -> None:
        """Start before the first character.

        Args:
            sequences: the texts to stop at, taken literally.
            include: whether the stop sequence itself leaves. Then nothing is ever held.

        Raises:
            ConfigurationError: there is no stop sequence, or an empty one.
        """
        if not sequences or not all(isinstance(text, str) and text for text in sequences):
            msg = f"StopAt: the stop sequences are {sequences!r}; give one or more str, none empty"
            raise ConfigurationError(msg)
        self._sequences = sequences
        self._include = include
        self._first = re.compile("|".join({re.escape(text[0]) for text in sequences}))
        self._beginnings = {text[:size] for text in sequences for size in range(1, len(text))}
        self._longest = max(map(len, self._beginnings), default=0)
        self._tail = ""
        self._done = False

    @property
    def done(self) -> bool:
        """Whether a stop sequence was found: nothing more leaves."""
        return self._done

    @property
    def held(self) -> int:
        """How many characters wait to be told from a stop sequence."""
        return 0 if self._include else len(self._tail)

    def feed(self, piece: str) -> str:
        """Take the next characters; give what is known to stand before the stop."""
        if self._done:
            return ""
        tail = self._tail
        if not tail and not self._first.search(piece):
            return piece
        text = tail + piece
        found = [
            (begin + len(sequence), begin)
            for sequence in self._sequences
            if (begin := text.find(sequence)) >= 0
        ]
        if found:
            end, begin = min(found)
            self._done = True
            self._tail = ""
            return text[len(tail) : end] if self._include else text[:begin]
        self._tail = self._undecided(text)
        return piece if self._include else text[: len(text) - len(self._tail)]

    def _undecided(self, text: str) -> str:
        """The longest end of `text` that a stop sequence begins with."""
        for size in range(min(self._longest, len(text)), 0, -1):
            if text[-size:] in self._beginnings:
                return text[-size:]
        return ""

    def finish(self) -> str:
        """The text has ended: what is held was no stop sequence."""
        tail, self._tail = self._tail, ""
        return "" if self._include else tail
