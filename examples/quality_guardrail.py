"""Reject a poor answer and have the model try again, told why.

`process_output_step` runs when the model has answered and before any of its tools starts. An
abort with `retry=True` voids the attempt; its reason is the model's feedback for the next one.

Prints:

    text: 'Your parcel is in Porto and comes tomorrow before noon.'
    retries: 2
    feedback: 'Quality too low. Please give more detail.'
    without budget: 'other', text ''
"""

from __future__ import annotations

import asyncio

from streampipe import Agent
from streampipe.contracts import ProcessOutputStepArgs
from streampipe.testing import ScriptedModel


def quality(text: str) -> float:
    """A stand-in for a real judge: ten words are perfect."""
    return min(1.0, len(text.split()) / 10)


class QualityGuardrail:
    """Asks for a better answer, three times at most."""

    id = "quality-guardrail"
    enough = 0.7
    most_retries = 3

    def process_output_step(self, args: ProcessOutputStepArgs) -> None:
        """Judge the text of the step."""
        score = quality(args.text)
        if score >= self.enough:
            return
        if args.retry_count < self.most_retries:
            args.abort(
                "Quality too low. Please give more detail.",
                retry=True,
                metadata={"score": score},
            )
        args.abort("Quality too low after several attempts.")


ANSWERS = ["Porto.", "In Porto.", "Your parcel is in Porto and comes tomorrow before noon."]


async def main() -> None:
    """The third answer is good enough; a call may also refuse to pay for retries."""
    model = ScriptedModel(ANSWERS)
    agent = Agent(
        id="clerk",
        model=model,
        output_processors=[QualityGuardrail()],
        max_processor_retries=3,
    )
    result = await agent.generate("Where is my parcel?")
    print(f"text: {result.text!r}")
    print(f"retries: {result.retries}")
    told = model.requests[-1].prompt[0].text
    print(f"feedback: {told.split(': ')[1].splitlines()[0]!r}")

    hasty = await agent.generate("Where?", model=ScriptedModel(ANSWERS), max_processor_retries=0)
    print(f"without budget: {hasty.finish_reason!r}, text {hasty.text!r}")


if __name__ == "__main__":
    asyncio.run(main())
