"""A folder with a module of agents, and the command line run in it."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streampipe.cli._app import app
from tests.cli.commands import AGENTS, COMMAND, PLAIN, WIDE, RunCommand

_numbers = itertools.count()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module of agents in the current folder, which is not on the path yet."""
    name = f"agents_of_test_{next(_numbers)}"  # each its own, since imports are remembered
    (tmp_path / f"{name}.py").write_text(AGENTS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return name


@pytest.fixture
def command(module: str) -> RunCommand:
    """Runs the command line in that folder, in this process."""
    del module

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(app, arguments, env=PLAIN | {"COLUMNS": WIDE})

    return run


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """Starts the command line as a process of its own, in the test's folder."""

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own command
            [*COMMAND, *arguments],
            cwd=tmp_path,
            env={**os.environ, **PLAIN},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    return start
