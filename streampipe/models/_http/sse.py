"""Server-sent events from bytes, cut anywhere.

A few own lines rather than httpx-sse: what it exports reads a whole httpx response, and decodes
it with replacement characters where bytes are no UTF-8. Its line decoder is private.
"""

from __future__ import annotations

from collections.abc import Iterator

from streampipe.errors import ProviderStreamError

_BOM = b"\xef\xbb\xbf"


class EventStream:
    r"""Bytes in, the data of whole events out. Linear in the length of the stream.

    Lines are cut as bytes, since `bytes.splitlines` knows just the line ends of the standard (CR,
    LF, CRLF), where `str.splitlines` knows ten, and since a piece may end inside a character.
    Only `data` fields count here: no provider says anything in `event` that its data does not.

    >>> stream = EventStream()
    >>> list(stream.feed(b"data: on")), list(stream.feed(b"e\r\n\r\ndata: t"))
    ([], ['one'])
    """

    def __init__(self) -> None:
        """Start before the first byte."""
        self._rest: list[bytes] = []  # pieces of a line that has not ended
        self._data: list[bytes] = []  # data lines of an event that has not ended
        self._after_cr = False  # a LF at the head of the next piece is the second half of a CRLF
        self._begun = False

    def feed(self, data: bytes) -> Iterator[str]:
        """The data of the events that these bytes complete, each as soon as it is asked for.

        Lazy, so that a bad event does not hide the good ones before it. Run it to its end.

        Raises:
            ProviderStreamError: an event is not UTF-8.
        """
        for line in self._lines(data):
            if not line:
                if self._data:
                    text = _text(b"\n".join(self._data))
                    self._data.clear()
                    if text:
                        yield text
            elif line.startswith(b"data:"):
                self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line == b"data":
                self._data.append(b"")

    def _lines(self, data: bytes) -> list[bytes]:
        """The lines that these bytes complete, without their ends."""
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if b"\n" not in data and b"\r" not in data:
            if data:
                self._rest.append(data)
            return []
        if self._rest:
            data = b"".join((*self._rest, data))
            self._rest.clear()
        self._after_cr = data.endswith(b"\r")
        lines = data.splitlines()
        if not data.endswith((b"\n", b"\r")):
            self._rest.append(lines.pop())
        if not self._begun:
            self._begun = True
            lines[0] = lines[0].removeprefix(_BOM)
        return lines


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        msg = f"the stream is not UTF-8: {error}"
        raise ProviderStreamError(msg) from error
