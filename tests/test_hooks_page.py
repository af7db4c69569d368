"""`docs/hooks.md` says of every hook what the code says."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from streampipe import TripWire, contracts
from streampipe.contracts import HOOKS, HookArgs
from streampipe.errors import ProcessorError
from streampipe.testing import check_processor
from tests.test_docs import run_page

PAGE = Path(__file__).resolve().parent.parent / "docs" / "hooks.md"
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


# The page's stream processors, and what they fail with by their own will.
STREAMING: dict[str, tuple[type[BaseException], ...]] = {
    "Sentences": (),
    "Score": (),
    "Percent": (),
    "Stubborn": (TripWire,),
    "Broken": (ProcessorError,),
}


def test_the_page_s_stream_processors_are_all_looked_at() -> None:
    """Whoever adds one to the page says here what it promises."""
    hook = r"^class (\w+)\b[^\n]*:\n(?:[ ]{4}.*\n|\n)*?    def process_output_stream"
    assert sorted(STREAMING) == sorted(re.findall(hook, TEXT, re.MULTILINE))


def test_the_page_s_stream_processors_keep_the_laws() -> None:
    """What is shown to be copied loses no metadata, mixes no parts and lets nothing overtake."""
    names = run_page(TEXT, str(PAGE))
    for name, fails in STREAMING.items():
        check_processor(names[name], fails=fails, rewrites=name == "Percent")
