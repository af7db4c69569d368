"""`docs/guardrails.md` names every guard of the shelf, and no other."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import get_type_hints

from streampipe import processors
from streampipe.contracts import Processor
from streampipe.processors._check_guard import CheckGuard
from streampipe.processors._text_guard import TextGuard

PAGE = Path(__file__).resolve().parent.parent / "docs" / "guardrails.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = re.findall(r"^\| .* \| `(\w+)` \| .* \| .* \|$", TEXT, re.MULTILINE)


def guards() -> set[str]:
    """The classes of the shelf that decide what may pass."""
    kinds = (getattr(processors, name) for name in processors.__all__)
    bases = (TextGuard, CheckGuard, processors.ToolCallGuard)
    return {
        kind.__name__
        for kind in kinds
        if isinstance(kind, type) and issubclass(kind, Processor) and issubclass(kind, bases)
    }


def test_every_guard_has_a_row_and_every_row_is_a_guard() -> None:
    """A guard that nobody is told of is not chosen; a row of nothing misleads."""
    assert sorted(ROWS) == sorted(guards())


def test_every_option_of_guards_that_ask_has_a_row() -> None:
    """Editors show no more of them than `**options`."""
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| [^|]* \| ([^|]*) \|$", TEXT, re.MULTILINE)
    told = {name: else_ for names, else_ in rows for name in re.findall(r"\w+", names)}
    assert told.keys() == get_type_hints(processors.ClassifierOptions).keys()
    parameters = inspect.signature(CheckGuard.__init__).parameters
    for name in parameters.keys() & told.keys() - {"id"}:
        (first,) = re.findall(r"^`([^`]*)`", told[name])
        assert ast.literal_eval(first) == parameters[name].default, name


def test_every_row_says_what_the_guard_cannot_see() -> None:
    """There is always something."""
    table = re.findall(r"^\| .* \| `\w+` \| .* \| (.*) \|$", TEXT, re.MULTILINE)
    assert all(cell.strip() for cell in table)
    assert len(table) == len(ROWS)
