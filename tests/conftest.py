"""What every test runs under: a Hypothesis profile, no network, and nothing left running.

The guards themselves are tested in `tests/test_guards.py`.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import settings

# No deadlines: a busy machine is no bug. Derandomised: a run says of a change what it said before.
settings.register_profile("default", max_examples=60, derandomize=True, deadline=None)
settings.register_profile("laws", max_examples=2_000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("STREAMPIPE_PROFILE", "default"))

TURNS_TO_END = 20
"""Turns of the loop that a cancelled task may take to end: enough for a chain, too few to work."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep what was imported out of later collections: each looks at all that is not frozen."""
    del session
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each async test, and only those, `loop_complaints`.

    It comes first in the list, so that it is torn down last: after the test's own fixtures.
    """
    for item in items:
        if item.get_closest_marker("asyncio") and isinstance(item, pytest.Function):
            names = [name for name in item.fixturenames if name != "loop_complaints"]
            item.fixturenames[:] = ["loop_complaints", *names]


@pytest.fixture
async def loop_complaints() -> AsyncIterator[list[dict[str, Any]]]:
    """What the event loop's exception handler is told of; has to be empty when the test ends.

    A test that provokes a complaint asks for this list, looks at it and clears it.

    Yields:
        The contexts that the handler was called with, such as "Task exception was never retrieved".
    """
    gc.collect()
    gc.freeze()  # what earlier tests left alive would be looked at again when this one ends
    loop = asyncio.get_running_loop()
    complaints: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    before = asyncio.all_tasks()
    yield complaints
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    for _ in range(TURNS_TO_END):
        if all(task.done() for task in left):
            break
        await asyncio.sleep(0)
    alive = [task for task in left if not task.done()]
    left.clear()
    gc.collect()  # a failed task lives in a cycle with its traceback, and complains when it goes
    loop.set_exception_handler(None)
    assert not alive, f"the test left tasks running: {alive}"
    assert not complaints, f"the event loop complained: {complaints}"


def refuse_foreign(host: object) -> None:
    """Fail the test if `host` is not this machine.

    Raises:
        Failed: it is another; no `Exception`, so that no retry or error mapping can swallow it.
    """
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return
    try:
        if ipaddress.ip_address(str(name).partition("%")[0]).is_loopback:
            return
    except ValueError:
        pass  # a name that is not localhost
    pytest.fail(f"tests do not use the network, but this one asked for {name!r}; use ModelServer")


@pytest.fixture(autouse=True, scope="session")
def kept_frozen() -> Iterator[None]:
    """Keep frozen what is: a benchmark that thaws it would make all later collections slow.

    Yields:
        Nothing; `gc.unfreeze` works again afterwards.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "unfreeze", lambda: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def no_network() -> Iterator[None]:
    """Refuse every connection and name look-up that leaves the machine.

    Yields:
        Nothing; the refusal is lifted afterwards.
    """

    def guarded(name: str) -> Any:
        original = getattr(socket.socket, name)

        def call(self: socket.socket, *args: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6):
                refuse_foreign(args[-1][0])  # the address comes last in all of them
            return original(self, *args)

        return call

    look_up = socket.getaddrinfo

    def guarded_look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
        refuse_foreign(host)
        return look_up(host, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex", "sendto"):
            patch.setattr(socket.socket, name, guarded(name))
        patch.setattr(socket, "getaddrinfo", guarded_look_up)
        yield
