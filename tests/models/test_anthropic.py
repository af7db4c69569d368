"""`AnthropicModel`: how it asks, what it never tells, and what the official client sees."""

from __future__ import annotations

import asyncio
import re
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anthropic
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
    ResponseMetadata,
    TextDelta,
    ToolCall,
    Usage,
)
from streampipe.contracts import Model, ModelRequest
from streampipe.errors import (
    ConfigurationError,
    IncompleteStreamError,
    InvalidRequestError,
    ModelError,
    OverloadedError,
)
from streampipe.models._http import clock
from streampipe.models.anthropic import AnthropicDecoder, AnthropicModel
from streampipe.testing import Turn, agent_scripts, call, check_model, delay, fail, reasoning, turn
from streampipe.testing import _anthropic_wire as wire
from streampipe.tools import tool
from tests.models.streams import answer, decoded
from tests.models.test_call import REQUEST, Network, Response, collected

CANARY = "sk-ant-canary-0123456789"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see no keys of the machine."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def told(made: Turn, number: int = 0) -> bytes:
    """The whole stream of a turn."""
    events = wire.events(made, number, "scripted", usage=True)
    return b"".join(event for event in events if isinstance(event, bytes))


def model_on(*answers: Response | Exception, **options: Any) -> tuple[AnthropicModel, Network]:
    """A model, and the network that it asks."""
    network = Network(*answers)
    options = {"api_key": "k", "transport": network, **options}
    return AnthropicModel("claude-sonnet-4-5", **options), network


def refusal(status: int, message: str = "no") -> Response:
    """An HTTP error as the provider puts it."""
    body = orjson.dumps(wire.error(message, status))
    return Response(body, status=status, headers={"content-type": "application/json"})


# --- the model -----------------------------------------------------------------------------


def test_it_is_a_model() -> None:
    """It has what the contract asks for."""
    model: Model = AnthropicModel("claude-sonnet-4-5", api_key="k")
    assert isinstance(model, Model)
    assert (model.provider, model.model_id) == ("anthropic", "claude-sonnet-4-5")


async def test_how_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Address, version and the key of the environment, in the provider's own header."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    model, network = model_on(
        Response(told(turn("hi"))), api_key=None, headers={"anthropic-beta": "x-2026"}
    )
    chunks = await collected(model)
    (asked,) = network.asked
    assert asked["url"] == "https://api.anthropic.com/v1/messages"
    headers = asked["headers"]
    assert headers["x-api-key"] == CANARY
    assert headers["anthropic-version"] == "2023-06-01"
    assert headers["anthropic-beta"] == "x-2026"
    assert "authorization" not in headers
    assert orjson.loads(asked["content"])["stream"] is True
    assert answer(chunks).text == "hi"


async def test_another_address_gets_no_key_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The provider's key goes to the provider only."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    model, network = model_on(
        Response(told(turn("hi"))), api_key=None, base_url="http://127.0.0.1:1/v1"
    )
    await collected(model)
    assert "x-api-key" not in network.asked[0]["headers"]


def test_a_missing_key_is_told_when_the_model_is_built() -> None:
    """Not with the first call; the variable is named."""
    with pytest.raises(ConfigurationError, match="anthropic: no API key: set ANTHROPIC_API_KEY"):
        AnthropicModel("claude-sonnet-4-5")


@pytest.mark.parametrize("key", [f"{CANARY}\n", f" {CANARY}", f"a\x00{CANARY}"])
def test_a_key_that_no_header_can_carry_is_not_told(key: str) -> None:
    """A stray newline, say: the HTTP client would quote the key in its error."""
    with pytest.raises(ConfigurationError, match=r"'x-api-key'.*newline") as caught:
        AnthropicModel("m", api_key=key)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(refusal(401, f"bad key {CANARY}"), id="refused, quoting the key"),
        pytest.param(
            Response(b"data: " + orjson.dumps(wire.error(CANARY)) + b"\n\n"), id="in the stream"
        ),
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
    event = b"event: error\ndata: " + orjson.dumps(wire.error("busy", 529)) + b"\n\n"
    model, network = model_on(refusal(529), Response(event), Response(told(turn("hi"))))
    assert answer(await collected(model)).text == "hi"
    assert len(network.asked) == 3


async def test_a_failure_in_mid_stream_keeps_what_came_before() -> None:
    """The chunks before it were given, and it says so."""
    event = b"event: error\ndata: " + orjson.dumps(wire.error("busy", 529)) + b"\n\n"
    model, _ = model_on(Response(told(turn("hi", incomplete=True)) + event))
    texts: list[str] = []
    with pytest.raises(OverloadedError, match="anthropic/claude-sonnet-4-5: busy") as caught:
        async for chunk in model.stream(REQUEST):
            texts += [chunk.text] if isinstance(chunk, TextDelta) else []
    assert texts == ["hi"]
    assert caught.value.mid_stream


async def test_a_wrong_request_is_told_at_once() -> None:
    """What the provider says of it, with its status."""
    model, network = model_on(refusal(400, "max_tokens: 9 is too much"))
    with pytest.raises(InvalidRequestError, match="HTTP 400: max_tokens"):
        await collected(model)
    assert len(network.asked) == 1


async def test_warnings_come_with_the_metadata() -> None:
    """What the protocol cannot carry is said in the answer."""
    model, _ = model_on(Response(told(turn("hi"))))
    chunks = await collected(model, ModelRequest(REQUEST.prompt, settings={"seed": 1}))
    assert isinstance(chunks[0], ResponseMetadata)
    assert chunks[0].warnings is not None
    assert "'seed'" in chunks[0].warnings[0]


async def test_it_keeps_to_the_contract_of_models() -> None:
    """Whole, closed after any chunk, and refused."""
    stream = told(turn(reasoning("hm"), "Hel", "lo", call("f", {"a": 1}, pieces=2)))
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
    """The second request has the signed reasoning, the call and its result."""
    first = turn(reasoning("hm"), call("look", {"number": 7}, pieces=3))
    model, network = model_on(Response(told(first)), Response(told(turn("It is blue."), 1)))
    result = await Agent(model=model, tools=[look]).generate("What colour is 7?")
    assert (result.text, result.reasoning) == ("It is blue.", "hm")
    assert orjson.loads(network.asked[1]["content"])["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "signature-0-0"},
                {"type": "tool_use", "id": "toolu_0_1", "name": "look", "input": {"number": 7}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_0_1", "content": "7 is blue"}
            ],
        },
    ]


# --- the wire of scripts -------------------------------------------------------------------

USAGES = st.builds(
    lambda inputs, outputs, cached, thought: Usage(
        inputs + cached, outputs + thought, 0, thought, cached
    ),
    *[st.integers(0, 1000)] * 4,
)
REASONS = st.sampled_from([None, "stop", "length", "tool-calls", "content-filter"])
TURNS = st.builds(
    lambda script, why, usage: Turn(script[0].pieces, why, usage),
    agent_scripts(tools=["f", "g"]),
    REASONS,
    st.none() | USAGES,
)


@given(TURNS)
def test_a_turn_comes_through_the_wire(made: Turn) -> None:
    """Text, reasoning, calls, finish reason and usage are those of the script."""
    chunks = decoded([told(made)], AnthropicDecoder())
    assert said(chunks) == scripted(made)
    finish = chunks[-1]
    assert isinstance(finish, FinishChunk)
    assert finish.reason == made.reason
    assert finish.usage == (made.usage or Usage(1, len(made.pieces)))
    for chunk in chunks:
        assert not isinstance(chunk, ReasoningEnd) or chunk.signature


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


def test_delays_and_failures_stay_where_they_are() -> None:
    """The server plays them; a turn that stops has no end."""
    made = turn(delay(1), "a", delay(2), fail(), incomplete=True)
    played = list(wire.events(made, 0, "m", usage=False))
    kinds = [e.split(b"\n")[0] if isinstance(e, bytes) else e for e in played]
    assert kinds == [
        delay(1),
        b"event: message_start",
        b"event: ping",
        b"event: content_block_start",
        b"event: content_block_delta",
        delay(2),
        fail(),
    ]
    with pytest.raises(IncompleteStreamError):
        decoded([told(made)], AnthropicDecoder())


def test_an_empty_turn() -> None:
    """An answer of nothing begins and ends."""
    assert [chunk.type for chunk in decoded([told(turn())], AnthropicDecoder())] == [
        "response-metadata",
        "finish",
    ]


@asynccontextmanager
async def answering(*answers: tuple[int, bytes]) -> AsyncIterator[anthropic.AsyncAnthropic]:
    """The official client of a server on loopback, which gives these answers one by one."""
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None
        await reader.readexactly(int(length[1]))
        status, body = left.pop(0)
        kind = "application/json" if body.startswith(b"{") else "text/event-stream"
        fields = f"content-type: {kind}\r\ncontent-length: {len(body)}\r\nconnection: close"
        writer.write(f"HTTP/1.1 {status} So\r\n{fields}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        async with anthropic.AsyncAnthropic(
            api_key="k", base_url=f"http://127.0.0.1:{port}", max_retries=0
        ) as client:
            yield client


ASKED: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "hi"}],
}


@given(st.lists(TURNS.filter(lambda made: "{no json" not in str(made.pieces)), min_size=8))
@settings(max_examples=3)  # a client takes longer to make than all turns to play
async def test_the_official_client_reads_the_same(turns: list[Turn]) -> None:
    """Streamed and whole, what our wire tells is what the SDK reads, and what our model reads."""
    wholes = [orjson.dumps(wire.completion(made, 0, "scripted")) for made in turns]
    answers = [
        body for made, whole in zip(turns, wholes, strict=True) for body in (told(made), whole)
    ]
    async with answering(*((200, body) for body in answers)) as client:
        for made in turns:
            async with client.messages.stream(**ASKED) as stream:
                streamed = await stream.get_final_message()
            whole = await client.messages.create(**ASKED)
            assert whole.usage == streamed.usage
            assert shown(whole) == shown(streamed)
            chunks = decoded([told(made)], AnthropicDecoder())
            assert shown(streamed) == (*said(chunks), answer(chunks).finish_reason)


def shown(message: Any) -> tuple[str, str, list[Any], str]:
    """Text, reasoning, calls and stop reason of a message of the SDK."""
    content = message.content
    return (
        "".join(block.text for block in content if block.type == "text"),
        "".join(block.thinking for block in content if block.type == "thinking"),
        [(block.name, block.input) for block in content if block.type == "tool_use"],
        message.stop_reason,
    )


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422, 429, 500, 503, 504, 529])
async def test_the_official_client_sees_the_same_failures(status: int) -> None:
    """Status and message are read alike."""
    async with answering((status, orjson.dumps(wire.error("told", status)))) as client:
        with pytest.raises(anthropic.APIStatusError, match="told") as caught:
            await client.messages.create(**ASKED)
    assert caught.value.status_code == status
    model, _ = model_on(refusal(status, "told"), max_retries=0)
    with pytest.raises(ModelError, match=f"HTTP {status}: told") as ours:
        await collected(model)
    assert ours.value.is_retryable is (status in (429, 500, 503, 504, 529))


def test_a_whole_answer_whose_arguments_are_no_json() -> None:
    """The protocol has no place for them but an object."""
    made = wire.completion(turn(call("f", "{no json")), 3, "m")
    assert made["content"] == [{"type": "tool_use", "id": "toolu_3_0", "name": "f", "input": {}}]
    assert made["stop_reason"] == "tool_use"
