"""The guards of `conftest.py` catch what they are there for."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")
FOREIGN = "192.0.2.1"  # an address kept for documentation: nobody has it

LEAKS = {
    "running_task": "asyncio.ensure_future(asyncio.Event().wait())",
    "failed_task": "asyncio.ensure_future(fail()); await asyncio.sleep(0)",
    "failed_task_in_a_cycle": "box = [asyncio.ensure_future(fail())]; box.append(box); "
    "await asyncio.sleep(0)",
    "failed_future": "asyncio.get_running_loop().create_future().set_exception(ValueError())",
    "coroutine_never_awaited": "fail()",
}
TIDY = {
    "nothing": "pass",
    "cancelled_task": "asyncio.ensure_future(asyncio.Event().wait()).cancel()",
    "task_that_ends_soon": "asyncio.ensure_future(soon())",
    "awaited_failure": "await asyncio.gather(fail(), return_exceptions=True)",
}
PRELUDE = """
import asyncio

async def fail():
    raise ValueError

async def soon():
    for _ in range(5):
        await asyncio.sleep(0)
"""


def troubled(bodies: dict[str, str], folder: Path) -> set[str]:
    """Names of the async tests, of these bodies, that fail under a copy of our `conftest.py`."""
    (folder / "conftest.py").write_text(CONFTEST.read_text())
    tests = (f"async def test_{name}():\n    {body}\n" for name, body in bodies.items())
    (folder / "test_it.py").write_text("\n".join([PRELUDE, *tests]))
    options = (
        "-q",
        "-rfE",
        "-p",
        "no:cacheprovider",
        "-c",
        CONFTEST.parent.parent / "pyproject.toml",
    )
    done = subprocess.run(  # noqa: S603 - our own command
        (sys.executable, "-m", "pytest", *options, "--rootdir", folder, folder / "test_it.py"),
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr  # else it did not come to testing
    return set(re.findall(r"^(?:FAILED|ERROR) \S+::test_(\w+)", done.stdout, re.MULTILINE))


def test_leaks_fail_their_test_and_no_other(tmp_path: Path) -> None:
    """A test fails that leaves a task running or a failure unseen; a few turns to end are given."""
    assert troubled(LEAKS | TIDY, tmp_path) == set(LEAKS)


async def test_a_complaint_can_be_expected(loop_complaints: list[dict[str, Any]]) -> None:
    """A test that provokes a complaint finds it in the list, and clears it."""
    asyncio.get_running_loop().call_exception_handler({"message": "provoked"})
    assert [complaint["message"] for complaint in loop_complaints] == ["provoked"]
    loop_complaints.clear()


@pytest.mark.parametrize("method", ["connect", "connect_ex"])
def test_a_foreign_connection_is_refused(method: str) -> None:
    """A socket does not reach another machine; the message names the address."""
    with (
        socket.socket() as sock,
        pytest.raises(pytest.fail.Exception, match=FOREIGN),
    ):
        getattr(sock, method)((FOREIGN, 80))


def test_a_foreign_datagram_is_refused() -> None:
    """Nor does a datagram leave the machine."""
    with (
        socket.socket(type=socket.SOCK_DGRAM) as sock,
        pytest.raises(pytest.fail.Exception, match=FOREIGN),
    ):
        sock.sendto(b"x", (FOREIGN, 9))


@pytest.mark.parametrize("host", ["example.invalid", b"bytes.invalid", FOREIGN, "2001:db8::1"])
def test_a_foreign_name_is_not_looked_up(host: str | bytes) -> None:
    """Looking up a name is use of the network too."""
    with pytest.raises(pytest.fail.Exception, match="do not use the network"):
        socket.getaddrinfo(host, 80)


async def test_asyncio_is_guarded_too() -> None:
    """A refusal comes out of asyncio's own connecting, past any `except Exception`."""
    with pytest.raises(pytest.fail.Exception, match=FOREIGN):
        await asyncio.open_connection(FOREIGN, 80)


async def test_loopback_is_allowed() -> None:
    """A server on this machine can be asked, by address and by name."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        for host in ("127.0.0.1", "localhost"):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"hello\n")
            assert await reader.read() == b"hello\n"
            writer.close()
            await writer.wait_closed()
