"""Runs of words that a text shares with another, found while the text streams.

A suffix automaton of the other text's words knows every run of words in it. Fed with a text word by
word, it knows how long the run is that ends here: that costs the same for each word, however long
the two are.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Overlap", "WordRuns"]

# Scripts that do not part words by spaces: each character counts as a word.
_DENSE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
WIDEST = 200  # characters of a word, or between words; what is longer counts as several
_TOKEN = re.compile(rf"[{_DENSE}]|[^\W{_DENSE}]{{1,{WIDEST}}}|\W{{1,{WIDEST}}}")

_PLAIN_TOKEN = re.compile(rf"\w{{1,{WIDEST}}}|\W{{1,{WIDEST}}}")  # the same, and faster, in ASCII


@dataclass(slots=True)
class _State:
    length: int = 0
    link: int = -1
    next: dict[str, int] = field(default_factory=dict[str, int])


class WordRuns:
    """Every run of words in some texts.

    Words are compared without case, accents aside as they are; what stands between them does not
    count.

    Attributes:
        words: every word of the texts.
    """

    def __init__(self, texts: list[str]) -> None:
        """Take the texts in: linear in their length."""
        self._states = [_State()]
        for text in texts:
            last = 0
            for word in words_of(text):
                last = self._extended(last, word)
        self.words = self._states[0].next.keys()

    def _extended(self, last: int, word: str) -> int:
        """Add a word behind the run that ends in a state; returns the new end."""
        states = self._states
        known = states[last].next.get(word)
        if known is not None:
            if states[known].length == states[last].length + 1:
                return known
            return self._cloned(last, known, word)
        made = len(states)
        states.append(_State(states[last].length + 1))
        at = last
        while at >= 0 and word not in states[at].next:
            states[at].next[word] = made
            at = states[at].link
        if at < 0:
            states[made].link = 0
        else:
            target = states[at].next[word]
            fits = states[target].length == states[at].length + 1
            states[made].link = target if fits else self._cloned(at, target, word)
        return made

    def _cloned(self, at: int, target: int, word: str) -> int:
        """Split a state that stands for runs of several lengths."""
        states = self._states
        old = states[target]
        clone = len(states)
        states.append(_State(states[at].length + 1, old.link, dict(old.next)))
        old.link = clone
        while at >= 0 and states[at].next.get(word) == target:
            states[at].next[word] = clone
            at = states[at].link
        return clone

    def step(self, state: int, length: int, word: str) -> tuple[int, int]:
        """The state and length of the longest run that ends with this word."""
        states = self._states
        while state and word not in states[state].next:
            state = states[state].link
            length = states[state].length
        found = states[state].next.get(word)
        return (0, 0) if found is None else (found, length + 1)


def words_of(text: str) -> list[str]:
    """A text's words, as they are compared."""
    return [_plain(word) for word in _TOKEN.findall(text) if _is_word(word)]


def _is_word(token: str) -> bool:
    first = token[0]
    return first.isalnum() or first == "_"  # what `\w` stands for


def _plain(word: str) -> str:
    return word.lower() if word.isascii() else unicodedata.normalize("NFKC", word).casefold()


class Overlap:
    """A text without the runs of so many words, or more, that it shares with others.

    Held is the run of shared words that the text ends with: fewer than `least` words, and the word
    that may not be whole.

    Attributes:
        held: how many characters are held.
    """

    def __init__(
        self,
        runs: WordRuns,
        least: int,
        replacement: str | None,
        on_found: Callable[[], object],
        *,
        stops: bool = False,
    ) -> None:
        """Begin a text.

        Args:
            runs: what it is held against.
            least: how many words make a run.
            replacement: takes the place of each run; None leaves them where they are.
            on_found: is called at each run, when so many words of it have come.
            stops: whether nothing leaves any more once there was a run.
        """
        self.held = 0
        self._ended = False
        self._on_found = on_found
        self._runs = runs
        self._least = least
        self._replacement = replacement
        self._stops = stops
        self._rest = ""
        self._state, self._length = 0, 0
        self._tokens: deque[str] = deque()
        self._words = 0  # how many of the tokens are words
        self._goes_on = False  # whether what is held next to a run would be part of it

    def feed(self, piece: str) -> str:
        """What may leave now that this piece has come."""
        out: list[str] = []
        text = self._rest + piece
        tokens: list[str] = (_PLAIN_TOKEN if text.isascii() else _TOKEN).findall(text)
        if tokens:
            self._rest = tokens.pop()  # it may go on
            shared, held = self._runs.words, self._tokens
            for token in tokens:
                if held or self._goes_on or self._ended or _plain(token) in shared:
                    self._take(token, out)
                else:  # no run is open, and none begins
                    out.append(token)
        return self._left(out)

    def finish(self) -> str:
        """The rest of the text: it has ended."""
        out: list[str] = []
        for token in _TOKEN.findall(self._rest):
            self._take(token, out)
        self._rest = ""
        self._release(0, out)
        return self._left(out)

    def _left(self, out: list[str]) -> str:
        self.held = len(self._rest)
        if self._tokens:
            self.held += sum(map(len, self._tokens))
        return "".join(out)

    def _take(self, token: str, out: list[str]) -> None:
        if self._ended:
            return
        self._tokens.append(token)
        if not _is_word(token):
            if not self._words and not self._goes_on:
                self._release(0, out)
            return
        self._words += 1
        self._state, self._length = self._runs.step(self._state, self._length, _plain(token))
        if self._length < self._least:
            self._release(self._length, out)
            return
        if not self._goes_on:
            self._release(self._length, out)
            self._on_found()
            self._ended = self._stops
            out += [self._replacement] if self._replacement is not None else []
        if self._replacement is None:
            out += self._tokens
        self._tokens.clear()
        self._words = 0
        self._goes_on = True

    def _release(self, keep: int, out: list[str]) -> None:
        """Let go of all but the last words, which may still be part of a run."""
        tokens = self._tokens
        while tokens:
            is_word = _is_word(tokens[0])
            if self._words <= keep and (is_word or (self._goes_on and keep)):
                return
            out.append(tokens.popleft())
            if is_word:
                self._words -= 1
                self._goes_on = False
