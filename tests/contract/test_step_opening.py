"""What a processor makes of `step-start` belongs to the step that it opens."""

from __future__ import annotations

from typing import Any

import pytest

from streampipe import Agent, StepStart, TextDelta
from streampipe.errors import ProcessorError
from streampipe.testing import ScriptedModel


class Early:
    """Says something with, or in the place of, the chunk that opens a step."""

    id = "early"

    def __init__(self, *, instead: bool, verdict: str) -> None:
        """Block or retry as `verdict` says, at the first answer."""
        self.instead = instead
        self.verdict = verdict

    def process_output_stream(self, args: Any) -> Any:
        """Add text to the opening, and data before it."""
        if not isinstance(args.part, StepStart):
            return args.part
        args.writer.custom({"type": "data-opening", "data": 1})
        early = TextDelta("early", "early")
        return early if self.instead else [early, args.part]

    def process_output_step(self, args: Any) -> None:
        """Judge the first attempt."""
        if self.verdict and not args.retry_count:
            args.abort("no", retry=self.verdict == "retry")


@pytest.mark.parametrize("instead", [False, True])
async def test_text_given_with_a_step_start_is_void_with_the_step(*, instead: bool) -> None:
    """A client that forgets everything since `step-start` forgets it too."""
    agent = Agent(
        model=ScriptedModel([["first"], ["second"]]),
        output_processors=[Early(instead=instead, verdict="retry")],
        max_processor_retries=1,
    )
    async with agent.stream("hi") as run:
        seen: list[str] = []
        async for chunk in run:
            if isinstance(chunk, StepStart):
                seen.clear()
            elif isinstance(chunk, TextDelta):
                seen.append(chunk.text)
        result = await run.result()
    assert "".join(seen) == result.text == "earlysecond"


async def test_text_given_with_the_opening_of_a_blocked_step_is_in_no_accessor() -> None:
    """It comes after `step-start`, so the tripwire voids it."""
    agent = Agent(
        model=ScriptedModel([["first"]]),
        output_processors=[Early(instead=False, verdict="block")],
    )
    async with agent.stream("hi") as run:
        kinds = [chunk.type async for chunk in run]
        result = await run.result()
    assert kinds.index("data-opening") < kinds.index("step-start") < kinds.index("text-delta")
    assert (result.text, result.messages) == ("", [])


async def test_a_structured_output_that_is_none_names_the_processor() -> None:
    """The override is refused where it is made."""

    class Wrong:
        id = "wrong"

        def process_input_step(self, args: Any) -> Any:
            return {"structured_output": 7}

    model = ScriptedModel([["never"]])
    with pytest.raises(ProcessorError, match=r"'wrong', process_input_step: structured_output: 7"):
        await Agent(model=model, input_processors=[Wrong()]).generate("hi")
    assert not model.requests
