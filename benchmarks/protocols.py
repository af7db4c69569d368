"""A stream over loopback, in each protocol: an agent's run beside the provider's own SDK.

Both read the same bytes from the same server, large writes. The run goes through four guards; the
SDK makes its typed events, and nothing is done with them.
"""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import anthropic
import openai
from google import genai

from benchmarks.measure import Row, Sizes, compare
from benchmarks.work import WORDS, consume, guards
from streampipe import Agent
from streampipe.testing import ModelServer, turn
from streampipe.testing._protocols import PROTOCOLS, ProtocolName

__all__ = ["SDKS", "body", "protocols"]

MICRO = 1e6
MOST_EVENT_US = 8.0
Read = Callable[[], Awaitable[int]]


def body(protocol: ProtocolName, events: int) -> bytes:
    """An answer of so many pieces of text, as a server of the protocol tells it."""
    said = turn(*(WORDS[number % len(WORDS)] for number in range(events)))
    made = PROTOCOLS[protocol].wire.events(said, 0, "m", usage=True)
    return b"".join(event for event in made if isinstance(event, bytes))


def chat_sdk(base_url: str) -> Read:
    """How OpenAI's SDK reads a chat completion."""
    client = openai.AsyncOpenAI(base_url=base_url, api_key="k", max_retries=0)

    async def read() -> int:
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        return sum([len(e.choices[0].delta.content or "") async for e in stream if e.choices])

    return read


def responses_sdk(base_url: str) -> Read:
    """How OpenAI's SDK reads a response."""
    client = openai.AsyncOpenAI(base_url=base_url, api_key="k", max_retries=0)

    async def read() -> int:
        stream = await client.responses.create(model="m", input="hi", stream=True)
        return sum([len(e.delta) async for e in stream if e.type == "response.output_text.delta"])

    return read


def anthropic_sdk(base_url: str) -> Read:
    """How Anthropic's SDK reads a message."""
    client = anthropic.AsyncAnthropic(
        base_url=base_url.removesuffix("/v1"), api_key="k", max_retries=0
    )

    async def read() -> int:
        stream = await client.messages.create(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}], stream=True
        )
        size = 0
        async for event in stream:
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                size += len(event.delta.text)
        return size

    return read


def google_sdk(base_url: str) -> Read:
    """How Google's SDK reads generated content."""
    options: Any = {"base_url": base_url.removesuffix("/v1beta"), "api_version": "v1beta"}
    client = genai.Client(api_key="k", http_options=options)

    async def read() -> int:
        stream = await client.aio.models.generate_content_stream(model="m", contents="hi")
        return sum([len(event.text or "") async for event in stream])

    return read


SDKS: dict[ProtocolName, Callable[[str], Read]] = {
    "openai-chat": chat_sdk,
    "openai-responses": responses_sdk,
    "anthropic": anthropic_sdk,
    "google": google_sdk,
}


async def protocols(sizes: Sizes) -> list[Row]:
    """A row for each protocol."""
    return [await row(protocol, sizes) for protocol in SDKS]


async def row(protocol: ProtocolName, sizes: Sizes) -> Row:
    """An agent's run beside the SDK, in one protocol."""
    async with ModelServer([body(protocol, sizes.chunks)], repeat=True) as server:
        agent = Agent(model=server.model(protocol=protocol), output_processors=guards())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an SDK's own, of what it does inside
            _, run = await compare(
                max(1, sizes.rounds // 5),
                SDKS[protocol](server.address(protocol)),
                lambda: consume(agent.stream("hi")),
            )
    micros = run.median / sizes.chunks * MICRO
    return Row(
        f"SSE on loopback, {protocol}, 4 processors, per event",
        f"{micros:.2f} us",
        f"{run.ratio:.2f}x the SDK",
        f"<= {MOST_EVENT_US} us",
        micros <= MOST_EVENT_US,
    )
