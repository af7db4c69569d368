"""Send data of your own beside the text, and read in one processor what another sent.

`writer.custom` puts a `data-*` chunk before the part being processed. Processors further down see
it only if they ask for it with `process_data_parts`; the stored message keeps it as a part.

Prints:

    warned: ['rude: blast']
    stored: ['text', 'data-moderation']
"""

from __future__ import annotations

import asyncio

from streampipe import Agent, Chunk, DataChunk, TextDelta
from streampipe.contracts import ProcessOutputResultArgs, ProcessOutputStreamArgs
from streampipe.testing import ScriptedModel


class Moderator:
    """Marks rude words and lets them pass."""

    id = "moderator"
    rude = ("blast", "drat")

    async def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Send a warning beside the text."""
        if isinstance(args.part, TextDelta):
            for word in self.rude:
                if word in args.part.text.lower():
                    data = {"level": "warn", "reason": f"rude: {word}"}
                    await args.writer.custom({"type": "data-moderation", "data": data})
        return args.part


class ModerationCollector:
    """Collects the warnings of a run, and reports them at its end."""

    id = "moderation-collector"
    process_data_parts = True

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Note the warnings on their way to the client."""
        if isinstance(args.part, DataChunk) and args.part.type == "data-moderation":
            args.state.setdefault("warnings", []).append(args.part.data["reason"])
        return args.part

    def process_output_result(self, args: ProcessOutputResultArgs) -> None:
        """Report: the state is the same in every hook."""
        print(f"warned: {args.state.get('warnings', [])}")


async def main() -> None:
    """Have the model be rude."""
    model = ScriptedModel([["Oh, ", "blast", " it."]])
    agent = Agent(id="sailor", model=model, output_processors=[Moderator(), ModerationCollector()])
    result = await agent.generate("How was it?")
    print(f"stored: {[part.type for part in result.messages[0].parts]}")


if __name__ == "__main__":
    asyncio.run(main())
