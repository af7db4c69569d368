"""The typed sources of the type tests, and how what comes out is held against its annotation."""

from __future__ import annotations

from typing import TypeVar

from reactivex import Observable

from streampipe import operators as ops
from streampipe.chunks import Chunk, ReasoningDelta, TextDelta, TextEnd, TextStart, ToolCall

T = TypeVar("T")

NUMBERS: Observable[int] = ops.of(1, 2, 3)
CHUNKS: Observable[Chunk] = ops.of(
    ReasoningDelta("r", "Hm."),
    TextStart("0"),
    TextDelta("0", "[1, "),
    TextDelta("0", "2]\n"),
    TextEnd("0"),
    ToolCall("c", "search"),
)


async def emits(stream: Observable[T], *classes: type[object]) -> list[T]:
    """Subscribe, and hold every element against the annotation: it is of one of these classes."""
    got = [element async for element in ops.to_aiter(stream)]
    assert got, "a stream without elements shows nothing of its type"
    assert {type(element) for element in got if not isinstance(element, classes)} == set()
    return got
