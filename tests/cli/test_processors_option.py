"""`--processors`: processors by name, behind an agent's own; and the list of what there is."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import COMMAND, PLAIN, RunCommand
from tests.cli.test_replay import PROTOCOL, lanes, recording

MAIL = recording({"content": "Ask ada@exa"}, {"content": "mple.com now"})
PLUGIN = """
class Shout:
    id = "shout"

    def process_output_stream(self, args):
        if args.part.type == "text-delta":
            args.part.text = args.part.text.upper()
        return args.part


def shout(argument):
    '''Makes everything loud.'''
    return Shout()
"""


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    """A recording with an address in it."""
    file = tmp_path / "mail.sse"
    file.write_bytes(MAIL)
    return str(file)


def test_they_stand_behind_the_agents_own(command: RunCommand, module: str) -> None:
    """What its processors let through is what they see."""
    done = command("run", f"{module}:redacting", "hi", "--processors", "rechunk:word,stop:[secret")
    assert (done.exit_code, done.stdout.strip()) == (0, "")


def test_what_they_block_ends_with_3_and_says_which(command: RunCommand, module: str) -> None:
    """By what was written."""
    blocked = command("run", f"{module}:ringer", "hi", "--processors", "redact:pii, tools:-ring")
    assert blocked.exit_code == 3
    assert "blocked by 'tools:-ring'" in blocked.stderr


def test_a_replay_goes_through_them_alone(command: RunCommand, recorded: str) -> None:
    """Without an agent they are the whole list."""
    done = command("replay", recorded, *PROTOCOL, "--processors", "redact:pii,batch:8")
    model, client = lanes(done.stdout)
    assert done.exit_code == 0
    assert "ada@exa" in model
    assert "[EMAIL]" in client
    assert "ada@" not in client


def test_a_replay_that_is_blocked_ends_with_3(command: RunCommand, recorded: str) -> None:
    """As with an agent's own."""
    done = command("replay", recorded, *PROTOCOL, "--processors", "block:pii")
    assert done.exit_code == 3
    assert "blocked by 'block:pii'" in done.stderr


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("redakt:pii", "unknown processor 'redakt'; did you mean 'redact'?"),
        ("redact:pi", "presets are pii, secrets, urls; there is no 'pi'"),
        ("batch:soon", "batch takes a count or a time"),
        ("redact", "redact needs an argument: redact:PRESET"),
        ("", "a processor is missing here"),
    ],
)
def test_a_line_that_is_none_ends_with_2(
    command: RunCommand, module: str, line: str, problem: str
) -> None:
    """And with what there is."""
    done = command("run", f"{module}:greeter", "hi", "--processors", line)
    assert done.exit_code == 2
    assert problem in done.stderr


def test_a_replay_refuses_what_would_do_nothing(command: RunCommand, recorded: str) -> None:
    """A replay asks no model, so nothing is spent."""
    done = command("replay", recorded, *PROTOCOL, "--processors", "cost:1")
    assert done.exit_code == 2
    assert "a replay asks no model" in done.stderr


def test_the_list_names_everything_that_a_line_takes(command: RunCommand) -> None:
    """As a table, and as JSON."""
    table = command("processors")
    listed = [json.loads(line) for line in command("processors", "--json").stdout.splitlines()]
    names = [each["name"] for each in listed]
    assert table.exit_code == 0
    assert {"redact", "block", "batch", "limit"} <= set(names)
    assert all(name in table.stdout for name in names)
    assert all(each["help"] for each in listed)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The real command, with a folder of installed distributions."""
    environment = {**PLAIN, "PYTHONPATH": str(folder), "PATH": ""}
    return subprocess.run(  # noqa: S603 - our own command
        [*COMMAND, *arguments], env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def installed(tmp_path: Path) -> Any:
    """A folder with a distribution whose entry point brings a processor."""
    folder = tmp_path / "site"
    info = folder / "loud-1.2.dist-info"
    info.mkdir(parents=True)
    (folder / "loud.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: loud\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[streampipe.processors]\nshout = loud:shout\n")
    return folder


def test_an_entry_point_brings_a_processor(installed: Path, recorded: str) -> None:
    """In a process of its own: by its name in a line, and in the list with where it is from."""
    done = run(installed, "replay", recorded, *PROTOCOL, "--processors", "shout,redact:pii")
    assert done.returncode == 0, done.stderr
    assert "NOW" in lanes(done.stdout)[1]
    listed = run(installed, "processors", "--json").stdout.splitlines()
    assert {"name": "shout", "source": "loud 1.2"}.items() <= json.loads(listed[-1]).items()


def test_a_broken_entry_point_is_named_with_its_distribution(
    installed: Path, recorded: str
) -> None:
    """Where it is used, and in the list, which ends with 1."""
    (installed / "loud.py").write_text("raise RuntimeError('no sound card')")
    used = run(installed, "replay", recorded, *PROTOCOL, "--processors", "shout")
    listed = run(installed, "processors")
    assert (used.returncode, listed.returncode) == (2, 1)
    for done in (used, listed):
        assert "loud 1.2" in done.stderr
        assert "no sound card" in done.stderr
