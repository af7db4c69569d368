"""`GoogleModel`: how it asks, what it never tells, and what Google's own client sees."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest
from google import genai
from google.genai import errors, types
from hypothesis import given
from hypothesis import strategies as st

from streampipe.agent import Agent
from streampipe.chunks import (
    Chunk,
    FinishChunk,
    ReasoningDelta,
    ResponseMetadata,
    TextDelta,
    ToolCall,
    Usage,
)
from streampipe.contracts import Model, ModelRequest
from streampipe.errors import (
    AuthenticationError,
    ConfigurationError,
    IncompleteStreamError,
    InvalidRequestError,
    ModelError,
    OverloadedError,
)
from streampipe.models import GoogleModel
from streampipe.models._http import clock
from streampipe.models.google import GoogleDecoder
from streampipe.testing import Turn, agent_scripts, call, check_model, delay, fail, reasoning, turn
from streampipe.testing import _google_wire as wire
from streampipe.testing._script import Call, Reasoning
from streampipe.tools import tool
from tests.models.streams import answer, decoded
from tests.models.test_call import REQUEST, Network, Response, collected

CANARY = "AIza-canary-0123456789"
HOME = "https://generativelanguage.googleapis.com/v1beta"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see no keys of the machine."""
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def told(made: Turn, number: int = 0) -> bytes:
    """The whole stream of a turn."""
    events = wire.events(made, number, "scripted", usage=True)
    return b"".join(event for event in events if isinstance(event, bytes))


def model_on(*answers: Response | Exception, **options: Any) -> tuple[GoogleModel, Network]:
    """A model, and the network that it asks."""
    network = Network(*answers)
    options = {"model_id": "gemini-2.5-flash", "api_key": "k", "transport": network, **options}
    return GoogleModel(**options), network


def refusal(status: int, message: str = "no") -> Response:
    """An HTTP error as the provider puts it."""
    body = orjson.dumps(wire.error(message, status))
    return Response(body, status=status, headers={"content-type": "application/json"})


def failing_event(message: str, status: int) -> bytes:
    """An error within a stream."""
    return b"data: " + orjson.dumps(wire.error(message, status)) + b"\r\n\r\n"


# --- the model -----------------------------------------------------------------------------


def test_it_is_a_model() -> None:
    """It has what the contract asks for."""
    model: Model = GoogleModel("gemini-2.5-flash", api_key="k")
    assert isinstance(model, Model)
    assert (model.provider, model.model_id) == ("google", "gemini-2.5-flash")


@pytest.mark.parametrize(
    ("model_id", "path"),
    [
        ("gemini-2.5-flash", "models/gemini-2.5-flash"),
        ("models/gemini-2.5-flash", "models/gemini-2.5-flash"),
        ("tunedModels/mine", "tunedModels/mine"),
        ("a/b?c#d:e", "models/a%2Fb%3Fc%23d%3Ae"),
    ],
)
@pytest.mark.parametrize("base_url", [HOME, "http://127.0.0.1:1/v1/publishers/google/"])
async def test_where_it_asks(model_id: str, path: str, base_url: str) -> None:
    """The model stands in the address, quoted, whatever its name holds."""
    model, network = model_on(Response(told(turn("hi"))), model_id=model_id, base_url=base_url)
    assert answer(await collected(model)).text == "hi"
    wanted = f"{base_url.rstrip('/')}/{path}:streamGenerateContent?alt=sse"
    assert network.asked[0]["url"] == wanted


@pytest.mark.parametrize(
    ("variables", "sent"),
    [
        ({"GEMINI_API_KEY": CANARY}, CANARY),
        ({"GOOGLE_API_KEY": CANARY}, CANARY),
        ({"GEMINI_API_KEY": CANARY, "GOOGLE_API_KEY": "other"}, CANARY),
        ({"GEMINI_API_KEY": "", "GOOGLE_API_KEY": CANARY}, CANARY),
    ],
    ids=["its variable", "the other name", "both", "an empty one"],
)
async def test_the_key_of_the_environment(
    variables: dict[str, str], sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has two names there; it goes in a header, never in the address."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    model, network = model_on(Response(told(turn("hi"))), api_key=None)
    await collected(model)
    (asked,) = network.asked
    assert asked["headers"]["x-goog-api-key"] == sent
    assert "authorization" not in asked["headers"]
    assert sent not in asked["url"]


async def test_another_address_gets_no_key_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The provider's key goes to the provider only; a token may be given as a header."""
    monkeypatch.setenv("GEMINI_API_KEY", CANARY)
    model, network = model_on(
        Response(told(turn("hi"))),
        api_key=None,
        base_url="http://127.0.0.1:1/v1",
        headers={"authorization": "Bearer t"},
    )
    await collected(model)
    assert "x-goog-api-key" not in network.asked[0]["headers"]
    assert network.asked[0]["headers"]["authorization"] == "Bearer t"


@pytest.mark.parametrize(
    ("options", "variable"),
    [({}, "GEMINI_API_KEY"), ({"api_key_env": "MY_KEY"}, "MY_KEY")],
)
def test_a_missing_key_is_told_when_the_model_is_built(
    options: dict[str, Any], variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with the first call; the variable is named. A name of one's own has no other."""
    if options:
        monkeypatch.setenv("GOOGLE_API_KEY", CANARY)
    with pytest.raises(ConfigurationError, match=f"google: no API key: set {variable}"):
        GoogleModel("gemini-2.5-flash", **options)


@pytest.mark.parametrize("key", [f"{CANARY}\n", f" {CANARY}", f"a\x00{CANARY}"])
def test_a_key_that_no_header_can_carry_is_not_told(key: str) -> None:
    """A stray newline, say: the HTTP client would quote the key in its error."""
    with pytest.raises(ConfigurationError, match=r"'x-goog-api-key'.*newline") as caught:
        GoogleModel("m", api_key=key)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(refusal(400, f"API key not valid: {CANARY}"), id="refused, quoting the key"),
        pytest.param(Response(failing_event(CANARY, 500)), id="in the stream"),
    ],
)
async def test_the_key_is_never_told(response: Response) -> None:
    """Not in an error, its causes or a representation, even if the server quotes it."""
    model, _ = model_on(response, api_key=CANARY, max_retries=0)
    with pytest.raises(ModelError) as caught:
        await collected(model)
    error = caught.value
    assert CANARY not in f"{error} {error!r} {vars(error)!r} {model!r}"
    assert CANARY not in "".join(traceback.format_exception(error))


async def test_an_overloaded_provider_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own status, and its own error within a stream before the first chunk."""
    monkeypatch.setattr(clock, "FIRST_PAUSE", 0.0)
    model, network = model_on(
        refusal(503), Response(failing_event("busy", 503)), Response(told(turn("hi")))
    )
    assert answer(await collected(model)).text == "hi"
    assert len(network.asked) == 3


async def test_a_failure_in_mid_stream_keeps_what_came_before() -> None:
    """The chunks before it were given, and it says so."""
    stream = told(turn("hi", incomplete=True)) + failing_event("busy", 503)
    model, _ = model_on(Response(stream))
    texts: list[str] = []
    with pytest.raises(OverloadedError, match=r"google/gemini-2.5-flash: .*busy") as caught:
        async for chunk in model.stream(REQUEST):
            texts += [chunk.text] if isinstance(chunk, TextDelta) else []
    assert texts == ["hi"]
    assert caught.value.mid_stream


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("API key not valid. Please pass a valid API key.", AuthenticationError),
        ("Invalid JSON payload received.", InvalidRequestError),
    ],
)
async def test_a_wrong_request_is_told_at_once(message: str, kind: type[ModelError]) -> None:
    """What the provider says of it, with its status."""
    model, network = model_on(refusal(400, message))
    with pytest.raises(kind, match=f"HTTP 400: {message}"):
        await collected(model)
    assert len(network.asked) == 1


async def test_warnings_come_with_the_metadata() -> None:
    """What the protocol cannot carry is said in the answer."""
    model, _ = model_on(Response(told(turn("hi"))))
    settings = {"parallel_tool_calls": False}
    chunks = await collected(model, ModelRequest(REQUEST.prompt, settings=settings))
    assert isinstance(chunks[0], ResponseMetadata)
    assert chunks[0].warnings is not None
    assert "'parallel_tool_calls'" in chunks[0].warnings[0]


async def test_it_keeps_to_the_contract_of_models() -> None:
    """Whole, closed after any chunk, and refused."""
    stream = told(turn(reasoning("hm"), "Hel", "lo", call("f", {"a": "bc"}, pieces=2)))
    await check_model(
        lambda: model_on(Response(stream), Response(stream))[0],  # closed, it is asked again
        failing=lambda: model_on(refusal(500), max_retries=0)[0],
    )


@tool
def look(number: int) -> str:
    """Look up the colour of a number.

    Args:
        number: which one.
    """
    return f"{number} is blue"


async def test_a_tool_loop() -> None:
    """The second request has the signed call and its result."""
    first = turn(reasoning("hm"), call("look", {"number": 7}, pieces=3))
    model, network = model_on(Response(told(first)), Response(told(turn("It is blue."), 1)))
    result = await Agent(model=model, tools=[look]).generate("What colour is 7?")
    assert (result.text, result.reasoning) == ("It is blue.", "hm")
    made = {"id": "call-0-1", "name": "look"}
    assert orjson.loads(network.asked[1]["content"])["contents"][1:] == [
        {
            "role": "model",
            "parts": [
                {
                    "functionCall": {**made, "args": {"number": 7}},
                    "thoughtSignature": "c2lnbmF0dXJlLTAtMQ==",
                }
            ],
        },
        {
            "role": "user",
            "parts": [{"functionResponse": {**made, "response": {"output": "7 is blue"}}}],
        },
    ]


# --- the wire of scripts -------------------------------------------------------------------

USAGES = st.builds(
    lambda inputs, outputs, cached, thought: Usage(
        inputs + cached, outputs + thought, 0, thought, cached
    ),
    *[st.integers(0, 1000)] * 4,
)
REASONS = st.sampled_from([None, "stop", "length", "tool-calls", "content-filter", "other"])
TURNS = st.builds(
    lambda script, why, usage: Turn(script[0].pieces, why, usage),
    agent_scripts(tools=["f", "g"]),
    REASONS,
    st.none() | USAGES,
).filter(lambda made: "{no json" not in str(made.pieces))


def said(chunks: list[Chunk]) -> tuple[str, str, list[Any]]:
    """Text, reasoning and calls of chunks."""
    return (
        "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta)),
        "".join(chunk.text for chunk in chunks if isinstance(chunk, ReasoningDelta)),
        [(c.tool_name, c.args) for c in chunks if isinstance(c, ToolCall)],
    )


def scripted(made: Turn) -> tuple[str, str, list[Any]]:
    """The same of a turn."""
    return (
        "".join(piece for piece in made.pieces if isinstance(piece, str)),
        "".join(piece.text for piece in made.pieces if isinstance(piece, Reasoning)),
        [(piece.name, piece.arguments) for piece in made.pieces if isinstance(piece, Call)],
    )


@given(TURNS)
def test_a_turn_comes_through_the_wire(made: Turn) -> None:
    """Text, reasoning, calls, finish reason and usage are those of the script."""
    chunks = decoded([told(made)], GoogleDecoder())
    assert said(chunks) == scripted(made)
    finish = chunks[-1]
    assert isinstance(finish, FinishChunk)
    called = any(isinstance(chunk, ToolCall) for chunk in chunks)
    stop = "tool-calls" if called else "stop"  # the protocol has one word for both
    assert finish.reason == (stop if made.reason in ("stop", "tool-calls") else made.reason)
    assert finish.usage == (made.usage or Usage(1, len(made.pieces)))


ARGUMENTS = st.dictionaries(
    st.text(max_size=3),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
        max_leaves=4,
    ),
    max_size=3,
)


@given(ARGUMENTS, st.integers(1, 4))
def test_any_arguments_come_through_the_wire(arguments: dict[str, Any], pieces: int) -> None:
    """Whole or leaf by leaf, arguments are those of the script."""
    chunks = decoded([told(turn(call("f", arguments, pieces=pieces)))], GoogleDecoder())
    assert said(chunks) == ("", "", [("f", arguments)])


@pytest.mark.parametrize("arguments", ["{no json", "[1]", [1], 3])
def test_arguments_that_google_would_not_send(arguments: Any) -> None:
    """It ends such an answer by a reason of its own, and so does the wire."""
    made = turn("x", call("f", arguments))
    chunks = decoded([told(made)], GoogleDecoder())
    assert said(chunks) == ("x", "", [])
    assert chunks[-1] == FinishChunk("error", Usage(1, 2), None, "MALFORMED_FUNCTION_CALL")
    (candidate,) = wire.completion(made, 0, "m")["candidates"]
    assert candidate["finishReason"] == "MALFORMED_FUNCTION_CALL"


def test_arguments_that_are_text_of_json() -> None:
    """They are told as the object that they are."""
    chunks = decoded([told(turn(call("f", '{"a": 1}')))], GoogleDecoder())
    assert said(chunks) == ("", "", [("f", {"a": 1})])


def test_delays_and_failures_stay_where_they_are() -> None:
    """The server plays them; a turn that stops has no end; usage may be left out."""
    made = turn(delay(1), "a", delay(2), fail(), incomplete=True)
    played = list(wire.events(made, 0, "m", usage=False))
    assert [event if not isinstance(event, bytes) else "event" for event in played] == [
        delay(1),
        "event",
        delay(2),
        fail(),
    ]
    with pytest.raises(IncompleteStreamError):
        decoded([told(made)], GoogleDecoder())
    (end,) = wire.events(turn(), 0, "m", usage=False)
    assert isinstance(end, bytes)
    assert b"usageMetadata" not in end


# --- Google's own client as a judge --------------------------------------------------------


class Answering:
    """A client of Google's that is answered from here."""

    def __init__(self) -> None:
        """Start with nothing to answer."""
        self.status = 200
        self.body = b""
        self.client = genai.Client(
            api_key="k",
            http_options=types.HttpOptions(
                client_args={"transport": httpx.MockTransport(self._answer)}
            ),
        )

    def _answer(self, request: httpx.Request) -> httpx.Response:
        kind = "text/event-stream" if self.body.startswith(b"data:") else "application/json"
        return httpx.Response(self.status, headers={"content-type": kind}, content=self.body)

    def whole(self, body: bytes, status: int = 200) -> types.GenerateContentResponse:
        """The answer to a call that asks for no stream."""
        self.status, self.body = status, body
        return self.client.models.generate_content(model="m", contents="hi")

    def streamed(self, body: bytes) -> list[types.GenerateContentResponse]:
        """The events of a stream."""
        self.status, self.body = 200, body
        return list(self.client.models.generate_content_stream(model="m", contents="hi"))


@pytest.fixture(scope="module")
def google() -> Iterator[Answering]:
    """One client for all tests: it takes longer to make than they take to run."""
    answering = Answering()
    yield answering
    answering.client.close()


def parts_of(responses: list[types.GenerateContentResponse]) -> list[types.Part]:
    """All parts of the answers."""
    contents = [c.content for response in responses for c in response.candidates or []]
    return [part for content in contents if content for part in content.parts or []]


def shown(responses: list[types.GenerateContentResponse]) -> tuple[str, str, list[Any], Any, Any]:
    """Text, reasoning, names of calls, finish reason and usage, as the SDK reads them."""
    parts = parts_of(responses)
    calls = [part.function_call for part in parts if part.function_call]
    last = responses[-1]
    assert last.candidates
    assert last.usage_metadata
    return (
        "".join(part.text or "" for part in parts if not part.thought),
        "".join(part.text or "" for part in parts if part.thought),
        [(call.id, call.name) for call in calls if call.name],
        last.candidates[0].finish_reason,
        last.usage_metadata.total_token_count,
    )


@given(made=TURNS)
def test_the_official_client_reads_the_same(google: Answering, made: Turn) -> None:
    """Streamed and whole, what our wire tells is what the SDK reads, and what our model reads."""
    streamed = google.streamed(told(made))
    whole = google.whole(orjson.dumps(wire.completion(made, 0, "scripted")))
    assert shown(streamed) == shown([whole])
    calls = [part.function_call for part in parts_of([whole]) if part.function_call]
    assert [(call.name, call.args) for call in calls] == scripted(made)[2]
    chunks = decoded([told(made)], GoogleDecoder())
    text, thoughts, _, reason, total = shown(streamed)
    assert (text, thoughts) == said(chunks)[:2]
    finish = chunks[-1]
    assert isinstance(finish, FinishChunk)
    assert finish.usage
    assert (finish.raw_reason, finish.usage.total_tokens) == (reason, total)
    signatures = [part.thought_signature for part in parts_of(streamed) if part.thought_signature]
    assert len(signatures) == bool(calls)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503, 504])
async def test_the_official_client_sees_the_same_failures(google: Answering, status: int) -> None:
    """Status and message are read alike."""
    with pytest.raises(errors.APIError, match="told") as caught:
        google.whole(orjson.dumps(wire.error("told", status)), status)
    assert caught.value.code == status
    assert caught.value.status != "UNKNOWN"
    model, _ = model_on(refusal(status, "told"), max_retries=0)
    with pytest.raises(ModelError, match=f"HTTP {status}: told") as ours:
        await collected(model)
    assert ours.value.is_retryable is (status in (429, 500, 503, 504))
