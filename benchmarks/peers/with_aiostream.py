"""aiostream: a map for each step."""

from __future__ import annotations

from typing import Any

from aiostream import pipe, stream

from benchmarks.peers.peer import Peer
from benchmarks.peers.work import Run, Work, spoken

__all__ = ["PEERS"]

MAP: Any = pipe.map  # its type asks for a function of any number of streams, and there is one


def maps(work: Work) -> Run:
    """Iterate over an async generator."""

    async def run() -> list[str]:
        one, two, three, four = work.steps.chain
        piped = stream.iterate(spoken(work.texts)) | MAP(one) | MAP(two) | MAP(three) | MAP(four)
        got: list[str] = []
        async with piped.stream() as streamer:
            got += [text async for text in streamer]
        return got

    return run


PEERS = (Peer("`stream.iterate`, 4 `pipe.map`", maps),)
