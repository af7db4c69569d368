"""Chunks as values: how they are built, compared and added; the wire is section 8's."""

from __future__ import annotations

import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.chunks import (
    AbortChunk,
    Chunk,
    DataChunk,
    ErrorChunk,
    ErrorData,
    FinishChunk,
    RawChunk,
    StepFinish,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    Usage,
    chunk_from_wire,
)
from streampipe.chunks._codec import camel
from streampipe.errors import WireError
from tests.contract.test_section_8_wire import CLASSES, JSON, PAYLOADS, TYPES, wire

COUNTS = st.integers(0, 10**9)
USAGES = st.builds(Usage, COUNTS, COUNTS, st.just(0), COUNTS, COUNTS)
WRONG: dict[Any, Any] = {str: 5, bool: "yes", int: 1.5, float: "1", dict: [], list: {}}


# --- usage ---------------------------------------------------------------------------------


def test_the_total_is_filled_in_when_only_parts_are_known() -> None:
    """A provider's own total stands; without one it is input and output."""
    assert Usage(3, 4).total_tokens == 7
    assert Usage(3, 4, 9).total_tokens == 9
    assert Usage().total_tokens == 0


@given(USAGES, USAGES, USAGES)
def test_usage_adds_up(a: Usage, b: Usage, c: Usage) -> None:
    """Addition is by field, has a zero, and does not depend on the order of calls."""
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + Usage() == a
    assert (a + b).total_tokens == a.total_tokens + b.total_tokens
    assert (a + b).cached_input_tokens == a.cached_input_tokens + b.cached_input_tokens


@given(USAGES, USAGES)
def test_adding_leaves_both_as_they_were(a: Usage, b: Usage) -> None:
    """A sum is a new object."""
    before = (repr(a), repr(b))
    assert a + b is not a
    assert (repr(a), repr(b)) == before


# --- building ------------------------------------------------------------------------------


def test_the_common_chunks_are_built_by_place() -> None:
    """What a chunk is about comes first, the envelope by keyword only."""
    assert TextDelta("0", "hi").text == "hi"
    assert ToolCall("c", "f", {"a": 1}).args == {"a": 1}
    assert ToolCallDelta("c", "{").args_text_delta == "{"
    assert ToolResult("c", "f", 7).result == 7
    assert FinishChunk("length").reason == "length"
    assert DataChunk("data-x", 1).data == 1
    chunk = AbortChunk("r", run_id="run-1", from_="USER")
    assert (chunk.run_id, chunk.from_) == ("run-1", "USER")


def test_the_type_is_the_class_s_and_no_field() -> None:
    """`type` cannot be given, but to a data chunk."""
    assert TextDelta.type == "text-delta"
    with pytest.raises(TypeError):
        TextDelta("0", "hi", type="text")  # type: ignore[call-arg]  # the fault
    assert DataChunk("data-x").type == "data-x"


@pytest.mark.parametrize("cls", [*CLASSES.values(), DataChunk])
def test_a_misspelt_attribute_is_refused(cls: type[Chunk]) -> None:
    """A hook that writes `chunk.txt` learns of it."""
    chunk = cls.__new__(cls)
    with pytest.raises(AttributeError):
        chunk.txt = "x"  # type: ignore[attr-defined]  # the fault


def test_chunks_are_compared_by_value() -> None:
    """Equal class and fields, the envelope's too."""
    assert TextDelta("0", "a") == TextDelta("0", "a")
    assert TextDelta("0", "a") != TextDelta("0", "b")
    assert TextDelta("0", "a") != TextDelta("0", "a", run_id="other")
    same_fields: list[Chunk] = [AbortChunk("x"), FinishChunk("x")]
    assert same_fields[0] != same_fields[1]


# --- reading -------------------------------------------------------------------------------


def plain(hint: Any) -> Any:
    """The class that a field's values are of; Any where it takes everything."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(arg for arg in typing.get_args(hint) if arg is not type(None))
    return typing.get_origin(hint) or hint


def typed_fields() -> list[tuple[str, str, Any]]:
    """Wire type, key and a value of a wrong type, for every field that is not of any type."""
    return [
        (kind, camel(field.name), 5 if is_dataclass(hint) else WRONG[hint])
        for kind, cls in CLASSES.items()
        for field in fields(cls)
        if not field.kw_only
        and cls is not RawChunk
        and (hint := plain(typing.get_type_hints(cls)[field.name])) is not Any
    ]


@pytest.mark.parametrize(("kind", "key", "value"), typed_fields())
def test_a_wrong_type_is_refused_by_name(kind: str, key: str, value: Any) -> None:
    """Of every typed field of every chunk, the error says chunk, key and value."""
    form = wire(kind, {**PAYLOADS[kind], key: value})
    with pytest.raises(WireError) as caught:
        chunk_from_wire(form)
    assert str(caught.value).startswith(f"{kind}.{key} must be ")
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind != "raw"])
def test_an_unknown_key_is_refused_by_name(kind: str) -> None:
    """Of every chunk, the error says which keys there are."""
    with pytest.raises(WireError, match=f"^{kind}: unknown key 'nope'; known:"):
        chunk_from_wire(wire(kind, {**PAYLOADS[kind], "nope": 1}))


@given(st.sampled_from(TYPES), JSON)
def test_any_payload_is_a_chunk_or_a_wire_error(kind: str, payload: Any) -> None:
    """No JSON value makes reading fail in another way."""
    try:
        chunk = chunk_from_wire(wire(kind, payload))
    except WireError as error:
        assert str(error).startswith(kind)  # noqa: PT017 - it may also be read
    else:
        assert type(chunk) is CLASSES[kind]


@given(JSON)
def test_any_json_is_a_chunk_or_a_wire_error(value: Any) -> None:
    """Nor does any JSON value in the place of a chunk."""
    try:
        chunk_from_wire(value)
    except WireError as error:
        assert "a chunk is an object" in str(error)  # noqa: PT017 - it may also be read


def test_errors_within_name_the_whole_way() -> None:
    """A key of a value inside the payload is named from the chunk on."""
    told = r"^error\.error: key 'name' is missing"
    with pytest.raises(WireError, match=told):
        chunk_from_wire(wire("error", {"error": {"message": "m"}}))
    with pytest.raises(WireError, match=r"^step-finish\.tripwire\.reason must be str"):
        chunk_from_wire(wire("step-finish", {"tripwire": {"reason": 1}}))


def test_null_is_what_is_left_out() -> None:
    """A key whose value is null is a key that is not there."""
    assert chunk_from_wire(wire("step-finish", {"usage": None, "reason": None})) == StepFinish(
        run_id="run-1"
    )
    read = chunk_from_wire(wire("error", {"error": {"name": "E", "message": "m", "hook": None}}))
    assert read == ErrorChunk(ErrorData("E", "m"), run_id="run-1")


def test_a_raw_chunk_read_again_is_not_wrapped_again() -> None:
    """An unknown chunk, written and read, stays one `raw` chunk."""
    first = chunk_from_wire(wire("hologram", {"z": 1}))
    again = chunk_from_wire(first.to_wire())
    assert isinstance(first, RawChunk)
    assert again == first


@pytest.mark.parametrize(
    "form",
    [
        {"type": "data-x", "transient": "no"},
        {"type": "response-metadata", "payload": {"headers": {"a": 1}}},
        {"type": "response-metadata", "payload": {"warnings": [3]}},
    ],
)
def test_wrong_types_inside_are_refused(form: dict[str, object]) -> None:
    """A string is no flag, and a list of texts holds texts."""
    with pytest.raises(WireError):
        chunk_from_wire(form)
