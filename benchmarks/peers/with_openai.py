"""The openai package: a client on the wire, and nothing else."""

from __future__ import annotations

from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionUserMessageParam

from benchmarks.peers.peer import Peer
from benchmarks.peers.work import Run, Work

__all__ = ["PEERS"]


def client(work: Work) -> Run:
    """Call the steps on what the client yields."""
    openai = AsyncOpenAI(base_url=work.base_url, api_key="no-key", max_retries=0)
    work.closing.push_async_callback(openai.close)
    question: ChatCompletionUserMessageParam = {"role": "user", "content": "hi"}

    async def run() -> list[str]:
        chain = work.steps.chain
        got: list[str] = []
        answer = await openai.chat.completions.create(model="m", messages=[question], stream=True)
        async for chunk in answer:
            piece = chunk.choices[0].delta.content
            if piece is not None:
                for step in chain:
                    piece = step(piece)
                got.append(piece)
        return got

    return run


PEERS = (
    Peer("`chat.completions.create(stream=True)`, steps called in the loop", client, wire=True),
)
