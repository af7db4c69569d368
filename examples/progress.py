"""Tell a waiting client how far a tool has got, and store nothing of it.

A tool has the writer as well: ask for a `ToolContext`. A `transient` chunk is streamed only.

Prints:

    data-progress: reading page 1
    data-progress: reading page 2
    text-delta: Two pages of soup.
    stored: tool-invocation, text
"""

from __future__ import annotations

import asyncio

from streampipe import Agent, DataChunk, TextDelta, ToolContext, tool
from streampipe.testing import ScriptedModel, call


@tool
async def read(pages: int, context: ToolContext) -> str:
    """Read a book."""
    for page in range(1, pages + 1):
        await context.writer.custom(
            {"type": "data-progress", "data": {"status": f"reading page {page}"}, "transient": True}
        )
    return "soup"


async def main() -> None:
    """Print the progress as it comes."""
    model = ScriptedModel([[call("read", {"pages": 2})], ["Two pages of soup."]])
    async with Agent(id="reader", model=model, tools=[read]).stream("Read it.") as run:
        async for chunk in run:
            if isinstance(chunk, DataChunk):
                print(f"{chunk.type}: {chunk.data['status']}")
            elif isinstance(chunk, TextDelta):
                print(f"{chunk.type}: {chunk.text}")
        result = await run.result()
    stored = [part.type for message in result.messages for part in message.parts]
    print(f"stored: {', '.join(stored)}")


if __name__ == "__main__":
    asyncio.run(main())
