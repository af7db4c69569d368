"""The signals: `TripWire` passes every `except Exception`, `AbortSignal` reaches every thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.abort import AbortSignal, TripWire
from streampipe.errors import StreampipeError


def test_a_trip_wire_survives_except_exception() -> None:
    """Code that swallows every failure does not swallow a block."""

    def careless() -> None:
        try:
            raise TripWire("unsafe", retry=True, metadata={"at": 3}, processor_id="guard")
        except Exception:  # noqa: BLE001, S110 - the point
            pass

    with pytest.raises(TripWire) as caught:
        careless()
    wire = caught.value
    assert str(wire) == wire.reason == "unsafe"
    assert (wire.retry, wire.metadata, wire.processor_id) == (True, {"at": 3}, "guard")


def test_a_trip_wire_is_no_failure() -> None:
    """It is a signal: neither an `Exception` nor one of the library's errors."""
    assert not issubclass(TripWire, Exception | StreampipeError)
    bare = TripWire()
    assert (bare.reason, bare.retry, bare.metadata, bare.processor_id) == ("", False, None, "")


def test_the_first_reason_counts() -> None:
    """Aborted once, a signal stays as it is, and calls nobody twice."""
    calls: list[str] = []
    signal = AbortSignal()
    signal.on_abort(lambda: calls.append(signal.reason))
    assert not signal.aborted
    signal.abort("first")
    signal.abort("second")
    assert signal.aborted
    assert signal.reason == "first"
    assert calls == ["first"]


def test_who_comes_late_is_called_at_once() -> None:
    """A callback on an aborted signal runs before `on_abort` returns; there is nothing to undo."""
    signal = AbortSignal()
    signal.abort()
    calls: list[int] = []
    forget = signal.on_abort(lambda: calls.append(1))
    assert calls == [1]
    forget()
    assert signal.reason == "aborted"


@given(st.lists(st.booleans(), max_size=8))
def test_every_callback_is_called_once_unless_it_unsubscribed(stays: list[bool]) -> None:
    """Many runs may listen to one signal; each comes and goes by itself."""
    signal = AbortSignal()
    calls: list[int] = []

    def listener(number: int) -> Callable[[], None]:
        return lambda: calls.append(number)

    forgets = [signal.on_abort(listener(number)) for number in range(len(stays))]
    for forget, stay in zip(forgets, stays, strict=True):
        if not stay:
            forget()
            forget()
    signal.abort()
    assert calls == [number for number, stay in enumerate(stays) if stay]


async def test_wait_returns_once_aborted() -> None:
    """Any number of waiters; also those who come late."""
    signal = AbortSignal()
    waiters = [asyncio.ensure_future(signal.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(waiter.done() for waiter in waiters)
    signal.abort()
    await asyncio.wait_for(asyncio.gather(*waiters), 5)
    await asyncio.wait_for(signal.wait(), 5)


async def test_wait_is_woken_from_another_thread() -> None:
    """A signal may be aborted wherever the user's code runs; the loop is called the safe way."""
    asyncio.get_running_loop().set_debug(True)  # then the other way raises
    signal = AbortSignal()
    waiter = asyncio.ensure_future(signal.wait())
    await asyncio.sleep(0)
    thread = threading.Thread(target=signal.abort, args=("from outside",))
    thread.start()
    await asyncio.wait_for(waiter, 5)
    thread.join()
    assert signal.reason == "from outside"


async def test_a_cancelled_wait_listens_no_more() -> None:
    """A waiter that went away is not called, and does not keep others from being called."""
    signal = AbortSignal()
    gone = asyncio.ensure_future(signal.wait())
    stays = asyncio.ensure_future(signal.wait())
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait({gone})
    signal.abort()
    await asyncio.wait_for(stays, 5)
    assert gone.cancelled()


def test_a_misspelt_attribute_is_refused() -> None:
    """The signal is slotted: `signal.abortd = True` stops nothing, so it fails."""
    with pytest.raises(AttributeError):
        AbortSignal().abortd = True  # type: ignore[attr-defined]  # the fault


def test_one_function_may_be_registered_for_many_runs() -> None:
    """Each registration is forgotten by itself."""
    signal = AbortSignal()
    calls: list[int] = []

    def callback() -> None:
        calls.append(1)

    forget = signal.on_abort(callback)
    signal.on_abort(callback)
    forget()
    signal.abort()
    assert calls == [1]


def test_a_callback_that_raises_keeps_nobody_from_being_told() -> None:
    """Every run stops; then the failure is raised."""
    signal = AbortSignal()
    calls: list[int] = []

    def broken() -> None:
        raise ValueError("mine")

    signal.on_abort(broken)
    signal.on_abort(lambda: calls.append(1))
    with pytest.raises(ValueError, match="mine"):
        signal.abort()
    assert calls == [1]
