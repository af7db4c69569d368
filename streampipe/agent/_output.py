"""Structured output: the schema that the model is given, and the check of what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from streampipe.contracts import OutputSchema
from streampipe.errors import ConfigurationError, StructuredOutputError


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


def output_of(wanted: Any) -> StructuredOutput | None:
    """The structured output of an option; None asks for none.

    Raises:
        ConfigurationError: as `StructuredOutput`.
    """
    return None if wanted is None else StructuredOutput(wanted)
