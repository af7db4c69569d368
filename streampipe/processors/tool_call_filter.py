"""`ToolCallFilter`: old tool calls stay out of the prompt."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from streampipe.contracts import ProcessLLMRequestArgs, ProcessLLMRequestResult, Processor
from streampipe.errors import ConfigurationError
from streampipe.messages import (
    Part,
    PromptMessage,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from streampipe.messages._json import shown_text
from streampipe.processors._options import Count, Name, checked_names, checked_options
from streampipe.processors._turns import turn_starts

__all__ = ["ToolCallFilter"]


class ToolCallFilter(Processor):
    """Takes the tool calls of earlier turns, with their results, out of what the model is sent.

    For `input_processors`. Only the outbound prompt is changed: the conversation stays whole for
    whoever stores or shows it. A turn goes from a user's message to the next, and the newest turns
    stay as they are, the current one among them: without what its tools have just told it, a model
    would call them again.

    A call and its result always go together, and so does the reasoning that led to nothing but
    calls that are gone: providers refuse each without the other.

    >>> import asyncio
    >>> from streampipe import Agent, tool
    >>> from streampipe.testing import ScriptedModel, call
    >>> @tool
    ... def look_up(city: str) -> str:
    ...     '''Look the weather up.'''
    ...     return "sunny"
    >>> model = ScriptedModel([[call("look_up", {"city": "Porto"})], ["Sunny."], ["Bye."]])
    >>> agent = Agent(model=model, tools=[look_up], input_processors=[ToolCallFilter()])
    >>> async def main():
    ...     first = await agent.generate("How is Porto?")
    ...     await agent.generate(["How is Porto?", *first.messages, "Thank you."])
    >>> asyncio.run(main())
    >>> [(message.role, message.text) for message in model.requests[-1].prompt]
    [('user', 'How is Porto?'), ('assistant', 'Sunny.'), ('user', 'Thank you.')]
    """

    @checked_options
    def __init__(
        self,
        exclude: Collection[str] | None = None,
        *,
        keep_results: bool = False,
        keep_turns: Count = 1,
        id: Name = "tool-call-filter",  # noqa: A002 - named as the attribute
    ) -> None:
        """Say which calls go, and when.

        Args:
            exclude: names of the tools whose calls go; those of every tool if None.
            keep_results: leave what a tool returned, as text of the assistant's.
            keep_turns: how many of the newest turns stay as they are, at least 1.
            id: what it goes by.

        Raises:
            ConfigurationError: `exclude` is no list of names, or empty; `keep_results` is no bool;
                `keep_turns` is no whole number of at least 1.
        """
        name = type(self).__name__
        self.id = id
        named = None if exclude is None else checked_names(name, "exclude", exclude)
        self._exclude = None if named is None else frozenset(named)
        if self._exclude is not None and not self._exclude:
            msg = f"{name}: exclude names no tool; give their names, or None for every tool"
            raise ConfigurationError(msg)
        self._keep_results = keep_results
        self._keep_turns = keep_turns

    def process_llm_request(self, args: ProcessLLMRequestArgs) -> ProcessLLMRequestResult | None:
        """Give the prompt without the calls, or None where there is none to take out."""
        starts = turn_starts(args.prompt)
        if len(starts) <= self._keep_turns:
            return None
        end = starts[-self._keep_turns]
        old, new = args.prompt[:end], args.prompt[end:]
        calls = {
            part.tool_call_id
            for part in _parts(old)
            if isinstance(part, ToolCallPart) and self._goes(part.tool_name)
        }
        if not calls:
            return None
        results = {
            part.tool_call_id: part
            for part in _parts(old)
            if isinstance(part, ToolResultPart) and self._keep_results
        }
        left = [self._without(message, calls, results) for message in old]
        return ProcessLLMRequestResult(prompt=[*(m for m in left if m.content), *new])

    def _goes(self, tool_name: str) -> bool:
        """Whether calls of a tool are taken out."""
        return self._exclude is None or tool_name in self._exclude

    def _without(
        self, message: PromptMessage, calls: set[str], results: Mapping[str, ToolResultPart]
    ) -> PromptMessage:
        """A message without these calls and their results; as it is if it has none of them."""
        if not any(_id_of(part) in calls for part in message.content):
            return message
        content: list[Part] = []
        for part in message.content:
            call_id = _id_of(part)
            if call_id not in calls:
                content.append(part)
            elif isinstance(part, ToolCallPart) and call_id in results:
                content.append(TextPart(_told(results[call_id])))
        if not any(isinstance(part, ToolCallPart) for part in content):
            content = [part for part in content if not isinstance(part, ReasoningPart)]
        return PromptMessage(message.role, content)


def _parts(prompt: Iterable[PromptMessage]) -> Iterable[Part]:
    return (part for message in prompt for part in message.content)


def _id_of(part: Part) -> str | None:
    return part.tool_call_id if isinstance(part, ToolCallPart | ToolResultPart) else None


def _told(part: ToolResultPart) -> str:
    """A result in words."""
    how = "failed" if part.is_error else "returned"
    return f"{part.tool_name} {how}: {shown_text(part.result)}\n"
