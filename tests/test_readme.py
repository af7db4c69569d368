"""What a stranger reads first is true."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
from typer.main import get_command

from streampipe.cli._app import app
from streampipe.contracts import ERROR_HOOKS, HOOKS, INPUT_HOOKS, OUTPUT_HOOKS
from streampipe.models._catalog import _PROVIDERS
from tests.test_docs import blocks, run_page

TEXT = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
LONGEST = 275  # lines
LISTS = {
    "input_processors": INPUT_HOOKS,
    "output_processors": OUTPUT_HOOKS,
    "error_processors": ERROR_HOOKS,
}


def test_it_is_read_in_one_go() -> None:
    """What does not fit belongs into `docs/`."""
    assert len(TEXT.splitlines()) <= LONGEST


def test_the_first_example_prints_what_stands_below_it() -> None:
    """The first block is whole, and the second one is its output."""
    first, second = blocks(TEXT)[:2]
    assert (first.info, second.info) == ("python", "text")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        run_page(f"```python\n{first.code}```\n", "README.md")
    assert [line.rstrip() for line in printed.getvalue().splitlines()] == second.code.splitlines()


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_is_in_the_table_with_its_list(hook: str) -> None:
    """Whoever writes a processor sees which list takes it."""
    (row,) = re.findall(rf"^\| `{hook}` \| .* \| `(\w+)` \|$", TEXT, re.MULTILINE)
    assert hook in LISTS[row]


def test_its_commands_and_options_exist() -> None:
    """The command line has every command and option that is shown, and no command that is not."""
    commands = vars(get_command(app))["commands"]
    shown = re.findall(r"^\$ streampipe (\w+)(.*?)(?:  #.*)?$", TEXT, re.MULTILINE)
    assert {name for name, _ in shown} == set(commands)
    for name, rest in shown:
        options = {option for param in commands[name].params for option in param.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= options


def test_its_models_are_in_the_catalogue() -> None:
    """A router id that is shown has a known provider."""
    prefixes = set(re.findall(r'model="([a-z-]+)/', TEXT))
    assert prefixes
    assert prefixes <= set(_PROVIDERS)
