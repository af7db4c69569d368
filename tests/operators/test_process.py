"""`process` and `process_all`: the stream hooks of processors as one stage."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import reactivex
from hypothesis import given
from hypothesis import strategies as st
from reactivex import operators as rx
from reactivex.subject import Subject

from streampipe import DataChunk, FinishChunk, TextDelta, TextEnd, TripWire, TripwireChunk
from streampipe import operators as ops
from streampipe.chunks import Chunk
from streampipe.errors import ConfigurationError, ProcessorError


class Upper:
    """Rewrites text."""

    id = "upper"

    def process_output_stream(self, args: Any) -> Chunk:
        """Shout."""
        if isinstance(args.part, TextDelta):
            return TextDelta(args.part.id, args.part.text.upper())
        return args.part  # type: ignore[no-any-return]  # args are Any here


class DropVowels:
    """Drops a chunk that is a vowel."""

    id = "drop"

    def process_output_stream(self, args: Any) -> Chunk | None:
        """Drop or pass."""
        return None if getattr(args.part, "text", "") in ("a", "A") else args.part


class Twice:
    """Emits every text twice."""

    id = "twice"

    def process_output_stream(self, args: Any) -> Any:
        """One to two."""
        part = args.part
        return [part, TextDelta(part.id, part.text)] if isinstance(part, TextDelta) else part


class Hold:
    """Holds text until its part ends."""

    id = "hold"

    def process_output_stream(self, args: Any) -> Any:
        """Hold, and flush before the end."""
        held = args.state.setdefault("held", [])
        if isinstance(args.part, TextDelta):
            held.append(args.part.text)
            return None
        if isinstance(args.part, TextEnd):
            text = "".join(held)
            held.clear()
            return [TextDelta(args.part.id, text), args.part]
        return args.part


class Tell:
    """Writes a data chunk before every text."""

    id = "tell"

    def process_output_stream(self, args: Any) -> Any:
        """Tell, then pass."""
        if isinstance(args.part, TextDelta):
            args.writer.custom({"type": "data-told", "data": args.part.text})
        return args.part


class Number:
    """Numbers the data chunks that it sees."""

    id = "number"
    process_data_parts = True

    def process_output_stream(self, args: Any) -> Any:
        """Count in its state."""
        if isinstance(args.part, DataChunk):
            args.state["n"] = args.state.get("n", 0) + 1
            return DataChunk(args.part.type, [args.state["n"], args.part.data])
        return args.part


class Stop:
    """Blocks at the third text."""

    id = "stop"

    def process_output_stream(self, args: Any) -> Any:
        """Count, then block."""
        if isinstance(args.part, TextDelta):
            args.state["n"] = args.state.get("n", 0) + 1
            if args.state["n"] == 3:
                args.abort("three", metadata={"n": 3})
        return args.part


KINDS: list[type[Any]] = [Upper, DropVowels, Twice, Hold, Tell, Number, Stop]


def twin(kind: type[Any]) -> Any:
    """The same processor with an async hook."""

    async def process_output_stream(self: Any, args: Any) -> Any:
        await asyncio.sleep(0)
        return kind.process_output_stream(self, args)

    return type(kind.__name__, (kind,), {"process_output_stream": process_output_stream})()


async def outcome(pipeline: Any) -> tuple[list[Chunk], str]:
    """What a pipeline emitted, and how it ended."""
    got: list[Chunk] = []
    try:
        async for chunk in ops.to_aiter(pipeline):
            got.append(chunk)  # noqa: PERF401 - what came before an error counts
    except (TripWire, ProcessorError) as error:
        return got, repr(error)
    return got, "completed"


def text_of(chunk: Any) -> str:
    """The text of a text chunk."""
    return str(chunk.text)


chunks = st.lists(
    st.one_of(
        st.sampled_from("abcA").map(lambda text: TextDelta("0", text)),
        st.just(TextEnd("0")),
        st.just(FinishChunk()),
        st.integers(0, 3).map(lambda n: DataChunk("data-x", n)),
    ),
    max_size=12,
)
chains = st.lists(st.sampled_from(KINDS), max_size=4, unique=True)


@given(chunks, chains)
async def test_fused_equals_one_by_one(source: list[Chunk], chain: list[type[Any]]) -> None:
    """A list of processors is the same as its processors one after the other (law 3)."""
    fused = ops.of(*source).pipe(ops.process_all([kind() for kind in chain]))
    singly = ops.of(*source).pipe(*(ops.process(kind()) for kind in chain))
    assert await outcome(fused) == await outcome(singly)


@given(chunks, chains, st.data())
async def test_async_twins_give_the_same_stream(
    source: list[Chunk],
    chain: list[type[Any]],
    data: st.DataObject,
) -> None:
    """Which hooks are coroutines makes no difference to what comes out (law 4)."""
    colours = data.draw(st.lists(st.booleans(), min_size=len(chain), max_size=len(chain)))
    twins = [twin(k) if is_async else k() for k, is_async in zip(chain, colours, strict=True)]
    sync = ops.of(*source).pipe(ops.process_all([kind() for kind in chain]))
    mixed = ops.of(*source).pipe(ops.process_all(twins))
    assert await outcome(sync) == await outcome(mixed)


@given(chunks, chains)
async def test_a_plain_observable_gives_the_same_as_a_flowable(
    source: list[Chunk],
    chain: list[type[Any]],
) -> None:
    """Sync processors run on any observable, without an event loop's help."""
    got: list[Chunk] = []
    ends: list[str] = []
    reactivex.from_iterable(source).pipe(
        ops.process_all([kind() for kind in chain]),
    ).subscribe(got.append, lambda e: ends.append(repr(e)), lambda: ends.append("completed"))
    expected, end = await outcome(ops.of(*source).pipe(ops.process_all([k() for k in chain])))
    assert (got, ends) == (expected, [end])


def test_nothing_comes_after_a_block_on_a_plain_observable() -> None:
    """A subject that goes on pushing is detached at the block; one error, no completion."""
    subject: Subject[Chunk] = Subject()
    got: list[Any] = []
    subject.pipe(ops.process(Stop())).subscribe(
        got.append, got.append, lambda: got.append("completed")
    )
    for text in "vwxyz":
        subject.on_next(TextDelta("0", text))
    subject.on_completed()
    assert [getattr(g, "text", None) or repr(g) for g in got] == ["v", "w", "TripWire('three')"]
    assert not subject.observers


async def test_written_chunks_stand_before_the_part_and_only_later_processors_see_them() -> None:
    """A writer's chunk precedes what is being processed; the ones before it never see it."""
    before, after = Number(), Number()
    before.id, after.id = "before", "after"
    stage = ops.process_all([before, Tell(), after])
    got, _ = await outcome(ops.of(TextDelta("0", "x"), TextDelta("0", "y")).pipe(stage))
    told = [c.data if isinstance(c, DataChunk) else text_of(c) for c in got]
    assert told == [[1, "x"], "x", [2, "y"], "y"]


async def test_tripwire_chunks_pass_untouched() -> None:
    """What ends a run is no business of a stream hook."""
    seen: list[Chunk] = []

    class Spy:
        id = "spy"

        def process_output_stream(self, args: Any) -> None:
            seen.append(args.part)

    got, _ = await outcome(ops.of(TripwireChunk("why"), TextEnd()).pipe(ops.process(Spy())))
    assert got == [TripwireChunk("why")]
    assert seen == [TextEnd()]


async def test_stream_parts_holds_what_the_processor_was_given() -> None:
    """History is what predecessors left, bounded by `stream_window`."""

    class Window(Upper):
        id = "window"
        stream_window = 2
        seen: list[list[str]] = []  # noqa: RUF012 - read after the run

        def process_output_stream(self, args: Any) -> Chunk:
            self.seen.append([p.text for p in args.stream_parts])
            return super().process_output_stream(args)

    source = ops.of(*(TextDelta("0", text) for text in "abc"))
    await outcome(source.pipe(ops.process_all([Upper(), Window()])))
    assert Window.seen == [["A"], ["A", "B"], ["B", "C"]]


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        (7, "returned int; return a chunk, a list of chunks or None"),
        ({"type": "text-delta", "payload": {"id": "0", "txt": "x"}}, "unknown key 'txt'"),
        ([TextDelta("0", "x"), "y"], "returned str"),
    ],
)
async def test_what_is_no_chunk_is_an_error_that_names_the_processor(
    returned: Any,
    told: str,
) -> None:
    """A wrong return value ends the stream, saying who and what."""

    class Wrong:
        id = "wrong"

        def process_output_stream(self, args: Any) -> Any:
            return returned

    got, end = await outcome(ops.of(TextDelta("0", "a")).pipe(ops.process(Wrong())))
    assert got == []
    assert "'wrong', process_output_stream" in end
    assert told in end


async def test_a_sync_hook_that_returns_a_coroutine_is_told_to_be_async() -> None:
    """The coroutine is closed, so nothing is left behind."""

    class Sneaky:
        id = "sneaky"

        def process_output_stream(self, args: Any) -> Any:
            return asyncio.sleep(0)

    _, end = await outcome(ops.of(TextDelta("0", "a")).pipe(ops.process(Sneaky())))
    assert "async def" in end


async def test_an_abort_that_the_hook_swallows_counts_all_the_same() -> None:
    """Even a bare `except BaseException` cannot undo a block."""

    class Swallow:
        id = "swallow"

        def process_output_stream(self, args: Any) -> Any:
            try:
                args.abort("no")
            except BaseException:  # noqa: BLE001 - what is tested
                return args.part

    got, end = await outcome(ops.of(TextDelta("0", "a")).pipe(ops.process(Swallow())))
    assert (got, end) == ([], "TripWire('no')")


async def test_rx_operators_mix_freely() -> None:
    """Stages of reactivex stand before and behind ours."""
    pipeline = ops.of(*(TextDelta("0", text) for text in "abcd")).pipe(
        rx.filter(lambda c: text_of(c) != "b"),
        ops.process(Upper()),
        rx.map(text_of),
    )
    assert [text async for text in ops.to_aiter(pipeline)] == ["A", "C", "D"]


@pytest.mark.parametrize(
    ("processors", "told"),
    [
        ([Upper(), Upper()], "two processors with id 'upper'"),
        ([Upper], "is a class; give an instance"),
        ([object()], "no processor"),
    ],
)
def test_bad_lists_are_refused_when_built(processors: list[Any], told: str) -> None:
    """Before anything is subscribed to."""
    with pytest.raises(ConfigurationError, match=told):
        ops.of().pipe(ops.process_all(processors))
