"""Tool calls in the chat protocol: however a server cuts and labels them, they come out whole."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.chunks import ToolCall, ToolCallDelta, ToolCallInputStart
from streampipe.errors import ProviderStreamError
from streampipe.models.openai_chat import ChatDecoder
from tests.models.streams import JSON, chunks_of, delta, event


def calls_of(*deltas: Any) -> list[tuple[str, str, Any]]:
    """Id, name and arguments of the calls that these deltas of `tool_calls` make."""
    events = [event({"tool_calls": delta}) for delta in deltas]
    chunks = chunks_of(*events, event(reason="tool_calls"))
    for chunk in chunks:
        if isinstance(chunk, ToolCall) and chunk.args_text is None:
            pieces = [
                c.args_text_delta
                for c in chunks
                if isinstance(c, ToolCallDelta) and c.tool_call_id == chunk.tool_call_id
            ]
            told = json.loads("".join(pieces).strip() or "null")
            assert (told or {}) == chunk.args, "deltas tell the same"
    return [(c.tool_call_id, c.tool_name, c.args) for c in chunks if isinstance(c, ToolCall)]


@pytest.mark.parametrize(
    "deltas",
    [
        pytest.param(
            [
                [delta("", index=0, id="1", name="f")],
                [delta('{"a"', index=0)],
                [delta(":1}", index=0)],
            ],
            id="as OpenAI does",
        ),
        pytest.param([[delta('{"a":1}', index=0, id="1", name="f")]], id="whole at once"),
        pytest.param([[delta('{"a":1}', id="1", name="f")]], id="no index"),
        pytest.param([[delta('{"a"', id="1", name="f")], [delta(":1}", id="1")]], id="by id"),
        pytest.param([[delta('{"a"', id="1", name="f")], [delta(":1}")]], id="neither, later"),
        pytest.param(
            [
                [delta("", index=0, id="1", name="f")],
                [delta('{"a":1}', index=0, id="", name="")],
                [delta("", index=0, id="")],
            ],
            id="empty id and name later",
        ),
        pytest.param(
            [[delta('{"a"', index=0, id="1", name="f")], [delta(":1}", index=0, id="2")]],
            id="ids that change",
        ),
        pytest.param(
            [[delta('{"a"', index=0, id="1", name="f")], [delta(":1}", index=0, id="1", name="f")]],
            id="name repeated",
        ),
        pytest.param(
            [[delta(index=0, id="1", name="f")], [delta('{"a":1}', index=0)]], id="none at first"
        ),
        pytest.param(
            [[delta('{"a"', index=0, id="1")], [delta(":1}", index=0, name="f")]], id="name later"
        ),
        pytest.param(
            [
                [delta('{"a"', index=0, id="1", name="f")],
                [delta(":1}", index=0)],
                [delta('{"a":1}', index=0)],
            ],
            id="said again, whole",
        ),
        pytest.param([[delta('{"a":1}', index="x", id="1", name="f")]], id="an odd index"),
        pytest.param(
            [[delta('{"a"', index=0, id="1", name="f")], [delta(":1}", index=0, id="", name="f")]],
            id="name repeated, id empty",
        ),
        pytest.param(
            [[delta('{"a"', index=0, id="1")], [delta(":1}", index=0, id="2", name="f")]],
            id="name later, with another id",
        ),
        pytest.param(
            [[delta('{"a"', id="1", name="f")], [delta(":1}", id="2")]],
            id="ids that change, no index",
        ),
        pytest.param(
            [[delta('{"a"', id="1", name="f")], [delta(":1}", index=0)]], id="an index later"
        ),
        pytest.param(
            [[delta('{"a"', id="1", name="f")], [delta(":1}", index=0, id="1")]],
            id="an index later, with the id",
        ),
        pytest.param(
            [[delta('{"a"', index=0, id="1", name="f")], [delta(":1}", id="1")]],
            id="an index at first only",
        ),
        pytest.param(
            [
                [delta('{"a": 1}', index=0, id="1", name="f")],
                [delta('{"a":1}', index=0, id="1", name="f")],
            ],
            id="said again, other white space",
        ),
    ],
)
def test_one_call_in_many_forms(deltas: list[Any]) -> None:
    """However a server cuts and labels it, it is one call."""
    assert calls_of(*deltas) == [("1", "f", {"a": 1})]


@pytest.mark.parametrize(
    "deltas",
    [
        pytest.param(
            [
                [
                    delta('{"n":', index=0, id="1", name="f"),
                    delta('{"n":', index=1, id="2", name="g"),
                ],
                [delta("2}", index=1), delta("1}", index=0)],
            ],
            id="interleaved",
        ),
        pytest.param(
            [[delta('{"n":1}', id="1", name="f"), delta('{"n":2}', id="2", name="g")]],
            id="no index",
        ),
        pytest.param(
            [
                [delta('{"n":1}', index=0, id="1", name="f")],
                [delta('{"n":', index=0, id="2", name="g")],
                [delta("2}", index=0)],
            ],
            id="all at index 0",
        ),
    ],
)
def test_parallel_calls(deltas: list[Any]) -> None:
    """Each piece goes to its own call; calls keep the order in which they began."""
    assert calls_of(*deltas) == [("1", "f", {"n": 1}), ("2", "g", {"n": 2})]


def test_calls_without_any_id_get_one_each() -> None:
    """A server that numbers nothing still makes two calls of two names."""
    calls = calls_of([delta('{"n":1}', name="f"), delta('{"n":2}', name="g")])
    assert [call[1:] for call in calls] == [("f", {"n": 1}), ("g", {"n": 2})]
    assert len({call[0] for call in calls}) == 2
    assert all(call[0] for call in calls)


@pytest.mark.parametrize("second", ['{"n":2}', '{"n":'])
@pytest.mark.parametrize("names", ["fg", "ff"])
def test_calls_at_one_index_without_ids(names: str, second: str) -> None:
    """Each brings its name, and an object that begins behind an object: they are two calls."""
    calls = calls_of(
        [delta('{"n":1}', index=0, id="", name=names[0])],
        [delta(second, index=0, id="", name=names[1])],
        *([] if second.endswith("}") else [[delta("2}", index=0)]]),
    )
    assert [call[1:] for call in calls] == [(names[0], {"n": 1}), (names[1], {"n": 2})]
    assert len({call[0] for call in calls} | {""}) == 3


def test_an_index_that_is_new_is_another_calls() -> None:
    """A nameless piece at an index of its own does not go on with a call that has another."""
    calls = calls_of(
        [delta("", index=0, id="1", name="f")],
        [delta('{"n":', index=1, id="2"), delta("2}", index=1, name="g")],
        [delta('{"n":1}', index=0)],
    )
    assert calls == [("1", "f", {"n": 1}), ("2", "g", {"n": 2})]


@pytest.mark.parametrize("arguments", [None, "", "  ", "null", "{}"])
def test_no_arguments_are_an_empty_object(arguments: str | None) -> None:
    """A tool without parameters is called with `{}`, whatever the server writes for it."""
    assert calls_of([delta(arguments, index=0, id="1", name="f")]) == [("1", "f", {})]


@pytest.mark.parametrize("text", ['{"a":', "hello", '{"a":1}x', "NaN"])
def test_arguments_that_are_no_json_are_kept_as_text(text: str) -> None:
    """The run decides what to tell the model; nothing is guessed here."""
    chunks = chunks_of(event({"tool_calls": [delta(text, index=0, id="1", name="f")]}, "stop"))
    assert chunks[-2] == ToolCall("1", "f", None, text)


def test_a_nested_repetition_is_no_echo() -> None:
    """Pieces that repeat what came before are only dropped when that was whole."""
    pieces = ['{"a":', '{"a":', "1}}"]
    calls = calls_of(
        [delta(pieces[0], index=0, id="1", name="f")], *[[delta(p, index=0)] for p in pieces[1:]]
    )
    assert calls == [("1", "f", {"a": {"a": 1}})]


def test_a_call_of_the_old_kind() -> None:
    """`function_call`, from before there were several, is a call too."""
    chunks = chunks_of(
        event({"function_call": {"name": "f", "arguments": '{"a"'}}),
        event({"function_call": {"arguments": ":1}"}}, "function_call"),
    )
    (call,) = [chunk for chunk in chunks if isinstance(chunk, ToolCall)]
    assert (call.tool_name, call.args) == ("f", {"a": 1})


@given(st.dictionaries(st.text(), JSON, max_size=4), st.data())
def test_arguments_may_be_cut_anywhere(args: dict[str, Any], data: st.DataObject) -> None:
    """Any arguments, in any pieces, come out whole, and as the deltas say."""
    text = json.dumps(args)
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    deltas = [[delta(piece, index=0)] for piece in pieces]
    assert calls_of([delta("", index=0, id="1", name="f")], *deltas) == [("1", "f", args)]


def test_a_call_without_a_name_is_refused() -> None:
    """Nobody could tell which tool is meant."""
    with pytest.raises(ProviderStreamError, match="no name"):
        calls_of([delta('{"a":1}', index=0, id="1")])


def test_a_call_is_announced_before_it_is_whole() -> None:
    """A viewer learns the tool's name with the first delta."""
    decoder = ChatDecoder()
    opening = event({"tool_calls": [delta("", index=0, id="1", name="f")]})
    chunks = decoder.feed(orjson.dumps(opening).decode())
    assert chunks[-1] == ToolCallInputStart("1", "f")
