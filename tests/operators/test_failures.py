"""Failures in a pipeline: who is told of which, and that closing waits for everything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from reactivex import operators as rx

from streampipe import operators as ops
from streampipe.errors import ModelError, OperatorError
from tests.operators.sources import elements, reading, turns


async def meet_a_cancel(_: Any = None) -> Any:
    """Wait for what somebody else has cancelled."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


async def cancelled_source() -> AsyncIterator[int]:
    """One element, then a cancel of its own."""
    yield 1
    await meet_a_cancel()


@pytest.mark.parametrize(
    "make",
    [
        lambda: ops.from_aiter(cancelled_source),
        lambda: ops.of(1).pipe(ops.map_async(meet_a_cancel)),
        lambda: ops.of(1).pipe(ops.map_async(meet_a_cancel, concurrency=2)),
        lambda: ops.from_aiter(cancelled_source).pipe(rx.map(lambda item: item)),
    ],
    ids=["source", "map_async", "windowed", "behind rx"],
)
async def test_a_cancel_that_a_stage_met_by_itself_is_a_failure(make: Any) -> None:
    """The reader is told; it neither waits for ever nor takes the cancel for its own."""
    async with asyncio.timeout(5):
        with pytest.raises(OperatorError, match="was cancelled; the stream itself was not"):
            await elements(ops.to_aiter(make()))


@pytest.fixture
def asked() -> list[str]:
    """What a catch was asked about."""
    return []


@pytest.fixture
def catch(asked: list[str]) -> Any:
    """A catch that notes what it is asked, and declines."""

    def handler(error: ModelError, attempt: int) -> bool:
        asked.append(str(error))
        return False

    return ops.catch_api_error(handler)


async def refuse(_: Any) -> Any:
    """Fail as a model does."""
    raise ModelError("refused")


async def test_a_turn_s_failure_is_not_shown_to_a_catch_before_the_loop(
    asked: list[str],
    catch: Any,
) -> None:
    """Turns run inside the push of what started them; that is no failure of theirs."""
    loop = ops.feedback(lambda item, again: ops.create(refuse))
    with pytest.raises(ModelError):
        await elements(ops.of(1).pipe(catch, loop))
    assert asked == []


async def test_a_catch_behind_a_loop_sees_a_turn_s_failure(asked: list[str], catch: Any) -> None:
    """For what stands behind it, a stage is a source."""
    loop = ops.feedback(lambda item, again: ops.create(refuse))
    with pytest.raises(ModelError):
        await elements(ops.of(1).pipe(loop, catch))
    assert asked == ["refused"]


async def test_closing_waits_for_a_source_behind_rx_operators() -> None:
    """Its clean-up is over when the reader has left."""
    steps: list[str] = []

    async def careful() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
                await asyncio.sleep(0)
        finally:
            await turns(10)
            steps.append("cleaned up")

    async with reading(ops.from_aiter(careful).pipe(rx.map(lambda item: item)), 1) as items:
        await anext(items)
    assert steps == ["cleaned up"]


async def test_a_failure_in_cleaning_up_is_raised_where_the_reader_leaves() -> None:
    """Nothing is swallowed because nobody reads any more."""

    async def careless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            raise ValueError("in cleaning up")

    with pytest.raises(ValueError, match="in cleaning up"):
        async with reading(ops.from_aiter(careless), 1) as items:
            await anext(items)
