"""The seams at which a run may be traced, and what stands there when it is not.

At every seam a trace is given the function that does the work, and gives one back: one that does
the same within a span. Where nobody traces it gives back the very function that it was given, so
such a run is made of the same objects as if there were no tracing at all.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from streampipe.abort import TripWire
from streampipe.chunks import Chunk, FinishChunk, ToolCall
from streampipe.contracts import Model, ModelRequest, ProcessOutputStreamArgs, RunResult
from streampipe.messages import Message
from streampipe.operators._core import Emit

Sending = Callable[[Emit[Chunk]], Coroutine[Any, Any, None]]
"""Sends a run's, or a step's, chunks."""

Asking = Callable[[Emit[Chunk]], Coroutine[Any, Any, FinishChunk]]
"""Sends a model's chunks; returns the last one."""

Executing = Callable[[ToolCall], Coroutine[Any, Any, Any]]
"""Executes a tool call; returns its result."""

Calling = Callable[[str, Any], Coroutine[Any, Any, Any]]
"""Calls the hook of a name with its args; returns what it returned."""

StreamHook = Callable[[ProcessOutputStreamArgs], Any]
"""A `process_output_stream` hook, sync or async."""


class Trace(Protocol):
    """One run as it is traced, or not.

    Attributes:
        context: what hooks get as `tracing_context`.
    """

    context: Any

    def run(self, work: Sending, result: RunResult, prompt: Sequence[Message]) -> Sending:
        """The whole run; `result` is complete when the work is done."""
        ...

    def step(self, work: Sending, number: int, attempt: int) -> Sending:
        """One attempt at a step."""
        ...

    def model(
        self, work: Asking, model: Model, request: ModelRequest, *, is_replayed: bool
    ) -> Asking:
        """A model's answer, or the replay of one."""
        ...

    def tool(self, work: Executing) -> Executing:
        """A tool."""
        ...

    def hook(self, work: Calling, processor_id: str) -> Calling:
        """The hooks of a processor that run between chunks."""
        ...

    def stream_hook(self, hook: StreamHook, processor_id: str) -> StreamHook:
        """The hook of a processor that runs on every chunk."""
        ...

    def violated(self, wire: TripWire) -> None:
        """A processor rejected something."""
        ...

    def retried(self, wire: TripWire) -> None:
        """The attempt at hand is void, and another one is to follow."""
        ...

    def blocked(self, wire: TripWire) -> None:
        """The run is stopped."""
        ...


class Untraced:
    """A run that nobody traces: everything is as it was given."""

    context = None

    def run(
        self,
        work: Sending,
        result: RunResult,  # noqa: ARG002 - as Trace
        prompt: Sequence[Message],  # noqa: ARG002 - as Trace
    ) -> Sending:
        """The whole run."""
        return work

    def step(self, work: Sending, number: int, attempt: int) -> Sending:  # noqa: ARG002 - as Trace
        """One attempt at a step."""
        return work

    def model(
        self,
        work: Asking,
        model: Model,  # noqa: ARG002 - as Trace
        request: ModelRequest,  # noqa: ARG002 - as Trace
        *,
        is_replayed: bool,  # noqa: ARG002 - as Trace
    ) -> Asking:
        """A model's answer."""
        return work

    def tool(self, work: Executing) -> Executing:
        """A tool."""
        return work

    def hook(self, work: Calling, processor_id: str) -> Calling:  # noqa: ARG002 - as Trace
        """The hooks of a processor."""
        return work

    def stream_hook(self, hook: StreamHook, processor_id: str) -> StreamHook:  # noqa: ARG002 - as Trace
        """The hook that runs on every chunk."""
        return hook

    def violated(self, wire: TripWire) -> None:
        """Nobody is told."""

    def retried(self, wire: TripWire) -> None:
        """Nobody is told."""

    def blocked(self, wire: TripWire) -> None:
        """Nobody is told."""


UNTRACED = Untraced()
