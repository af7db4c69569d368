"""Make the processors anew for each call, from what the caller says of the request.

Instead of a list, an agent takes a function of the request's context that returns one.

Prints:

    tenant a: no questions about 'recipe'
    tenant b: Sugar, mostly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from streampipe import Agent, Message, RequestContext
from streampipe.contracts import ProcessInputArgs
from streampipe.testing import ScriptedModel


class BlockWords:
    """Refuses questions with certain words."""

    id = "block-words"

    def __init__(self, words: Sequence[str]) -> None:
        """Take the words, in lower case."""
        self.words = words

    def process_input(self, args: ProcessInputArgs) -> list[Message]:
        """Look at every message."""
        for message in args.messages:
            for word in self.words:
                if word in message.text.lower():
                    args.abort(f"no questions about {word!r}")
        return args.messages


def processors(request_context: RequestContext) -> list[BlockWords]:
    """Each tenant has words of its own."""
    return [BlockWords(request_context.get("blocked_words", ()))]


async def main() -> None:
    """The same question from two tenants."""
    model = ScriptedModel([["Sugar, mostly."]])
    agent = Agent(id="cook", model=model, input_processors=processors)
    for tenant, words in {"a": ["recipe"], "b": []}.items():
        result = await agent.generate(
            "What is in the recipe?", request_context={"blocked_words": words}
        )
        end = result.tripwire.reason if result.tripwire else result.text
        print(f"tenant {tenant}: {end}")


if __name__ == "__main__":
    asyncio.run(main())
