"""A stream of text asked about in windows: held until there is an answer, in its order.

Three stages in a row: text is cut into windows that do not depend on how it came, and a tool's
arguments are held until they are whole; each is asked about, several at once; at its turn each
leaves, or what was ruled is done.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from reactivex import Observable

from streampipe.chunks import (
    Chunk,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallInputEnd,
    ToolCallInputStart,
)
from streampipe.contracts.processor import HookArgs
from streampipe.messages._json import json_text
from streampipe.operators._bridge import flowable
from streampipe.operators._check_async import window_machine
from streampipe.operators._core import Emit, Escape, Flowable
from streampipe.operators._fuse import Opened, Stage, emit_all, fuse
from streampipe.operators._kinds import with_text
from streampipe.operators._map_async import Answer, answered
from streampipe.operators._operator import operator
from streampipe.operators._options import BOTH, Part, options_of
from streampipe.operators._text import text_stage
from streampipe.processors._text_guard import Place
from streampipe.text._escapes import readable

__all__ = ["Asked", "Asking", "Window", "asked_text", "checked_window", "enforced", "in_windows"]

Window = Literal["sentence", "line"] | int
"""How much text is asked about at once; a number is one of characters."""


@dataclass(slots=True)
class Asked:
    """What is asked about.

    Attributes:
        place: where it stands.
        text: the text, or JSON as text.
        before: the end of what stands before it in the same text.
        chunks: what leaves if it may.
    """

    place: Place
    text: str
    before: str = ""
    chunks: list[Any] = field(default_factory=list[Any])


def asked_text(value: Any) -> str:
    """Arguments or a result as they are asked about: JSON as it reads, without escapes."""
    return value if isinstance(value, str) else readable(json_text(value))


class Asking(Protocol):
    """A guard, as far as the stages know it; see `CheckGuard`."""

    id: str
    asks: frozenset[Place]

    async def ruling(self, asked: Asked, args: HookArgs) -> Any: ...
    def action(self, objection: Any, place: Place) -> Any: ...
    def replacement(self, objection: Any) -> str: ...
    def stop(self, objection: Any, action: Any) -> BaseException | None: ...
    async def told(self, objection: Any, error: BaseException | None) -> None: ...


def checked_window(owner: str, window: Window) -> Window:
    """How much text is asked about at once.

    Raises:
        ConfigurationError: it is none of the ways there are.
    """
    with options_of(owner):
        window_machine(window)
    return window


@operator
def in_windows(
    source: Observable[Chunk],
    guard: Asking,
    args: HookArgs,
    *,
    window: Window,
    context: int,
    concurrency: int,
) -> Observable[Chunk]:
    """Ask a guard about a stream of chunks.

    Args:
        source: the stream.
        guard: is asked.
        args: are handed to it.
        window: how much text is asked about at once.
        context: how many characters before a window are shown with it.
        concurrency: how many questions may be open at once.

    Returns:
        What may leave, in its order. It fails as was ruled: with `TripWire` or `ProcessorError`.
    """
    parts: list[Part] = [part for part in BOTH if part in guard.asks]
    cut = [text_stage(guard.id, window_machine(window), parts, whole=True)] if parts else []
    marking = Stage(guard.id, lambda emit, _: Opened(_Marker(guard.asks, context, emit).push))

    stages = [*cut, marking]
    if not parts:  # a call now and then: while it is asked about, nothing else is on its way
        for stage in (*stages, Stage(guard.id, _one_by_one(guard, args), is_async=True)):
            source = fuse(source, stage)
        return source

    async def ruling(asked: Asked) -> Any:
        return await guard.ruling(asked, args)

    async def run(emit: Emit[Chunk]) -> None:
        windows: Any = source
        for stage in stages:
            windows = fuse(flowable(windows), stage)
        enforcing = Stage(guard.id, _enforcing(guard), is_async=True)
        ruled = answered(windows, ruling, enforcing, concurrency, asks=_is_asked)
        await ruled.into(emit)

    return Flowable(run)


def _is_asked(element: object) -> bool:
    return isinstance(element, Asked)


class _Marker:
    """Says of a stream's chunks which are asked about, and holds a tool's arguments till then."""

    def __init__(self, covers: frozenset[Place], context: int, emit: Emit[Any]) -> None:
        self._covers = covers
        self._context = context
        self._emit = emit
        self._before: dict[tuple[type, str], str] = {}
        self._held: dict[str, list[Chunk]] = {}

    def push(self, chunk: Chunk) -> Awaitable[Any] | None:
        match chunk:
            case TextDelta() if "text" in self._covers:
                return self._emit(self._window("text", chunk))
            case ReasoningDelta() if "reasoning" in self._covers:
                return self._emit(self._window("reasoning", chunk))
            case _ if "tool-arguments" in self._covers:
                return self._call(chunk)
            case _:
                return self._emit(chunk)

    def _window(self, place: Place, chunk: TextDelta | ReasoningDelta) -> Chunk | Asked:
        if not chunk.text:
            return chunk
        if not self._context:
            return Asked(place, chunk.text, "", [chunk])
        key = (chunk.__class__, chunk.id)
        before = self._before.get(key, "")
        self._before[key] = (before + chunk.text)[-self._context :]
        return Asked(place, chunk.text, before, [chunk])

    def _call(self, chunk: Chunk) -> Awaitable[Any] | None:
        match chunk:
            case ToolCallInputStart():
                self._held[chunk.tool_call_id] = []
            case ToolCallDelta() | ToolCallInputEnd():  # also where a model has told no start
                self._held.setdefault(chunk.tool_call_id, []).append(chunk)
                return None
            case ToolCall():
                held = self._held.pop(chunk.tool_call_id, [])
                given = chunk.args_text  # it may say more than the arguments: a key twice, say
                text = asked_text(chunk.args) if given is None else readable(given)
                return self._emit(Asked("tool-arguments", text, "", [*held, chunk]))
            case _:
                pass
        return self._emit(chunk)


async def enforced(guard: Asking, objection: Any, place: Place, stage: Stage) -> str:
    """Do what is to be done about a text, but for replacing it.

    Returns:
        What becomes of it: "replace" or "warn".

    Raises:
        Escape: the stream ends here.
    """
    action: str = guard.action(objection, place)
    error = guard.stop(objection, action)
    await guard.told(objection, error)
    if error is not None:
        raise Escape(error, stage.token)
    return action


def _is_seen(chunk: Any, text: str) -> bool:
    """Whether a piece of text with another text is worth sending."""
    return bool(text or chunk.provider_metadata)


def _one_by_one(guard: Asking, args: HookArgs) -> Any:
    """What opens a stage that asks, waits for the answer, and does what was ruled."""

    def open_(emit: Emit[Chunk], stage: Stage) -> Opened:
        async def ask(asked: Asked) -> None:
            await _let_go(guard, asked, await guard.ruling(asked, args), emit, stage)

        def push(element: Any) -> Awaitable[Any] | None:
            return ask(element) if isinstance(element, Asked) else emit(element)

        return Opened(push)

    return open_


def _enforcing(guard: Asking) -> Any:
    """What opens the stage behind the answers: does what was ruled."""

    def open_(emit: Emit[Chunk], stage: Stage) -> Opened:
        def push(answer: Answer) -> Awaitable[Any] | None:
            if answer.error is not None:
                raise stage.fault(answer.error, answer.item) from answer.error
            if not isinstance(answer.item, Asked):
                return emit(answer.item)
            return _let_go(guard, answer.item, answer.result, emit, stage)

        return Opened(push)

    return open_


async def _let_go(
    guard: Asking, asked: Asked, objection: Any, emit: Emit[Chunk], stage: Stage
) -> None:
    """Send what was asked about, or what takes its place.

    Raises:
        Escape: the stream ends here.
    """
    chunks = asked.chunks
    if objection is not None:
        action = await enforced(guard, objection, asked.place, stage)
        if action == "replace":
            new = guard.replacement(objection)
            chunks = [with_text(chunk, new) for chunk in chunks if _is_seen(chunk, new)]
    wait = emit_all(chunks, emit)
    if wait is not None:
        await wait
