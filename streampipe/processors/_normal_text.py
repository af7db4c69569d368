"""Text in one normal form, without what cannot be seen, while it arrives in pieces cut anywhere.

Three machines, one behind the other: the first takes invisible characters out, the second composes
what is left, the third closes up white space. Each holds back only what the next characters may
still change, and its joined output is what it would make of the whole text.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import regex  # type: ignore[import-untyped]  # it ships no types

__all__ = ["MOST_MARKS", "Form", "NormalText", "TextForm"]

Form = Literal["NFKC", "NFC"]

MOST_MARKS = 32
"""How many marks in a row are composed together; what follows them is a text of its own."""


@dataclass(frozen=True, slots=True)
class TextForm:
    """What is to be done to a text; see `UnicodeNormalizer`."""

    form: Form | None
    strip_control: bool
    strip_zero_width: bool
    strip_bidi: bool
    collapse_whitespace: bool
    keep_emoji: bool


# --- what cannot be seen ---------------------------------------------------------------------

_CONTROL = r"[\p{Cc}--\t\n\r]"
_BIDI = r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
# With the soft hyphen, fillers, variation selectors and tags: texts have been hidden in all these.
_ZERO_WIDTH = rf"[[\p{{Default_Ignorable_Code_Point}}\ufff9-\ufffb]--{_BIDI}]"

_TAG = r"[\U000e0030-\U000e0039\U000e0061-\U000e007a]"
_TAGS = rf"{_TAG}{{3,6}}\U000e007f"
_FLAG = r"(?<=\U0001f3f4)"
_KEYCAP = r"(?<=[0-9#*])\ufe0f"
# Of a picture that the form turns into letters, such as the sign for a trade mark, none is left.
_LETTERS = r"\u203c\u2049\u2122\u2139\u24c2\u3297\u3299\U0001f201-\U0001f251"

_Pattern = Any
"""A pattern of `regex`, which has no types."""


@cache
def _hidden(wanted: TextForm) -> tuple[_Pattern, _Pattern] | None:
    """What goes and, as a group, what stays although it could go; and what is not decided yet."""
    classes = [
        chars
        for chars, is_wanted in (
            (_CONTROL, wanted.strip_control),
            (_ZERO_WIDTH, wanted.strip_zero_width),
            (_BIDI, wanted.strip_bidi),
        )
        if is_wanted
    ]
    if not classes:
        return None
    goes = "|".join(classes)
    if not (wanted.strip_zero_width and wanted.keep_emoji):
        return regex.compile(rf"(?V1)()(?:{goes})+"), regex.compile(r"(?!)")
    letters = _LETTERS if wanted.form == "NFKC" else ""
    picture = rf"[\p{{Extended_Pictographic}}--[{letters}]]" if letters else r"\p{ExtPict}"
    joiner = rf"(?<={picture}[\ufe0e\ufe0f\p{{Emoji_Modifier}}]?)\u200d"
    stays = (
        rf"(?<={picture})[\ufe0e\ufe0f]",
        rf"{joiner}(?={picture})",
        rf"{_KEYCAP}(?=\u20e3)",
        rf"{_FLAG}{_TAGS}",
    )
    undecided = (joiner, _KEYCAP, rf"{_FLAG}{_TAG}{{1,6}}")
    return (
        regex.compile(rf"(?V1)({'|'.join(stays)})|(?:{goes})"),
        regex.compile(rf"(?V1)(?:{'|'.join(undecided)})\Z"),
    )


_BEHIND = 2  # characters that a look at what stands before needs


class _Visible:
    """A text without what cannot be seen."""

    def __init__(self, wanted: TextForm) -> None:
        self._patterns = _hidden(wanted)
        self._before = ""  # the end of what was read
        self._held = ""

    @property
    def held(self) -> int:
        return len(self._held)

    def feed(self, piece: str) -> str:
        if self._patterns is None:
            return piece
        if not self._held and piece.isascii() and piece.isprintable():  # nothing is hidden in it
            self._before = piece if len(piece) > 1 else (self._before + piece)[-_BEHIND:]
            return piece
        goes, undecided = self._patterns
        begin = len(self._before)
        text = self._before + self._held + piece
        found = undecided.search(text, begin)
        end = len(text) if found is None else found.start()
        self._held = text[end:]
        # The end is no end yet: what stands behind it can be seen, but is not looked at now.
        out: str = goes.sub(r"\1", text[:end], pos=begin)[begin:]
        self._before = text[max(end - _BEHIND, 0) : end]
        return out

    def finish(self) -> None:
        """The text ends here: what was to be decided joins nothing, so it goes."""
        self._held = ""


# --- composition -------------------------------------------------------------------------------

# What may be composed with a character before it: marks, and vowels and final consonants of Hangul,
# also those that NFKC makes of others. The last is a vowel that was added to Unicode later.
_JOINS = (
    r"[\p{M}\u1160-\u11ff\ud7b0-\ud7ff\u3133\u3135\u3136\u313a-\u313f\u314f-\u3163\uff9e\uff9f"
    r"\uffa3\uffa5\uffa6\uffaa-\uffaf\uffc2-\uffc7\uffca-\uffcf\uffd2-\uffd7\uffda-\uffdc"
    r"\U00016d67]"
)
_SEGMENT: _Pattern = regex.compile(
    rf"(?V1)[^{_JOINS}]++{_JOINS}{{0,{MOST_MARKS}}}+|{_JOINS}{{1,{MOST_MARKS}}}+"
)
_LAST: _Pattern = regex.compile(rf"(?V1)(?:[^{_JOINS}]{_JOINS}*+|{_JOINS}++)\Z")
_JOINED = regex.compile(r"(?V1)[[\p{L}\p{M}\p{S}\p{Nl}]--\p{Script=Han}]")
"""What a character that follows may be composed with."""
_PLAIN_JOINED = frozenset(char for char in map(chr, range(128)) if _JOINED.match(char))


class _Composed:
    """A text in a normal form."""

    def __init__(self, form: Form | None) -> None:
        self._form: Form | None = form
        self._held = ""

    @property
    def held(self) -> int:
        return len(self._held)

    def feed(self, piece: str) -> str:
        form = self._form
        if form is None or not piece:
            return piece
        text = self._held + piece
        if text.isascii():
            end = text[-1]
            if end in _PLAIN_JOINED:
                self._held = end
                return text[:-1]
            self._held = ""
            return text
        segments: list[str] = _SEGMENT.findall(text)
        last: str = _LAST.search(segments[-1])[0]  # a segment has one
        if len(last) == 1 and not _JOINED.match(last):
            last = ""
        segments[-1] = segments[-1].removesuffix(last)
        self._held = last
        return "".join([unicodedata.normalize(form, segment) for segment in segments])

    def finish(self) -> str:
        text, self._held = self._held, ""
        return text if self._form is None else unicodedata.normalize(self._form, text)


# --- white space -------------------------------------------------------------------------------

_SPACES = re.compile(r"(\s+)")
_BREAK = re.compile(r"\r\n|[\n\v\f\r\x85\u2028\u2029]")
_BLANKS = re.compile(r"[^\S\n\v\f\r\x85\u2028\u2029]+")
_PARAGRAPH = 2  # line breaks


class _Collapsed:
    """A text whose runs of white space are one space, one line break, or one blank line.

    What is certain of a run has left before it ends, so a long one is not held.
    """

    def __init__(self) -> None:
        self._run = ""  # of white space, no longer than it needs to be
        self._is_over = False  # a blank line has left: the rest of the run is nothing

    @property
    def held(self) -> int:
        return len(self._run)

    def feed(self, piece: str) -> str:
        out: list[str] = []
        for part in _SPACES.split(piece):
            if not part:
                continue
            if part.isspace():
                out.append(self._space(part))
            else:
                out += (self.finish(), part)
        return "".join(out)

    def _space(self, part: str) -> str:
        if self._is_over:
            return ""
        self._run = _BLANKS.sub(" ", self._run + part)
        if len(_BREAK.findall(self._run)) < _PARAGRAPH:
            return ""
        self._run, self._is_over = "", True
        return "\n\n"

    def finish(self) -> str:
        run, self._run = self._run, ""
        self._is_over = False
        if not run:
            return ""
        return "\n" if _BREAK.search(run) else " "


class NormalText:
    r"""A machine that does all that is wanted to a text.

    >>> text = NormalText(TextForm("NFKC", True, True, True, False, True))
    >>> text.feed("cafe"), text.held
    ('caf', 1)
    >>> text.feed("\u0301!") == "\xe9!", text.finish()
    (True, '')
    """

    def __init__(self, wanted: TextForm) -> None:
        """Stand before the text."""
        self._visible = _Visible(wanted)
        self._composed = _Composed(wanted.form)
        self._collapsed = _Collapsed() if wanted.collapse_whitespace else None

    @property
    def held(self) -> int:
        """How many characters may still change."""
        spaces = 0 if self._collapsed is None else self._collapsed.held
        return self._visible.held + self._composed.held + spaces

    def feed(self, piece: str) -> str:
        """Take a piece; give what nothing that follows can change."""
        text = self._composed.feed(self._visible.feed(piece))
        return text if self._collapsed is None else self._collapsed.feed(text)

    def finish(self) -> str:
        """The text ends here: give the rest."""
        self._visible.finish()
        text = self._composed.finish()
        if self._collapsed is None:
            return text
        return self._collapsed.feed(text) + self._collapsed.finish()
