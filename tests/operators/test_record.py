"""The recorder: what it tells of a pipeline, and what it leaves as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reactivex import operators as rx

from streampipe import Agent, Chunk, Recorder, TextDelta, ToolCall, TripWire, tool
from streampipe import operators as ops
from streampipe.agent._route import Route
from streampipe.errors import ConfigurationError
from streampipe.operators._inside import MOST_INSIDE, MOST_TEXTS
from streampipe.operators._scope import Scope
from streampipe.testing import ScriptedModel, call, chunk_streams, run_virtual
from streampipe.text import pii, secrets
from tests.operators.sources import deltas, elements, push, recorded, through

MAIL = "someone@example.com"
KEY = "sk-" + "ant-api03-" + "aZ3kQ9xB7mT2vL5" * 6


def told(recorder: Recorder, stage: str) -> list[tuple[tuple[int, ...], str]]:
    """What a stage did, by origins."""
    return [(r.origins, r.verdict) for r in recorder.records if r.stage.startswith(stage)]


@tool
def noted() -> str:
    """Note it."""
    return "noted"


async def later(chunk: Any) -> Any:
    """Give it back, some turns later."""
    for _ in range(len(repr(chunk)) % 3):
        await asyncio.sleep(0)
    return chunk


PIPELINES: dict[str, Callable[[], list[Any]]] = {
    "one kernel": lambda: [
        ops.filter(lambda c: "b" not in getattr(c, "text", "")),
        ops.map_text(str.upper),
        ops.redact(pii),
        ops.rechunk("word"),
    ],
    "async": lambda: [ops.batch(3), ops.map_async(later, concurrency=3), ops.rechunk("line")],
    "foreign": lambda: [rx.filter(lambda c: True), ops.text(), rx.map(len)],
    "ends early": lambda: [ops.limit_text(chars=5), ops.tap(print), ops.to_jsonl()],
    "one to many": lambda: [ops.flat_map(lambda c: [c, c]), ops.distinct_until_changed()],
    "a pipeline in one": lambda: [ops.pipe(ops.tap(repr), ops.pipe(ops.to_wire()))],
}


@pytest.mark.parametrize("which", PIPELINES)
@given(data=st.data())
def test_a_recorder_changes_nothing_that_leaves(which: str, data: st.DataObject) -> None:
    """What leaves a recorded pipeline is what leaves the same pipeline unrecorded."""
    chunks = data.draw(chunk_streams())
    operators = PIPELINES[which]()

    async def both() -> tuple[list[Any], list[Any], Recorder]:
        plain = await elements(ops.to_aiter(ops.pipe(*operators)(ops.of(*chunks))))
        left, recorder = await recorded(*operators, chunks=chunks)
        return plain, left, recorder

    plain, left, recorder = asyncio.run(both())
    assert left == plain
    assert len([r for r in recorder.records if r.stage == "client"]) == len(plain)
    assert all(r.verdict != "held" or r.time_out is not None for r in recorder.records)
    assert recorder.marbles()


@given(
    pieces=st.lists(st.text("ab \n.", min_size=1, max_size=6), max_size=12),
    by=st.sampled_from(["word", "line", "sentence", "grapheme"]),
)
def test_text_that_is_only_cut_anew_names_the_pieces_it_was_in(pieces: list[str], by: Any) -> None:
    """The origins of each client chunk are exactly the source's pieces that its text stands in."""
    chunks = deltas(*pieces)
    left, recorder = asyncio.run(recorded(ops.rechunk(by), chunks=chunks))
    spans: list[tuple[int, int]] = []
    place = 0
    for piece in pieces:
        spans.append((place, place + len(piece)))
        place += len(piece)
    place = 0
    records = [record for record in recorder.records if record.stage == "client"]
    for chunk, record in zip(left, records, strict=True):
        end = place + len(chunk.text)
        expected = [n for n, (start, stop) in enumerate(spans) if start < end and stop > place]
        assert record.origins == tuple(expected)
        place = end


async def test_passed_rewritten_dropped_and_held_are_told_apart() -> None:
    """Each stage has its own verdict on each chunk, whether or not it copies what it passes."""
    _, recorder = await recorded(
        ops.filter(lambda c: getattr(c, "text", "") != "b "),
        ops.map_text(lambda text: text.upper() if text == "c " else text),
        ops.rechunk("line"),
        chunks=deltas("a ", "b ", "c ", "d\n"),
    )
    assert told(recorder, "source") == [((n,), "passed") for n in range(4)]
    assert told(recorder, "filter") == [
        ((0,), "passed"),
        ((1,), "dropped"),
        ((2,), "passed"),
        ((3,), "passed"),
    ]
    assert told(recorder, "map_text") == [
        ((0,), "passed"),
        ((2,), "rewritten"),
        ((3,), "passed"),
    ]
    assert told(recorder, "rechunk") == [((n,), "rewritten") for n in (0, 2, 3)]
    assert told(recorder, "client") == [((0, 2, 3), "passed")]


async def test_what_leaves_later_as_it_came_was_held() -> None:
    """A piece that leaves later, as it came, was held; its time out is that of its leaving."""
    chunks = [*deltas("wo"), ToolCall("t", "n"), *deltas("rd ")]
    _, recorder = await recorded(ops.rechunk("word"), chunks=chunks)
    held = next(r for r in recorder.records if r.verdict == "held")
    assert (held.kind, held.origins) == ("text-delta", (0,))
    assert held.time_out is not None
    assert held.time_out > held.time_in


async def test_a_replacement_names_all_that_it_stands_for() -> None:
    """A mask comes from every piece the match stood in, and from no piece before or behind."""
    _, recorder = await recorded(
        ops.redact(pii), chunks=deltas("to ", MAIL[:9], MAIL[9:], " and", " more ", "x")
    )
    client = [(r.origins, r.text) for r in recorder.records if r.stage == "client"]
    masked = [origins for origins, text in client if "[" in str(text)]
    assert masked == [(1, 2, 3)]
    assert client[0] == ((0,), "to ")


async def test_a_rewritten_text_names_what_the_stage_no_longer_holds() -> None:
    """What a rewriting stage still holds is no origin of what has left, and one of what will."""
    _, recorder = await recorded(ops.replace("key=", "k:"), chunks=deltas("key=1 ke", "y=2 "))
    assert told(recorder, "client") == [((0,), "passed"), ((0, 1), "passed")]


async def test_an_async_stage_that_copies_gives_one_for_one() -> None:
    """Behind a stage with a pace of its own, a rewritten chunk is the oldest that is inside."""

    async def loud(chunk: Any) -> Any:
        await later(chunk)
        return TextDelta("0", chunk.text.upper())

    _, recorder = await recorded(
        ops.map_async(loud, concurrency=3), chunks=deltas("a", "bb", "ccc", "d")
    )
    assert told(recorder, "client") == [((n,), "passed") for n in range(4)]
    assert told(recorder, "map_async") == [((n,), "rewritten") for n in range(4)]


async def test_who_blocks_is_the_cause_and_what_is_lost_for_it_the_consequence() -> None:
    """The chunk a guard blocked is blocked, with the reason; what is held elsewhere is voided."""
    recorder = Recorder()
    guarded = ops.pipe(ops.tap(repr), ops.rechunk("line"), ops.block(secrets), recorder=recorder)
    chunks = [*deltas("well\n"), TextDelta("other", "held"), *deltas(f"{KEY} \n", " gone\n")]
    with pytest.raises(TripWire) as caught:
        await elements(guarded(ops.of(*chunks)))
    blocked = [r for r in recorder.records if r.verdict == "blocked"]
    assert [(r.stage[:5], r.origins, r.reason) for r in blocked] == [
        ("block", (2,), caught.value.reason)
    ]
    lost = [(r.stage, r.origins, r.reason) for r in recorder.records if r.verdict == "voided"]
    assert lost == [("rechunk('line')", (1,), f"{blocked[0].stage} stopped it")]
    assert told(recorder, "tap") == [((n,), "passed") for n in range(3)]


async def test_an_async_check_blocks_the_text_that_it_was_on() -> None:
    """A stage with a pace of its own is found by its name; what it held behind is voided."""

    async def polite(text: str) -> bool:
        return "rude" not in text

    recorder = Recorder()
    checked = ops.pipe(ops.tap(repr), ops.check_async(polite, window="line"), recorder=recorder)
    with pytest.raises(TripWire):
        await elements(checked(ops.of(*deltas("fine\n", "rude\n", "well\n"))))
    assert told(recorder, "check_async") == [
        ((0,), "held"),
        ((1,), "blocked"),
        ((2,), "voided"),
    ]


async def test_a_stage_that_fails_is_told_by_the_class_of_its_error() -> None:
    """An operator's function that raises is the cause; no text of the error is recorded."""

    def fails(_chunk: Any) -> Any:
        raise ValueError(KEY)

    recorder = Recorder()
    failing = ops.pipe(ops.tap(repr), ops.map(fails), recorder=recorder)
    with pytest.raises(Exception, match="map"):
        await elements(failing(ops.of(*deltas("a"))))
    assert [(r.stage[:3], r.reason) for r in recorder.records if r.verdict == "blocked"] == [
        ("map", "OperatorError")
    ]


def test_a_subscriber_that_raises_is_no_stage_s_fault() -> None:
    """What the client itself raises is not told of the last stage."""
    recorder = Recorder()

    def client(_chunk: Any) -> None:
        raise ValueError("a client")

    async def main() -> None:
        source = ops.pipe(ops.tap(repr), recorder=recorder)(ops.of(*deltas("a")))
        await ops.to_aiter(source).__anext__()
        with pytest.raises(ValueError, match="a client"):
            await source.into(client)  # type: ignore[attr-defined]  # a Flowable

    asyncio.run(main())
    assert not [r for r in recorder.records if r.verdict == "blocked"]


class Judge:
    """Rejects the first attempt, blocks the second."""

    id = "judge"

    def process_output_stream(self, args: Any) -> Any:
        """Abort on a word."""
        if isinstance(args.part, TextDelta) and "bad" in args.part.text:
            args.abort("a bad word", retry=args.retry_count == 0)
        return args.part


async def test_a_run_is_recorded_from_the_model_to_the_client() -> None:
    """Processors and operators are stages; step and attempt are told; a rejected one is void."""
    recorder = Recorder()
    agent = Agent(
        model=ScriptedModel([["fine ", "bad "], ["well ", "bad ", "x"]]),
        output_processors=[ops.rechunk("word"), Judge()],
        max_processor_retries=1,
    )
    result = await agent.generate("hi", recorder=recorder)
    assert result.tripwire is not None
    assert recorder.runs[-1].stages == ["model", "rechunk('word')", "judge"]
    texts = [
        (r.attempt, r.text, r.verdict)
        for r in recorder.records
        if (r.stage, r.kind) == ("client", "text-delta")
    ]
    assert texts == [(0, "fine ", "voided"), (1, "well ", "voided")]
    blocked = [(r.stage, r.attempt, r.reason) for r in recorder.records if r.verdict == "blocked"]
    assert blocked == [("judge", 0, "a bad word"), ("judge", 1, "a bad word")]
    kinds = [(r.kind, r.verdict) for r in recorder.records if r.stage == "client"]
    assert kinds[0] == ("start", "passed"), "the run's start is of no attempt"
    assert ("step-finish", "passed") in kinds, "what says that an attempt is void is not void"


@pytest.mark.parametrize("hook", ["process_output_stream", "process_output_result"])
async def test_a_block_voids_the_step_that_it_fell_in(hook: str) -> None:
    """As in the result, where the step is missing: steps before it stand."""

    class Stop:
        id = "stop"

    def stop(args: Any) -> Any:
        if len(getattr(args, "message_list").all) > 2:  # noqa: B009 - the second step
            args.abort("enough")
        return getattr(args, "part", None)

    setattr(Stop, hook, staticmethod(stop))
    recorder = Recorder()
    model = ScriptedModel([["first ", call("noted", {})], ["second"]])
    agent = Agent(model=model, tools=[noted], output_processors=[Stop()])
    result = await agent.generate("hi", recorder=recorder)
    assert (result.text, result.tripwire is not None) == ("first ", True)
    client = [r for r in recorder.records if r.stage == "client"]
    second = [r.kind for r in client].index("step-start", 2)
    assert {r.verdict for r in client[:second]} == {"passed"}
    assert {(r.verdict, r.reason) for r in client[second:-2]} == {("voided", "stop stopped it")}
    assert [(r.kind, r.verdict) for r in client[-2:]] == [
        ("tripwire", "passed"),
        ("finish", "passed"),
    ]


async def test_a_block_before_the_first_step_voids_nothing() -> None:
    """There is no step that it could have fallen in."""

    class Stop:
        id = "stop"

        def process_input(self, args: Any) -> Any:
            args.abort("not this")

    recorder = Recorder()
    agent = Agent(model=ScriptedModel([["a"]]), input_processors=[Stop()])
    await agent.generate("hi", recorder=recorder)
    client = [(r.kind, r.verdict) for r in recorder.records if r.stage == "client"]
    assert client == [(kind, "passed") for kind in ("start", "tripwire", "finish")]


async def test_in_a_run_each_operator_of_a_pipeline_is_a_stage() -> None:
    """In `output_processors` origins are as exact as in a pipeline, and lanes are as many."""
    recorder = Recorder()
    guard = ops.pipe(ops.redact(pii), ops.rechunk("word"), name="guard")
    agent = Agent(
        model=ScriptedModel([["to ", MAIL[:4], MAIL[4:], " and ", "more"]]),
        output_processors=[guard],
    )
    await agent.generate("hi", recorder=recorder)
    assert [stage[:7] for stage in recorder.runs[-1].stages] == ["model", "redact(", "rechunk"]
    first = min(r.origins[0] for r in recorder.records if r.kind == "text-delta")
    client = [
        (tuple(n - first for n in r.origins), r.text)
        for r in recorder.records
        if (r.stage, r.kind) == ("client", "text-delta")
    ]
    assert client == [
        ((0,), "to "),
        ((1, 2, 3), "[EMAIL] "),
        ((1, 2, 3), "and "),
        ((4,), "more"),
    ]
    assert not [r for r in recorder.records if r.verdict == "dropped"]


async def test_a_wire_between_chunks_blocks_no_chunk() -> None:
    """A hook that is given no chunk stops the run: what had passed stays passed at every stage."""

    class Late:
        id = "late"

        def process_output_stream(self, args: Any) -> Any:
            return args.part

        def process_output_step(self, args: Any) -> None:
            if args.retry_count == 0:
                args.abort("too late", retry=True)

    recorder = Recorder()
    model = ScriptedModel([["a"], ["b"]])
    agent = Agent(model=model, output_processors=[Late()], max_processor_retries=1)
    assert (await agent.generate("hi", recorder=recorder)).text == "b"
    assert not [r for r in recorder.records if r.verdict == "blocked"]
    assert {verdict for _, verdict in told(recorder, "late")} == {"passed"}
    reasons = {r.reason for r in recorder.records if r.verdict == "voided"}
    assert reasons == {"late stopped it"}


async def test_a_run_that_is_watched_is_the_same_run() -> None:
    """With a recorder the client is told the same, whatever stands in the list."""
    script = [["one ", "two ", "three"]]

    async def run(recorder: Recorder | None) -> list[Any]:
        agent = Agent(
            model=ScriptedModel(script),
            output_processors=[Judge(), rx.filter(lambda c: True), ops.map_text(str.upper)],
        )
        async with agent.stream("hi", recorder=recorder) as seen:
            return [(c.type, getattr(c, "text", "")) async for c in seen]

    assert await run(Recorder()) == await run(None)


def test_without_a_recorder_the_kernels_are_the_same_objects() -> None:
    """A pipeline's stages are its operators' own; a run's chain begins with its own end."""
    first, second = ops.tap(print), ops.redact(pii)
    made: Any = ops.pipe(first, second, recorder=None)
    assert made.stages is not None
    own = [*first.stages, *second.stages]  # type: ignore[attr-defined]  # operators have them
    assert all(stage is known for stage, known in zip(made.stages, own, strict=True))

    def end(_chunk: Chunk) -> None:
        """Take a chunk."""

    assert Route([], Scope()).compile(end) is end
    head = Route([Judge()], Scope()).compile(end)
    assert head.__qualname__ == "OutputStage.compile.<locals>.kernel"
    recorded = Route([Judge()], Scope(), Recorder().open("r", "model")).compile(end)
    assert recorded.__qualname__ != head.__qualname__, "or the line above shows nothing"


@pytest.mark.parametrize("content", [False, True])
async def test_what_a_guard_removed_is_kept_only_when_asked_for(content: bool) -> None:  # noqa: FBT001 - a case
    """A removed text is in no record, marble or picture, unless `content` was asked for."""
    text = f"write {MAIL} or use {KEY} today"
    cut = [text[i : i + 7] for i in range(0, len(text), 7)]
    _, recorder = await recorded(
        ops.rechunk("word"), ops.redact([*pii, *secrets]), chunks=deltas(*cut), content=content
    )
    kept = repr(recorder.records) + recorder.marbles() + recorder._repr_html_()
    assert ((MAIL in kept) or (KEY in kept)) is content
    assert "today" in kept


async def test_a_blocked_text_is_in_no_record() -> None:
    """A text that was blocked is in no record, though the stages before had passed it."""
    recorder = Recorder()
    guarded = ops.pipe(ops.tap(repr), ops.block(secrets), recorder=recorder)
    with pytest.raises(TripWire):
        await elements(guarded(ops.of(*deltas("my ", KEY, " is"))))
    assert KEY not in repr(recorder.records) + recorder.marbles() + recorder._repr_html_()


def test_times_are_those_of_the_recorder_s_clock() -> None:
    """What `batch` holds for two seconds was inside for two seconds."""

    async def main() -> Recorder:
        loop = asyncio.get_running_loop()
        recorder = Recorder(clock=loop.time)

        async def run(emit: Any) -> None:
            await push(emit, TextDelta("0", "a"))
            await asyncio.sleep(2)

        made = ops.pipe(ops.batch(10, max_wait=1.5), recorder=recorder)
        await elements(made(ops.create(run)))
        return recorder

    recorder = run_virtual(main())
    held = next(r for r in recorder.records if r.stage.startswith("batch"))
    assert held.time_out is not None
    assert held.time_out - held.time_in == pytest.approx(1.5)


def test_a_recorded_pipeline_needs_no_loop() -> None:
    """On an observable of reactivex a recorded pipeline of sync operators works as without."""
    recorder = Recorder()
    made = ops.pipe(ops.map_text(str.upper), ops.text(), recorder=recorder)
    assert through(made, deltas("a", "b")).items == ["A", "B"]
    assert told(recorder, "map_text") == [((0,), "rewritten"), ((1,), "rewritten")]
    failing = through(made, deltas("a"), ValueError("no"))
    assert isinstance(failing.ends[0], ValueError)
    assert len(recorder.runs) == 2


async def test_runs_at_once_have_records_of_their_own() -> None:
    """One recorder may watch several runs at once; each is a recording."""
    recorder = Recorder()
    agent = Agent(model=ScriptedModel([["a", "b"]] * 3))
    await asyncio.gather(*(agent.generate("hi", recorder=recorder) for _ in range(3)))
    assert len(recorder.runs) == 3
    assert len({run.name for run in recorder.runs}) == 3
    assert {len(run.records) for run in recorder.runs} == {len(recorder.records)}


def test_a_run_that_was_only_prepared_is_none() -> None:
    """`observe` checks its options when it is called; nothing was recorded by that."""
    recorder = Recorder()
    Agent(model=ScriptedModel([["a"]])).observe("hi", recorder=recorder)
    assert recorder.runs == []
    assert recorder.marbles() == "nothing was recorded"
    assert "nothing" in recorder._repr_html_()


async def test_a_recorder_s_memory_is_bounded() -> None:
    """The oldest records and runs go, and are counted; what waits in a stage is bounded too."""
    recorder = Recorder(limit=50, runs=2)
    made = ops.pipe(ops.of_type(ToolCall), recorder=recorder)
    for _ in range(3):
        await elements(made(ops.of(*deltas(*"x" * 2000))))
    assert len(recorder.runs) == 2
    assert len(recorder.records) == 50
    assert recorder.runs[-1].forgotten == 4000 - 50
    assert len(recorder.runs[-1].lanes[0].inside._inside) <= MOST_INSIDE


async def test_parts_that_are_over_are_forgotten() -> None:
    """A run of any number of text parts is remembered part by part, not all at once."""
    _, recorder = await recorded(
        ops.tap(repr), chunks=[TextDelta(str(number), "x") for number in range(2000)]
    )
    assert len(recorder.runs[-1].lanes[0].inside._texts) <= MOST_TEXTS


async def test_an_object_that_comes_twice_is_two_elements() -> None:
    """Of a chunk that came twice and of which one was dropped, the records say so."""
    _, recorder = await recorded(
        ops.flat_map(lambda c: [c, c]), ops.distinct_until_changed(), chunks=deltas("a", "b")
    )
    assert told(recorder, "distinct") == [
        ((0,), "passed"),
        ((0,), "dropped"),
        ((1,), "passed"),
        ((1,), "dropped"),
    ]


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": 1.5}, {"runs": 0}, {"runs": True}])
def test_a_recorder_with_a_bad_bound_is_refused(options: dict[str, Any]) -> None:
    """The message names the option."""
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        Recorder(**options)


def test_what_is_no_recorder_is_refused_where_it_is_given() -> None:
    """By `pipe` and by an agent, before anything runs."""
    wrong: Any = "yes"
    with pytest.raises(ConfigurationError, match=r"pipe: recorder must be a Recorder\(\)"):
        ops.pipe(ops.text(), recorder=wrong)
    with pytest.raises(ConfigurationError, match="recorder must be"):
        Agent(model=ScriptedModel([["a"]])).stream("hi", recorder=wrong)
