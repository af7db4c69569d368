"""`ProviderHistoryCompat`: a conversation that its provider refuses, in a form that it takes."""

from __future__ import annotations

from collections.abc import Sequence

from streampipe.contracts import (
    OnViolation,
    ProcessAPIErrorArgs,
    ProcessAPIErrorResult,
    ProcessLLMRequestArgs,
    ProcessLLMRequestResult,
    Processor,
    ProcessorViolation,
)
from streampipe.errors import ConfigurationError, ProviderError
from streampipe.operators._scope import report_violation
from streampipe.processors._history_rules import HISTORY_RULES, HistoryRule
from streampipe.processors._options import Name, checked_options

__all__ = ["HISTORY_RULES", "HistoryRule", "ProviderHistoryCompat"]

REFUSALS = frozenset({400, 422})


class ProviderHistoryCompat(Processor):
    r"""Mends in the prompt what providers refuse in a conversation that another model has written.

    For `error_processors`, where it sees the prompt last and hears of refusals. Rules without
    `refused` mend every prompt; one with it mends from the moment that a provider has refused the
    conversation in these words, and the call is made again. Only the prompt is changed: the
    conversation stays as it is for whoever stores or shows it. What a rule begins to mend is told
    to `on_violation`, with the rules' names as `detail`.

    The rules of `HISTORY_RULES` give tool calls ids that every provider takes (and ids of nine
    characters, where one insists), drop results without a call, answer calls without a result, cut
    the white space at the end of an assistant's last message, drop empty texts, and, where a
    provider insists, join messages of one role in a row.

    >>> import asyncio
    >>> from streampipe import Agent, Message
    >>> from streampipe.testing import ScriptedModel, fail
    >>> model = ScriptedModel([[fail(status=400, body="roles must alternate")], ["Both."]])
    >>> agent = Agent(model=model, error_processors=[ProviderHistoryCompat()])
    >>> asyncio.run(agent.generate([Message.user("Tea?"), Message.user("Or coffee?")])).text
    'Both.'
    >>> [message.text for message in model.requests[1].prompt]
    ['Tea?\n\nOr coffee?']
    """

    @checked_options
    def __init__(
        self,
        rules: Sequence[HistoryRule] = HISTORY_RULES,
        *,
        on_violation: OnViolation | None = None,
        id: Name = "provider-history-compat",  # noqa: A002 - named as the attribute
    ) -> None:
        """Say what is mended.

        Args:
            rules: applied in this order. Add your own: `(*HISTORY_RULES, HistoryRule(...))`.
            on_violation: told which rules a refusal has called for.
            id: what it goes by.

        Raises:
            ConfigurationError: `rules` is no list of rules, is empty, or has two of one name; or
                `on_violation` is no function.
        """
        name = type(self).__name__
        self.id = id
        if not isinstance(rules, Sequence) or not rules:
            msg = f"{name}: rules must be a list of HistoryRule, not {rules!r:.80}"
            raise ConfigurationError(msg)
        names: set[str] = set()
        for place, rule in enumerate(rules):
            if not isinstance(rule, HistoryRule):
                msg = f"{name}: rules[{place}] is {rule!r:.80}; give a HistoryRule"
                raise ConfigurationError(msg)
            if rule.name in names:
                msg = f"{name}: two rules are named {rule.name!r}; give each its own name"
                raise ConfigurationError(msg)
            names.add(rule.name)
        self._rules = tuple(rules)
        self.on_violation = on_violation

    def process_llm_request(self, args: ProcessLLMRequestArgs) -> ProcessLLMRequestResult:
        """Mend the prompt by every rule that holds by now."""
        prompt = args.prompt
        called_for: frozenset[str] = args.state.get("called_for", frozenset())
        for rule in self._rules:
            if rule.refused is None or rule.name in called_for:
                prompt = rule.mend(prompt)
        return ProcessLLMRequestResult(prompt=prompt)

    async def process_api_error(self, args: ProcessAPIErrorArgs) -> ProcessAPIErrorResult | None:
        """Ask for a retry if the refusal calls for rules that did not hold before."""
        error = args.error
        if not isinstance(error, ProviderError) or error.status not in REFUSALS:
            return None
        before: frozenset[str] = args.state.get("called_for", frozenset())
        said = str(error)
        new = [
            rule.name
            for rule in self._rules
            if rule.refused is not None and rule.name not in before and rule.refused.search(said)
        ]
        if not new:
            return None
        args.state["called_for"] = before | frozenset(new)
        message = f"the provider refused the conversation; mended from now on: {', '.join(new)}"
        await report_violation(self, ProcessorViolation(self.id, message, new))
        return ProcessAPIErrorResult(retry=True)
