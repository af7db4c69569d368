"""Streampipe: an operator over text, a whole run of an agent, and both of its ways on the wire."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.peers.peer import Peer
from benchmarks.peers.work import Run, Step, Work, spoken
from streampipe import Agent, Chunk, TextDelta
from streampipe import operators as ops
from streampipe.contracts import Model, ModelRequest, ProcessOutputStreamArgs
from streampipe.messages import PromptMessage, TextPart
from streampipe.models import OpenAIChatModel
from streampipe.testing import ScriptedModel

__all__ = ["PEERS"]


class StepProcessor:
    """A step as a processor."""

    def __init__(self, number: int, step: Step) -> None:
        """Take a step."""
        self.id = f"step-{number}"
        self.step = step

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """Send the text through the step."""
        part = args.part
        if isinstance(part, TextDelta):
            part.text = self.step(part.text)
        return part


def processors(work: Work) -> list[StepProcessor]:
    """The steps as processors."""
    return [StepProcessor(number, step) for number, step in enumerate(work.steps.chain)]


def scripted(work: Work) -> ScriptedModel:
    """A model that says the texts, as often as it is asked."""
    return ScriptedModel([list(work.texts)], repeat=True, keep_requests=0)


def served(work: Work) -> OpenAIChatModel:
    """A model that reads them from the server."""
    return OpenAIChatModel("m", base_url=work.base_url, api_key="no-key")


def whole_run(model: Model, stages: Sequence[object]) -> Run:
    """Read a run's chunks to the end."""
    agent = Agent(model=model, output_processors=stages)

    async def run() -> list[str]:
        return [chunk.text async for chunk in agent.stream("hi") if isinstance(chunk, TextDelta)]

    return run


def pipe(work: Work) -> Run:
    """Operators over plain text, without an agent."""

    async def run() -> list[str]:
        source = ops.from_aiter(lambda: spoken(work.texts))
        stages = [ops.map(step) for step in work.steps.chain]
        return [text async for text in ops.to_aiter(source.pipe(*stages))]

    return run


def client(work: Work) -> Run:
    """The model alone, as one would use a provider's client."""
    model = served(work)
    request = ModelRequest([PromptMessage("user", [TextPart("hi")])])

    async def run() -> list[str]:
        chain = work.steps.chain
        got: list[str] = []
        async for chunk in model.stream(request):
            if isinstance(chunk, TextDelta):
                piece = chunk.text
                for step in chain:
                    piece = step(piece)
                got.append(piece)
        return got

    return run


PEERS = (
    Peer("`from_aiter`, 4 `ops.map`, `to_aiter`", pipe),
    Peer(
        "`agent.stream()`, 4 processors",
        lambda work: whole_run(scripted(work), processors(work)),
    ),
    Peer(
        "`agent.stream()`, 4 `ops.map_text`",
        lambda work: whole_run(scripted(work), [ops.map_text(step) for step in work.steps.chain]),
    ),
    Peer("`model.stream()`, steps called in the loop", client, wire=True),
    Peer(
        "`agent.stream()`, 4 processors",
        lambda work: whole_run(served(work), processors(work)),
        wire=True,
    ),
)
