"""Operators in `output_processors`: what one emits there has to be chunks, else the run fails."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reactivex import operators as rx

from streampipe import Agent, Chunk, Recorder, TextDelta
from streampipe import operators as ops
from streampipe.errors import OperatorError
from streampipe.testing import ScriptedModel, reasoning, run_virtual
from streampipe.text import secrets


class Passing:
    """A processor that lets all pass."""

    id = "passing"

    def process_output_stream(self, args: Any) -> Chunk:
        """Pass it."""
        part: Chunk = args.part
        return part


def as_chunk(text: str) -> Chunk:
    """A string as a piece of text."""
    return TextDelta("0", text)


def kind_of(chunk: Chunk) -> str:
    """The type of a chunk."""
    return chunk.type


STRANGERS = [
    ([ops.text()], "'text': emitted str"),
    ([ops.reasoning(), ops.redact(secrets)], "'reasoning': emitted str"),
    ([ops.accumulate_text(), Passing()], "'accumulate_text': emitted str"),
    ([Passing(), ops.to_wire()], "'to_wire': emitted dict"),
    ([ops.to_sse()], "'to_sse': emitted bytes"),
    ([ops.map(lambda _: 3)], "'map': emitted int"),
    ([ops.pipe(ops.redact(secrets), ops.text(), name="said")], "'text': emitted str"),
    ([ops.pipe(ops.text(), ops.filter(str.isalpha)), Passing()], "'filter': emitted str"),
    ([ops.branch(bool, ops.text(), ops.text())], "'branch': emitted str"),
    ([rx.map(kind_of)], "'map': emitted str"),
    ([ops.pipe(ops.tap(print), rx.map(kind_of))], "'pipe': emitted str"),
]


@pytest.mark.parametrize(("elements", "said"), STRANGERS)
@pytest.mark.parametrize("recorder", [None, Recorder()], ids=["plain", "recorded"])
async def test_what_is_no_chunk_fails_the_run(
    elements: list[Any], said: str, recorder: Recorder | None
) -> None:
    """No answer gets lost: the run fails, and names the operator and what it emitted."""
    model = ScriptedModel([[reasoning("Hm."), "Hello"]])
    agent = Agent(model=model, output_processors=elements)
    with pytest.raises(OperatorError, match=said) as failure:
        await agent.generate("hi", recorder=recorder)
    assert "emits chunks" in str(failure.value)


@given(st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=4))
def test_operators_of_one_pipeline_may_hand_each_other_anything(pieces: list[str]) -> None:
    """A pipeline is one element of the list: what leaves it has to be chunks again."""
    through = ops.pipe(ops.text(), ops.map(str.upper), ops.map(as_chunk))
    agent = Agent(model=ScriptedModel([list(pieces)]), output_processors=[through, Passing()])
    result = run_virtual(agent.generate("hi"))
    assert result.text == "".join(pieces).upper()
