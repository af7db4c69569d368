"""Chunks as lines for people."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from streampipe.chunks import Chunk

_STYLES = {
    "text-delta": "green",
    "reasoning-delta": "dim green",
    "tool-call": "cyan",
    "tool-result": "cyan",
    "tool-error": "red",
    "tripwire": "bold red",
    "error": "bold red",
    "abort": "bold red",
    "step-finish": "yellow",
    "finish": "yellow",
}
WIDEST = 100


def style_of(chunk: Chunk) -> str:
    """The style that a chunk's line has on a terminal."""
    return "magenta" if chunk.type.startswith("data-") else _STYLES.get(chunk.type, "dim")


def summary(chunk: Chunk) -> str:
    """What a chunk carries, in one short line.

    >>> from streampipe import TextDelta
    >>> summary(TextDelta("0", "Hello"))
    "'Hello'"
    """
    wire = chunk.to_wire()
    payload: Any = wire.get("payload", wire.get("data"))
    if isinstance(payload, dict):
        text = payload.get("text")
        if isinstance(text, str):
            return _cut(repr(text))
        told = [f"{key}={value!r}" for key, value in payload.items() if key not in _QUIET]
        return _cut(" ".join(told))
    return "" if payload is None else _cut(repr(payload))


def _cut(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[:WIDEST]}..."


_QUIET = ("id", "usage", "messageId", "createdAt", "headers", "providerMetadata", "attempt")


def line(chunk: Chunk) -> str:
    """A chunk as a line of rich markup."""
    style = style_of(chunk)
    return f"  [{style}]{chunk.type:<31}[/] {escape(summary(chunk))}"
