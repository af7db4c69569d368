"""`docs/processors.md` says of every hook what the code says."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from streampipe import contracts
from streampipe.contracts import HOOKS, HookArgs

PAGE = Path(__file__).resolve().parent.parent / "docs" / "processors.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = {
    row[0]: re.findall(r"`(\w+)`", row[1])
    for row in re.findall(r"^\| `(process_\w+)` \| (.*) \|$", TEXT, re.MULTILINE)
}
SHARED = [field.name for field in fields(HookArgs)]


def args_of(hook: str) -> list[str]:
    """The fields that a hook's args have besides those of every hook."""
    words = hook.split("_")
    name = "".join(word.upper() if word in ("api", "llm") else word.capitalize() for word in words)
    return [f.name for f in fields(getattr(contracts, f"{name}Args")) if f.name not in SHARED]


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_s_row_lists_its_fields(hook: str) -> None:
    """All of them, in order, and none that is not there."""
    assert ROWS[hook] == args_of(hook)


def test_the_table_has_no_other_hook() -> None:
    """A row belongs to a hook."""
    assert sorted(ROWS) == sorted(HOOKS)


def test_what_every_hook_gets_is_listed() -> None:
    """The fields that all hooks share have a row of their own."""
    rows = re.findall(r"^\| (`[\w`, ]+`) \|", TEXT, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert listed - set(HOOKS) == set(SHARED)


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_has_a_section_with_an_example(hook: str) -> None:
    """Under its own heading, a processor that defines it."""
    found = re.search(rf"^## {hook}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found, f"there is no section about {hook}"
    assert f"def {hook}(self, args):" in found[1]
