"""The notebooks run, and show what they say they show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.timeout(180)
def test_committed_outputs_are_what_the_notebooks_give() -> None:
    """Each cell is run in a fresh kernel, on the scripted model, and compared."""
    assert list((ROOT / "notebooks").glob("*.ipynb"))
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, str(ROOT / "scripts" / "notebooks.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )
    assert done.returncode == 0, done.stdout + done.stderr
