"""Structured output: the schema that the model is given, and the check of what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, from_json, to_json

from streampipe.chunks import Chunk, ObjectChunk, TextDelta
from streampipe.contracts import OutputSchema
from streampipe.errors import ConfigurationError, StructuredOutputError
from streampipe.messages import Message
from streampipe.operators._core import Emit
from streampipe.operators._fuse import Kernel, emit_all
from streampipe.operators._text import text_stage
from streampipe.text import PartialJson
from streampipe.text._escapes import Escaped, Unescaped

MOST_PROBLEMS = 20  # a model learns nothing from the hundredth


class StructuredOutput:
    """A pydantic model, dataclass, TypedDict or JSON schema that the answer has to fit."""

    def __init__(self, wanted: Any) -> None:
        """Prepare the schema.

        Raises:
            ConfigurationError: `wanted` is neither a type that pydantic knows nor a JSON schema, or
                the extra that checks JSON schemas is missing.
        """
        self._adapter: TypeAdapter[Any] | None = None
        self._validator: Any = None
        if isinstance(wanted, Mapping):
            self.schema = OutputSchema(str(wanted.get("title") or "answer"), _json_ready(wanted))
            self._validator = _validator_of(self.schema.schema)
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
        """The answer's text as JSON values that fit; a Markdown fence around it is no part of it.

        Raises:
            StructuredOutputError: it is no JSON, or does not fit.
        """
        try:
            value = from_json(_unfenced(text), allow_inf_nan=False)
        except ValueError as error:
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
            problems = [
                (error.absolute_path, error.message)
                for error in islice(self._validator.iter_errors(value), MOST_PROBLEMS)
            ]
            if problems:
                raise self._unfit(problems)
            return value
        try:
            return self._adapter.validate_json(to_json(value))
        except ValidationError as error:
            problems = [(e["loc"], e["msg"]) for e in error.errors()[:MOST_PROBLEMS]]
            raise self._unfit(problems) from error

    def _unfit(self, problems: Iterable[tuple[Iterable[Any], str]]) -> StructuredOutputError:
        places = "; ".join(
            f"{'.'.join(map(str, place)) or 'value'}: {what:.200}" for place, what in problems
        )
        msg = f"structured output: the answer does not fit {self.schema.name}: {places}"
        return StructuredOutputError(msg)


def _json_ready(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema, which holds JSON alone.

    Raises:
        ConfigurationError: it holds something else, such as the type that was meant.
    """
    for key, value in schema.items():
        try:
            to_json({key: value})
        except (PydanticSerializationError, ValueError) as error:
            kind = value.__name__ if isinstance(value, type) else type(value).__name__
            msg = (
                f"structured_output: a JSON schema holds JSON alone, and {key!r:.80} is {kind}; "
                "give a type itself, such as a pydantic model, and no dict of types"
            )
            raise ConfigurationError(msg) from error
    return dict(schema)


def _validator_of(schema: dict[str, Any]) -> Any:
    """What holds values to a JSON schema.

    Raises:
        ConfigurationError: it is no JSON schema, or the library that knows them is missing.
    """
    try:
        from jsonschema import (  # noqa: PLC0415 - an extra, for who gives a JSON schema
            Draft202012Validator,
            SchemaError,
            validators,
        )
    except ImportError as error:
        msg = (
            "structured_output: a JSON schema is checked by the extra 'schema': pip install "
            "'streampipe-rx[schema]'; pydantic models, dataclasses and TypedDicts need none"
        )
        raise ConfigurationError(msg) from error
    kind = validators.validator_for(schema, Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        msg = f"structured_output: no JSON schema: {error.message:.200}"
        raise ConfigurationError(msg) from error
    return kind(schema)


def _unfenced(text: str) -> str:
    """JSON text without what models like to put around it."""
    text = text.strip("\ufeff \t\r\n")
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return text[text.index("\n") : -3]
    return text


def refitted(output: StructuredOutput | None, messages: Sequence[Message]) -> Any:
    """The object of messages that were rewritten; None where they no longer hold one."""
    if output is None or not messages:
        return None
    try:
        return output.instance(output.parse(messages[-1].text))
    except StructuredOutputError:
        return None


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


class AsItReads:
    """The answer's JSON as it reads, from the model to the last processor; JSON again behind it.

    Else a guard would look for words in a text in which any character may be written as an escape.

    Attributes:
        is_on: whether the step under way answers in JSON.
    """

    def __init__(self) -> None:
        """Start with plain text."""
        self.is_on = False

    def readable(self, emit: Emit[Chunk]) -> Emit[Chunk]:
        """What stands before the processors, for one answer."""
        self.is_on = True
        return Kernel((text_stage("readable", lambda _: Unescaped()),), emit).push

    def written(self, emit: Emit[Chunk]) -> Emit[Chunk]:
        """What stands behind the processors, for a run."""
        written = Kernel((text_stage("written", lambda _: Escaped(), lasting=True),), emit).push

        def push(chunk: Chunk) -> Awaitable[Any] | None:
            return written(chunk) if self.is_on else emit(chunk)

        return push


def output_of(wanted: Any) -> StructuredOutput | None:
    """The structured output of an option; None asks for none.

    Raises:
        ConfigurationError: as `StructuredOutput`.
    """
    return None if wanted is None else StructuredOutput(wanted)
