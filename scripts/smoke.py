"""What a user's first minute with an installed streampipe asks of it; `check_wheel.py` runs it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import streampipe
from streampipe import Agent, operators
from streampipe.testing import ScriptedModel


def check_place() -> None:
    """Make sure that the installed package is looked at, not the repository.

    Raises:
        SystemExit: it is the repository.
    """
    prefix = Path(sys.prefix).resolve()
    for module in (streampipe, operators):
        place = Path(str(module.__file__)).resolve()
        if not place.is_relative_to(prefix):
            sys.exit(f"{module.__name__} was imported from {place}, not from {prefix}")


async def check_run() -> None:
    """Run an agent on a scripted model.

    Raises:
        SystemExit: the run gave something else than the script says.
    """
    agent = Agent(id="smoke", model=ScriptedModel([["Hello", " there"]]))
    result = await agent.generate("hi")
    if result.text != "Hello there":
        sys.exit(f"the run gave {result.text!r} instead of 'Hello there'")


if __name__ == "__main__":
    check_place()
    asyncio.run(check_run())
