"""Be told of every block, wherever it happens: set `on_violation` on a processor.

It is for side effects such as an alert. What it raises is logged, and changes nothing for the run.

Prints:

    alert: no-passwords: a password was named {'severity': 'high'}
    client: other
"""

from __future__ import annotations

import asyncio

from streampipe import Agent, Chunk, TextDelta
from streampipe.contracts import ProcessorViolation, ProcessOutputStreamArgs
from streampipe.testing import ScriptedModel


class NoPasswords:
    """Blocks an answer that names a password, and has somebody told."""

    id = "no-passwords"

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Block; the run calls `on_violation`."""
        if isinstance(args.part, TextDelta) and "password" in args.part.text:
            args.abort("a password was named", metadata={"severity": "high"})
        return args.part

    async def on_violation(self, violation: ProcessorViolation) -> None:
        """Stand-in for a message to whoever is on duty."""
        print(f"alert: {violation.processor_id}: {violation.message} {violation.detail}")


async def main() -> None:
    """Ask for what is not told."""
    model = ScriptedModel([["The ", "password", " is swordfish."]])
    agent = Agent(id="clerk", model=model, output_processors=[NoPasswords()])
    result = await agent.generate("Let me in.")
    print(f"client: {result.finish_reason}")


if __name__ == "__main__":
    asyncio.run(main())
