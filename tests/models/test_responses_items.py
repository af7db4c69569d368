"""Reasoning, calls, sources and files in the Responses protocol, each kind of item by itself."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.chunks import (
    FileChunk,
    RawChunk,
    ReasoningDelta,
    ReasoningEnd,
    RedactedReasoning,
    SourceChunk,
    TextDelta,
    ToolCall,
    ToolCallInputStart,
    ToolResult,
)
from streampipe.models._protocol.encoding import digest_of
from tests.models.test_responses_decoder import (
    CALL,
    MESSAGE,
    Event,
    added,
    chunks_of,
    delta,
    done,
    only,
    said,
)

# --- reasoning -----------------------------------------------------------------------------


def test_several_summaries_of_reasoning() -> None:
    """Each is a part; the last has the encrypted form, all of them the item that they are of."""
    item = {"type": "reasoning", "id": "rs_1", "summary": []}
    chunks = chunks_of(
        added(item),
        delta("reasoning_summary_text", "a", summary_index=0),
        delta("reasoning_summary_text", "b", summary_index=1),
        done({**item, "encrypted_content": "e1"}),
    )
    noted = [{"openai": {"item_id": "rs_1", "digest": digest_of(text)}} for text in "ab"]
    assert [chunk for chunk in chunks if isinstance(chunk, ReasoningEnd)] == [
        ReasoningEnd("0", None, noted[0]),
        ReasoningEnd("1", "e1", noted[1]),
    ]


def test_raw_reasoning() -> None:
    """Reasoning that is told itself, and not its summary, is marked so."""
    item = {"type": "reasoning", "id": "rs_1", "summary": []}
    chunks = chunks_of(added(item), delta("reasoning_text", "hm", content_index=0), done(item))
    assert only(chunks, ReasoningDelta).text == "hm"
    noted = {"item_id": "rs_1", "form": "reasoning_text", "digest": digest_of("hm")}
    assert only(chunks, ReasoningEnd).provider_metadata == {"openai": noted}


@pytest.mark.parametrize(
    "content",
    [
        {"summary": [{"type": "summary_text", "text": "hm"}]},
        {"content": [{"type": "reasoning_text", "text": "hm"}], "summary": []},
        {
            "content": [{"type": "reasoning_text", "text": "longer"}],
            "summary": [{"type": "summary_text", "text": "hm"}],
        },
    ],
)
def test_reasoning_that_comes_whole(content: dict[str, Any]) -> None:
    """No piece of it came before; of two forms, the summary is what is meant for readers."""
    item = {"type": "reasoning", "id": "rs_1", **content, "encrypted_content": "e1"}
    chunks = chunks_of(added({**item, "summary": []}), done(item))
    assert only(chunks, ReasoningDelta).text == "hm"
    assert only(chunks, ReasoningEnd).signature == "e1"


def test_reasoning_that_is_not_announced() -> None:
    """Its pieces tell which item they are of."""
    piece = delta("reasoning_summary_text", "hm", item_id="rs_1", summary_index=0)
    noted = {"item_id": "rs_1", "digest": digest_of("hm")}
    assert only(chunks_of(piece), ReasoningEnd).provider_metadata == {"openai": noted}


def test_reasoning_that_is_only_encrypted() -> None:
    """It is told, so that it can be sent back; reasoning of nothing is not."""
    item = {"type": "reasoning", "id": "rs_1", "summary": []}
    assert chunks_of(added(item), done(item)) == []
    chunks = chunks_of(added(item), done({**item, "encrypted_content": "e1"}), said("x", 1))
    assert chunks[0] == RedactedReasoning("0", "e1", {"openai": {"item_id": "rs_1"}})
    assert only(chunks, TextDelta).id == "1"


# --- calls ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "args", "text"),
    [
        ('{"a":1}', {"a": 1}, None),
        ("", {}, None),
        ({"a": 1}, {"a": 1}, None),
        (None, {}, None),
        ("{no", None, "{no"),
    ],
)
def test_arguments_that_come_whole(arguments: Any, args: Any, text: str | None) -> None:
    """A call without pieces has the arguments of its item, whatever form they have."""
    item = {**CALL, "arguments": arguments}
    for events in ([added(CALL), done(item)], [done(item)]):
        chunks = chunks_of(*events)
        assert chunks[0] == ToolCallInputStart("1", "f")
        assert chunks[-1] == ToolCall("1", "f", args, text)


def test_a_call_that_is_never_done() -> None:
    """What came of its arguments is told when the answer ends."""
    piece = delta("function_call_arguments", '{"a":', item_id="fc_1")
    call = only(chunks_of(added(CALL), piece), ToolCall)
    assert (call.args, call.args_text) == (None, '{"a":')


def test_a_call_without_a_name_is_announced_when_it_has_one() -> None:
    """Its pieces are held until then."""
    piece = delta("function_call_arguments", "{}", item_id="fc_1")
    chunks = chunks_of(added({**CALL, "name": ""}), piece, done({**CALL, "arguments": "{}"}))
    assert [chunk.type for chunk in chunks] == [
        "tool-call-input-streaming-start",
        "tool-call-delta",
        "tool-call-input-streaming-end",
        "tool-call",
    ]


def test_what_is_said_twice_counts_once() -> None:
    """An item that is announced or done again changes nothing."""
    chunks = chunks_of(added(CALL), added(CALL), done(CALL), done(CALL))
    assert len([chunk for chunk in chunks if isinstance(chunk, ToolCall)]) == 1
    nameless = {name: value for name, value in CALL.items() if name != "id"}
    assert only(chunks_of(done(nameless), done(nameless)), ToolCall) == ToolCall("1", "f", {})
    assert len([chunk for chunk in chunks if isinstance(chunk, ToolCallInputStart)]) == 1


def test_who_made_a_call_is_kept() -> None:
    """A program of the model's may call, and a function may be one of a namespace."""
    kept = {"caller": {"type": "program", "caller_id": "p"}, "namespace": "crm"}
    call = only(chunks_of(done({**CALL, **kept})), ToolCall)
    assert call.provider_metadata == {"openai": kept}
    assert only(chunks_of(done(CALL)), ToolCall).provider_metadata is None


OURS: list[tuple[Event, str, str]] = [
    ({"type": "custom_tool_call", "name": "sql", "input": "SELECT 1"}, "sql", "input"),
    ({"type": "apply_patch_call", "operation": {"type": "delete_file"}}, "apply_patch", ""),
    ({"type": "computer_call", "action": {"type": "click"}}, "computer", "action"),
    ({"type": "local_shell_call", "action": {"type": "exec"}}, "local_shell", "action"),
    ({"type": "shell_call", "action": {"commands": ["ls"]}}, "shell", "action"),
    (
        {"type": "tool_search_call", "execution": "client", "arguments": {"goal": "x"}},
        "tool_search",
        "goal",
    ),
]


@pytest.mark.parametrize(("item", "name", "key"), OURS, ids=[item[0]["type"] for item in OURS])
def test_other_calls_of_the_callers(item: Event, name: str, key: str) -> None:
    """They are calls of a tool of that name, which the caller runs; the item is kept."""
    item = {**item, "id": "i", "call_id": "1"}
    chunks = chunks_of(added(item), done(item))
    call = only(chunks, ToolCall)
    assert (call.tool_call_id, call.tool_name, call.provider_executed) == ("1", name, None)
    assert (key or "operation") in call.args
    assert call.provider_metadata == {"openai": {"item": item}}


THEIRS: list[tuple[Event, str, Any]] = [
    ({"type": "web_search_call", "action": {"query": "x"}}, "web_search", {"query": "x"}),
    ({"type": "file_search_call", "queries": ["x"]}, "file_search", ["x"]),
    ({"type": "code_interpreter_call", "code": "1+1"}, "code_interpreter", "1+1"),
    ({"type": "mcp_call", "name": "f", "arguments": '{"a":1}', "output": "2"}, "f", 1),
]


@pytest.mark.parametrize(("item", "name", "value"), THEIRS, ids=[i[0]["type"] for i in THEIRS])
def test_calls_that_the_provider_runs(item: Event, name: str, value: Any) -> None:
    """They are marked so, and their result follows: the item as it came."""
    item = {**item, "id": "i", "status": "completed"}
    chunks = chunks_of(added(item), done(item))
    assert chunks[0] == ToolCallInputStart("i", name, provider_executed=True)
    call = only(chunks, ToolCall)
    assert call.provider_executed
    assert list(call.args.values()) == [value]
    assert chunks[-1] == ToolResult("i", name, item, provider_executed=True)


@pytest.mark.parametrize("fault", [{"status": "failed"}, {"error": {"message": "no"}}])
def test_a_call_that_the_provider_failed_to_run(fault: dict[str, Any]) -> None:
    """Its result is an error."""
    item = {"type": "mcp_call", "id": "i", "name": "f", "arguments": "{}", **fault}
    assert only(chunks_of(done(item)), ToolResult).is_error


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (
            {"type": "shell_call", "call_id": "1", "environment": {"type": "container_reference"}},
            {"type": "shell_call_output", "call_id": "1", "output": []},
        ),
        (
            {"type": "program", "call_id": "1", "code": "x"},
            {"type": "program_output", "call_id": "1", "result": "y"},
        ),
        (
            {"type": "tool_search_call", "call_id": None, "execution": "server"},
            {"type": "tool_search_output", "call_id": None, "tools": []},
        ),
    ],
)
def test_results_that_are_items_of_their_own(call: Event, result: Event) -> None:
    """They belong to the call that they name, else to the last one of their kind."""
    chunks = chunks_of(done({**call, "id": "i"}), added({**result, "id": "o"}, 1), done(result, 1))
    found = only(chunks, ToolResult)
    assert only(chunks, ToolCall).provider_executed
    assert (found.tool_call_id, found.result) == (call["call_id"] or "i", result)


def test_a_result_of_no_call_comes_raw() -> None:
    """Nothing of an answer is lost."""
    item = {"type": "shell_call_output", "call_id": "gone"}
    assert chunks_of(done(item)) == [RawChunk(item)]


@given(st.lists(st.text(), min_size=1), st.sampled_from(["code", "input"]))
def test_input_that_is_bare_text(pieces: list[str], field: str) -> None:
    """It comes in pieces that are JSON when they are joined."""
    kind = {"code": "code_interpreter_call", "input": "custom_tool_call"}[field]
    event = {"code": "code_interpreter_call_code", "input": "custom_tool_call_input"}[field]
    item = {"type": kind, "id": "i", "name": "f"}
    text = "".join(pieces)
    deltas = [delta(event, piece, item_id="i") for piece in pieces]
    chunks = chunks_of(added(item), *deltas, done({**item, field: text}))
    joined = "".join(getattr(chunk, "args_text_delta", "") for chunk in chunks)
    assert not joined or orjson.loads(joined) == {field: text}
    assert bool(joined) == bool(text)
    assert only(chunks, ToolCall).args == {field: text}


def test_a_question_for_approval() -> None:
    """It is a call without a result: the caller's answer is one."""
    item = {"type": "mcp_approval_request", "id": "a", "name": "f", "arguments": "{}"}
    chunks = chunks_of(done(item))
    call = only(chunks, ToolCall)
    assert (call.tool_call_id, call.provider_executed) == ("a", True)
    assert not [chunk for chunk in chunks if isinstance(chunk, ToolResult)]


def test_an_image() -> None:
    """It is a file, once; the call and its result are told without it."""
    item = {"type": "image_generation_call", "id": "ig_1", "output_format": "webp"}
    chunks = chunks_of(added(item), done({**item, "result": "UklGRg=="}))
    noted = {"openai": {"item": item}}
    assert only(chunks, FileChunk) == FileChunk("UklGRg==", "image/webp", None, noted)
    assert only(chunks, ToolResult).result == item
    unnamed = {"type": "image_generation_call", "id": "ig_1", "result": "aGk="}
    assert only(chunks_of(done(unnamed)), FileChunk).mime_type == "image/png"
    preview = {
        "type": "response.image_generation_call.partial_image",
        "output_index": 0,
        "partial_image_b64": "UklGRg==",
    }
    assert chunks_of(preview) == [RawChunk(preview)]


# --- sources and the rest --------------------------------------------------------------------


def test_each_source_once() -> None:
    """A page or a file that is cited again, or told again with its message, is the same source."""
    page = {"type": "url_citation", "url": "https://a.example", "title": "A"}
    file = {"type": "file_citation", "file_id": "file-1", "filename": "a.pdf", "index": 3}
    notes = [
        {"type": "response.output_text.annotation.added", "annotation": note}
        for note in (page, file, {**page, "title": "B"}, file)
    ]
    part = {"type": "output_text", "text": "x", "annotations": [page, file]}
    chunks = chunks_of(added(MESSAGE), said("x"), *notes, done({**MESSAGE, "content": [part]}))
    assert [chunk for chunk in chunks if isinstance(chunk, SourceChunk)] == [
        SourceChunk("source-1", title="A", url="https://a.example"),
        SourceChunk(
            "source-2",
            "document",
            "a.pdf",
            filename="a.pdf",
            provider_metadata={"openai": {"file_id": "file-1"}},
        ),
    ]


def test_items_of_other_kinds_come_raw() -> None:
    """A compaction, the tools of a server, and what is not known yet."""
    items: list[Event] = [
        {"type": kind, "id": kind} for kind in ("compaction", "mcp_list_tools", "novelty")
    ]
    events = [e for n, item in enumerate(items) for e in (added(item, n), done(item, n))]
    assert chunks_of(*events) == [RawChunk(item) for item in items]


def test_events_of_other_kinds() -> None:
    """What has content is passed on raw; that something goes on, or what an item tells, is not."""
    sound = {"type": "response.audio.delta", "delta": "UklGRg=="}
    silent: list[Event] = [
        {"type": "response.web_search_call.searching", "item_id": "i", "output_index": 0},
        {"type": "response.queued", "response": {}},
        {"type": "response.output_text.done", "text": "x"},
        {"type": "response.shell_call_command.delta", "delta": "ls"},
    ]
    assert chunks_of(sound, *silent) == [RawChunk(sound)]
