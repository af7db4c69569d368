"""Nothing leaves the machine while something is measured, and who tries is found out.

The peers' telemetry is switched off where they have a switch; this is for what has none.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

__all__ = ["TELEMETRY_OFF", "OutsideError", "loopback_only"]

TELEMETRY_OFF = {
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "MASTRA_TELEMETRY_DISABLED": "1",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
}
"""The environment that the peers are imported in."""


class OutsideError(OSError):
    """A connection or look-up was refused: it would have left the machine."""


def is_loopback(host: object) -> bool:
    """Whether an address of a socket, or a name that is looked up, is this machine's own."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return True
    try:
        return ipaddress.ip_address(str(name).partition("%")[0]).is_loopback
    except ValueError:
        return False  # a name


@contextmanager
def loopback_only() -> Iterator[list[str]]:
    """Refuse every connection and name look-up that leaves the machine.

    Yields:
        Who was asked for. It is an `OutsideError` for whoever asked, who may well swallow it.
    """
    attempts: list[str] = []

    def pass_loopback(host: object) -> None:
        if not is_loopback(host):
            attempts.append(str(host))
            raise OutsideError(f"nothing reaches {host} while peers are measured")

    def guarded(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: socket.socket, *args: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6):
                pass_loopback(args[-1][0])  # the address comes last in all of them
            return original(self, *args)

        return call

    look_up = socket.getaddrinfo

    def guarded_look_up(host: Any, *args: Any, **options: Any) -> Any:
        pass_loopback(host)
        return look_up(host, *args, **options)

    with ExitStack() as patches:
        for name in ("connect", "connect_ex", "sendto"):
            call = guarded(getattr(socket.socket, name))
            patches.enter_context(mock.patch.object(socket.socket, name, call))
        patches.enter_context(mock.patch.object(socket, "getaddrinfo", guarded_look_up))
        yield attempts
