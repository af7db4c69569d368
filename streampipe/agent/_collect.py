"""The collector: what the processors let through, put together.

It stands between the last processor and the client, so the client, the result and the stored
messages are fed by the same chunks. Work per chunk is constant; text is joined once, when its
part is closed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from streampipe.chunks import (
    Chunk,
    DataChunk,
    FileChunk,
    FinishChunk,
    ObjectChunk,
    ObjectResult,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningSignature,
    ReasoningStart,
    RedactedReasoning,
    ResponseMetadata,
    SourceChunk,
    StartChunk,
    StepFinish,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolErrorChunk,
    ToolResult,
)
from streampipe.contracts import RunResult, StepResult
from streampipe.errors import StreampipeError
from streampipe.messages import (
    DataPart,
    FilePart,
    Message,
    Part,
    ReasoningPart,
    SourcePart,
    TextPart,
    ToolInvocationPart,
)
from streampipe.operators._core import Emit
from streampipe.operators._scope import Scope

LIFECYCLE = (StartChunk, StepStart, StepFinish, FinishChunk)


class Collector:
    """Assembles the attempt at hand; `push` is the end of every processor chain of the run."""

    def __init__(
        self, scope: Scope, client: Emit[Chunk], thread: tuple[str | None, str | None]
    ) -> None:
        """Collect for one run and pass everything on to `client`.

        Args:
            scope: the run.
            client: the one sink.
            thread: thread and resource id that messages are stored under.
        """
        self.client = client
        self.finish: FinishChunk | None = None
        self.seen: set[type[Chunk]] = set()
        self._scope = scope
        self._thread = thread
        self._loose: list[DataPart] = []  # data from before the first step
        self._handlers: dict[type[Chunk], Callable[[Any], None]] = {
            TextStart: self._on_text_start,
            TextEnd: self._on_text_end,
            ReasoningStart: self._on_reasoning_start,
            ReasoningDelta: self._on_reasoning,
            ReasoningEnd: self._on_reasoning_end,
            ReasoningSignature: self._on_signature,
            RedactedReasoning: self._on_redacted,
            ToolCall: self._on_tool_call,
            ToolResult: self._on_tool_result,
            ToolErrorChunk: self._on_tool_error,
            SourceChunk: self._on_source,
            FileChunk: self._on_file,
            DataChunk: self._on_data,
            ResponseMetadata: self._on_response,
            ObjectChunk: self._on_object,
            ObjectResult: self._on_object,
        }
        self.begin(0)
        self.begun = False

    # --- the attempt -----------------------------------------------------------------------

    def begin(self, step_number: int) -> None:
        """Start an attempt at a step."""
        self.begun = True
        self.step = StepResult(step_number)
        self.message = Message(
            "assistant", [], thread_id=self._thread[0], resource_id=self._thread[1]
        )
        self._added = False
        self._open: dict[str, Callable[[str], Chunk]] = {}
        self._text_parts: dict[str, tuple[TextPart, list[str]]] = {}
        self._reasoning_parts: dict[str, tuple[ReasoningPart, list[str]]] = {}
        self._texts: list[str] = []
        self._reasonings: list[str] = []
        self._calls: dict[str, ToolInvocationPart] = {}
        self._expected: dict[str, ToolInvocationPart] = {}

    def _join(self) -> None:
        for part, pieces in self._text_parts.values():
            part.text = "".join(pieces)
        for thought, pieces in self._reasoning_parts.values():
            thought.text = "".join(pieces)

    def hold(self) -> list[Chunk]:
        """Keep what passes from the client, in the list that this returns, until told otherwise."""
        held: list[Chunk] = []
        self.client = held.append
        return held

    def show(self) -> StepResult:
        """Bring the step and its message up to date, and the message into the message list."""
        self._join()
        self.step.text = "".join(self._texts)
        self.step.reasoning = "".join(self._reasonings)
        if self._loose:
            self.message.parts[:0] = self._loose
            self._loose = []
        if self.message.parts and not self._added:
            self._added = True
            self._scope.message_list.add(self.message, source="response")
        return self.step

    def complete(self) -> StepResult:
        """The model has answered: every part ends here, opened or not; an empty one is none."""
        self._join()
        self._text_parts.clear()  # from here on the parts are the hooks' to edit
        self._reasoning_parts.clear()
        self._leave_out(self._expected.values())
        self._expected.clear()
        self.message.parts = [part for part in self.message.parts if not _is_empty(part)]
        return self.show()

    def void(self) -> list[Chunk]:
        """Forget the attempt; returns the chunks that close what the client saw open."""
        closing = self.closing()
        self._scope.message_list.remove_by_ids([self.message.id])
        if self._scope.steps and self._scope.steps[-1] is self.step:
            self._scope.steps.pop()
        self.begin(self.step.step_number)
        return closing

    def closing(self) -> list[Chunk]:
        """Closing chunks for every part that the client saw open, newest last."""
        return [end(part_id[1:]) for part_id, end in self._open.items()]

    def has_outcome(self, tool_call_id: str) -> bool:
        """Whether the processors let a result or an error of the call through."""
        step = self.step
        return any(r.tool_call_id == tool_call_id for r in step.tool_results) or any(
            e.tool_call_id == tool_call_id for e in step.tool_errors
        )

    # --- chunks ----------------------------------------------------------------------------

    def push(self, chunk: Chunk) -> Awaitable[Any] | None:
        """Take a chunk that passed every processor, and give it to the client."""
        if isinstance(chunk, TextDelta):
            entry = self._text_parts.get(chunk.id)
            if entry is None:
                entry = self._new_text(chunk.id)
            entry[1].append(chunk.text)
            self._texts.append(chunk.text)
            return self.client(chunk)
        handler = self._handlers.get(chunk.__class__)
        if handler is not None:
            handler(chunk)
        elif isinstance(chunk, LIFECYCLE):
            self.seen.add(chunk.__class__)
            if isinstance(chunk, FinishChunk):  # kept back: nothing may come after it
                self.finish = chunk
                return None
        return self.client(chunk)

    def _new_text(self, part_id: str) -> tuple[TextPart, list[str]]:
        part = TextPart()
        self.message.parts.append(part)
        entry: tuple[TextPart, list[str]] = (part, [])
        self._text_parts[part_id] = entry
        return entry

    def _new_reasoning(self, part_id: str) -> tuple[ReasoningPart, list[str]]:
        part = ReasoningPart()
        self.message.parts.append(part)
        entry: tuple[ReasoningPart, list[str]] = (part, [])
        self._reasoning_parts[part_id] = entry
        return entry

    def _on_text_start(self, chunk: TextStart) -> None:
        self._open["t" + chunk.id] = TextEnd
        part, _ = self._new_text(chunk.id)
        part.provider_metadata = chunk.provider_metadata

    def _on_text_end(self, chunk: TextEnd) -> None:
        self._open.pop("t" + chunk.id, None)
        entry = self._text_parts.pop(chunk.id, None)
        if entry is not None:
            part, pieces = entry
            part.text = "".join(pieces)
            part.provider_metadata = chunk.provider_metadata or part.provider_metadata

    def _on_reasoning_start(self, chunk: ReasoningStart) -> None:
        self._open["r" + chunk.id] = ReasoningEnd
        part, _ = self._new_reasoning(chunk.id)
        part.signature = chunk.signature
        part.provider_metadata = chunk.provider_metadata

    def _reasoning(self, part_id: str) -> tuple[ReasoningPart, list[str]]:
        return self._reasoning_parts.get(part_id) or self._new_reasoning(part_id)

    def _on_reasoning(self, chunk: ReasoningDelta) -> None:
        self._reasoning(chunk.id)[1].append(chunk.text)
        self._reasonings.append(chunk.text)

    def _on_reasoning_end(self, chunk: ReasoningEnd) -> None:
        self._open.pop("r" + chunk.id, None)
        entry = self._reasoning_parts.pop(chunk.id, None)
        if entry is not None:
            part, pieces = entry
            part.text = "".join(pieces)
            part.signature = chunk.signature or part.signature
            part.provider_metadata = chunk.provider_metadata or part.provider_metadata

    def _on_signature(self, chunk: ReasoningSignature) -> None:
        self._reasoning(chunk.id)[0].signature = chunk.signature

    def _on_redacted(self, chunk: RedactedReasoning) -> None:
        part = ReasoningPart(redacted=chunk.data, provider_metadata=chunk.provider_metadata)
        self.message.parts.append(part)

    def _on_tool_call(self, chunk: ToolCall) -> None:
        early = self._expected.pop(chunk.tool_call_id, None)
        if early is not None:
            self._leave_out([early])  # its place is where its chunk came
        part = early or ToolInvocationPart(chunk.tool_call_id)
        part.tool_name = chunk.tool_name
        part.args = chunk.args
        part.provider_executed = chunk.provider_executed
        part.provider_metadata = chunk.provider_metadata
        self.message.parts.append(part)
        self._calls[chunk.tool_call_id] = part
        self.step.tool_calls.append(chunk)

    def expect(self, call: ToolCall) -> None:
        """Have a call found by hooks although its chunk has not passed: an operator may hold it.

        One that never passes is no part of the message.
        """
        if call.tool_call_id not in self._calls and call.tool_call_id not in self._expected:
            part = ToolInvocationPart(call.tool_call_id, call.tool_name, call.args)
            self._expected[call.tool_call_id] = part
            self.message.parts.append(part)

    def _leave_out(self, parts: Iterable[Part]) -> None:
        gone = {id(part) for part in parts}
        self.message.parts = [part for part in self.message.parts if id(part) not in gone]

    def _on_tool_result(self, chunk: ToolResult) -> None:
        part = self._calls.get(chunk.tool_call_id)
        if part is not None:
            part.result = chunk.result
            part.is_error = bool(chunk.is_error)
            part.state = "result"
        self.step.tool_results.append(chunk)

    def _on_tool_error(self, chunk: ToolErrorChunk) -> None:
        part = self._calls.get(chunk.tool_call_id)
        if part is not None:
            part.result = chunk.error
            part.is_error = True
            part.state = "result"
        self.step.tool_errors.append(chunk)

    def _on_source(self, chunk: SourceChunk) -> None:
        self.step.sources.append(chunk)
        self.message.parts.append(
            SourcePart(
                chunk.id,
                chunk.source_type,
                chunk.title,
                chunk.url,
                chunk.mime_type,
                chunk.filename,
                chunk.provider_metadata,
            ),
        )

    def _on_file(self, chunk: FileChunk) -> None:
        self.step.files.append(chunk)
        part = FilePart(chunk.data, chunk.mime_type, chunk.filename, chunk.provider_metadata)
        self.message.parts.append(part)

    def _on_data(self, chunk: DataChunk) -> None:
        if chunk.transient:
            return
        part = DataPart(chunk.data, type=chunk.type)
        if not self.begun:
            self._loose.append(part)
            return
        if chunk.message_id is not None:
            for message in self._scope.message_list.response:
                if message.id == chunk.message_id:
                    message.parts.append(part)
                    return
        self.message.parts.append(part)

    def _on_response(self, chunk: ResponseMetadata) -> None:
        self.step.response = chunk
        if chunk.warnings:
            self.step.warnings.extend(chunk.warnings)

    def _on_object(self, chunk: ObjectChunk | ObjectResult) -> None:
        self.step.object = chunk.object


def _is_empty(part: Part) -> bool:
    if isinstance(part, ReasoningPart):
        return not part.text and part.signature is None and part.redacted is None
    return isinstance(part, TextPart) and not part.text


def settle(
    result: RunResult,
    scope: Scope,
    rewritten: str | None,
) -> None:
    """Fill in a run's result from its accepted steps and its response messages.

    Args:
        result: what the run has noted so far.
        scope: the run.
        rewritten: the text, where `process_output_result` changed the stored one.
    """
    steps = scope.steps
    result.steps = steps
    result.text = "".join(step.text for step in steps)
    if rewritten is not None and result.finish_reason not in ("error", "other", "aborted"):
        result.text = rewritten
    result.reasoning = "".join(step.reasoning for step in steps)
    result.tool_calls = [call for step in steps for call in step.tool_calls]
    result.tool_results = [r for step in steps for r in step.tool_results]
    result.warnings = [w for step in steps for w in step.warnings]
    result.messages = list(scope.message_list.response)
    result.response = steps[-1].response if steps else None
    if not steps or steps[-1].object is None:
        result.object = None
    elif result.object is None and rewritten is None:
        result.object = steps[-1].object
    if isinstance(result.error, StreampipeError):
        result.error.result = result


def opening_first(chunks: list[Chunk]) -> list[Chunk]:
    """What processors made of a `step-start`, so that the step holds what belongs to it.

    Data that a hook wrote stands before the chunk it was given; everything else is of the step,
    and void with it.
    """
    before = [chunk for chunk in chunks if isinstance(chunk, DataChunk)]
    start = [chunk for chunk in chunks if isinstance(chunk, StepStart)]
    return before + start + [c for c in chunks if not isinstance(c, DataChunk | StepStart)]
