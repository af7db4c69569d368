"""`streampipe run`: an agent's answer as text or as wire chunks, and what the command ends with."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from streampipe.chunks import ErrorChunk, FinishChunk, StartChunk, TextDelta, TripwireChunk
from streampipe.cli._lines import WIDEST, summary
from streampipe.wire import chunk_from_json, chunk_to_json
from tests.cli.commands import RunCommand

WAITS = """
import asyncio, sys
from streampipe import Agent, FinishChunk, TextDelta

class Waiting:
    provider = model_id = "waiting"

    async def stream(self, request):
        yield TextDelta("0", "one ")
        yield TextDelta("0", (await asyncio.to_thread(sys.stdin.readline)).strip())
        yield FinishChunk()

agent = Agent(model=Waiting())
"""


def test_it_prints_the_text_and_a_line_end(command: RunCommand, module: str) -> None:
    """The answer and nothing else goes to standard output; the command succeeds."""
    ran = command("run", f"{module}:greeter", "hi")
    assert (ran.stdout, ran.stderr, ran.exit_code) == ("Hello there\né\u2028!\n", "", 0)


def test_the_text_is_there_while_the_model_still_speaks(
    process: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """Text is printed as it comes: here the model waits until its first words were read."""
    (tmp_path / "waits.py").write_text(WAITS, encoding="utf-8")
    with process("run", "waits:agent", "hi") as running:
        assert running.stdout
        assert running.stdin
        assert running.stdout.read(len("one ")) == b"one "
        running.stdin.write(b"two\n")
        running.stdin.close()
        assert running.stdout.read() == b"two\n"
    assert running.returncode == 0


@pytest.mark.parametrize("agent", ["greeter", "ringer", "failing", "guarded", "broken"])
def test_json_is_the_whole_stream_a_chunk_a_line(
    command: RunCommand, module: str, agent: str
) -> None:
    """Whatever becomes of the run, each line is a wire chunk, from `start` to `finish`."""
    lines = command("run", f"{module}:{agent}", "hi", "--json").stdout_bytes.split(b"\n")
    assert lines.pop() == b""
    chunks = [chunk_from_json(line) for line in lines]
    assert [chunk_to_json(chunk) for chunk in chunks] == lines
    assert isinstance(chunks[0], StartChunk)
    assert isinstance(chunks[-1], FinishChunk)
    assert len({chunk.run_id for chunk in chunks}) == 1


def test_json_carries_the_text(command: RunCommand, module: str) -> None:
    """The lines' text deltas are what the command without `--json` prints."""
    ran = command("run", f"{module}:greeter", "hi", "--json")
    chunks = map(chunk_from_json, ran.stdout_bytes.splitlines())
    text = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
    assert text + "\n" == command("run", f"{module}:greeter", "hi").stdout


def test_tools_are_run(command: RunCommand, module: str) -> None:
    """The agent's tools are there."""
    ran = command("run", f"{module}:ringer", "hi", "--json")
    kinds = [chunk_from_json(line).type for line in ran.stdout_bytes.splitlines()]
    assert kinds.count("tool-result") == 1
    assert kinds.count("step-start") == 2


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_failed_run_ends_with_1(command: RunCommand, module: str, options: list[str]) -> None:
    """The failure is told on standard error; what came before it stays on standard output."""
    ran = command("run", f"{module}:failing", "hi", *options)
    assert ran.exit_code == 1
    assert ran.stderr == "streampipe: scripted/script: HTTP 503: scripted failure\n"
    assert "Half " in ran.stdout
    if options:
        assert any(
            isinstance(chunk_from_json(line), ErrorChunk) for line in ran.stdout_bytes.splitlines()
        )


def test_a_processor_at_fault_is_named(command: RunCommand, module: str) -> None:
    """A broken hook fails the run: nothing of the answer is printed, the processor is named."""
    ran = command("run", f"{module}:broken", "hi")
    assert (ran.exit_code, ran.stdout.strip()) == (1, "")
    assert "processor 'broken', process_output_stream: " in ran.stderr


def test_an_agent_without_a_model_ends_with_1(command: RunCommand, module: str) -> None:
    """What is wrong with the agent is told, without a traceback."""
    ran = command("run", f"{module}:modelless", "hi")
    assert ran.exit_code == 1
    assert "model must be a router id such as 'openai/gpt-5-mini'" in ran.stderr
    assert "Traceback" not in ran.output


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_blocked_run_ends_with_3(command: RunCommand, module: str, options: list[str]) -> None:
    """Who blocked it, and why, is told on standard error; what was blocked is printed nowhere."""
    ran = command("run", f"{module}:guarded", "hi", *options)
    assert (ran.exit_code, ran.stderr) == (3, "streampipe: blocked by 'guard': a password\n")
    assert "swordfish" not in ran.output
    if options:
        before_last = chunk_from_json(ran.stdout_bytes.splitlines()[-2])
        assert isinstance(before_last, TripwireChunk)


FORM = "write MODULE:AGENT with the module's dotted name, such as app.agents:support"
BAD_PLACES = {
    "": FORM,
    ":": FORM,
    "greeter": FORM,
    ":greeter": FORM,
    "{module}:": FORM,
    ".{module}:greeter": FORM,
    "./{module}.py:greeter": FORM,
    "a..b:greeter": FORM,
    "{module}.py:greeter": "no module '{module}.py' (looked in ",
    "no.such.module:agent": "no module 'no' (looked in ",
    "{module}:greter": "'{module}' has no 'greter'; agents in it: greeter, ringer, failing, ",
    "{module}:number": "'number' is a int, not an Agent",
    "{module}:nothing": "'nothing' is a NoneType, not an Agent",
    "{module}:Agent": "'Agent' is a type, not an Agent",
    "os:path": "not an Agent",
}


@pytest.mark.parametrize("place", BAD_PLACES)
def test_a_bad_place_ends_with_2(command: RunCommand, module: str, place: str) -> None:
    """A place that holds no agent is refused in a sentence that says what to do."""
    ran = command("run", place.format(module=module), "hi")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert BAD_PLACES[place].format(module=module) in ran.stderr
    assert ran.stderr.startswith("streampipe: ")
    assert "Traceback" not in ran.stderr


def test_a_module_that_needs_another_says_which(command: RunCommand, tmp_path: Path) -> None:
    """The module that is missing is named, not the one that was asked for."""
    (tmp_path / "needy.py").write_text("import no_such_dependency\n", encoding="utf-8")
    ran = command("run", "needy:agent", "hi")
    assert ran.exit_code == 2
    assert ran.stderr == "streampipe: needy imports 'no_such_dependency', which is not there\n"


FAULTY = """
from streampipe import Agent, operators as ops
from streampipe.testing import ScriptedModel

def upper(chunk):
    raise KeyError("what the function says")

agent = Agent(model=ScriptedModel([["a"]]), output_processors=[ops.map(upper)])
"""


def test_what_an_operator_s_function_raised_is_told_with_its_text(
    command: RunCommand, tmp_path: Path
) -> None:
    """A client is not told it, who sits at the terminal is."""
    (tmp_path / "faulty.py").write_text(FAULTY, encoding="utf-8")
    ran = command("run", "faulty:agent", "hi")
    assert ran.exit_code == 1
    assert "operator 'map': KeyError on text-start" in ran.stderr
    assert "because of KeyError: 'what the function says'" in ran.stderr


SCOPED = """
from streampipe import Agent
from streampipe.contracts import Processor
from streampipe.testing import ScriptedModel

class Greeter(Processor):
    id = "greeter"

    def process_output_stream(self, args):
        if args.part.type == "text-delta":
            args.part.text = f"Hello {args.request_context.get('user')}"
        return args.part

agent = Agent(model=ScriptedModel([["."]]), output_processors=[Greeter()])
build = lambda: agent
"""


def test_values_of_the_request_context_are_given(command: RunCommand, tmp_path: Path) -> None:
    """As text, and with any sign in them; else an agent that needs one could not be run."""
    (tmp_path / "scoped.py").write_text(SCOPED, encoding="utf-8")
    ran = command("run", "scoped:agent", "hi", "--context", "user=a=b", "--context", "plan=free")
    assert (ran.exit_code, ran.stdout) == (0, "Hello a=b\n")
    for wrong in ("user", "=ada"):
        ran = command("run", "scoped:agent", "hi", "--context", wrong)
        told = f"streampipe: --context takes KEY=VALUE, not {wrong!r}\n"
        assert (ran.exit_code, ran.stderr) == (2, told)


def test_a_function_that_makes_an_agent_is_refused_with_what_to_write(
    command: RunCommand, tmp_path: Path
) -> None:
    """The command calls nothing of the module's."""
    (tmp_path / "built.py").write_text(SCOPED, encoding="utf-8")
    ran = command("run", "built:build", "hi")
    assert ran.exit_code == 2
    assert "'build' is a function, not an Agent; write build = ...() in the module" in ran.stderr


def test_an_agent_that_cannot_be_made_is_told_in_a_line(
    command: RunCommand, tmp_path: Path
) -> None:
    """With where in the module that is, and no traceback."""
    (tmp_path / "classy.py").write_text(
        "from streampipe import Agent\nfrom streampipe.processors import PIIDetector\n"
        "agent = Agent(model='openai/x', output_processors=[PIIDetector])\n",
        encoding="utf-8",
    )
    ran = command("run", "classy:agent", "hi")
    assert ran.exit_code == 2
    assert "classy.py:3: output_processors[0]: PIIDetector is a class" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_it_tells_its_version(command: RunCommand) -> None:
    """That of the installed library, and nothing else."""
    ran = command("--version")
    assert (ran.exit_code, ran.stdout) == (0, f"streampipe {version('streampipe-rx')}\n")


def test_a_long_line_says_that_it_was_cut() -> None:
    """What is left out of a cell is three dots, on a terminal of any encoding."""
    told = summary(TextDelta("0", "a" * 200))
    assert (len(told), told[-4:]) == (WIDEST + 3, "a...")


def test_an_error_in_the_module_is_not_hidden(command: RunCommand, tmp_path: Path) -> None:
    """A module that raises is a bug of its author, who needs the traceback."""
    (tmp_path / "raises.py").write_text("1 / 0\n", encoding="utf-8")
    ran = command("run", "raises:agent", "hi")
    assert ran.exit_code == 1
    assert isinstance(ran.exception, ZeroDivisionError)


@pytest.mark.parametrize("arguments", [["run"], ["run", "a:b"], ["run", "a:b", "c", "--yaml"]])
def test_wrong_arguments_end_with_2(command: RunCommand, arguments: list[str]) -> None:
    """A missing argument and an unknown option are misuse."""
    assert command(*arguments).exit_code == 2
