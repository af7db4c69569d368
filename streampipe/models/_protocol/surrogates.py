"""Surrogates that stand alone: halves of characters, which UTF-8 has no form for.

A server that cuts its text by UTF-16 units sends an emoji in two halves, in events one after the
other; a file name or a broken decoder brings one that nothing follows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NoReturn

from streampipe.chunks import (
    Chunk,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    TextEnd,
    ToolCallDelta,
    ToolCallInputEnd,
)
from streampipe.messages._json import all_whole, whole

REPLACEMENT = "\ufffd"
_HALF = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_PIECES = frozenset(
    {
        "arguments",
        "content",
        "delta",
        "partial_json",
        "reasoning",
        "reasoning_content",
        "refusal",
        "text",
        "thinking",
    },
)
"""Fields of events that hold a piece of a text, so that the other half may be in the next one."""


def loads(text: str, *, is_event: bool = False) -> Any:
    """JSON with halves in it, which stricter parsers refuse.

    Args:
        text: the JSON text.
        is_event: whether pieces of text keep a half at their edges, for `Halves` to join.

    Raises:
        ValueError: it is no JSON, or has no halves, so that the strict parser was right.
    """
    if _ESCAPE.search(text) is None and _HALF.search(text) is None:
        raise ValueError("no half of a character")
    try:
        value = json.loads(text, parse_constant=_refused)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    return _all_but_edges(value) if is_event else all_whole(value)


def _refused(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _all_but_edges(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {whole(key): _all_but_edges(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_all_but_edges(inner, name) for inner in value]
    if not isinstance(value, str):
        return value
    if name not in _PIECES:
        return whole(value)
    first = value[:1] if "\udc00" <= value[:1] <= "\udfff" else ""
    last = value[-1:] if "\ud800" <= value[-1:] <= "\udbff" else ""
    return first + whole(value[len(first) : len(value) - len(last)]) + last


class Halves:
    """Joins the halves at the edges of deltas: the first waits for the next delta of its part."""

    def __init__(self) -> None:
        """Start with none."""
        self._held: dict[tuple[type[Any], str], str] = {}

    def joined(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        """The chunks with whole characters; a half that nothing follows is replaced."""
        out: list[Chunk] = []
        for chunk in chunks:
            if isinstance(chunk, TextDelta | ReasoningDelta):
                if text := self._joined(type(chunk), chunk.id, chunk.text):
                    out.append(replace(chunk, text=text))
            elif isinstance(chunk, ToolCallDelta):
                if text := self._joined(ToolCallDelta, chunk.tool_call_id, chunk.args_text_delta):
                    out.append(replace(chunk, args_text_delta=text))
            else:
                out += self._left(chunk)
                out.append(chunk)
        return out

    def _joined(self, kind: type[Any], part_id: str, text: str) -> str:
        text = self._held.pop((kind, part_id), "") + text
        if "\ud800" <= text[-1:] <= "\udbff":
            self._held[kind, part_id] = text[-1]
            text = text[:-1]
        return whole(text)

    def _left(self, end: Chunk) -> list[Chunk]:
        """What is left of a part at its end."""
        if isinstance(end, TextEnd) and self._held.pop((TextDelta, end.id), ""):
            return [TextDelta(end.id, REPLACEMENT)]
        if isinstance(end, ReasoningEnd) and self._held.pop((ReasoningDelta, end.id), ""):
            return [ReasoningDelta(end.id, REPLACEMENT)]
        if isinstance(end, ToolCallInputEnd) and self._held.pop(
            (ToolCallDelta, end.tool_call_id), ""
        ):
            return [ToolCallDelta(end.tool_call_id, REPLACEMENT)]
        return []
