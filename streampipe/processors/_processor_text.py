r"""Processors as a line of text, such as `redact:pii,block:secrets;retry=yes,batch:20ms`.

```text
line    = element { "," element }
element = name [ ":" argument ] { ";" option "=" value }
```

White space around each of these does not count. A backslash before a comma, a semicolon, a space or
another sign takes it as it is; `\n` is a line break and `\t` a tab.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from streampipe.errors import ConfigurationError

__all__ = ["Written", "parse", "said_of"]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_OPTION = re.compile(r"[a-z][a-z0-9_]*")
_ESCAPES = {"n": "\n", "t": "\t"}
_ESCAPED = {"\\": "\\\\", ",": "\\,", ";": "\\;", "\n": "\\n", "\t": "\\t"}
WIDEST = 60  # characters of a text that an error quotes


@dataclass(frozen=True, slots=True)
class Written:
    """A processor as it is written; its `str` is what `parse` reads.

    Attributes:
        name: what it is known by.
        argument: what stands behind the colon; None if there is no colon.
        options: by name, in order.
        place: where it begins in its line, from 1.
    """

    name: str
    argument: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    place: int = field(default=1, compare=False)

    @property
    def head(self) -> str:
        """The name and the argument, as they are written."""
        return self.name if self.argument is None else f"{self.name}:{_escaped(self.argument)}"

    def __str__(self) -> str:
        """The whole, in the shortest way to write it."""
        options = (f";{option}={_escaped(value)}" for option, value in self.options)
        return self.head + "".join(options)


class _Sign(NamedTuple):
    """A character of the line.

    Attributes:
        char: what it stands for.
        place: where it begins, from 1.
        is_plain: whether it came without a backslash.
    """

    char: str
    place: int
    is_plain: bool


def parse(line: str) -> list[Written]:
    r"""The processors that a line names, in order.

    >>> [str(written) for written in parse(r"redact:pii, stop:\n\n")]
    ['redact:pii', 'stop:\\n\\n']

    Raises:
        ConfigurationError: it is no such line; the message says where.
    """
    if not isinstance(line, str):
        msg = f"processors: must be a text such as 'redact:pii,batch:20ms', not {line!r:.80}"
        raise ConfigurationError(msg)
    return [_element(part, at) for part, at in _parted(_signs(line), ",", 1)]


@contextmanager
def said_of(text: str, place: int) -> Iterator[None]:
    """Within the block, what is refused says which part of the line it was.

    Yields:
        Nothing.

    Raises:
        ConfigurationError: what is raised within, with the place before it.
    """
    try:
        yield
    except ConfigurationError as error:
        shown = text if len(text) <= WIDEST else f"{text[:WIDEST]}..."
        msg = f"processors: at character {place}, {shown!r}: {error}"
        raise ConfigurationError(msg) from (error.__cause__ or error)


def _signs(line: str) -> list[_Sign]:
    """The line's characters, without the backslashes that make others plain text.

    Raises:
        ConfigurationError: a backslash stands before a letter that it has no meaning with, or last.
    """
    signs: list[_Sign] = []
    chars = iter(enumerate(line, 1))
    for place, char in chars:
        if char != "\\":
            signs.append(_Sign(char, place, is_plain=True))
            continue
        _, escaped = next(chars, (0, ""))
        if not escaped or (escaped.isalnum() and escaped not in _ESCAPES):
            with said_of(f"\\{escaped}", place):
                raise ConfigurationError(
                    r"a backslash stands before a sign that is to be text, or is \n or \t; "
                    r"for a backslash write \\"
                )
        signs.append(_Sign(_ESCAPES.get(escaped, escaped), place, is_plain=False))
    return signs


def _parted(
    signs: list[_Sign], separator: str, start: int, most: int = -1
) -> list[tuple[list[_Sign], int]]:
    """What stands between separators, without white space around, and where each part begins."""
    parts: list[tuple[list[_Sign], int]] = []
    part: list[_Sign] = []
    for sign in signs:
        if sign.char == separator and sign.is_plain and len(parts) != most:
            parts.append(_trimmed(part, start))
            part, start = [], sign.place + 1
        else:
            part.append(sign)
    return [*parts, _trimmed(part, start)]


def _trimmed(signs: list[_Sign], start: int) -> tuple[list[_Sign], int]:
    kept = [number for number, s in enumerate(signs) if not (s.is_plain and s.char.isspace())]
    if not kept:
        return [], start
    return signs[kept[0] : kept[-1] + 1], signs[kept[0]].place


def _element(signs: list[_Sign], place: int) -> Written:
    """One processor.

    Raises:
        ConfigurationError: the message says what is missing, and where.
    """
    (head, _), *options = _parted(signs, ";", place)
    with said_of(_text(signs), place):
        (name, _), *argument = _parted(head, ":", place, most=1)
        if not signs:
            raise ConfigurationError("a processor is missing here; write name[:argument]")
        if not _NAME.fullmatch(_text(name)):
            raise ConfigurationError("it has to begin with a name, such as redact:pii")
        if argument and not argument[0][0]:
            raise ConfigurationError("write an argument behind the colon, or leave the colon out")
    values: dict[str, str] = {}
    for option, at in options:
        with said_of(_text(option), at):
            key, value = _option(option)
            if key in values:
                raise ConfigurationError(f"the option {key} stands there twice")
            values[key] = value
    return Written(
        name=_text(name),
        argument=_text(argument[0][0]) if argument else None,
        options=tuple(values.items()),
        place=place,
    )


def _option(signs: list[_Sign]) -> tuple[str, str]:
    key, *value = (_text(part) for part, _ in _parted(signs, "=", 1, most=1))
    if not _OPTION.fullmatch(key) or not value or not value[0]:
        raise ConfigurationError("an option is written as name=value, behind a semicolon")
    return key, value[0]


def _text(signs: list[_Sign]) -> str:
    return "".join(sign.char for sign in signs)


def _escaped(text: str) -> str:
    """A text as it has to be written: what would part it escaped, and white space at its ends."""
    inner = text.strip()
    begins = text.index(inner)
    ends = begins + len(inner)
    return "".join(
        _ESCAPED.get(char, char if begins <= place < ends else f"\\{char}")
        for place, char in enumerate(text)
    )
