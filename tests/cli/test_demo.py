"""`streampipe demo`, as a stranger runs it first; and how the command is found."""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import entry_points

import pytest

from streampipe.cli import main
from tests.cli.commands import COMMAND, RunCommand

LONGEST = 20  # seconds that a demo may take


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the demo prints where nobody sits at a terminal; it ended well, and in time."""
    ran = subprocess.run(  # noqa: S603 - our own command
        [*COMMAND, "demo"],
        cwd=tmp_path_factory.mktemp("demo"),
        capture_output=True,
        timeout=LONGEST,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    return ran.stdout.decode()


def run_of(shown: str, number: int) -> str:
    """What the demo prints of one of its three runs."""
    found = re.search(rf"^{number}\. .*?^  result .*?$", shown, re.MULTILINE | re.DOTALL)
    assert found, f"there is no run {number}"
    return found[0]


def test_it_is_plain_where_nobody_watches(shown: str) -> None:
    """Without a terminal there are no colours, no cursor moves and no box characters."""
    assert shown.isascii()
    assert "\x1b" not in shown
    assert "\r" not in shown


def test_it_says_where_it_goes(shown: str) -> None:
    """The first line is whole: the runs go over HTTP, and no further than loopback."""
    first = shown.splitlines()[0]
    assert re.fullmatch(r"A model server listens on http://127\.0\.0\.1:\d+/v1; .* HTTP\.", first)


def test_tools_a_redaction_and_a_second_attempt(shown: str) -> None:
    """The first run: two tools, an address taken out, a rejected answer, an accepted one."""
    run = run_of(shown, 1)
    kinds = [line.split()[0] for line in run.splitlines()[1:]]
    assert kinds.count("tool-call") == kinds.count("tool-result") == 2
    assert "[redacted]" in run
    assert "ada@example.com" not in shown
    assert kinds.count("step-start") == kinds.count("step-finish") == 3
    assert "step-finish                     reason='retry'" in run
    assert "data-words" in kinds
    assert kinds[-2:] == ["finish", "result"]
    assert "finish_reason='stop' retries=1" in run
    assert "not sure" not in run.splitlines()[-1]


def test_a_refused_request_is_cured(shown: str) -> None:
    """The second run: the provider's 400 is told, and then there is an answer."""
    run = run_of(shown, 2)
    assert run.index("HTTP 400") < run.index("'Once '")
    assert run.endswith("finish_reason='stop' retries=1")


def test_a_run_is_blocked(shown: str) -> None:
    """The third run: it ends before the password, and so does the connection."""
    run = run_of(shown, 3)
    assert "tripwire" in run
    assert "swordfish" not in shown
    assert run.endswith("result text='' finish_reason='other' retries=0")
    assert "the blocked answer was cut off: the server saw the client leave" in shown


def test_the_table_says_what_each_processor_did(shown: str) -> None:
    """Every processor of the three runs is in it, with what it did and how often."""
    title, table = shown[shown.index("What each processor did") :].split("\n", 1)
    assert title == "What each processor did".ljust(len(title))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    did = dict(row for row in rows if len(row) == 2)
    assert did.pop("processor") == "what it did"
    assert list(did) == [
        "count-words",
        "redact-emails",
        "ask-for-answers",
        "drop-prefill",
        "block-secrets",
    ]
    assert did["redact-emails"] == "tool results redacted: 1"
    assert did["ask-for-answers"] == "steps accepted: 2, steps rejected: 1"
    assert did["drop-prefill"] == "API errors cured: 1"
    assert did["block-secrets"] == "prompts seen: 1, runs blocked: 1"
    assert re.fullmatch(r"chunks seen: \d+, data chunks sent: 2", did["count-words"])


def test_it_tells_what_it_took(shown: str) -> None:
    """The last line counts the calls and the seconds."""
    assert re.fullmatch(r"6 model calls in \d+\.\d s", shown.splitlines()[-1])


def test_the_command_is_installed_under_its_name() -> None:
    """`streampipe` is the function that the package exports."""
    (point,) = entry_points(group="console_scripts", name="streampipe")
    assert point.load() is main


def test_without_arguments_it_lists_its_commands(command: RunCommand) -> None:
    """Whoever types the bare name is shown what there is."""
    ran = command()
    assert ran.exit_code == 2
    for name in ("demo", "run", "replay"):
        assert re.search(rf"^\W*{name}  ", ran.output, re.MULTILINE)


@pytest.mark.parametrize("arguments", [["demo", "now"], ["dmeo"], ["--loud"]])
def test_what_it_does_not_know_ends_with_2(command: RunCommand, arguments: list[str]) -> None:
    """A superfluous argument, an unknown command and an unknown option are misuse."""
    ran = command(*arguments)
    assert ran.exit_code == 2
    assert arguments[-1] in ran.output
