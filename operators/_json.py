"""Objects out of the text of an answer, while it streams."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import to_json
from reactivex import Observable

from streampipe.chunks import (
    Chunk,
    ObjectChunk,
    ObjectResult,
    ReasoningEnd,
    TextDelta,
    TextEnd,
)
from streampipe.errors import ConfigurationError, StructuredOutputError
from streampipe.operators._core import FAULTS, Emit, Escape
from streampipe.operators._fuse import Opened, Stage, emit_all, fuse
from streampipe.operators._kinds import is_void
from streampipe.operators._operator import operator
from streampipe.operators._options import checked_count
from streampipe.text import JsonLines, PartialJson


def _objects(
    name: str,
    make: Callable[[], Any],
    feed: Callable[[Any, str], Iterable[Chunk]],
    finish: Callable[[Any], Iterable[Chunk]],
) -> Stage:
    """A stage that reads each text part with a reader of its own, and adds what it makes."""

    def open_(emit: Emit[Chunk], stage: Stage) -> Opened:
        readers: dict[str, Any] = {}
        failed: list[Escape] = []  # of a text that has ended, as long as it may yet be void

        def made(chunk: Chunk, of: Callable[[], Iterable[Chunk]]) -> Iterator[Chunk]:
            try:
                for one in of():
                    one.run_id, one.from_ = chunk.run_id, chunk.from_
                    yield one
            except FAULTS as error:
                raise stage.fault(error, chunk) from error

        def ended(end: TextEnd) -> list[Chunk]:
            try:
                return [*made(end, partial(finish, readers.pop(end.id))), end]
            except Escape as failure:
                failed.append(failure)
                return [end]

        def push(chunk: Chunk) -> Awaitable[Any] | None:
            if isinstance(chunk, TextDelta) and not failed:
                reader = readers.get(chunk.id)
                if reader is None:
                    reader = readers[chunk.id] = make()
                objects = made(chunk, partial(feed, reader, chunk.text))
                return emit_all(chain([chunk], objects), emit)
            if is_void(chunk):
                readers.clear()
                failed.clear()
            if isinstance(chunk, TextEnd) and chunk.id in readers:
                return emit_all(ended(chunk), emit)
            if failed and not isinstance(chunk, TextEnd | ReasoningEnd):
                raise failed[0]
            return emit(chunk)

        def flush() -> Awaitable[Any] | None:
            if failed:
                raise failed[0]
            end = TextEnd()
            left = [made(end, partial(finish, reader)) for reader in readers.values()]
            return emit_all(chain.from_iterable(left), emit)

        return Opened(push, flush)

    return Stage(name, open_)


def _names(schema: Any) -> set[str]:
    """The names of fields in a JSON schema, at any depth."""
    if isinstance(schema, list):
        return set().union(*map(_names, schema))
    if not isinstance(schema, dict):
        return set()
    return set(schema.get("properties", ())).union(*map(_names, schema.values()))


def _misfits(error: ValidationError, names: set[str]) -> str:
    """Where a value does not fit, and the kind of each error, such as `missing`.

    Keys that are no field's are the model's own words, and a validator's message may quote some:
    neither is told.
    """

    def place(keys: tuple[int | str, ...]) -> str:
        told = (str(key) if isinstance(key, int) or key in names else "…" for key in keys)
        return ".".join(told) or "value"

    errors = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{place(each['loc'])}: {each['type']}" for each in errors)


@operator
def json_objects(source: Observable[Chunk], schema: Any = None) -> Observable[Chunk]:
    """The JSON that an answer's text is, as objects: growing while it streams, whole at its end.

    The work is linear in the text: a longer one is read again only when it has grown by a
    sixteenth, so an object may come a little later than its text. Other text around the JSON, such
    as a Markdown fence, is no part of it.

    Args:
        source: a stream of chunks.
        schema: what the object has to be: a pydantic model, dataclass, TypedDict or any other type
            that pydantic knows. Partial objects are not held to it.

    Returns:
        The chunks, with an `ObjectChunk` behind the text that it grew with, and an `ObjectResult`
        before the text's end. It fails with `OperatorError` when the text is no JSON, or does not
        fit `schema`: the message says where, and the kind of error, not what was there.

    Raises:
        ConfigurationError: pydantic knows no such type, or no JSON schema for it.
    """
    try:
        adapter = None if schema is None else TypeAdapter[Any](schema)
        names = set[str]() if adapter is None else _names(adapter.json_schema())
    except PydanticUserError as error:
        msg = f"json_objects: {schema!r:.80} is no schema: {error.message.splitlines()[0]}"
        raise ConfigurationError(msg) from error

    def finish(reader: PartialJson) -> list[Chunk]:
        try:
            value = reader.finish()
        except ValueError as error:
            msg = f"the text is no JSON: {error}"
            raise StructuredOutputError(msg) from error
        try:
            if adapter is not None:
                adapter.validate_json(to_json(value))  # in JSON a date is a string, strictly too
        except ValidationError as error:
            msg = f"the object does not fit: {_misfits(error, names)}"
            raise StructuredOutputError(msg) from error
        return [ObjectResult(value)]

    def feed(reader: PartialJson, piece: str) -> list[Chunk]:
        return [ObjectChunk(value) for value in reader.feed(piece)]

    return fuse(source, _objects("json_objects", PartialJson, feed, finish))


@operator
def json_lines(source: Observable[Chunk], *, max_hold: int = 1_000_000) -> Observable[Chunk]:
    """The JSON lines that an answer's text is, an object a line as soon as the line is complete.

    Args:
        source: a stream of chunks.
        max_hold: characters that a line may have.

    Returns:
        The chunks, with an `ObjectChunk` for every line behind the text that completed it. It fails
        with `OperatorError` when a line is no JSON or too long; the lines before it, and the text
        that came with it, have left then.

    Raises:
        ConfigurationError: `max_hold` is no whole number of at least 1.
    """
    checked_count("json_lines", "max_hold", max_hold)

    def read(values: Iterable[Any]) -> Iterator[Chunk]:
        try:
            for value in values:
                yield ObjectChunk(value)
        except ValueError as error:
            raise StructuredOutputError(str(error)) from error

    return fuse(
        source,
        _objects(
            "json_lines",
            lambda: JsonLines(max_hold=max_hold),
            lambda reader, piece: read(reader.feed(piece)),
            lambda reader: read(reader.finish()),
        ),
    )
