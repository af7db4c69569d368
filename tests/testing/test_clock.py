"""The jumping clock: waiting takes no time, and what can never happen is said to be so."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.testing import DeadlockError, VirtualLoop, run_virtual

DAY = 86_400.0


@given(st.lists(st.floats(0, 30 * DAY), max_size=8))
def test_sleeping_takes_exactly_its_time_and_none(pauses: list[float]) -> None:
    """The loop's clock shows what was slept, in order; the wall's clock hardly moves."""

    async def sleep() -> list[float]:
        loop = asyncio.get_running_loop()
        order: list[float] = []

        async def one(pause: float) -> None:
            await asyncio.sleep(pause)
            assert loop.time() == pytest.approx(pause)
            order.append(pause)

        await asyncio.gather(*map(one, pauses))
        return order

    assert run_virtual(sleep()) == sorted(pauses)


def test_a_timeout_comes_when_it_is_due() -> None:
    """Of two timers the earlier fires, however far away both are."""

    async def wait() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(DAY):
                await asyncio.sleep(2 * DAY)
        return asyncio.get_running_loop().time()

    assert run_virtual(wait()) == DAY


def test_a_deadlock_is_an_error_that_names_who_waits() -> None:
    """Where a real loop would hang, this one says when, and which tasks wait."""

    async def wait() -> None:
        await asyncio.sleep(5)
        await asyncio.Event().wait()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        task = runner.get_loop().create_task(wait(), name="the one who waits")
        with pytest.raises(DeadlockError, match=r"deadlock at 5 s.*the one who waits"):
            runner.get_loop().run_until_complete(task)


def test_a_thread_of_the_pool_is_waited_for() -> None:
    """A call in a thread takes its real time, and no timer overtakes it."""

    def work() -> str:
        time.sleep(0.01)  # the only way for a thread to take time
        return "done"

    async def both() -> str:
        async with asyncio.timeout(10):
            return await asyncio.to_thread(work)

    assert run_virtual(both()) == "done"


def test_a_call_from_another_thread_is_heard() -> None:
    """`call_soon_threadsafe` wakes the loop."""

    async def wait() -> int:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()
        await asyncio.to_thread(loop.call_soon_threadsafe, future.set_result, 7)
        return await future

    assert run_virtual(wait()) == 7


def test_a_socket_is_waited_for() -> None:
    """While a socket is read from, the loop waits for it as any other does."""
    here, there = socket.socketpair()
    here.settimeout(0)

    async def receive() -> bytes:
        loop = asyncio.get_running_loop()
        with there:
            reading = loop.create_task(loop.sock_recv(here, 10))
            await asyncio.to_thread(there.send, b"hello")
            return await reading

    with here:
        assert run_virtual(receive()) == b"hello"


def test_planned_calls_are_counted() -> None:
    """A timer counts until it fires or is cancelled."""

    async def plan() -> list[int]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        counts = [loop.pending_timers()]
        handle = loop.call_later(5, print)
        counts.append(loop.pending_timers())
        handle.cancel()
        counts.append(loop.pending_timers())
        return counts

    assert run_virtual(plan()) == [0, 1, 0]


def test_what_a_coroutine_raises_comes_out() -> None:
    """Neither a failure nor what it left behind is swallowed."""
    ended: list[str] = []

    async def forgotten() -> None:
        try:
            await asyncio.sleep(DAY)
        finally:
            ended.append("forgotten")

    async def fail() -> None:
        task = asyncio.get_running_loop().create_task(forgotten())
        await asyncio.sleep(0)
        msg = f"while {task.get_name()} runs"
        raise ZeroDivisionError(msg)

    with pytest.raises(ZeroDivisionError):
        run_virtual(fail())
    assert ended == ["forgotten"]


async def test_it_does_not_run_within_another_loop() -> None:
    """Called from a coroutine it is refused."""
    waiting = asyncio.sleep(0)
    with pytest.raises(RuntimeError):
        run_virtual(waiting)
    waiting.close()
