"""What is kept of an answer: its chunks, a line of JSON each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streampipe.chunks import Chunk, FinishChunk, ResponseMetadata
from streampipe.errors import WireError
from streampipe.wire import chunk_from_json, chunk_to_json

__all__ = ["answer_of", "entry_of", "is_whole"]

WHOLE = ("stop", "tool-calls")
"""The reasons of answers that were neither cut, nor filtered, nor broken."""


def is_whole(chunks: Sequence[Chunk]) -> bool:
    """Whether the model came to the end of an answer."""
    last = chunks[-1] if chunks else None
    return isinstance(last, FinishChunk) and last.reason in WHOLE


def entry_of(chunks: Sequence[Chunk]) -> bytes:
    """A whole answer as bytes; not of its delivery: the run, tokens spent, headers.

    Raises:
        WireError: a value in a chunk is no JSON.
    """
    return b"\n".join(chunk_to_json(_undelivered(chunk)) for chunk in chunks)


def answer_of(entry: bytes) -> list[Chunk]:
    """The answer that was made bytes.

    Raises:
        WireError: they are none, or not all of them.
    """
    if not isinstance(entry, bytes):
        raise WireError(f"an entry is bytes, not {type(entry).__name__}")
    chunks = [chunk_from_json(line) for line in entry.split(b"\n")]
    if not is_whole(chunks):
        raise WireError("an entry ends with the end of an answer, and this one does not")
    return chunks


def _undelivered(chunk: Chunk) -> Chunk:
    match chunk:
        case FinishChunk():
            return replace(chunk, run_id="", usage=None)
        case ResponseMetadata():
            return replace(chunk, run_id="", headers=None)
        case _:
            return replace(chunk, run_id="")
