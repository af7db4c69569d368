"""The transport over httpx, on real sockets: errors by table, connections, who closes what."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from streampipe.chunks import FinishChunk, TextDelta
from streampipe.contracts import ModelRequest
from streampipe.errors import (
    ConfigurationError,
    ConnectTimeoutError,
    IncompleteStreamError,
    ModelConnectionError,
    ModelError,
    ModelTimeoutError,
    ProviderError,
    ProviderStreamError,
    StreampipeError,
)
from streampipe.models._http import over_httpx
from streampipe.models._http.endpoint import HttpModel
from streampipe.models._http.transport import Timeout
from streampipe.models.openai_chat import OpenAIChatModel
from streampipe.testing import Answer, ModelServer, call, delay, fail, turn
from tests.models.streams import event, sse
from tests.models.test_call import REQUEST, collected

SOON = 0.1  # seconds in which the server must see that a client has gone


def texts(chunks: list[Any]) -> str:
    """The text of chunks."""
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))


def failures(cls: type[Exception]) -> list[type[Exception]]:
    """A class and all below it."""
    return [cls, *(found for sub in cls.__subclasses__() for found in failures(sub))]


RAISED = [
    value
    for value in vars(httpx).values()
    if isinstance(value, type)
    and issubclass(value, Exception)
    and value is not httpx.CookieConflict  # raised where a cookie is read by name: nowhere here
]


def made(cls: type[Exception]) -> Exception:
    """An exception of httpx."""
    request = httpx.Request("POST", "http://127.0.0.1")
    if issubclass(cls, httpx.HTTPStatusError):
        return cls("told", request=request, response=httpx.Response(500))
    try:
        return cls("told")
    except TypeError:  # some say the same always
        return cls()


@pytest.mark.parametrize("cls", RAISED)
def test_every_failure_of_httpx_is_one_of_ours(cls: type[Exception]) -> None:
    """The table is total: all that httpx exports is caught, and becomes one of ours."""
    assert issubclass(cls, over_httpx.CAUGHT)
    error = over_httpx.translated(made(cls), "http://user:s3cret@127.0.0.1:9/v1")
    assert isinstance(error, StreampipeError)
    assert cls.__name__ in str(error), "the kind of failure is named"
    assert "s3cret" not in str(error)


def test_no_failure_of_httpx_is_hidden_from_the_table() -> None:
    """What httpx raises is what it exports: no class below is missing above."""
    below = {found for cls in over_httpx.CAUGHT for found in failures(cls)}
    assert {cls for cls in below if cls.__module__.partition(".")[0] == "httpx"} <= set(RAISED)
    assert set(over_httpx.ERRORS) <= set(RAISED)


@pytest.mark.parametrize(
    ("cls", "ours", "retryable"),
    [
        (httpx.ConnectTimeout, ConnectTimeoutError, True),
        (httpx.ReadTimeout, ModelTimeoutError, True),
        (httpx.PoolTimeout, ConnectTimeoutError, True),
        (httpx.ConnectError, ModelConnectionError, True),
        (httpx.ReadError, ModelConnectionError, True),
        (httpx.RemoteProtocolError, ModelConnectionError, True),
        (httpx.LocalProtocolError, ModelConnectionError, False),
        (httpx.ProxyError, ModelConnectionError, False),
        (httpx.DecodingError, ProviderStreamError, False),
        (httpx.TooManyRedirects, ModelConnectionError, False),
    ],
)
def test_what_failures_become(
    cls: type[Exception], ours: type[ModelError], *, retryable: bool
) -> None:
    """The nearest class in the table decides, and whether asking again may help."""
    error = over_httpx.translated(made(cls), "http://127.0.0.1:9/v1")
    assert type(error) is ours
    assert isinstance(error, ModelError)
    assert error.is_retryable is retryable


@pytest.mark.parametrize("cls", [httpx.UnsupportedProtocol, httpx.InvalidURL])
def test_a_wrong_address_is_a_mistake_of_the_caller(cls: type[Exception]) -> None:
    """It is not a model's failure, so nothing catches it as one."""
    error = over_httpx.translated(made(cls), "http://[")
    assert type(error) is ConfigurationError
    assert "base_url" in str(error)


async def test_nobody_listens() -> None:
    """A refused connection names the host, and is worth another try."""
    async with ModelServer() as server:
        model = server.model(max_retries=0)
        address = server.base_url.removeprefix("http://").removesuffix("/v1")
    with pytest.raises(
        ModelConnectionError, match=f"openai/scripted: {address}: ConnectError"
    ) as e:
        await collected(model)
    assert e.value.is_retryable


@pytest.mark.parametrize("script", [[delay(9), "late"], ["early", delay(9)]])
async def test_a_silent_provider_times_out(script: list[Any]) -> None:
    """Before the head as well as between two pieces; the connection is closed."""
    async with ModelServer([script]) as server:
        with pytest.raises(ModelTimeoutError):
            await collected(server.model(max_retries=0, timeout=0.05))
        await server.closed()
        assert not server.requests[0].completed


async def test_a_connection_that_breaks_in_mid_stream() -> None:
    """What was said before is given; then the stream is incomplete, and worth another try."""
    async with ModelServer([turn("Hel", "lo", fail())]) as server:
        seen: list[Any] = []
        with pytest.raises(IncompleteStreamError, match="mid-stream") as caught:
            async for chunk in server.model().stream(REQUEST):
                seen.append(chunk)  # noqa: PERF401 - what came before the error is looked at
    assert texts(seen) == "Hello"
    assert caught.value.is_retryable
    assert len(server.requests) == 1


async def test_a_stream_that_ends_without_its_end() -> None:
    """A clean end of the connection is no end of the answer."""
    async with ModelServer([turn("Hel", incomplete=True)]) as server:
        with pytest.raises(IncompleteStreamError):
            await collected(server.model())


async def test_the_second_attempt_answers() -> None:
    """Over real sockets: an error, the wait that it asks for, an answer."""
    refused = Answer(b'{"error":{"message":"busy"}}', 429, {"retry-after": "0"})
    async with ModelServer([refused, fail(status=503), ["fine"]]) as server:
        assert texts(await collected(server.model())) == "fine"
        server.assert_complete()
        assert [request.body for request in server.requests[1:]] == [server.requests[0].body] * 2


@pytest.mark.parametrize(
    "body",
    [b"", b"garbage", b"data: garbage\n\n", b"data: \xff\n\n", b"\x00" * 100, b"data: []\n\n"],
)
async def test_garbage_is_a_model_error(body: bytes) -> None:
    """Whatever a server sends as a stream, the caller gets an answer or a model error."""
    async with ModelServer([Answer(body)]) as server:
        with pytest.raises(ModelError):
            await collected(server.model(max_retries=0))


async def test_a_bad_compression_is_a_stream_error() -> None:
    """What the body says of itself must be true."""
    lie = Answer(b"not gzip at all", headers={"content-encoding": "gzip"})
    async with ModelServer([lie]) as server:
        with pytest.raises(ProviderStreamError, match="DecodingError"):
            await collected(server.model(max_retries=0))


async def test_a_redirect_is_not_followed() -> None:
    """The prompt and the key go to the address that was given, and nowhere else."""
    moved = Answer(b"", 307, {"location": "http://127.0.0.1:1/"})
    async with ModelServer([moved]) as server:
        with pytest.raises(ProviderError, match="HTTP 307"):
            await collected(server.model())


async def leave_by_break(model: HttpModel) -> None:
    """Close the stream after its first text."""
    stream = model.stream(REQUEST)
    async for chunk in stream:
        if isinstance(chunk, TextDelta):
            break
    await stream.aclose()


async def leave_by_cancel(model: HttpModel) -> None:
    """Cancel the task that reads, while it waits for the next piece."""
    begun = asyncio.Event()

    async def read() -> None:
        async for chunk in model.stream(REQUEST):
            if isinstance(chunk, TextDelta):
                begun.set()

    task = asyncio.create_task(read())
    await begun.wait()
    await asyncio.sleep(0)  # now it waits for the socket
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("leave", [leave_by_break, leave_by_cancel])
async def test_the_provider_sees_at_once_that_the_client_has_gone(
    leave: Callable[[HttpModel], Any],
) -> None:
    """Closing or cancelling closes the connection within a tenth of a second."""
    async with ModelServer([["a", delay(9), "b"]]) as server:
        await leave(server.model())
        left = time.monotonic()
        async with asyncio.timeout(5):
            assert await server.closed() - left < SOON
            assert await server.requests[0].wait() - left < SOON
        assert not server.requests[0].completed


@pytest.mark.parametrize("ticks", [*range(1, 40), 60, 100])
async def test_a_call_that_is_cancelled_while_it_connects_leaves_nothing(ticks: int) -> None:
    """Whenever it is cancelled: no task is left, and no connection that could serve nobody."""
    async with ModelServer([["hi"], ["hi"]]) as server:
        task = asyncio.create_task(collected(server.model()))
        for _ in range(ticks):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        async with asyncio.timeout(5):
            while _busy():  # noqa: ASYNC110 - it takes some turns of the loop, and tells nobody
                await asyncio.sleep(0.001)
        assert asyncio.all_tasks() - {asyncio.current_task()} <= server._tasks


def _busy() -> list[Any]:
    """The connections of this loop's pool that could serve nobody."""
    pool = over_httpx._pools.get(asyncio.get_running_loop())
    clients = pool.clients.values() if pool is not None else ()
    return [
        connection
        for client in clients
        for connection in client._transport._pool.connections  # type: ignore[attr-defined]  # to see
        if not connection.is_available() and not connection.is_closed()
    ]


async def test_a_connection_serves_the_next_call() -> None:
    """A stream that was read to its end leaves its connection for the next one."""
    async with ModelServer([["hi"]], repeat=True) as server:
        for _ in range(5):
            assert texts(await collected(server.model())) == "hi"
        assert len(server.connections) == 1


async def test_a_server_that_does_not_hang_up_holds_nobody() -> None:
    """After `[DONE]` the call is over, though the body does not end."""
    async with ModelServer([Answer([sse(event({"content": "x"}, "stop"))]), ["y"]]) as server:
        assert texts(await collected(server.model())) == "x"


async def test_calls_at_once_do_not_wait_for_each_other() -> None:
    """The pool has no upper bound: a hundred streams are a hundred connections."""
    everybody = asyncio.Barrier(100)

    async def read(server: ModelServer) -> str:
        text = ""
        async for chunk in server.model().stream(REQUEST):
            if isinstance(chunk, TextDelta):
                text += chunk.text
                await everybody.wait()  # nobody reads on before all have begun
        return text

    async with asyncio.timeout(30), ModelServer([["ok"]], repeat=True) as server:
        assert await asyncio.gather(*[read(server) for _ in range(100)]) == ["ok"] * 100
        assert len(server.connections) == 100


async def test_a_given_client_is_used_and_left_open() -> None:
    """Its headers and settings hold; closing it is its owner's business."""
    async with (
        ModelServer([["hi"]]) as server,
        httpx.AsyncClient(headers={"x-mine": "1"}) as client,
    ):
        await collected(server.model(http_client=client))
        assert server.requests[0].headers["x-mine"] == "1"
        assert not client.is_closed


async def test_a_given_client_that_is_closed_is_told() -> None:
    """The message says what to do; httpx alone would raise a RuntimeError."""
    client = httpx.AsyncClient()
    await client.aclose()
    with pytest.raises(ConfigurationError, match=r"http_client.*closed"):
        await collected(OpenAIChatModel("m", base_url="http://127.0.0.1:9", http_client=client))


def test_every_loop_has_a_client_of_its_own_and_closes_it() -> None:
    """Loops one after another: none sees another's connections, none is kept alive."""
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []
    clients: list[httpx.AsyncClient] = []

    async def once() -> None:
        loop = asyncio.get_running_loop()
        async with ModelServer([["hi"]]) as server:
            assert texts(await collected(server.model())) == "hi"
        loops.append(weakref.ref(loop))
        clients.append(over_httpx._pools[loop].clients[False])

    for _ in range(3):
        asyncio.run(once())
    assert len({id(client) for client in clients}) == 3
    assert all(client.is_closed for client in clients)
    assert not any(loop() in over_httpx._pools for loop in loops)
    clients.clear()
    gc.collect()
    assert [loop() for loop in loops] == [None, None, None]


def test_a_loop_that_was_only_closed_is_forgotten() -> None:
    """Without an orderly shutdown the entry goes when the next client is made."""
    loop = asyncio.new_event_loop()
    client = loop.run_until_complete(over_httpx._shared_client())
    loop.run_until_complete(client.aclose())
    loop.close()
    assert loop in over_httpx._pools
    asyncio.run(touch())
    assert loop not in over_httpx._pools


async def touch() -> None:
    """Make this loop's client."""
    await over_httpx._shared_client()


@pytest.mark.parametrize(
    ("given", "connect"), [(60, 10.0), (3, 3), (None, None), (Timeout(connect=1), 1)]
)
async def test_httpx_keeps_the_time_of_connecting_only(given: Any, connect: float | None) -> None:
    """The rest is looked after where a chunk is told from a ping."""
    seen: dict[str, Any] = {}

    def handle(request: httpx.Request) -> httpx.Response:
        seen.update(request.extensions["timeout"])
        body = sse(event({"content": "x"}, "stop"))
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    async with httpx.AsyncClient(transport=httpx.MockTransport(handle)) as client:
        model = OpenAIChatModel("m", api_key="k", http_client=client, timeout=given)
        await collected(model)
    assert (seen["connect"], seen["pool"]) == (connect, connect)
    assert seen["read"] is seen["write"] is None


async def test_a_large_answer_in_large_pieces() -> None:
    """Twenty thousand events in few writes come out, all of them."""
    body = sse(*[event({"content": "x"})] * 20_000, event(reason="stop"))
    async with ModelServer([body]) as server:
        chunks = await collected(server.model(), ModelRequest(REQUEST.prompt))
    assert texts(chunks) == "x" * 20_000
    assert isinstance(chunks[-1], FinishChunk)


async def test_a_call_over_sockets() -> None:
    """A tool call's pieces, in order, with its arguments parsed."""
    async with ModelServer([[call("f", {"a": 1}, pieces=3)]]) as server:
        kinds = [chunk.type for chunk in await collected(server.model())]
    assert kinds[1:-1] == [
        "tool-call-input-streaming-start",
        *["tool-call-delta"] * 3,
        "tool-call-input-streaming-end",
        "tool-call",
    ]
