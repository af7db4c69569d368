"""A run as spans: what stands at the seams of `operators/_trace.py` when a run is traced.

Every span but a tally's is current while its work goes on, so that the spans of user code are its
children. Work is a coroutine of one task from its beginning to its end, so what is attached there
is detached there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.trace import Span, SpanKind, get_current_span, set_span_in_context
from opentelemetry.util.types import AttributeValue

from streampipe.abort import TripWire
from streampipe.chunks import Chunk, FinishChunk, ToolCall
from streampipe.contracts import Model, ModelRequest, RunResult
from streampipe.errors import ModelError
from streampipe.messages import Message
from streampipe.operators._core import Emit, Escape
from streampipe.operators._trace import Asking, Calling, Executing, Sending, StreamHook
from streampipe.tracing._attributes import (
    OUTCOME,
    model_attributes,
    request_attributes,
    tell_end,
    tell_failure,
    usage_attributes,
    wire_attributes,
)
from streampipe.tracing._call import WatchedCall
from streampipe.tracing._content import as_json, messages_json
from streampipe.tracing._instruments import Instruments, instruments
from streampipe.tracing._tally import Tally

__all__ = ["RunTrace", "instruments"]

HOOK = "process_output_stream"


class RunTrace:
    """One run; see `Trace`, whose seams these are.

    Attributes:
        context: the OpenTelemetry context of the newest step; before the first, of the run.
    """

    def __init__(
        self,
        made_with: Instruments,
        agent: Any,
        model: Model,
        thread: str | None,
        *,
        content: bool,
    ) -> None:
        """Prepare; the run's span begins with its work.

        Args:
            made_with: the tracer and the histograms.
            agent: whose run it is.
            model: what it asks, unless a step says otherwise.
            thread: id of the conversation.
            content: whether it is told what was said.
        """
        self.context: Context | None = None
        self._instruments = made_with
        self._agent = agent
        self._model = model
        self._thread = thread
        self._content = content
        self._tallies: list[Tally] = []

    @contextmanager
    def _span(
        self,
        name: str,
        attributes: Mapping[str, AttributeValue],
        kind: SpanKind = SpanKind.INTERNAL,
        passing: type[BaseException] | tuple[()] = (),
    ) -> Iterator[Span]:
        """A span around a piece of work, current for as long as it goes on.

        What is `passing` is somebody else's failure, which ends this work too.
        """
        span = self._instruments.tracer.start_span(name, kind=kind, attributes=attributes)
        token = attach(set_span_in_context(span))
        here = True
        try:
            yield span
        except BaseException as error:
            # A coroutine that is closed by the interpreter ends in whatever context that has.
            here = not isinstance(error, GeneratorExit)
            if isinstance(error, passing):
                span.set_attribute(OUTCOME, "cancelled")
            else:
                tell_end(span, error, content=self._content)
            raise
        finally:
            if here:
                detach(token)
            span.end()

    # --- the seams -------------------------------------------------------------------------

    def run(self, work: Sending, result: RunResult, prompt: Sequence[Message]) -> Sending:
        """`invoke_agent`: the whole run."""

        async def traced(emit: Emit[Chunk]) -> None:
            name = f"invoke_agent {self._agent.name}"
            with self._span(name, self._run_attributes(result)) as span:
                self.context = get_current()
                if self._content:
                    span.set_attribute("gen_ai.input.messages", messages_json(prompt))
                try:
                    await work(emit)
                    self._tell_result(span, result)
                finally:
                    span.set_attributes(usage_attributes(result.usage))

        return traced

    def _run_attributes(self, result: RunResult) -> Mapping[str, AttributeValue]:
        agent = self._agent
        told = {
            "gen_ai.operation.name": "invoke_agent",
            **model_attributes(self._model),
            "gen_ai.agent.id": agent.id,
            "gen_ai.agent.name": agent.name,
            "gen_ai.agent.description": agent.description,
            "gen_ai.conversation.id": self._thread,
            "streampipe.run.id": result.run_id,
        }
        return {name: value for name, value in told.items() if value is not None}

    def _tell_result(self, span: Span, result: RunResult) -> None:
        span.set_attribute("gen_ai.response.finish_reasons", [result.finish_reason])
        span.set_attribute("streampipe.steps", len(result.steps))
        span.set_attribute("streampipe.retries", result.retries)
        if self._content:
            span.set_attribute("gen_ai.output.messages", messages_json(result.messages))
        if result.error is not None:
            tell_failure(span, result.error, content=self._content)
        elif result.finish_reason == "aborted":
            span.set_attribute(OUTCOME, "cancelled")

    def step(self, work: Sending, number: int, attempt: int) -> Sending:
        """One attempt at a step, and what every processor did with its chunks."""

        async def traced(emit: Emit[Chunk]) -> None:
            told = {"streampipe.step.number": number, "streampipe.step.attempt": attempt}
            with self._span("step", told):
                self.context = get_current()
                for tally in self._tallies:
                    tally.clear()
                try:
                    await work(emit)
                finally:
                    for tally in self._tallies:
                        self._tell_tally(tally)

        return traced

    def _tell_tally(self, tally: Tally) -> None:
        if not tally.begun:
            return
        span = self._instruments.tracer.start_span(
            f"{HOOK} {tally.processor_id}",
            start_time=tally.begun,
            attributes={**_hook_attributes(HOOK, tally.processor_id), **tally.attributes()},
        )
        if tally.error is not None:
            tell_end(span, tally.error, content=self._content)
        span.end()

    def model(
        self, work: Asking, model: Model, request: ModelRequest, *, is_replayed: bool
    ) -> Asking:
        """`chat`: a model's answer; a replay is an event, since nobody was asked."""
        if is_replayed:
            get_current_span().add_event("streampipe.replay")
            return work

        async def traced(emit: Emit[Chunk]) -> FinishChunk:
            named = {"gen_ai.operation.name": "chat", **model_attributes(model)}
            told = {**named, **dict(request_attributes(request))}
            if self._content:
                told["gen_ai.input.messages"] = messages_json(request.prompt)
            name = f"chat {named['gen_ai.request.model']}"
            with self._span(name, told, SpanKind.CLIENT, passing=Escape) as span:
                call = WatchedCall(emit, span, self._instruments, named, content=self._content)
                request.on_retry = call.retried_before(request.on_retry)
                try:
                    finish = await work(call.push)
                    call.finished(finish)
                except ModelError as error:
                    call.failed(error)
                    raise
                finally:
                    call.over()
                return finish

        return traced

    def tool(self, work: Executing) -> Executing:
        """`execute_tool`: a tool; not the wait for its turn."""

        async def traced(call: ToolCall) -> Any:
            told = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": call.tool_name,
                "gen_ai.tool.call.id": call.tool_call_id,
                "gen_ai.tool.type": "function",
            }
            with self._span(f"execute_tool {call.tool_name}", told) as span:
                if self._content:
                    args = call.args if call.args_text is None else call.args_text
                    span.set_attribute("gen_ai.tool.call.arguments", as_json(args))
                result = await work(call)
                if self._content:
                    span.set_attribute("gen_ai.tool.call.result", as_json(result))
                return result

        return traced

    def hook(self, work: Calling, processor_id: str) -> Calling:
        """A hook that runs between chunks."""

        async def traced(hook: str, args: Any) -> Any:
            with self._span(f"{hook} {processor_id}", _hook_attributes(hook, processor_id)):
                return await work(hook, args)

        return traced

    def stream_hook(self, hook: StreamHook, processor_id: str) -> StreamHook:
        """The hook that runs on every chunk: counted, and told when the step is over."""
        tally = Tally(processor_id)
        self._tallies.append(tally)
        return tally.counted(hook)

    def violated(self, wire: TripWire) -> None:
        """A processor rejected something."""
        get_current_span().add_event("streampipe.violation", wire_attributes(wire))

    def retried(self, wire: TripWire) -> None:
        """The attempt at hand is void; its span is the current one."""
        span = get_current_span()
        span.add_event("streampipe.retry", wire_attributes(wire))
        span.set_attribute(OUTCOME, "retried")

    def blocked(self, wire: TripWire) -> None:
        """The run is stopped; its span is the current one."""
        span = get_current_span()
        span.add_event("streampipe.tripwire", wire_attributes(wire))
        span.set_attribute(OUTCOME, "blocked")


def _hook_attributes(hook: str, processor_id: str) -> dict[str, AttributeValue]:
    return {"streampipe.hook": hook, "streampipe.processor.id": processor_id}
