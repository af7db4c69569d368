"""Choose the model of each step: a fast one first, a strong one once tools were called.

`process_input_step` runs before every model call, and what it returns holds for that step only.
Models may be named too: `ProcessInputStepResult(model="openai/gpt-5-mini")`.

Prints:

    fast said 'Let me count. ', strong said 'Three.'
"""

from __future__ import annotations

import asyncio

from streampipe import Agent, tool
from streampipe.contracts import Model, ProcessInputStepArgs, ProcessInputStepResult
from streampipe.testing import ScriptedModel, call


class DynamicModel:
    """Starts with `fast`, goes on with `strong`, and calls no tools after so many steps."""

    id = "dynamic-model"

    def __init__(self, fast: Model, strong: Model, *, tool_steps: int = 5) -> None:
        """Take the two models and the last step that may call tools."""
        self.fast = fast
        self.strong = strong
        self.tool_steps = tool_steps

    def process_input_step(self, args: ProcessInputStepArgs) -> ProcessInputStepResult:
        """Decide by the step's number and by what the last step did."""
        changes = ProcessInputStepResult()
        if args.step_number == 0:
            changes.model = self.fast
        elif args.steps[-1].tool_calls:
            changes.model = self.strong
        if args.step_number > self.tool_steps:
            changes.tool_choice = "none"
        return changes


@tool
async def count(word: str) -> int:
    """Count the letters of a word."""
    return len(word)


async def main() -> None:
    """Ask something that takes a tool."""
    fast = ScriptedModel([["Let me count. ", call("count", {"word": "two"})]], model_id="fast")
    strong = ScriptedModel([["Three."]], model_id="strong")
    agent = Agent(
        id="counter", model=fast, tools=[count], input_processors=[DynamicModel(fast, strong)]
    )
    result = await agent.generate("How many letters has 'two'?")
    said = [
        f"{step.response.model_id} said {step.text!r}" for step in result.steps if step.response
    ]
    print(", ".join(said))


if __name__ == "__main__":
    asyncio.run(main())
