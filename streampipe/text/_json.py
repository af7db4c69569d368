"""JSON out of a text that is still arriving: values line by line, or one value as it grows."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Any, Literal

import orjson
from pydantic_core import from_json

from streampipe.errors import ConfigurationError
from streampipe.text._escapes import Escaped

__all__ = ["JsonLines", "PartialJson"]

_SMALL = 256  # characters; up to here a growing value is parsed with every piece
_GROWTH = 16  # from there on when it is a sixteenth longer: 17 times its length in all, at most
_BEGIN = re.compile(r"[\[{]")
_MARK = re.compile(r'["\[\]{}]|\\.?', re.DOTALL)  # a backslash and what it escapes are one


class JsonLines:
    r"""The values of JSON lines, whose text is cut anywhere.

    Blank lines are skipped. A line that is no JSON raises and hides neither the values before it
    nor those behind it: the next call goes on with the next line.

    >>> lines = JsonLines()
    >>> list(lines.feed('{"a": 1}\n{"a"')), list(lines.feed(": 2}")), list(lines.finish())
    ([{'a': 1}], [], [{'a': 2}])
    """

    __slots__ = ("_held", "_lines", "_max_hold", "_number", "_parts")

    def __init__(self, *, max_hold: int = 1_000_000) -> None:
        """Start before the first character.

        Args:
            max_hold: the longest line that is taken, in characters.

        Raises:
            ConfigurationError: `max_hold` is no whole number above 0.
        """
        if type(max_hold) is not int or max_hold < 1:
            msg = f"JsonLines: max_hold is {max_hold!r}; give 1 or more characters"
            raise ConfigurationError(msg)
        self._max_hold = max_hold
        self._lines: deque[str] = deque()  # complete, not parsed yet
        self._parts: list[str] = []  # of the line that is not complete
        self._held = 0
        self._number = 0

    @property
    def held(self) -> int:
        """How many characters there are of the line that is not complete."""
        return self._held

    def feed(self, piece: str) -> Iterator[Any]:
        """Take the next characters; give the values of the lines that are complete.

        Each line is parsed when its value is asked for. Run the iterator to its end.

        Raises:
            ValueError: a line is no JSON, or longer than `max_hold`; the message has its number.
        """
        first, *others = piece.split("\n")
        self._parts.append(first)
        self._held += len(first)
        if others:
            self._lines.append("".join(self._parts))
            *complete, last = others
            self._lines.extend(complete)
            self._parts = [last]
            self._held = len(last)
        return self._values()

    def finish(self) -> Iterator[Any]:
        """The text has ended: give the values of lines not asked for yet, and of the last one.

        Raises:
            ValueError: as `feed`.
        """
        self._lines.append("".join(self._parts))
        self._parts = []
        self._held = 0
        return self._values()

    def _values(self) -> Iterator[Any]:
        while self._lines:
            line = self._lines.popleft()
            self._number += 1
            self._refuse_long(len(line), self._number)
            if line.strip():
                try:
                    value = orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    raise ValueError(f"line {self._number} is no JSON: {error}") from error
                yield value
        self._refuse_long(self._held, self._number + 1)

    def _refuse_long(self, length: int, number: int) -> None:
        if length > self._max_hold:
            msg = f"line {number} is longer than {self._max_hold} characters; raise max_hold"
            raise ValueError(msg)


class PartialJson:
    """One JSON value as it grows, out of a text that is cut anywhere.

    What has not arrived is missing: a string or number may be shorter, an array may have fewer
    items. Only a value that differs from the one before is given. The work is linear in the text: a
    small text is parsed with every piece, a longer one whenever it has grown by a sixteenth, so a
    value may come a little later than its text. The text is kept until the end, since a value is
    made from all of it. The value is an object or array, and begins at the first bracket or brace:
    other text around it, such as a Markdown fence, is no part of it.

    >>> partial = PartialJson()
    >>> partial.feed('Here: {"name": "Ad'), partial.feed('a"} Good?'), partial.finish()
    ([{'name': 'Ad'}], [{'name': 'Ada'}], {'name': 'Ada'})
    """

    __slots__ = (
        "_depth",
        "_ended",
        "_escaped",
        "_in_string",
        "_length",
        "_next",
        "_parts",
        "_values",
        "_written",
    )

    def __init__(self) -> None:
        """Start before the first character."""
        self._written = Escaped()  # a string may hold line breaks as they are, as guards see them
        self._parts: list[str] = []
        self._length = 0
        self._next = 0  # the length to parse at
        self._values: list[Any] = []  # the newest value
        self._depth = 0  # of brackets and braces
        self._in_string = False
        self._escaped = False  # a backslash was the last character
        self._ended = False

    @property
    def held(self) -> int:
        """How many characters of the value's text are kept."""
        return self._length

    def feed(self, piece: str) -> list[Any]:
        """Take the next characters; give the value so far if it is worth it: one or none.

        A text that is no JSON gives no values; `finish` tells why.
        """
        piece = self._written.feed(self._inside(piece))
        if not piece:
            return []
        self._parts.append(piece)
        self._length += len(piece)
        if self._length > _SMALL and self._length < self._next and not self._ended:
            return []
        self._next = self._length + self._length // _GROWTH
        try:
            value = self._parse(partial=True)
        except ValueError:  # not valid yet; whether it ever gets so is for `finish` to say
            return []
        if [value] == self._values:
            return []
        self._values = [value]
        return [value]

    def finish(self) -> Any:
        """The text has ended: give the value, which has to be complete.

        Raises:
            ValueError: there is no value, or it is no JSON: the message has the position in it.
        """
        if not self._parts:
            raise ValueError("the text holds no JSON object or array")
        return self._parse(partial=False)

    def _parse(self, *, partial: bool) -> Any:
        text = "".join(self._parts)
        self._parts = [text]
        mode: Literal["trailing-strings"] | bool = "trailing-strings" if partial else False
        return from_json(text, allow_inf_nan=False, allow_partial=mode)

    def _inside(self, piece: str) -> str:
        """What of `piece` belongs to the value."""
        if self._ended or not piece:
            return ""
        begin = 0
        if not self._depth:
            found = _BEGIN.search(piece)
            if found is None:
                return ""
            begin = found.start()
        return piece[begin : self._end(piece, begin)]

    def _end(self, piece: str, begin: int) -> int:
        """Where in `piece` the value ends; the length of `piece`, if it goes on."""
        begin += self._escaped
        self._escaped = False
        for found in _MARK.finditer(piece, begin):
            mark = found.group()
            if mark == "\\":
                self._escaped = True
            elif mark == '"':
                self._in_string = not self._in_string
            elif self._in_string or mark[0] == "\\":
                continue
            elif mark in "[{":
                self._depth += 1
            else:
                self._depth -= 1
                if not self._depth:
                    self._ended = True
                    return found.end()
        return len(piece)
