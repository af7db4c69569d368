"""LangChain: a chat model that streams, and steps in the chain or behind it.

It is installed by `make bench-peers` only, so the type checkers may not find it:
"""
# mypy: disable-error-code="import-not-found", allow-subclassing-any
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableGenerator

from benchmarks.peers.peer import Peer
from benchmarks.peers.work import Run, Step, Work

__all__ = ["PEERS"]


class SpokenModel(BaseChatModel):
    """Says the texts; the fakes that come with the package choose their own pieces."""

    texts: list[str]

    @property
    def _llm_type(self) -> str:
        return "spoken"

    def _generate(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("it streams only")

    async def _astream(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        for text in self.texts:
            yield ChatGenerationChunk(message=AIMessageChunk(content=text))


def transform(step: Step) -> Any:
    """A step as a link of the chain."""

    async def stage(messages: AsyncIterable[Any]) -> AsyncIterator[Any]:
        async for message in messages:
            if message.content:  # the last one is empty: the model has ended
                message.content = step(message.content)
            yield message

    return RunnableGenerator(stage)


def chain(work: Work) -> Run:
    """The steps in the chain."""
    linked: Any = SpokenModel(texts=list(work.texts))
    for step in work.steps.chain:
        linked = linked | transform(step)

    async def run() -> list[str]:
        return [message.content async for message in linked.astream("hi")]

    return run


async def around(messages: AsyncIterable[Any], step: Step) -> AsyncIterator[Any]:
    """A step as a generator around the stream."""
    async for message in messages:
        if message.content:
            message.content = step(message.content)
        yield message


def generators(work: Work) -> Run:
    """The steps behind the model, in its reader's hands."""
    model = SpokenModel(texts=list(work.texts))

    async def run() -> list[str]:
        messages = model.astream("hi")
        for step in work.steps.chain:
            messages = around(messages, step)
        return [message.content async for message in messages]

    return run


PEERS = (
    Peer("LCEL: the model piped into 4 `RunnableGenerator`, `astream()`", chain),
    Peer("`model.astream()`, 4 generators around it", generators),
)
