"""Server-sent events from bytes, cut anywhere."""

from __future__ import annotations

from collections.abc import Iterator

from httpx_sse import SSEDecoder

from streampipe.errors import ProviderStreamError

_BOM = b"\xef\xbb\xbf"


class EventStream:
    r"""Bytes in, the data of whole events out. Linear in the length of the stream.

    Lines are cut here, as bytes, since `bytes.splitlines` knows just the line ends of the
    standard (CR, LF, CRLF), where `str.splitlines` knows ten, and since a piece may end inside a
    character. What a line means is left to httpx-sse.

    >>> stream = EventStream()
    >>> list(stream.feed(b"data: on")), list(stream.feed(b"e\r\n\r\ndata: t"))
    ([], ['one'])
    """

    def __init__(self) -> None:
        """Start before the first byte."""
        self._decode = SSEDecoder().decode
        self._rest: list[bytes] = []  # pieces of a line that has not ended
        self._after_cr = False  # a LF at the head of the next piece is the second half of a CRLF
        self._begun = False

    def feed(self, data: bytes) -> Iterator[str]:
        """The data of the events that these bytes complete, each as soon as it is asked for.

        Lazy, so that a bad line does not hide the good events before it. Run it to its end.

        Raises:
            ProviderStreamError: a line is not UTF-8.
        """
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if b"\n" not in data and b"\r" not in data:
            if data:
                self._rest.append(data)
            return
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
        for line in lines:
            try:
                event = self._decode(line.decode())
            except UnicodeDecodeError as error:
                msg = f"the stream is not UTF-8: {error}"
                raise ProviderStreamError(msg) from error
            if event is not None and event.data:
                yield event.data
