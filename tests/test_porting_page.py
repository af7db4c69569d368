"""`docs/porting.md` names every hook, argument, result and option there is, and no other."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from streampipe import contracts, processors
from streampipe.agent import AgentOptions, CallOptions
from streampipe.contracts import HOOKS, HookArgs

PAGE = Path(__file__).resolve().parent.parent / "docs" / "porting.md"
TEXT = PAGE.read_text(encoding="utf-8")
OURS_ALONE = {"tool_concurrency", "high_water", "recorder", "tracing", "memory"}
"""Options without a counterpart, or (memory) not there yet."""


def section(title: str) -> str:
    """What stands under a heading."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found, f"the page has no section {title!r}"
    return found[1]


def rows(title: str) -> list[list[str]]:
    """The cells of a section's tables, without their heads."""
    lines = re.findall(r"^\| (.*) \|$", section(title), re.MULTILINE)
    cells = [line.split(" | ") for line in lines]
    return [row for row in cells if "`" in row[1]]


def named(cell: str) -> str:
    """The name that a cell begins with."""
    return cell.split("`")[1].partition("(")[0].partition(":")[0]


def kind_of(hook: str, ending: str) -> Any:
    """The class of a hook's args, or of its result; None if it has none."""
    words = (w.upper() if w in ("api", "llm") else w.capitalize() for w in hook.split("_"))
    return getattr(contracts, "".join(words) + ending, None)


def camel(name: str) -> str:
    """A name as TypeScript has it."""
    first, *rest = name.split("_")
    return "".join([first, *(w.upper() if w in ("api", "llm") else w.capitalize() for w in rest)])


def test_every_hook_is_listed() -> None:
    """By both its names."""
    listed = {named(ours): named(theirs) for theirs, ours in rows("Hooks")}
    assert listed == {hook: camel(hook) for hook in HOOKS}


def test_every_argument_is_listed() -> None:
    """Of every hook, and no argument that no hook has."""
    listed = [named(row[1]) for row in rows("Arguments")]
    had = {field.name for hook in HOOKS for field in fields(kind_of(hook, "Args"))}
    assert sorted(listed) == sorted(had)
    shared = {field.name for field in fields(HookArgs)}
    assert set(listed[: len(shared)]) == shared


def test_every_key_of_a_result_is_listed() -> None:
    """Beside the hook that may return it."""
    listed = {named(hook): re.findall(r"`(\w+)`", keys) for hook, keys in rows("Results")}
    kinds = {hook: kind_of(hook, "Result") for hook in HOOKS}
    assert listed == {hook: [f.name for f in fields(kind)] for hook, kind in kinds.items() if kind}


def test_every_option_of_an_agent_is_listed() -> None:
    """But those that only we have."""
    listed = [named(ours) for _, ours in rows("The agent")]
    known = {*AgentOptions.__annotations__, *CallOptions.__annotations__}
    assert sorted(listed) == sorted(known - OURS_ALONE)
    assert known >= OURS_ALONE


@pytest.mark.parametrize("row", rows("Ready-made processors"), ids=lambda row: row[1])
def test_a_processor_of_the_page_has_the_options_that_it_names(row: list[str]) -> None:
    """The class is there, and takes what the page says."""
    kind = getattr(processors, named(row[1]))
    parameters = inspect.signature(kind).parameters
    known = set(parameters)
    if "options" in parameters:  # `**options: Unpack[GuardOptions]`, or of those that extend it
        (options,) = get_args(get_type_hints(kind.__init__)["options"])
        known |= get_type_hints(options).keys()
    ours = {pair[1] for pair in re.findall(r"`([\w.]+)`(?: →| \(ms\):|:) `(\w+)`", row[2])}
    assert ours <= known
    assert ours or row[2] == "none needed"


def test_a_class_that_the_text_names_is_there() -> None:
    """Outside of the tables, too."""
    assert "StructuredOutput" in processors.__all__
    assert {named(row[1]) for row in rows("Ready-made processors")} <= set(processors.__all__)
