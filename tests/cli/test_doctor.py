"""`streampipe doctor`: what is found of providers that are well, and of many that are not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from streampipe.chunks import Chunk, FinishChunk, TextDelta, Usage
from streampipe.cli._doctor import ADVICE, CHECK_NAMES, CheckResult
from streampipe.contracts import ModelRequest
from streampipe.errors import (
    AuthenticationError,
    ChunkTimeoutError,
    ConnectTimeoutError,
    FirstChunkTimeoutError,
    InvalidRequestError,
    ModelConnectionError,
    QuotaError,
    RateLimitError,
)
from streampipe.models import register_provider
from streampipe.testing import (
    Answer,
    ModelServer,
    ScriptedModel,
    call,
    delay,
    fail,
    faulty,
    reasoning,
    turn,
)
from streampipe.testing._protocols import PROTOCOLS, ProtocolName
from tests.cli.providers import (
    ALL_OK,
    ASKING,
    CALL,
    NUMBERS,
    OBJECT,
    REFUSED,
    SHORT,
    TEXT,
    TOLD,
    UNHEARD_OF,
    WELL,
    examined,
    examined_in_no_time,
    forget_providers,
    in_each_protocol,
    quick,
    refusal,
    results_of,
    scripted,
    statuses,
)


@pytest.fixture(autouse=True)
def providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The providers as they are without a key; what a test registers is gone afterwards."""
    forget_providers(monkeypatch)


# --- a provider that is well -------------------------------------------------------------------


@in_each_protocol
async def test_a_provider_that_is_well(protocol: ProtocolName) -> None:
    """In each protocol every check is made by its own calls, and is fine."""
    async with ModelServer(WELL) as server:
        results = await examined(server, protocol)
        assert statuses(results) == ALL_OK
        server.assert_complete()
        await server.requests[4].wait()
        assert [request.completed for request in server.requests] == [True] * 4 + [False, True]
    assert all(result.advice is None for result in results.values())
    address = f"http://{server.requests[0].headers['host']}{PROTOCOLS[protocol].prefix}"
    assert results["key and address"].seen == f"asking {address} with a key"
    assert "3 pieces" in results["text"].seen
    assert "finish reason 'stop'" in results["text"].seen
    assert results["reasoning"].seen.startswith("13 characters; ")
    tool = 'called parcel({"order":7}), then answered "It is in Porto."'
    assert results["tool call"].seen == tool
    assert '"rivers":["Douro"]' in results["structured output"].seen
    assert results["cancel"].seen.startswith("closed in ")
    assert results["unknown model"].error == "InvalidRequestError"


@in_each_protocol
async def test_every_check_that_asks_tells_how_long_it_took(protocol: ProtocolName) -> None:
    """The first piece comes no later than the end; what only looks on has taken no time."""
    async with ModelServer(WELL) as server:
        results = await examined(server, protocol)
    for name, result in results.items():
        assert (result.total is not None) is (name in ASKING)
        if result.first_chunk is not None:
            assert 0 < result.first_chunk <= (result.total or 0)
    timed = [name for name, result in results.items() if result.first_chunk is not None]
    assert timed == ["text", "tool call", "structured output", "cancel"]


def test_the_pace_is_that_of_the_answer() -> None:
    """First piece and rate are measured from piece to piece, on the loop's own clock."""
    slow = [delay(0.5), "one", delay(0.1), " two", delay(0.1), " three", delay(2)]
    result = scripted(text=slow)["text"]
    assert result.first_chunk == pytest.approx(0.5)
    assert result.total == pytest.approx(2.7)
    assert result.rate == pytest.approx(10)
    assert result.seen.startswith("streams: 3 pieces")


def test_the_wait_for_a_second_step_is_no_pace() -> None:
    """Between a tool's result and the next answer nothing is written, so nothing is measured."""
    calls = [call("parcel", '{"order": 7}')]
    told = [delay(60 - 30.5), "It is", delay(0.25), " in", delay(0.25), " Porto."]
    assert scripted(call=calls, told=told)["tool call"].rate == pytest.approx(4)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (["one, two, three"], "does not stream: all came in one piece"),
        ([reasoning("a"), delay(1), "one"], "does not stream: all came in one piece"),
        (["one,", " two"], "does not stream: 2 pieces came all at once"),
        (["one,", delay(1e-5), " two"], "does not stream: 2 pieces came all at once"),
    ],
)
def test_an_answer_that_does_not_stream_is_told(text: list[Any], seen: str) -> None:
    """It is an answer all the same; that it came in one go is said of it."""
    result = scripted(text=text)["text"]
    assert (result.status, result.seen.partition(";")[0]) == ("ok", seen)


@pytest.mark.parametrize(
    ("usage", "seen"),
    [
        (Usage(7, 40), "7 tokens in, 40 out"),
        (Usage(), "no usage told"),
    ],
)
def test_usage_is_told(usage: Usage, seen: str) -> None:
    """What the call cost, or that the provider does not say."""
    assert seen in scripted(text=turn("one", finish_reason="length", usage=usage))["text"].seen


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (turn("one", usage=Usage(7, 40)), "none came"),
        (turn("one", usage=Usage(7, 40, 0, 30)), "30 tokens of reasoning, of which none is shown"),
    ],
)
def test_reasoning_that_is_not_shown_is_not_supported(text: Any, seen: str) -> None:
    """A provider that shows none is well; what it bills is told."""
    result = scripted(text=text)["reasoning"]
    assert (result.status, result.seen) == ("not supported", seen)
    assert result.is_fine


# --- what a provider cannot do -----------------------------------------------------------------


@in_each_protocol
async def test_a_provider_without_tools(protocol: ProtocolName) -> None:
    """A refusal of tools is no failure, and the other checks are made."""
    script = [TEXT, refusal("this model does not support tools"), OBJECT, NUMBERS, REFUSED]
    async with ModelServer(script) as server:
        results = await examined(server, protocol)
    assert statuses(results) == ALL_OK | {"tool call": "not supported"}
    assert results["tool call"].error == "InvalidRequestError"
    assert results["tool call"].advice is None


@in_each_protocol
async def test_a_provider_without_schemas(protocol: ProtocolName) -> None:
    """A refusal of structured output is no failure, and the other checks are made."""
    script = [TEXT, CALL, TOLD, refusal("response_format is unavailable"), NUMBERS, REFUSED]
    async with ModelServer(script) as server:
        results = await examined(server, protocol)
    assert statuses(results) == ALL_OK | {"structured output": "not supported"}


def test_a_model_that_calls_no_tool() -> None:
    """An answer in place of the call tells that tools are not used; what was said is quoted."""
    model = ScriptedModel([TEXT, ["No ", "idea."], OBJECT, ["one"]])
    result = examined_in_no_time(model)["tool call"]
    seen = 'answered without calling the tool: "No idea."'
    assert (result.status, result.seen) == ("not supported", seen)


@pytest.mark.parametrize("message", ["the model 'x' does not exist", "bad request"])
async def test_another_refusal_is_a_failure(message: str) -> None:
    """A 400 that is not about the feature does not count as a feature that is missing."""
    script = [TEXT, refusal(message), refusal(message), NUMBERS, REFUSED]
    async with ModelServer(script) as server:
        results = await examined(server)
    failed = {"tool call": "failed", "structured output": "failed"}
    assert statuses(results) == ALL_OK | failed
    assert message in results["tool call"].seen
    assert results["tool call"].advice == ADVICE[InvalidRequestError]


def test_a_server_that_takes_any_model() -> None:
    """A local server may not look at the name; that is told, and is no failure."""
    result = examined_in_no_time(ScriptedModel(quick()), ["hello"])
    assert result["unknown model"].status == "not supported"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (AuthenticationError("not yours"), "ok"),
        (InvalidRequestError("no such model"), "ok"),
        (QuotaError("no credit"), "failed"),
        (RateLimitError("slow down", is_retryable=True), "failed"),
    ],
)
def test_the_class_of_a_refusal_is_shown(error: Exception, status: str) -> None:
    """A model that does not exist is to be refused as such; any other refusal is none."""
    result = examined_in_no_time(ScriptedModel(quick()), fail(error))["unknown model"]
    assert (result.status, result.error) == (status, type(error).__name__)
    assert str(error) in result.seen


# --- what goes wrong ---------------------------------------------------------------------------


@in_each_protocol
async def test_a_key_that_is_refused(protocol: ProtocolName) -> None:
    """One call tells it; the others are not made, and what to do is said."""
    async with ModelServer([fail(status=401)]) as server:
        results = await examined(server, protocol)
        assert len(server.requests) == 1
    assert results["text"].error == "AuthenticationError"
    assert results["text"].advice == ADVICE[AuthenticationError]
    skipped = dict.fromkeys(CHECK_NAMES[2:], "skipped")
    assert statuses(results) == {"key and address": "ok", "text": "failed", **skipped}
    assert results["cancel"].seen == "the key is refused"


@in_each_protocol
async def test_a_provider_that_is_down(protocol: ProtocolName) -> None:
    """Where nobody listens the other checks are not made."""
    async with ModelServer() as server:
        model = server.model(protocol=protocol, max_retries=0)
    register_provider("tested", lambda _: model)
    results = await results_of()
    assert results["text"].error == "ModelConnectionError"
    assert results["text"].advice == ADVICE[ModelConnectionError]
    assert results["tool call"] == CheckResult(
        name="tool call", status="skipped", seen="nobody answers"
    )


@pytest.mark.parametrize(
    ("error", "others"),
    [
        (ModelConnectionError("reset"), "skipped"),
        (ConnectTimeoutError("no connection in 10 s"), "skipped"),
        (FirstChunkTimeoutError("no chunk in 300 s"), "ok"),
        (ChunkTimeoutError("nothing for 300 s"), "ok"),
    ],
)
def test_who_is_silent_is_asked_again(error: Exception, others: str) -> None:
    """A provider that is slow to answer is not one that cannot be reached."""
    results = scripted(text=[fail(error)])
    asked = [results[name].status for name in ASKING]
    assert asked == ["failed", *[others] * 4]


@in_each_protocol
async def test_a_page_where_a_stream_should_be(protocol: ProtocolName) -> None:
    """A proxy's page is no answer: every check says so by itself."""
    page = Answer(b"<html>Welcome</html>", headers={"content-type": "text/html"})
    async with ModelServer([page], repeat=True) as server:
        results = await examined(server, protocol)
        assert len(server.requests) == len(ASKING)
    for name in ASKING:
        assert (results[name].status, results[name].error) == ("failed", "ProviderStreamError")
        assert "'text/html'" in results[name].seen
        assert "check the address" in str(results[name].advice)
    assert results["reasoning"].status == "skipped"


@in_each_protocol
@pytest.mark.parametrize("fault", ["cut", "end"])
async def test_a_stream_that_stops(protocol: ProtocolName, fault: Any) -> None:
    """Half an answer is a failure, though text has come; the other checks are made."""
    half = faulty(["one,", " two"], fault, at=b"one,", whole_event=True)
    async with ModelServer([half, *WELL[1:]]) as server:
        results = await examined(server, protocol)
    broken = {"text": "failed", "reasoning": "skipped"}
    assert statuses(results) == ALL_OK | broken
    assert results["text"].error == "IncompleteStreamError"
    assert results["text"].first_chunk is not None


@in_each_protocol
async def test_a_provider_that_hangs(protocol: ProtocolName) -> None:
    """A check has its own time; then its connection is closed, and the others are made."""
    silent = faulty(["one,", " two"], "stall", at=b"one,", whole_event=True)
    async with ModelServer([silent, *WELL[1:]]) as server:
        results = await examined(server, protocol, limit=SHORT)
        await server.requests[0].wait()
        assert not server.requests[0].completed
    assert statuses(results) == ALL_OK | {"text": "failed", "reasoning": "skipped"}
    assert results["text"].seen == "not over in 1 s; pieces of an answer so far: 1"


@pytest.mark.parametrize("name", ASKING)
def test_each_check_has_its_own_time(name: str) -> None:
    """Whichever one hangs fails after the time for it, and the others are made."""
    turns: dict[str, Any] = dict(
        zip(ASKING, [TEXT, CALL, OBJECT, ["one"], fail(UNHEARD_OF)], strict=True)
    )
    turns[name] = [delay(3600), "too late"]
    told = [] if name == "tool call" else [TOLD]
    unknown = turns.pop("unknown model")
    text, tool_call, *others = turns.values()
    model = ScriptedModel([text, tool_call, *told, *others])
    results = examined_in_no_time(model, unknown)
    failed = {name for name, status in statuses(results).items() if status == "failed"}
    assert failed == {name}
    assert results[name].total == pytest.approx(30)
    assert results[name].seen == "not over in 30 s; pieces of an answer so far: 0"
    assert results[name].advice == ADVICE[TimeoutError]


def test_an_answer_without_text() -> None:
    """A finish alone is no answer, whatever its reason."""
    result = scripted(text=turn("  \n", finish_reason="length"))["text"]
    assert result.status == "failed"
    assert result.seen.startswith("an answer without text; finish reason 'length'")


def test_arguments_that_do_not_fit() -> None:
    """A call whose arguments do not validate is a failure, told in the words of the validation."""
    results = scripted(call=[call("parcel", {"order": "seven"})], told=["Sorry."])
    assert results["tool call"].status == "failed"
    assert "no call of the tool is valid: " in results["tool call"].seen
    assert "order" in results["tool call"].seen


def test_arguments_that_fit_in_the_end() -> None:
    """A model that corrects itself can call tools; how often it failed is told."""
    bad = [call("parcel", "{")]
    model = ScriptedModel([TEXT, bad, CALL, TOLD, OBJECT, ["one"]])
    result = examined_in_no_time(model)["tool call"]
    assert result.status == "ok"
    assert "calls before it that were not valid: 1" in result.seen


def test_a_call_that_leads_nowhere() -> None:
    """A model that has nothing to say of the tool's result fails."""
    result = scripted(told=[" "])["tool call"]
    assert (result.status, result.seen) == (
        "failed",
        'called parcel({"order":7}), then gave no answer',
    )


def test_calls_without_end_are_limited() -> None:
    """A model that goes on calling costs three calls and no more."""
    model = ScriptedModel([TEXT, CALL, CALL, CALL, OBJECT, ["one"]])
    assert examined_in_no_time(model)["tool call"].status == "failed"
    model.assert_complete()


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        (["Porto lies in Portugal."], "the answer is no JSON"),
        (['{"name": "Porto"}'], "country: Field required"),
        ([""], "the answer is no JSON"),
    ],
)
@in_each_protocol
async def test_an_answer_that_does_not_validate(
    protocol: ProtocolName, answer: list[str], seen: str
) -> None:
    """An answer that is no JSON, or other JSON, fails with the place at fault."""
    async with ModelServer([TEXT, CALL, TOLD, answer, NUMBERS, REFUSED]) as server:
        results = await examined(server, protocol)
    assert statuses(results) == ALL_OK | {"structured output": "failed"}
    assert results["structured output"].error == "StructuredOutputError"
    assert seen in results["structured output"].seen


def test_a_call_in_place_of_an_object() -> None:
    """A model that calls what was not offered has not given the object."""
    result = scripted(object=[call("answer", {"name": "Porto"})])["structured output"]
    assert (result.status, result.seen) == ("failed", "no object; finish reason 'tool-calls'")


def test_nothing_to_cancel() -> None:
    """An answer without a piece of text cannot show that cancelling works."""
    result = scripted(numbers=turn())["cancel"]
    assert (result.status, result.seen) == ("failed", "the answer ended before a piece of it came")


def test_a_failure_before_there_is_something_to_cancel() -> None:
    """The failure of the call is what is told."""
    result = scripted(numbers=[fail(QuotaError("no credit"))])["cancel"]
    assert (result.error, result.seen) == ("QuotaError", "no credit")


class Clinging(ScriptedModel):
    """Takes its time to let go of a call that is cancelled."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Answer as scripted."""
        last = self.calls == len(self._turns) - 1
        try:
            async for chunk in super().stream(request):
                yield chunk
        finally:
            if last:
                await asyncio.sleep(7)


def test_a_connection_that_is_closed_late() -> None:
    """A call that goes on after it was cancelled is a failure; for how long is told."""
    result = examined_in_no_time(Clinging(quick()))["cancel"]
    assert (result.status, result.seen) == (
        "failed",
        "the connection was closed only after 7000 ms",
    )


class Buggy:
    """A model of somebody's own that raises what no contract allows."""

    provider = model_id = "buggy"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Answer the text check, then break."""
        if request.tools or request.structured_output:
            raise KeyError("oops")
        yield TextDelta("0", "one")
        yield FinishChunk()


def test_a_model_with_a_bug_fails_its_checks() -> None:
    """Whatever a model raises is a row, not the end of the examination."""
    results = examined_in_no_time(Buggy())
    assert results["key and address"].seen == "a Buggy of your own"
    assert results["tool call"].error == "ModelError"
    assert "KeyError: 'oops'" in results["tool call"].seen
    assert results["cancel"].status == "ok"
