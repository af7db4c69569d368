"""Answers that go wrong on their way: at which byte, and what the client sees of it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.errors import ConfigurationError
from streampipe.testing import Answer, Fault, ModelServer, delay, fail, faulty, turn
from streampipe.testing._faults import Action, Broken, Stalled
from streampipe.testing._script import Delay

ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
BODY = b"data: one\n\ndata: two\n\n"


async def read(
    server: ModelServer, limit: float = 5.0, *, stream: bool = True
) -> tuple[bytes, str]:
    """What comes of an answer, and how it ends."""
    asked = {**ASKED, "stream": stream}
    got = b""
    try:
        async with (
            httpx.AsyncClient(timeout=limit) as client,
            client.stream("POST", f"{server.base_url}/chat/completions", json=asked) as answer,
        ):
            async for data in answer.aiter_raw():
                got += data
    except httpx.HTTPError as error:
        return got, type(error).__name__
    return got, "ended"


@given(st.lists(st.binary(min_size=1, max_size=8), min_size=1, max_size=6), st.data())
def test_the_place_is_a_byte_of_the_body(pieces: list[bytes], data: st.DataObject) -> None:
    """However the body is cut into pieces, a fault comes behind so many bytes of it."""
    whole = b"".join(pieces)
    at = data.draw(st.integers(0, len(whole)))
    actions: list[Action] = [*pieces]
    cut = faulty(pieces, "cut", at=at).applied(actions)
    assert cut[-1] == Broken()
    assert b"".join(a for a in cut if isinstance(a, bytes)) == whole[:at]
    dirty = faulty(pieces, "garbage", at=at, data=b"!").applied(actions)
    assert b"".join(a for a in dirty if isinstance(a, bytes)) == whole[:at] + b"!" + whole[at:]
    late = faulty(pieces, "delay", at=at, seconds=3).applied(actions)
    before = late[: late.index(Delay(3))]
    assert b"".join(a for a in before if isinstance(a, bytes)) == whole[:at]
    assert b"".join(a for a in late if isinstance(a, bytes)) == whole


@given(st.binary(min_size=1, max_size=40), st.integers(1, 50))
def test_a_drip_is_the_same_body(body: bytes, size: int) -> None:
    """In pieces of so many bytes, with pauses where they are asked for."""
    dripped = faulty(body, "drip", size=size).applied([body])
    assert b"".join(a for a in dripped if isinstance(a, bytes)) == body
    assert all(len(a) == size for a in dripped[:-1] if isinstance(a, bytes))
    paused = faulty(body, "drip", size=size, seconds=1).applied([body])
    assert paused.count(Delay(1)) == len(dripped)


async def test_over_a_socket() -> None:
    """Cut, silent, dirty and late, as a client sees it."""
    script = [
        faulty(BODY, "cut", at=9),
        faulty(BODY, "cut"),
        faulty(BODY, "end", at=9),
        faulty(BODY, "garbage", at=b"one\n\n", data=b"?"),
        faulty(BODY, "delay", at=3, seconds=0.05),
        faulty(BODY, "drip", size=1),
    ]
    async with ModelServer(script) as server:
        assert await read(server) == (BODY[:9], "RemoteProtocolError")
        assert await read(server) == (b"", "RemoteProtocolError")
        assert await read(server) == (BODY[:9], "ended")
        assert await read(server) == (b"data: one\n\n?data: two\n\n", "ended")
        began = time.monotonic()
        assert await read(server) == (BODY, "ended")
        assert time.monotonic() - began >= 0.05
        assert await read(server) == (BODY, "ended")
        server.assert_complete()


@pytest.mark.parametrize("at", [0, 9])
async def test_silence_lasts_until_the_client_leaves(at: int) -> None:
    """Before the head as well; the server sees the client go."""
    async with ModelServer([faulty(BODY, "stall", at=at)]) as server:
        assert await read(server, 0.05) == (BODY[:at], "ReadTimeout")
        await asyncio.wait_for(server.closed(), 5)
        assert not server.requests[0].completed


async def test_any_entry_can_go_wrong(tmp_path: Path) -> None:
    """Turns, files and answers, once or several times over."""
    file = tmp_path / "recorded.sse"
    file.write_bytes(BODY)
    script = [
        faulty(turn("Hello", "there"), "cut", at=b"Hello"),
        faulty(file, "cut", at=4),
        faulty(Answer(BODY, headers={"content-type": "text/html"}), "garbage", data=b"<"),
        faulty(faulty([delay(0.0), "Hello"], "drip", size=7), "cut", at=b"Hello"),
    ]
    async with ModelServer(script) as server:
        body, end = await read(server)
        assert (body.count(b"Hello"), b"there" in body, end) == (1, False, "RemoteProtocolError")
        assert await read(server) == (b"data", "RemoteProtocolError")
        assert (await read(server))[0] == b"<" + BODY
        body, end = await read(server)
        assert body.endswith(b"Hello")


async def test_an_answer_that_is_no_stream_goes_wrong_too() -> None:
    """Its JSON body is the answer, and is cut, dirty or dripping like any other."""
    script = [
        faulty(["Hello"], "cut", at=b"Hello"),
        faulty(["Hello"], "cut"),
        faulty(["Hello"], "garbage", at=b"Hello", data=b"!"),
        faulty(["Hello"], "drip", size=9),
    ]
    async with ModelServer(script) as server:
        body, end = await read(server, stream=False)
        assert (body.endswith(b"Hello"), end) == (True, "RemoteProtocolError")
        assert await read(server, stream=False) == (b"", "RemoteProtocolError")
        assert b'"Hello!"' in (await read(server, stream=False))[0]
        body, end = await read(server, stream=False)
        assert (orjson.loads(body)["choices"][0]["message"]["content"], end) == ("Hello", "ended")


@pytest.mark.parametrize(
    "entry", [fail(), turn(delay(0), fail(status=429)), faulty(fail(), "drip")]
)
def test_an_http_error_does_not_go_wrong(entry: Any) -> None:
    """It would go out whole, whatever the fault: it is refused when the server is built."""
    with pytest.raises(ConfigurationError, match="Answer"):
        ModelServer([faulty(entry, "cut")])


@pytest.mark.parametrize("stream", [True, False])
async def test_a_place_that_is_not_in_the_answer_is_told(*, stream: bool) -> None:
    """To the client as an error of the server, and to the test that asks."""
    async with ModelServer([faulty(["Hello"], "cut", at=b"nowhere")]) as server:
        body, end = await read(server, stream=stream)
        assert (b"does not hold b'nowhere'" in body, end) == (True, "ended")
        with pytest.raises(AssertionError, match="nowhere"):
            server.assert_complete()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"fault": "explode"}, "cut, end, stall, delay, garbage, drip"),
        ({"fault": "cut", "at": -1}, "at=-1"),
        ({"fault": "drip", "size": 0}, "size=0"),
        ({"fault": "delay", "seconds": -1}, "seconds=-1"),
    ],
)
def test_a_fault_that_is_none(options: dict[str, Fault], told: str) -> None:
    """It is refused when it is written down."""
    with pytest.raises(ConfigurationError, match=told):
        faulty(["x"], **options)  # type: ignore[arg-type]  # what a checker refuses, at run time


def test_a_place_that_is_not_there() -> None:
    """Bytes that the answer does not hold are told, with what was looked for."""
    with pytest.raises(ConfigurationError, match="three"):
        faulty(BODY, "stall", at=b"three").applied([BODY])
    assert faulty(BODY, "stall", at=99).applied([BODY]) == [BODY, Stalled()]
