"""What every chunk has, and how any of them is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, Self

from streampipe.chunks._codec import codec_of
from streampipe.errors import WireError

type_ = type  # `type` is a field of every chunk
Origin = Literal["AGENT", "USER", "SYSTEM", "WORKFLOW"]
ORIGINS = ("AGENT", "USER", "SYSTEM", "WORKFLOW")
FinishReason = str
"""`stop`, `length`, `tool-calls`, `content-filter`, `error`, `other`, `aborted`; steps: `retry`."""
ProviderMetadata = dict[str, Any]


@dataclass(slots=True)
class Usage:
    """Tokens spent by a model call, or by a run.

    >>> total = Usage(input_tokens=3, output_tokens=4) + Usage(input_tokens=1, output_tokens=1)
    >>> total.output_tokens, total.total_tokens
    (5, 9)
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
            "payload": codec_of(type_(self)).encode(self),
        }

    @classmethod
    def from_wire(cls, obj: Mapping[str, Any]) -> Chunk:
        """Read a wire form; see `chunk_from_wire`."""
        return chunk_from_wire(obj)

    @classmethod
    def read(cls, obj: Mapping[str, Any], **envelope: Any) -> Self:
        """Read the part of a wire form that is the class's own; `chunk_from_wire` calls it.

        Raises:
            WireError: a key or a value is not the class's.
        """
        only(obj, "type", "runId", "from", "payload")
        payload = obj.get("payload", {})
        return cls(**codec_of(cls).decode(payload, cls.type), **envelope)


CLASSES: dict[str, type[Chunk]] = {}
"""Every class by its wire type; `data-` stands for all that begin so, `*` for unknown ones."""


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
    origin, run_id = obj.get("from", "AGENT"), obj.get("runId", "")
    if origin not in ORIGINS:
        msg = f"{kind}: 'from' must be one of {', '.join(ORIGINS)}, not {origin!r:.80}"
        raise WireError(msg)
    if not isinstance(run_id, str):
        msg = f"{kind}: 'runId' must be str, not {run_id!r:.80}"
        raise WireError(msg)
    cls = CLASSES.get("data-" if kind.startswith("data-") else kind, CLASSES["*"])
    return cls.read(obj, run_id=run_id, from_=origin)


def only(obj: Mapping[str, Any], *known: str) -> None:
    """Refuse keys that are not known.

    Raises:
        WireError: naming the key.
    """
    for key in obj:
        if key not in known:
            msg = f"{obj['type']}: unknown key {key!r}; known: {', '.join(known)}"
            raise WireError(msg)
