"""Block words on the way in and on the way out, with one processor in both lists.

A word may arrive in pieces, so what is searched is the new text behind the end of what came
before, never one chunk alone. The pieces seen so far have reached the client, but the step is
void: `result.text` holds nothing of it.

Prints:

    'My secret is safe.' 'I see.' -> blocked: blocked word in the input, text ''
    'What is out?' 'The sec|ret is out' -> blocked: blocked word in the output, text ''
    'What is out?' 'Nothing| new' -> passed, text 'Nothing new'
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from streampipe import Agent, Chunk, Message, TextDelta
from streampipe.contracts import ProcessInputArgs, ProcessOutputStreamArgs
from streampipe.testing import ScriptedModel


class ContentFilter:
    """Ends the run at the first blocked word, whoever says it."""

    id = "content-filter"
    stream_window = 0

    def __init__(self, blocked_words: Iterable[str]) -> None:
        """Take the words; case counts for nothing."""
        self.words = [word.lower() for word in blocked_words]
        self.overlap = max((len(word) for word in self.words), default=1) - 1

    def process_input(self, args: ProcessInputArgs) -> list[Message]:
        """Look at every message."""
        if any(self.blocks(message.text) for message in args.messages):
            args.abort("blocked word in the input")
        return args.messages

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Look at the new text together with the end of the text before it."""
        part = args.part
        if isinstance(part, TextDelta):
            tails = args.state.setdefault("tails", {})
            text = tails.get(part.id, "") + part.text
            if self.blocks(text):
                args.abort("blocked word in the output")
            tails[part.id] = text[max(0, len(text) - self.overlap) :]
        return part

    def blocks(self, text: str) -> bool:
        """Whether a text holds a blocked word."""
        lowered = text.lower()
        return any(word in lowered for word in self.words)


async def ask(question: str, *answer: str) -> None:
    """One run of a filtered agent."""
    guard = ContentFilter(["secret"])
    model = ScriptedModel([list(answer)])
    agent = Agent(id="clerk", model=model, input_processors=[guard], output_processors=[guard])
    result = await agent.generate(question)
    end = f"blocked: {result.tripwire.reason}" if result.tripwire else "passed"
    print(f"{question!r} {'|'.join(answer)!r} -> {end}, text {result.text!r}")


async def main() -> None:
    """Ask and answer, with the word and without."""
    await ask("My secret is safe.", "I see.")
    await ask("What is out?", "The sec", "ret is out")
    await ask("What is out?", "Nothing", " new")


if __name__ == "__main__":
    asyncio.run(main())
