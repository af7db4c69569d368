"""Give instructions for one step; the next one starts from the agent's own again.

System messages are reset at the start of every step, so nothing has to be cleaned up.

Prints:

    step 0: ['You are a cook.', 'Look things up first.']
    step 1: ['You are a cook.']
"""

from __future__ import annotations

import asyncio

from streampipe import Agent, tool
from streampipe.contracts import ProcessInputStepArgs, ProcessInputStepResult
from streampipe.testing import ScriptedModel, call


class FirstStepHint:
    """Tells the model to look things up, before it has done anything."""

    id = "first-step-hint"

    def process_input_step(self, args: ProcessInputStepArgs) -> ProcessInputStepResult | None:
        """Add to the system messages of step 0."""
        if args.step_number > 0:
            return None
        return ProcessInputStepResult(
            system_messages=[*args.system_messages, "Look things up first."]
        )


@tool
async def recipe(name: str) -> str:
    """Look a recipe up."""
    return f"{name}: water and salt"


async def main() -> None:
    """Two steps, two sets of instructions."""
    model = ScriptedModel([[call("recipe", {"name": "soup"})], ["Water and salt."]])
    agent = Agent(
        id="cook",
        model=model,
        instructions="You are a cook.",
        tools=[recipe],
        input_processors=[FirstStepHint()],
    )
    await agent.generate("How do I make soup?")
    for number, request in enumerate(model.requests):
        told = [message.text for message in request.prompt if message.role == "system"]
        print(f"step {number}: {told}")


if __name__ == "__main__":
    asyncio.run(main())
