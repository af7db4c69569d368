"""Steer the steps of one call with a function, no processor needed.

`prepare_step` is a `process_input_step` hook that runs after those of the input processors, so it
sees and may override what they chose.

Prints:

    step 0: tools ['search'], temperature 0.0
    step 1: tools [], temperature 0.7
"""

from __future__ import annotations

import asyncio

from streampipe import Agent, tool
from streampipe.contracts import ProcessInputStepArgs, ProcessInputStepResult
from streampipe.testing import ScriptedModel, call


@tool
async def search(query: str) -> str:
    """Search the web."""
    return f"Much about {query}."


def search_then_write(args: ProcessInputStepArgs) -> ProcessInputStepResult | None:
    """Search soberly; write freely, without tools."""
    if args.step_number == 0:
        return None
    return ProcessInputStepResult(
        active_tools=[], model_settings={**args.model_settings, "temperature": 0.7}
    )


async def main() -> None:
    """Search, then write."""
    model = ScriptedModel([[call("search", {"query": "soup"})], ["Soup is warm."]])
    agent = Agent(id="writer", model=model, tools=[search], model_settings={"temperature": 0.0})
    await agent.generate("Write about soup.", prepare_step=search_then_write)
    for number, request in enumerate(model.requests):
        names = [spec.name for spec in request.tools]
        print(f"step {number}: tools {names}, temperature {request.settings['temperature']}")


if __name__ == "__main__":
    asyncio.run(main())
