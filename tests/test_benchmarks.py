"""The table of the benchmarks can be measured and printed; what it says is not tested here."""

from __future__ import annotations

import asyncio
import gc
import re
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import rows
from benchmarks.measure import Row, Sizes, Timing, compare
from benchmarks.work import TurnTakingModel, by_hand, consume, event_stream, guards, scripted
from streampipe import Agent, FinishChunk
from streampipe.testing import ModelServer

TINY = Sizes(rounds=2, chunks=20, runs=3, run_chunks=4, idle_chunks=2, imports=1)
FINE = Row("fine", "1 us", "1.00x", "<= 2x", within=True)
POOR = Row("poor", "3 us", "3.00x", "<= 2x", within=False)


def test_the_table_can_be_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row is measured for real, in tiny sizes; the exit code does not depend on them."""
    monkeypatch.setattr(command, "QUICK", TINY)
    assert command.main(["--quick"]) == 0
    head, rule, *lines = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert head.split() == ["row", "measured", "ratio", "budget", "within?"]
    assert set(rule) == {"-", " "}
    assert len(lines) == 21
    assert all(line.endswith(("yes", "NO")) for line in lines)
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("ratio", "micros", "within"), [(2.5, 2.2, True), (2.6, 1.0, False), (1.0, 2.3, False)]
)
async def test_a_row_is_within_its_budget_when_every_part_of_it_is(
    ratio: float, micros: float, *, within: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is no slower than a loop by hand may still be too slow."""

    async def compared(_rounds: int, *sides: Any) -> list[Timing]:
        return [Timing([micros * TINY.chunks / 1e6], [ratio]) for _ in sides]

    monkeypatch.setattr(rows, "compare", compared)
    (row,) = await rows.whole_run(TINY)
    assert row.within is within


async def test_a_ratio_says_what_it_is_to() -> None:
    """Not every row is beside a loop by hand."""
    for measure in (rows.whole_run, rows.whole_async_run, rows.over_http, rows.length):
        for row in await measure(TINY):
            assert re.fullmatch(r"[0-9.]+x [a-z ]+", row.ratio)


@pytest.mark.parametrize(
    ("found", "arguments", "code"),
    [([FINE], ["--check"], 0), ([FINE, POOR], ["--check"], 1), ([FINE, POOR], [], 0)],
)
def test_only_check_fails(
    found: list[Row], arguments: list[str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missed budget is an exit code for who asks for it."""

    async def measured(_sizes: Sizes) -> list[Row]:
        return found

    monkeypatch.setattr(command, "measured", measured)
    assert command.main(arguments) == code


def test_an_unknown_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A mistyped option measures nothing."""
    with pytest.raises(SystemExit, match="2"):
        command.main(["--chekc"])
    assert "--chekc" in capsys.readouterr().err


async def test_sides_are_compared_round_by_round() -> None:
    """Every side runs once to get warm and once a round; the first one's ratio is 1."""
    ran: list[str] = []

    async def one() -> None:
        ran.append("one")

    async def other() -> None:
        ran.append("other")
        sum(range(200_000))

    first, second = await compare(3, one, other)
    assert ran == ["one", "other", "other", "one", "one", "other", "other", "one"]
    assert first.ratio == 1
    assert second.ratio > 10
    assert second.median > first.median


async def test_a_side_that_fails_leaves_the_collector_on() -> None:
    """What a side raises is raised, and the garbage collector works again."""

    async def broken() -> None:
        if gc.isenabled():  # the warm round
            return
        raise LookupError

    with pytest.raises(LookupError):
        await compare(1, broken)
    assert gc.isenabled()


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_both_kinds_of_guards_do_the_same_work(*, asynchronous: bool) -> None:
    """The sync guards and the async ones count, keep and rewrite the same."""
    states: list[dict[str, object]] = []

    class Watch:
        def __init__(self, guard: Any) -> None:
            self.id = guard.id
            self.guard = guard

        async def process_output_stream(self, args: Any) -> Any:
            if isinstance(args.part, FinishChunk):
                states.append(dict(args.state))
            made = self.guard.process_output_stream(args)
            return await made if asynchronous else made

    chain = [Watch(guard) for guard in guards(asynchronous=asynchronous)]
    agent = Agent(model=scripted(12), output_processors=chain)
    for _ in range(2):
        states.clear()
        result = await agent.generate("hi")
        assert result.text == 2 * "The stream goes on, word for word. "
        assert states == [{"words": 12}, {"length": 70}, {"last": "word. "}, {"tabs": 2}]


async def test_the_loop_by_hand_calls_every_guard() -> None:
    """It is compared with a run, so it must not do less."""
    seen: list[str] = []

    class Spy:
        id = "spy"

        def process_output_stream(self, args: object) -> object:
            seen.append("call")
            return getattr(args, "part", None)

    await by_hand(scripted(5), [Spy(), Spy()])
    run_seen = len(seen)
    model_chunks = [chunk async for chunk in scripted(5).stream(None)]  # type: ignore[arg-type]  # it is not read
    assert run_seen == 2 * len(model_chunks)


async def test_the_bytes_are_a_whole_answer() -> None:
    """What is served in the loopback row reads as the text that the scripted model says."""
    async with ModelServer([event_stream(12)]) as server:
        result = await Agent(model=server.model(), output_processors=guards()).generate("hi")
    assert result.text == 2 * "The stream goes on, word for word. "


async def test_a_gated_model_waits_in_mid_answer() -> None:
    """An idle run is one that has begun and not ended."""
    gate = asyncio.Event()
    model = TurnTakingModel(3, gate)
    reading = asyncio.create_task(consume(Agent(model=model).stream("hi")))
    await model.silent.acquire()
    assert not reading.done()
    gate.set()
    await reading
