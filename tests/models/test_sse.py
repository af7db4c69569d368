"""Event streams: bytes cut anywhere give the events that the standard says."""

from __future__ import annotations

import time

import httpx
import pytest
from httpx_sse import EventSource
from hypothesis import given
from hypothesis import strategies as st

from streampipe.errors import ProviderStreamError
from streampipe.models._http.sse import EventStream
from tests.models.streams import cut


def events(*pieces: bytes) -> list[str]:
    """The events of a stream that arrives in these pieces."""
    stream = EventStream()
    return [event for piece in pieces for event in stream.feed(piece)]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        pytest.param(b"data: a\n\n", ["a"], id="lf"),
        pytest.param(b"data: a\r\n\r\n", ["a"], id="crlf"),
        pytest.param(b"data: a\r\r", ["a"], id="cr"),
        pytest.param(b"data: a\r\n\rdata: b\n\r\n", ["a", "b"], id="mixed"),
        pytest.param(b"\xef\xbb\xbfdata: a\n\n", ["a"], id="byte order mark"),
        pytest.param(b"data: a\ndata: b\n\n", ["a\nb"], id="two lines of data"),
        pytest.param(b"data: a\ndata\ndata:\n\n", ["a\n\n"], id="empty lines of data"),
        pytest.param(b"data:a\n\n", ["a"], id="no space"),
        pytest.param(b"data:  a\n\n", [" a"], id="one space only belongs to the field"),
        pytest.param(b": ping\n\ndata: a\n: pong\n\n", ["a"], id="comments"),
        pytest.param(b"event: x\nid: 1\nretry: 9\ndata: a\n\n", ["a"], id="other fields"),
        pytest.param(b"event: x\n\n", [], id="no data"),
        pytest.param(b"data:\n\n", [], id="empty data"),
        pytest.param(b"data: a", [], id="an event without its end is none"),
        pytest.param(b"database: a\n\n", [], id="a longer name is another field"),
        pytest.param("data: a\u2028b\x0bc\x85d\n\n".encode(), ["a\u2028b\x0bc\x85d"], id="no ends"),
        pytest.param("data: grün 🌍\n\n".encode(), ["grün 🌍"], id="characters of several bytes"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_events_are_the_standards(stream: bytes, expected: list[str]) -> None:
    """Each rule of the format, in one piece, cut anywhere, and byte by byte."""
    assert events(stream) == expected
    assert events(*(stream[i : i + 1] for i in range(len(stream)))) == expected
    for place in range(len(stream)):
        assert events(stream[:place], stream[place:]) == expected


LINES = st.sampled_from(
    ["data: a", "data:", "data", "data: é🌍", ": c", "id: 1", "event: e", "", "", "\u2028", "x"],
)


@given(st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\r"]))), st.data())
def test_the_cut_does_not_matter(lines: list[tuple[str, str]], data: st.DataObject) -> None:
    """A stream of any lines, with any line ends, is read alike however it is cut."""
    stream = "".join(line + end for line, end in lines).encode()
    places = data.draw(st.lists(st.integers(0, len(stream))))
    assert events(*cut(stream, places)) == events(stream)


@given(st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\r"])), min_size=1))
def test_httpx_sse_reads_the_same(lines: list[tuple[str, str]]) -> None:
    """An independent reader agrees; it also reports events without data, which say nothing."""
    stream = "".join(line + end for line, end in lines).encode()
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=stream)
    judged = [event.data for event in EventSource(response).iter_sse() if event.data]
    assert events(stream) == judged


def test_a_bad_byte_is_an_error_and_hides_nothing() -> None:
    """Invalid UTF-8 is refused, never replaced; events before it have been given by then."""
    stream = EventStream().feed(b"data: good\n\ndata: \xff\n\n")
    assert next(stream) == "good"
    with pytest.raises(ProviderStreamError, match="not UTF-8"):
        next(stream)


def test_half_a_character_at_the_end_of_an_event_is_an_error() -> None:
    """A character cut by an event's end is not put together with the next event."""
    with pytest.raises(ProviderStreamError):
        events(b"data: \xc3\n\ndata: \xa9\n\n")


def test_a_line_may_come_in_many_pieces_at_no_extra_cost() -> None:
    """A line in ten times the pieces takes about ten times as long, not a hundred times."""

    def seconds(pieces: int) -> float:
        best = 9.0
        for _ in range(5):
            start = time.process_time()  # a busy machine does not count
            assert len(events(b"data: ", *[b"x" * 64] * pieces, b"\n\n")) == 1
            best = min(best, time.process_time() - start)
        return best

    assert seconds(50_000) < 50 * seconds(5_000)
