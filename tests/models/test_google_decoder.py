"""Google's streams: each field and each quirk by itself, and what is refused."""

from __future__ import annotations

import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.chunks import (
    Chunk,
    FileChunk,
    FinishChunk,
    RawChunk,
    ReasoningEnd,
    ResponseMetadata,
    SourceChunk,
    TextEnd,
    ToolCall,
    Usage,
)
from streampipe.errors import (
    IncompleteStreamError,
    ModelError,
    OverloadedError,
    ProviderError,
    ProviderStreamError,
    RateLimitError,
)
from streampipe.models._protocol.encoding import digest_of
from streampipe.models.google import GoogleDecoder
from tests.models.streams import JSON, answer, decoded, sse


def event(*parts: Any, reason: str | None = None, **fields: Any) -> dict[str, Any]:
    """An event of one candidate; `fields` are the candidate's."""
    candidate = {"content": {"parts": list(parts), "role": "model"}, "index": 0, **fields}
    if reason is not None:
        candidate["finishReason"] = reason
    return {"candidates": [candidate], "modelVersion": "m", "responseId": "r-1"}


def chunks_of(*events: Any) -> list[Chunk]:
    """The chunks of these events, which come as Google sends them: with CRLF, without an end."""
    data = sse(*events, done=False).replace(b"\n\n", b"\r\n\r\n")
    return decoded([data], GoogleDecoder())


def call(name: str | None = None, signature: str | None = None, **fields: Any) -> dict[str, Any]:
    """A part that is a function call, or goes on with one."""
    part: dict[str, Any] = {"functionCall": {"name": name, **fields} if name else fields}
    return {**part, "thoughtSignature": signature} if signature else part


def piece(path: str, text: str | None = None, *, more: bool = False, **value: Any) -> Any:
    """A part that goes on with a call: the value at a path."""
    partial: dict[str, Any] = {"jsonPath": path, **value}
    if text is not None:
        partial["stringValue"] = text
    if more:
        partial["willContinue"] = True
    return call(partialArgs=[partial], willContinue=True)


def signed(chunk: Any) -> Any:
    """What is noted for the provider on a chunk."""
    return (chunk.provider_metadata or {}).get("google")


def test_the_order_of_chunks() -> None:
    """Metadata, then parts as they come, each closed before the next; calls whole at once."""
    chunks = chunks_of(
        event({"text": "hm", "thought": True}),
        event({"text": "I will"}),
        event({"text": " look."}),
        event(call("f", id="1", args={"a": 1})),
        event({"text": ""}, reason="STOP"),
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
        "tool-call-input-streaming-end",
        "tool-call",
        "finish",
    ]
    assert chunks[0] == ResponseMetadata("r-1", "m", None, "google")
    assert chunks[-2] == ToolCall("1", "f", {"a": 1})
    assert chunks[-1] == FinishChunk("tool-calls", raw_reason="STOP")


def test_metadata() -> None:
    """The time is read where it is one; warnings are told in the first chunk, under our name."""
    decoder = GoogleDecoder("vertex", ["no such thing"])
    first, *_ = decoder.feed('{"createTime": "2026-05-04T20:01:02.264968Z", "candidates": []}')
    assert first == ResponseMetadata(
        created_at=1777924862.264968, provider="vertex", warnings=["no such thing"]
    )
    first, *_ = GoogleDecoder().feed('{"createTime": "now"}')
    assert first == ResponseMetadata(provider="google")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content-filter"),
        ("RECITATION", "content-filter"),
        ("PROHIBITED_CONTENT", "content-filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("OTHER", "other"),
        ("SOMETHING_NEW", "other"),
    ],
)
def test_finish_reasons(raw: str, reason: str) -> None:
    """Reasons are ours; what the provider wrote, and said of it, is kept beside them."""
    finish = chunks_of(event({"text": "x"}, reason=raw, finishMessage="why"))[-1]
    assert finish == FinishChunk(reason, None, {"google": {"finishMessage": "why"}}, raw)


@pytest.mark.parametrize(("raw", "reason"), [("STOP", "tool-calls"), ("MAX_TOKENS", "length")])
def test_a_stop_with_calls_is_for_the_calls(raw: str, reason: str) -> None:
    """The protocol has no word for it; a reason that says more stays what it is."""
    finish = chunks_of(event(call("f"), reason=raw))[-1]
    assert isinstance(finish, FinishChunk)
    assert (finish.reason, finish.raw_reason) == (reason, raw)


def test_tools_at_the_provider_are_no_calls_to_answer() -> None:
    """A stop after code that ran over there is a stop."""
    finish = chunks_of(event({"executableCode": {"code": "1"}}, reason="STOP"))[-1]
    assert isinstance(finish, FinishChunk)
    assert finish.reason == "stop"


def test_a_prompt_that_is_blocked() -> None:
    """It is an answer of its own: nothing, because of the filter."""
    feedback = {"blockReason": "OTHER", "safetyRatings": []}
    chunks = chunks_of({"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 3}})
    noted = {"google": {"promptFeedback": feedback}}
    assert chunks[1:] == [FinishChunk("content-filter", Usage(3), noted, "OTHER")]


@pytest.mark.parametrize(
    "events",
    [[], [event({"text": "x"})], [{}], [{"promptFeedback": {"safetyRatings": []}}]],
    ids=["nothing", "text", "an empty event", "a prompt that is let through"],
)
def test_a_stream_that_just_stops_is_an_error(events: list[Any]) -> None:
    """Without a reason the answer is incomplete, and asking again may help."""
    with pytest.raises(IncompleteStreamError, match="finishReason") as caught:
        chunks_of(*events)
    assert caught.value.is_retryable


def test_what_follows_the_reason_counts() -> None:
    """The reason is not the end: text, usage and sources may come behind it."""
    chunks = chunks_of(
        event({"text": "a"}, reason="STOP"),
        event({"text": "b"}, groundingMetadata={"groundingChunks": [{"web": {"uri": "u"}}]}),
        {"usageMetadata": {"promptTokenCount": 1}},
    )
    assert answer(chunks).text == "ab"
    assert [chunk.type for chunk in chunks].count("finish") == 1
    assert any(isinstance(chunk, SourceChunk) for chunk in chunks)


def test_the_decoder_says_when_it_is_done() -> None:
    """That is at the body's end; from there on nothing counts, not even garbage."""
    decoder = GoogleDecoder()
    decoder.feed(orjson.dumps(event({"text": "x"}, reason="STOP")).decode())
    assert not decoder.done
    assert decoder.end()
    assert decoder.done
    assert decoder.feed("garbage") == decoder.end() == []


def test_only_the_first_answer_counts() -> None:
    """With `candidateCount` > 1 there are alternatives; a run has one answer."""
    first = event({"text": "yes"}, reason="STOP")
    other = event({"text": "no"}, reason="SAFETY")["candidates"][0] | {"index": 1}
    made = answer(chunks_of({**first, "candidates": [*first["candidates"], other]}))
    assert (made.text, made.finish_reason) == ("yes", "STOP")


# --- usage ---------------------------------------------------------------------------------


def test_usage_in_full() -> None:
    """Thoughts are output; what Google's tools gave to read is input; totals are the provider's."""
    finish = chunks_of(
        {
            **event(reason="STOP"),
            "usageMetadata": {
                "promptTokenCount": 9,
                "toolUsePromptTokenCount": 2,
                "candidatesTokenCount": 5,
                "thoughtsTokenCount": 4,
                "cachedContentTokenCount": 3,
                "totalTokenCount": 20,
            },
        }
    )[-1]
    assert finish == FinishChunk("stop", Usage(11, 9, 20, 4, 3), raw_reason="STOP")


def test_the_last_usage_counts() -> None:
    """Totals run; an event that says nothing of tokens takes none away; null is nothing."""
    finish = chunks_of(
        {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 1}},
        {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2}},
        {**event(reason="STOP"), "usageMetadata": {"trafficType": "ON_DEMAND"}},
        {"usageMetadata": None},
    )[-1]
    assert finish == FinishChunk("stop", Usage(9, 2), raw_reason="STOP")


# --- text, thoughts and signatures ---------------------------------------------------------


@pytest.mark.parametrize(
    "parts",
    [
        [{"text": "ok", "thoughtSignature": "s"}],
        [{"text": "ok"}, {"text": "", "thoughtSignature": "s"}],
        [{"text": "ok"}, {"thoughtSignature": "s"}],
    ],
    ids=["with the text", "with an empty text", "by itself"],
)
def test_a_signature_closes_its_text(parts: list[Any]) -> None:
    """It is noted where the text ends, and text behind it is another part."""
    chunks = chunks_of(*map(event, parts), event({"text": "more"}, reason="STOP"))
    ends = [chunk for chunk in chunks if isinstance(chunk, TextEnd)]
    assert [(end.id, signed(end)) for end in ends] == [
        ("0", {"thoughtSignature": "s"}),
        ("1", None),
    ]
    assert answer(chunks).text == "okmore"


def test_a_signature_closes_its_thought() -> None:
    """It stands on the end of the reasoning, as a signature and for the provider."""
    chunks = chunks_of(
        event({"text": "h", "thought": True}),
        event({"text": "m", "thought": True, "thoughtSignature": "s"}),
        event({"text": "ok"}, reason="STOP"),
    )
    (end,) = (chunk for chunk in chunks if isinstance(chunk, ReasoningEnd))
    noted = {"thoughtSignature": "s", "digest": digest_of("hm")}
    assert end == ReasoningEnd("0", "s", {"google": noted})
    assert (answer(chunks).reasoning, answer(chunks).text) == ("hm", "ok")


@pytest.mark.parametrize("is_thought", [True, False])
def test_a_signature_without_words_is_kept(*, is_thought: bool) -> None:
    """Behind a call there is no text to sign: it stands by itself, for the way back."""
    part = {"text": "", "thoughtSignature": "s"} | ({"thought": True} if is_thought else {})
    chunks = chunks_of(event(call("f")), event(part, reason="STOP"))
    (end,) = (chunk for chunk in chunks if isinstance(chunk, ReasoningEnd))
    noted = {"thoughtSignature": "s"} if is_thought else {"thoughtSignature": "s", "thought": False}
    assert (end.signature, signed(end)) == ("s", {**noted, "digest": digest_of("")})


# --- files, sources, the rest --------------------------------------------------------------


def test_files() -> None:
    """Pictures of the answer are files; those of a thought are none, but not lost."""
    picture = {"mimeType": "image/png", "data": "aGk="}
    thought = {"inlineData": picture, "thought": True}
    address = {"mimeType": "video/mp4", "fileUri": "gs://b/v", "displayName": "v"}
    chunks = chunks_of(
        event(thought, {"inlineData": picture, "thoughtSignature": "s"}, {"fileData": address}),
        event(reason="STOP"),
    )
    assert chunks[1:-1] == [
        RawChunk(thought),
        FileChunk("aGk=", "image/png", None, {"google": {"thoughtSignature": "s"}}),
        FileChunk("gs://b/v", "video/mp4", "v"),
    ]


def test_sources() -> None:
    """Grounding and citations are sources, each once, however often they come; and are noted."""
    grounding = {
        "groundingChunks": [
            {"web": {"uri": "https://a.example", "title": "A"}},
            {"retrievedContext": {"title": "Notes", "text": "..."}},
            {"maps": {"uri": "https://m.example", "title": "M"}},
            {"image": {"sourceUri": "https://i.example", "domain": "i"}},
            {"web": 7},
        ]
    }
    chunks = chunks_of(
        event({"text": "x"}, groundingMetadata=grounding),
        event(groundingMetadata=grounding),
        event(
            reason="STOP",
            citationMetadata={"citationSources": [{"uri": "https://a.example"}, {"uri": "c"}]},
        ),
    )
    sources = [chunk for chunk in chunks if isinstance(chunk, SourceChunk)]
    assert [(s.source_type, s.title, s.url) for s in sources] == [
        ("url", "A", "https://a.example"),
        ("document", "Notes", None),
        ("url", "M", "https://m.example"),
        ("url", "i", "https://i.example"),
        ("url", "", "c"),
    ]
    assert len({source.id for source in sources}) == 5
    assert signed(chunks[-1])["groundingMetadata"] == grounding


def test_what_has_no_chunk_is_raw() -> None:
    """A part of a kind that is unknown here is passed on as it is; unknown fields do no harm."""
    part = {"hologram": [1]}
    chunks = chunks_of({**event({"text": "a"}, part, {"text": "b"}, reason="STOP"), "new": 1})
    assert RawChunk(part) in chunks
    assert answer(chunks).text == "ab"


# --- what is refused -----------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"{", b"hello", b"[1]", b"[]", b"[{}]", b"null", b'"text"'])
def test_an_event_that_is_no_object_is_refused(data: bytes) -> None:
    """The error quotes it."""
    with pytest.raises(ProviderStreamError, match="an event"):
        decoded([b"data: " + data + b"\n\n"], GoogleDecoder())


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"candidates": {}}, "candidates"),
        ({"candidates": [1]}, r"candidates\[\]"),
        ({"usageMetadata": [1]}, "usageMetadata"),
        ({"promptFeedback": 1}, "promptFeedback"),
        ({"responseId": 1}, "responseId"),
        ({"candidates": [{"content": []}]}, "content"),
        ({"candidates": [{"content": {"parts": {}}}]}, "content.parts"),
        ({"candidates": [{"finishReason": 1}]}, "finishReason"),
        ({"candidates": [{"groundingMetadata": 1}]}, "groundingMetadata"),
        (event("x"), r"content.parts\[\]"),
        (event({"text": 1}), "text"),
        (event({"text": "", "thoughtSignature": 1}), "thoughtSignature"),
        (event({"functionCall": 1}), "functionCall"),
        (event(call("f", args=[])), "functionCall.args"),
        (event(call(args={"a": 1})), "functionCall.name"),
        (event(call("f", partialArgs=[1])), "partialArgs"),
        (event(call("f", willContinue=True), piece("$.a", numberValue="1")), "numberValue"),
        (event(call("f", willContinue=True), piece("$.a", boolValue=1)), "boolValue"),
        (event(call("f", willContinue=True), piece("$.a", stringValue=1)), "stringValue"),
        (event(call("f", args={"a": orjson.loads(b"[" * 300 + b"]" * 300)})), "too deep"),
        (event({"executableCode": {"a": orjson.loads(b"[" * 300 + b"]" * 300)}}), "too deep"),
        (event({"inlineData": {"data": 1}}), "inlineData.data"),
    ],
)
def test_a_field_of_another_type_is_refused(data: Any, field: str) -> None:
    """The error names the field."""
    with pytest.raises(ProviderStreamError, match=field):
        chunks_of(data)


@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        (429, "RESOURCE_EXHAUSTED", RateLimitError),
        (503, "UNAVAILABLE", OverloadedError),
        (400, "INVALID_ARGUMENT", ProviderError),
    ],
)
def test_an_error_in_the_stream(
    code: int, status: str, kind: type[ProviderError], *, as_list: bool
) -> None:
    """A 200 that turns into an error says what the provider said, as an object or in a list."""
    body = {"error": {"code": code, "message": "told", "status": status}}
    with pytest.raises(kind, match="told") as caught:
        chunks_of(event({"text": "x"}), [body] if as_list else body)
    assert caught.value.is_retryable is (code != 400)


KEYS = ("candidates", "usageMetadata", "promptFeedback", "error", "responseId", "createTime")
NAMES = ("text", "thought", "thoughtSignature", "functionCall", "executableCode", "inlineData")
PARTS = st.dictionaries(
    st.sampled_from((*NAMES, "codeExecutionResult", "toolCall", "toolResponse", "other")),
    JSON
    | st.dictionaries(
        st.sampled_from(("name", "id", "args", "partialArgs", "willContinue", "data", "toolType")),
        JSON
        | st.lists(
            st.fixed_dictionaries(
                {"jsonPath": st.sampled_from(("$.a", "$.a[0]", "$.a.b", "$", "$['b']"))},
                optional={"stringValue": st.text(), "willContinue": JSON, "numberValue": JSON},
            ),
            max_size=3,
        ),
        max_size=4,
    ),
    max_size=3,
)


@given(st.lists(st.dictionaries(st.sampled_from(KEYS), JSON), max_size=4))
def test_nothing_but_model_errors(events: list[Any]) -> None:
    """Whatever JSON comes, it is decoded or refused; the decoder itself never breaks."""
    try:
        chunks = chunks_of(*events)
    except ModelError:
        return
    assert chunks[-1].type == "finish"


@given(st.lists(st.lists(PARTS, max_size=3), max_size=4))
def test_nothing_but_model_errors_of_parts(events: list[list[Any]]) -> None:
    """The same for whatever stands in the parts of an answer."""
    try:
        chunks = chunks_of(*(event(*parts) for parts in events), event(reason="STOP"))
    except ModelError:
        return
    assert chunks[-1].type == "finish"


@pytest.mark.parametrize("kind", ["text", "one argument", "many arguments"])
def test_time_is_linear(kind: str) -> None:
    """Ten times the events take about ten times as long."""
    opening = orjson.dumps(event(call("f", willContinue=True))).decode()
    text = orjson.dumps(event({"text": "word "})).decode()
    more = orjson.dumps(event(piece("$.a", "word ", more=True))).decode()

    def events(count: int) -> list[str]:
        if kind == "many arguments":
            parts = (piece(f"$.a[{index}].b", "word") for index in range(count))
            return [orjson.dumps(event(part)).decode() for part in parts]
        return [text if kind == "text" else more] * count

    def seconds(count: int) -> float:
        best = 9.0
        told = events(count)
        for _ in range(3):
            decoder = GoogleDecoder()
            start = time.process_time()  # a busy machine does not count
            decoder.feed(opening)
            for data in told:
                decoder.feed(data)
            decoder.feed('{"candidates": [{"finishReason": "STOP"}]}')
            decoder.end()
            best = min(best, time.process_time() - start)
        return best

    assert seconds(10_000) < 30 * seconds(1_000)
