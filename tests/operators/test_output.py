"""The end of a pipeline: the wire, and errors as chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from reactivex import Observable

from streampipe import (
    Agent,
    Chunk,
    DataChunk,
    ErrorChunk,
    FinishChunk,
    TextDelta,
    ToolResult,
    TripWire,
    TripwireChunk,
    chunk_from_wire,
)
from streampipe import operators as ops
from streampipe.errors import OperatorError, ProcessorError, ProviderError
from streampipe.testing import ScriptedModel, fail
from tests.operators.sources import elements


def failing(*chunks: Chunk, error: BaseException) -> Observable[Chunk]:
    """Chunks, then a failure."""

    async def run(emit: Any) -> None:
        for chunk in chunks:
            emit(chunk)
        raise error

    return ops.create(run)


async def test_every_chunk_of_a_run_goes_over_the_wire_and_back() -> None:
    """As dicts, as lines and as events, each the same."""
    agent = Agent(model=ScriptedModel([["a", "b"]], repeat=True))
    chunks = await elements(agent.observe("hi"))
    source = ops.of(*chunks)
    dicts = await elements(source.pipe(ops.to_wire()))
    lines = await elements(source.pipe(ops.to_jsonl()))
    events = await elements(source.pipe(ops.to_sse()))
    assert [chunk_from_wire(obj) for obj in dicts] == chunks
    assert [orjson.loads(line) for line in lines] == dicts
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    assert events == [b"data: " + line + b"\n" for line in lines]


@pytest.mark.parametrize("writer", [ops.to_jsonl, ops.to_sse])
async def test_what_is_no_json_is_named(writer: Any) -> None:
    """By the operator and the chunk's type."""
    with pytest.raises(OperatorError, match=rf"{writer.__name__}.*WireError on data-x"):
        await elements(ops.of(DataChunk("data-x", object())).pipe(writer()))


async def test_an_element_that_is_no_chunk_is_named() -> None:
    """It has no wire form."""
    with pytest.raises(OperatorError, match="to_wire"):
        await elements(ops.of(3).pipe(ops.to_wire()))  # type: ignore[arg-type]  # what is refused


async def test_a_failure_becomes_chunks() -> None:
    """What came before it stays, `finish` comes last, and the stream completes."""
    error = ProviderError("no", status=500)
    source = failing(TextDelta("0", "a"), error=error)
    got = await elements(source.pipe(ops.materialize_errors()))
    assert got[0] == TextDelta("0", "a")
    assert isinstance(got[1], ErrorChunk)
    assert (got[1].error.name, got[1].error.status) == ("ProviderError", 500)
    assert got[2:] == [FinishChunk("error")]


async def test_a_block_becomes_chunks() -> None:
    """A tripwire that says who and why."""
    wire = TripWire("no", processor_id="guard", metadata={"n": 1})
    got = await elements(failing(error=wire).pipe(ops.materialize_errors()))
    assert got == [
        TripwireChunk("no", metadata={"n": 1}, processor_id="guard"),
        FinishChunk("other"),
    ]


async def test_a_stream_that_does_not_fail_stays_as_it_is() -> None:
    """No end is added."""
    assert await elements(ops.of(TextDelta("0", "a")).pipe(ops.materialize_errors())) == [
        TextDelta("0", "a")
    ]


class Guard:
    """A processor that aborts at every chunk but an `error` or `tripwire`."""

    id = "guard"

    def process_output_stream(self, args: Any) -> Any:
        """Abort."""
        args.abort("no")


class SlowGuard(Guard):
    """The same as a coroutine."""

    async def process_output_stream(self, args: Any) -> Any:
        """Abort."""
        args.abort("no")


class Bad:
    """A processor that gives what is no chunk."""

    id = "bad"

    def process_output_stream(self, args: Any) -> Any:
        """Give a number."""
        return 3


class ToolGuard:
    """A processor that aborts at a tool's result."""

    id = "guard"

    def process_tool_result(self, args: Any) -> None:
        """Abort."""
        args.abort("no")


def broken(_: Any) -> Any:
    """Fail as a function does."""
    raise ValueError


def tripped(_: Any) -> Any:
    """Block as a function does."""
    raise TripWire("no")


async def tripped_later(_: Any) -> Any:
    """Block as an async function does."""
    raise TripWire("no")


FAILING: dict[str, tuple[Callable[[], Any], type[BaseException]]] = {
    "map": (lambda: ops.map(broken), OperatorError),
    "map, blocking": (lambda: ops.map(tripped), TripWire),
    "map_async, blocking": (lambda: ops.map_async(tripped_later), TripWire),
    "feedback, blocking": (lambda: ops.feedback(lambda item, _: tripped(item)), TripWire),
    "block": (lambda: ops.block("secret"), TripWire),
    "raise_errors": (ops.raise_errors, TripWire),
    "process, aborting": (lambda: ops.process(Guard()), TripWire),
    "process, aborting later": (lambda: ops.process(SlowGuard()), TripWire),
    "process, no chunk": (lambda: ops.process(Bad()), ProcessorError),
    "process_tool_result": (lambda: ops.process_tool_result([ToolGuard()]), TripWire),
}


@pytest.mark.parametrize(("make", "error"), FAILING.values(), ids=FAILING)
async def test_what_fails_behind_it_is_not_told_twice(
    make: Callable[[], Any], error: type[BaseException]
) -> None:
    """A failure or a block further down is no failure of its source."""
    passed: list[Chunk] = []
    chunks = [TextDelta("0", "secret"), TripwireChunk("no"), ToolResult("t", "n", 1)]
    source = ops.of(*chunks).pipe(ops.materialize_errors(), ops.tap(passed.append), make())
    with pytest.raises(error):
        await elements(source)
    assert passed == chunks[: len(passed)]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (make, ErrorChunk if issubclass(error, Exception) else TripwireChunk)
        for make, error in FAILING.values()
    ],
    ids=FAILING,
)
async def test_what_fails_before_it_is_told(make: Callable[[], Any], told: type[Chunk]) -> None:
    """For what stands behind a stage, whatever it fails with is its source's failure."""
    chunks = [TextDelta("0", "secret"), TripwireChunk("no"), ToolResult("t", "n", 1)]
    got = await elements(ops.of(*chunks).pipe(make(), ops.materialize_errors()))
    assert [type(chunk) for chunk in got[-2:]] == [told, FinishChunk]


@pytest.mark.parametrize(
    "guard", [Guard(), SlowGuard(), ops.block("secret")], ids=["sync", "async", "operator"]
)
async def test_a_block_behind_it_in_a_run_is_told_once(guard: Any) -> None:
    """The run tells of it; what stands before the guard does not."""
    agent = Agent(
        model=ScriptedModel([["secret"]]), output_processors=[ops.materialize_errors(), guard]
    )
    kinds = [chunk.type for chunk in await elements(agent.observe("hi"))]
    assert (kinds.count("tripwire"), kinds.count("finish")) == (1, 1)


async def test_errors_are_raised_again_at_the_other_end() -> None:
    """As `RemoteError` with the data, as `TripWire` with who and why."""
    error = failing(error=ProviderError("no", status=500)).pipe(ops.materialize_errors())
    with pytest.raises(ops.RemoteError, match="ProviderError: HTTP 500: no") as caught:
        await elements(error.pipe(ops.raise_errors()))
    assert caught.value.data.status == 500
    wire = TripWire("no", processor_id="guard", metadata=[1])
    blocked = failing(error=wire).pipe(ops.materialize_errors())
    with pytest.raises(TripWire, match="no") as pulled:
        await elements(blocked.pipe(ops.raise_errors()))
    assert (pulled.value.processor_id, pulled.value.metadata) == ("guard", [1])


async def test_a_failed_run_raises_at_its_reader() -> None:
    """What `observe` tells in a chunk, `raise_errors` makes a failure of."""
    agent = Agent(model=ScriptedModel([[fail(status=400)]]))
    with pytest.raises(ops.RemoteError, match="HTTP 400"):
        await elements(agent.observe("hi").pipe(ops.raise_errors()))


@pytest.mark.parametrize("again", [True, False])
async def test_a_wire_says_at_the_other_end_whether_to_try_again(*, again: bool) -> None:
    """As its chunk does."""
    source = failing(error=TripWire("no", retry=again)).pipe(ops.materialize_errors())
    with pytest.raises(TripWire) as pulled:
        await elements(source.pipe(ops.raise_errors()))
    assert pulled.value.retry is again
