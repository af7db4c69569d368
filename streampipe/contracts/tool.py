"""The contract of a tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from streampipe.abort import AbortSignal
from streampipe.contracts.context import RequestContext, StreamWriter
from streampipe.messages import MessageList

__all__ = ["Tool", "ToolContext"]


@dataclass(slots=True)
class ToolContext:
    """What a tool gets of the run when its signature asks for a parameter of this type.

    Attributes:
        writer: puts `data-*` chunks into the stream while the tool works.
        abort_signal: tells when the run is stopped.
        request_context: the call's own values.
        message_list: the live conversation.
        tool_call_id: id of the model's call.
        run_id: id of the run.
        step_number: the step that made the call, from 0.
        agent: the agent that runs.
    """

    writer: StreamWriter
    abort_signal: AbortSignal
    request_context: RequestContext
    message_list: MessageList
    tool_call_id: str
    run_id: str
    step_number: int
    agent: Any


@runtime_checkable
class Tool(Protocol):
    """Something a model can call. `@tool` makes one of a typed function.

    Attributes:
        name: what the model calls it by.
        description: what the model is told it is for.
        parameters: JSON schema of the arguments.
    """

    name: str
    description: str
    parameters: dict[str, Any]

    def execute(self, args: Mapping[str, Any], context: ToolContext) -> Any:
        """Run the tool.

        Returns:
            The result, an awaitable of it, or an async iterator: each value but the last is sent
            to the client as a transient `data-tool-progress` chunk, the last is the result.

        Raises:
            ToolArgumentsError: the arguments do not fit; the model is told.
            Exception: whatever the tool raises; the model is told.
        """
        ...
