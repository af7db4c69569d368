r"""Finish the whole answer, once, after the last step.

`process_output_result` gets the response messages. Changing their parts, or returning other
messages, changes what is stored and `result.text`; the stream is over by then and stays as it was.

Prints:

    streamed: 'Salt the water.'
    result:   'Salt the water.\n\nWritten by a machine.'
"""

from __future__ import annotations

import asyncio

from streampipe import Agent, Message
from streampipe.contracts import ProcessOutputResultArgs
from streampipe.messages import TextPart
from streampipe.testing import ScriptedModel


class Disclaimer:
    """Says under every answer who wrote it."""

    id = "disclaimer"
    text = "\n\nWritten by a machine."

    def process_output_result(self, args: ProcessOutputResultArgs) -> list[Message]:
        """Add a part to the last message; a model may have answered nothing at all."""
        if args.messages:
            args.messages[-1].parts.append(TextPart(self.text))
        return args.messages


async def main() -> None:
    """Compare the stream with the result."""
    model = ScriptedModel([["Salt ", "the water."]])
    agent = Agent(id="cook", model=model, output_processors=[Disclaimer()])
    async with agent.stream("How do I make soup?") as run:
        streamed = "".join([text async for text in run.text_stream])
        result = await run.result()
    print(f"streamed: {streamed!r}")
    print(f"result:   {result.text!r}")


if __name__ == "__main__":
    asyncio.run(main())
