"""Each failure, in each protocol, at each place of an answer: what everybody sees of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from streampipe import Agent, Chunk, ErrorChunk, FinishChunk, TextDelta, ToolCall
from streampipe.errors import (
    AuthenticationError,
    ChunkTimeoutError,
    FirstChunkTimeoutError,
    IncompleteStreamError,
    InvalidRequestError,
    ModelConnectionError,
    ModelError,
    OverloadedError,
    ProviderError,
    ProviderStreamError,
    RateLimitError,
    ServerError,
)
from streampipe.models import Timeout
from streampipe.testing import Answer, ModelServer, call, fail, faulty, run_virtual, turn
from streampipe.testing._protocols import PROTOCOLS, ProtocolName
from tests.models.test_call import REQUEST, Network, Response, model_on, refusal

TURN = turn("Hello", " world", call("lookup", {"marker": "abc"}, id="c1"))
PLACES: dict[str, int | bytes] = {
    "before the first chunk": 0,
    "mid text": b" wor",
    "mid tool arguments": b"marker",
}
RETRIES = 1
QUIET = Timeout(first_chunk=0.3, between_chunks=0.3)
each_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


@dataclass
class Row:
    """A failure: how the server makes it, and what it becomes.

    Attributes:
        make: an entry of the server's script, from the protocol and the place.
        early, late: the error before the first chunk, and in the middle.
        passing: whether asking again may help, early and late.
        timeout: what the client waits for; short where waiting is the point.
    """

    make: Callable[[ProtocolName, int | bytes], Any]
    early: type[ModelError]
    late: type[ModelError] = ModelError
    passing: tuple[bool, bool] = (True, True)
    timeout: Timeout = field(default_factory=Timeout)


def reported(protocol: ProtocolName, at: int | bytes) -> Any:
    """The provider's own error, as an event of its stream."""
    event = orjson.dumps(PROTOCOLS[protocol].wire.error("we are overloaded", 503))
    return faulty(TURN, "garbage", at=at, data=b"data: " + event + b"\n\n", whole_event=True)


ANYWHERE = {
    "connection breaks": Row(
        lambda _, at: faulty(TURN, "cut", at=at), ModelConnectionError, IncompleteStreamError
    ),
    "body ends": Row(
        lambda _, at: faulty(TURN, "end", at=at), IncompleteStreamError, IncompleteStreamError
    ),
    "silence": Row(
        lambda _, at: faulty(TURN, "stall", at=at),
        FirstChunkTimeoutError,
        ChunkTimeoutError,
        timeout=QUIET,
    ),
    "no JSON": Row(
        lambda _, at: faulty(TURN, "garbage", at=at, data=b"\n\ndata: {oops\n\n"),
        ProviderStreamError,
        ProviderStreamError,
        (False, False),
    ),
    "no UTF-8": Row(
        lambda _, at: faulty(TURN, "garbage", at=at, data=b"\n\ndata: \xff\xfe\n\n"),
        ProviderStreamError,
        ProviderStreamError,
        (False, False),
    ),
    "overload reported": Row(reported, OverloadedError, OverloadedError),
}


def status(code: int, kind: type[ProviderError], *, passing: bool) -> Row:
    """An HTTP error instead of an answer."""
    return Row(lambda *_: [fail(status=code)], kind, passing=(passing, False))


INSTEAD = {
    "HTTP 400": status(400, InvalidRequestError, passing=False),
    "HTTP 401": status(401, AuthenticationError, passing=False),
    "HTTP 404": status(404, InvalidRequestError, passing=False),
    "HTTP 408": status(408, ProviderError, passing=True),
    "HTTP 409": status(409, ProviderError, passing=True),
    "HTTP 429": status(429, RateLimitError, passing=True),
    "HTTP 500": status(500, ServerError, passing=True),
    "HTTP 529": status(529, OverloadedError, passing=True),
    "a proxy's page": Row(
        lambda *_: Answer(b"<html>Sign in</html>", 200, {"content-type": "text/html"}),
        ProviderStreamError,
        passing=(False, False),
    ),
    "a proxy's error": Row(
        lambda *_: Answer(b"<html>Bad gateway</html>", 502, {"content-type": "text/html"}),
        ServerError,
    ),
}
CASES = [
    *[(name, row, place) for name, row in ANYWHERE.items() for place in PLACES],
    *[(name, row, "before the first chunk") for name, row in INSTEAD.items()],
]
each_case = pytest.mark.parametrize(
    ("row", "place"), [pytest.param(row, place, id=f"{name} {place}") for name, row, place in CASES]
)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The bounds of the pauses between attempts, which are not made."""
    bounds: list[float] = []

    def uniform(_low: float, high: float) -> float:
        bounds.append(high)
        return 0.0

    monkeypatch.setattr("random.uniform", uniform)
    return bounds


def lookup(marker: str) -> str:
    """A tool that no broken answer may reach."""
    raise AssertionError(f"called with {marker!r}")


async def streamed(agent: Agent) -> tuple[list[Chunk], BaseException | None]:
    """The chunks of a run, and what it failed with."""
    async with agent.stream("hi") as run:
        chunks = [chunk async for chunk in run]
        try:
            await run.result()
        except ModelError as error:
            return chunks, error
    return chunks, None


@each_protocol
@each_case
async def test_who_reads_along(
    protocol: ProtocolName, row: Row, place: str, pauses: list[float]
) -> None:
    """What came before is seen, then one error and the end; no tool runs; asked as often as helps.

    Before the first chunk the client asks again; later nobody does behind the reader's back.
    """
    early = place == "before the first chunk"
    entry = row.make(protocol, PLACES[place])
    async with ModelServer([entry], repeat=True) as server:
        model = server.model(protocol=protocol, max_retries=RETRIES, timeout=row.timeout)
        chunks, error = await streamed(Agent(model=model, tools=[lookup]))
        asked = len(server.requests)
    assert type(error) is (row.early if early else row.late)
    assert isinstance(error, ModelError)
    assert (error.provider, error.model) == (model.provider, "scripted")
    assert error.is_retryable is row.passing[not early]
    assert error.mid_stream is not early
    assert asked == (1 + RETRIES if early and row.passing[0] else 1)
    assert len(pauses) == asked - 1
    kinds = [type(chunk) for chunk in chunks]
    assert kinds[-2:] == [ErrorChunk, FinishChunk]
    assert kinds.count(ErrorChunk) == 1
    assert ToolCall not in kinds or place == "mid tool arguments"
    text = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
    assert text in (("",) if early else ("", "Hello", "Hello world"))


@each_protocol
@each_case
async def test_who_only_wants_the_result(
    protocol: ProtocolName, row: Row, place: str, pauses: list[float]
) -> None:
    """`generate` asks for a broken answer again as well, as often as the client would."""
    early = place == "before the first chunk"
    entry = row.make(protocol, PLACES[place])
    async with ModelServer([entry], repeat=True) as server:
        model = server.model(protocol=protocol, max_retries=RETRIES, timeout=row.timeout)
        with pytest.raises(row.early if early else row.late) as caught:
            await Agent(model=model, tools=[lookup]).generate("hi")
        asked = len(server.requests)
    assert asked == (1 + RETRIES if row.passing[not early] else 1)
    assert len(pauses) == asked - 1
    assert caught.value.result.text == ""
    assert caught.value.result.messages == []


@each_protocol
async def test_the_second_answer_counts(protocol: ProtocolName) -> None:
    """Whatever failed before, a whole answer is a success, and the model is told nothing."""
    script: list[Any] = [
        [fail(status=503)],
        faulty(["Hello", "!"], "cut", at=b"Hello"),
        faulty(["Hello", "!"], "garbage", at=1_000_000),
    ]
    async with ModelServer(script) as server:
        model = server.model(protocol=protocol)
        result = await Agent(model=model).generate("hi")
        assert len(server.requests) == 3
        assert server.requests[0].body == server.requests[2].body
    assert result.text == "Hello!"


@pytest.mark.parametrize("header", [{"retry-after": "2"}, {"retry-after-ms": "2000"}])
def test_a_wait_that_the_provider_asks_for(header: dict[str, str]) -> None:
    """It is waited for in full before the next request, not a moment less."""
    times: list[float] = []

    class Watched(Network):
        async def post(self, url: str, **asked: Any) -> Response:
            times.append(asyncio.get_running_loop().time())
            return await super().post(url, **asked)

    network = Watched(refusal(429, **header), Response(b"data: [DONE]\n\n"))

    async def ask() -> list[Chunk]:
        return [chunk async for chunk in model_on(network).stream(REQUEST)]

    assert isinstance(run_virtual(ask())[-1], FinishChunk)
    assert times == [0.0, 2.0]
