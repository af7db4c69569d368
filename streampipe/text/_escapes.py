r"""JSON text as it reads, for whoever looks for something in it, and back.

In JSON, `\n` glues a letter to the word behind it, and any character may be written as `\u0040`:
what looks for words would not see what stands there. Between the two machines here the characters
of a string are themselves, all but the quote and the backslash, so that strings end where they did.
"""

from __future__ import annotations

import re

__all__ = ["Escaped", "Unescaped", "readable", "written"]

_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/"}
_WRITTEN = {char: f"\\{letter}" for letter, char in _SHORT.items() if letter != "/"}

_HIGH = r"\\u[dD][89abAB][0-9a-fA-F]{2}"  # the first half of a character
_LOW = r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE = re.compile(rf"{_HIGH}{_LOW}|\\u[0-9a-fA-F]{{4}}|\\[^u]", re.DOTALL)
_UNFINISHED = re.compile(
    rf"\\(?:u[0-9a-fA-F]{{0,3}})?|{_HIGH}(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?"
)
_MARK = re.compile(r'["\\]')
_CONTROL = re.compile(r"[\x00-\x1f]")

_SPACE = "\ufeff \t\r\n"
_BEGINS = re.compile(r"(?:```\w*\s*)?[{\[]")
_MAY_BEGIN = re.compile(r"(?:`{1,2}|```\w*\s*)?")
_LONGEST_FENCE = 100  # characters before the document


class _Json:
    """A text that is JSON if it begins as an object or a list, in a Markdown fence or not."""

    def __init__(self) -> None:
        self._start: str | None = ""  # what was read while that was open
        self._is_json = False
        self._inside = False  # in a string

    def _is_other(self, piece: str) -> bool:
        """Whether the text is no JSON, as far as can be told."""
        if self._start is not None:
            self._start = (self._start + piece).lstrip(_SPACE)
            if _BEGINS.match(self._start):
                self._start, self._is_json = None, True
            elif not _MAY_BEGIN.fullmatch(self._start) or len(self._start) > _LONGEST_FENCE:
                self._start = None
        return not self._is_json


class Unescaped(_Json):
    r"""A machine that writes the characters of strings as they are.

    >>> text = Unescaped()
    >>> text.feed('{"to": "ada\\u00'), text.held, text.feed('40example.com"}')
    ('{"to": "ada', 4, '@example.com"}')
    """

    def __init__(self) -> None:
        """Stand before the text."""
        super().__init__()
        self._held = ""

    @property
    def held(self) -> int:
        """How many characters of an escape wait for the rest of it."""
        return len(self._held)

    def feed(self, piece: str) -> str:
        """Take a piece; give what may leave now."""
        if self._is_other(piece):
            return piece
        text = self._held + piece
        if "\\" not in text:
            self._inside ^= text.count('"') % 2 == 1
            return text
        return self._written(text)

    def _written(self, text: str) -> str:
        out: list[str] = []
        at = 0
        self._held = ""
        while (mark := _MARK.search(text, at)) is not None:
            start = mark.start()
            out.append(text[at:start])
            at = start + 1
            if mark[0] == '"':
                self._inside = not self._inside
            elif self._inside:
                if _UNFINISHED.fullmatch(text, start):
                    self._held = text[start:]
                    return "".join(out)
                escape = _ESCAPE.match(text, start)
                if escape is not None:
                    out.append(_character(escape[0]))
                    at = escape.end()
                    continue
            out.append(mark[0])
        out.append(text[at:])
        return "".join(out)

    def finish(self) -> str:
        """The text ends here: give the rest."""
        rest, self._held = self._held, ""
        return rest


def _character(escape: str) -> str:
    """What an escape stands for; itself where a string needs it, and for half a character."""
    if escape[1] != "u":
        return _SHORT.get(escape[1], escape)
    units = bytes.fromhex(escape.replace("\\u", ""))
    char = units.decode("utf-16-be", "surrogatepass")
    if "\ud800" <= char <= "\udfff":
        return escape
    return f"\\{char}" if char in '"\\' else char


class Escaped(_Json):
    r"""A machine that makes JSON of it again: what a string may not hold is escaped.

    >>> Escaped().feed('{\n"a": "one\ntwo"\n}')
    '{\n"a": "one\\ntwo"\n}'
    """

    held = 0  # nothing waits

    def __init__(self) -> None:
        """Stand before the text."""
        super().__init__()
        self._is_escaped = False  # the next character is

    def feed(self, piece: str) -> str:
        """Take a piece; give it as it has to be written."""
        if self._is_other(piece):
            return piece
        if not self._is_escaped and "\\" not in piece and not _CONTROL.search(piece):
            self._inside ^= piece.count('"') % 2 == 1
            return piece
        out: list[str] = []
        for char in piece:
            if self._is_escaped:
                self._is_escaped = False
            elif char == '"':
                self._inside = not self._inside
            elif self._inside and char == "\\":
                self._is_escaped = True
            elif self._inside and char < " ":
                out.append(_WRITTEN.get(char) or f"\\u{ord(char):04x}")
                continue
            out.append(char)
        return "".join(out)

    def finish(self) -> str:
        """The text ends here: there is no rest."""
        return ""


def readable(text: str) -> str:
    """A whole JSON text as it reads."""
    machine = Unescaped()
    return machine.feed(text) + machine.finish()


def written(text: str) -> str:
    """A whole JSON text that reads so, as it has to be written."""
    return Escaped().feed(text)
