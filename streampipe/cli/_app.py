"""The commands: `demo`, `run`, `replay`, `processors`, `doctor`."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import traceback
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

try:
    import typer
    from rich.console import Console
    from rich.markup import escape
except ImportError as error:
    sys.exit(f"the command needs typer and rich ({error}): pip install 'streampipe-rx[cli]'")

from streampipe import processors as shelf
from streampipe.agent import Agent
from streampipe.chunks import Chunk, ErrorChunk, TextDelta, TripwireChunk, TripwireData
from streampipe.cli._demo import play
from streampipe.cli._doctor import LIMIT, CheckResult, check_provider, show_results
from streampipe.cli._processors import print_processors, show_processors, with_processors
from streampipe.cli._replay import PROTOCOLS, replay_rows, show_rows, why_unread
from streampipe.errors import ConfigurationError, OperatorError, StreampipeError
from streampipe.wire import chunk_to_json

FAILED = 1
MISUSED = 2
BLOCKED = 3

Processors = Annotated[
    str | None,
    typer.Option(
        metavar="LINE",
        help="Processors behind the agent's own, such as 'redact:pii,block:secrets,batch:20ms'; "
        "`streampipe processors` lists them.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line."""
    app()


def _version(asked: bool) -> None:  # noqa: FBT001 - a callback of typer's
    if asked:
        typer.echo(f"streampipe {version('streampipe-rx')}")
        raise typer.Exit


@app.callback()
def options(
    *,
    _: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Reactive pipelines for LLM agent streams."""


@app.command()
def demo() -> None:
    """Run agents against an embedded model server, over real HTTP, and watch their chunks."""
    asyncio.run(play(Console(highlight=False)))


@app.command()
def run(
    agent: Annotated[str, typer.Argument(help="Where the agent is, as MODULE:AGENT.")],
    prompt: Annotated[str, typer.Argument(help="What to ask it.")],
    *,
    processors: Processors = None,
    context: Annotated[
        list[str] | None,
        typer.Option(help="A value of the request context, as KEY=VALUE; may be given again."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print wire chunks, one a line.")] = False,
) -> None:
    """Ask an agent and print its answer while it streams.

    Ends with 1 when the run failed, 3 when a processor blocked it.
    """
    found = _equipped(_agent(agent), processors)
    values = _context(context or [])
    try:
        code = asyncio.run(_run(found, prompt, values, json=json))
    except StreampipeError as error:
        _complain(error)
        if isinstance(error, OperatorError) and error.__cause__ is not None:
            cause = error.__cause__  # its text may quote the stream; this is the user's terminal
            _complain(f"because of {type(cause).__name__}: {cause}")
        raise typer.Exit(FAILED) from error
    raise typer.Exit(code)


def _context(pairs: list[str]) -> dict[str, str]:
    """The request context.

    Raises:
        typer.Exit: one is no pair; standard error says so.
    """
    values: dict[str, str] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not key or not sign:
            raise _misuse(f"--context takes KEY=VALUE, not {pair!r:.80}")
        values[key] = value
    return values


async def _run(agent: Agent, prompt: str, context: dict[str, str], *, json: bool) -> int:
    async with agent.stream(prompt, request_context=context) as stream:
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
    return _blocked(result.tripwire) if result.tripwire is not None else 0


@app.command()
def replay(
    file: Annotated[
        Path, typer.Argument(help="A recorded event stream.", exists=True, dir_okay=False)
    ],
    *,
    protocol: Annotated[str, typer.Option(help=f"What the stream speaks: {', '.join(PROTOCOLS)}.")],
    agent: Annotated[
        str | None,
        typer.Option(help="Whose output processors it goes through, as MODULE:AGENT."),
    ] = None,
    processors: Processors = None,
) -> None:
    """Send a recorded stream through an agent's output processors, and show both ends of them.

    Ends with 1 when the recording cannot be read to its end, 3 when a processor blocked it.
    """
    decoder = PROTOCOLS.get(protocol)
    if decoder is None:
        raise _misuse(f"unknown protocol {protocol!r}; known: {', '.join(PROTOCOLS)}")
    data = file.read_bytes()
    unread = why_unread(data, protocol)
    if unread is not None:
        raise _misuse(f"{file}: {unread}")
    found = _agent(agent) if agent else Agent(id="replay", model=None)
    found = _equipped(found, processors, is_replay=True)
    try:
        rows = asyncio.run(replay_rows(found, data, decoder))
    except StreampipeError as error:
        _complain(error)
        raise typer.Exit(FAILED) from error
    show_rows(rows, Console(highlight=False))
    raise typer.Exit(_outcome(chunk for _, client in rows for chunk in client))


@app.command("processors")
def list_processors(*, json: Json = False) -> None:
    """List what `--processors` takes: what is built in, and what is installed.

    A line of processors is NAME:ARGUMENT;OPTION=VALUE, with commas between; what is not needed is
    left out. A PRESET is pii, secrets or urls; a TIME is 20ms, 1.5s or 2m; + stands between several
    values, and a backslash before a sign that is to be text.

    Ends with 1 when something that is installed cannot be used.
    """
    try:
        known = shelf.known_processors()
    except ConfigurationError as error:
        _complain(error)
        raise typer.Exit(FAILED) from error
    if json:
        print_processors(known)
    else:
        show_processors(known, Console(highlight=False))
    problems = [each.problem for each in known if each.problem is not None]
    for problem in problems:
        _complain(problem)
    raise typer.Exit(FAILED if problems else 0)


@app.command()
def doctor(
    model: Annotated[
        str, typer.Argument(help="Which model, as PROVIDER/MODEL, such as openai/gpt-5-mini.")
    ],
    *,
    base_url: Annotated[
        str | None,
        typer.Option(help="Where to ask instead; the provider's key is sent there."),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that each check may take.")] = LIMIT,
    json: Annotated[
        bool, typer.Option("--json", help="Print results as JSON, one a line.")
    ] = False,
) -> None:
    """Check a provider live, with your own key: streaming, tools, schemas, cancelling, refusals.

    Costs about six short calls, some hundred tokens each. Ends with 1 when something that the
    provider supports does not work.
    """
    try:
        results = asyncio.run(_doctor(model, base_url, timeout, json=json))
    except ConfigurationError as error:
        raise _misuse(str(error)) from error
    raise typer.Exit(0 if all(result.is_fine for result in results) else FAILED)


async def _doctor(
    model: str, base_url: str | None, limit: float, *, json: bool
) -> list[CheckResult]:
    results: list[CheckResult] = []
    # A sign of life for people only: it says nothing where standard error is no terminal.
    with Console(stderr=True).status(f"checking {escape(model)}"):
        async for result in check_provider(model, base_url=base_url, limit=limit):
            results.append(result)
            if json:
                sys.stdout.buffer.write(result.to_json() + b"\n")
                sys.stdout.buffer.flush()
    if not json:
        show_results(results, Console(highlight=False))
    return results


def _outcome(chunks: Iterable[Chunk]) -> int:
    """What a command ends with, by the chunks that the client got."""
    for chunk in chunks:
        if isinstance(chunk, ErrorChunk):
            _complain(chunk.error.message)
            return FAILED
        if isinstance(chunk, TripwireChunk):
            return _blocked(chunk)
    return 0


def _blocked(by: TripwireChunk | TripwireData) -> int:
    _complain(f"blocked by {by.processor_id!r}: {by.reason}")
    return BLOCKED


def _equipped(agent: Agent, line: str | None, *, is_replay: bool = False) -> Agent:
    """The agent with the processors of a line behind its own.

    Raises:
        typer.Exit: the line is none; standard error says why.
    """
    try:
        return with_processors(agent, line, is_replay=is_replay)
    except ConfigurationError as error:
        raise _misuse(str(error)) from error


def _agent(place: str) -> Agent:
    """The agent that `MODULE:AGENT` names.

    Raises:
        typer.Exit: there is none; standard error says why.
        Exception: whatever the module raises while it is imported.
    """
    module_name, _, name = place.partition(":")
    if not name or not all(part.isidentifier() for part in module_name.split(".")):
        raise _misuse(
            f"{place!r} is no place of an agent; write MODULE:AGENT with the module's dotted name, "
            "such as app.agents:support"
        )
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if not f"{module_name}.".startswith(f"{error.name}."):
            raise _misuse(f"{module_name} imports {error.name!r}, which is not there") from error
        raise _misuse(f"{place}: no module {error.name!r} (looked in {Path.cwd()} too)") from error
    except ConfigurationError as error:
        raise _misuse(f"{_line_of(error, module_name)}{error}") from error
    if not hasattr(module, name):
        agents = [key for key, value in vars(module).items() if isinstance(value, Agent)]
        raise _misuse(
            f"{place}: {module_name!r} has no {name!r}; agents in it: {', '.join(agents) or 'none'}"
        )
    found: Any = getattr(module, name)
    if not isinstance(found, Agent):
        hint = f"; write {name} = ...() in the module" if callable(found) else ""
        raise _misuse(f"{place}: {name!r} is a {type(found).__name__}, not an Agent{hint}")
    return found


def _line_of(error: Exception, module_name: str) -> str:
    """Where in a module an error came up, as `file:line: `; nothing if that is not known."""
    frames = traceback.extract_tb(error.__traceback__)
    tail = f"{module_name.replace('.', os.sep)}.py"
    own = [frame for frame in frames if frame.filename.endswith(tail)]
    return f"{own[-1].filename}:{own[-1].lineno}: " if own else ""


def _misuse(message: str) -> typer.Exit:
    _complain(message)
    return typer.Exit(MISUSED)


def _complain(message: object) -> None:
    typer.echo(f"streampipe: {message}", err=True)
