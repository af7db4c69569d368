"""`OpenAIResponsesModel`: how it asks, what it never tells, and what OpenAI's own client reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streampipe.agent import Agent
from streampipe.chunks import (
    Chunk,
    FinishChunk,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCall,
    Usage,
)
from streampipe.contracts import Model, ModelRequest, OutputSchema
from streampipe.errors import (
    AuthenticationError,
    ConfigurationError,
    IncompleteStreamError,
    ModelError,
    ProviderStreamError,
    RateLimitError,
)
from streampipe.models import OpenAIResponsesModel
from streampipe.models.openai_responses import ResponsesDecoder
from streampipe.testing import Turn, agent_scripts, call, check_model, delay, fail, reasoning, turn
from streampipe.testing import _responses_wire as wire
from streampipe.tools import tool
from tests.models.streams import answer, decoded
from tests.models.test_call import REQUEST, Network, Response, collected
from tests.models.test_responses_request import judged

CANARY = "sk-canary-0123456789"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see no keys of the machine."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def told(made: Turn, number: int = 0) -> bytes:
    """The whole stream of a turn."""
    events = wire.events(made, number, "scripted", usage=True)
    return b"".join(event for event in events if isinstance(event, bytes))


def read(made: Turn) -> list[Chunk]:
    """What our decoder makes of a turn's stream."""
    return decoded([told(made)], ResponsesDecoder())


def model_on(
    *answers: Response | Exception, **options: Any
) -> tuple[OpenAIResponsesModel, Network]:
    """A model, and the network that it asks."""
    network = Network(*answers)
    options = {"api_key": "k", "transport": network, **options}
    return OpenAIResponsesModel("gpt-5-mini", **options), network


# --- the model -----------------------------------------------------------------------------


def test_it_is_a_model() -> None:
    """It has what the contract asks for."""
    model: Model = OpenAIResponsesModel("m", api_key="k")
    assert isinstance(model, Model)
    assert (model.provider, model.model_id) == ("openai", "m")


def test_a_missing_key_is_told_when_the_model_is_built() -> None:
    """Not with the first call; the variable is named."""
    with pytest.raises(ConfigurationError, match="openai: no API key: set OPENAI_API_KEY"):
        OpenAIResponsesModel("m")


async def test_what_is_asked() -> None:
    """The address, the key and a body as OpenAI types it."""
    model, network = model_on(Response(told(turn("hi"))))
    assert answer(await collected(model)).text == "hi"
    (asked,) = network.asked
    assert asked["url"] == "https://api.openai.com/v1/responses"
    assert asked["headers"]["authorization"] == "Bearer k"
    body = judged(orjson.loads(asked["content"]))
    assert body["input"] == [{"role": "user", "content": "hi"}]


async def test_openais_key_goes_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server is asked without it."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    network = Network(Response(told(turn("hi"))))
    model = OpenAIResponsesModel("m", base_url="http://127.0.0.1:9/v1", transport=network)
    await collected(model)
    assert "authorization" not in network.asked[0]["headers"]
    assert network.asked[0]["url"] == "http://127.0.0.1:9/v1/responses"


async def test_options_and_notes_are_those_of_the_provider() -> None:
    """Under the name that the model was given."""
    made = turn(reasoning("hm"), "x")
    model, network = model_on(Response(told(made)), provider="azure")
    request = ModelRequest(
        REQUEST.prompt, provider_options={"azure": {"user": "u"}, "openai": {"user": "v"}}
    )
    chunks = await collected(model, request)
    assert orjson.loads(network.asked[0]["content"])["user"] == "u"
    (end,) = [chunk for chunk in chunks if isinstance(chunk, ReasoningEnd)]
    assert end.provider_metadata is not None
    assert end.provider_metadata["azure"]["item_id"] == "rs_0_0"


LIST = OutputSchema("numbers", {"type": "array", "items": {"type": "integer"}})


async def test_what_cannot_be_asked_is_told_before_anything_is_sent() -> None:
    """A schema that the protocol cannot take is a mistake of the configuration."""
    model, network = model_on()
    with pytest.raises(ConfigurationError, match="root must be an object"):
        await collected(model, ModelRequest(REQUEST.prompt, structured_output=LIST))
    assert not network.asked


async def test_what_was_left_out_is_a_warning_of_the_answer() -> None:
    """It comes with the metadata."""
    model, _ = model_on(Response(told(turn("x"))))
    (first, *_) = await collected(model, ModelRequest(REQUEST.prompt, settings={"seed": 7}))
    (warning,) = getattr(first, "warnings", None) or []
    assert "setting 'seed'" in warning


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(
            Response(
                orjson.dumps(wire.error(f"Incorrect API key: {CANARY}", 401)),
                status=401,
                headers={"content-type": "application/json"},
            ),
            id="refused",
        ),
        pytest.param(
            Response(b"data: " + orjson.dumps({"type": "error", "message": CANARY}) + b"\n\n"),
            id="in the stream",
        ),
        pytest.param(Response(b"data: " + CANARY.encode() + b"\n\n"), id="no event"),
    ],
)
async def test_the_key_is_never_told(response: Response) -> None:
    """Not in an error, even if the server quotes it."""
    model, _ = model_on(response, api_key=CANARY, max_retries=0)
    with pytest.raises(ModelError) as caught:
        await collected(model)
    error = caught.value
    assert CANARY not in f"{error} {error!r} {vars(error)!r} {model!r} {model._call!r}"


@pytest.mark.parametrize(
    ("status", "kind"), [(401, AuthenticationError), (429, RateLimitError), (500, ModelError)]
)
async def test_an_http_error(status: int, kind: type[ModelError]) -> None:
    """It is told as what it is, with the provider's words."""
    body = orjson.dumps(wire.error("told", status))
    response = Response(body, status=status, headers={"content-type": "application/json"})
    model, _ = model_on(response, max_retries=0)
    with pytest.raises(kind, match=f"HTTP {status}: told"):
        await collected(model)


async def test_a_stream_that_breaks_off() -> None:
    """With a part of the answer out, whether to ask again is the caller's to say."""
    model, network = model_on(Response(told(turn("x", incomplete=True))))
    with pytest.raises(IncompleteStreamError) as caught:
        await collected(model)
    assert caught.value.mid_stream
    assert caught.value.is_retryable
    assert len(network.asked) == 1


async def test_it_keeps_its_contract() -> None:
    """Whatever is asked of every model, with an answer of every kind of piece."""
    made = turn(reasoning("hm"), "a", call("f", {"a": 1}, pieces=3), "b")

    def make() -> OpenAIResponsesModel:
        return model_on(Response(told(made)), Response(told(made)))[0]

    def failing() -> OpenAIResponsesModel:
        refusals = [Response(b"no", status=500) for _ in range(4)]
        return model_on(*refusals, max_retries=0)[0]

    await check_model(make, failing=failing)


# --- as a part of an agent -----------------------------------------------------------------


@tool
def look(number: int) -> str:
    """Look a number up."""
    return f"{number} is blue"


async def test_a_loop_of_tools_carries_the_reasoning() -> None:
    """What the server encrypted goes back to it before the call that it led to."""
    first = turn(reasoning("Look."), call("look", {"number": 7}, id="call_1"))
    model, network = model_on(Response(told(first)), Response(told(turn("Blue."), 1)))
    result = await Agent(model=model, tools=[look]).generate("What is 7?")
    assert result.text == "Blue."
    body = judged(orjson.loads(network.asked[1]["content"]))
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["input"] == [
        {"role": "user", "content": "What is 7?"},
        {
            "type": "reasoning",
            "id": "rs_0_0",
            "summary": [{"type": "summary_text", "text": "Look."}],
            "encrypted_content": "encrypted-0-0",
        },
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "look",
            "arguments": '{"number":7}',
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "7 is blue"},
    ]


# --- the wire of scripts -------------------------------------------------------------------

USAGES = st.builds(
    lambda inputs, outputs, cached, thought: Usage(
        inputs + cached, outputs + thought, 0, thought, cached
    ),
    *[st.integers(0, 1000)] * 4,
)
# The protocol has no word for a stop after a call, or for calls that are not there.
REASONS = st.sampled_from([None, "length", "content-filter", "other"])
TURNS = st.builds(
    lambda script, why, usage: Turn(script[0].pieces, why, usage),
    agent_scripts(tools=["f", "g"]),
    REASONS,
    st.none() | USAGES,
)


def said(chunks: list[Chunk]) -> tuple[str, str, list[Any]]:
    """Text, reasoning and calls of chunks; of arguments that are no JSON, their text."""
    return (
        "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta)),
        "".join(chunk.text for chunk in chunks if isinstance(chunk, ReasoningDelta)),
        [(c.tool_name, c.args_text or c.args) for c in chunks if isinstance(c, ToolCall)],
    )


def scripted(made: Turn) -> tuple[str, str, list[Any]]:
    """The same of a turn."""
    kinds = type(reasoning("")), type(call(""))
    return (
        "".join(piece for piece in made.pieces if isinstance(piece, str)),
        "".join(piece.text for piece in made.pieces if isinstance(piece, kinds[0])),
        [(p.name, p.arguments) for p in made.pieces if isinstance(p, kinds[1])],
    )


@given(TURNS)
def test_a_turn_comes_through_the_wire(made: Turn) -> None:
    """Text, reasoning, calls, finish reason and usage are those of the script."""
    chunks = read(made)
    assert said(chunks) == scripted(made)
    finish = chunks[-1]
    assert isinstance(finish, FinishChunk)
    assert finish.reason == made.reason
    assert finish.usage == (made.usage or Usage(1, len(made.pieces)))
    for chunk in chunks:
        assert not isinstance(chunk, ReasoningEnd) or chunk.signature


def test_delays_and_failures_stay_where_they_are() -> None:
    """The server plays them; a turn that stops has no end."""
    made = turn(delay(1), "a", delay(2), fail(), incomplete=True)
    played = list(wire.events(made, 0, "m", usage=False))
    kinds = [e.split(b"\n")[0] if isinstance(e, bytes) else e for e in played]
    assert kinds == [
        delay(1),
        b"event: response.created",
        b"event: response.in_progress",
        b"event: response.output_item.added",
        b"event: response.content_part.added",
        b"event: response.output_text.delta",
        delay(2),
        fail(),
    ]
    with pytest.raises(IncompleteStreamError):
        read(made)


def test_an_empty_turn() -> None:
    """An answer of nothing begins and ends."""
    assert [chunk.type for chunk in read(turn())] == ["response-metadata", "finish"]


def official(handle: Any) -> openai.AsyncOpenAI:
    """The official client, with answers instead of a network."""
    client: Any = httpx.AsyncClient(transport=httpx.MockTransport(handle))  # as good as its own
    return openai.AsyncOpenAI(api_key="k", http_client=client, max_retries=0)


ASKED: dict[str, Any] = {"model": "gpt-5-mini", "input": "hi"}


@given(st.lists(TURNS, min_size=8, max_size=8))
@settings(max_examples=3)  # a client takes longer to make than all turns to play
async def test_openais_client_reads_the_same(turns: list[Turn]) -> None:
    """Streamed and whole, what our wire tells is what the SDK reads, and what our model reads."""
    playing: Iterator[Turn]

    def handle(request: httpx.Request) -> httpx.Response:
        made = next(playing)
        if json.loads(request.content).get("stream"):
            headers = {"content-type": "text/event-stream"}
            return httpx.Response(200, content=told(made), headers=headers)
        return httpx.Response(200, json=wire.completion(made, 0, "scripted"))

    async with official(handle) as client:
        for made in turns:
            playing = iter([made, made])
            last: Any = None
            async for event in await client.responses.create(**ASKED, stream=True):
                last = event
            whole = await client.responses.create(**ASKED)
            assert last.response == whole
            assert shown(whole) == said(read(made))
            assert whole.usage.total_tokens == made_usage(made).total_tokens


def made_usage(made: Turn) -> Usage:
    """The usage that our model reads."""
    finish = read(made)[-1]
    assert isinstance(finish, FinishChunk)
    assert finish.usage
    return finish.usage


def shown(response: Any) -> tuple[str, str, list[Any]]:
    """Text, reasoning and calls of a response of the SDK."""
    items = response.output
    return (
        response.output_text,
        "".join(s.text for item in items if item.type == "reasoning" for s in item.summary),
        [(i.name, parsed(i.arguments)) for i in items if i.type == "function_call"],
    )


def parsed(arguments: str) -> Any:
    """Arguments as JSON values, or as text where they are no JSON."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


async def test_openais_client_puts_the_pieces_together() -> None:
    """Its helper, which is strict about the order of events, comes to the same answer."""
    made = turn("a", "b", reasoning("hm"), call("f", {"a": 1}, pieces=3), call("g"), "c")
    headers = {"content-type": "text/event-stream"}
    async with (
        official(lambda _: httpx.Response(200, content=told(made), headers=headers)) as client,
        client.responses.stream(**ASKED) as stream,
    ):
        final = await stream.get_final_response()
    assert shown(final) == scripted(made)


@pytest.mark.parametrize("status", [400, 401, 402, 404, 422, 429, 500, 503])
async def test_openais_client_sees_the_same_failures(status: int) -> None:
    """Status and message are read alike."""
    body = wire.error("told", status)
    async with official(lambda _: httpx.Response(status, json=body)) as client:
        with pytest.raises(openai.APIStatusError, match="told") as caught:
            await client.responses.create(**ASKED)
    assert caught.value.status_code == status
    assert caught.value.body == body["error"]


def test_a_stream_that_is_none() -> None:
    """What is no event of the protocol is refused."""
    with pytest.raises(ProviderStreamError, match="no JSON"):
        decoded([b"data: hello\n\n"], ResponsesDecoder())
