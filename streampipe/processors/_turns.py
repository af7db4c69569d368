"""Where the turns of a conversation begin: from a user's message to the next one."""

from __future__ import annotations

from collections.abc import Sequence

from streampipe.messages import PromptMessage

__all__ = ["turn_starts"]


def turn_starts(prompt: Sequence[PromptMessage]) -> list[int]:
    """The index of each turn's first message; user messages in a row begin one turn.

    What stands before the first user message, system messages not counted, is a turn too: a
    remembered conversation may have been cut there.

    >>> roles = ("system", "assistant", "user", "assistant", "tool", "user", "user")
    >>> turn_starts([PromptMessage(role) for role in roles])
    [1, 2, 5]
    """
    starts: list[int] = []
    before = ""
    for index, message in enumerate(prompt):
        if message.role == "system":
            continue
        if not starts or (message.role == "user" and before != "user"):
            starts.append(index)
        before = message.role
    return starts
