"""Answer from a cache instead of the model, with a pair of hooks.

`process_llm_request` may return `response`: chunks that are replayed in place of the model's.
`process_llm_response` runs when the answer is whole, has the same state, and knows whether it
came from the cache.

Prints:

    'In Porto.' after 1 model call
    'In Porto.' after 1 model call
    'Never.' after 2 model calls
"""

from __future__ import annotations

import asyncio
import hashlib

from streampipe import Agent, Chunk
from streampipe.contracts import (
    ProcessLLMRequestArgs,
    ProcessLLMRequestResult,
    ProcessLLMResponseArgs,
)
from streampipe.testing import ScriptedModel


class ResponseCache:
    """Keeps answers by prompt and model, for as long as it lives."""

    id = "response-cache"

    def __init__(self) -> None:
        """Start empty."""
        self.answers: dict[str, list[Chunk]] = {}

    def process_llm_request(self, args: ProcessLLMRequestArgs) -> ProcessLLMRequestResult | None:
        """Replay what is known; else leave the key for the other hook."""
        asked = repr((args.model.provider, args.model.model_id, args.prompt))
        key = args.state["key"] = hashlib.sha256(asked.encode()).hexdigest()
        answer = self.answers.get(key)
        return None if answer is None else ProcessLLMRequestResult(response=answer)

    def process_llm_response(self, args: ProcessLLMResponseArgs) -> None:
        """Keep what the model said, as it said it: output processors run again on a replay."""
        if not args.from_cache:
            self.answers[args.state["key"]] = args.chunks


async def main() -> None:
    """Ask twice the same, then something else."""
    model = ScriptedModel([["In ", "Porto."], ["Never."]])
    agent = Agent(id="clerk", model=model, input_processors=[ResponseCache()])
    for question in ("Where is it?", "Where is it?", "When does it come?"):
        result = await agent.generate(question)
        calls = f"{model.calls} model call{'s' * (model.calls > 1)}"
        print(f"{result.text!r} after {calls}")


if __name__ == "__main__":
    asyncio.run(main())
