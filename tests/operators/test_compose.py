"""Pipelines as values, and operators that put others side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from reactivex import Observable
from reactivex import operators as rx

from streampipe import (
    Agent,
    Chunk,
    DataChunk,
    ReasoningDelta,
    TextDelta,
    TextEnd,
    ToolCall,
    TripWire,
)
from streampipe import operators as ops
from streampipe.errors import ConfigurationError, OperatorError, ProcessorError
from streampipe.testing import ScriptedModel
from tests.operators.sources import deltas, elements, through

DISTINCT: Callable[[Observable[Any]], Observable[Any]] = rx.distinct()


async def later(chunk: Chunk) -> Chunk:
    """Give it back."""
    return chunk


def text_fails(chunk: Chunk) -> int:
    """Raise."""
    raise ValueError(chunk.type)


def text_of(chunk: Any) -> str:
    """Its text."""
    return str(chunk.text)


def said(items: list[Any]) -> list[str]:
    """The texts of chunks."""
    return [item.text for item in items if isinstance(item, TextDelta)]


class Guard:
    """Blocks a word, by a plain hook or by a coroutine that answers after some turns."""

    def __init__(self, name: str, word: str, after: int | None = None) -> None:
        """Block `word`; with `after`, after so many turns of the loop."""
        self.id = name
        self.word = word
        if after is None:
            self.process_output_stream = self._now
        else:
            self.after = after
            self.process_output_stream = self._later

    def _now(self, args: Any) -> Any:
        if isinstance(args.part, TextDelta) and self.word in args.part.text:
            args.abort(f"{self.id} says no")
        return args.part

    async def _later(self, args: Any) -> Any:
        for _ in range(self.after):
            await asyncio.sleep(0)
        return self._now(args)


class Upper:
    """Rewrites."""

    def __init__(self, name: str) -> None:
        """Rewrite under this id."""
        self.id = name

    def process_output_stream(self, args: Any) -> Any:
        """Say it louder."""
        args.part.text = args.part.text.upper()
        return args.part


# --- pipe ----------------------------------------------------------------------------------


def test_a_pipeline_is_the_same_as_its_operators_in_a_row() -> None:
    """Nested or not, and any number of times: each subscription has its own state."""
    count = ops.scan(lambda n, _: n + 1, 0)
    inner = ops.pipe(ops.filter(lambda c: c.type == "text-delta"), count)
    outer = ops.pipe(inner, ops.map(hex))
    for _ in range(2):
        assert through(outer, [*deltas("a", "b"), TextEnd("0")]).items == ["0x1", "0x2"]


def test_a_pipeline_shows_its_stages() -> None:
    """Its repr is how it is written; with a name, the name comes first."""
    inner = ops.pipe(ops.map_text(str.upper), name="shout")
    assert repr(ops.pipe(inner, DISTINCT, ops.take_while(bool, inclusive=True))) == (
        "pipe(shout: pipe(map_text(upper)), distinct, take_while(bool, inclusive=True))"
    )


def test_what_is_no_operator_is_refused_when_the_pipeline_is_built() -> None:
    """By its place."""
    with pytest.raises(ConfigurationError, match="element 2 is 3, not an operator"):
        ops.pipe(ops.text(), 3)  # type: ignore[call-overload]  # what is refused


async def test_a_pipeline_stands_in_output_processors() -> None:
    """As any operator, and under its name."""
    shout = ops.pipe(ops.map_text(str.upper), ops.tap(lambda c: None), name="shout")
    result = await Agent(model=ScriptedModel([["hi"]]), output_processors=[shout]).generate("x")
    assert result.text == "HI"


# --- explain -------------------------------------------------------------------------------


def test_explain_shows_kernels_and_boundaries() -> None:
    """Adjacent sync stages are one kernel; others are boundaries."""
    chain = ops.pipe(
        ops.tap(print), ops.process(Upper("u")), ops.map_async(later), ops.text(), DISTINCT
    )
    assert ops.explain(chain).splitlines() == [
        "kernel    tap > process",
        "boundary  map_async(later)",
        "kernel    text",
        "boundary  distinct",
    ]
    assert ops.explain([Upper("u"), ops.text()]) == "kernel    process_all > text"


def test_explain_reads_an_observable() -> None:
    """From its source on."""
    made = ops.of(*deltas("a")).pipe(
        ops.map_text(str.upper), ops.retry_api(), ops.text(), ops.distinct_until_changed()
    )
    assert ops.explain(made).splitlines() == [
        "source    Flowable",
        "kernel    map_text",
        "boundary  retry_api()",
        "kernel    text > distinct_until_changed",
    ]


async def allowed(_: str) -> bool:
    """Allow any text."""
    return True


@pytest.mark.parametrize(
    ("operator", "shown"),
    [
        (ops.tool_calls(), "kernel    tool_calls"),
        (ops.process(Upper("u")), "kernel    process"),
        (ops.smooth(1), "kernel    smooth"),
        (ops.filter_async(later), "boundary  filter_async(later)"),
        (ops.check_async(allowed), "boundary  check_async(allowed)"),
        (ops.map_async(later, concurrency=2), "boundary  map_async(later, concurrency=2)"),
        (ops.retry_api(2), "boundary  retry_api(2)"),
        (ops.process_api_error([]), "boundary  process_api_error([])"),
        (ops.batch(2), "kernel    batch"),
        (ops.batch(2, max_wait=1), "boundary  batch(2, max_wait=1)"),
    ],
    ids=repr,
)
def test_explain_names_an_operator_as_it_was_written(operator: Any, shown: str) -> None:
    """Not by the operators that it is made of."""
    assert ops.explain(operator) == shown
    assert ops.explain(ops.of().pipe(operator)) == f"source    Flowable\n{shown}"


def test_explain_shows_that_fusion_is_off() -> None:
    """Then every stage is a kernel."""
    chain = ops.pipe(ops.map(str), ops.map(str.upper))
    with ops.fusion(enabled=False):
        assert ops.explain(chain).splitlines() == ["kernel    map", "kernel    map"]


def test_explain_refuses_what_it_cannot_read() -> None:
    """With what it can."""
    with pytest.raises(ConfigurationError, match="explain: takes an operator"):
        ops.explain(3)  # type: ignore[arg-type]  # the point


# --- branch --------------------------------------------------------------------------------


def test_branch_sends_each_chunk_one_way_in_order() -> None:
    """Without an `otherwise` the others pass as they are."""
    loud = ops.branch(lambda c: "a" in getattr(c, "text", ""), ops.map_text(str.upper))
    assert said(through(loud, deltas("ab", "cd", "a")).items) == ["AB", "cd", "A"]


def test_branch_takes_processors_and_flushes_both_ways() -> None:
    """What a way holds at the end comes out."""

    def keep(kept: list[Chunk], chunk: Chunk) -> list[Chunk]:
        kept.append(chunk)
        return []

    held = ops.stateful(list[Chunk], keep, lambda kept: kept)
    both = ops.branch(lambda c: text_of(c) == "a", held, ops.pipe(held))
    assert said(through(both, deltas("b", "a", "b")).items) == ["a", "b", "b"]
    assert said(through(ops.branch(bool, Upper("u")), deltas("a")).items) == ["A"]


async def test_branch_with_an_async_processor_keeps_the_order() -> None:
    """The next chunk waits until the one before it has left."""
    way = ops.branch(lambda c: text_of(c) == "slow", Guard("g", "never", after=5))
    chunks = ops.of(*deltas("slow", "fast", "slow"))
    assert said(await elements(chunks.pipe(way))) == ["slow", "fast", "slow"]


def test_branch_completes_the_stream_when_a_way_has_seen_enough() -> None:
    """`take_while` in a way is of the whole: nothing comes after it."""
    way = ops.branch(lambda c: text_of(c) == "stop", ops.take_while(lambda c: False))
    witness = through(way, deltas("a", "stop", "b"))
    assert (said(witness.items), witness.ends) == (["a"], ["completed"])


def test_branch_names_itself_when_the_predicate_raises() -> None:
    """And the stage in a way its own."""
    assert "operator 'branch'" in str(
        through(ops.branch(text_fails, ops.text()), deltas("a")).ends[0]
    )
    broken = ops.branch(bool, ops.map(text_fails))
    assert "operator 'map'" in str(through(broken, deltas("a")).ends[0])


def test_branch_refuses_what_has_a_pace_of_its_own() -> None:
    """It could not keep the order."""
    with pytest.raises(ConfigurationError, match=r"branch: map_async.*element by element"):
        ops.branch(bool, ops.map_async(later))


# --- parallel ------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [None, 3], ids=["sync", "async"])
async def test_parallel_lets_through_what_every_guard_passes(after: int | None) -> None:
    """In order, as it came."""
    chunks = deltas("a", "b", "c")
    guards = ops.parallel(Guard("x", "1", after), Guard("y", "2", after))
    assert await elements(ops.of(*chunks).pipe(guards)) == chunks


@pytest.mark.parametrize(("first", "second"), [(None, None), (5, 1), (5, None), (None, 5)])
async def test_parallel_the_first_in_the_list_decides(
    first: int | None, second: int | None
) -> None:
    """Whoever answers sooner; nothing of the chunk leaves, and the source is closed."""
    guards = ops.parallel(Guard("x", "no", first), Guard("y", "no", second))
    seen: list[Any] = []
    source = ops.of(*deltas("a", "no", "b")).pipe(guards, ops.tap(seen.append))
    with pytest.raises(TripWire) as caught:
        await elements(source)
    assert (caught.value.processor_id, said(seen)) == ("x", ["a"])


async def test_parallel_asks_async_guards_at_the_same_time() -> None:
    """Two that wait for each other both get their answer."""
    here = [asyncio.Event(), asyncio.Event()]

    class Meets:
        def __init__(self, me: int) -> None:
            self.id = f"meets-{me}"
            self.me = me

        async def process_output_stream(self, args: Any) -> Any:
            here[self.me].set()
            await here[1 - self.me].wait()
            return args.part

    source = ops.of(*deltas("a"))
    assert said(await elements(source.pipe(ops.parallel(Meets(0), Meets(1))))) == ["a"]


def test_parallel_one_of_them_may_rewrite() -> None:
    """On a copy of its own: the others see what came."""
    witness = through(ops.parallel(Upper("u"), Guard("g", "A")), deltas("a"))
    assert (said(witness.items), witness.ends) == (["A"], ["completed"])


@pytest.mark.parametrize(
    "chunk",
    [
        ToolCall("c", "t", {"deep": [{"x": 1}]}),
        DataChunk("data-n", [{"x": 1}]),
        TextDelta("0", "a", {"deep": {"x": 1}}),
    ],
    ids=["arguments", "data", "metadata"],
)
def test_parallel_a_guard_changes_nothing_but_its_own_copy(chunk: Any) -> None:
    """What it does in place to arguments, data or metadata neither the source nor another sees."""

    def inner(part: Any) -> Any:
        if isinstance(part, DataChunk):
            return part.data[0]
        return (
            part.args["deep"][0] if isinstance(part, ToolCall) else part.provider_metadata["deep"]
        )

    class Edits:
        id = "edits"
        process_data_parts = True

        def process_output_stream(self, args: Any) -> Any:
            inner(args.part)["x"] = 2
            return args.part

    class Looks(Edits):
        id = "looks"
        seen: Any = None

        def process_output_stream(self, args: Any) -> Any:
            Looks.seen = inner(args.part)["x"]
            return args.part

    (out,) = through(ops.parallel(Edits(), Looks()), [chunk]).items
    assert (inner(out)["x"], Looks.seen, inner(chunk)["x"]) == (2, 1, 1)


def test_parallel_two_that_rewrite_have_to_stand_in_a_row() -> None:
    """Named both."""
    witness = through(ops.parallel(Upper("u"), Upper("v")), deltas("a"))
    assert isinstance(witness.ends[0], OperatorError)
    assert "u and v both change" in str(witness.ends[0])
    assert not witness.items


def test_parallel_a_guard_that_raises_fails_the_stream() -> None:
    """Closed, by its name."""

    class Broken:
        id = "broken"

        def process_output_stream(self, args: Any) -> Any:
            raise ValueError

    witness = through(ops.parallel(Guard("x", "y"), Broken()), deltas("a"))
    assert isinstance(witness.ends[0], ProcessorError)
    assert not witness.items


def test_parallel_needs_two_processors() -> None:
    """And processors they have to be."""
    with pytest.raises(ConfigurationError, match="two processors or more, not 1"):
        ops.parallel(Upper("u"))
    with pytest.raises(ConfigurationError, match="parallel: 3 is no processor"):
        ops.parallel(Upper("u"), 3)  # type: ignore[arg-type]  # the point
    with pytest.raises(ConfigurationError, match=r"parallel: .* is no processor"):
        ops.parallel(  # what an operator holds would be lost
            Upper("u"),
            ops.redact("a+"),  # type: ignore[arg-type]  # the point
        )


async def test_what_both_ways_hold_leaves_though_the_first_has_to_wait() -> None:
    """At the end of the source, before a stage that takes its time."""
    first = ops.rechunk("word")
    second = ops.rechunk("word", parts=["reasoning"])
    ways = ops.branch(lambda chunk: isinstance(chunk, TextDelta), first, second)
    source = ops.of(TextDelta("0", "a"), ReasoningDelta("1", "b"))
    got = await elements(source.pipe(ways, ops.map_async(later)))
    assert [chunk.text for chunk in got] == ["a", "b"]
