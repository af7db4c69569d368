"""The stream as bytes: one chunk a JSON line, both ways."""

from __future__ import annotations

import orjson

from streampipe.chunks import Chunk, chunk_from_wire
from streampipe.errors import WireError

__all__ = ["chunk_from_json", "chunk_to_json"]


def chunk_to_json(chunk: Chunk) -> bytes:
    """A chunk's wire form as UTF-8 JSON without a line break.

    Raises:
        WireError: a value in the chunk is not JSON-serialisable; the message names the type.
    """
    try:
        return orjson.dumps(chunk.to_wire())
    except TypeError as error:
        msg = f"{chunk.type}: {error}"
        raise WireError(msg) from error


def chunk_from_json(line: bytes | str) -> Chunk:
    """Read a chunk from a JSON line.

    Raises:
        WireError: the line is no JSON, or no chunk.
    """
    try:
        obj = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        msg = f"not JSON: {error}"
        raise WireError(msg) from error
    return chunk_from_wire(obj)
