"""Rewrite what the user said, once, before the first model call.

`process_input` returns messages: they take the place of those it was given.

Prints:

    the model read: 'where is order seven?'
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from streampipe import Agent, Message
from streampipe.contracts import ProcessInputArgs
from streampipe.messages import TextPart
from streampipe.testing import ScriptedModel


class Lowercase:
    """Writes the user's text in lower case."""

    id = "lowercase"

    def process_input(self, args: ProcessInputArgs) -> list[Message]:
        """Return copies; parts that are no text stay as they are."""
        return [
            replace(
                message,
                parts=[
                    replace(part, text=part.text.lower()) if isinstance(part, TextPart) else part
                    for part in message.parts
                ],
            )
            for message in args.messages
        ]


async def main() -> None:
    """Ask in capitals."""
    model = ScriptedModel([["It is in Porto."]])
    agent = Agent(id="clerk", model=model, input_processors=[Lowercase()])
    await agent.generate("WHERE is Order SEVEN?")
    print(f"the model read: {model.requests[0].prompt[-1].text!r}")


if __name__ == "__main__":
    asyncio.run(main())
