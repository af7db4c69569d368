"""The Responses protocol as servers speak it: each kind of item by itself, and what is refused."""

from __future__ import annotations

import json
import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.chunks import (
    Chunk,
    FinishChunk,
    ReasoningDelta,
    ResponseMetadata,
    TextDelta,
    TextEnd,
    ToolCall,
    Usage,
)
from streampipe.errors import (
    ContentFilterError,
    IncompleteStreamError,
    ModelError,
    ProviderError,
    ProviderStreamError,
    QuotaError,
    RateLimitError,
    ServerError,
)
from streampipe.models.openai_responses import ResponsesDecoder
from streampipe.testing._chunk_laws import unclosed
from tests.models.streams import JSON, answer

Event = dict[str, Any]
CREATED: Event = {
    "type": "response.created",
    "response": {"id": "resp_1", "model": "m", "created_at": 7, "status": "in_progress"},
}


def completed(**response: Any) -> Event:
    """The event that ends an answer."""
    return {"type": "response.completed", "response": {"status": "completed", **response}}


def added(item: Event, index: int = 0) -> Event:
    """An item is announced."""
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(item: Event, index: int = 0) -> Event:
    """An item is told as a whole."""
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def delta(kind: str, text: Any, index: int = 0, **fields: Any) -> Event:
    """A piece of an item's content."""
    return {"type": f"response.{kind}.delta", "output_index": index, "delta": text, **fields}


def said(text: Any, index: int = 0, inner: int = 0) -> Event:
    """A piece of text."""
    return delta("output_text", text, index, content_index=inner)


def fed(*events: Event | str, decoder: ResponsesDecoder | None = None) -> list[Chunk]:
    """The chunks of these events, without an end of the stream."""
    decoder = decoder or ResponsesDecoder()
    texts = [e if isinstance(e, str) else orjson.dumps(e).decode() for e in events]
    return [chunk for text in texts for chunk in decoder.feed(text)]


def chunks_of(*events: Event | str) -> list[Chunk]:
    """The chunks of an answer of these events."""
    return fed(CREATED, *events, completed())[1:-1]


def only(chunks: list[Chunk], kind: type[Any]) -> Any:
    """The one chunk of a kind."""
    (found,) = [chunk for chunk in chunks if isinstance(chunk, kind)]
    return found


MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "1", "name": "f", "arguments": ""}


def test_the_order_of_chunks() -> None:
    """Metadata, then items as they come, each part closed before the next opens, finish last."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f"}
    chunks = fed(
        CREATED,
        {**CREATED, "type": "response.in_progress"},
        added(thought),
        delta("reasoning_summary_text", "hm", summary_index=0),
        done({**thought, "encrypted_content": "e1"}),
        added(MESSAGE, 1),
        said("I ", 1),
        said("will", 1),
        done(MESSAGE, 1),
        added(call, 2),
        delta("function_call_arguments", '{"a":', 2, item_id="fc_1"),
        delta("function_call_arguments", "1}", 2, item_id="fc_1"),
        done({**call, "arguments": '{"a":1}'}, 2),
        completed(usage={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
    )
    assert [chunk.type for chunk in chunks] == [
        "response-metadata",
        "reasoning-start",
        "reasoning-delta",
        "reasoning-end",
        "text-start",
        "text-delta",
        "text-delta",
        "text-end",
        "tool-call-input-streaming-start",
        "tool-call-delta",
        "tool-call-delta",
        "tool-call-input-streaming-end",
        "tool-call",
        "finish",
    ]
    assert chunks[0] == ResponseMetadata("resp_1", "m", 7.0, "openai")
    assert chunks[-2] == ToolCall("call_1", "f", {"a": 1})
    assert chunks[-1] == FinishChunk("tool-calls", Usage(1, 2, 3), raw_reason="completed")
    assert len({chunk.id for chunk in chunks if isinstance(chunk, TextDelta | ReasoningDelta)}) == 2


# --- the end -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "why", "reason"),
    [
        ("completed", None, "stop"),
        ("incomplete", "max_output_tokens", "length"),
        ("incomplete", "content_filter", "content-filter"),
        ("incomplete", "steered", "other"),
        ("incomplete", None, "other"),
        ("cancelled", None, "other"),
    ],
)
def test_finish_reasons(status: str, why: str | None, reason: str) -> None:
    """Reasons are ours; what the provider wrote is kept beside them."""
    details = {"reason": why} if why else None
    response = {"status": status, "incomplete_details": details}
    finish = fed(said("x"), {"type": f"response.{status}", "response": response})[-1]
    assert finish == FinishChunk(reason, raw_reason=why or status)
    # What the response says counts, where its event says less.
    assert fed(said("x"), completed(**response))[-1] == finish


def test_the_providers_calls_do_not_ask_for_an_answer() -> None:
    """An answer is `tool-calls` if the caller has to run one."""
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    call = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
    assert only(fed(done(search), completed()), FinishChunk).reason == "stop"
    assert only(fed(done(search), done(call, 1), completed()), FinishChunk).reason == "tool-calls"


def test_usage_and_what_else_is_said_at_the_end() -> None:
    """Tokens of every kind; the service tier and Azure's filters are kept as they came."""
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 8,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 18,
    }
    filters = [{"blocked": False, "source_type": "prompt"}]
    last = completed(usage=usage, service_tier="flex", content_filters=filters)
    finish = only(fed(last), FinishChunk)
    assert finish.usage == Usage(10, 8, 18, 5, 4)
    assert finish.provider_metadata == {
        "openai": {"service_tier": "flex", "content_filters": filters}
    }


@pytest.mark.parametrize("events", [[], [CREATED], [CREATED, said("x")], ["[DONE]"]])
def test_a_stream_that_just_stops_is_an_error(events: list[Any]) -> None:
    """Without the protocol's end an answer is incomplete, and asking again may help."""
    decoder = ResponsesDecoder()
    fed(*events, decoder=decoder)
    assert not decoder.done
    with pytest.raises(IncompleteStreamError) as caught:
        decoder.end()
    assert caught.value.is_retryable


def test_after_the_end_nothing_counts() -> None:
    """Not even garbage; another protocol's `[DONE]` is passed over wherever it stands."""
    decoder = ResponsesDecoder()
    assert answer(fed("[DONE]", said("x"), " [DONE]", completed(), decoder=decoder)).text == "x"
    assert decoder.done
    assert fed("garbage", "[DONE]", decoder=decoder) == decoder.end() == []


def test_metadata_comes_first_and_has_the_warnings() -> None:
    """Also where a server does not announce its answer."""
    chunks = fed(said("x"), completed(), decoder=ResponsesDecoder("acme", ["left out"]))
    assert chunks[0] == ResponseMetadata(provider="acme", warnings=["left out"])
    (first, _) = fed(completed(id="r", model="m"))
    assert first == ResponseMetadata("r", "m", provider="openai")


def test_an_answer_that_comes_only_at_the_end() -> None:
    """A server that sends no pieces is read as well; what came in pieces is not said twice."""
    message = {"type": "message", "content": [{"type": "output_text", "text": "all"}]}
    last = completed(output=[message])
    assert answer(fed(CREATED, last)).text == "all"
    assert answer(fed(CREATED, added(MESSAGE), said("all"), done(message), last)).text == "all"
    assert answer(fed(CREATED, added(MESSAGE), done(message), last)).text == "all"


def test_an_item_whose_end_comes_only_with_the_answers() -> None:
    """What was announced is told then, and what was said of it not again."""
    message = {**MESSAGE, "content": [{"type": "output_text", "text": "all"}]}
    last = completed(output=[message, {**CALL, "arguments": '{"a":1}'}])
    chunks = fed(CREATED, added(MESSAGE), said("all"), added(CALL, 1), last)
    assert answer(chunks).text == "all"
    assert only(chunks, ToolCall) == ToolCall("1", "f", {"a": 1})


# --- errors --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        pytest.param(
            {"type": "error", "error": {"code": "insufficient_quota", "message": "told"}},
            QuotaError,
            id="error event",
        ),
        pytest.param(
            {"type": "error", "code": "rate_limit_exceeded", "message": "told", "param": None},
            RateLimitError,
            id="flat error event",
        ),
        pytest.param(
            {
                "type": "response.failed",
                "response": {
                    "status": "failed",
                    "error": {"code": "server_error", "message": "told"},
                },
            },
            ServerError,
            id="failed response",
        ),
        pytest.param(
            {
                "type": "response.completed",
                "response": {
                    "status": "failed",
                    "error": {"code": "content_filter", "message": "told"},
                },
            },
            ContentFilterError,
            id="failed response that completes",
        ),
        pytest.param({"error": {"message": "told"}}, ProviderError, id="a proxy's error"),
    ],
)
def test_an_error_within_the_stream(event: Event, kind: type[ProviderError]) -> None:
    """The provider's own error is told as what it is."""
    with pytest.raises(kind, match="told") as caught:
        fed(CREATED, said("x"), event)
    assert caught.value.body == event


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ("{", "no JSON"),
        ("[1]", "must be a JSON object"),
        (said(5), "delta must be str"),
        (delta("reasoning_text", {"a": 1}), "delta must be str"),
        (delta("function_call_arguments", ["x"]), "delta must be str"),
        ({**said("x"), "output_index": "0"}, "output_index must be int"),
        ({**said("x"), "content_index": [0]}, "index must be int"),
        ({**CREATED, "response": [1]}, "response must be dict"),
        ({**CREATED, "response": {"id": 5}}, "response.id must be str"),
        (completed(usage=[1]), "usage must be dict"),
        (completed(usage={"output_tokens_details": 5}), "output_tokens_details must be dict"),
        (completed(status=5), "response.status must be str"),
        (completed(incomplete_details="x"), "incomplete_details must be dict"),
        (completed(incomplete_details={"reason": 5}), "incomplete_details.reason must be str"),
        (completed(output={"a": 1}), "response.output must be list"),
        (added([1]), "item must be dict"),  # type: ignore[arg-type]  # the fault
        (added({"type": 5}), "item.type must be str"),
        (added({"type": "message", "id": 5}), "item.id must be str"),
        (done({"type": "message", "content": "x"}), "item.content must be list"),
        (done({"type": "message", "content": ["x"]}), "must be dict"),
        (done({"type": "reasoning", "summary": "x"}), "item.summary must be list"),
        (done({"type": "reasoning", "content": "x"}), "item.content must be list"),
        (done({"type": "reasoning", "encrypted_content": 5}), "encrypted_content must be str"),
        (added({"type": "function_call", "call_id": 5}), "item.call_id must be str"),
        (done({"type": "function_call", "arguments": "{}"}), "function_call has no name"),
        (
            {"type": "response.output_text.annotation.added", "annotation": "x"},
            "annotation must be dict",
        ),
    ],
)
def test_what_the_protocol_does_not_allow(event: Event | str, told: str) -> None:
    """The message names the field."""
    with pytest.raises(ProviderStreamError, match=told):
        fed(event)


# --- text ---------------------------------------------------------------------------------


def test_parts_of_a_message() -> None:
    """Each is a part of its own, closed when it is done; a refusal is text to the user."""
    chunks = chunks_of(
        added(MESSAGE),
        said("a"),
        said(""),
        {"type": "response.content_part.done", "output_index": 0, "part": {}},
        said("b", inner=1),
        delta("refusal", "no", content_index=2),
        done(MESSAGE),
    )
    assert [(c.type, getattr(c, "id", ""), getattr(c, "text", "")) for c in chunks] == [
        ("text-start", "0", ""),
        ("text-delta", "0", "a"),
        ("text-end", "0", ""),
        ("text-start", "1", ""),
        ("text-delta", "1", "b"),
        ("text-end", "1", ""),
        ("text-start", "2", ""),
        ("text-delta", "2", "no"),
        ("text-end", "2", ""),
    ]


def test_a_text_closes_when_its_part_is_done() -> None:
    """Whoever holds its last words back need not wait for the rest of the item."""
    part_done = {"type": "response.content_part.done", "output_index": 0, "part": {}}
    assert fed(CREATED, added(MESSAGE), said("a"), part_done)[-1] == TextEnd("0")


def test_items_may_take_turns() -> None:
    """Pieces of two messages that are mixed stay in the part that is theirs."""
    chunks = chunks_of(
        added(MESSAGE), added({**MESSAGE, "id": "msg_2"}, 1), said("a"), said("1", 1), said("b")
    )
    texts = [(chunk.id, chunk.text) for chunk in chunks if isinstance(chunk, TextDelta)]
    assert texts == [("0", "a"), ("1", "1"), ("0", "b")]
    assert not unclosed(chunks)


def test_what_is_known_of_a_text() -> None:
    """The phase of a message stands where its text ends, log probabilities with their piece."""
    logprobs = [{"token": "x", "logprob": -0.5}]
    phased = {**MESSAGE, "phase": "commentary"}
    for first, last in ((phased, MESSAGE), (MESSAGE, phased)):
        end = only(chunks_of(added(first), said("x"), done(last)), TextEnd)
        assert end.provider_metadata == {"openai": {"phase": "commentary"}}
    chunks = chunks_of(added(phased), {**said("x"), "logprobs": logprobs})
    assert only(chunks, TextEnd).provider_metadata == {"openai": {"phase": "commentary"}}
    assert only(chunks, TextDelta).provider_metadata == {"openai": {"logprobs": logprobs}}


def test_ids_that_change_from_event_to_event() -> None:
    """Where an item's id is another each time, its index tells which one is meant."""
    call = {"type": "function_call", "call_id": "1", "name": "f", "arguments": ""}
    chunks = chunks_of(
        added({**MESSAGE, "id": "a"}),
        {**said("x"), "item_id": "b"},
        {**said("y"), "item_id": "c"},
        {"type": "response.content_part.done", "output_index": 0, "item_id": "d", "part": {}},
        done({**MESSAGE, "id": "e", "content": [{"type": "output_text", "text": "xy"}]}),
        added({**call, "id": "f"}, 1),
        delta("function_call_arguments", '{"a":1}', 1, item_id="g"),
        done({**call, "id": "h", "arguments": '{"a":1}'}, 1),
    )
    assert [chunk.type for chunk in chunks] == [
        "text-start",
        "text-delta",
        "text-delta",
        "text-end",
        "tool-call-input-streaming-start",
        "tool-call-delta",
        "tool-call-input-streaming-end",
        "tool-call",
    ]


def test_items_that_are_all_at_one_index() -> None:
    """Where every item is at index 0, its id tells which one is meant."""
    calls = [
        {"type": "function_call", "id": f"fc_{n}", "call_id": n, "name": "f", "arguments": ""}
        for n in ("1", "2")
    ]
    pieces = [
        delta("function_call_arguments", f'{{"a":{n}}}', item_id=f"fc_{n}") for n in ("1", "2")
    ]
    chunks = chunks_of(*map(added, calls), *pieces, *map(done, calls))
    assert [c for c in chunks if isinstance(c, ToolCall)] == [
        ToolCall("1", "f", {"a": 1}),
        ToolCall("2", "f", {"a": 2}),
    ]


# --- whatever comes --------------------------------------------------------------------------

KINDS = st.sampled_from(
    [
        *ResponsesDecoder._handlers,
        "response.output_text.done",
        "response.novelty.delta",
        "",
    ]
)
ITEMS = st.fixed_dictionaries(
    {},
    optional={
        "type": JSON | st.sampled_from(["message", "reasoning", "x_output", "function_call"]),
        "id": JSON | st.just("i"),
        "call_id": JSON,
        "name": JSON,
        "content": JSON | st.lists(st.fixed_dictionaries({"type": JSON, "text": JSON})),
        "summary": JSON,
        "arguments": JSON,
        "encrypted_content": JSON,
        "environment": JSON,
        "result": JSON,
        "error": JSON,
    },
)
EVENTS = st.fixed_dictionaries(
    {"type": KINDS | JSON},
    optional={
        "item": ITEMS | JSON,
        "response": JSON | st.fixed_dictionaries({"status": JSON, "output": st.lists(ITEMS)}),
        "delta": st.text() | JSON,
        "annotation": JSON,
        "output_index": st.integers(0, 1) | JSON,
        "content_index": st.integers(0, 1) | JSON,
        "summary_index": JSON,
        "item_id": JSON | st.just("i"),
        "error": JSON,
        "logprobs": JSON,
    },
)


@given(st.lists(EVENTS | JSON, max_size=8))
def test_whatever_json_comes(events: list[Any]) -> None:
    """It becomes chunks whose parts open and close, or a `ModelError`; never anything else."""
    decoder = ResponsesDecoder()
    chunks: list[Chunk] = []
    try:
        for event in events:
            chunks += decoder.feed(json.dumps(event))
        chunks += decoder.end()
    except ModelError:
        pass
    assert not unclosed(chunks, is_whole=decoder.done)
    kinds = [chunk.type for chunk in chunks]
    assert "response-metadata" not in kinds[1:]
    assert "finish" not in kinds[:-1]


def test_the_work_grows_with_the_stream() -> None:
    """Twice the events take about twice the time: text, calls, and items without end."""

    def seconds(count: int) -> float:
        streams = (
            [orjson.dumps(said("x")).decode()] * count,
            [orjson.dumps(added(CALL)).decode()]
            + [orjson.dumps(delta("function_call_arguments", "1", item_id="fc_1")).decode()]
            * count,
            [orjson.dumps(said("x", n)).decode() for n in range(count)],
        )
        best = float("inf")
        for _ in range(5):
            start = time.process_time()
            for events in streams:
                fed(*events, orjson.dumps(completed()).decode())
            best = min(best, time.process_time() - start)
        return best

    assert seconds(8_000) < 4 * seconds(4_000)
