"""The types of the operators on kinds of chunk and on text."""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

import re
from typing import TYPE_CHECKING, assert_type

import pytest
from pydantic import BaseModel
from reactivex import Observable

from streampipe import operators as ops
from streampipe.chunks import Chunk, ObjectChunk, ObjectResult, ReasoningDelta, TextDelta, ToolCall
from streampipe.errors import ConfigurationError
from streampipe.operators import Match, Pipeline
from tests.typing.streams import CHUNKS, NUMBERS, emits

COMMA = re.compile(r",\s*")


class Pair(BaseModel):
    """A schema."""

    name: str


def count(word: str) -> int:
    """How many tokens a word has."""
    return len(word)


def words(delta: TextDelta | ReasoningDelta) -> str:
    """What a piece of either kind says."""
    return delta.text


def note(match: Match) -> None:
    """Look at a match."""


async def test_types_of_type() -> None:
    """The class asked for flows on to the next operator."""
    await emits(assert_type(CHUNKS.pipe(ops.of_type(TextDelta)), Observable[TextDelta]), TextDelta)
    chain = assert_type(
        ops.pipe(ops.of_type(TextDelta), ops.throttle(1)), Pipeline[Chunk, TextDelta]
    )
    await emits(CHUNKS.pipe(chain), TextDelta)


async def test_types_of_type_of_several() -> None:
    """Their union, which a function of the union takes on."""
    both = ops.of_type(TextDelta, ReasoningDelta)
    stream = CHUNKS.pipe(both)
    await emits(
        assert_type(stream, Observable[TextDelta | ReasoningDelta]), TextDelta, ReasoningDelta
    )
    said = assert_type(ops.pipe(both, ops.map(words)), Pipeline[Chunk, str])
    assert await emits(CHUNKS.pipe(said), str) == ["Hm.", "[1, ", "2]\n"]
    three = CHUNKS.pipe(ops.of_type(TextDelta, ReasoningDelta, ToolCall))
    await emits(assert_type(three, Observable[TextDelta | ReasoningDelta | ToolCall]), Chunk)


async def test_types_map_text() -> None:
    """Chunks in, chunks out."""
    await emits(assert_type(CHUNKS.pipe(ops.map_text(str.upper)), Observable[Chunk]), Chunk)


async def test_types_text() -> None:
    """Strings, which a function of strings takes on."""
    await emits(assert_type(CHUNKS.pipe(ops.text()), Observable[str]), str)
    await emits(assert_type(CHUNKS.pipe(ops.text(), ops.map(len)), Observable[int]), int)


async def test_types_reasoning() -> None:
    """Strings."""
    await emits(assert_type(CHUNKS.pipe(ops.reasoning()), Observable[str]), str)


async def test_types_accumulate_text() -> None:
    """Strings."""
    await emits(assert_type(CHUNKS.pipe(ops.accumulate_text()), Observable[str]), str)


async def test_types_tool_calls() -> None:
    """Tool calls."""
    await emits(assert_type(CHUNKS.pipe(ops.tool_calls()), Observable[ToolCall]), ToolCall)


async def test_types_rechunk() -> None:
    """Chunks in, chunks out; cut by a name or by a pattern."""
    await emits(assert_type(CHUNKS.pipe(ops.rechunk("line")), Observable[Chunk]), Chunk)
    await emits(assert_type(CHUNKS.pipe(ops.rechunk(COMMA)), Observable[Chunk]), Chunk)


async def test_types_stop_at() -> None:
    """Chunks in, chunks out."""
    await emits(assert_type(CHUNKS.pipe(ops.stop_at("2", include=True)), Observable[Chunk]), Chunk)


async def test_types_limit_text() -> None:
    """Chunks in, chunks out."""
    stream = CHUNKS.pipe(ops.limit_text(tokens=2, count=count))
    await emits(assert_type(stream, Observable[Chunk]), Chunk)


async def test_types_split_tags() -> None:
    """Chunks in, chunks out."""
    await emits(assert_type(CHUNKS.pipe(ops.split_tags("think")), Observable[Chunk]), Chunk)


async def test_types_redact() -> None:
    """Chunks in, chunks out; the replacement is a text or a function of one."""
    await emits(assert_type(CHUNKS.pipe(ops.redact("[0-9]", "#")), Observable[Chunk]), Chunk)
    await emits(assert_type(CHUNKS.pipe(ops.redact("[a-z]", str.upper)), Observable[Chunk]), Chunk)


async def test_types_replace() -> None:
    """Chunks in, chunks out."""
    await emits(assert_type(CHUNKS.pipe(ops.replace("1", "one")), Observable[Chunk]), Chunk)


async def test_types_block() -> None:
    """Chunks in, chunks out."""
    stream = CHUNKS.pipe(ops.block("secret", reason="no"))
    await emits(assert_type(stream, Observable[Chunk]), Chunk)


async def test_types_detect() -> None:
    """Chunks in, chunks out."""
    await emits(assert_type(CHUNKS.pipe(ops.detect("[0-9]", note)), Observable[Chunk]), Chunk)


async def test_types_json_objects() -> None:
    """Chunks, objects among them; a schema is any type that pydantic knows."""
    stream = assert_type(CHUNKS.pipe(ops.json_objects(list[int])), Observable[Chunk])
    assert ObjectResult in {type(chunk) for chunk in await emits(stream, Chunk)}
    whole = assert_type(
        ops.pipe(ops.json_objects(Pair), ops.of_type(ObjectResult)), Pipeline[Chunk, ObjectResult]
    )
    told = ops.of(TextDelta("0", '{"name": "a"}')).pipe(whole)
    await emits(assert_type(told, Observable[ObjectResult]), ObjectResult)


async def test_types_json_lines() -> None:
    """Chunks, objects among them."""
    stream = CHUNKS.pipe(ops.json_lines(max_hold=100), ops.of_type(ObjectChunk))
    await emits(assert_type(stream, Observable[ObjectChunk]), ObjectChunk)


def test_what_a_checker_refuses_fails_when_it_is_built() -> None:
    """A wrong option is a mistake twice: of the type, and of the operator."""
    with pytest.raises(ConfigurationError, match="chunk classes"):
        ops.of_type(str)  # type: ignore[type-var]  # str is no chunk class
    with pytest.raises(ConfigurationError, match="must be a function"):
        ops.map_text("upper")  # type: ignore[arg-type]  # a name is no function
    with pytest.raises(ConfigurationError, match="takes patterns and rules"):
        ops.redact([1])  # type: ignore[list-item]  # a number is no rule


if TYPE_CHECKING:

    def refused_chunks() -> None:
        """Streams of no chunks, and options of another type."""
        NUMBERS.pipe(ops.of_type(TextDelta))  # type: ignore[arg-type]  # numbers are no chunks
        ops.of_type(TextDelta, str)  # type: ignore[type-var]  # str is no chunk class
        ops.pipe(ops.of_type(TextDelta, ToolCall), ops.map(words))  # type: ignore[misc]  # no call
        NUMBERS.pipe(ops.text())  # type: ignore[arg-type]  # numbers are no chunks
        NUMBERS.pipe(ops.reasoning())  # type: ignore[arg-type]  # numbers are no chunks
        NUMBERS.pipe(ops.tool_calls())  # type: ignore[arg-type]  # numbers are no chunks
        ops.accumulate_text(1)  # type: ignore[call-arg]  # takes no option
        ops.map_text(len)  # type: ignore[arg-type]  # gives no text
        CHUNKS.pipe(ops.text(), ops.map_text(str.upper))  # type: ignore[misc]  # no chunks left

    def refused_text() -> None:
        """Options of another type."""
        ops.rechunk(3)  # type: ignore[arg-type]  # a size is not a way of cutting
        ops.rechunk("words")  # type: ignore[arg-type]  # a name of none
        ops.rechunk(re.compile(b","))  # type: ignore[arg-type]  # a pattern of bytes
        ops.stop_at(b"END")  # type: ignore[arg-type]  # bytes are no text
        ops.limit_text(10)  # type: ignore[call-arg]  # characters or tokens has to be said
        ops.limit_text(tokens=1, count=str.upper)  # type: ignore[arg-type]  # gives no number
        ops.split_tags(1)  # type: ignore[arg-type]  # a tag is a text
        ops.redact("a", 1)  # type: ignore[arg-type]  # a number is no replacement
        ops.replace("a")  # type: ignore[call-arg]  # by what?
        ops.block()  # type: ignore[call-arg]  # takes a rule
        ops.detect("a", len)  # type: ignore[arg-type]  # a match has no length
        ops.json_lines(100)  # type: ignore[call-arg]  # max_hold has to be named
        NUMBERS.pipe(ops.json_objects())  # type: ignore[arg-type]  # numbers are no chunks
