"""The commands: `demo`, `run`, `replay`."""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

try:
    import typer
    from rich.console import Console
except ImportError as error:
    sys.exit(f"the command needs typer and rich ({error}): pip install 'streampipe-rx[cli]'")

from streampipe.agent import Agent
from streampipe.chunks import TextDelta
from streampipe.cli._demo import play
from streampipe.cli._replay import PROTOCOLS, replay_rows, show_rows
from streampipe.errors import StreampipeError
from streampipe.wire import chunk_to_json

FAILED = 1
MISUSED = 2
BLOCKED = 3

app = typer.Typer(
    help="Reactive pipelines for LLM agent streams.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line."""
    app()


@app.command()
def demo() -> None:
    """Run agents against an embedded model server, over real HTTP, and watch their chunks."""
    asyncio.run(play(Console(highlight=False)))


@app.command()
def run(
    agent: Annotated[str, typer.Argument(help="Where the agent is, as MODULE:AGENT.")],
    prompt: Annotated[str, typer.Argument(help="What to ask it.")],
    *,
    json: Annotated[bool, typer.Option("--json", help="Print wire chunks, one a line.")] = False,
) -> None:
    """Ask an agent and print its answer while it streams.

    Ends with 1 when the run failed, 3 when a processor blocked it.
    """
    found = _agent(agent)
    try:
        code = asyncio.run(_run(found, prompt, json=json))
    except StreampipeError as error:
        _complain(error)
        raise typer.Exit(FAILED) from error
    raise typer.Exit(code)


async def _run(agent: Agent, prompt: str, *, json: bool) -> int:
    async with agent.stream(prompt) as stream:
        async for chunk in stream:
            if json:
                sys.stdout.buffer.write(chunk_to_json(chunk) + b"\n")
                sys.stdout.buffer.flush()
            elif isinstance(chunk, TextDelta):
                sys.stdout.write(chunk.text)
                sys.stdout.flush()
        result = await stream.result()
    if not json:
        sys.stdout.write("\n")
    if result.tripwire is not None:
        _complain(f"blocked by {result.tripwire.processor_id!r}: {result.tripwire.reason}")
        return BLOCKED
    return 0


@app.command()
def replay(
    file: Annotated[
        Path, typer.Argument(help="A recorded event stream.", exists=True, dir_okay=False)
    ],
    *,
    protocol: Annotated[str, typer.Option(help="What the stream speaks.")],
    agent: Annotated[
        str | None,
        typer.Option(help="Whose output processors it goes through, as MODULE:AGENT."),
    ] = None,
) -> None:
    """Send a recorded stream through an agent's output processors, and show both ends of them."""
    decoder = PROTOCOLS.get(protocol)
    if decoder is None:
        _complain(f"unknown protocol {protocol!r}; known: {', '.join(PROTOCOLS)}")
        raise typer.Exit(MISUSED)
    found = _agent(agent) if agent else Agent(id="replay", model=None)
    try:
        rows = asyncio.run(replay_rows(found, file.read_bytes(), decoder))
    except StreampipeError as error:
        _complain(error)
        raise typer.Exit(FAILED) from error
    show_rows(rows, Console(highlight=False))


def _agent(place: str) -> Agent:
    """The agent that `MODULE:AGENT` names.

    Raises:
        typer.Exit: there is none; standard error says why.
    """
    module_name, colon, name = place.partition(":")
    if not colon or not module_name or not name:
        _complain(
            f"{place!r} is no place of an agent; write MODULE:AGENT, such as app.agents:support"
        )
        raise typer.Exit(MISUSED)
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        _complain(f"no module {error.name!r} (looked in {Path.cwd()} too)")
        raise typer.Exit(MISUSED) from error
    found: Any = getattr(module, name, None)
    if not isinstance(found, Agent):
        what = "has no such name" if found is None else f"is a {type(found).__name__}, not an Agent"
        _complain(f"{place}: {name!r} {what}")
        raise typer.Exit(MISUSED)
    return found


def _complain(message: object) -> None:
    typer.echo(f"streampipe: {message}", err=True)
