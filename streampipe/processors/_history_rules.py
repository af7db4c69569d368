"""What providers refuse in a conversation, and how a prompt is mended so that they take it.

Each mender takes a prompt and gives one: new messages where something has changed, the same ones
elsewhere. Mended once more, a prompt stays as it is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from operator import is_

from streampipe.errors import ConfigurationError
from streampipe.messages import Part, PromptMessage, TextPart, ToolCallPart, ToolResultPart

__all__ = ["HISTORY_RULES", "HistoryRule", "Prompt"]

Prompt = list[PromptMessage]

UNANSWERED = "There is no result: the call was interrupted."


@dataclass(frozen=True, slots=True)
class HistoryRule:
    """Something that providers refuse in a conversation, and how to mend it.

    Attributes:
        name: what the rule goes by.
        mend: from a prompt to one without the fault; it leaves the messages that it gets as they
            are.
        refused: what a provider says that refuses it. With it the rule mends once that was said,
            without it every prompt.
    """

    name: str
    mend: Callable[[Prompt], Prompt]
    refused: re.Pattern[str] | None = None

    def __post_init__(self) -> None:
        """Check what was given.

        Raises:
            ConfigurationError: the name is empty, `mend` is no function, or `refused` is not
                compiled.
        """
        if not isinstance(self.name, str) or not self.name:
            raise ConfigurationError(f"HistoryRule: name must be a text, not {self.name!r:.80}")
        if not callable(self.mend):
            msg = f"HistoryRule {self.name!r}: mend must be a function, not {self.mend!r:.80}"
            raise ConfigurationError(msg)
        if self.refused is not None and not isinstance(self.refused, re.Pattern):
            msg = (
                f"HistoryRule {self.name!r}: refused must be None or a compiled pattern, "
                f"not {self.refused!r:.80}"
            )
            raise ConfigurationError(msg)


def without_strange_ids(allowed: re.Pattern[str], size: int) -> Callable[[Prompt], Prompt]:
    """A mender that gives calls whose id is not `allowed` another one, of `size` hex digits.

    A call and its result get the same, in every prompt of the conversation.
    """

    def other(part: Part) -> Part:
        if not isinstance(part, ToolCallPart | ToolResultPart):
            return part
        call_id = part.tool_call_id
        if allowed.fullmatch(call_id):
            return part
        digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
        return replace(part, tool_call_id=digest[:size])

    return lambda prompt: [_with(message, map(other, message.content)) for message in prompt]


def without_orphans(prompt: Prompt) -> Prompt:
    """Drop results of calls that were never made."""
    called: set[str] = set()

    def stays(part: Part) -> bool:
        if isinstance(part, ToolCallPart):
            called.add(part.tool_call_id)
        return not isinstance(part, ToolResultPart) or part.tool_call_id in called

    return _not_empty(_with(message, filter(stays, message.content)) for message in prompt)


def with_answers(prompt: Prompt) -> Prompt:
    """Give every call without a result one that says so.

    The call itself stays: a provider may have tied the reasoning before it to it.
    """
    parts = [part for message in prompt for part in message.content]
    answered = {part.tool_call_id for part in parts if isinstance(part, ToolResultPart)}
    mended: Prompt = []
    due: list[Part] = []  # stand-ins for the results of the message before
    for message in prompt:
        if due and message.role == "tool":
            mended.append(PromptMessage("tool", [*message.content, *due]))
        else:
            mended += [PromptMessage("tool", due)] if due else []
            mended.append(message)
        due = [
            ToolResultPart(part.tool_call_id, part.tool_name, UNANSWERED, is_error=True)
            for part in message.content
            if isinstance(part, ToolCallPart)
            and not part.provider_executed
            and part.tool_call_id not in answered
        ]
    return [*mended, PromptMessage("tool", due)] if due else mended


def joined(prompt: Prompt) -> Prompt:
    """Make one of messages in a row that are all the user's, or all the assistant's."""
    mended: Prompt = []
    for message in prompt:
        last = mended[-1] if mended else None
        if last is None or last.role != message.role or last.role in ("system", "tool"):
            mended.append(message)
            continue
        parts = list(last.content)
        for part in message.content:
            end = parts[-1] if part is message.content[0] and parts else None
            if isinstance(end, TextPart) and isinstance(part, TextPart):
                parts[-1] = replace(end, text=f"{end.text}\n\n{part.text}")
            else:
                parts.append(part)
        mended[-1] = PromptMessage(last.role, parts)
    return mended


def without_trailing_space(prompt: Prompt) -> Prompt:
    """Cut the white space at the end of an assistant's message that ends the prompt."""
    if not prompt or prompt[-1].role != "assistant" or not prompt[-1].content:
        return prompt
    *head, last = prompt[-1].content
    if not isinstance(last, TextPart):
        return prompt
    cut = replace(last, text=last.text.rstrip())
    return [*prompt[:-1], _with(prompt[-1], [*head, cut])]


def without_empty_text(prompt: Prompt) -> Prompt:
    """Drop text that is nothing but white space, and messages that were nothing else."""

    def says_something(part: Part) -> bool:
        return not isinstance(part, TextPart) or bool(part.text.strip())

    return _not_empty(_with(message, filter(says_something, message.content)) for message in prompt)


def _with(message: PromptMessage, content: Iterator[Part] | list[Part]) -> PromptMessage:
    """The message with this content; itself if it is what it has."""
    parts = list(content)
    same = len(parts) == len(message.content) and all(map(is_, parts, message.content))
    return message if same else PromptMessage(message.role, parts)


def _not_empty(messages: Iterator[PromptMessage]) -> Prompt:
    return [message for message in messages if message.content]


def _said(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


HISTORY_RULES: tuple[HistoryRule, ...] = (
    HistoryRule("tool-call-ids", without_strange_ids(re.compile(r"[A-Za-z0-9_-]{1,40}"), 32)),
    HistoryRule(
        "short-tool-call-ids",
        without_strange_ids(re.compile(r"[A-Za-z0-9]{9}"), 9),
        _said("length of 9", r"call.?id.{0,80}must be a-z"),
    ),
    HistoryRule("orphan-results", without_orphans),
    HistoryRule("unanswered-calls", with_answers),
    HistoryRule(
        "same-role-in-a-row",
        joined,
        _said("must alternate", "alternat(e|ing) between", "roles in a row", "consecutive user"),
    ),
    HistoryRule("trailing-space", without_trailing_space),
    HistoryRule("empty-text", without_empty_text),
)
"""What the known providers refuse. The order counts: ids first, then what becomes empty."""
