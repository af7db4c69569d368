"""Operators by the kind of chunk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import fields, replace
from typing import Any, TypeVar, overload

from reactivex import Observable

from streampipe.chunks import (
    Chunk,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
)
from streampipe.errors import ConfigurationError
from streampipe.operators._core import FAULTS, Emit
from streampipe.operators._functions import UnfitError, check_function
from streampipe.operators._fuse import Opened, Stage, fuse
from streampipe.operators._operator import Op, operator

C = TypeVar("C", bound=Chunk)
D = TypeVar("D", bound=Chunk)
E = TypeVar("E", bound=Chunk)


def with_text(chunk: TextDelta | ReasoningDelta, text: str) -> TextDelta | ReasoningDelta:
    """The same piece of the same part, with another text.

    A new chunk: the one that came may be shared with other consumers.
    """
    cls = chunk.__class__
    made = cls.__new__(cls)  # field by field takes half the time of a call with keywords
    made.id = chunk.id
    made.text = text
    made.provider_metadata = chunk.provider_metadata
    made.run_id = chunk.run_id
    made.from_ = chunk.from_
    return made


def own_copy(chunk: Chunk) -> Chunk:
    """A copy of a chunk, and of the dictionaries and lists in it: whoever gets it may change it."""
    if isinstance(chunk, TextDelta | ReasoningDelta) and not chunk.provider_metadata:
        return with_text(chunk, chunk.text)
    values = {field.name: getattr(chunk, field.name) for field in fields(chunk)}
    own = {name: _copied(value) for name, value in values.items() if isinstance(value, dict | list)}
    return replace(chunk, **own)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def is_void(chunk: object) -> bool:
    """Whether a chunk says that the attempt before it is void: whoever keeps of it forgets it."""
    return isinstance(chunk, StepFinish) and chunk.reason == "retry"


class OpenParts:
    """Which text and reasoning parts of a stream are open.

    Attributes:
        ends: the chunks that close them, in the order in which they were opened.
    """

    __slots__ = ("ends",)

    def __init__(self) -> None:
        """Start with none."""
        self.ends: dict[tuple[type[Chunk], str], Chunk] = {}

    def note(self, chunk: Any) -> None:
        """Look whether a chunk opens or closes one."""
        cls = chunk.__class__
        if cls is TextStart or cls is ReasoningStart:
            self.open(chunk)
        elif cls is TextEnd or cls is ReasoningEnd:
            self.ends.pop((cls, chunk.id), None)

    def open(self, chunk: Any) -> None:
        """The part of this start or delta is open."""
        cls = TextEnd if isinstance(chunk, TextStart | TextDelta) else ReasoningEnd
        end = cls(chunk.id, run_id=chunk.run_id, from_=chunk.from_)
        self.ends.setdefault((cls, chunk.id), end)

    def close(self) -> list[Chunk]:
        """Close all; gives the chunks that do."""
        ends = list(self.ends.values())
        self.ends.clear()
        return ends


@overload
def of_type(cls: type[C], /) -> Op[Chunk, C]: ...
@overload
def of_type(cls: type[C], second: type[D], /) -> Op[Chunk, C | D]: ...
@overload
def of_type(cls: type[C], second: type[D], third: type[E], /) -> Op[Chunk, C | D | E]: ...
@overload
def of_type(cls: type[C], /, *others: type[C]) -> Op[Chunk, C]: ...
@operator
def of_type(source: Observable[Chunk], cls: type[C], *others: type[C]) -> Observable[C]:
    """The chunks of these classes.

    Args:
        source: a stream of chunks.
        cls: a chunk class, such as `TextDelta`.
        others: more of them.

    Returns:
        These chunks, typed.

    Raises:
        ConfigurationError: one is no chunk class.
    """
    for kind in (cls, *others):
        if not (isinstance(kind, type) and issubclass(kind, Chunk)):
            msg = f"of_type: takes chunk classes such as TextDelta, not {kind!r}"
            raise ConfigurationError(msg)
    return fuse(source, _kinds("of_type", (cls, *others)))


def _kinds(name: str, wanted: tuple[type[Chunk], ...]) -> Stage:
    def open_(emit: Emit[Any], _stage: Stage) -> Opened:
        def push(chunk: Any) -> Awaitable[Any] | None:
            return emit(chunk) if isinstance(chunk, wanted) else None

        return Opened(push)

    return Stage(name, open_)


@operator
def map_text(source: Observable[Chunk], fn: Callable[[str], str]) -> Observable[Chunk]:
    """The text of every text-delta through `fn`; other chunks as they are.

    `fn` sees the pieces as they come, so it must not care where the text was cut: `str.upper` does
    not, a `replace` of two characters does. For that there are `replace` and `redact`.

    Args:
        source: a stream of chunks.
        fn: a plain function from text to text.

    Returns:
        The chunks. It fails with `OperatorError` when `fn` raises or returns no string.

    Raises:
        ConfigurationError: `fn` is no plain function.
    """
    check_function("map_text", "fn", fn)

    def open_(emit: Emit[Chunk], stage: Stage) -> Opened:
        def push(chunk: Chunk) -> Awaitable[Any] | None:
            if not isinstance(chunk, TextDelta):
                return emit(chunk)
            try:
                text = fn(chunk.text)
                if not isinstance(text, str):
                    msg = f"fn returned {type(text).__name__} for a string"
                    raise UnfitError(msg)
            except FAULTS as error:
                raise stage.fault(error, chunk) from error
            return emit(chunk if text == chunk.text else with_text(chunk, text))

        return Opened(push)

    return fuse(source, Stage("map_text", open_))


def _texts(name: str, cls: type[TextDelta | ReasoningDelta]) -> Stage:
    def open_(emit: Emit[str], _stage: Stage) -> Opened:
        def push(chunk: Any) -> Awaitable[Any] | None:
            return emit(chunk.text) if isinstance(chunk, cls) and chunk.text else None

        return Opened(push)

    return Stage(name, open_)


@operator
def text(source: Observable[Chunk]) -> Observable[str]:
    """The text of an answer, piece by piece, as strings; empty pieces are left out."""
    return fuse(source, _texts("text", TextDelta))


@operator
def reasoning(source: Observable[Chunk]) -> Observable[str]:
    """The model's reasoning, piece by piece, as strings; empty pieces are left out."""
    return fuse(source, _texts("reasoning", ReasoningDelta))


@operator
def accumulate_text(source: Observable[Chunk]) -> Observable[str]:
    """The text so far, at every piece: what a display that draws itself anew wants.

    Each element is a string of its own, so n pieces make n copies of a growing text; to collect an
    answer, join the pieces of `text()` instead.

    Returns:
        Strings, each beginning with the one before; several text parts are joined. Where an attempt
        is void, the text without it comes once more, and the next attempt goes on from there.
    """

    def open_(emit: Emit[str], _stage: Stage) -> Opened:
        so_far = accepted = ""

        def push(chunk: Any) -> Awaitable[Any] | None:
            nonlocal so_far, accepted
            if isinstance(chunk, TextDelta) and chunk.text:
                so_far += chunk.text
                return emit(so_far)
            if is_void(chunk) and so_far != accepted:
                so_far = accepted
                return emit(so_far)
            if isinstance(chunk, StepFinish):
                accepted = so_far
            return None

        return Opened(push)

    return fuse(source, Stage("accumulate_text", open_))


@operator
def tool_calls(source: Observable[Chunk]) -> Observable[ToolCall]:
    """The tool calls that the model made, each whole; its pieces are left out."""
    return fuse(source, _kinds("tool_calls", (ToolCall,)))
