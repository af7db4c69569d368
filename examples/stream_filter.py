"""Drop chunks, and use other processors for one call.

Returning None drops the chunk and nothing else. A list that is given on a call takes the place of
the agent's list for that call.

Prints:

    agent's own:  reasoning 'Porto, I think.', text 'It is in Porto.'
    for one call: reasoning '', text 'It is in Porto.'
"""

from __future__ import annotations

import asyncio

from streampipe import Agent, Chunk, ReasoningDelta, ReasoningEnd, ReasoningStart
from streampipe.contracts import ProcessOutputStreamArgs
from streampipe.testing import ScriptedModel, reasoning


class StreamFilter:
    """Keeps the model's reasoning to itself."""

    id = "stream-filter"

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk | None:
        """Let everything else pass."""
        if isinstance(args.part, ReasoningStart | ReasoningDelta | ReasoningEnd):
            return None
        return args.part


async def main() -> None:
    """The same agent, without and with the filter."""
    model = ScriptedModel([[reasoning("Porto, I think."), "It is in ", "Porto."]], repeat=True)
    agent = Agent(id="clerk", model=model)
    open_ = await agent.generate("Where is it?")
    print(f"agent's own:  reasoning {open_.reasoning!r}, text {open_.text!r}")
    filtered = await agent.generate(
        "Where is it?", output_processors=[StreamFilter()], max_processor_retries=5
    )
    print(f"for one call: reasoning {filtered.reasoning!r}, text {filtered.text!r}")


if __name__ == "__main__":
    asyncio.run(main())
