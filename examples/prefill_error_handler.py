"""Cure a provider that refuses a conversation whose last word is the assistant's.

The assistant's beginning (a prefill) becomes an instruction of the user, so nothing of it is lost.

Prints:

    refused: assistant 'Once upon'
    sent:    user "Continue from: 'Once upon'"
    text: ' a time.'
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from streampipe import Agent, Message
from streampipe.contracts import ProcessAPIErrorArgs, ProcessAPIErrorResult
from streampipe.errors import ProviderError
from streampipe.testing import ScriptedModel, fail


class PrefillErrorHandler:
    """Replaces a prefill that the provider does not take."""

    id = "prefill-error-handler"

    def process_api_error(self, args: ProcessAPIErrorArgs) -> ProcessAPIErrorResult | None:
        """Act on a 400 for a conversation that ends with the assistant; leave the rest alone."""
        error, last = args.error, args.messages[-1]
        if not isinstance(error, ProviderError) or error.status != HTTPStatus.BAD_REQUEST:
            return None
        if last.role != "assistant":
            return None
        args.message_list.replace(last.id, Message.user(f"Continue from: {last.text!r}"))
        return ProcessAPIErrorResult(retry=True)


async def main() -> None:
    """Begin the assistant's answer for it."""
    model = ScriptedModel([[fail(status=400, body="must end with a user message")], [" a time."]])
    agent = Agent(id="teller", model=model, error_processors=[PrefillErrorHandler()])
    result = await agent.generate([Message.user("Tell a story."), Message.assistant("Once upon")])
    refused, sent = (request.prompt[-1] for request in model.requests)
    print(f"refused: {refused.role} {refused.text!r}")
    print(f"sent:    {sent.role} {sent.text!r}")
    print(f"text: {result.text!r}")


if __name__ == "__main__":
    asyncio.run(main())
