"""Chat completions as servers speak it: each quirk by itself, and what is refused."""

from __future__ import annotations

import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.chunks import (
    FinishChunk,
    ReasoningDelta,
    ResponseMetadata,
    SourceChunk,
    TextDelta,
    Usage,
)
from streampipe.errors import (
    IncompleteStreamError,
    ModelError,
    ProviderError,
    ProviderStreamError,
    ServerError,
)
from streampipe.models.openai_chat import ChatDecoder
from tests.models.streams import JSON, answer, chunks_of, decoded, delta, event, sse


def test_the_order_of_chunks() -> None:
    """Metadata, then parts as they come, each closed before the next, calls whole at the end."""
    chunks = chunks_of(
        event({"role": "assistant", "content": ""}),
        event({"reasoning_content": "hm"}),
        event({"content": "I will"}),
        event({"tool_calls": [delta('{"a":', index=0, id="1", name="f")]}),
        event({"tool_calls": [delta("1}", index=0)]}),
        event(reason="tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}},
    )
    assert [chunk.type for chunk in chunks] == [
        "response-metadata",
        "reasoning-start",
        "reasoning-delta",
        "reasoning-end",
        "text-start",
        "text-delta",
        "text-end",
        "tool-call-input-streaming-start",
        "tool-call-delta",
        "tool-call-delta",
        "tool-call-input-streaming-end",
        "tool-call",
        "finish",
    ]
    assert chunks[0] == ResponseMetadata("chat-1", "m", 7.0, "openai")
    assert chunks[-1] == FinishChunk("tool-calls", Usage(1, 2, 3), raw_reason="tool_calls")
    assert len({chunk.id for chunk in chunks if isinstance(chunk, TextDelta | ReasoningDelta)}) == 2


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("model_length", "length"),
        ("tool_calls", "tool-calls"),
        ("function_call", "tool-calls"),
        ("content_filter", "content-filter"),
        ("eos_token", "other"),
    ],
)
def test_finish_reasons(raw: str, reason: str) -> None:
    """Reasons are ours; what the provider wrote is kept beside them."""
    finish = chunks_of(event({"content": "x"}, raw))[-1]
    assert isinstance(finish, FinishChunk)
    assert (finish.reason, finish.raw_reason) == (reason, raw)


@pytest.mark.parametrize(
    ("told", "kind"),
    [({}, ProviderError), ({"error": {"code": 502, "message": "up"}}, ServerError)],
)
def test_a_finish_reason_that_is_an_error(told: dict[str, Any], kind: type[ProviderError]) -> None:
    """The answer failed, whether or not the choice says how."""
    choice = {"index": 0, "delta": {"content": "x"}, "finish_reason": "error", **told}
    with pytest.raises(kind):
        chunks_of({"id": "chat-1", "choices": [choice]})


def test_a_finish_reason_that_is_said_again_changes_nothing() -> None:
    """One finish chunk, however often the reason comes, and though null follows it."""
    chunks = chunks_of(
        event({"content": "x"}, "stop"), event({}, "stop"), event({"content": "y"}, None)
    )
    assert answer(chunks).text == "xy"
    assert [chunk.type for chunk in chunks].count("finish") == 1


@pytest.mark.parametrize(
    "tail",
    [
        b"data: [DONE]\n\n",
        b"data:  [DONE] \n\n",
        b"",
    ],
    ids=["done", "done with spaces", "no done"],
)
def test_ways_to_end(tail: bytes) -> None:
    """`[DONE]`, or a finish reason and a clean end of the stream."""
    chunks = decoded([sse(event({"content": "x"}), event(reason="stop"), done=False) + tail])
    assert answer(chunks).finish_reason == "stop"


def test_done_without_a_reason_is_an_end() -> None:
    """The protocol's end counts, though nobody said why."""
    finish = chunks_of(event({"content": "x"}))[-1]
    assert finish == FinishChunk("other")


@pytest.mark.parametrize("events", [[], [event({"content": "x"})], [{"choices": []}]])
def test_a_stream_that_just_stops_is_an_error(events: list[Any]) -> None:
    """Neither `[DONE]` nor a reason: the answer is incomplete, and asking again may help."""
    with pytest.raises(IncompleteStreamError) as caught:
        chunks_of(*events, done=False)
    assert caught.value.is_retryable


def test_the_decoder_says_when_it_is_done() -> None:
    """After `[DONE]` nothing counts any more, not even garbage."""
    decoder = ChatDecoder()
    decoder.feed(orjson.dumps(event({"content": "x"})).decode())
    assert not decoder.done
    assert decoder.feed("[DONE]")
    assert decoder.done
    assert decoder.feed("garbage") == decoder.end() == []


# --- usage ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([event(reason="stop", usage={"prompt_tokens": 3})], id="with the reason"),
        pytest.param(
            [event(reason="stop"), {"choices": [], "usage": {"prompt_tokens": 3}}], id="trailing"
        ),
        pytest.param(
            [event(usage={"prompt_tokens": 1}), event(reason="stop", usage={"prompt_tokens": 3})],
            id="running total",
        ),
        pytest.param(
            [event(usage={"prompt_tokens": 3}), event(reason="stop", usage=None)], id="null later"
        ),
        pytest.param(
            [event(reason="stop", x_groq={"usage": {"prompt_tokens": 3}})], id="in x_groq"
        ),
        pytest.param(
            [{"choices": [{"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 3}}]}],
            id="in the choice",
        ),
    ],
)
def test_usage_is_found_wherever_it_is(events: list[Any]) -> None:
    """The last usage counts, in whichever event it comes."""
    finish = chunks_of(*events)[-1]
    assert isinstance(finish, FinishChunk)
    assert finish.usage == Usage(3, 0, 3)


def test_usage_in_full() -> None:
    """Details become our fields; nulls are zeros; DeepSeek's name for cached tokens is known."""
    finish = chunks_of(
        event(
            reason="stop",
            usage={
                "prompt_tokens": 9,
                "completion_tokens": 5,
                "total_tokens": None,
                "completion_tokens_details": {"reasoning_tokens": 4},
                "prompt_tokens_details": None,
                "prompt_cache_hit_tokens": 2,
            },
        )
    )[-1]
    assert finish == FinishChunk("stop", Usage(9, 5, 14, 4, 2), raw_reason="stop")


# --- text, reasoning, sources --------------------------------------------------------------


@pytest.mark.parametrize(
    "deltas",
    [
        [{"reasoning_content": "hm"}, {"content": "ok"}],
        [{"reasoning": "hm", "content": None}, {"reasoning": None, "content": "ok"}],
        [{"reasoning": "hm", "reasoning_content": "hm"}, {"content": "ok"}],
        [{"reasoning_content": "hm", "content": "ok"}],
        [
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
            {"content": [{"type": "text", "text": "ok"}]},
        ],
        [{"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "ok"}]}],
    ],
)
def test_reasoning_in_many_forms(deltas: list[Any]) -> None:
    """Two field names, both at once, or a list of parts: reasoning first, then text."""
    made = answer(chunks_of(*map(event, deltas), event(reason="stop")))
    assert (made.reasoning, made.text) == ("hm", "ok")


def test_a_refusal_is_text() -> None:
    """A refusal takes the place of content, so the user reads it."""
    made = answer(chunks_of(event({"content": None, "refusal": "No."}), event(reason="stop")))
    assert made.text == "No."


def test_parts_that_alternate_have_ids_of_their_own() -> None:
    """Text after reasoning after text is another part."""
    chunks = chunks_of(
        event({"content": "a"}), event({"reasoning": "b"}), event({"content": "c"}, "stop")
    )
    starts = [c for c in chunks if c.type in ("text-start", "reasoning-start")]
    assert [getattr(chunk, "id", "") for chunk in starts] == ["0", "1", "2"]


def test_sources() -> None:
    """Citations of a stream and annotations of a delta are sources, each address once."""
    note = {"type": "url_citation", "url_citation": {"url": "https://b.example", "title": "B"}}
    chunks = chunks_of(
        event({"content": "x"}, citations=["https://a.example", "https://a.example"]),
        event({"annotations": [note, note]}, citations=["https://a.example"]),
        event(reason="stop", citations=[{"url": "https://c.example", "title": None}, 7]),
    )
    found = [(c.title, c.url) for c in chunks if isinstance(c, SourceChunk)]
    assert found == [
        ("", "https://a.example"),
        ("B", "https://b.example"),
        ("", "https://c.example"),
    ]


def test_only_the_first_answer_counts() -> None:
    """With `n` > 1 there are alternatives; a run has one answer."""
    other = {"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}
    first = event({"content": "yes"}, "stop")
    made = answer(chunks_of({**first, "choices": [*first["choices"], other]}))
    assert (made.text, made.finish_reason) == ("yes", "stop")


def test_events_without_choices_say_nothing() -> None:
    """A filter's report before the answer is not taken for its metadata."""
    report = {"choices": [], "created": 0, "id": "", "model": "", "prompt_filter_results": []}
    chunks = chunks_of(report, event({"content": "x"}, "stop"))
    assert chunks[0] == ResponseMetadata("chat-1", "m", 7.0, "openai")


def test_warnings_are_told_with_the_metadata() -> None:
    """What the request had to leave out is said in the first chunk."""
    decoder = ChatDecoder("groq", ["no top_k"])
    (first, *_) = decoder.feed(orjson.dumps(event({"content": "x"})).decode())
    assert isinstance(first, ResponseMetadata)
    assert (first.provider, first.warnings) == ("groq", ["no top_k"])


# --- what is refused -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"{", "no JSON"),
        (b"hello", "no JSON.*hello"),
        (b"[1]", "JSON object"),
        (b"null", "JSON object"),
        (b'"text"', "JSON object"),
    ],
)
def test_an_event_that_is_no_object_is_refused(data: bytes, told: str) -> None:
    """The error shows an excerpt of it."""
    with pytest.raises(ProviderStreamError, match=told):
        decoded([b"data: " + data + b"\n\n"])


def test_an_excerpt_is_short() -> None:
    """A broken event of a megabyte does not become an error of a megabyte."""
    with pytest.raises(ProviderStreamError) as caught:
        decoded([b"data: " + b"x" * 1_000_000 + b"\n\n"])
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("bad", "where"),
    [
        ({"choices": 7}, "choices"),
        ({"choices": [7]}, r"choices\[\]"),
        (event("x"), "delta"),
        (event({"content": 7}), "content"),
        (event({"content": [7]}), r"content\[\]"),
        (event({"content": [{"type": "text", "text": {}}, {"type": "text", "text": 7}]}), "text"),
        (event({"reasoning": ["x"]}), "reasoning"),
        (event({"tool_calls": {"a": 1}}), "tool_calls"),
        (event({"tool_calls": ["x"]}), r"tool_calls\[\]"),
        (event({"tool_calls": [{"function": "f"}]}), "function"),
        (event({"tool_calls": [delta(index=0, id=7, name="f")]}), "id"),
        (event({"tool_calls": [{"function": {"name": 7}}]}), "name"),
        (event({"tool_calls": [{"function": {"name": "f", "arguments": {}}}]}), "arguments"),
        (event(usage=[1]), "usage"),
        (event(usage={"prompt_tokens_details": [1]}), "prompt_tokens_details"),
        (event(x_groq=7), "x_groq"),
        (event(citations="https://a.example"), "citations"),
        ({"choices": [{"finish_reason": 7}]}, "finish_reason"),
    ],
)
def test_a_field_of_another_type_is_refused(bad: Any, where: str) -> None:
    """The error names the field and shows what stands there."""
    with pytest.raises(ProviderStreamError, match=rf"{where}.* must be"):
        chunks_of(bad)


@pytest.mark.parametrize(
    ("error", "told", "retryable"),
    [
        ({"error": {"message": "overloaded", "code": 503}}, "overloaded", True),
        ({"error": {"message": "bad", "code": 400}}, "bad", False),
        ({"error": {"message": "bad", "code": "x"}}, "bad", False),
        ({"error": {"type": "odd"}}, "odd", False),
        ({"error": "plain"}, "plain", False),
        ({"object": "error", "message": "vllm", "code": 400}, "vllm", False),
    ],
)
def test_an_error_in_the_stream_is_told(error: Any, told: str, *, retryable: bool) -> None:
    """A 200 that turns into an error says what the provider said."""
    with pytest.raises(ProviderError, match=told) as caught:
        chunks_of(event({"content": "x"}), error)
    assert caught.value.is_retryable is retryable


@given(st.lists(st.dictionaries(st.sampled_from(["choices", "usage", "error", "id"]), JSON)))
def test_nothing_but_model_errors(events: list[Any]) -> None:
    """Whatever JSON comes, it is decoded or refused; the decoder itself never breaks."""
    try:
        chunks = chunks_of(*events)
    except ModelError:
        return
    assert chunks[-1].type == "finish"


KEYS = st.sampled_from(["content", "reasoning", "tool_calls", "annotations", "function_call"])


@given(st.lists(st.dictionaries(KEYS, JSON | st.lists(st.dictionaries(st.just("function"), JSON)))))
def test_nothing_but_model_errors_of_deltas(deltas: list[Any]) -> None:
    """The same for whatever stands in a delta."""
    try:
        chunks = chunks_of(*map(event, deltas))
    except ModelError:
        return
    assert chunks[-1].type == "finish"


@pytest.mark.parametrize("kind", ["text", "arguments"])
def test_time_is_linear(kind: str) -> None:
    """Ten times the events take about ten times as long."""
    piece = {"content": "word "} if kind == "text" else {"tool_calls": [delta("1,", index=0)]}
    opening = orjson.dumps(event({"tool_calls": [delta("", index=0, id="1", name="f")]})).decode()
    text = orjson.dumps(event(piece)).decode()

    def seconds(events: int) -> float:
        best = 9.0
        for _ in range(3):
            decoder = ChatDecoder()
            start = time.process_time()  # a busy machine does not count
            decoder.feed(opening)
            for _ in range(events):
                decoder.feed(text)
            decoder.feed("[DONE]")
            best = min(best, time.process_time() - start)
        return best

    assert seconds(20_000) < 30 * seconds(2_000)
