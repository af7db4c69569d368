"""Relabel parts of the conversation for another provider, before every step.

A part may be changed in place: everybody behind this processor sees it, and so does the store.

Prints:

    the second model was shown: thinking, text
"""

from __future__ import annotations

import asyncio

from streampipe import Agent, Message, MessageList
from streampipe.contracts import ProcessInputStepArgs
from streampipe.messages import ReasoningPart
from streampipe.testing import ScriptedModel, reasoning


class ReasoningTransformer:
    """Calls `reasoning` what another provider calls `thinking`."""

    id = "reasoning-transformer"

    def process_input_step(self, args: ProcessInputStepArgs) -> MessageList:
        """Return the run's own list: it was changed in place."""
        for message in args.messages:
            if message.role == "assistant":
                for part in message.parts:
                    if isinstance(part, ReasoningPart):
                        part.type = "thinking"
        return args.message_list


async def main() -> None:
    """Let one model think, and hand the conversation to another."""
    thinker = Agent(id="thinker", model=ScriptedModel([[reasoning("2 + 2 ..."), "Four."]]))
    first = await thinker.generate("What is 2 + 2?")

    model = ScriptedModel([["Yes."]])
    checker = Agent(id="checker", model=model, input_processors=[ReasoningTransformer()])
    await checker.generate([*first.messages, Message.user("Is that right?")])
    shown = [part.type for part in model.requests[0].prompt[0].content]
    print(f"the second model was shown: {', '.join(shown)}")


if __name__ == "__main__":
    asyncio.run(main())
