"""`PrefillErrorHandler`: a prompt whose last word is the assistant's, for a provider without it."""

from __future__ import annotations

import re

from streampipe.contracts import (
    ProcessAPIErrorArgs,
    ProcessAPIErrorResult,
    ProcessLLMRequestArgs,
    ProcessLLMRequestResult,
    Processor,
)
from streampipe.errors import ConfigurationError, ProviderError
from streampipe.messages import PromptMessage, TextPart
from streampipe.processors._options import Name, Text, checked_options

__all__ = ["PrefillErrorHandler"]

REFUSED = re.compile(
    r"prefill|\bend(s|ing)? with (an? |the )?(user|assistant|model)|last (message|role|turn)",
    re.IGNORECASE,
)
"""How providers say it."""

REFUSALS = frozenset({400, 422})


class PrefillErrorHandler(Processor):
    """Asks again when a provider refuses a prompt that ends with an assistant's message.

    For `error_processors`. The second call's prompt ends with a user's message that asks to go on.
    That message is of the prompt alone: neither the conversation nor what is stored of it has it,
    so it is not sent once more with the next question. It stays for the run, and a prompt that is
    refused with it is not tried again.

    >>> import asyncio
    >>> from streampipe import Agent, Message
    >>> from streampipe.testing import ScriptedModel, fail
    >>> refusal = fail(status=400, body="prefill is not supported by this model")
    >>> model = ScriptedModel([[refusal], [" a time."]])
    >>> agent = Agent(model=model, error_processors=[PrefillErrorHandler()])
    >>> prompt = [Message.user("Tell a story."), Message.assistant("Once upon")]
    >>> asyncio.run(agent.generate(prompt)).text
    ' a time.'
    >>> model.requests[1].prompt[-1].text
    'Continue exactly where you stopped.'
    """

    @checked_options
    def __init__(
        self,
        *,
        message: Text = "Continue exactly where you stopped.",
        pattern: re.Pattern[str] = REFUSED,
        id: Name = "prefill-error-handler",  # noqa: A002 - named as the attribute
    ) -> None:
        """Say what is asked for, and how a refusal is told.

        Args:
            message: what the user's message says.
            pattern: found in what the provider says; by default what the known ones say of it.
            id: what it goes by.

        Raises:
            ConfigurationError: `message` is no text or empty, or `pattern` is not compiled.
        """
        name = type(self).__name__
        self.id = id
        if not isinstance(pattern, re.Pattern) or not isinstance(pattern.pattern, str):
            msg = f"{name}: pattern must be a compiled pattern of text, not {pattern!r:.80}"
            raise ConfigurationError(msg)
        self._message = message
        self._pattern = pattern

    def process_llm_request(self, args: ProcessLLMRequestArgs) -> ProcessLLMRequestResult | None:
        """Note whether the assistant has the last word; once refused, give it to the user."""
        ends = bool(args.prompt) and args.prompt[-1].role == "assistant"
        args.state["ends_with_assistant"] = ends
        if not ends or not args.state.get("refused"):
            return None
        said = PromptMessage("user", [TextPart(self._message)])
        return ProcessLLMRequestResult(prompt=[*args.prompt, said])

    def process_api_error(self, args: ProcessAPIErrorArgs) -> ProcessAPIErrorResult | None:
        """Ask for a retry, once, for a refusal of such a prompt; leave everything else alone."""
        state, error = args.state, args.error
        if state.get("refused") or not state.get("ends_with_assistant"):
            return None
        if not isinstance(error, ProviderError) or error.status not in REFUSALS:
            return None
        if not self._pattern.search(str(error)):
            return None
        state["refused"] = True
        return ProcessAPIErrorResult(retry=True)
