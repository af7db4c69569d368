"""A text operator as a processor: one piece of work for streams, messages, tool calls and results.

What an operator does with a stream of text it does with a whole text as well: that is a stream of
one chunk. So a guard has its rules in one place, and what it finds does not depend on where it
looks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from streampipe.abort import TripWire
from streampipe.chunks import (
    Chunk,
    StepFinish,
    TextDelta,
    TextEnd,
    ToolCall,
    ToolCallDelta,
    ToolCallInputEnd,
    ToolCallInputStart,
)
from streampipe.contracts import (
    OnViolation,
    ProcessInputArgs,
    Processor,
    ProcessorViolation,
    ProcessOutputStreamArgs,
    ProcessToolResultArgs,
)
from streampipe.contracts.processor import HookArgs
from streampipe.errors import ConfigurationError
from streampipe.messages import Message, ReasoningPart, TextPart, ToolInvocationPart
from streampipe.messages._json import json_text
from streampipe.operators._core import Escape
from streampipe.operators._fuse import Kernel
from streampipe.operators._scope import report_violation
from streampipe.text._escapes import readable, written

_OF_CALLS = frozenset((ToolCallInputStart, ToolCallDelta, ToolCallInputEnd, ToolCall, StepFinish))

Place = Literal["text", "reasoning", "tool-arguments", "tool-results"]
PLACES: tuple[Place, ...] = get_args(Place)


def checked_places(
    owner: str, covers: Iterable[Place], places: tuple[Place, ...] = PLACES
) -> frozenset[Place]:
    """Where a guard is to look, among these places; one may be given without a list.

    Raises:
        ConfigurationError: there is none, or one that there is not.
    """
    given: frozenset[Any] = frozenset([covers] if isinstance(covers, str) else covers)
    if not given or given - set(places):
        msg = f"{owner}: covers takes {', '.join(places)}, not {covers!r:.80}"
        raise ConfigurationError(msg)
    return given


@dataclass(slots=True, frozen=True)
class Finding:
    """What a guard found.

    Attributes:
        message: for people, without the text that was found.
        detail: JSON-ready: rule, offset, length.
    """

    message: str
    detail: dict[str, Any]


Note = Callable[[Finding], None]


class TextGuard(Processor, ABC):
    """What guards over texts share; a subclass says which operator does the work.

    In `input_processors` it looks at the messages that the run begins with, in `output_processors`
    at all that the model and its tools give; one object may stand in both lists.

    Attributes:
        id: names it in tripwires, violations and spans.
        covers: where it looks.
        on_violation: is told of everything that it finds.
    """

    process_data_parts = True  # else data would overtake the text that is held before it

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - the contract's name
        covers: Iterable[Place],
        on_violation: OnViolation | None,
    ) -> None:
        """Say where to look.

        Raises:
            ConfigurationError: `covers` is empty, or names a place that there is not.
        """
        self.id = id
        self.covers = checked_places(type(self).__name__, covers)
        self.on_violation = on_violation
        if on_violation is not None:  # then there is something to wait for
            self.process_output_stream = self._told_stream  # type: ignore[assignment,method-assign]  # its twin

    @abstractmethod
    def _operator(self, parts: tuple[str, ...], note: Note) -> Any:
        """The operator that looks at these parts of a stream, and notes what it finds."""

    # --- the hooks -------------------------------------------------------------------------

    async def process_input(self, args: ProcessInputArgs) -> list[Message]:
        """Look at the texts of every message that the run begins with; they change in place."""
        look = _Look(self, args)
        for message in args.messages:
            for part in message.parts:
                self._part(part, look)
        await look.tell()
        return args.messages

    def _part(self, part: Any, look: _Look) -> None:
        """Look at a part of a message; what has changed is changed in place."""
        match part:
            case TextPart() if "text" in self.covers:
                part.text = look.at(part.text)
            case ReasoningPart() if "reasoning" in self.covers:
                part.text = look.at(part.text)
            case ToolInvocationPart():
                if "tool-arguments" in self.covers:
                    part.args = look.within(part.args)
                if "tool-results" in self.covers and part.state == "result":
                    part.result = look.within(part.result)
            case _:
                pass

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk | list[Chunk]:
        """Look at a chunk: text as it comes, a tool's arguments when they are whole."""
        flow: _Flow | None = args.state.get("flow")
        if flow is None:
            flow = args.state["flow"] = _Flow(self)
        return flow.push(args)

    async def _told_stream(self, args: ProcessOutputStreamArgs) -> Chunk | list[Chunk]:
        """The same, for who wants to be told."""
        made = TextGuard.process_output_stream(self, args)
        await self._tell(args.state["flow"].findings)
        return made

    async def process_tool_result(self, args: ProcessToolResultArgs) -> None:
        """Look at all texts within a tool's result."""
        if "tool-results" not in self.covers:
            return
        look = _Look(self, args)
        result = look.within(args.result)
        await look.tell()
        if result is not args.result:
            args.message_list.update_tool_invocation(args.tool_call_id, result=result)

    async def _tell(self, findings: list[Finding]) -> None:
        """Report findings, and forget them."""
        for finding in findings:
            violation = ProcessorViolation(self.id, finding.message, finding.detail)
            await report_violation(self, violation)
        findings.clear()


class _Work:
    """The guard's operator, opened for one stream.

    Attributes:
        findings: what it found and nobody was told of yet.
    """

    def __init__(self, guard: TextGuard, parts: tuple[str, ...]) -> None:
        self.findings: list[Finding] = []
        self._out: list[Chunk] = []
        operator = guard._operator(parts, self.findings.append)  # noqa: SLF001 - its other half
        self._kernel = Kernel(operator.stages, self._out.append)

    def push(self, chunk: Chunk, args: HookArgs) -> list[Chunk]:
        """What comes out when a chunk goes in.

        Raises:
            TripWire: the operator blocks: in the guard's own name.
            OperatorError: it failed.
        """
        try:
            self._kernel.push(chunk)
        except Escape as escape:
            error = escape.error
            if isinstance(error, TripWire):
                args.abort(error.reason, retry=error.retry, metadata=error.metadata)
            raise error from error.__cause__
        made = self._out.copy()
        self._out.clear()
        return made


class _Look:
    """Whole texts, each a stream of its own."""

    def __init__(self, guard: TextGuard, args: HookArgs) -> None:
        self._guard = guard
        self._args = args
        self._work = _Work(guard, ("text",))
        self._count = 0

    def at(self, text: str) -> str:
        """The text as it may be seen."""
        self._count += 1
        part_id = str(self._count)
        made = self._work.push(TextDelta(part_id, text), self._args)
        made += self._work.push(TextEnd(part_id), self._args)
        return "".join(chunk.text for chunk in made if isinstance(chunk, TextDelta))

    def at_json(self, text: str) -> str:
        """JSON text as it may be seen; looked at as it reads."""
        read = readable(text)
        seen = self.at(read)
        return text if seen == read else written(seen)

    def within(self, value: Any) -> Any:
        """JSON values with every text in them as it may be seen; the same object if all may.

        A number is looked at as it is written, and is a text where that may not be seen.
        """
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            text = value if isinstance(value, str) else str(value)
            seen = self.at(text)
            return value if seen == text else seen
        if isinstance(value, dict):
            inner = {key: self.within(item) for key, item in value.items()}
            return inner if any(inner[key] is not value[key] for key in value) else value
        if isinstance(value, list):
            items = [self.within(item) for item in value]
            same = all(new is old for new, old in zip(items, value, strict=True))
            return value if same else items
        return value

    def taken(self) -> list[Finding]:
        """What was found, to be told of by somebody else."""
        return self._work.findings

    async def tell(self) -> None:
        """Report what was found."""
        await self._guard._tell(self._work.findings)  # noqa: SLF001 - its other half


class _Flow:
    """One run's stream: its text through the operator, its tools' arguments when they are whole.

    Pieces of arguments are held until then: what a guard has not passed never leaves.
    """

    def __init__(self, guard: TextGuard) -> None:
        parts = tuple(place for place in ("text", "reasoning") if place in guard.covers)
        self._guard = guard
        self._work = _Work(guard, parts) if parts else None
        self._arguments = "tool-arguments" in guard.covers
        self._held: dict[str, list[Chunk]] = {}
        self.findings: list[Finding] = [] if self._work is None else self._work.findings

    def push(self, args: ProcessOutputStreamArgs) -> Chunk | list[Chunk]:
        """What comes out when the chunk at hand goes in."""
        part = args.part
        if part.__class__ in _OF_CALLS and self._arguments:
            chunks = self._calls(part, args)
            if self._work is None:
                return chunks
            return [out for chunk in chunks for out in self._work.push(chunk, args)]
        if self._work is None:
            return part
        made = self._work.push(part, args)
        return made[0] if len(made) == 1 else made

    def _calls(self, part: Chunk, args: ProcessOutputStreamArgs) -> list[Chunk]:
        match part:
            case ToolCallInputStart():
                self._held[part.tool_call_id] = []
            case ToolCallDelta() | ToolCallInputEnd():  # also where a model has told no start
                self._held.setdefault(part.tool_call_id, []).append(part)
                return []
            case ToolCall():
                return self._call(part, args)
            case StepFinish():
                self._held.clear()
            case _:
                pass
        return [part]

    def _call(self, call: ToolCall, args: ProcessOutputStreamArgs) -> list[Chunk]:
        """A whole call behind its pieces; where it was changed, they are one piece that fits."""
        held = self._held.pop(call.tool_call_id, [])
        look = _Look(self._guard, args)
        seen = look.within(call.args)
        found = [*look.taken()]
        text = call.args_text
        if text is not None:  # it may say more than the arguments: a key twice, say
            text = look.at_json(text if seen is call.args else json_text(seen))
        self.findings += found or look.taken()
        if seen is call.args and text == call.args_text:
            return [*held, call]
        whole = json_text(seen) if text is None else text
        pieces = [chunk for chunk in held if isinstance(chunk, ToolCallDelta)]
        ends = [chunk for chunk in held if not isinstance(chunk, ToolCallDelta)]
        one = [replace(piece, args_text_delta=whole) for piece in pieces[:1]]
        return [*one, *ends, replace(call, args=seen, args_text=text)]
