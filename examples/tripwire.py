"""Tell a client why a run was blocked, as data it can act on.

A block ends the stream with one `tripwire` chunk and `finish`; its metadata is yours. Collected,
the same data is `result.tripwire`, and `finish_reason` is `other`.

Prints:

    text-delta: 'Ask '
    tripwire: phone number {'category': 'pii'}
    finish: other
"""

from __future__ import annotations

import asyncio
import re

from streampipe import Agent, Chunk, FinishChunk, TextDelta, TripwireChunk
from streampipe.contracts import ProcessOutputStreamArgs
from streampipe.testing import ScriptedModel

PHONE = re.compile(r"\+\d{9,}")


class NoPhones:
    """Blocks an answer that gives a phone number away."""

    id = "no-phones"

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Say what kind of thing was found, not the thing itself."""
        if isinstance(args.part, TextDelta) and PHONE.search(args.part.text):
            args.abort("phone number", metadata={"category": "pii"})
        return args.part


async def main() -> None:
    """Show what a client of the stream gets to see."""
    model = ScriptedModel([["Ask ", "+351210000000", " at noon."]])
    agent = Agent(id="clerk", model=model, output_processors=[NoPhones()])
    async with agent.stream("Whom do I ask?") as run:
        async for chunk in run:
            match chunk:
                case TextDelta():
                    print(f"text-delta: {chunk.text!r}")
                case TripwireChunk():
                    print(f"tripwire: {chunk.reason} {chunk.metadata}")
                case FinishChunk():
                    print(f"finish: {chunk.reason}")
                case _:
                    pass


if __name__ == "__main__":
    asyncio.run(main())
