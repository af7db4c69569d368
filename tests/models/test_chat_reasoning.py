"""Reasoning in the chat protocol: in fields of its own, as items, or inline between tags."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.chunks import Chunk, ReasoningDelta, ReasoningEnd, TextDelta
from streampipe.models._protocol.encoding import digest_of
from streampipe.models.openai_chat import ChatDecoder
from streampipe.testing import chunkings
from tests.models.streams import decoded, delta, event, sse


def chunks_of(*deltas: dict[str, Any], provider: str = "acme") -> list[Chunk]:
    """The chunks of an answer of these deltas."""
    events = [event(each) for each in deltas]
    return decoded([sse(*events, event(reason="stop"))], ChatDecoder(provider))


def told(chunks: list[Chunk]) -> tuple[str, str]:
    """Reasoning and text of chunks."""
    return (
        "".join(chunk.text for chunk in chunks if isinstance(chunk, ReasoningDelta)),
        "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta)),
    )


def noted(chunks: list[Chunk]) -> list[Any]:
    """What the closing chunks of the reasoning keep for this provider."""
    ends = [chunk for chunk in chunks if isinstance(chunk, ReasoningEnd)]
    return [(end.provider_metadata or {}).get("acme") for end in ends]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_the_field_is_noted(field: str) -> None:
    """So that it can go back in the field it came in."""
    chunks = chunks_of({field: "h"}, {field: "m"}, {"content": "ok"})
    assert told(chunks) == ("hm", "ok")
    assert noted(chunks) == [{"field": field}]


def test_reasoning_items() -> None:
    """Pieces of an item are one item again; what the plain field says too is said once."""
    first = {"type": "reasoning.text", "index": 0, "text": "h", "format": "x"}
    more = {"type": "reasoning.text", "index": 0, "text": "m", "signature": "s"}
    cipher = {"type": "reasoning.encrypted", "index": 1, "data": "abc", "id": "r1"}
    chunks = chunks_of(
        {"reasoning": "h", "reasoning_details": [first]},
        {"reasoning_details": [more, cipher]},
        {"content": "ok"},
    )
    assert told(chunks) == ("hm", "ok")
    whole = {"type": "reasoning.text", "index": 0, "text": "hm", "format": "x", "signature": "s"}
    (made,) = noted(chunks)
    assert made == {
        "field": "reasoning",
        "reasoning_details": [whole, cipher],
        "digest": digest_of("hm"),
    }


INLINE = "<think>Hm, a < b.</think>\n\nSo it is <think>."


@given(st.data())
def test_inline_reasoning_wherever_it_is_cut(data: st.DataObject) -> None:
    """Text that begins with the tag is reasoning up to its end; tags later on stay text."""
    pieces = data.draw(chunkings(INLINE))
    chunks = chunks_of(*[{"content": piece} for piece in pieces])
    reasoning, text = told(chunks)
    assert reasoning == "Hm, a < b."
    assert text == "So it is <think>."


@given(st.text(alphabet="<think>/ a\n", min_size=1), st.data())
def test_text_without_the_tag_is_text(text: str, data: st.DataObject) -> None:
    """Whatever looks like the beginning of a tag comes out, in its place, cut anywhere."""
    pieces = data.draw(chunkings(text))
    reasoning, said = told(chunks_of(*[{"content": piece} for piece in pieces]))
    if not text.lstrip().startswith("<think>"):
        assert (reasoning, said) == ("", text)


def test_the_beginning_of_a_tag_before_a_call() -> None:
    """What was held to see whether it is one comes before the call."""
    chunks = chunks_of({"content": "<th"}, {"tool_calls": [delta("{}", index=0, id="c", name="f")]})
    kinds = [chunk.type for chunk in chunks]
    assert kinds.index("text-delta") < kinds.index("tool-call")
    assert told(chunks) == ("", "<th")
