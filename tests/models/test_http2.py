"""HTTP/2: many calls over one connection, against a server that speaks it, over TLS."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from hypercorn.asyncio import serve
from hypercorn.config import Config

from streampipe.chunks import TextDelta
from streampipe.errors import ConfigurationError
from streampipe.models import OpenAIChatModel
from streampipe.models._http import over_httpx
from tests.models.streams import event, sse
from tests.models.test_call import REQUEST, Network

BODY = sse(event({"content": "hel"}), event({"content": "lo"}), event(reason="stop"))


class App:
    """An ASGI application that answers every request alike, and notes how it came.

    Attributes:
        seen: the HTTP version and the client's port of each request.
    """

    def __init__(self) -> None:
        """Nothing was asked yet."""
        self.seen: list[tuple[str, int]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        self.seen.append((scope["http_version"], scope["client"][1]))
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": BODY})


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[App, str]]:
    """The application on loopback, and its address; its certificate is trusted.

    Yields:
        Both.
    """
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
        tmp_path / "cert.pem"
    )
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    monkeypatch.setattr(over_httpx, "_tls", lambda: trusting)
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    config = Config()
    config.bind = [f"fd://{listening.detach()}"]  # the server's to close
    config.certfile = config.keyfile = str(tmp_path / "cert.pem")
    config.loglevel = "CRITICAL"
    app, stop = App(), asyncio.Event()
    server = asyncio.create_task(serve(app, config, shutdown_trigger=stop.wait))
    try:
        yield app, f"https://127.0.0.1:{port}/v1"
    finally:
        for client in over_httpx._pools.pop(asyncio.get_running_loop()).clients.values():
            await client.aclose()
        stop.set()
        await server


async def texts(model: OpenAIChatModel) -> str:
    """The text of an answer."""
    chunks = [chunk async for chunk in model.stream(REQUEST)]
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))


@pytest.mark.parametrize(("http2", "version"), [(True, "2"), (False, "1.1")])
async def test_which_version_is_spoken(
    served: tuple[App, str], version: str, *, http2: bool
) -> None:
    """HTTP/2 when it is asked for, over one connection for calls at once; else HTTP/1.1."""
    app, address = served
    model = OpenAIChatModel("m", base_url=address, http2=http2)
    assert await texts(model) == "hello"
    assert await asyncio.gather(*[texts(model) for _ in range(5)]) == ["hello"] * 5
    assert {seen[0] for seen in app.seen} == {version}
    ports = {seen[1] for seen in app.seen}
    assert len(ports) == 1 if http2 else len(ports) > 1


def test_without_the_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the model is built, not with its first call."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: find(name) if name != "h2" else None
    )
    with pytest.raises(ConfigurationError, match=r"pip install 'streampipe-rx\[http2\]'"):
        OpenAIChatModel("m", base_url="http://127.0.0.1:9/v1", http2=True)


def test_a_transport_of_one_s_own_decides_that_itself() -> None:
    """Two ways to say how the network is reached contradict each other."""
    with pytest.raises(ConfigurationError, match="one of http_client, transport, http2"):
        OpenAIChatModel("m", base_url="http://127.0.0.1:9/v1", http2=True, transport=Network())
