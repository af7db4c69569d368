"""The rows of the tables of lessons: what users of other systems ran into."""

from __future__ import annotations

from pathlib import Path

import pytest

__all__ = ["check_rows"]

PAGE = Path(__file__).resolve().parents[3] / "shared" / "spec" / "lessons.md"


def check_rows(table: str, tests: dict[str, str], module: dict[str, object]) -> None:
    """Check that every row of a table has a test, and every test of the list is there.

    Args:
        table: the table's heading.
        tests: by the beginning of a row, the name of its test.
        module: the names of the module that has the tests.
    """
    missing = [name for name in tests.values() if name not in module]
    assert not missing, f"no such test: {', '.join(missing)}"
    if not PAGE.exists():
        pytest.skip(f"{PAGE} is not part of the project, and is not here")
    section = PAGE.read_text(encoding="utf-8").partition(f"## {table}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    rows = [line.removeprefix("| ") for line in lines[2:]]  # below the head
    assert rows, f"there is no table {table!r}"
    untested = [row for row in rows if not any(row.startswith(start) for start in tests)]
    assert not untested, f"rows without a test: {untested}"
    stale = [start for start in tests if not any(row.startswith(start) for row in rows)]
    assert not stale, f"tests of rows that are gone: {stale}"
