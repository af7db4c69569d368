"""Chain decisions about a step: each processor sees what the one before it chose.

Prints:

    no-tools was given: small
    the model that answered: small, tool choice: none
"""

from __future__ import annotations

import asyncio

from streampipe import Agent
from streampipe.contracts import Model, ProcessInputStepArgs, ProcessInputStepResult
from streampipe.testing import ScriptedModel


class SmallModel:
    """Switches to a cheaper model."""

    id = "small-model"

    def __init__(self, model: Model) -> None:
        """Take the cheaper model."""
        self.model = model

    def process_input_step(self, _args: ProcessInputStepArgs) -> ProcessInputStepResult:
        """Change the model, and nothing else."""
        return ProcessInputStepResult(model=self.model)


class NoTools:
    """Takes the tools from a small model."""

    id = "no-tools"

    def process_input_step(self, args: ProcessInputStepArgs) -> ProcessInputStepResult | None:
        """Decide by the model that was chosen before."""
        print(f"{self.id} was given: {args.model.model_id}")
        if args.model.model_id != "small":
            return None
        return ProcessInputStepResult(tool_choice="none")


async def main() -> None:
    """Two processors, one request."""
    large = ScriptedModel([["I think."]], model_id="large")
    small = ScriptedModel([["Yes."]], model_id="small")
    agent = Agent(id="clerk", model=large, input_processors=[SmallModel(small), NoTools()])
    await agent.generate("Is it here?")
    asked = small.requests[0]
    print(f"the model that answered: {small.model_id}, tool choice: {asked.tool_choice}")


if __name__ == "__main__":
    asyncio.run(main())
