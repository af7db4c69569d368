"""The calls of an answer, in every protocol: an id each, told once, never run when cut off."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.chunks import Chunk, ToolCall, ToolCallDelta, ToolCallInputEnd, ToolCallInputStart
from streampipe.models._protocol.decoding import EventDecoder
from streampipe.models.anthropic import AnthropicDecoder
from streampipe.models.google import GoogleDecoder
from streampipe.models.openai_chat import ChatDecoder
from streampipe.models.openai_responses import ResponsesDecoder
from streampipe.testing._chunk_laws import unclosed
from tests.models import test_anthropic_decoder as anthropic
from tests.models import test_google_decoder as google
from tests.models import test_responses_decoder as responses
from tests.models.streams import delta, event

Told = list[tuple[str, str, dict[str, Any]]]
"""Id, name and arguments of calls."""


def fed(decoder: EventDecoder, *events: Any) -> list[Chunk]:
    """The chunks of a whole answer."""
    texts = [e if isinstance(e, str) else orjson.dumps(e).decode() for e in events]
    chunks = [chunk for text in texts for chunk in decoder.feed(text)]
    return chunks + decoder.end()


def by_chat(calls: Told) -> list[Chunk]:
    """Chunks of an answer with these calls in the chat protocol."""
    items = [
        delta(json.dumps(args), index=n, id=i, name=name) for n, (i, name, args) in enumerate(calls)
    ]
    events = [event({"tool_calls": [item]}) for item in items]
    return fed(ChatDecoder(), *events, event(reason="tool_calls"), "[DONE]")


def by_responses(calls: Told) -> list[Chunk]:
    """The same in the Responses protocol."""
    items = [
        {
            "type": "function_call",
            "id": f"fc_{n}",
            "call_id": i,
            "name": name,
            "arguments": json.dumps(args),
        }
        for n, (i, name, args) in enumerate(calls)
    ]
    events = [e(item, n) for n, item in enumerate(items) for e in (responses.added, responses.done)]
    return fed(ResponsesDecoder(), responses.CREATED, *events, responses.completed())


def by_anthropic(calls: Told) -> list[Chunk]:
    """The same in the Anthropic protocol."""
    events = [
        e
        for n, (i, name, args) in enumerate(calls)
        for e in (
            anthropic.opened("tool_use", n, id=i, name=name),
            anthropic.piece("input_json_delta", n, partial_json=json.dumps(args)),
            anthropic.closed(n),
        )
    ]
    end = (anthropic.reason("tool_use"), anthropic.STOP)
    return fed(AnthropicDecoder(), anthropic.begun(), *events, *end)


def by_google(calls: Told) -> list[Chunk]:
    """The same in Google's protocol."""
    parts = [google.call(name, id=i, args=args) for i, name, args in calls]
    return fed(GoogleDecoder(), google.event(*parts, reason="STOP"))


PROTOCOLS = [by_chat, by_responses, by_anthropic, by_google]
IDS = st.sampled_from(["", "a", "b"])


@pytest.mark.parametrize("told", PROTOCOLS)
@given(st.lists(st.tuples(IDS, st.sampled_from("fg")), max_size=5))
def test_every_call_has_an_id_of_its_own(
    told: Callable[[Told], list[Chunk]], labels: list[tuple[str, str]]
) -> None:
    """The first call of an id keeps it, another one gets a fresh id, and so do its deltas."""
    calls: Told = [(i, name, {"n": n}) for n, (i, name) in enumerate(labels)]
    chunks = told(calls)
    made = [chunk for chunk in chunks if isinstance(chunk, ToolCall)]
    assert [(c.tool_name, c.args) for c in made] == [(name, args) for _, name, args in calls]
    ids = [c.tool_call_id for c in made]
    assert len({*ids, ""}) == len(ids) + 1
    for n, (i, _, _) in enumerate(calls):
        assert not i or (ids[n] == i) is (i not in [c[0] for c in calls[:n]])
    for call in made:
        deltas = [
            c.args_text_delta
            for c in chunks
            if isinstance(c, ToolCallDelta) and c.tool_call_id == call.tool_call_id
        ]
        assert json.loads("".join(deltas)) == call.args
    for kind in (ToolCallInputStart, ToolCallInputEnd):
        assert [c.tool_call_id for c in chunks if isinstance(c, kind)] == ids
    assert not unclosed(chunks)


def calls_of(chunks: list[Chunk]) -> list[tuple[Any, ...]]:
    """The calls that a run gets to see: id, arguments and text of arguments that are none."""
    return [(c.tool_call_id, c.args, c.args_text) for c in chunks if isinstance(c, ToolCall)]


def test_a_chat_call_told_again_is_one_call() -> None:
    """A last item without an index that has the same id, name and arguments."""
    items = [
        delta('{"a":', index=0, id="x", name="f"),
        delta("1}", index=0),
        delta('{"a": 1}', id="x", name="f"),
    ]
    events = [event({"tool_calls": [item]}) for item in items]
    chunks = fed(ChatDecoder(), *events, event(reason="tool_calls"))
    assert calls_of(chunks) == [("x", {"a": 1}, None)]
    assert "".join(c.args_text_delta for c in chunks if isinstance(c, ToolCallDelta)) == '{"a":1}'


def test_a_block_begun_again_after_its_stop_is_one_call() -> None:
    """The same id, name and content, at whatever index; nothing of it is told twice."""
    block = [
        anthropic.opened("tool_use", 0, id="x", name="f"),
        anthropic.piece("input_json_delta", 0, partial_json='{"a":1}'),
        anthropic.closed(0),
    ]
    elsewhere = [{**e, "index": 1} for e in block]
    chunks = anthropic.answered(*block, *block, *elsewhere)
    assert chunks == anthropic.answered(*block)


def test_a_block_begun_again_and_left_open_is_no_call() -> None:
    """An answer that begins anew leaves nothing half told behind."""
    block = [anthropic.opened("tool_use", 0, id="x", name="f", input={"a": 1}), anthropic.closed(0)]
    chunks = anthropic.answered(*block, block[0], anthropic.begun(id="msg-2"))
    assert not unclosed(chunks)
    assert calls_of(chunks) == [("x", {"a": 1}, None)]


CUT = (None, "")  # neither arguments nor what could be run in their place


@pytest.mark.parametrize("reason", ["length", "content_filter", "model_length", "odd", None])
@pytest.mark.parametrize("text", ["", " ", None])
def test_a_chat_call_cut_off_before_its_arguments(reason: str | None, text: str | None) -> None:
    """It never has `{}`, with which it would run."""
    item = event({"tool_calls": [delta(text, index=0, id="x", name="f")]})
    (call,) = calls_of(fed(ChatDecoder(), item, event(reason=reason), "[DONE]"))
    assert call[1] is None
    assert call[2] == (text or "")


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "function_call"])
def test_a_chat_call_without_parameters_runs(reason: str) -> None:
    """Where the answer came to its end."""
    item = event({"tool_calls": [delta("", index=0, id="x", name="f")]})
    assert calls_of(fed(ChatDecoder(), item, event(reason=reason))) == [("x", {}, None)]


@pytest.mark.parametrize(
    ("events", "args"),
    [
        ([anthropic.closed(0), anthropic.reason("tool_use")], {}),
        ([anthropic.closed(0), anthropic.reason("end_turn")], {}),
        ([anthropic.closed(0), anthropic.reason("max_tokens")], None),
        ([anthropic.closed(0), anthropic.reason("refusal")], None),
        ([anthropic.closed(0)], None),
        ([anthropic.reason("tool_use")], None),
        ([anthropic.reason("max_tokens")], None),
        ([anthropic.closed(0), *anthropic.said("x", 1), anthropic.reason("max_tokens")], {}),
        ([*anthropic.said("x", 0), anthropic.reason("tool_use")], None),
    ],
)
def test_an_anthropic_call_without_arguments(events: list[Any], args: Any) -> None:
    """It runs if its block was ended, and by more than the end of the tokens."""
    start = anthropic.opened("tool_use", 0, id="x", name="f", input={})
    chunks = anthropic.chunks_of(anthropic.begun(), start, *events, anthropic.STOP)
    assert calls_of(chunks) == [("x", args, None if args == {} else "")]
    assert not unclosed(chunks)


def test_a_call_without_arguments_of_an_answer_begun_anew() -> None:
    """Nobody knows whether it was cut off: it is not made."""
    start = anthropic.opened("tool_use", 0, id="x", name="f", input={})
    again = anthropic.begun(id="msg-2")
    chunks = anthropic.answered(start, anthropic.closed(0), again, *anthropic.said("hi"))
    assert calls_of(chunks) == []


def function(arguments: str = "", **fields: Any) -> dict[str, Any]:
    """A call as an item of the Responses protocol."""
    return {
        "type": "function_call",
        "id": "fc",
        "call_id": "x",
        "name": "f",
        "arguments": arguments,
        **fields,
    }


INCOMPLETE = {
    "type": "response.incomplete",
    "response": {"incomplete_details": {"reason": "max_output_tokens"}},
}
RETOLD = {
    "type": "response.incomplete",
    "response": {"status": "incomplete", "output": [function()]},
}
GIVEN = {
    "type": "response.function_call_arguments.done",
    "item_id": "fc",
    "output_index": 0,
    "arguments": '{"a":1}',
}


@pytest.mark.parametrize(
    ("events", "args"),
    [
        ([responses.done(function()), responses.completed()], {}),
        ([responses.done(function(status="completed")), INCOMPLETE], {}),
        ([responses.done(function(status="incomplete")), INCOMPLETE], None),
        ([INCOMPLETE], None),
        ([RETOLD], None),
        ([responses.completed()], None),
        ([responses.completed(output=[function()])], {}),
        ([GIVEN, responses.completed()], {"a": 1}),
        ([GIVEN, responses.done(function('{"a":1}')), responses.completed()], {"a": 1}),
    ],
)
def test_a_responses_call(events: list[Any], args: Any) -> None:
    """Without arguments it runs if its item came to its end; arguments count wherever they come."""
    chunks = fed(ResponsesDecoder(), responses.CREATED, responses.added(function()), *events)
    assert calls_of(chunks) == [("x", args, "" if args is None else None)]
    assert not unclosed(chunks)


def test_bare_text_that_was_cut_off_does_not_run() -> None:
    """A custom tool's input is no JSON that would tell that it is not whole."""
    item = {"type": "custom_tool_call", "id": "i", "call_id": "x", "name": "f", "input": "rm a"}
    events = [
        responses.added({**item, "input": ""}),
        responses.delta("custom_tool_call_input", "rm a", item_id="i"),
        responses.done({**item, "status": "incomplete"}),
    ]
    chunks = fed(ResponsesDecoder(), responses.CREATED, *events, INCOMPLETE)
    assert calls_of(chunks) == [("x", None, '{"input":"rm a')]


def test_a_call_of_a_provider_keeps_its_arguments() -> None:
    """Nobody here runs it: a status that is not its last takes nothing away."""
    item = {"type": "web_search_call", "id": "w", "status": "in_progress", "action": {"q": 1}}
    chunks = fed(ResponsesDecoder(), responses.CREATED, responses.done(item), INCOMPLETE)
    assert calls_of(chunks) == [("w", {"action": {"q": 1}}, None)]


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "SAFETY"])
def test_a_google_call_that_was_to_go_on(reason: str) -> None:
    """It has a beginning only."""
    part = google.call("f", id="x", willContinue=True)
    chunks = fed(GoogleDecoder(), google.event(part, reason=reason))
    assert calls_of(chunks) == [("x", *CUT)]
