"""Structured output: the schema that the model is given, and the check of what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from streampipe.chunks import Chunk, ObjectChunk, TextDelta
from streampipe.contracts import OutputSchema
from streampipe.errors import ConfigurationError, StructuredOutputError
from streampipe.operators._core import Emit
from streampipe.operators._fuse import emit_all
from streampipe.text import PartialJson


class StructuredOutput:
    """A pydantic model, dataclass, TypedDict or JSON schema that the answer has to fit."""

    def __init__(self, wanted: Any) -> None:
        """Prepare the schema.

        Raises:
            ConfigurationError: `wanted` is neither a type that pydantic knows nor a JSON schema.
        """
        self._adapter: TypeAdapter[Any] | None = None
        if isinstance(wanted, Mapping):
            self.schema = OutputSchema(str(wanted.get("title", "answer")), dict(wanted))
            return
        try:
            self._adapter = TypeAdapter(wanted)
            schema = self._adapter.json_schema()
        except PydanticUserError as error:
            why = error.message.splitlines()[0]
            msg = f"structured_output: {wanted!r:.80} has no JSON schema: {why}"
            raise ConfigurationError(msg) from error
        self.schema = OutputSchema(getattr(wanted, "__name__", "answer"), schema)

    def parse(self, text: str) -> Any:
        """The answer's text as JSON values that fit.

        Raises:
            StructuredOutputError: it is no JSON, or does not fit.
        """
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            msg = f"structured output: the answer is no JSON ({error})"
            raise StructuredOutputError(msg) from error
        self.instance(value)
        return value

    def instance(self, value: Any) -> Any:
        """JSON values as the type that was asked for.

        Raises:
            StructuredOutputError: they do not fit; the message lists where.
        """
        if self._adapter is None:
            return value
        try:
            return self._adapter.validate_python(value)
        except ValidationError as error:
            places = "; ".join(
                f"{'.'.join(map(str, e['loc'])) or 'value'}: {e['msg']}" for e in error.errors()
            )
            msg = f"structured output: the answer does not fit {self.schema.name}: {places}"
            raise StructuredOutputError(msg) from error


def growing(client: Emit[Chunk]) -> Emit[Chunk]:
    """Give a client the answer's object as it grows, behind the text that it grew with.

    It is made of the text that all processors have passed. Text that is no JSON has no object; that
    it should have been one is said at its end, when it is held to its schema.
    """
    reader: PartialJson | None = PartialJson()

    def push(chunk: Chunk) -> Awaitable[Any] | None:
        nonlocal reader
        if not isinstance(chunk, TextDelta) or reader is None:
            return client(chunk)
        try:
            values = reader.feed(chunk.text)
        except ValueError:
            reader = None
            return client(chunk)
        grown = [ObjectChunk(value, run_id=chunk.run_id, from_=chunk.from_) for value in values]
        return emit_all([chunk, *grown], client) if grown else client(chunk)

    return push


def output_of(wanted: Any) -> StructuredOutput | None:
    """The structured output of an option; None asks for none.

    Raises:
        ConfigurationError: as `StructuredOutput`.
    """
    return None if wanted is None else StructuredOutput(wanted)
