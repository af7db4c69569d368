"""Element operators and those by kind, and the kernel that they are fused into."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, assert_type

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reactivex import Observable
from reactivex.subject import Subject

from streampipe import (
    Agent,
    Chunk,
    ReasoningDelta,
    TextDelta,
    TextEnd,
    ToolCall,
)
from streampipe import operators as ops
from streampipe.errors import ConfigurationError, OperatorError, WireError
from streampipe.testing import ScriptedModel
from tests.operators.sources import Counting, Witness, elements, reading, through, turns, watched

Op = Callable[[Observable[Any]], Observable[Any]]
CALL = ToolCall("t", "n", {})
HEARD: list[Chunk] = [TextDelta("0", "a"), ReasoningDelta("1", "hm"), CALL, TextDelta("0", "bc")]


def plus(number: int) -> int:
    """Add one."""
    return number + 1


def keep(kept: list[int], number: int) -> list[int]:
    """Hold every second one."""
    kept.append(number)
    return [] if number % 2 else [number]


def hold_all(kept: list[int], number: int) -> list[int]:
    """Hold every one."""
    kept.append(number)
    return []


def is_small(number: int) -> bool:
    """Below five."""
    return number < 5


def twice(number: int) -> list[int]:
    """Two of them."""
    return [number, number]


def added(total: int, number: int) -> int:
    """A sum."""
    return total + number


def look(number: int) -> None:
    """Do nothing."""


def rest(kept: list[int]) -> list[int]:
    """What is left."""
    return kept[-1:]


TABLE: dict[str, tuple[Op, list[Any]]] = {
    "map": (ops.map(plus), [1, 2, 3, 3, 6, 7]),
    "filter": (ops.filter(is_small), [0, 1, 2, 2]),
    "flat_map": (ops.flat_map(twice), [0, 0, 1, 1, 2, 2, 2, 2, 5, 5, 6, 6]),
    "scan": (ops.scan(added, 10), [10, 11, 13, 15, 20, 26]),
    "stateful": (ops.stateful(list[int], keep, rest), [0, 2, 2, 6, 6]),
    "tap": (ops.tap(look), [0, 1, 2, 2, 5, 6]),
    "take_while": (ops.take_while(is_small), [0, 1, 2, 2]),
    "take_while inclusive": (ops.take_while(is_small, inclusive=True), [0, 1, 2, 2, 5]),
    "distinct_until_changed": (ops.distinct_until_changed(), [0, 1, 2, 5, 6]),
    "distinct_until_changed key": (ops.distinct_until_changed(is_small), [0, 5]),
}
GIVEN = [0, 1, 2, 2, 5, 6]


@pytest.mark.parametrize("name", TABLE)
async def test_values(name: str) -> None:
    """On a Subject without a loop and on a source with back-pressure; each time from the start."""
    operator, expected = TABLE[name]
    for _ in range(2):
        witness = through(operator, GIVEN)
        assert (witness.items, witness.ends) == (expected, ["completed"])
        assert await elements(ops.of(*GIVEN).pipe(operator)) == expected


@pytest.mark.parametrize("name", TABLE)
def test_an_empty_source_stays_empty(name: str) -> None:
    """And completes."""
    witness = through(TABLE[name][0], [])
    assert (witness.items, witness.ends) == ([], ["completed"])


@pytest.mark.parametrize("name", TABLE)
def test_an_error_of_the_source_passes(name: str) -> None:
    """As it is, once, behind what came before; nothing is flushed."""
    error = ValueError("mine")
    witness = through(TABLE[name][0], [0], error)
    assert witness.ends == [error]
    assert witness.items == TABLE[name][1][: len(witness.items)]


def broken(*_: Any) -> Any:
    """Raise."""
    msg = "a secret"
    raise ValueError(msg)


FAULTY: dict[str, Op] = {
    "map": ops.map(broken),
    "filter": ops.filter(broken),
    "flat_map": ops.flat_map(broken),
    "scan": ops.scan(broken, 0),
    "stateful": ops.stateful(list[Any], broken),
    "tap": ops.tap(broken),
    "take_while": ops.take_while(broken),
    "distinct_until_changed": ops.distinct_until_changed(broken),
    "map_text": ops.map_text(broken),
}


@pytest.mark.parametrize("name", FAULTY)
async def test_a_function_that_raises_is_named_once(name: str) -> None:
    """With the kind of element, and no text; the source is closed."""
    chunk = TextDelta("0", "a secret")
    (error,) = through(FAULTY[name], [chunk]).ends
    assert isinstance(error, OperatorError)
    assert str(error) == f"operator {name!r}: ValueError on text-delta; see __cause__"
    assert isinstance(error.__cause__, ValueError)

    def said(_number: int) -> Chunk:
        return chunk

    counting = Counting()
    source = ops.from_aiter(counting).pipe(ops.map(said), FAULTY[name])
    with pytest.raises(OperatorError, match=name):
        await elements(source)
    assert counting.closed == 1


def test_an_error_of_ours_is_not_trusted_with_the_text() -> None:
    """A function may raise one with a chunk's text in its message."""

    def broken_wire(chunk: Chunk) -> Chunk:
        raise WireError(str(chunk))

    (error,) = through(ops.map(broken_wire), [TextDelta("0", "a secret")]).ends
    assert str(error) == "operator 'map': WireError on text-delta; see __cause__"


def test_who_asks_is_told_the_element() -> None:
    """For debugging: pipelines that are built in the block."""
    with ops.revealing():
        loud = ops.map(broken)
    (error,) = through(loud, [TextDelta("0", "it")]).ends
    assert "ValueError on text-delta: a secret; the element was TextDelta" in str(error)


@pytest.mark.parametrize("name", TABLE)
async def test_leaving_early_closes_the_source(name: str) -> None:
    """Whatever the operator holds."""
    counting = Counting()
    async with reading(ops.from_aiter(counting).pipe(TABLE[name][0])) as items:
        await anext(items)
    assert counting.closed == 1


async def test_take_while_closes_the_source_at_once() -> None:
    """No element more is read than the one that ended it."""
    counting = Counting()
    source = ops.from_aiter(counting).pipe(ops.map(plus), ops.take_while(is_small))
    assert await elements(source) == [1, 2, 3, 4]
    assert (counting.given, counting.closed) == (5, 1)


def test_an_end_in_the_middle_flushes_what_is_behind_it() -> None:
    """What stands before it has nothing more to say; also when a flush is what ends it."""
    hold = ops.stateful(list[int], hold_all, lambda kept: kept)
    chain = ops.pipe(hold, ops.take_while(is_small), ops.stateful(list[int], keep, rest))
    assert through(chain, [1, 3, 9, 4]).items == [3]
    assert through(ops.pipe(ops.take_while(is_small), hold), [1, 9, 2]).items == [1]


def test_an_element_may_be_emitted_from_within() -> None:
    """A Subject that its own reader feeds."""
    subject: Subject[int] = Subject()
    seen: list[int] = []

    def more(number: int) -> None:
        seen.append(number)
        if number < 3:
            subject.on_next(number)

    subject.pipe(ops.map(plus), ops.filter(is_small)).subscribe(more)
    subject.on_next(0)
    assert seen == [1, 2, 3]


async def test_a_slow_end_is_waited_for_in_the_middle_of_many() -> None:
    """What one element becomes leaves one at a time; the source waits as well."""
    both = ops.pipe(ops.flat_map(twice), ops.stateful(list[int], keep, rest))
    counting = Counting()
    async with reading(ops.from_aiter(counting).pipe(both), high_water=1) as items:
        await anext(items)
        await turns()
        assert counting.given == 1


async def test_the_same_operator_may_stand_twice() -> None:
    """Before and behind a boundary too: each has its own state, and ends its own part."""
    first = ops.take_while(is_small)

    async def later(number: int) -> int:
        await asyncio.sleep(0)
        return number + 3

    source = ops.of(0, 1, 2, 3).pipe(first, ops.map_async(later), first, ops.map(plus))
    assert await elements(source) == [4, 5]


ones = st.sampled_from(
    [
        ops.map(plus),
        ops.filter(lambda n: n % 3),  # type: ignore[operator]  # numbers here
        ops.flat_map(twice),
        ops.scan(added, 0),
        ops.stateful(list[int], keep, rest),
        ops.take_while(lambda n: n < 40),  # type: ignore[operator]  # numbers here
        ops.distinct_until_changed(),
        ops.map(lambda n: 60 // (n - 7)),  # type: ignore[operator]  # raises for 7
    ]
)


@given(st.lists(ones, max_size=6), st.lists(st.integers(0, 9), max_size=8))
def test_fusing_changes_nothing(chain: list[Op], numbers: list[int]) -> None:
    """Elements, end and failure of any chain, on both kinds of source."""

    def ended(witness: Witness) -> Any:
        return witness.items, [str(end) for end in witness.ends]

    async def read(pipeline: Op) -> Any:
        witness, _ = watched(ops.of(*numbers).pipe(pipeline))
        await witness.ended.wait()
        return ended(witness)

    fused = ended(through(ops.pipe(*chain), numbers))
    assert fused == asyncio.run(read(ops.pipe(*chain)))
    with ops.fusion(enabled=False):
        assert fused == ended(through(ops.pipe(*chain), numbers))
        assert fused == asyncio.run(read(ops.pipe(*chain)))


async def later(number: int) -> bool:
    """Take a while to say no."""
    return number < 0


@pytest.mark.parametrize(
    "make",
    [
        ops.map,
        ops.filter,
        ops.flat_map,
        ops.tap,
        ops.take_while,
        ops.distinct_until_changed,
        ops.map_text,
        lambda fn: ops.scan(fn, 0),
        lambda fn: ops.stateful(list[int], fn),
        lambda fn: ops.branch(fn, ops.tap(look)),
    ],
    ids=[
        *[
            "map",
            "filter",
            "flat_map",
            "tap",
            "take_while",
            "distinct",
            "map_text",
            "scan",
            "stateful",
            "branch",
        ]
    ],
)
def test_what_is_no_plain_function_is_refused(make: Any) -> None:
    """A coroutine function would be true for every element: a filter that lets all of them pass."""
    for bad, message in ((3, "must be a function, not 3"), (later, "plain function; for an async")):
        with pytest.raises(ConfigurationError, match=message):
            make(bad)


@pytest.mark.parametrize(
    "make",
    [ops.filter, ops.take_while, lambda p: ops.branch(p, ops.tap(look))],
    ids=["filter", "take_while", "branch"],
)
def test_a_predicate_that_has_to_be_awaited_fails_closed(make: Any) -> None:
    """Though it is a plain function that hands the coroutine back."""
    witness = through(make(lambda n: later(n + 1)), [1])
    assert witness.items == []
    assert "predicate returned coroutine; " in str(witness.ends[0])


# --- by kind of chunk ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (ops.of_type(ToolCall), [CALL]),
        (ops.of_type(ToolCall, ReasoningDelta), [HEARD[1], CALL]),
        (ops.tool_calls(), [CALL]),
        (ops.text(), ["a", "bc"]),
        (ops.reasoning(), ["hm"]),
        (ops.accumulate_text(), ["a", "abc"]),
        (ops.map_text(str.upper), [TextDelta("0", "A"), *HEARD[1:3], TextDelta("0", "BC")]),
    ],
)
async def test_by_kind(operator: Any, expected: list[Any]) -> None:
    """Each time from the start; empty pieces say nothing."""
    for _ in range(2):
        assert through(operator, HEARD).items == expected
        assert await elements(ops.of(*HEARD).pipe(operator)) == expected
    assert through(ops.text(), [TextDelta("0", "")]).items == []


def test_map_text_keeps_what_the_chunk_carries() -> None:
    """In a new chunk: the one that came may be shared."""
    chunk = TextDelta("0", "a", {"n": 1}, run_id="r", from_="USER")
    (made,) = through(ops.map_text(str.upper), [chunk]).items
    assert made == TextDelta("0", "A", {"n": 1}, run_id="r", from_="USER")
    assert chunk.text == "a"


def test_map_text_refuses_what_is_no_text() -> None:
    """By its name."""
    (error,) = through(ops.map_text(len), [TextDelta("0", "a")]).ends  # type: ignore[arg-type]  # what is refused
    assert "operator 'map_text': fn returned int for a string" in str(error)


def test_of_type_takes_chunk_classes() -> None:
    """When it is built."""
    with pytest.raises(ConfigurationError, match="of_type: takes chunk classes"):
        ops.of_type("text-delta")  # type: ignore[call-overload]  # what is refused


# --- in a run ----------------------------------------------------------------------------------


async def test_take_while_ends_the_models_answer() -> None:
    """The run goes on with what was said; the model is closed."""
    model = ScriptedModel([["a", "b", "STOP", "c"]])
    until = ops.take_while(lambda c: getattr(c, "text", "") != "STOP")
    result = await Agent(model=model, output_processors=[until]).generate("hi")
    assert (result.text, result.error) == ("ab", None)


async def test_take_while_over_a_run_cancels_it() -> None:
    """No task is left, and no failure told."""
    agent = Agent(model=ScriptedModel([["a", "b"]]))
    before = ops.take_while(lambda c: c.type != "text-delta")
    kinds = [chunk.type for chunk in await elements(agent.observe("hi").pipe(before))]
    assert kinds == ["start", "step-start", "response-metadata", "text-start"]


async def test_operators_and_processors_stand_in_list_order() -> None:
    """Each is given what the one before it let through."""

    class Adds:
        def __init__(self, letter: str) -> None:
            self.id = letter

        def process_output_stream(self, args: Any) -> Any:
            if isinstance(args.part, TextDelta):
                args.part.text += self.id
            return args.part

    chain = [Adds("1"), ops.map_text(lambda t: t + "2"), ops.pipe(), Adds("3"), ops.tap(str)]
    result = await Agent(model=ScriptedModel([["x"]]), output_processors=chain).generate("hi")
    assert result.text == "x123"


async def test_an_operator_that_fails_in_a_run_is_named() -> None:
    """In the error, and in the chunk that the client gets."""
    agent = Agent(model=ScriptedModel([["a"]]), output_processors=[ops.tap(broken)])
    with pytest.raises(OperatorError, match="operator 'tap': ValueError on"):
        await agent.generate("hi")


async def test_what_an_operator_holds_comes_before_the_end_of_the_step() -> None:
    """A `finish` function belongs to the model's stream."""

    def hold(kept: list[Chunk], chunk: Chunk) -> list[Chunk]:
        kept.append(chunk)
        return []

    late = ops.stateful(list[Chunk], hold, lambda kept: kept)
    agent = Agent(model=ScriptedModel([["a", "b"]]), output_processors=[late])
    chunks = await elements(agent.observe("hi"))
    kinds = [chunk.type for chunk in chunks]
    assert kinds.index("text-delta") < kinds.index("step-finish")
    assert [c.text for c in chunks if isinstance(c, TextDelta)] == ["a", "b"]


def test_types_are_those_of_the_functions() -> None:
    """A lambda is given a chunk; a function with annotations keeps them."""
    source: Observable[Chunk] = ops.of(TextEnd("0"))
    assert_type(source.pipe(ops.map(lambda c: c.type)), Observable[str])
    assert_type(source.pipe(ops.filter(lambda c: c.type != "x")), Observable[Chunk])
    assert_type(source.pipe(ops.text(), ops.map(str.upper)), Observable[str])
    assert_type(source.pipe(ops.of_type(TextDelta), ops.map(lambda c: c.run_id)), Observable[str])
    assert_type(source.pipe(ops.tool_calls()), Observable[ToolCall])
    assert_type(source.pipe(ops.flat_map(lambda c: [c.type])), Observable[str])
    assert_type(source.pipe(ops.scan(lambda n, _: n + 1, 0)), Observable[int])
    assert_type(source.pipe(ops.tap(print)), Observable[Chunk])
    assert_type(source.pipe(ops.redact("a+")), Observable[Chunk])
    assert_type(source.pipe(ops.to_sse()), Observable[bytes])
    assert_type(ops.pipe(ops.text(), ops.map(len))(source), Observable[int])
