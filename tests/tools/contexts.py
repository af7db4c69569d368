"""What a tool is given of a run, without a run."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from streampipe.abort import AbortSignal
from streampipe.contracts import Done, RequestContext, StreamWriter, ToolContext
from streampipe.messages import MessageList


def passed_on(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of another module: a plain wrapper around any function."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


class Written(StreamWriter):
    """A writer that keeps what it is given."""

    def __init__(self) -> None:
        """Start empty."""
        self.chunks: list[Any] = []

    def custom(
        self,
        chunk: Mapping[str, Any] | Any,
        *,
        message_id: str | None = None,
    ) -> Awaitable[None]:
        """Keep the chunk."""
        self.chunks.append(chunk)
        return Done()


def made_context(**values: Any) -> ToolContext:
    """A context whose request context holds `values`."""
    return ToolContext(
        writer=Written(),
        abort_signal=AbortSignal(),
        request_context=RequestContext(values),
        message_list=MessageList(),
        tool_call_id="call-1",
        run_id="run-1",
        step_number=0,
        agent=None,
    )
