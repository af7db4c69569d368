"""The chunks: a class for every type of the wire.

A class is named after its type; `Chunk` is added where the bare word would mean something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from streampipe.chunks._base import (
    CLASSES,
    Chunk,
    ErrorData,
    FinishReason,
    ProviderMetadata,
    TripwireData,
    Usage,
    only,
)
from streampipe.errors import WireError


@dataclass(slots=True)
class StartChunk(Chunk):
    """The run begins."""

    type: ClassVar[str] = "start"


@dataclass(slots=True)
class StepStart(Chunk):
    """A step begins, or begins again; what a rejected attempt sent before it is void."""

    type: ClassVar[str] = "step-start"
    step_number: int = 0
    attempt: int = 0
    message_id: str | None = None


@dataclass(slots=True)
class TextStart(Chunk):
    """A text part opens."""

    type: ClassVar[str] = "text-start"
    id: str = "0"
    provider_metadata: ProviderMetadata | None = None


@dataclass(slots=True)
class TextDelta(Chunk):
    """A piece of a text part."""

    type: ClassVar[str] = "text-delta"
    id: str
    text: str
    provider_metadata: ProviderMetadata | None = None


@dataclass(slots=True)
class TextEnd(Chunk):
    """A text part closes."""

    type: ClassVar[str] = "text-end"
    id: str = "0"
    provider_metadata: ProviderMetadata | None = None


@dataclass(slots=True)
class ReasoningStart(Chunk):
    """A reasoning part opens."""

    type: ClassVar[str] = "reasoning-start"
    id: str = "0"
    signature: str | None = None
    provider_metadata: ProviderMetadata | None = None


@dataclass(slots=True)
class ReasoningDelta(Chunk):
    """A piece of a reasoning part."""

    type: ClassVar[str] = "reasoning-delta"
    id: str
    text: str
    provider_metadata: ProviderMetadata | None = None


@dataclass(slots=True)
class ReasoningEnd(Chunk):
    """A reasoning part closes."""

    type: ClassVar[str] = "reasoning-end"
    id: str = "0"
    signature: str | None = None
    provider_metadata: ProviderMetadata | None = None


@dataclass(slots=True)
class ReasoningSignature(Chunk):
    """The provider's proof of a reasoning part, to be sent back with it."""

    type: ClassVar[str] = "reasoning-signature"
    id: str
    signature: str
    provider_metadata: ProviderMetadata | None = None


@dataclass(slots=True)
class RedactedReasoning(Chunk):
    """Reasoning that the provider shows only encrypted."""

    type: ClassVar[str] = "redacted-reasoning"
    id: str
    data: Any = None
    provider_metadata: ProviderMetadata | None = None


@dataclass(slots=True)
class SourceChunk(Chunk):
    """A source that the answer rests on."""

    type: ClassVar[str] = "source"
    id: str
    source_type: str = "url"
    title: str = ""
    url: str | None = None
    mime_type: str | None = None
    filename: str | None = None
    provider_metadata: ProviderMetadata | None = None


@dataclass(slots=True)
class FileChunk(Chunk):
    """A file that the model made; `data` is base64 or a URL."""

    type: ClassVar[str] = "file"
    data: str
    mime_type: str
    filename: str | None = None
    provider_metadata: ProviderMetadata | None = None


@dataclass(slots=True)
class ToolCallInputStart(Chunk):
    """The model begins to write a tool call's arguments."""

    type: ClassVar[str] = "tool-call-input-streaming-start"
    tool_call_id: str
    tool_name: str
    provider_executed: bool | None = None
    provider_metadata: ProviderMetadata | None = None


@dataclass(slots=True)
class ToolCallDelta(Chunk):
    """A piece of a tool call's arguments, as JSON text."""

    type: ClassVar[str] = "tool-call-delta"
    tool_call_id: str
    args_text_delta: str
    tool_name: str | None = None
    provider_metadata: ProviderMetadata | None = None


@dataclass(slots=True)
class ToolCallInputEnd(Chunk):
    """A tool call's arguments are written."""

    type: ClassVar[str] = "tool-call-input-streaming-end"
    tool_call_id: str
    provider_metadata: ProviderMetadata | None = None


@dataclass(slots=True)
class ToolCall(Chunk):
    """A whole tool call.

    Arguments that are no JSON leave `args` None and stand as they came in `args_text`.
    """

    type: ClassVar[str] = "tool-call"
    tool_call_id: str
    tool_name: str
    args: Any = None
    args_text: str | None = None
    provider_executed: bool | None = None
    provider_metadata: ProviderMetadata | None = None


@dataclass(slots=True)
class ToolResult(Chunk):
    """What a tool returned."""

    type: ClassVar[str] = "tool-result"
    tool_call_id: str
    tool_name: str
    result: Any = None
    args: Any = None
    is_error: bool | None = None
    provider_executed: bool | None = None
    provider_metadata: ProviderMetadata | None = None


@dataclass(slots=True)
class ToolErrorChunk(Chunk):
    """A tool call failed; `error` is what the model is told."""

    type: ClassVar[str] = "tool-error"
    tool_call_id: str
    tool_name: str
    error: str
    args: Any = None
    provider_executed: bool | None = None


@dataclass(slots=True)
class ObjectChunk(Chunk):
    """The structured output so far."""

    type: ClassVar[str] = "object"
    object: Any = None


@dataclass(slots=True)
class ObjectResult(Chunk):
    """The whole, validated structured output, as JSON-ready values."""

    type: ClassVar[str] = "object-result"
    object: Any = None


@dataclass(slots=True)
class RawChunk(Chunk):
    """What has no type of its own: a provider's extra event, or a wire type unknown here."""

    type: ClassVar[str] = "raw"
    payload: Any = None

    def to_wire(self) -> dict[str, Any]:
        """The wire form; the payload is the raw value itself."""
        return {
            "type": "raw",
            "runId": self.run_id,
            "from": self.from_,
            "payload": self.payload,
        }

    @classmethod
    def read(cls, obj: Mapping[str, Any], **envelope: Any) -> Self:
        """Read a raw chunk, or keep the whole of an unknown one."""
        if obj["type"] != cls.type:
            return cls(dict(obj), **envelope)
        only(obj, "type", "runId", "from", "payload")
        return cls(obj.get("payload"), **envelope)


@dataclass(slots=True)
class ResponseMetadata(Chunk):
    """What the provider says of its response."""

    type: ClassVar[str] = "response-metadata"
    id: str | None = None
    model_id: str | None = None
    created_at: float | None = None
    provider: str | None = None
    headers: dict[str, str] | None = None
    warnings: list[str] | None = None


@dataclass(slots=True)
class StepFinish(Chunk):
    """A step ends; with reason `retry` everything since the last step-start is void."""

    type: ClassVar[str] = "step-finish"
    reason: FinishReason = "stop"
    usage: Usage | None = None
    tripwire: TripwireData | None = None
    provider_metadata: ProviderMetadata | None = None
    raw_reason: str | None = None


@dataclass(slots=True)
class FinishChunk(Chunk):
    """The run ends; the last chunk of every run."""

    type: ClassVar[str] = "finish"
    reason: FinishReason = "stop"
    usage: Usage | None = None
    provider_metadata: ProviderMetadata | None = None
    raw_reason: str | None = None


@dataclass(slots=True)
class ErrorChunk(Chunk):
    """The run failed."""

    type: ClassVar[str] = "error"
    error: ErrorData


@dataclass(slots=True)
class AbortChunk(Chunk):
    """The run was cancelled."""

    type: ClassVar[str] = "abort"
    reason: str = ""


@dataclass(slots=True)
class TripwireChunk(Chunk):
    """A processor blocked the run."""

    type: ClassVar[str] = "tripwire"
    reason: str = ""
    retry: bool | None = None
    metadata: Any = None
    processor_id: str = ""


@dataclass(slots=True)
class DataChunk(Chunk):
    """A custom chunk of a processor, a tool or a provider; its type starts with `data-`."""

    type: str  # type: ignore[misc]  # the one chunk whose type is the instance's
    data: Any = None
    transient: bool = False
    # Where it is stored; not on the wire.
    message_id: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse a type outside the `data-` namespace.

        Raises:
            ValueError: the type does not start with `data-`.
        """
        if not self.type.startswith("data-"):
            msg = f"a custom chunk's type must start with 'data-', not {self.type!r}"
            raise ValueError(msg)

    def to_wire(self) -> dict[str, Any]:
        """The wire form of a data chunk: `data` stands where others have `payload`."""
        wire = {"type": self.type, "runId": self.run_id, "from": self.from_, "data": self.data}
        if self.transient:
            wire["transient"] = True
        return wire

    @classmethod
    def read(cls, obj: Mapping[str, Any], **envelope: Any) -> Self:
        """Read a data chunk."""
        only(obj, "type", "runId", "from", "data", "transient")
        if not isinstance(obj.get("transient", False), bool):
            msg = f"{obj['type']}.transient must be bool, not {obj['transient']!r:.80}"
            raise WireError(msg)
        return cls(obj["type"], obj.get("data"), bool(obj.get("transient")), **envelope)


# Only classes with a type of their own: the subclasses also hold what `slots=True` has replaced.
CLASSES.update({c.type: c for c in Chunk.__subclasses__() if isinstance(vars(c).get("type"), str)})
CLASSES.update({"data-": DataChunk, "*": RawChunk})
