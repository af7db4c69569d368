"""Rewrite what one call sends to one provider; the conversation stays as it is.

`process_llm_request` gets the prompt in its last form. What it returns goes out with this call,
and neither the message list nor the next step ever sees it.

Prints:

    stored: user 'Where is it?'
    sent:   system 'Answer in English.', user 'Where is it? (no reasoning)'
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from streampipe import Agent
from streampipe.contracts import (
    ProcessLLMRequestArgs,
    ProcessLLMRequestResult,
    ProcessOutputResultArgs,
)
from streampipe.messages import TextPart
from streampipe.testing import ScriptedModel


class NoReasoning:
    """Adds a switch that one family of models reads from the user's last message."""

    id = "no-reasoning"

    def process_llm_request(self, args: ProcessLLMRequestArgs) -> ProcessLLMRequestResult | None:
        """Leave other models' prompts alone: the model of this very call is known here."""
        if args.model.provider != "scripted":
            return None
        *earlier, last = args.prompt
        marked = replace(last, content=[*last.content, TextPart(" (no reasoning)")])
        return ProcessLLMRequestResult(prompt=[*earlier, marked])


class ShowStored:
    """Prints what the run would store of the input."""

    id = "show-stored"

    def process_output_result(self, args: ProcessOutputResultArgs) -> None:
        """Look into another phase of the conversation: that is what the message list is for."""
        message = args.message_list.input[0]
        print(f"stored: {message.role} {message.text!r}")


async def main() -> None:
    """Ask once, and show what went out."""
    model = ScriptedModel([["In Porto."]])
    agent = Agent(
        id="clerk",
        model=model,
        instructions="Answer in English.",
        input_processors=[NoReasoning()],
        output_processors=[ShowStored()],
    )
    await agent.generate("Where is it?")
    sent = ", ".join(f"{message.role} {message.text!r}" for message in model.requests[0].prompt)
    print(f"sent:   {sent}")


if __name__ == "__main__":
    asyncio.run(main())
