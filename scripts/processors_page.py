"""Write the table of `docs/processors.md` out of the classes; `--check` only looks if it is so.

A row is a class of `streampipe.processors`: the first sentence of its docstring, and the lists of
an agent that it stands in.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

from streampipe import processors
from streampipe.contracts import ERROR_HOOKS, HOOKS, INPUT_HOOKS, OUTPUT_HOOKS
from streampipe.operators._compose import Pipeline

PAGE = Path(__file__).resolve().parent.parent / "docs" / "processors.md"
BEGIN = "<!-- table: written by scripts/processors_page.py -->\n"
END = "<!-- end -->"
LISTS = {"input": INPUT_HOOKS, "output": OUTPUT_HOOKS, "error": ERROR_HOOKS}


def shelf() -> dict[str, type[Any]]:
    """The processors by name, sorted; what they are given, such as rules, is none."""
    found = {name: getattr(processors, name) for name in sorted(processors.__all__)}
    return {
        name: kind
        for name, kind in found.items()
        if inspect.isclass(kind)
        and (issubclass(kind, Pipeline) or any(hasattr(kind, hook) for hook in HOOKS))
    }


def stands_in(kind: type[Any]) -> str:
    """The lists that a processor may stand in; an operator stands among those of the output.

    What acts on errors stands among those for errors, where its other hooks run too.
    """
    lists = [name for name, hooks in LISTS.items() if any(hasattr(kind, h) for h in hooks)]
    return "error" if "error" in lists else ", ".join(lists) or "output"


def table() -> str:
    """The table as the page has it."""
    rows = ["| class | what it does | lists |", "| --- | --- | --- |"]
    for name, kind in shelf().items():
        doc = inspect.getdoc(kind) or ""
        said = " ".join(doc.split("\n\n")[0].split()).replace("|", "\\|")
        rows.append(f"| `{name}` | {said} | {stands_in(kind)} |")
    return "\n".join(rows) + "\n"


def written(page: str) -> str:
    """The page with its table as it should be."""
    before, rest = page.split(BEGIN, 1)
    return before + BEGIN + table() + END + rest.split(END, 1)[1]


def main(arguments: list[str]) -> int:
    """Write the page, or only look at it; returns the exit code."""
    page = PAGE.read_text(encoding="utf-8")
    right = written(page)
    if "--check" in arguments:
        return int(page != right)
    PAGE.write_text(right, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
