"""`stream_operator`: a processor that brings an operator in place of a chunk hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from reactivex import Observable
from reactivex import operators as rx

from streampipe import Agent, Chunk, DataChunk, Recorder, TextDelta
from streampipe import operators as ops
from streampipe.contracts import StreamOperatorArgs
from streampipe.errors import ConfigurationError, ProcessorError
from streampipe.testing import ScriptedModel

Op = Callable[[Observable[Chunk]], Observable[Chunk]]


class Brings:
    """Brings an operator; notes what it was given."""

    def __init__(self, operator: Any, name: str = "brings") -> None:
        """Take the operator, or what is to be given in its place."""
        self.id = name
        self.operator = operator
        self.args: list[StreamOperatorArgs] = []

    def stream_operator(self, args: StreamOperatorArgs) -> Any:
        """Give it."""
        self.args.append(args)
        return self.operator


class Adds:
    """A hook that adds a letter to every text."""

    def __init__(self, letter: str) -> None:
        """Say which."""
        self.id = f"adds-{letter}"
        self.letter = letter

    def process_output_stream(self, args: Any) -> Chunk:
        """Add it."""
        part: Chunk = args.part
        if isinstance(part, TextDelta):
            part.text += self.letter
        return part


def adding(letter: str) -> Op:
    """An operator that adds a letter to every text."""
    return ops.map_text(lambda text: text + letter)


async def said(*processors: Any, turns: Any = (["x"],), **options: Any) -> Any:
    """The result of a run behind these processors."""
    agent = Agent(model=ScriptedModel(list(turns)), output_processors=list(processors), **options)
    return await agent.generate("hi")


async def test_it_stands_where_the_processor_stands() -> None:
    """Between the hooks of those before and behind it."""
    result = await said(Adds("a"), Brings(adding("b")), Adds("c"), Brings(adding("d"), "second"))
    assert result.text == "xabcd"


async def test_an_operator_of_another_library_may_be_brought() -> None:
    """As one may stand in the list."""

    def loud(chunk: Chunk) -> Chunk:
        return TextDelta(chunk.id, "X") if isinstance(chunk, TextDelta) else chunk

    assert (await said(Adds("a"), Brings(rx.map(loud)), Adds("c"))).text == "Xc"


async def test_every_attempt_has_an_operator_of_its_own_and_the_run_one_state() -> None:
    """A retry begins anew; what the processor notes in `state` stays."""
    brings = Brings(adding("b"))

    class Judge:
        id = "judge"

        def process_output_step(self, args: Any) -> None:
            if args.retry_count == 0:
                args.abort("again", retry=True)

    result = await said(brings, Judge(), turns=(["x"], ["y"]), max_processor_retries=1)
    assert result.text == "yb"
    assert len(brings.args) == 2
    assert brings.args[0] is not brings.args[1]
    assert brings.args[0].state is brings.args[1].state
    assert [args.retry_count for args in brings.args] == [0, 1]


async def test_it_is_told_of_the_run() -> None:
    """The conversation among it, which it may look into as long as the attempt lasts."""
    brings = Brings(adding("b"))
    agent = Agent(
        model=ScriptedModel([["x"]]), instructions="Be brief.", output_processors=[brings]
    )
    await agent.generate("hi", request_context={"user": "ada"})
    (args,) = brings.args
    assert args.request_context["user"] == "ada"
    assert args.message_list.system_messages[0].text == "Be brief."


@pytest.mark.parametrize(
    ("operator", "problem"),
    [(None, "returned NoneType; return an operator"), (7, "returned int; return an operator")],
    ids=["none", "number"],
)
async def test_what_is_no_operator_fails_the_run_in_its_name(operator: Any, problem: str) -> None:
    """And nothing leaves."""
    with pytest.raises(ProcessorError, match=problem) as caught:
        await said(Brings(operator))
    assert (caught.value.processor_id, caught.value.result.text) == ("brings", "")


async def test_what_it_raises_fails_the_run_in_its_name() -> None:
    """As with any hook."""

    class Breaks:
        id = "breaks"

        def stream_operator(self, args: StreamOperatorArgs) -> Op:
            raise KeyError(args.run_id)

    with pytest.raises(ProcessorError, match="KeyError") as caught:
        await said(Breaks())
    assert caught.value.processor_id == "breaks"


async def test_process_and_process_all_take_it() -> None:
    """Outside of a run, too: each subscription has an operator and a state of its own."""
    brings = Brings(adding("b"))
    chain = ops.process_all([Adds("a"), brings, Adds("c")])
    for _ in range(2):
        text = ops.of(TextDelta("0", "x")).pipe(chain, ops.text())
        assert [piece async for piece in ops.to_aiter(text)] == ["xabc"]
    assert len(brings.args) == 2
    assert brings.args[0].state is not brings.args[1].state
    alone = ops.of(TextDelta("0", "x")).pipe(ops.process(brings), ops.text())
    assert [piece async for piece in ops.to_aiter(alone)] == ["xb"]


async def test_a_recorder_shows_it_as_a_stage() -> None:
    """By the processor's id."""
    recorder = Recorder()
    await said(Adds("a"), Brings(adding("b")), recorder=recorder)
    assert {"adds-a", "brings", "client"} <= {record.stage for record in recorder.records}


async def test_a_hook_and_an_operator_together_are_refused() -> None:
    """One stands in the other's place; naming the processor."""

    class Both(Adds):
        def stream_operator(self, args: StreamOperatorArgs) -> Op:
            del args
            return adding("b")

    with pytest.raises(ConfigurationError, match=r"'adds-a'.*leave one of them out"):
        Agent(model=ScriptedModel([["x"]]), output_processors=[Both("a")])


async def test_it_is_for_output_processors_alone() -> None:
    """An input list has no stream."""
    with pytest.raises(ConfigurationError, match=r"input_processors\[0\].*stream_operator"):
        Agent(model=ScriptedModel([["x"]]), input_processors=[Brings(adding("b"))])


class Writes:
    """Brings an operator that writes data beside what it lets through."""

    def __init__(self, *, waits: bool) -> None:
        """Say whether it waits until that is sent."""
        self.id = "writes"
        self.waits = waits

    def stream_operator(self, args: StreamOperatorArgs) -> Any:
        """Give it."""

        async def wrote(chunk: Chunk) -> Chunk:
            if isinstance(chunk, TextDelta):
                sent = args.writer.custom({"type": "data-n", "data": chunk.text})
                if self.waits:
                    await sent
            return chunk

        return ops.map_async(wrote)


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("where", ["in the list", "behind the run"])
async def test_what_it_writes_is_sent(where: str, *, waits: bool) -> None:
    """In a run and in a pipeline of its own; with the run's id, and before what it stands for."""
    agent = Agent(model=ScriptedModel([["a", "b"]]))
    stream: Observable[Chunk] = agent.observe("hi").pipe(ops.process(Writes(waits=waits)))
    if where == "in the list":
        stream = agent.observe("hi", output_processors=[Writes(waits=waits)])
    chunks = [chunk async for chunk in ops.to_aiter(stream)]
    written = [chunk for chunk in chunks if isinstance(chunk, DataChunk)]
    assert [chunk.data for chunk in written] == ["a", "b"]
    assert {chunk.run_id for chunk in written} == {chunks[0].run_id}
    if waits:
        kinds = [chunk.type for chunk in chunks if chunk.type in ("data-n", "text-delta")]
        assert kinds == ["data-n", "text-delta"] * 2
