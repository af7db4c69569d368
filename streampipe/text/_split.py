"""Text cut where people would cut it: at graphemes, words, lines, sentences or separators."""

from __future__ import annotations

import re
from collections.abc import Callable

import regex  # type: ignore[import-untyped]  # it ships no types

from streampipe.errors import ConfigurationError
from streampipe.text._matcher import Matcher, Region
from streampipe.text._rule import Rule

__all__ = ["Splitter", "longest_whole"]

FindEnd = Callable[[str, int], tuple[int, int]]
"""Where the piece at the beginning of a window ends; 0 as long as more text might move that.

It is told up to where the window has been searched in vain, and says so for the next time: what is
held is not searched again with every piece.
"""

GRAPHEME = regex.compile(r"\X")

# Characters that never share a cluster with a neighbour of their kind, except CR with LF. Nearly
# all prose is made of them, and `re` is several times faster on it than `\X` is.
_PLAIN = re.compile(r"[\x00-\x0c\x0e-\u02ff\u2010-\u2027]*")
_PLAIN_WORD = re.compile(r"\S+\s*|\s+")
_SPACE = r"[\s\x1c-\x1f]"  # what `re` and `str` call white space; `regex` leaves four out
# Scripts that put no space between words, and their punctuation.
_UNSPACED = (
    r"[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Bopomofo}\p{Script=Thai}"
    r"\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}\u3001-\u303f\uff00-\uffef]"
)
_WORD = regex.compile(
    rf"(?:(?={_UNSPACED})\X|(?:(?!{_SPACE}|{_UNSPACED})\X)*+)(?:(?={_SPACE})\X)*+"
)
_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")  # a CR at the end may be half of a CRLF
_BLANK_LINE = re.compile(r"(?:\r\n|[\r\n])[^\S\r\n]*[\r\n]")
_MARKS = re.compile(
    r"(?P<marks>[.!?…。！？｡]+)(?P<closing>[\"'”’»›)\]}」』）】》*_`]*)(?P<space>\s*)"  # noqa: RUF001 - the marks of CJK
    r"|(?P<line_end>[\r\n]\s*)"
)
_UNSPACED_MARKS = frozenset("。！？｡")  # noqa: RUF001 - as above
_ABBREVIATION = re.compile(
    r"al|approx|ca|capt|cf|col|dr|fr|gen|gov|hon|lt|maj|messrs|mr|mrs|ms|mt|mx|pres|prof|rep|rev"
    r"|sen|sgt|sr|st|viz|vs"
    r"|[^\W\d_]|(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}"  # J. or U.S. or Ph.D.
)
_ABBREVIATION_BEFORE_DIGITS = re.compile(
    r"apr|art|aug|chap?|dec|ed|eq|feb|figs?|jan|jul|jun|mar|nos?|nov|oct|op|pp?|sect?|sept?|vols?"
)


class Splitter:
    """One text in pieces cut anywhere; out come pieces cut where the text itself says.

    Joined they are the whole text, and which ones come out does not depend on how it went in. A
    piece leaves as soon as nothing that may follow could change where it ends.

    * `"grapheme"`: what a reader takes for one character. Emoji sequences, flags, combining marks
      and CRLF stay whole.
    * `"word"`: a word with the white space behind it. Of scripts that put no space between words
      (Chinese, Japanese, Thai and others) each grapheme counts as one.
    * `"line"`: a line with its end: LF, CRLF or CR.
    * `"sentence"`: up to a full stop, exclamation or question mark with the closing quotes,
      brackets and white space behind it; or up to a blank line. No end is the point of a decimal,
      of a common abbreviation ("Dr.", "U.S."), of an initial or of a numbered line, nor one that a
      lower-case letter follows.
    * a compiled pattern: up to what it matches, the match included: the same matches as
      `re.finditer` has in the whole text. It has to be one that a `Rule` takes, since only such a
      match is certain before the whole text is there.

    No cut falls inside a grapheme, unless that is longer than `max_hold` itself or the pattern
    ends there.

    >>> words = Splitter("word")
    >>> words.feed("Hel"), words.feed("lo, wor"), words.feed("ld"), words.finish()
    ([], ['Hello, '], [], ['world'])
    """

    __slots__ = ("_find_end", "_held", "_matcher", "_max_hold", "_quick", "_searched")

    def __init__(self, by: str | re.Pattern[str], *, max_hold: int = 200) -> None:
        """Start before the first character.

        Args:
            by: what to cut into, or the pattern of what stands between.
            max_hold: the longest piece, in characters. A longer one is cut at the last grapheme
                boundary that leaves so many at most.

        Raises:
            ConfigurationError: `by` is none of these, a pattern that no `Rule` takes, or `max_hold`
                is no whole number above 0.
        """
        if not isinstance(max_hold, int) or isinstance(max_hold, bool) or max_hold < 1:
            msg = f"Splitter: max_hold is {max_hold!r}; give 1 or more characters"
            raise ConfigurationError(msg)
        self._matcher: Matcher | None = None
        self._find_end: FindEnd = _grapheme_end
        if isinstance(by, re.Pattern):
            self._matcher = Matcher([_separator(by)])
        elif isinstance(by, str) and by in _FIND_END:
            self._find_end = _FIND_END[by]
        else:
            msg = (
                f"Splitter: by is {by!r:.80}; give one of {_KINDS}, or a compiled pattern such as "
                r"re.compile(r'\n\n+')"
            )
            raise ConfigurationError(msg)
        self._max_hold = max_hold
        self._quick = _QUICK.get(self._find_end)
        self._held = ""
        self._searched = 0  # characters of it that no end is in

    @property
    def held(self) -> int:
        """How many characters wait for the end of their piece.

        At most `max_hold`; of a pattern's match that is not decided, 4096 more.
        """
        return len(self._held) + (self._matcher.held if self._matcher is not None else 0)

    def feed(self, piece: str) -> list[str]:
        """Take the next characters; give the pieces that are complete.

        Raises:
            MatchLimitError: the pattern's match is undecided after 4096 characters.
        """
        if self._matcher is not None:
            return self._separated(self._matcher.feed(piece))
        text = self._held + piece
        quick = self._quick
        short = len(text) <= self._max_hold or quick is list  # so that no piece is too long
        if quick is not None and text and short and _is_plain(text):
            pieces = quick(text)  # the usual case; the loop comes to the same
            self._held = pieces.pop()
            return pieces
        pieces = []
        start, searched = 0, self._searched
        while True:
            # No search looks further than this, and none looks back: that keeps the work linear,
            # and makes a piece depend on nothing but the text from its beginning.
            window = text[start : start + self._max_hold + 1]
            end, searched = self._find_end(window, searched)
            if not 0 < end <= self._max_hold:
                if len(window) <= self._max_hold:
                    self._held, self._searched = window, searched
                    return pieces
                end = longest_whole(window)
            pieces.append(window[:end])
            start, searched = start + end, 0

    def finish(self) -> list[str]:
        """The text has ended: give the last piece, if there is one.

        Raises:
            MatchLimitError: as `feed`.
        """
        pieces = self._separated(self._matcher.finish()) if self._matcher is not None else []
        if self._held:
            pieces.append(self._held)
            self._held, self._searched = "", 0
        return pieces

    def _separated(self, parts: list[str | Region]) -> list[str]:
        """The pieces that are complete with what the matcher lets go; each `Region` ends one."""
        pieces: list[str] = []
        for part in parts:
            text = self._held + (part if isinstance(part, str) else part.text)
            start = 0
            while len(text) - start > self._max_hold:
                end = start + longest_whole(text[start : start + self._max_hold + 1])
                pieces.append(text[start:end])
                start = end
            self._held = text[start:]
            if isinstance(part, Region):
                pieces.append(self._held)
                self._held = ""
        return pieces


def _separator(pattern: re.Pattern[str]) -> Rule:
    """What stands between pieces, as a rule.

    Raises:
        ConfigurationError: its matches cannot be told while the text is arriving.
    """
    try:
        return Rule("separator", pattern.pattern, flags=pattern.flags)
    except ConfigurationError as error:
        msg = f"Splitter: by is {pattern!r:.80}; {error}; or give one of {_KINDS}"
        raise ConfigurationError(msg) from error


def longest_whole(window: str) -> int:
    """How many characters to keep of a text that is one too long, so that no grapheme is cut.

    The last character of `window` is the one too many. A grapheme longer than all the room there is
    has to be cut.
    """
    last = len(window) - len(GRAPHEME.findall(window)[-1])
    return last or len(window) - 1


def _is_plain(text: str) -> bool:
    """Whether every character is a grapheme."""
    return ("\r" not in text) if text.isascii() else _PLAIN.fullmatch(text) is not None


def _grapheme_end(window: str, _searched: int = 0) -> tuple[int, int]:
    found = GRAPHEME.match(window)
    return (found.end() if found is not None and found.end() < len(window) else 0), 0


def _word_end(window: str, _searched: int) -> tuple[int, int]:
    found = (_PLAIN_WORD if _is_plain(window) else _WORD).match(window)
    return (found.end() if found is not None and found.end() < len(window) else 0), 0


def _line_end(window: str, searched: int) -> tuple[int, int]:
    found = _LINE_END.search(window, searched)
    if found is not None:
        return found.end(), 0
    return 0, len(window) - window.endswith("\r")


def _sentence_end(window: str, searched: int) -> tuple[int, int]:
    for found in _MARKS.finditer(window, searched):
        end = found.end()
        if end == len(window):
            return 0, found.start()
        if _ends_sentence(window, found) and _grapheme_end(window[end - 1 :]) == (1, 0):
            return end, 0
    return 0, len(window)


def _ends_sentence(window: str, found: re.Match[str]) -> bool:
    """Whether what `_MARKS` found ends a sentence; the character behind it is there."""
    marks, closing, space, line_end = found.groups()
    if line_end:
        return _BLANK_LINE.match(line_end) is not None
    if not _UNSPACED_MARKS.isdisjoint(marks):
        return True
    if not space:
        return False
    if _BLANK_LINE.search(space):
        return True
    following = window[found.end()]
    if following.islower() and (closing or marks[-1] in ".…"):
        return False
    return marks != "." or bool(closing) or not _is_abbreviated(window[: found.start()], following)


def _is_abbreviated(before: str, following: str) -> bool:
    """Whether a point belongs to the word `before` it, or to the number of a line."""
    words = before.rsplit(None, 1)
    if not words:
        return False
    word = words[-1].lstrip("([{\"'“‘*_`").lower()  # noqa: RUF001 - quotes as they are printed
    if word.isdecimal():
        return before.splitlines()[-1].strip() == word
    if _ABBREVIATION.fullmatch(word):
        return True
    return following.isdecimal() and _ABBREVIATION_BEFORE_DIGITS.fullmatch(word) is not None


_FIND_END: dict[str, FindEnd] = {
    "grapheme": _grapheme_end,
    "word": _word_end,
    "line": _line_end,
    "sentence": _sentence_end,
}
_QUICK: dict[FindEnd, Callable[[str], list[str]]] = {
    _grapheme_end: list,
    _word_end: _PLAIN_WORD.findall,
}
"""The pieces of a text that is no longer than one of them may be, and plain."""
_KINDS = ", ".join(map(repr, _FIND_END))
