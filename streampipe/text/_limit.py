"""A text that ends after so many characters or tokens."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from streampipe.errors import ConfigurationError
from streampipe.text._split import Splitter

__all__ = ["Limit"]

_CHARS_PER_TOKEN = 4  # of English prose, roughly, with the tokenizers in use
# Longer graphemes do not occur in writing. They may be cut, so that a text far from its limit need
# not be held for the sake of a grapheme without end.
_LONGEST_GRAPHEME = 32


class Limit:
    """Lets through as much of a text as fits, and nothing behind it.

    Without `count` the text is cut between graphemes, so no emoji is halved. Text is held near the
    limit only: the last grapheme, until it is known to be complete.

    With `count` the text is cut between words. Each is counted once, by itself and without the one
    space behind it, which tokenizers count with the next word; what fits is the longest beginning
    of the text whose words sum up to `tokens` at most. The last word is held until it is complete.

    >>> limit = Limit(chars=8)
    >>> limit.feed("Hello, "), limit.feed("world"), limit.done
    ('Hello,', ' w', True)
    """

    __slots__ = ("_ahead", "_cost", "_done", "_left", "_pending", "_sure", "_units")

    def __init__(
        self,
        *,
        chars: int | None = None,
        tokens: int | None = None,
        count: Callable[[str], int] | None = None,
    ) -> None:
        """Start before the first character.

        Args:
            chars: how many characters (code points) may leave.
            tokens: how many tokens may leave; a token is taken to be four characters.
            count: how many tokens a word has, instead; called once for each word.

        Raises:
            ConfigurationError: not exactly one of `chars` and `tokens` is given, it is below 1, or
                `count` comes without `tokens`.
        """
        given = [number for number in (chars, tokens) if number is not None]
        if len(given) != 1 or type(given[0]) is not int or given[0] < 1:
            msg = f"Limit: chars={chars!r}, tokens={tokens!r}; give one of them, 1 or more"
            raise ConfigurationError(msg)
        if count is not None and tokens is None:
            raise ConfigurationError("Limit: count counts tokens, so give tokens, not chars")
        self._cost = len if count is None else _cost_of_word(count)
        self._left = given[0] if chars or count else given[0] * _CHARS_PER_TOKEN
        by, max_hold = ("grapheme", _LONGEST_GRAPHEME) if count is None else ("word", 200)
        self._units = Splitter(by, max_hold=max_hold)
        # With so much left, what is incomplete will fit however it goes on.
        self._sure = _LONGEST_GRAPHEME if count is None else inf
        self._ahead = 0  # characters of the incomplete unit that have left already
        self._pending = ""
        self._done = False

    @property
    def done(self) -> bool:
        """Whether nothing more can leave."""
        return self._done

    @property
    def held(self) -> int:
        """How many characters wait until it is known whether they fit."""
        return len(self._pending)

    def feed(self, piece: str) -> str:
        """Take the next characters; give those that are known to fit.

        Raises:
            ValueError: `count` gave a number below 0.
            Exception: whatever `count` raises.
        """
        return "" if self._done else self._passed(self._pending + piece, self._units.feed(piece))

    def finish(self) -> str:
        """The text has ended: give what is held, if it fits.

        Raises:
            ValueError: `count` gave a number below 0.
            Exception: whatever `count` raises.
        """
        return "" if self._done else self._passed(self._pending, self._units.finish())

    def _passed(self, text: str, units: list[str]) -> str:
        """How much of `text` fits, now that these units are complete."""
        size = -self._ahead
        for unit in units:
            cost = self._cost(unit)
            if cost > self._left or not self._left:
                self._done = True
                break
            self._left -= cost
            size += len(unit)
            self._ahead = 0
        incomplete = self._units.held if self._cost is len else 0
        self._done = self._done or not self._left or incomplete > self._left
        if self._left >= self._sure:
            size, self._ahead = len(text), incomplete
        size = max(size, 0)
        self._pending = "" if self._done else text[size:]
        return text[:size]


def _cost_of_word(count: Callable[[str], int]) -> Callable[[str], int]:
    def cost(word: str) -> int:
        tokens = count(word.removesuffix(" "))
        if tokens < 0:
            raise ValueError(f"Limit: count gave {tokens} for {word!r}; it has to give 0 or more")
        return tokens

    return cost
