"""`streampipe doctor`: what is found of providers that are well, and of many that are not."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.chunks import Chunk, FinishChunk, TextDelta, Usage
from streampipe.cli._doctor import ADVICE, CHECK_NAMES, WIDEST, CheckResult, check_provider
from streampipe.contracts import Model, ModelRequest
from streampipe.errors import (
    AuthenticationError,
    ConfigurationError,
    InvalidRequestError,
    ModelConnectionError,
    QuotaError,
    RateLimitError,
)
from streampipe.models import _call, _catalog, register_provider
from streampipe.testing import (
    Answer,
    ModelServer,
    ScriptedModel,
    call,
    delay,
    fail,
    faulty,
    reasoning,
    run_virtual,
    turn,
)
from streampipe.testing._protocols import PROTOCOLS, ProtocolName
from tests.cli.commands import RunCommand

KEY = "canary-4f9a77e1b2c3d4"
SHORT = 1.0  # seconds for a check of which one hangs: the others take milliseconds

# What a provider that is well answers, call by call.
TEXT: list[Any] = [reasoning("Let me count."), "one,", " two,", " three"]
CALL: list[Any] = [call("parcel", {"order": 7}, pieces=3)]
TOLD: list[Any] = ["It is in ", "Porto."]
OBJECT: list[Any] = ['{"name": "Porto", "country": ', '"Portugal", "rivers": ["Douro"]}']
NUMBERS = faulty(["one ", "two ", "three"], "stall", at=b"two")
REFUSED = fail(status=404)
UNHEARD_OF = InvalidRequestError("unheard of")
WELL: list[Any] = [TEXT, CALL, TOLD, OBJECT, NUMBERS, REFUSED]
ASKING = ("text", "tool call", "structured output", "cancel", "unknown model")

Results = Mapping[str, CheckResult]


@pytest.fixture(autouse=True)
def providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """No keys of the machine, no pauses; what a test registers is gone afterwards."""
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(_call, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(_catalog, "_PROVIDERS", dict(_catalog._PROVIDERS))


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> ProtocolName:
    """Each protocol that a model server speaks."""
    name: ProtocolName = request.param
    return name


async def results_of(limit: float = 30.0, **options: Any) -> Results:
    """What each check finds of the provider that is registered as `tested`."""
    found = [each async for each in check_provider("tested/model", limit=limit, **options)]
    assert [each.name for each in found] == list(CHECK_NAMES)
    return {each.name: each for each in found}


async def examined(
    server: ModelServer, protocol: ProtocolName = "openai-chat", limit: float = 30.0
) -> Results:
    """What each check finds of a server."""
    register_provider(
        "tested", lambda name: server.model(name, protocol=protocol, api_key=KEY, max_retries=0)
    )
    return await results_of(limit)


def scripted(**turns: Any) -> Results:
    """What each check finds of a scripted model, in no time; the rest of it is well."""
    pieces = {"text": TEXT, "call": CALL, "told": TOLD, "object": OBJECT, "numbers": ["one"]}
    model = ScriptedModel([*{**pieces, **turns}.values()])
    return examined_in_no_time(model)


def examined_in_no_time(model: Model, unknown: Any = fail(UNHEARD_OF)) -> Results:  # noqa: B008 - frozen
    """What each check finds of a model, on a jumping clock; another name is told `unknown`."""
    stranger = ScriptedModel([unknown])
    register_provider("tested", lambda name: model if name == "model" else stranger)
    return run_virtual(results_of())


def statuses(results: Results) -> dict[str, str]:
    """The status of each check by its name."""
    return {name: result.status for name, result in results.items()}


ALL_OK = dict.fromkeys(CHECK_NAMES, "ok")


# --- a provider that is well -------------------------------------------------------------------


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


def refusal(message: str) -> Any:
    """A 400 that says so, in words that every protocol's body has."""
    return fail(status=400, body={"error": {"message": message}})


async def test_a_provider_without_tools(protocol: ProtocolName) -> None:
    """A refusal of tools is no failure, and the other checks are made."""
    script = [TEXT, refusal("this model does not support tools"), OBJECT, NUMBERS, REFUSED]
    async with ModelServer(script) as server:
        results = await examined(server, protocol)
    assert statuses(results) == ALL_OK | {"tool call": "not supported"}
    assert results["tool call"].error == "InvalidRequestError"
    assert results["tool call"].advice is None


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
    result = examined_in_no_time(ScriptedModel(_quick()), ["hello"])
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
    result = examined_in_no_time(ScriptedModel(_quick()), fail(error))["unknown model"]
    assert (result.status, result.error) == (status, type(error).__name__)
    assert str(error) in result.seen


def _quick() -> list[Any]:
    """A script for all checks but that of an unknown model."""
    return [TEXT, CALL, TOLD, OBJECT, ["one"]]


# --- what goes wrong ---------------------------------------------------------------------------


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


async def test_a_provider_that_hangs(protocol: ProtocolName) -> None:
    """A check has its own time; then its connection is closed, and the others are made."""
    silent = faulty(["one,", " two"], "stall", at=b"one,", whole_event=True)
    async with ModelServer([silent, *WELL[1:]]) as server:
        results = await examined(server, protocol, limit=SHORT)
        await server.requests[0].wait()
        assert not server.requests[0].completed
    assert statuses(results) == ALL_OK | {"text": "failed", "reasoning": "skipped"}
    assert results["text"].seen == "1 pieces of an answer came within 1 s, and no end"


@pytest.mark.parametrize("name", ASKING)
def test_each_check_has_its_own_time(name: str) -> None:
    """Whichever one hangs fails after the time for it, and the others are made."""
    hangs = [delay(3600), "too late"]
    turns = dict(zip(ASKING, (*_quick()[:2], *_quick()[3:], None), strict=True)) | {name: hangs}
    told = [] if name == "tool call" else [TOLD]
    unknown = turns.pop("unknown model") or fail(UNHEARD_OF)
    model = ScriptedModel([turns["text"], turns["tool call"], *told, *list(turns.values())[2:]])
    results = examined_in_no_time(model, unknown)
    failed = {name for name, status in statuses(results).items() if status == "failed"}
    assert failed == {name}
    assert results[name].total == pytest.approx(30)
    assert results[name].seen == "no answer came within 30 s, and no end"
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
    assert "after 1 invalid calls" in result.seen


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
    result = examined_in_no_time(Clinging(_quick()))["cancel"]
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


# --- key and address ---------------------------------------------------------------------------


async def test_a_missing_key_is_told_before_any_connection() -> None:
    """The variable is named, nothing is asked."""
    async with ModelServer(WELL) as server:
        found = [r async for r in check_provider("openai/gpt-5-mini", base_url=server.base_url)]
        assert not server.connections
    assert found[0].error == "ConfigurationError"
    assert "set OPENAI_API_KEY " in found[0].seen
    assert [each.status for each in found] == ["failed"] + ["skipped"] * (len(CHECK_NAMES) - 1)


@pytest.mark.parametrize("router_id", ["", "gpt-5-mini", "openai/", "nobody/model"])
async def test_a_model_that_nobody_has(router_id: str) -> None:
    """What is wrong with the name is told by the first check."""
    found = [each async for each in check_provider(router_id)]
    assert found[0].status == "failed"
    assert "providers: " in found[0].seen or "known: " in found[0].seen
    assert {each.status for each in found[1:]} == {"skipped"}


async def test_another_address_is_given_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """`base_url` is asked in place of the provider's own address, with the provider's key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with ModelServer([TEXT, fail(status=401)], repeat=True) as server:
        address = server.base_url.replace("//", "//user:password@") + "?token=secret"
        found = check_provider("openai-chat/gpt", base_url=server.base_url)
        assert [(await anext(found)).status, (await anext(found)).status] == ["ok", "ok"]
        await found.aclose()  # type: ignore[attr-defined]  # a generator has it
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert server.requests[0].body["model"] == "gpt"
        found = check_provider("openai-chat/gpt", base_url=address)
        seen = (await anext(found)).seen
        await found.aclose()  # type: ignore[attr-defined]  # as above
    assert seen == f"asking {server_url(server)} with a key"


def server_url(server: ModelServer) -> str:
    """Where a server has listened, as its last request tells."""
    return f"http://{server.requests[0].headers['host']}/v1"


@pytest.mark.parametrize("base_url", ["localhost", "ftp://localhost", "http://user:hidden@"])
async def test_an_address_that_is_none(base_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused without being shown: it may hold a password."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    first = await anext(check_provider("openai-chat/gpt", base_url=base_url))
    assert (first.status, first.error) == ("failed", "ConfigurationError")
    assert "base_url must be an address" in first.seen
    assert "hidden" not in first.seen


async def test_a_model_of_your_own_has_no_address() -> None:
    """Another address for what is not asked over HTTP is refused."""
    register_provider("tested", lambda _: ScriptedModel([]))
    results = await results_of(base_url="http://localhost:1")
    assert results["key and address"].seen == (
        "--base-url: a ScriptedModel has no address to change; leave it out"
    )


@pytest.mark.parametrize("limit", [0.0, -1.0, math.inf, math.nan])
async def test_a_limit_that_is_none(limit: float) -> None:
    """The time of a check is a positive number of seconds."""
    with pytest.raises(ConfigurationError, match="timeout must be a positive number of seconds"):
        await anext(check_provider("openai/gpt", limit=limit))


# --- what is shown -----------------------------------------------------------------------------

ECHOES: Mapping[str, Callable[[], Iterable[Any]]] = {
    "text": lambda: [[f"Your key is {KEY}. " * 9], CALL, [KEY], OBJECT, [KEY], [KEY]],
    "errors": lambda: [refusal(f"bad key {KEY}")] * 5,
    "statuses": lambda: [fail(status=403, body=f"go away, {KEY}")] * 5,
    "pages": lambda: [Answer(KEY.encode() * 50, headers={"content-type": "text/html"})] * 5,
    "arguments": lambda: [TEXT, [call("parcel", {"order": KEY})], [KEY], [f'{{"name":"{KEY}"}}']],
    "names": lambda: [TEXT, [call(KEY, {})], [KEY], OBJECT, NUMBERS, REFUSED],
    "objects": lambda: [TEXT, CALL, TOLD, [f'{{"name":"{KEY}","country":"","rivers":["{KEY}"]}}']],
}


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["table", "json"])
@pytest.mark.parametrize("place", ECHOES)
async def test_the_key_is_never_shown(
    place: str,
    options: list[str],
    command: RunCommand,
    protocol: ProtocolName,
) -> None:
    """Wherever the provider quotes the key, and however much is cut off of what it says."""
    async with ModelServer(ECHOES[place]()) as server:
        register_provider("tested", lambda name: server.model(name, protocol=protocol, api_key=KEY))
        ran = await asyncio.to_thread(command, "doctor", "tested/model", *options)
    assert server.requests
    assert ran.exit_code in (0, 1), ran.output
    assert KEY[:12] not in ran.output + ran.stderr
    assert "text" in ran.stdout


@given(st.text())
def test_what_is_seen_is_fit_for_a_terminal(message: str) -> None:
    """Whatever a provider says is shown short, on one line, and as nothing a terminal obeys."""

    async def first() -> CheckResult:
        model = ScriptedModel([[fail(AuthenticationError(message))]])
        register_provider("said", lambda _: model)
        found = [each async for each in check_provider("said/model")]
        return found[1]

    result = run_virtual(first())
    assert result.seen.isprintable()
    assert len(result.seen) <= WIDEST + 4
    assert json.loads(result.to_json())["seen"] == result.seen


@pytest.fixture
def well(command: RunCommand) -> Callable[..., Any]:
    """Runs the command on a scripted provider, well unless said otherwise."""

    def run(*options: str, text: Any = TEXT) -> Any:
        models = {"model": ScriptedModel([text, *_quick()[1:]])}
        stranger = ScriptedModel([fail(UNHEARD_OF)])
        register_provider("tested", lambda name: models.get(name, stranger))
        return command("doctor", "tested/model", *options)

    return run


def test_the_table_has_a_row_for_each_check(well: Callable[..., Any]) -> None:
    """Names, statuses and findings stand in a plain table; all is fine, so the command succeeds."""
    ran = well()
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.isascii()
    assert "\x1b" not in ran.stdout
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in ran.stdout.splitlines()]
    rows = [row for row in cells if len(row) == 6]
    assert rows[0] == ["check", "status", "first ms", "total ms", "chunks/s", "what was seen"]
    assert [row[:2] for row in rows[1:]] == [[name, "ok"] for name in CHECK_NAMES]
    assert rows[-1][-1] == "InvalidRequestError: refused: unheard of"


def test_markup_in_what_is_seen_is_no_markup(well: Callable[..., Any]) -> None:
    """Brackets that a provider writes are shown as they are."""
    assert "[/red] [bold]oops" in well(text=[fail(QuotaError("[/red] [bold]oops"))]).stdout


def test_a_failure_ends_with_1_and_says_what_to_do(well: Callable[..., Any]) -> None:
    """The error's class and message stand in the table, advice below them."""
    ran = well(text=[fail(QuotaError("no credit"))])
    assert (ran.exit_code, ran.stderr) == (1, "")
    assert "QuotaError: no credit" in ran.stdout
    assert "> check the account's credit" in ran.stdout


def test_what_is_not_supported_ends_with_0(well: Callable[..., Any]) -> None:
    """A provider is not to blame for what it does not offer."""
    ran = well(text=["one", " two"])
    assert "not supported" in ran.stdout
    assert ran.exit_code == 0


def test_a_check_that_was_skipped_ends_with_1(well: Callable[..., Any]) -> None:
    """What was not looked at is not known to work."""
    ran = well("--json", text=[fail(AuthenticationError("no"))])
    assert [json.loads(line)["status"] for line in ran.stdout.splitlines()].count("skipped") == 5
    assert ran.exit_code == 1


def test_json_has_a_line_for_each_check(well: Callable[..., Any]) -> None:
    """Each line is an object with the same keys; what is not known is null."""
    ran = well("--json")
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert [line["check"] for line in lines] == list(CHECK_NAMES)
    assert len({tuple(line) for line in lines}) == 1
    assert lines[0] == {
        "check": "key and address",
        "status": "ok",
        "firstChunkMs": None,
        "totalMs": None,
        "chunksPerSecond": None,
        "seen": "a ScriptedModel of your own",
        "error": None,
        "advice": None,
    }
    assert lines[1]["totalMs"] >= lines[1]["firstChunkMs"] >= 0


def test_json_is_in_milliseconds() -> None:
    """Seconds within, milliseconds outside; a rate in chunks a second."""
    result = CheckResult(
        name="text", status="ok", seen="", first_chunk=0.25, total=1.5, rate=12.345
    )
    told = json.loads(result.to_json())
    assert (told["firstChunkMs"], told["totalMs"], told["chunksPerSecond"]) == (250, 1500, 12.3)


@pytest.mark.parametrize("timeout", ["0", "-1", "inf", "nan"])
def test_a_bad_timeout_ends_with_2(well: Callable[..., Any], timeout: str) -> None:
    """It is misuse, said in a sentence, before anything is asked."""
    ran = well("--timeout", timeout)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("streampipe: timeout must be a positive number of seconds, not ")


@pytest.mark.parametrize("options", [[], ["a/b", "--timeout", "soon"], ["a/b", "c/d"], ["--yaml"]])
def test_wrong_arguments_end_with_2(command: RunCommand, options: list[str]) -> None:
    """A missing model, a word for a number and what is unknown are misuse."""
    assert command("doctor", *options).exit_code == 2


def test_help_tells_what_it_costs(command: RunCommand) -> None:
    """Who runs it pays for it, so how much is said first."""
    assert "six short calls" in command("doctor", "--help").stdout
