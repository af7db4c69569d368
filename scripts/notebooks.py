"""Run the notebooks: write their outputs, or with `--check` hold the committed ones to it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
SECONDS = 120


def _read(path: Path) -> Any:
    return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]  # of nbformat


def executed(path: Path) -> Any:
    """The notebook with the outputs that it has today."""
    notebook = _read(path)
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3").execute()
    for cell in notebook.cells:
        cell.metadata.clear()
    notebook.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    return notebook


def outputs(notebook: Any) -> list[Any]:
    """What the cells show, as text."""
    return [
        [out.get("text") or out.get("data", {}).get("text/plain") for out in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def main() -> int:
    """Run every notebook; gives 1 when an output differs from the committed one."""
    check = "--check" in sys.argv[1:]
    stale = 0
    for path in sorted(FOLDER.glob("*.ipynb")):
        now = executed(path)
        if not check:
            path.write_text(nbformat.writes(now), encoding="utf-8")  # type: ignore[no-untyped-call]  # of nbformat
        elif outputs(now) != outputs(_read(path)):
            stale = 1
            print(f"{path.name}: its outputs are not what it gives; run scripts/notebooks.py")
    return stale


if __name__ == "__main__":
    sys.exit(main())
