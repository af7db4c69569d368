"""The wire form, version 1, as bytes that were once written.

`wire-1.jsonl` is a promise to streams that lie in files and to clients in other languages: lines
are added to it, none is ever changed. A form that cannot keep it is version 2, with its own file.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from streampipe import chunks as kinds
from streampipe.chunks import (
    Chunk,
    DataChunk,
    FinishChunk,
    RawChunk,
    StepFinish,
    StepStart,
    TextDelta,
    ToolCall,
    TripwireData,
    Usage,
)
from streampipe.errors import WireError
from streampipe.wire import chunk_from_json, chunk_to_json

LINES = (Path(__file__).parent / "wire-1.jsonl").read_bytes().split(b"\n")[:-1]
FORMS: list[dict[str, Any]] = [json.loads(line) for line in LINES]
METADATA = {"openai": {"itemId": "item-1"}}
PAGE = (Path(__file__).parents[2] / "docs" / "wire.md").read_text(encoding="utf-8")
SHOWN: list[dict[str, Any]] = [
    json.loads(line)
    for block in re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]
CLASSES: dict[str, type[Chunk]] = {
    cls.type: cls
    for name in kinds.__all__
    if isinstance(cls := getattr(kinds, name), type) and issubclass(cls, Chunk) and cls is not Chunk
    if cls is not DataChunk
}


def label(line: bytes) -> str:
    """A line's number and type, to find it by."""
    return f"{LINES.index(line) + 1}-{json.loads(line)['type']}"


def camel(name: str) -> str:
    """A field's name as a key of the wire."""
    return re.sub("_(.)", lambda found: found[1].upper(), name)


def keys_of(cls: type) -> set[str]:
    """Every key that a class can have in its payload, those of objects in it after a dot."""
    hints = get_type_hints(cls)
    found: set[str] = set()
    for own in (f for f in fields(cls) if not f.kw_only):
        found.add(camel(own.name))
        for hint in (hints[own.name], *getattr(hints[own.name], "__args__", ())):
            if is_dataclass(hint) and isinstance(hint, type):
                found |= {f"{camel(own.name)}.{key}" for key in keys_of(hint)}
    return found


def keys_in(payload: dict[str, Any], nested: set[str]) -> set[str]:
    """The keys of a payload, in the form of `keys_of`."""
    inner = {
        f"{key}.{k}"
        for key, value in payload.items()
        if isinstance(value, dict)
        for k in value
        if f"{key}.{k}" in nested
    }
    return set(payload) | inner


@pytest.mark.parametrize("line", LINES, ids=label)
def test_a_line_is_read_as_its_class(line: bytes) -> None:
    """What was written once is still read, as the class of its type."""
    form = json.loads(line)
    cls = DataChunk if form["type"].startswith("data-") else CLASSES[form["type"]]
    chunk = chunk_from_json(line)
    assert type(chunk) is cls
    assert (chunk.type, chunk.run_id, chunk.from_) == (form["type"], form["runId"], form["from"])


@pytest.mark.parametrize("line", LINES, ids=label)
def test_a_line_is_written_as_it_was(line: bytes) -> None:
    """To the byte: neither a key nor the order of keys has changed."""
    assert chunk_to_json(chunk_from_json(line)) == line


def test_values_come_out_as_they_were_written() -> None:
    """A line is not only kept, it is understood: fields hold what the keys say."""
    chunks = [chunk_from_json(line) for line in LINES]
    rejected = TripwireData(
        "an address", retry=True, metadata={"rule": "pii"}, processor_id="guard"
    )
    for expected in (
        StepStart(1, 2, "message-1", run_id="run-1"),
        TextDelta("0", "hi", from_="USER"),
        ToolCall("call-2", "parcel", None, '{"order": ', run_id="run-1"),
        StepFinish("retry", tripwire=rejected, run_id="run-1"),
        FinishChunk("length", Usage(3, 4, 7, 2, 1), METADATA, "max_tokens", run_id="run-1"),
        DataChunk("data-nothing", run_id="run-1"),
    ):
        assert expected in chunks


@pytest.mark.parametrize("kind", CLASSES)
def test_the_file_has_every_key_of_every_type(kind: str) -> None:
    """A key that is new in the code has to come into the file with it; none may be gone."""
    own = [form["payload"] for form in FORMS if form["type"] == kind]
    assert own, f"add lines of {kind!r} to wire-1.jsonl"
    if CLASSES[kind] is not RawChunk:
        wanted = keys_of(CLASSES[kind])
        assert set().union(*(keys_in(payload, wanted) for payload in own)) == wanted


def test_the_file_has_every_origin() -> None:
    """`from` in all its values."""
    assert {form["from"] for form in FORMS} == {"AGENT", "USER", "SYSTEM", "WORKFLOW"}


def test_no_line_is_there_twice() -> None:
    """Each line is a case of its own."""
    assert len(set(LINES)) == len(LINES)


def test_the_page_shows_lines_of_the_file() -> None:
    """What `docs/wire.md` shows is what is promised, an example of every type at least."""
    assert not [form for form in SHOWN if form not in FORMS]
    assert {form["type"] for form in SHOWN} >= set(CLASSES)
    assert any(form["type"].startswith("data-") for form in SHOWN)


def test_the_page_names_the_class_of_every_type() -> None:
    """The headings of the page pair types and classes as the code does."""
    paired = dict(re.findall(r"^\| `([a-z-]+)` \| `(\w+)` \|", PAGE, re.MULTILINE))
    assert paired == {
        **{kind: cls.__name__ for kind, cls in CLASSES.items()},
        "data-": "DataChunk",
    }


@pytest.mark.parametrize("line", LINES, ids=label)
def test_a_line_with_a_foreign_key_is_refused(line: bytes) -> None:
    """A key that version 1 does not have is told by name, in every type."""
    form = {**json.loads(line), "zz": 1}
    with pytest.raises(WireError, match=f"^{form['type']}: unknown key 'zz'"):
        chunk_from_json(json.dumps(form))
