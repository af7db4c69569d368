"""What one would write without a library: a loop in a loop."""

from __future__ import annotations

import httpx
import orjson

from benchmarks.peers.peer import Peer
from benchmarks.peers.work import Run, Work, spoken

__all__ = ["LOOP", "PEERS"]

LOOP = "async generator of strings, steps called in the loop"


def loop(work: Work) -> Run:
    """Call the steps on what an async generator yields."""

    async def run() -> list[str]:
        chain = work.steps.chain
        got: list[str] = []
        async for text in spoken(work.texts):
            piece = text
            for step in chain:
                piece = step(piece)
            got.append(piece)
        return got

    return run


def wire(work: Work) -> Run:
    """Call them on what the lines of a response say."""
    client = httpx.AsyncClient()
    work.closing.push_async_callback(client.aclose)
    url = f"{work.base_url}/chat/completions"
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}

    async def run() -> list[str]:
        chain = work.steps.chain
        got: list[str] = []
        async with client.stream("POST", url, json=body) as response:
            async for line in response.aiter_lines():
                if not line.startswith("data: ") or line == "data: [DONE]":
                    continue
                piece = orjson.loads(line[6:])["choices"][0]["delta"].get("content")
                if piece is not None:
                    for step in chain:
                        piece = step(piece)
                    got.append(piece)
        return got

    return run


PEERS = (
    Peer(LOOP, loop),
    Peer("httpx lines and orjson, steps called in the loop", wire, wire=True),
)
