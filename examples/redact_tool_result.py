"""Take secrets out of what a tool returned, before the model or the client sees them.

`process_tool_result` runs for each tool that succeeded. The value that stands in the message list
afterwards is what the `tool-result` chunk, the next prompt and the store hold.

Prints:

    client saw: {'name': 'Ada', 'ssn': '[REDACTED]', 'email': '[REDACTED]'}
    model saw:  {'name': 'Ada', 'ssn': '[REDACTED]', 'email': '[REDACTED]'}
"""

from __future__ import annotations

import asyncio

from streampipe import Agent, tool
from streampipe.contracts import ProcessToolResultArgs
from streampipe.messages import ToolResultPart
from streampipe.testing import ScriptedModel, call


class RedactToolResult:
    """Hides who a customer is."""

    id = "redact-tool-result"
    secret = ("ssn", "email")

    def process_tool_result(self, args: ProcessToolResultArgs) -> None:
        """Replace the secret fields of a looked-up customer."""
        if args.tool_name != "lookup_customer":
            return
        redacted = args.result | {key: "[REDACTED]" for key in self.secret if key in args.result}
        args.message_list.update_tool_invocation(args.tool_call_id, result=redacted)


@tool
async def lookup_customer(name: str) -> dict[str, str]:
    """Find a customer."""
    return {"name": name, "ssn": "078-05-1120", "email": "ada@example.com"}


async def main() -> None:
    """Look somebody up."""
    model = ScriptedModel([[call("lookup_customer", {"name": "Ada"})], ["Found."]])
    agent = Agent(
        id="clerk", model=model, tools=[lookup_customer], output_processors=[RedactToolResult()]
    )
    result = await agent.generate("Who is Ada?")
    print(f"client saw: {result.tool_results[0].result}")
    for part in model.requests[1].prompt[-1].content:
        if isinstance(part, ToolResultPart):
            print(f"model saw:  {part.result}")


if __name__ == "__main__":
    asyncio.run(main())
