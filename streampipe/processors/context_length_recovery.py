"""`ContextLengthRecovery`: a conversation that has become too long for its model."""

from __future__ import annotations

from typing import Literal

from streampipe.contracts import (
    OnViolation,
    ProcessAPIErrorArgs,
    ProcessAPIErrorResult,
    ProcessLLMRequestArgs,
    ProcessLLMRequestResult,
    Processor,
    ProcessorViolation,
)
from streampipe.errors import ContextLengthError
from streampipe.operators._scope import report_violation
from streampipe.processors._options import Count, Name, checked_options
from streampipe.processors._turns import turn_starts

__all__ = ["ContextLengthRecovery", "Drop"]

Drop = Literal["oldest", "half"]
"""What goes at each refusal: the oldest turn, or the older half of those that may go."""


class ContextLengthRecovery(Processor):
    """Leaves the oldest turns out when a provider says that the prompt is too long, and asks again.

    For `error_processors`. A turn goes from a user's message to the next and is left out as a
    whole, so a tool call and its result go together. System messages stay, and so do the newest
    turns, the current one always among them. Only the prompt is changed, of this and all later
    calls of the run: the conversation stays whole for whoever stores or shows it.

    What was left out is told to `on_violation`, with the numbers of turns as `detail`: `left_out`
    now, `total` in this run, `kept`. When nothing more may go, the failure stands.

    >>> import asyncio
    >>> from streampipe import Agent, Message
    >>> from streampipe.errors import ContextLengthError
    >>> from streampipe.testing import ScriptedModel, fail
    >>> model = ScriptedModel([[fail(ContextLengthError("too long"))], ["Fine."]])
    >>> told = lambda violation: print(violation.message)
    >>> agent = Agent(model=model, error_processors=[ContextLengthRecovery(on_violation=told)])
    >>> prompt = [Message.user("One?"), Message.assistant("Two."), Message.user("Three?")]
    >>> asyncio.run(agent.generate(prompt)).text
    the prompt was too long: left out the oldest 1 of 2 turns
    'Fine.'
    >>> [message.text for message in model.requests[1].prompt]
    ['Three?']
    """

    @checked_options
    def __init__(
        self,
        *,
        keep_turns: Count = 1,
        drop: Drop = "oldest",
        max_retries: Count = 3,
        on_violation: OnViolation | None = None,
        id: Name = "context-length-recovery",  # noqa: A002 - named as the attribute
    ) -> None:
        """Say what may go, and how often.

        Args:
            keep_turns: how many of the newest turns stay, at least 1: the current one.
            drop: what goes at each refusal: the "oldest" turn, or the older "half" of those that
                may go, which finds a prompt that fits in fewer calls.
            max_retries: how often it asks again in a run at most, at least 1.
            on_violation: told what was left out.
            id: what it goes by.

        Raises:
            ConfigurationError: an option is none of these.
        """
        self.id = id
        self.on_violation = on_violation
        self._keep = keep_turns
        self._max_retries = max_retries
        self._drop = drop

    def process_llm_request(self, args: ProcessLLMRequestArgs) -> ProcessLLMRequestResult | None:
        """Leave out of the prompt what was too much before."""
        starts = turn_starts(args.prompt)
        args.state["turns"] = len(starts)
        gone = min(args.state.get("gone", 0), len(starts) - self._keep)
        if gone <= 0:
            return None
        cut = starts[gone]
        system = [message for message in args.prompt[:cut] if message.role == "system"]
        return ProcessLLMRequestResult(prompt=[*system, *args.prompt[cut:]])

    async def process_api_error(self, args: ProcessAPIErrorArgs) -> ProcessAPIErrorResult | None:
        """Choose what goes, tell of it, and ask for a retry."""
        state = args.state
        gone: int = state.get("gone", 0)
        retries: int = state.get("retries", 0)
        left: int = state.get("turns", 0) - gone
        may_go = left - self._keep
        if not isinstance(args.error, ContextLengthError):
            return None
        if may_go <= 0 or retries >= self._max_retries:
            return None
        count = 1 if self._drop == "oldest" else (may_go + 1) // 2
        state.update(gone=gone + count, retries=retries + 1)
        message = f"the prompt was too long: left out the oldest {count} of {left} turns"
        detail = {"left_out": count, "total": gone + count, "kept": left - count}
        await report_violation(self, ProcessorViolation(self.id, message, detail))
        return ProcessAPIErrorResult(retry=True)
