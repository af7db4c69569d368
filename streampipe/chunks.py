"""Chunks: the flat, slotted, typed elements of an agent's stream, and their wire form.

A class is named after its type; `Chunk` is added where the bare word would mean something else.
`chunk.type` is the wire's type, the other fields are the payload's in snake_case. Wire form:
`{"type", "runId", "from", "payload": {camelCase}}`, and for data chunks
`{"type": "data-…", "runId", "from", "data", "transient"?}`.

Plain dataclasses with slots, since one is built for every token; pydantic works at the edges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Literal, cast

from streampipe.errors import WireError

__all__ = [
    "AbortChunk",
    "Chunk",
    "DataChunk",
    "ErrorChunk",
    "ErrorData",
    "FileChunk",
    "FinishChunk",
    "FinishReason",
    "ObjectChunk",
    "ObjectResult",
    "Origin",
    "ProviderMetadata",
    "RawChunk",
    "ReasoningDelta",
    "ReasoningEnd",
    "ReasoningSignature",
    "ReasoningStart",
    "RedactedReasoning",
    "ResponseMetadata",
    "SourceChunk",
    "StartChunk",
    "StepFinish",
    "StepStart",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallInputEnd",
    "ToolCallInputStart",
    "ToolErrorChunk",
    "ToolResult",
    "TripwireChunk",
    "TripwireData",
    "Usage",
    "chunk_from_wire",
]

type_ = type  # `type` is a field of every chunk
Origin = Literal["AGENT", "USER", "SYSTEM", "WORKFLOW"]
ORIGINS = ("AGENT", "USER", "SYSTEM", "WORKFLOW")
FinishReason = str
"""`stop`, `length`, `tool-calls`, `content-filter`, `error`, `other`, `aborted`; a step: `retry` too."""
ProviderMetadata = dict[str, Any]


@dataclass(slots=True)
class Usage:
    """Tokens spent by a model call, or by a run.

    >>> Usage(input_tokens=3, output_tokens=4) + Usage(input_tokens=1, output_tokens=1)
    Usage(input_tokens=4, output_tokens=5, total_tokens=9, reasoning_tokens=0, cached_input_tokens=0)
    """

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    reasoning_tokens: int = 0
    cached_input_tokens: int = 0

    def __post_init__(self) -> None:
        """Fill the total in when the provider gave only its parts."""
        if not self.total_tokens:
            self.total_tokens = self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        """Sum two calls' usage."""
        return Usage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Usage)))


@dataclass(slots=True)
class TripwireData:
    """Who stopped or rejected a step, and why."""

    reason: str = ""
    retry: bool | None = None
    metadata: Any = None
    processor_id: str = ""


@dataclass(slots=True)
class ErrorData:
    """A failure as the client sees it; the exception itself is `result.error`."""

    name: str
    message: str
    processor_id: str | None = None
    hook: str | None = None
    status: int | None = None


@dataclass(slots=True)
class Chunk:
    """What every chunk has. Build one of the subclasses."""

    type: ClassVar[str] = ""
    run_id: str = field(default="", kw_only=True)
    from_: Origin = field(default="AGENT", kw_only=True)

    def to_wire(self) -> dict[str, Any]:
        """The wire form, as JSON-ready values; fields that are None are left out."""
        return {
            "type": self.type,
            "runId": self.run_id,
            "from": self.from_,
            "payload": _payload(self),
        }

    @classmethod
    def from_wire(cls, obj: Mapping[str, Any]) -> Chunk:
        """Read a wire form; see `chunk_from_wire`."""
        return chunk_from_wire(obj)


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
    message_id: str | None = field(default=None, kw_only=True)  # where it is stored; not on the wire

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


def camel(name: str) -> str:
    """`snake_case` to `camelCase`.

    >>> camel("tool_call_id")
    'toolCallId'
    """
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


_NESTED: dict[str, Callable[..., Any]] = {
    "usage": Usage,
    "tripwire": TripwireData,
    "error": ErrorData,
}
_ENVELOPE = ("run_id", "from_")
_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "float": (float, int),
    "FinishReason": (str,),
    "ProviderMetadata": (dict,),
    "Usage": (Usage,),
    "TripwireData": (TripwireData,),
    "ErrorData": (ErrorData,),
}


class _Codec:
    """The wire fields of one class, worked out once."""

    __slots__ = ("cls", "keys", "names", "required", "types")

    def __init__(self, cls: Callable[..., Any]) -> None:
        self.cls = cls
        own = [f for f in fields(cast("Any", cls)) if f.name not in _ENVELOPE]
        self.names = {camel(f.name): f.name for f in own}
        self.keys = tuple(self.names.items())
        self.required = [camel(f.name) for f in own if f.default is MISSING]
        self.types = {f.name: _JSON_TYPES.get(str(f.type).removesuffix(" | None")) for f in own}

    def encode(self, value: Any) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, name in self.keys:
            item = getattr(value, name)
            if item is not None:
                nested = _NESTED_CODECS.get(type_(item))
                out[key] = item if nested is None else nested.encode(item)
        return out

    def decode(self, payload: Any, where: str) -> dict[str, Any]:
        if not isinstance(payload, Mapping):
            msg = f"{where}: the payload must be an object, not {type_(payload).__name__}"
            raise WireError(msg)
        values: dict[str, Any] = {}
        for key, item in payload.items():
            name = self.names.get(key)
            if name is None:
                msg = f"{where}: unknown key {key!r}; known: {', '.join(self.names)}"
                raise WireError(msg)
            nested = _NESTED.get(name)
            if nested is not None and isinstance(item, Mapping):
                codec = _NESTED_CODECS[cast("Any", nested)]
                item = nested(**codec.decode(item, f"{where}.{key}"))  # noqa: PLW2901
            expected = self.types[name]
            if item is None:
                continue
            if expected is not None and not isinstance(item, expected):
                msg = f"{where}.{key} must be {expected[0].__name__}, not {item!r:.80}"
                raise WireError(msg)
            values[name] = item
        for key in self.required:
            if self.names[key] not in values:
                msg = f"{where}: key {key!r} is missing"
                raise WireError(msg)
        return values


_NESTED_CODECS: dict[Any, _Codec] = {cls: _Codec(cls) for cls in (Usage, TripwireData, ErrorData)}



_CLASSES: dict[str, type[Chunk]] = {
    cls.type: cls
    for cls in list(globals().values())
    if isinstance(cls, type_) and issubclass(cls, Chunk) and cls not in (Chunk, DataChunk)
}
_CODECS: dict[type[Chunk], _Codec] = {cls: _Codec(cls) for cls in _CLASSES.values()}


def _payload(chunk: Chunk) -> dict[str, Any]:
    return _CODECS[type_(chunk)].encode(chunk)


def chunk_from_wire(obj: Mapping[str, Any]) -> Chunk:
    """Read a chunk's wire form.

    An unknown type is kept whole as the payload of a `raw` chunk, so that nothing is lost on a
    stream written by a newer version.

    Args:
        obj: the decoded JSON object.

    Returns:
        The typed chunk.

    Raises:
        WireError: `obj` is no chunk; the message names the type and the key at fault.
    """
    if not isinstance(obj, Mapping) or not isinstance(obj.get("type"), str):
        msg = f"a chunk is an object with a string 'type', not {obj!r:.80}"
        raise WireError(msg)
    kind: str = obj["type"]
    if obj.get("from", "AGENT") not in ORIGINS:
        msg = f"{kind}: 'from' must be one of {', '.join(ORIGINS)}, not {obj['from']!r}"
        raise WireError(msg)
    if not isinstance(obj.get("runId", ""), str):
        msg = f"{kind}: 'runId' must be str, not {obj['runId']!r:.80}"
        raise WireError(msg)
    envelope: dict[str, Any] = {"run_id": obj.get("runId", ""), "from_": obj.get("from", "AGENT")}
    if kind.startswith("data-"):
        _only(obj, ("type", "runId", "from", "data", "transient"))
        return DataChunk(kind, obj.get("data"), bool(obj.get("transient")), **envelope)
    cls = _CLASSES.get(kind)
    if cls is None:
        return RawChunk(dict(obj), **envelope)
    _only(obj, ("type", "runId", "from", "payload"))
    if cls is RawChunk:
        return RawChunk(obj.get("payload"), **envelope)
    return cls(**_CODECS[cls].decode(obj.get("payload", {}), kind), **envelope)


def _only(obj: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in obj:
        if key not in known:
            msg = f"{obj['type']}: unknown key {key!r}; known: {', '.join(known)}"
            raise WireError(msg)
