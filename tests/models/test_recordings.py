"""Recorded streams of many providers come to what their own SDK made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.chunks import FinishChunk, ResponseMetadata, SourceChunk
from streampipe.testing import ModelServer
from tests.models.streams import RECORDED, answer, cut, decoded
from tests.models.test_call import collected

SMALL = 6_000  # bytes; up to here every single cut is tried, beyond it some hundred


@pytest.fixture(params=RECORDED)
def path(request: pytest.FixtureRequest) -> Path:
    """Each recording."""
    return Path(request.param)


@pytest.fixture
def expected(path: Path) -> dict[str, Any]:
    """What it comes to."""
    value: dict[str, Any] = orjson.loads(path.with_suffix(".expected.json").read_bytes())
    return value


def test_a_recording_decodes(path: Path, expected: dict[str, Any]) -> None:
    """Text, reasoning, tool calls, finish reason and usage are those that the SDK read."""
    chunks = decoded([path.read_bytes()])
    assert vars(answer(chunks)) == {
        name: expected[name] for name in ("text", "reasoning", "tool_calls", "finish_reason")
    }
    finish, usage = chunks[-1], expected["usage"]
    assert isinstance(finish, FinishChunk)
    assert finish.usage is not None
    assert finish.usage.input_tokens == usage["prompt_tokens"]
    assert finish.usage.output_tokens == usage["completion_tokens"]
    assert finish.usage.total_tokens == usage["total_tokens"]
    said = usage.get("completion_tokens_details") or {}
    assert finish.usage.reasoning_tokens == said.get("reasoning_tokens", 0)
    asked = usage.get("prompt_tokens_details") or {}
    assert finish.usage.cached_input_tokens == asked.get("cached_tokens", 0)


def test_a_recording_is_well_formed(path: Path) -> None:
    """Metadata comes first and once, one finish last; every part that opens is closed, in order."""
    chunks = decoded([path.read_bytes()])
    assert isinstance(chunks[0], ResponseMetadata)
    assert chunks[0].model_id
    kinds = [chunk.type for chunk in chunks]
    assert kinds.count("response-metadata") == kinds.count("finish") == 1
    assert kinds[-1] == "finish"
    for kind in ("text", "reasoning"):
        parts: list[str] = []
        for chunk in chunks:
            if chunk.type.startswith(f"{kind}-"):
                place = f"{chunk.type.removeprefix(kind)} {getattr(chunk, 'id', '')}"
                if not parts or parts[-1] != place:
                    parts.append(place)
        ids = [part.partition(" ")[2] for part in parts[::3]]
        assert parts == [f"-{step} {i}" for i in ids for step in ("start", "delta", "end")]


def test_a_recording_may_be_cut_anywhere_once(path: Path) -> None:
    """A stream in two pieces gives the same chunks wherever it is cut."""
    data = path.read_bytes()
    whole = decoded([data])
    step = 1 if len(data) < SMALL else len(data) // 300
    for place in range(1, len(data), step):
        assert decoded([data[:place], data[place:]]) == whole, f"cut at byte {place}"


@given(data=st.data())
def test_a_recording_may_be_cut_anywhere(data: st.DataObject) -> None:
    """A stream in any number of pieces gives the same chunks."""
    path = data.draw(st.sampled_from([param.values[0] for param in RECORDED]))
    if path is None:
        pytest.skip("no recordings")
    content = path.read_bytes()
    places = data.draw(st.lists(st.integers(0, len(content)), max_size=30))
    assert decoded(cut(content, places)) == decoded([content])


def test_a_recording_may_come_byte_by_byte(path: Path) -> None:
    """The worst cut of all."""
    content = path.read_bytes()[:200_000]
    content = content[: content.rindex(b"\n\n")] + b"\n\ndata: [DONE]\n\n"
    pieces = (content[i : i + 1] for i in range(len(content)))
    assert decoded(pieces) == decoded([content])


def test_citations_become_sources_once() -> None:
    """A list of citations that comes with every event gives each source once."""
    path = next((p.values[0] for p in RECORDED if "perplexity" in str(p.values[0])), None)
    if path is None:
        pytest.skip("no recording of perplexity")
    sources = [c.url for c in decoded([path.read_bytes()]) if isinstance(c, SourceChunk)]
    assert len(sources) == len(set(sources)) == 5


async def test_a_recording_over_a_socket(path: Path, expected: dict[str, Any]) -> None:
    """Over HTTP a recording comes to the same."""
    async with ModelServer([path]) as server:
        chunks = await collected(server.model())
    assert chunks == decoded([path.read_bytes()])
    assert answer(chunks).text == expected["text"]
