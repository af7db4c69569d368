"""The run: an agent's answer as a pipeline of observables.

`Execution.into` is the whole of it, `Execution.step` one turn of the loop; read those two first,
they are the diagram of the contract as code:

    start ─ process_input
      └─ feedback loop, one turn a step ────────────────────────────────┐
         step-start                                                     │
         answer     process_input_step, prepare_step                    │
                    process_llm_request                                 │
                    model ─ failure ─▶ process_api_error                │
         response   process_llm_response                                │
         decide     process_output_step                                 │
         tools      process_tool_result                                 │
         step-finish ─ again while tools were called ───────────────────┘
                     ─ else process_output_result
    finish

Every chunk enters at `head`: the kernel of all `process_output_stream` hooks, behind it the
collector, behind that the client. Nothing reaches the client past them but the chunks that end a
run that was stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from copy import deepcopy
from functools import partial
from typing import Any

from reactivex.subject import Subject

from streampipe.abort import TripWire
from streampipe.agent._collect import Collector, opening_first, settle
from streampipe.agent._ending import tripwire_data
from streampipe.agent._model import call_model
from streampipe.agent._output import AsItReads, growing, output_of, refitted
from streampipe.agent._retries import ApiRetry, Retries
from streampipe.agent._route import Route
from streampipe.agent._spec import RunSpec
from streampipe.agent._tools import WITHHELD, ToolRun, checked_result
from streampipe.agent._turn import (
    StepRequest,
    Turn,
    active_tools,
    calls_to_run,
    goes_on,
    is_answer,
    prepare_step,
    resolve_step,
)
from streampipe.chunks import (
    AbortChunk,
    Chunk,
    FinishChunk,
    ObjectResult,
    StartChunk,
    StepFinish,
    StepStart,
    ToolCall,
    ToolResult,
    Usage,
)
from streampipe.contracts import (
    ModelRequest,
    OutputResult,
    ProcessorViolation,
    RunResult,
    ToolSpec,
)
from streampipe.errors import StreampipeError
from streampipe.messages import MessageList, PromptMessage
from streampipe.operators import catch_api_error, concat, create, feedback, of
from streampipe.operators._core import Emit, Escape, Flowable, is_cancel
from streampipe.operators._hooks import (
    ModelAnswer,
    ModelCall,
    StepInput,
    process_input,
    process_input_step,
    process_llm_request,
    process_llm_response,
    process_output_result,
    process_output_step,
)
from streampipe.operators._output import error_chunk, tripwire_chunk
from streampipe.operators._scope import Scope, bind, report_violation

FEEDBACK = "Your previous answer was rejected: {reason}\nAnswer again and take this into account."


class Execution:
    """One run. `into` may be called once."""

    def __init__(self, spec: RunSpec, *, unread: bool = False) -> None:
        """Bind the processors of `spec` to a new run; `unread` if only its result is wanted."""
        self.spec = spec
        self.scope = Scope(
            agent=spec.agent,
            request_context=spec.request_context,
            abort_signal=spec.abort_signal,
            message_list=MessageList(system=spec.system),
            trace=spec.tracing.open(spec.agent, spec.model, spec.thread),
        )
        self.result = RunResult(self.scope.run_id)
        self._input = bind(spec.input_processors, self.scope)
        errors = bind(spec.error_processors, self.scope)
        self._retries = Retries(spec, self.scope, self.result, errors, unread=unread)
        self._errors = errors
        self._request = self._input + [
            b for b in errors if b.processor not in spec.input_processors
        ]
        self._prepare = self._input + bind(prepare_step(spec.prepare_step), self.scope)
        self._keeps_chunks = any(b.has("process_llm_response") for b in self._input)
        self._is_plain = spec.structured_output is None and not any(
            b.has("process_input_step") for b in self._prepare
        )
        self._private = not any(b.has("process_llm_request") for b in self._request)
        self._output = output_of(spec.structured_output)
        self._json = AsItReads()
        self._watch = spec.recorder.open(self.scope.run_id, "model")
        self._route = Route(spec.output_processors, self.scope, self._watch)
        self._task: asyncio.Task[Any] | None = None
        self._aborted: str | None = None
        self._parting: list[Chunk] = []
        self._finished = False
        self._over = False
        self._rewritten: str | None = None

    # --- the pipeline ----------------------------------------------------------------------

    async def into(self, emit: Emit[Chunk]) -> None:
        """The whole run, pushed into `emit`; ends with one `finish` chunk, whatever happens."""
        await self.scope.trace.run(self._into, self.result, self.spec.messages)(emit)

    async def _into(self, emit: Emit[Chunk]) -> None:
        self.client = emit = self._watch.client(emit)
        self.collector = Collector(self.scope, emit, (self.spec.thread, self.spec.resource))
        end = self.collector.push if self._is_plain else self._json.written(self.collector.push)
        self.head = self.scope.send = self._route.compile(end)
        self._task = asyncio.current_task()
        forget = self.spec.abort_signal.on_abort(self._on_signal)
        try:
            await self._guarded()
        except asyncio.CancelledError:
            if self._aborted is None:
                raise
            if self._task is not None:
                self._task.uncancel()
            if self._parting:  # the end was being told already; nobody has to read it now
                await self._part()
            elif not self._finished:
                await self._end(AbortChunk(self._aborted), "aborted")
        finally:
            forget()
            self._over = True
            self.collector.show()
            settle(self.result, self.scope, self._rewritten)

    async def _guarded(self) -> None:
        try:
            if self._aborted is not None:
                raise asyncio.CancelledError
            await concat(
                effect(self._begin),
                of(StepRequest(0)).pipe(feedback(self.step)),
                effect(self._finish),
            ).into(self.head)
        except TripWire as wire:
            await self._blocked(wire)
        except (KeyboardInterrupt, SystemExit):
            raise
        except asyncio.CancelledError as error:
            if self._aborted is not None or is_cancel(error):
                raise
            msg = "the run waited for something that was cancelled, though the run was not"
            failure = StreampipeError(msg)
            failure.__cause__ = error
            await self._failed(failure)
        except Escape as escape:
            if not self._route.owns(escape.stage):  # an operator behind the run: its own failure
                raise
            if isinstance(escape.error, TripWire):
                await self._blocked(escape.error)
            else:
                await self._failed(escape.error)
        except BaseException as error:
            if self._finished:  # whoever was given the end of the run has failed with it
                raise
            await self._failed(error)

    def step(self, request: StepRequest, again: Subject[StepRequest]) -> Flowable[Chunk]:
        """One turn of the loop."""
        turn = Turn(request, again)

        async def answer(emit: Emit[Chunk]) -> None:
            await self._answer(turn, emit)

        stages = concat(
            effect(self._step_start, turn),
            self._route.through(create(answer).pipe(catch_api_error(self._retries.on_api_error))),
            effect(self._response, turn),
            effect(self._decide, turn),
            effect(self._tools, turn),
            effect(self._step_finish, turn),
        )

        async def guarded(emit: Emit[Chunk]) -> None:
            try:
                await stages.into(emit)
            except (TripWire, Escape) as error:
                await self._retry(self._route.wire(error), turn)

        return create(self.scope.trace.step(guarded, request.number, request.attempt))

    # --- the stages ------------------------------------------------------------------------

    async def _begin(self) -> None:
        messages = self.scope.message_list
        for message in self.spec.messages:
            messages.add(deepcopy(message))
        await self._lifecycle(StartChunk())
        await process_input(self._input)
        self._system = messages.system_messages

    async def _step_start(self, turn: Turn) -> None:
        request = turn.request
        self.scope.step_number = request.number
        self._json.is_on = False
        self.scope.message_list.system_messages = deepcopy(self._system)
        self._route.renew()
        self.collector.begin(request.number)
        start = StepStart(request.number, request.attempt, self.collector.message.id)
        held = self.collector.hold()
        try:
            await self._lifecycle(start)
        finally:
            self.collector.client = self.client
            for chunk in opening_first(held):
                await self._straight(chunk)

    async def _answer(self, turn: Turn, emit: Emit[Chunk]) -> None:
        """Everything up to and with the model call: its chunks are what this stage emits."""
        spec = self.spec
        step = StepInput(
            spec.model,
            dict(spec.tools),
            spec.active_tools,
            spec.tool_choice,
            spec.provider_options,
            spec.model_settings,
            spec.structured_output,
        )
        await process_input_step(self._prepare, step, resolve_step)
        turn.tools = active_tools(step)
        unchanged = step.structured_output is spec.structured_output
        turn.output = self._output if unchanged else output_of(step.structured_output)
        if turn.output is not None:
            self.collector.client = growing(self.client)
            emit = self._json.readable(emit)
        call = ModelCall(step.model, self._model_request(step, turn))
        await process_llm_request(self._request, call)
        answer = turn.answer = ModelAnswer(call)  # an operator may have seen enough of it
        check, keep = self._provider_result, self._keeps_chunks
        ask = partial(call_model, answer, self.scope, keep=keep, check=check)
        is_replayed = call.replay is not None
        traced = self.scope.trace.model(ask, call.model, call.request, is_replayed=is_replayed)
        turn.finish = await traced(emit)
        self.result.usage += turn.finish.usage or Usage()

    async def _response(self, turn: Turn) -> None:
        if turn.answer is not None:
            await process_llm_response(self._input, turn.answer)

    async def _provider_result(self, chunk: ToolResult) -> None:
        """A result of a tool that the provider ran: checked before anybody sees it."""
        call = ToolCall(chunk.tool_call_id, chunk.tool_name, chunk.args, provider_executed=True)
        self.collector.expect(call)
        self.collector.show()
        passed = await checked_result(call, chunk.result, self.scope, self._route.bounds)
        chunk.result = passed.result

    def _model_request(self, step: StepInput, turn: Turn) -> ModelRequest:
        told = turn.request.feedback
        extra = [PromptMessage.system(FEEDBACK.format(reason=told))] if told else []
        return ModelRequest(
            self.scope.message_list.prompt(*extra, private=self._private),
            [ToolSpec(t.name, t.description, t.parameters) for t in turn.tools.values()],
            step.tool_choice,
            dict(step.model_settings),
            dict(step.provider_options),
            turn.output.schema if turn.output is not None else None,
            self.spec.abort_signal,
            self._retries.asked_again,
        )

    async def _decide(self, turn: Turn) -> None:
        for chunk in self.collector.closing():  # a processor swallowed the end of a part
            chunk.run_id = self.scope.run_id
            wait = self.collector.push(chunk)
            if wait is not None:
                await wait
        step = self.collector.complete()
        step.finish_reason = turn.finish.reason
        step.provider_metadata = turn.finish.provider_metadata
        step.usage = turn.finish.usage or Usage()
        await process_output_step(self._route.bounds, step)
        turn.calls = calls_to_run(step, self.collector.message)

    async def _tools(self, turn: Turn) -> None:
        if not turn.calls:
            return
        run = ToolRun(turn.calls, turn.tools, self.scope, self.spec.tool_concurrency)
        await run.into(self.head, self._route.bounds)
        for call in turn.calls:
            if not self.collector.has_outcome(call.tool_call_id):
                self.scope.message_list.update_tool_invocation(call.tool_call_id, result=WITHHELD)

    async def _step_finish(self, turn: Turn) -> None:
        finish = turn.finish
        going_on = bool(turn.calls)
        if not going_on and turn.output is not None and is_answer(self.collector.step):
            value = self._retries.validated(turn.output, self.collector.step.text)
            await self._send(ObjectResult(value, run_id=self.scope.run_id))
            self.result.object = turn.output.instance(self.collector.step.object)
        await self._lifecycle(
            StepFinish(
                finish.reason,
                finish.usage,
                provider_metadata=finish.provider_metadata,
                raw_reason=finish.raw_reason,
            ),
        )
        self.scope.steps.append(self.collector.complete())
        self._last = turn
        if going_on and await goes_on(self.spec, self.scope.steps):
            turn.again.on_next(StepRequest(turn.request.number + 1))
        else:
            await self._output_result(finish)

    async def _output_result(self, finish: FinishChunk) -> None:
        if not any(b.has("process_output_result") for b in self._route.bounds):
            return
        before = self._stored_text()
        text = "".join(step.text for step in self.scope.steps)
        await process_output_result(
            self._route.bounds,
            OutputResult(text, self.result.usage, finish.reason, self.scope.steps),
        )
        self.collector.show()
        after = self._stored_text()
        if after != before:
            self._rewritten = after
            self.result.object = refitted(self._last.output, self.scope.message_list.response)

    def _stored_text(self) -> str:
        return "".join(message.text for message in self.scope.message_list.response)

    async def _finish(self) -> None:
        last = self._last.finish
        finish = FinishChunk(
            last.reason,
            self.result.usage,
            provider_metadata=last.provider_metadata,
            raw_reason=last.raw_reason,
        )
        await self._lifecycle(finish)
        await self._straight(self.collector.finish or finish)
        self.result.finish_reason = (self.collector.finish or finish).reason

    # --- what goes wrong -------------------------------------------------------------------

    async def _retry(self, wire: TripWire, turn: Turn) -> None:
        """Void the attempt; try the step again while the budget lasts.

        Raises:
            TripWire: no retry was asked for, or the budget is spent.
        """
        await self._report(wire)
        await self._void()
        told = self._retries.grant(wire)
        self.scope.trace.retried(wire)
        self._route.renew()
        await self._lifecycle(StepFinish("retry", tripwire=tripwire_data(wire)))
        request = turn.request
        turn.again.on_next(StepRequest(request.number, request.attempt + 1, told))

    async def _void(self) -> None:
        for chunk in self.collector.void():
            chunk.run_id = self.scope.run_id
            await self._straight(chunk)

    async def _blocked(self, wire: TripWire) -> None:
        await self._report(wire)
        self.scope.trace.blocked(wire)
        self.result.tripwire = tripwire_data(wire)
        await self._end(tripwire_chunk(wire), "other")

    async def _failed(self, error: BaseException) -> None:
        self.result.error = error
        await self._end(error_chunk(error), "error")

    async def _end(self, last: Chunk, reason: str) -> None:
        """A run that was stopped: close what is open, say why, finish; past all processors."""
        self.result.finish_reason = reason
        self._parting = [
            *self.collector.void(),
            last,
            FinishChunk(reason, self.result.usage),
        ]
        await self._part()

    async def _part(self) -> None:
        """Send the chunks that end a stopped run, or what is left of them."""
        while self._parting:
            chunk = self._parting.pop(0)
            chunk.run_id = self.scope.run_id
            await self._straight(chunk)

    async def _report(self, wire: TripWire) -> None:
        """Tell the processor's `on_violation`, once a wire."""
        if isinstance(wire, ApiRetry) or getattr(wire, "reported", False):
            return
        wire.reported = True  # type: ignore[attr-defined]  # a note on our own signal
        self.scope.trace.violated(wire)
        for bound in (*self._input, *self._route.bounds, *self._errors):
            if bound.id == wire.processor_id:
                violation = ProcessorViolation(wire.processor_id, wire.reason, wire.metadata)
                await report_violation(bound.processor, violation)
                return

    # --- cancelling ------------------------------------------------------------------------

    @property
    def aborted(self) -> bool:
        """Whether the run was stopped: then nobody has to have read what it still sends."""
        return self._aborted is not None

    def _on_signal(self) -> None:
        if self._task is not None:
            loop = self._task.get_loop()
            loop.call_soon_threadsafe(self.abort, self.spec.abort_signal.reason)
            self.scope.stopped = True

    def abort(self, reason: str) -> None:
        """Stop the run, from the loop it runs in: an `abort` chunk, then `finish`.

        A run that has not begun ends as soon as it does; one that is over stays as it is.
        """
        if self._over or self._aborted is not None:
            return
        self._aborted = reason
        self.scope.stopped = True
        if self._task is not None:  # soon, not now: a hook may be calling, within this very task
            self._task.get_loop().call_soon(self._task.cancel)

    # --- small things ----------------------------------------------------------------------

    async def _lifecycle(self, chunk: Chunk) -> None:
        """Send a lifecycle chunk through the processors; one that they drop comes all the same."""
        chunk.run_id = self.scope.run_id
        seen = self.collector.seen
        seen.discard(chunk.__class__)
        # Not a fact yet: the end of a step, and of the run, which a hook may still prevent.
        pending = isinstance(chunk, StepFinish | FinishChunk) and chunk.reason != "retry"
        try:
            await self._send(chunk)
        except BaseException:
            if not pending and chunk.__class__ not in seen:
                await self._straight(chunk)
            raise
        if chunk.__class__ not in seen and not isinstance(chunk, FinishChunk):
            await self._straight(chunk)

    async def _send(self, chunk: Chunk) -> None:
        wait = self.head(chunk)
        if wait is not None:
            await wait
        if self.scope.stopped:
            await self.scope.halt()

    async def _straight(self, chunk: Chunk) -> None:
        """Give a chunk to the client past all processors; nothing comes after `finish`."""
        if self._finished:
            return
        self._finished = isinstance(chunk, FinishChunk)
        wait = self.client(chunk)
        if wait is not None:
            await wait


def effect(run: Callable[..., Awaitable[None]], *args: Any) -> Flowable[Chunk]:
    """A stage that has no chunks of its own: what it sends enters at the head of the chain."""

    async def stage(_emit: Emit[Chunk]) -> None:
        await run(*args)

    return create(stage)
