"""Put processors on an agent: three lists, and one budget for all retries.

Input processors run before the model, output processors on what it says, error processors when a
call fails. One object may stand in several lists and has one state.

Prints:

    blocked: no secrets
    text: 'It is here.', retries: 1, chunks: 12
"""

from __future__ import annotations

import asyncio

from streampipe import Agent, Chunk, Message
from streampipe.contracts import (
    ProcessAPIErrorArgs,
    ProcessAPIErrorResult,
    ProcessInputArgs,
    ProcessOutputStreamArgs,
)
from streampipe.testing import ScriptedModel, fail


class Guard:
    """An input processor, an output processor and an error processor in one."""

    id = "guard"

    def __init__(self) -> None:
        """Nothing seen yet."""
        self.chunks = 0

    def process_input(self, args: ProcessInputArgs) -> list[Message]:
        """Refuse questions about secrets."""
        if any("secret" in message.text for message in args.messages):
            args.abort("no secrets")
        return args.messages

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Count what goes out."""
        self.chunks += 1
        return args.part

    def process_api_error(self, args: ProcessAPIErrorArgs) -> ProcessAPIErrorResult:
        """Try a failed call once more."""
        return ProcessAPIErrorResult(retry=args.retry_count == 0)


async def main() -> None:
    """One run is blocked, another cured."""
    guard = Guard()
    agent = Agent(
        id="support-agent",
        name="Support",
        model=ScriptedModel([[fail(status=503)], ["It is ", "here."]]),
        instructions="Answer in one sentence.",
        input_processors=[guard],
        output_processors=[guard],
        error_processors=[guard],
        max_processor_retries=3,
    )
    blocked = await agent.generate("Tell me a secret.")
    if blocked.tripwire is not None:
        print(f"blocked: {blocked.tripwire.reason}")
    guard.chunks = 0
    result = await agent.generate("Where is it?")
    print(f"text: {result.text!r}, retries: {result.retries}, chunks: {guard.chunks}")


if __name__ == "__main__":
    asyncio.run(main())
