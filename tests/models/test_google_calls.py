"""Calls in Google's streams: whole ones, and ones whose arguments come piece by piece."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from streampipe.chunks import Chunk, ToolCall, ToolCallDelta, ToolCallInputStart, ToolResult
from streampipe.errors import ProviderStreamError
from streampipe.models._google.arguments import PartialArguments
from tests.models.test_google_decoder import call, chunks_of, event, piece, signed


def calls_of(chunks: list[Chunk]) -> list[ToolCall]:
    """The whole calls among chunks."""
    return [chunk for chunk in chunks if isinstance(chunk, ToolCall)]


def written(chunks: list[Chunk], call_id: str | None = None) -> str:
    """The arguments that the deltas of a call, or of the only one, come to."""
    deltas = [c for c in chunks if isinstance(c, ToolCallDelta)]
    return "".join(c.args_text_delta for c in deltas if call_id in (None, c.tool_call_id))


def test_calls_without_ids_get_some() -> None:
    """Several in one event, none with an id: each has one of its own, and its signature."""
    chunks = chunks_of(
        event(call("f", "s", args={"a": 1}), call("f", args={"a": 2}), call("g"), reason="STOP")
    )
    first, second, third = calls_of(chunks)
    assert len({first.tool_call_id, second.tool_call_id, third.tool_call_id, ""}) == 4
    assert [c.args for c in (first, second, third)] == [{"a": 1}, {"a": 2}, {}]
    assert [signed(c) for c in (first, second, third)] == [{"thoughtSignature": "s"}, None, None]
    assert [written(chunks, c.tool_call_id) for c in (first, second, third)] == [
        '{"a":1}',
        '{"a":2}',
        "{}",
    ]


def test_arguments_that_come_by_path() -> None:
    """They are text as they come, and whole at the end, whatever their kind."""
    chunks = chunks_of(
        event(call("f", "s", id="1", willContinue=True)),
        event(piece("$.to[0].name", "An", more=True)),
        event(piece("$.to[0].name", 'n "B"', more=True), piece("$.to[0].name", "")),
        event(piece("$.to[0].age", numberValue=7)),
        event(piece("$.to[1]", boolValue=False)),
        event(piece("$['a.b']", nullValue="NULL_VALUE")),
        event(piece("$['\\\\\\'\"']", boolValue=True)),
        event(piece('$["\\u00e9\\n"]', "x")),
        event(call(), reason="STOP"),
    )
    (made,) = calls_of(chunks)
    wanted = {"to": [{"name": 'Ann "B"', "age": 7}, False], "a.b": None, "\\'\"": True, "é\n": "x"}
    assert (made.args, signed(made)) == (wanted, {"thoughtSignature": "s"})
    assert orjson.loads(written(chunks)) == wanted
    deltas = [c.args_text_delta for c in chunks if isinstance(c, ToolCallDelta)]
    assert deltas[0] == '{"to":[{"name":"An'
    assert all(deltas)


def test_a_call_that_nobody_ends() -> None:
    """The next call ends it, and so does the end of the answer."""
    chunks = chunks_of(
        event(call("f", willContinue=True), piece("$.a", "x", more=True)),
        event(call("f", willContinue=True), piece("$.a", "y", more=True)),
        event({"text": ""}, reason="STOP"),
    )
    assert [c.args for c in calls_of(chunks)] == [{"a": "x"}, {"a": "y"}]


def test_the_end_of_a_call_that_has_ended_is_nothing() -> None:
    """Its last piece said so already; an empty call behind it begins none."""
    last = {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}]}}
    chunks = chunks_of(event(call("f", willContinue=True), last, call(), reason="STOP"))
    assert [c.args for c in calls_of(chunks)] == [{"a": "x"}]


def test_a_call_that_names_itself_again_is_the_same() -> None:
    """With the same id and name, it goes on."""
    again = {"functionCall": {"id": "1", "name": "f", "args": {"b": 2}}}
    chunks = chunks_of(
        event(call("f", id="1", willContinue=True), piece("$.a", "x"), again, reason="STOP")
    )
    assert [c.args for c in calls_of(chunks)] == [{"a": "x", "b": 2}]


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "MALFORMED_FUNCTION_CALL", "SAFETY"])
def test_half_a_call_is_not_run(reason: str) -> None:
    """Cut off in its arguments, a call has none; what came of them stands as text."""
    chunks = chunks_of(
        event(call("rm", willContinue=True)),
        event(piece("$.path", "/a", more=True), reason=reason),
    )
    (made,) = calls_of(chunks)
    assert (made.args, made.args_text) == (None, '{"path":"/a')


def test_pieces_out_of_order_are_not_told_wrongly() -> None:
    """Text cannot be taken back: it stops where the document's order does; the value is whole."""
    chunks = chunks_of(
        event(call("f", willContinue=True)),
        event(piece("$.a.x", "1", more=True)),
        event(piece("$.b", "2"), piece("$.a.x", "3"), piece("$.a.y", "4"), piece("$.c", "5")),
        event(call(), reason="STOP"),
    )
    (made,) = calls_of(chunks)
    assert made.args == {"a": {"x": "13", "y": "4"}, "b": "2", "c": "5"}
    assert written(chunks) == '{"a":{"x":"1"},"b":"2"'


LEAVES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5)
TREES = st.dictionaries(
    st.text(max_size=3),
    st.recursive(
        LEAVES,
        lambda inner: (
            st.lists(inner, min_size=1, max_size=3)
            | st.dictionaries(st.text(max_size=3), inner, min_size=1, max_size=3)
        ),
        max_leaves=6,
    ),
    min_size=1,
    max_size=3,
)


def places(value: Any, path: str = "$") -> list[tuple[str, Any]]:
    """The leaves of a value, each with its path."""
    if isinstance(value, dict):
        keyed = [(f"{path}[{orjson.dumps(key).decode()}]", v) for key, v in value.items()]
    elif isinstance(value, list):
        keyed = [(f"{path}[{index}]", v) for index, v in enumerate(value)]
    else:
        return [(path, value)]
    return [place for inner, v in keyed for place in places(v, inner)]


def as_pieces(path: str, value: Any) -> list[dict[str, Any]]:
    """The pieces of a leaf: texts a letter each."""
    if isinstance(value, str):
        letters = [{"jsonPath": path, "stringValue": c, "willContinue": True} for c in value]
        return [*letters, {"jsonPath": path, "stringValue": ""}]
    if value is None:
        return [{"jsonPath": path, "nullValue": None}]
    return [{"jsonPath": path, "boolValue" if isinstance(value, bool) else "numberValue": value}]


@given(TREES)
def test_any_arguments_by_path(tree: dict[str, Any]) -> None:
    """Pieces in a document's order come to the value, and so does the text."""
    arguments = PartialArguments()
    pieces = [made for path, leaf in places(tree) for made in as_pieces(path, leaf)]
    text = "".join([arguments.add(made) for made in pieces]) + arguments.end()
    assert arguments.value == tree
    assert orjson.loads(text) == tree


@given(st.dictionaries(st.text(max_size=2), LEAVES, max_size=4), st.randoms(use_true_random=False))
def test_any_order_of_pieces_comes_to_the_value(tree: dict[str, Any], random: Any) -> None:
    """Values that are written side by side are put together; each keeps its own order."""
    waiting = [as_pieces(path, leaf) for path, leaf in places({"root": tree}) if path != "$"]
    arguments = PartialArguments()
    text = ""
    while waiting:
        chosen = random.choice(waiting)
        text += arguments.add(chosen.pop(0))
        waiting = [pieces for pieces in waiting if pieces]
    text += arguments.end()
    assert arguments.value == ({"root": tree} if tree else {})
    assert is_begun(from_json(text, allow_partial="trailing-strings"), arguments.value)


def is_begun(part: Any, whole: Any) -> bool:
    """Whether a value is another one, as far as it goes."""
    if isinstance(part, dict):
        return all(name in whole and is_begun(part[name], whole[name]) for name in part)
    return bool(whole.startswith(part)) if isinstance(part, str) else part == whole


NO_PATHS = ["$", "", "a", "$.a[", "$..a", "$[0]", "$.", "$.a[1]", "$" + ".a" * 101, "$['\\x']"]


@pytest.mark.parametrize(
    "paths",
    [*([path] for path in NO_PATHS), ["$.a", "$.a.b"], ["$.a[0]", "$.a.b"], ["$.a.b", "$.a[0]"]],
)
def test_a_path_that_leads_nowhere_is_refused(paths: list[str]) -> None:
    """The error names it: no path, not in an object, past the end of a list, too deep."""
    with pytest.raises(ProviderStreamError, match="jsonPath"):
        chunks_of(event(call("f", willContinue=True), *(piece(path, "x") for path in paths)))


# --- tools at the provider -----------------------------------------------------------------


def test_code_that_ran_at_the_provider() -> None:
    """The code is a call, what came of it a result, both as they came, and signed."""
    code = {"language": "PYTHON", "code": "print(1)"}
    result = {"outcome": "OUTCOME_OK", "output": "1\n"}
    chunks = chunks_of(
        event({"executableCode": code, "thoughtSignature": "s"}),
        event({"codeExecutionResult": result, "thoughtSignature": "t"}, reason="STOP"),
    )
    start, _, _, made, given_back = chunks[1:-1]
    assert isinstance(start, ToolCallInputStart)
    assert isinstance(made, ToolCall)
    assert (made.tool_name, made.args, made.provider_executed) == ("code_execution", code, True)
    assert signed(made) == {"executableCode": code, "thoughtSignature": "s"}
    assert given_back == ToolResult(
        made.tool_call_id,
        "code_execution",
        {**result, "thoughtSignature": "t"},
        code,
        provider_executed=True,
    )


def test_code_that_failed() -> None:
    """The result says that it is an error."""
    result = {"id": "1", "outcome": "OUTCOME_FAILED", "output": "no"}
    chunks = chunks_of(
        event({"executableCode": {"id": "1", "code": "x"}}, {"codeExecutionResult": result}),
        event(reason="STOP"),
    )
    assert chunks[-2] == ToolResult(
        "1",
        "code_execution",
        result,
        {"id": "1", "code": "x"},
        is_error=True,
        provider_executed=True,
    )


def test_a_search_at_the_provider() -> None:
    """A tool's own call and response, by its type."""
    searched = {"id": "1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["x"]}}
    found = {"id": "1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"n": 1}}
    chunks = chunks_of(event({"toolCall": searched}, {"toolResponse": found}, reason="STOP"))
    made, result = chunks[-3:-1]
    assert isinstance(made, ToolCall)
    assert (made.tool_name, made.args) == ("google_search_web", {"queries": ["x"]})
    assert result == ToolResult(
        "1", "google_search_web", found, {"queries": ["x"]}, provider_executed=True
    )


def test_results_by_id() -> None:
    """Two searches side by side: a result of the older one is its own; one of none is kept."""
    searched = [
        {"toolCall": {"id": str(number), "toolType": "GOOGLE_MAPS", "args": {}}}
        for number in range(2)
    ]
    found = [{"toolResponse": {"id": number, "toolType": "GOOGLE_MAPS"}} for number in ("0", "1")]
    stray = {"codeExecutionResult": {"outcome": "OUTCOME_OK"}}
    chunks = chunks_of(event(*searched, *found, reason="STOP"))
    results = [chunk for chunk in chunks if isinstance(chunk, ToolResult)]
    assert [(r.tool_call_id, r.tool_name) for r in results] == [
        ("0", "google_maps"),
        ("1", "google_maps"),
    ]
    (alone,) = (c for c in chunks_of(event(stray, reason="STOP")) if isinstance(c, ToolResult))
    assert (alone.tool_name, alone.result) == ("code_execution", stray["codeExecutionResult"])
