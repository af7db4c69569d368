"""Guards that ask: a function, or a model, says of each text whether it may leave.

Text is asked about in windows, side by side and in order, while the model goes on; so a guard costs
about one question's time at the end of an answer, and nothing per chunk. What there is no answer to
does not leave, unless the guard was told otherwise.
"""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, TypedDict

from streampipe.abort import TripWire
from streampipe.chunks import Chunk
from streampipe.contracts import (
    OnViolation,
    ProcessInputArgs,
    Processor,
    ProcessorViolation,
    ProcessToolResultArgs,
)
from streampipe.contracts.processor import HookArgs, StreamOperatorArgs
from streampipe.errors import ConfigurationError, ProcessorError
from streampipe.messages import Message, ReasoningPart, TextPart, ToolInvocationPart
from streampipe.operators._compose import Pipeline
from streampipe.operators._core import Operator
from streampipe.operators._functions import UnfitError
from streampipe.operators._scope import report_violation
from streampipe.processors._asked import Asked, Window, asked_text, checked_window, in_windows
from streampipe.processors._options import Count, Name, Seconds, Whole, checked_options, refuse_if
from streampipe.processors._text_guard import PLACES, Place, checked_places

__all__ = [
    "CheckGuard",
    "CheckOptions",
    "ConversationGuard",
    "GuardOptions",
    "Objection",
    "Strategy",
    "WindowOptions",
]

Strategy = Literal["block", "retry", "replace", "warn", "raise"]
"""What becomes of a text that a guard objects to.

- "block": the run ends with a tripwire, before any of the text has left;
- "retry": the answer is rejected and the model tries again, told why;
- "replace": another text takes its place;
- "warn": it leaves, and the guard only reports it;
- "raise": the run fails with a `ProcessorError`.
"""

REMOVED = "[removed]"
log = logging.getLogger("streampipe")


@dataclass(slots=True, frozen=True)
class Objection:
    """What a guard has against a text.

    Attributes:
        reason: for the client, and for the model when it tries again; without the text itself.
        detail: JSON-ready: what was found, how sure it is.
        strategy: what becomes of the text; None: what the guard was told.
        replacement: what takes its place; None: what the guard was told.
        cause: the error for which there is no answer.
        by: the guard whose it is, where several are asked at once.
        also: what others of these have against the text.
    """

    reason: str
    detail: dict[str, Any]
    strategy: Strategy | None = None
    replacement: str | None = None
    cause: BaseException | None = None
    by: CheckGuard | None = None
    also: tuple[Objection, ...] = ()


class WindowOptions(TypedDict, total=False):
    """How an answer is asked about.

    Attributes:
        window: how much of an answer is asked about at once: "sentence", "line", or a number of
            characters. "sentence".
        context: how many characters before a window are shown to a model with it.
        concurrency: how many questions may be open at once. 4.
    """

    window: Window
    context: Whole
    concurrency: Count


class CheckOptions(WindowOptions, total=False):
    """What every guard that asks may be told; see `WindowOptions` as well.

    Attributes:
        id: names the guard in tripwires, violations and errors.
        covers: where to look, of "text", "reasoning", "tool-arguments", "tool-results"; "text" when
            nothing is said.
        replacement: of "replace": what takes the text's place. "[removed]".
        max_checks: how many questions a run may ask. No limit.
        timeout: how many seconds an answer may take; None is no limit. 30.
        error_strategy: what becomes of a text for which there is no answer, since the question
            failed, took too long, or was one too many: "block", or "allow". "block".
        last_message_only: whether only the last of the messages that a run begins with is asked
            about. Not so.
        on_violation: is told of every objection, and of every text that could not be checked.
    """

    id: Name
    covers: Iterable[Place]
    replacement: str | None
    max_checks: Whole | None
    timeout: Seconds | None
    error_strategy: Literal["block", "allow"]
    last_message_only: bool
    on_violation: OnViolation | None


class GuardOptions(CheckOptions, total=False):
    """What every guard that asks may be told; see `CheckOptions`.

    Attributes:
        strategy: what becomes of a text that it objects to; see `Strategy`. "block".
    """

    strategy: Strategy


class CheckGuard(Processor, ABC):
    """What guards that ask share; a subclass says whom, in `_look`.

    In `output_processors` it asks about the answer's windows, about tools' arguments and what they
    return.

    Attributes:
        id: names it in tripwires, violations and errors.
        covers: where it looks.
        asks: where it asks for that, of the answer.
        on_violation: is told of every objection, and of every text that could not be checked.
    """

    _places: ClassVar[tuple[Place, ...]] = PLACES  # where it may look

    @checked_options
    def __init__(
        self,
        *,
        id: Name,  # noqa: A002 - the contract's name
        covers: Iterable[Place] = ("text",),
        strategy: Strategy = "block",
        replacement: str | None = None,
        window: Window = "sentence",
        context: Whole = 0,
        concurrency: Count = 4,
        max_checks: Whole | None = None,
        timeout: Seconds | None = 30.0,
        error_strategy: Literal["block", "allow"] = "block",
        last_message_only: bool = False,
        on_violation: OnViolation | None = None,
    ) -> None:
        """Take what all such guards are told; see `GuardOptions`.

        Raises:
            ConfigurationError: an option is none of its values.
        """
        owner = type(self).__name__
        self.id = id
        self.covers = checked_places(owner, covers, self._places)
        self.on_violation = on_violation
        is_idle = replacement is not None and strategy != "replace"
        refuse_if(owner, {"replacement is for strategy='replace'": is_idle})
        self.asks = self.covers
        self._strategy: Strategy = strategy
        self._replacement = REMOVED if replacement is None else replacement
        self._window: Window = checked_window(owner, window)
        self._context = context
        self._concurrency = concurrency
        self._max_checks = max_checks
        self._timeout = timeout
        self._fails_open = error_strategy == "allow"
        self._last_only = last_message_only

    @abstractmethod
    async def _look(self, asked: Asked, args: HookArgs) -> Objection | None:
        """What there is to say against a text; None if nothing.

        Raises:
            Exception: there is no answer.
        """

    # --- the hooks -------------------------------------------------------------------------

    async def process_tool_result(self, args: ProcessToolResultArgs) -> None:
        """Ask about a tool's result, before the model sees it."""
        if "tool-results" not in self.covers:
            return
        update = partial(args.message_list.update_tool_invocation, args.tool_call_id)
        result = args.result
        text = _Text(
            "tool-results", asked_text(result), lambda new: update(result=_like(result, new))
        )
        objection = await self.ruling(Asked(text.place, text.text), args)
        await self._enforce(text, objection)

    def stream_operator(self, args: StreamOperatorArgs) -> Operator:
        """What asks about the answer while it streams."""
        if self.asks <= {"tool-results"}:
            return Pipeline[Chunk, Chunk]([])
        return in_windows(
            self,
            args,
            window=self._window,
            context=self._context,
            concurrency=self._concurrency,
        )

    async def _enforce(self, text: _Text, objection: Objection | None) -> None:
        """Do to a whole text what was ruled.

        Raises:
            TripWire: it is blocked.
            ValueError: the guard was told to raise; the run names it.
        """
        if objection is None:
            return
        action = self.action(objection, text.place)
        error = self.stop(objection, action)
        await self.told(objection, error)
        if isinstance(error, ProcessorError):
            raise ValueError(objection.reason)  # noqa: TRY004 - a verdict; the run says of whom
        if error is not None:
            raise error
        if action == "replace" and text.replace is not None:
            text.replace(self.replacement(objection))

    # --- what is asked, and what becomes of it ---------------------------------------------

    async def ruling(self, asked: Asked, args: HookArgs) -> Objection | None:
        """What there is to say against a text, or against letting it go unchecked."""
        if not asked.text.strip():
            return None
        count = args.state["checks"] = args.state.get("checks", 0) + 1
        if self._max_checks is not None and count > self._max_checks:
            return self._unchecked(asked, f"the budget of {self._max_checks} checks is used up")
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                return await self._look(asked, args)
        except TripWire as wire:
            strategy: Strategy = "retry" if wire.retry else "block"
            return Objection(wire.reason, {"metadata": wire.metadata}, strategy)
        except Exception as error:  # noqa: BLE001 - whoever is asked may fail in any way
            late = f"there was no answer within {self._timeout} s"
            failed = f"the check failed with {type(error).__name__}"
            return self._unchecked(asked, late if limit.expired() else failed, error)

    def _unchecked(self, asked: Asked, why: str, cause: BaseException | None = None) -> Objection:
        """A text that there is no answer for."""
        reason = f"{self.id}: the text could not be checked: {why}"
        # Where it was raised, and what it says only if the words are ours: others quote the text.
        frames = traceback.extract_tb(cause.__traceback__) if cause is not None else []
        where = "".join(f", {frame.filename}:{frame.lineno}" for frame in frames[-1:])
        words = f": {cause}" if isinstance(cause, UnfitError | ConfigurationError) else ""
        log.warning("%s%s (%s%s)", reason, words, asked.place, where)
        detail = {"unchecked": why, "place": asked.place}
        return Objection(reason, detail, "warn" if self._fails_open else "block", cause=cause)

    def action(self, objection: Objection, place: Place) -> Strategy:
        """What becomes of a text; arguments for a tool cannot be replaced by a text."""
        action: Strategy = objection.strategy or self._strategy
        return "block" if action == "replace" and place == "tool-arguments" else action

    def replacement(self, objection: Objection) -> str:
        """What takes a text's place."""
        given = objection.replacement
        return self._replacement if given is None else given

    async def told(self, objection: Objection, error: BaseException | None) -> None:
        """Tell `on_violation`, unless a wire is pulled: of that the run tells it."""
        if isinstance(error, TripWire):
            return
        violation = ProcessorViolation(self.id, objection.reason, objection.detail)
        await report_violation(self, violation)

    def stop(self, objection: Objection, action: Strategy) -> BaseException | None:
        """What ends the answer, if that is what becomes of it."""
        if action == "raise":
            return ProcessorError(objection.reason, processor_id=self.id, hook="stream_operator")
        if action not in ("block", "retry"):
            return None
        wire = TripWire(
            objection.reason,
            retry=action == "retry",
            metadata=objection.detail,
            processor_id=self.id,
        )
        wire.__cause__ = objection.cause
        return wire


class ConversationGuard(CheckGuard, ABC):
    """A guard that also asks about the messages that a run begins with, each text as a whole."""

    async def process_input(self, args: ProcessInputArgs) -> list[Message]:
        """Ask about the texts of the messages; they change in place."""
        messages = args.messages[-1:] if self._last_only else args.messages
        texts = [text for message in messages for part in message.parts for text in self._of(part)]
        room = asyncio.Semaphore(self._concurrency)

        async def ruled(text: _Text) -> Objection | None:
            async with room:
                return await self.ruling(Asked(text.place, text.text), args)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ruled(text)) for text in texts]
        for text, task in zip(texts, tasks, strict=True):
            await self._enforce(text, task.result())
        return args.messages

    def _of(self, part: Any) -> Iterable[_Text]:
        """The texts of a message's part that are to be asked about."""
        match part:
            case TextPart() if "text" in self.covers:
                yield _Text("text", part.text, partial(setattr, part, "text"))
            case ReasoningPart() if "reasoning" in self.covers:
                yield _Text("reasoning", part.text, partial(setattr, part, "text"))
            case ToolInvocationPart():
                if "tool-arguments" in self.covers:
                    yield _Text("tool-arguments", asked_text(part.args), None)
                if "tool-results" in self.covers and part.state == "result":
                    result, put = part.result, partial(setattr, part, "result")
                    text = asked_text(result)
                    yield _Text("tool-results", text, lambda new: put(_like(result, new)))
            case _:
                pass


@dataclass(slots=True)
class _Text:
    """A whole text: where it stands, and what puts another in its place."""

    place: Place
    text: str
    replace: Callable[[str], object] | None


def _like(result: Any, text: str) -> Any:
    """A text in the place of a result: JSON again, where it was no text and still is JSON."""
    if isinstance(result, str):
        return text
    try:
        return json.loads(text, strict=False)  # as it reads
    except ValueError:
        return text
