"""Section 8 of the contract: the wire form of a chunk."""

from __future__ import annotations

import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe import chunks as kinds
from streampipe.chunks import Chunk, DataChunk, RawChunk, TextDelta, chunk_from_wire
from streampipe.errors import WireError
from streampipe.wire import chunk_from_json, chunk_to_json

Wire = dict[str, Any]

EXPORTED = [getattr(kinds, name) for name in kinds.__all__]
CLASSES: dict[str, type[Chunk]] = {
    cls.type: cls
    for cls in EXPORTED
    if isinstance(cls, type) and issubclass(cls, Chunk) and cls not in (Chunk, DataChunk)
}

USAGE = {
    "inputTokens": 3,
    "outputTokens": 4,
    "totalTokens": 7,
    "reasoningTokens": 2,
    "cachedInputTokens": 1,
}
TRIPWIRE = {"reason": "pii", "retry": True, "metadata": {"at": 3}, "processorId": "guard"}
PAYLOADS: dict[str, Wire] = {
    "start": {},
    "step-start": {"stepNumber": 1, "attempt": 2, "messageId": "m1"},
    "text-start": {"id": "0", "providerMetadata": {"openai": {"itemId": "i"}}},
    "text-delta": {"id": "0", "text": "héllo"},
    "text-end": {"id": "0"},
    "reasoning-start": {"id": "1", "signature": "s"},
    "reasoning-delta": {"id": "1", "text": "hm"},
    "reasoning-end": {"id": "1", "signature": "s"},
    "reasoning-signature": {"id": "1", "signature": "s"},
    "redacted-reasoning": {"id": "1", "data": "c2VjcmV0"},
    "source": {"id": "s1", "sourceType": "url", "title": "t", "url": "https://a.example"},
    "file": {"data": "aGk=", "mimeType": "text/plain", "filename": "hi.txt"},
    "tool-call-input-streaming-start": {"toolCallId": "c1", "toolName": "f"},
    "tool-call-delta": {"toolCallId": "c1", "argsTextDelta": '{"a"', "toolName": "f"},
    "tool-call-input-streaming-end": {"toolCallId": "c1"},
    "tool-call": {
        "toolCallId": "c1",
        "toolName": "f",
        "args": {"snake_key": 1},
        "providerExecuted": True,
    },
    "tool-result": {"toolCallId": "c1", "toolName": "f", "result": [1], "isError": False},
    "tool-error": {"toolCallId": "c1", "toolName": "f", "error": "no", "args": {}},
    "object": {"object": {"some_key": 1}},
    "object-result": {"object": [1, 2]},
    "raw": {"any_thing": [None]},
    "response-metadata": {
        "id": "r1",
        "modelId": "m",
        "createdAt": 1.5,
        "provider": "p",
        "headers": {"x-a": "b"},
        "warnings": ["w"],
    },
    "step-finish": {"reason": "retry", "usage": USAGE, "tripwire": TRIPWIRE},
    "finish": {"reason": "stop", "usage": USAGE, "rawReason": "end_turn"},
    "error": {
        "error": {
            "name": "ProcessorError",
            "message": "m",
            "processorId": "guard",
            "hook": "process_output_stream",
            "status": 503,
        },
    },
    "abort": {"reason": "user left"},
    "tripwire": TRIPWIRE,
}
"""An example of every payload of the contract, as a reader in another language would see it."""
TYPES = list(PAYLOADS)


def wire(kind: str, payload: Any, origin: str = "AGENT") -> Wire:
    """A whole wire form."""
    return {"type": kind, "runId": "run-1", "from": origin, "payload": payload}


# --- generated chunks ---------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    Any: JSON,
    str: st.text(max_size=8),
    bool: st.booleans(),
    int: st.integers(0, 2**53),
    float: st.floats(0, 2e9, allow_nan=False),
    dict: st.dictionaries(st.text(max_size=3), JSON, max_size=3),
    list: st.lists(st.text(max_size=5), max_size=3),
}
ORIGINS = st.sampled_from(["AGENT", "USER", "SYSTEM", "WORKFLOW"])


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field, by its type hint."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return st.one_of(*(values(arg) for arg in typing.get_args(hint)))
    if hint is type(None):
        return st.none()
    if hint == dict[str, str]:
        return st.dictionaries(PLAIN[str], PLAIN[str], max_size=3)
    kind = typing.get_origin(hint) or hint
    return built(kind) if is_dataclass(kind) else PLAIN[kind]


def built(cls: Any) -> st.SearchStrategy[Any]:
    """Instances of a dataclass with any values in its own fields."""
    hints = typing.get_type_hints(cls)
    own = {f.name: values(hints[f.name]) for f in fields(cls) if not f.kw_only}
    if issubclass(cls, Chunk):
        own |= {"run_id": PLAIN[str], "from_": ORIGINS}
    if cls is DataChunk:
        own["type"] = PLAIN[str].map("data-".__add__)
    return st.builds(cls, **own)


ANY_CHUNK = st.sampled_from([*CLASSES.values(), DataChunk]).flatmap(built)


# --- the envelope ---------------------------------------------------------------------------


def test_8_every_type_of_the_contract_has_a_class_and_no_other() -> None:
    """The types of the contract are exactly the types of the exported chunk classes."""
    assert sorted(CLASSES) == sorted(TYPES)


@pytest.mark.parametrize("kind", TYPES)
def test_8_each_type_reads_and_writes_its_wire_form(kind: str) -> None:
    """The example of each type is read as its class, and written as it was."""
    form = wire(kind, PAYLOADS[kind])
    chunk = chunk_from_wire(form)
    assert type(chunk) is CLASSES[kind]
    assert chunk.type == kind
    assert chunk.to_wire() == form


@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind != "raw"])
def test_8_fields_of_a_chunk_are_its_payloads_in_snake_case(kind: str) -> None:
    """A chunk is flat: each payload key is a field of its own, named in snake_case."""
    chunk = chunk_from_wire(wire(kind, PAYLOADS[kind]))
    own = {f.name for f in fields(chunk) if not f.kw_only}
    for key in PAYLOADS[kind]:
        assert "".join(f"_{c.lower()}" if c.isupper() else c for c in key) in own


@pytest.mark.parametrize("cls", [*CLASSES.values(), DataChunk])
def test_8_chunks_are_slotted(cls: type[Chunk]) -> None:
    """A misspelt attribute is an error, and a chunk carries no dict."""
    assert not any("__dict__" in vars(base) for base in cls.__mro__)


@given(ANY_CHUNK)
def test_8_every_chunk_survives_the_wire(chunk: Chunk) -> None:
    """Whatever its values: written and read, a chunk is what it was; as a JSON line too."""
    assert chunk_from_wire(chunk.to_wire()) == chunk
    line = chunk_to_json(chunk)
    assert b"\n" not in line
    assert chunk_from_json(line) == chunk
    assert chunk_from_json(line.decode()) == chunk


@given(ANY_CHUNK)
def test_8_keys_of_the_envelope(chunk: Chunk) -> None:
    """The envelope has these keys and no other, with `data` in the place of `payload` for data."""
    form = chunk.to_wire()
    if isinstance(chunk, DataChunk):
        assert set(form) - {"transient"} == {"type", "runId", "from", "data"}
        assert form.get("transient", True) is True
    else:
        assert set(form) == {"type", "runId", "from", "payload"}


@pytest.mark.parametrize("origin", ["AGENT", "USER", "SYSTEM", "WORKFLOW"])
def test_8_from_is_one_of_four(origin: str) -> None:
    """`from` is read into `from_`."""
    chunk = chunk_from_wire(wire("text-delta", {"id": "0", "text": "x"}, origin))
    assert chunk.from_ == origin
    assert chunk.run_id == "run-1"


def test_8_keys_inside_values_are_left_alone() -> None:
    """Only field names change their case: arguments and objects are the user's own."""
    args = {"snake_key": {"camelKey": 1}}
    chunk = chunk_from_wire(wire("tool-call", {"toolCallId": "c", "toolName": "f", "args": args}))
    assert isinstance(chunk, kinds.ToolCall)
    assert chunk.args == args
    assert chunk.to_wire()["payload"]["args"] == args


def test_8_what_is_none_is_left_out() -> None:
    """A field that is None has no key."""
    assert TextDelta("0", "x").to_wire()["payload"] == {"id": "0", "text": "x"}


def test_8_the_class_reads_as_the_function_does() -> None:
    """`Chunk.from_wire` and `chunk_from_wire` are one."""
    form = wire("abort", {"reason": "r"})
    assert Chunk.from_wire(form) == chunk_from_wire(form) == kinds.AbortChunk("r", run_id="run-1")


# --- data and unknown chunks ------------------------------------------------------------------


def test_8_data_chunks_have_data_and_say_if_they_are_transient() -> None:
    """`data` for payload, `transient` only where it is true."""
    kept = DataChunk("data-mood", {"a_b": 1}, run_id="run-1")
    form = {"type": "data-mood", "runId": "run-1", "from": "AGENT", "data": {"a_b": 1}}
    assert kept.to_wire() == form
    shown = DataChunk("data-mood", None, transient=True)
    assert shown.to_wire()["transient"] is True


@pytest.mark.parametrize("kind", ["hologram", "", "Text-Delta", "data"])
def test_8_an_unknown_type_is_kept_whole(kind: str) -> None:
    """What a newer version wrote is not lost: it is the payload of a `raw` chunk."""
    form = {**wire(kind, {"z": 1}), "extra": True}
    chunk = chunk_from_wire(form)
    assert isinstance(chunk, RawChunk)
    assert chunk.payload == form
    assert chunk.run_id == "run-1"


# --- bad input -----------------------------------------------------------------------------

BAD: dict[str, tuple[Any, str]] = {
    "no object": ([], "a chunk is an object"),
    "no type": ({"payload": {}}, "a string 'type'"),
    "type is no string": ({"type": 7}, "a string 'type'"),
    "foreign origin": (wire("start", {}, "MARS"), "'from' must be one of AGENT"),
    "run id is no string": ({"type": "start", "runId": 5}, "'runId' must be str"),
    "key beside the payload": ({**wire("start", {}), "hello": 1}, "start: unknown key 'hello'"),
    "data with a payload": ({"type": "data-x", "payload": {}}, "data-x: unknown key 'payload'"),
    "payload is no object": (wire("abort", [1]), "abort: the payload must be an object, not list"),
    "unknown payload key": (
        wire("text-delta", {"id": "0", "text": "x", "txt": "y"}),
        "text-delta: unknown key 'txt'; known: id, text",
    ),
    "snake_case key": (
        wire("tool-call", {"tool_call_id": "c", "toolName": "f"}),
        "unknown key 'tool_call_id'",
    ),
    "missing key": (wire("text-delta", {"id": "0"}), "text-delta: key 'text' is missing"),
    "null for a needed value": (wire("text-delta", {"id": "0", "text": None}), "'text' is missing"),
    "wrong type": (wire("text-delta", {"id": "0", "text": 5}), "text-delta.text must be str"),
    "true for a number": (wire("step-start", {"stepNumber": True}), "stepNumber must be int"),
    "wrong type within": (
        wire("finish", {"usage": {"inputTokens": "3"}}),
        "finish.usage.inputTokens must be int",
    ),
    "unknown key within": (wire("finish", {"usage": {"tokens": 3}}), "unknown key 'tokens'"),
}


@pytest.mark.parametrize("name", BAD)
def test_8_bad_wire_forms_are_refused_by_name(name: str) -> None:
    """The error names the chunk's type and the key at fault."""
    form, told = BAD[name]
    with pytest.raises(WireError) as caught:
        chunk_from_wire(form)
    assert told in str(caught.value)


@pytest.mark.parametrize("line", ["{", "", "nul", b"\xff"])
def test_8_a_line_that_is_no_json_is_refused(line: str | bytes) -> None:
    """The error says so."""
    with pytest.raises(WireError, match="not JSON"):
        chunk_from_json(line)


def test_8_a_value_that_is_no_json_is_refused_by_type() -> None:
    """A chunk that cannot be written says which type it is."""
    with pytest.raises(WireError, match=r"data-thing: .*object"):
        chunk_to_json(DataChunk("data-thing", object()))


def test_8_a_data_chunk_needs_its_prefix() -> None:
    """A custom chunk of another name cannot be built."""
    with pytest.raises(ValueError, match="must start with 'data-', not 'mood'"):
        DataChunk("mood")
