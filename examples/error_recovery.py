"""Cure a refused model call: shorten the conversation, and ask again.

`process_api_error` runs for every failure that the model's own retries did not cure. What it does
to the message list is what the next attempt sends; `retry=True` asks for that attempt.

Prints:

    first call: 6 messages, second call: 4 messages
    text: 'Short enough now.', retries: 1
"""

from __future__ import annotations

import asyncio

from streampipe import Agent, Message
from streampipe.contracts import ProcessAPIErrorArgs, ProcessAPIErrorResult
from streampipe.errors import ProviderError
from streampipe.testing import ScriptedModel, fail


class ErrorRecovery:
    """Drops an old exchange when the context is too long, once."""

    id = "error-recovery"
    fewest = 4  # a conversation that is not cut any shorter

    def process_api_error(self, args: ProcessAPIErrorArgs) -> ProcessAPIErrorResult | None:
        """Keep the first message, which says what it is all about; drop the two behind it."""
        too_long = isinstance(args.error, ProviderError) and "context length" in str(args.error)
        if args.retry_count > 0 or not too_long or len(args.messages) <= self.fewest:
            return None
        args.message_list.remove_by_ids(message.id for message in args.messages[1:3])
        return ProcessAPIErrorResult(retry=True)


async def main() -> None:
    """Send a conversation that is too long."""
    refusal = fail(status=400, body="context length exceeded")
    model = ScriptedModel([[refusal], ["Short enough now."]])
    agent = Agent(id="clerk", model=model, error_processors=[ErrorRecovery()])
    history = [
        message
        for number in range(3)
        for message in (Message.user(f"Question {number}"), Message.assistant(f"Answer {number}"))
    ]
    result = await agent.generate(history)
    first, second = (len(request.prompt) for request in model.requests)
    print(f"first call: {first} messages, second call: {second} messages")
    print(f"text: {result.text!r}, retries: {result.retries}")


if __name__ == "__main__":
    asyncio.run(main())
