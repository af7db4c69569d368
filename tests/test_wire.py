"""A stream as JSON lines, both ways."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.chunks import Chunk, DataChunk, ObjectChunk, TextDelta, ToolCall
from streampipe.errors import WireError
from streampipe.wire import chunk_from_json, chunk_to_json
from tests.contract.test_section_8_wire import ANY_CHUNK


@given(st.lists(ANY_CHUNK, max_size=5))
def test_a_file_of_lines_is_the_stream(stream: list[Chunk]) -> None:
    """Written one a line and split at line breaks, the stream is what it was."""
    written = b"".join(chunk_to_json(chunk) + b"\n" for chunk in stream)
    assert [chunk_from_json(line) for line in written.split(b"\n")[:-1]] == stream


@given(ANY_CHUNK)
def test_any_json_library_reads_the_line(chunk: Chunk) -> None:
    """The line is plain JSON: another reader sees the wire form."""
    assert json.loads(chunk_to_json(chunk)) == chunk.to_wire()


@pytest.mark.parametrize("text", ["\n", "\r\n", "\u2028", "\x00", "é", "😀", '"', "\\"])
def test_text_of_any_kind_stays_on_its_line(text: str) -> None:
    """Line breaks and quotes in a chunk are escaped; nothing else is needed to be."""
    line = chunk_to_json(TextDelta("0", text))
    assert b"\n" not in line
    assert b"\r" not in line
    assert chunk_from_json(line) == TextDelta("0", text)


@pytest.mark.parametrize("line", [b' {"type": "start"} \n', '\t{"type":"start"}'])
def test_space_around_a_line_is_ignored(line: bytes | str) -> None:
    """A line may come with its line break."""
    assert chunk_from_json(line).type == "start"


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, lambda: 0, "\ud800", 2**64],
    ids=["object", "set", "function", "surrogate", "big"],
)
def test_what_is_no_json_is_refused_with_the_chunk_s_type(value: Any) -> None:
    """Wherever it stands in a chunk, the error says which chunk it is."""
    for chunk in (DataChunk("data-x", value), ObjectChunk([value])):
        with pytest.raises(WireError, match=f"^{chunk.type}: "):
            chunk_to_json(chunk)
    with pytest.raises(WireError, match=r"^tool-call: "):
        chunk_to_json(ToolCall("c", "f", {"a": value}))


@given(st.binary(max_size=20) | st.text(max_size=20))
def test_any_line_is_a_chunk_or_a_wire_error(line: bytes | str) -> None:
    """Noise is refused, and says whether it is no JSON or no chunk."""
    told = ""
    try:
        chunk_from_json(line)
    except WireError as error:
        told = str(error)
    assert told.startswith(("not JSON: ", "a chunk is an object"))


@given(ANY_CHUNK, st.data())
def test_a_cut_line_is_refused(chunk: Chunk, data: st.DataObject) -> None:
    """A line that broke off, as in a file that was being written, is no chunk."""
    line = chunk_to_json(chunk)
    cut = line[: data.draw(st.integers(0, len(line) - 1))]
    with pytest.raises(WireError, match=r"^not JSON"):
        chunk_from_json(cut)


def test_the_cause_is_chained() -> None:
    """Who debugs finds what the JSON library said."""
    with pytest.raises(WireError) as caught:
        chunk_from_json("{")
    assert isinstance(caught.value.__cause__, orjson.JSONDecodeError)
    with pytest.raises(WireError) as caught:
        chunk_to_json(DataChunk("data-x", object()))
    assert isinstance(caught.value.__cause__, TypeError)
