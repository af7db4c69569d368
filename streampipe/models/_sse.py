"""Server-sent events from bytes, cut anywhere.

Our own lines rather than httpx-sse: its public reader takes the response of one HTTP client, and
decodes bytes that are no UTF-8 into replacement characters, where a broken stream has to be an
error. Its reading of every well-formed stream is what the tests compare this one with.
"""

from __future__ import annotations

from streampipe.errors import ProviderStreamError

_BOM = b"\xef\xbb\xbf"


class EventStream:
    r"""Bytes in, the data of whole events out. Linear in the length of the stream.

    Lines are cut as bytes: a piece may end inside a character, and `bytes.splitlines` knows just
    the line ends of the standard (CR, LF, CRLF), where `str.splitlines` knows ten.

    >>> stream = EventStream()
    >>> stream.feed(b"data: on"), stream.feed(b"e\r"), stream.feed(b"\n\r\ndata: t")
    ([], [], ['one'])
    """

    def __init__(self) -> None:
        """Start before the first byte."""
        self._rest: list[bytes] = []  # pieces of a line that has not ended
        self._data: list[bytes] = []  # data lines of an event that has not ended
        self._begun = False

    def feed(self, data: bytes) -> list[str]:
        """The data of the events that these bytes complete.

        Raises:
            ProviderStreamError: an event is not UTF-8.
        """
        rest = self._rest
        if b"\n" not in data and b"\r" not in data and not (rest and rest[-1].endswith(b"\r")):
            if data:
                rest.append(data)
            return []
        if rest:
            rest.append(data)
            data = b"".join(rest)
            rest.clear()
        lines = data.splitlines(keepends=True)
        if not lines[-1].endswith(b"\n"):  # and a CR at the end may be half of a CRLF
            rest.append(lines.pop())
        return self._events(lines)

    def end(self) -> list[str]:
        """The data of an event whose last line ended in a CR that could have been half a CRLF."""
        rest = b"".join(self._rest)
        self._rest.clear()
        return self._events([rest]) if rest.endswith(b"\r") else []

    def _events(self, lines: list[bytes]) -> list[str]:
        if not self._begun and lines:
            self._begun = True
            lines[0] = lines[0].removeprefix(_BOM)
        events: list[str] = []
        pending = self._data
        for line in lines:
            if line.startswith(b"data:"):
                value = line[5:].rstrip(b"\r\n")
                pending.append(value.removeprefix(b" "))
            elif line in (b"\n", b"\r\n", b"\r"):
                if pending:
                    events.append(_text(pending[0] if len(pending) == 1 else b"\n".join(pending)))
                    pending.clear()
            elif line.rstrip(b"\r\n") == b"data":  # a field without a colon has an empty value
                pending.append(b"")
        return [event for event in events if event]


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        msg = f"the stream is not UTF-8: {error}"
        raise ProviderStreamError(msg) from error
