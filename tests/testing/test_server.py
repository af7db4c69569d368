"""`ModelServer`: a server that plays a script, seen by plain HTTP clients."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from streampipe.chunks import TextDelta, Usage
from streampipe.errors import ConfigurationError
from streampipe.testing import (
    Answer,
    ModelServer,
    Piece,
    call,
    delay,
    fail,
    reasoning,
    turn,
)

ASKED: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "hi"}],
    "stream": True,
}


async def post(server: ModelServer, **fields: Any) -> httpx.Response:
    """The whole answer to a request."""
    async with httpx.AsyncClient() as client:
        return await client.post(f"{server.base_url}/chat/completions", json={**ASKED, **fields})


def events(response: httpx.Response) -> list[Any]:
    """The events of an answer; the protocol's end is a string."""
    assert response.headers["content-type"] == "text/event-stream"
    datas = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    return [data if data == "[DONE]" else orjson.loads(data) for data in datas]


def deltas(response: httpx.Response) -> list[Any]:
    """The deltas of an answer."""
    return [e["choices"][0]["delta"] for e in events(response)[:-1] if e["choices"]]


async def test_a_turn_is_an_event_stream() -> None:
    """Role, reasoning, text, a call in pieces, the reason, the end; in chunks, without a length."""
    said: list[Piece] = [reasoning("hm"), "Hel", "lo", call("f", {"a": 1}, id="c1", pieces=2)]
    async with ModelServer([said]) as server:
        response = await post(server)
    assert response.headers["transfer-encoding"] == "chunked"
    assert deltas(response) == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "hm"},
        {"content": "Hel"},
        {"content": "lo"},
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "f", "arguments": ""},
                }
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]},
        {},
    ]
    assert events(response)[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert events(response)[-1] == "[DONE]"


async def test_usage_comes_when_asked_for() -> None:
    """As OpenAI does it: in an event of its own, without choices."""
    script = [turn("x", usage=Usage(3, 4, reasoning_tokens=2, cached_input_tokens=1))] * 2
    async with ModelServer(script) as server:
        without = events(await post(server))
        asked = events(await post(server, stream_options={"include_usage": True}))
    assert not any("usage" in event for event in without[:-1])
    assert asked[-2]["choices"] == []
    assert asked[-2]["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "total_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }


async def test_a_request_without_streaming_gets_a_whole_completion() -> None:
    """The same turn as one JSON object."""
    async with ModelServer([["Hel", "lo", call("f", "no json", id="c")]]) as server:
        body = (await post(server, stream=False)).json()
    (choice,) = body["choices"]
    assert choice["message"] == {
        "role": "assistant",
        "content": "Hello",
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "no json"}}
        ],
    }
    assert choice["finish_reason"] == "tool_calls"
    assert body["usage"]["total_tokens"] == 4


async def test_requests_are_kept() -> None:
    """Body and headers of each, in order."""
    async with ModelServer([["a"], ["b"]]) as server:
        await post(server, seed=1)
        await post(server, seed=2)
        assert [request.body["seed"] for request in server.requests] == [1, 2]
        assert server.requests[0].headers["content-type"] == "application/json"
        for request in server.requests:
            await request.wait()
            assert request.completed


@pytest.mark.parametrize(
    ("failure", "status", "body"),
    [
        (
            fail(status=429, body={"error": {"message": "slow"}}),
            429,
            {"error": {"message": "slow"}},
        ),
        (fail(), 500, {"error": {"message": "scripted failure", "type": "scripted"}}),
        (fail(status=502, body="<html>"), 502, None),
    ],
)
async def test_a_failure_first_is_an_http_error(failure: Any, status: int, body: Any) -> None:
    """With the status and body that the script says; a pause before it is made."""
    async with ModelServer([[delay(0), failure, "never"]]) as server:
        response = await post(server)
    assert response.status_code == status
    if body is None:
        assert response.text == "<html>"
    else:
        assert response.json() == body


@pytest.mark.parametrize("stream", [True, False])
async def test_a_failure_later_breaks_the_connection(*, stream: bool) -> None:
    """What was said before arrives; the body's end does not."""
    async with ModelServer([turn("said", fail())]) as server:
        got = b""
        async with httpx.AsyncClient() as client:
            url = f"{server.base_url}/chat/completions"
            with pytest.raises(httpx.RemoteProtocolError):
                async with client.stream("POST", url, json={**ASKED, "stream": stream}) as response:
                    async for piece in response.aiter_bytes():
                        got += piece
        await server.closed()
        assert not server.requests[0].completed
    assert (b"said" in got) is stream


async def test_an_incomplete_turn_ends_cleanly_without_the_protocols_end() -> None:
    """HTTP is fine, the chat is not."""
    async with ModelServer([turn("said", incomplete=True)]) as server:
        response = await post(server)
    assert "said" in response.text
    assert "[DONE]" not in response.text
    assert '"finish_reason":"' not in response.text


async def test_raw_answers(tmp_path: Path) -> None:
    """Bytes, a file, or an answer in full are sent as they are."""
    file = tmp_path / "recorded.sse"
    file.write_bytes(b"data: from a file\n\n")
    script: list[Answer | bytes | Path] = [
        b"data: bytes\n\n",
        file,
        Answer(b"<html>", 418, {"content-type": "text/html", "x-told": "1"}),
        Answer([b"da", b"", b"ta: pieces\n\n"]),
        Answer(file, headers={"retry-after": "3"}),
        b"",
    ]
    async with ModelServer(script) as server:
        made = [await post(server) for _ in script]
    assert [response.text for response in made] == [
        "data: bytes\n\n",
        "data: from a file\n\n",
        "<html>",
        "data: pieces\n\n",
        "data: from a file\n\n",
        "",
    ]
    assert made[0].headers["content-type"] == "text/event-stream"
    assert made[2].status_code == 418
    assert made[2].headers["content-type"] == "text/html"
    assert made[2].headers["x-told"] == "1"
    assert made[4].headers["retry-after"] == "3"


async def test_a_large_raw_answer_is_whole() -> None:
    """Megabytes arrive as they are."""
    body = bytes(range(256)) * 20_000
    async with ModelServer([body]) as server:
        assert (await post(server)).content == body


async def test_the_end_of_the_script_is_told() -> None:
    """A clear error instead of an answer; with `repeat` it starts again."""
    async with ModelServer([["a"]]) as server:
        await post(server)
        response = await post(server)
        assert response.status_code == 500
        assert "request 2 of a script of 1 turns" in response.json()["error"]["message"]
    async with ModelServer([["a"], ["b"]], repeat=True) as server:
        told = [deltas(await post(server))[1]["content"] for _ in range(3)]
    assert told == ["a", "b", "a"]
    async with ModelServer([], repeat=True) as server:
        assert (await post(server)).status_code == 500


async def test_turns_that_were_not_played_are_told() -> None:
    """A test can check that all of its script was used."""
    async with ModelServer([["a"], ["b"]]) as server:
        await post(server)
        with pytest.raises(AssertionError, match="1 of 2"):
            server.assert_complete()
        await post(server)
        server.assert_complete()


@pytest.mark.parametrize(
    ("method", "path", "content", "status"),
    [
        ("POST", "/v1/completions", b"{}", 404),
        ("GET", "/v1/models", b"", 404),
        ("GET", "/v1/chat/completions", b"", 405),
        ("POST", "/v1/chat/completions", b"{", 400),
        ("POST", "/v1/chat/completions", b"", 400),
        ("POST", "/v1/chat/completions", b"[]", 400),
        ("POST", "/v1/chat/completions", b'{"model": "m"}', 400),
        ("POST", "/v1/chat/completions", b'{"model": "m", "messages": []}', 400),
    ],
)
async def test_a_wrong_request_is_refused(
    method: str, path: str, content: bytes, status: int
) -> None:
    """With a message; it takes no turn of the script."""
    async with ModelServer([["a"]]) as server, httpx.AsyncClient() as client:
        url = server.base_url.removesuffix("/v1") + path
        response = await client.request(method, url, content=content)
        assert response.status_code == status
        assert response.json()["error"]["message"]
        assert deltas(await post(server))[1] == {"content": "a"}


async def test_a_request_that_lacks_a_field() -> None:
    """What the real server requires is required here, too, and named."""
    async with ModelServer([["a"]]) as server, httpx.AsyncClient() as client:
        url = f"{server.base_url}/messages"
        response = await client.post(url, json=ASKED)
        assert response.status_code == 400
        assert "max_tokens: field required" in response.json()["error"]["message"]
        assert (await client.post(url, json={**ASKED, "max_tokens": 9})).status_code == 200


@pytest.mark.parametrize("version", ["v1", "v1beta"])
async def test_googles_versions(version: str) -> None:
    """Clients ask for either."""
    async with ModelServer([["a"]]) as server, httpx.AsyncClient() as client:
        url = server.address("google").replace("v1beta", version)
        body = {"contents": [{"parts": [{"text": "hi"}]}]}
        response = await client.post(f"{url}/models/m:generateContent", json=body)
        assert response.json()["candidates"][0]["content"]["parts"] == [{"text": "a"}]


async def test_a_request_in_chunks() -> None:
    """A client that does not know the length says so; the next request on it is read as well."""

    async def pieces() -> AsyncIterator[bytes]:
        body = orjson.dumps(ASKED)
        for start in range(0, len(body), 7):
            yield body[start : start + 7]

    async with ModelServer([["a"], ["b"]]) as server, httpx.AsyncClient() as client:
        url = f"{server.base_url}/chat/completions"
        response = await client.post(url, content=pieces())
        assert response.request.headers["transfer-encoding"] == "chunked"
        assert deltas(response)[1] == {"content": "a"}
        assert deltas(await client.post(url, json=ASKED))[1] == {"content": "b"}
        assert len(server.connections) == 1
        assert server.requests[0].body == ASKED


CHUNKED = b"POST /v1/chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"


async def test_chunks_may_have_extensions_and_a_trailer() -> None:
    """Both are read over."""
    body = orjson.dumps(ASKED)
    sent = CHUNKED + b"%x;a=b\r\n%b\r\n0\r\nx-sum: 1\r\n\r\n" % (len(body), body)
    async with ModelServer([["a"]]) as server:
        host, port = server.base_url.removeprefix("http://").removesuffix("/v1").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        async with asyncio.timeout(5):
            assert b"[DONE]" in await reader.readuntil(b"[DONE]")
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    "sent",
    [
        CHUNKED + b"-1\r\n",
        CHUNKED + b"x\r\n",
        CHUNKED + b"fffffffffff\r\n",
        b"\x00\x01\x02\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        b"GET",
        b"",
    ],
)
async def test_what_is_no_http_is_hung_up_on(sent: bytes) -> None:
    """The server goes on for the others."""
    async with ModelServer([["a"]]) as server:
        host, port = server.base_url.removeprefix("http://").removesuffix("/v1").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        writer.write_eof()
        async with asyncio.timeout(5):
            await reader.read()
        writer.close()
        await writer.wait_closed()
        assert deltas(await post(server))[1] == {"content": "a"}


@pytest.mark.parametrize(
    "script",
    [
        [TextDelta("0", "x")],
        [[fail(ValueError("x"))]],
        [7],
        [[call("f", {"a": {1, 2}})]],
        [["\ud800"]],
    ],
    ids=["chunk", "exception", "number", "arguments that are no JSON", "text that is none"],
)
def test_a_script_that_cannot_be_played_is_refused(script: Any) -> None:
    """When the server is built, not when it is asked."""
    with pytest.raises(ConfigurationError):
        ModelServer(script)


def test_a_file_that_is_missing_is_told_when_the_server_is_built(tmp_path: Path) -> None:
    """Not in the middle of a test."""
    with pytest.raises(ConfigurationError, match=r"missing\.sse"):
        ModelServer([tmp_path / "missing.sse"])


def test_a_server_that_does_not_run_has_no_address() -> None:
    """The message says how to start it."""
    with pytest.raises(ConfigurationError, match="async with"):
        _ = ModelServer([]).base_url


async def test_a_client_that_leaves_is_seen_at_once() -> None:
    """In the middle of a stream, while the script makes a pause."""
    async with ModelServer([["a", delay(9)]]) as server:
        async with httpx.AsyncClient() as client:
            url = f"{server.base_url}/chat/completions"
            async with client.stream("POST", url, json=ASKED) as response:
                async for _ in response.aiter_bytes():
                    break
        left = time.monotonic()
        async with asyncio.timeout(5):
            assert await server.closed() - left < 0.1
        (connection,) = server.connections
        assert connection.closed is not None
        assert connection.opened < connection.closed
        assert not server.requests[0].completed


async def test_requests_on_one_connection_follow_each_other() -> None:
    """A client that sends its next request at once loses nothing of it."""
    async with ModelServer([["a"]], repeat=True) as server, httpx.AsyncClient() as client:
        for _ in range(50):
            url = f"{server.base_url}/chat/completions"
            response = await client.post(url, json=ASKED)
            assert response.status_code == 200
        assert len(server.connections) == 1


async def test_a_pipelined_request_is_answered_in_turn() -> None:
    """Two requests in one write get two answers."""
    body = orjson.dumps({**ASKED, "stream": False})
    head = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with ModelServer([["first"], ["second"]]) as server:
        host, port = server.base_url.removeprefix("http://").removesuffix("/v1").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write((head + body) * 2)
        async with asyncio.timeout(5):
            got = await reader.readuntil(b"second")
        assert b"first" in got
        writer.close()
        await writer.wait_closed()
        await server.closed()


async def test_closed_without_connections_is_at_once() -> None:
    """There is nothing to wait for."""
    async with ModelServer([]) as server:
        assert await server.closed() == 0.0


async def test_it_stops_in_the_middle_of_an_answer() -> None:
    """Leaving the block ends what goes on, and leaves no task and no socket."""
    before = asyncio.all_tasks()
    async with ModelServer([["a", delay(9)]]) as server, httpx.AsyncClient() as client:
        url = f"{server.base_url}/chat/completions"
        with pytest.raises(httpx.RemoteProtocolError):
            async with client.stream("POST", url, json=ASKED) as response:
                async for _ in response.aiter_bytes():
                    await server.__aexit__(None, None, None)
    assert asyncio.all_tasks() == before


async def test_it_starts_fast() -> None:
    """A test pays nothing for it: a fifth of a second is the most, a millisecond is usual."""
    start = time.perf_counter()
    async with ModelServer([]):
        assert time.perf_counter() - start < 0.2
