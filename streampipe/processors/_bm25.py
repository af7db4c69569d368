"""BM25: which of some texts a few words are about."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence

import regex  # type: ignore[import-untyped]  # it ships no types

__all__ = ["Bm25", "terms_of"]

K1 = 1.2  # how much the second mention of a word adds to the first
B = 0.75  # how much a long text is held to have a word by chance
SHORTEST_PLURAL = 4  # letters: "gas" and "is" are none

# Between the words of a name: `get_weather`, `getWeather`, `HTTPServer`.
_SEAM = regex.compile(r"_|(?<=[\p{Ll}\p{N}])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})")
_WORD = regex.compile(r"\b(?=\w).+?\b", regex.WORD)


def terms_of(text: str) -> list[str]:
    """The words of a text, by Unicode's word boundaries; those of a name in it apart.

    Letters count in any case, and a plural in -s as its singular.

    >>> terms_of("getHTTPWeather_now: the FORECASTS of Straße 12")
    ['get', 'http', 'weather', 'now', 'the', 'forecast', 'of', 'strasse', '12']
    """
    plain = _SEAM.sub(" ", unicodedata.normalize("NFKC", text))
    return [_singular(word.casefold()) for word in _WORD.findall(plain)]


def _singular(word: str) -> str:
    is_plural = len(word) >= SHORTEST_PLURAL and word.endswith("s") and not word.endswith("ss")
    return word[:-1] if is_plural else word


class Bm25:
    """An index of texts, given as words.

    >>> index = Bm25([["send", "a", "letter"], ["send", "a", "parcel"], ["write", "a", "letter"]])
    >>> index.best(["write", "letter"], 2)
    [2, 0]
    """

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        """Count the words."""
        self._counts = [Counter(text) for text in texts]
        average = sum(map(len, texts)) / max(1, len(texts))
        self._norms = [K1 * (1 - B + B * len(text) / max(1.0, average)) for text in texts]
        having = Counter(word for counts in self._counts for word in counts)
        self._weights = {
            word: math.log(1 + (len(texts) - count + 0.5) / (count + 0.5))
            for word, count in having.items()
        }

    def best(self, words: Sequence[str], most: int) -> list[int]:
        """The places of the texts that the words are about, the best first.

        Of equal ones the first comes first; a text with none of the words is not among them.
        """
        asked = [word for word in dict.fromkeys(words) if word in self._weights]
        scores = [self._score(place, asked) for place in range(len(self._counts))]
        found = [place for place, score in enumerate(scores) if score > 0]
        return sorted(found, key=lambda place: -scores[place])[:most]

    def _score(self, place: int, words: Sequence[str]) -> float:
        counts, norm = self._counts[place], self._norms[place]
        return sum(
            self._weights[word] * counts[word] * (K1 + 1) / (counts[word] + norm) for word in words
        )
