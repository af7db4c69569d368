"""JSON while it arrives: lines, and one value as it grows."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from streampipe.errors import ConfigurationError
from streampipe.text._json import JsonLines, PartialJson
from tests.text.cuttings import cut, cuttings, flat

scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner)
)
strings = st.text(st.sampled_from('a"\\{}[]\n'), max_size=6)
objects = st.dictionaries(strings, strings | st.lists(strings | values, max_size=3), max_size=3)
plain = st.text(st.characters(exclude_characters="{["), max_size=12)


@given(st.lists(values | st.sampled_from(["", " "]).map(lambda _: ...)), st.data())
def test_cuts_do_not_show_in_lines(records: list[Any], data: st.DataObject) -> None:
    """Each line's value, in order; blank lines are none, and the last needs no end."""
    lines = ["" if record is ... else json.dumps(record) for record in records]
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    pieces = data.draw(cut(end.join(lines) + data.draw(st.sampled_from(["", end]))))
    machine = JsonLines()
    out = [*flat(list(machine.feed(piece)) for piece in pieces), *machine.finish()]
    assert out == [record for record in records if record is not ...]
    assert machine.held == 0


@given(cuttings(st.text(st.sampled_from("1x\n"), max_size=20)))
def test_a_bad_line_hides_no_other(cutting: tuple[str, list[str]]) -> None:
    """Every bad line raises with its number; the others give their values all the same."""
    text, pieces = cutting
    machine, good, bad = JsonLines(), [], []
    for piece in [*pieces, None]:
        values_ = machine.feed(piece) if piece is not None else machine.finish()
        while True:
            try:
                for value in values_:
                    good.append(str(value))  # noqa: PERF401 - those before a failure count
                break
            except ValueError as error:
                bad.append(str(error).partition(" is no JSON:")[0])
                values_ = machine.feed("")
    lines = text.split("\n")
    assert good == [line for line in lines if line and "x" not in line]
    assert bad == [f"line {number}" for number, line in enumerate(lines, 1) if "x" in line]


@pytest.mark.parametrize("pieces", [["[1]\n[12345]\n"], ["[1]\n", "[12", "3456"]])
def test_a_line_too_long_is_refused(pieces: list[str]) -> None:
    """It is not kept, and the value before it has been given."""
    machine, out = JsonLines(max_hold=6), []
    with pytest.raises(ValueError, match=r"line 2 is longer than 6 characters; raise max_hold"):
        for piece in pieces:
            for value in machine.feed(piece):
                out.append(value)  # noqa: PERF402 - those before the failure count
    assert out == [[1]]


def test_lines_that_hold_nothing_are_refused() -> None:
    """There has to be room for one character."""
    with pytest.raises(ConfigurationError, match="JsonLines: max_hold is 0; give 1 or more"):
        JsonLines(max_hold=0)


@given(plain, objects | st.lists(values), st.text(max_size=12), st.data())
def test_the_value_is_found_in_the_text(
    before: str, value: Any, after: str, data: st.DataObject
) -> None:
    """Whatever stands around it, wherever it is cut; the newest partial value is the whole one."""
    text = before + json.dumps(value, ensure_ascii=data.draw(st.booleans())) + after
    partial = PartialJson()
    out = flat([partial.feed(piece) for piece in data.draw(cut(text))])
    assert partial.finish() == out[-1] == value
    assert all(one != other for one, other in pairwise(out))


@given(objects, st.data())
def test_values_only_grow(value: dict[str, Any], data: st.DataObject) -> None:
    """Each partial value is the beginning of the next one."""
    partial = PartialJson()
    out = flat([partial.feed(piece) for piece in data.draw(cut(json.dumps(value)))])
    assert all(is_beginning(one, other) for one, other in pairwise(out))


def is_beginning(one: Any, other: Any) -> bool:
    """Whether `one` is what may have been there of `other`."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(key in other and is_beginning(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) <= len(other) and all(map(is_beginning, one, other))
    if isinstance(one, str) and isinstance(other, str):
        return other.startswith(one)
    return str(other).startswith(str(one))


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize("length", [300, 10_000, 100_000])
def test_the_work_is_linear(monkeypatch: pytest.MonkeyPatch, size: int, length: int) -> None:
    """A long text is parsed 19 times at most, and some small beginnings of it."""
    parsed = 0

    def counting(text: str, **options: Any) -> Any:
        nonlocal parsed
        parsed += len(text)
        return from_json(text, **options)

    monkeypatch.setattr("streampipe.text._json.from_json", counting)
    text = json.dumps(["some words"] * (length // 14))
    partial = PartialJson()
    for begin in range(0, len(text), size):
        partial.feed(text[begin : begin + size])
    partial.finish()
    assert len(text) <= parsed <= 19 * len(text) + 256 * 257 // 2


def test_values_come_while_the_text_grows() -> None:
    """A long one is a sixteenth behind at most."""
    text = json.dumps({"text": "word " * 2_000})
    partial, seen = PartialJson(), 0
    for number, char in enumerate(text, 1):
        for value in partial.feed(char):
            seen = len(value.get("text", ""))
        assert seen >= number * 16 // 17 - 20


def test_a_small_value_comes_with_every_piece() -> None:
    """It is parsed each time: whatever is new in it is there at once."""
    partial = PartialJson()
    out = flat([partial.feed(char) for char in json.dumps({"text": "a" * 200})])
    assert [len(value["text"]) for value in out if value] == list(range(201))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no JSON object or array"),
        ("Sorry, no.", "holds no JSON object or array"),
        ('{"a": 1', "line 1 column 7"),
        ('{"a": }', "line 1 column 7"),
        ("[1,\n 2,]", "line 2 column 4"),
        ("[NaN]", "line 1 column 2"),
        ("[1}", "line 1 column 3"),
    ],
)
def test_what_is_no_json_is_told_at_the_end(text: str, message: str) -> None:
    """The message has the position in the value's text."""
    partial = PartialJson()
    for char in text:
        partial.feed(char)
    with pytest.raises(ValueError, match=message):
        partial.finish()
