"""Count words over a whole stream, with the state that a processor has for one run.

`args.state` is a dict of this processor and this run: empty at the start, the same in all hooks,
never shared with another run. A word that is cut into two chunks is one word.

Prints:

    Total words: 5
    Total words: 2
"""

from __future__ import annotations

import asyncio

from streampipe import Agent, Chunk, FinishChunk, TextDelta, TextStart
from streampipe.contracts import ProcessOutputStreamArgs
from streampipe.testing import ScriptedModel


class WordCounter:
    """Prints how many words a run had."""

    id = "word-counter"
    stream_window = 0  # it keeps what it needs itself

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Count the words that begin in a chunk; tell at the end of the run."""
        part, state = args.part, args.state
        if isinstance(part, TextStart):
            state["inside"] = False
        elif isinstance(part, TextDelta) and part.text:
            goes_on = state.get("inside", False) and not part.text[0].isspace()
            state["words"] = state.get("words", 0) + len(part.text.split()) - goes_on
            state["inside"] = not part.text[-1].isspace()
        elif isinstance(part, FinishChunk):
            print(f"Total words: {state.get('words', 0)}")
        return part


async def main() -> None:
    """Two runs of one agent: each has its own count."""
    model = ScriptedModel([["Your par", "cel is", " in ", "Porto."], ["Not y", "et."]])
    agent = Agent(id="clerk", model=model, output_processors=[WordCounter()])
    await agent.generate("Where is my parcel?")
    await agent.generate("Is it here?")


if __name__ == "__main__":
    asyncio.run(main())
