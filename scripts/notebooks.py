"""Run the notebooks, or those named: write their outputs, or with `--check` compare them.

`python scripts/notebooks.py [--check] [throughput.ipynb ...]`
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
SECONDS = 300
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
MEASURED = re.compile(r"^measured\b.*$", re.MULTILINE)
"""A line that says what a machine gave; another machine gives something else."""

FIGURE = "figure"
Shown = tuple[str, list[str]]
"""What a cell shows: its text without what was measured, and its pictures in order.

A picture is its HTML, or `FIGURE` for a PNG: pixels depend on the machine.
"""


def _read(path: Path) -> Any:
    return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]  # of nbformat


def comparable(text: str) -> str:
    """What a cell prints, without what depends on the machine."""
    return MEASURED.sub("measured", text)


def shown(notebook: Any) -> list[Shown]:
    """What each cell of code shows.

    Args:
        notebook: a notebook of format 4, as JSON or as nbformat reads it.

    Raises:
        ValueError: a cell has an output that is neither printed nor a picture, such as a warning.
    """
    found: list[Shown] = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        text = ""
        pictures: list[str] = []
        for output in cell["outputs"]:
            if (output["output_type"], output.get("name")) == ("stream", "stdout"):
                text += "".join(output["text"])  # one text, or its lines
            elif output["output_type"] == "display_data" and "image/png" in output["data"]:
                pictures.append(FIGURE)
            elif output["output_type"] == "display_data" and "text/html" in output["data"]:
                pictures.append("".join(output["data"]["text/html"]))
            else:
                msg = f"print what a cell is to show, or draw it; it has {dict(output)}"
                raise ValueError(msg)
        found.append((comparable(text), pictures))
    return found


def executed(path: Path) -> Any:
    """The notebook with the outputs that it has today.

    Raises:
        CellExecutionError: a cell raises.
    """
    notebook = _read(path)
    place = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=place).execute()
    for cell in notebook.cells:
        cell.metadata.clear()
        for output in cell.get("outputs", ()):
            if "metadata" in output:
                output.metadata.clear()
            if "text/html" in output.get("data", ()):
                output.data.pop("text/plain", None)  # the object's address
    notebook.metadata = METADATA
    return notebook


def main(arguments: Sequence[str] | None = None) -> int:
    """Run notebooks; gives 1 when one of them shows something else than the committed one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("names", nargs="*", help="files in notebooks/; all unless named")
    options = parser.parse_args(arguments)
    stale = 0
    for path in [FOLDER / name for name in options.names] or sorted(FOLDER.glob("*.ipynb")):
        now = executed(path)
        today = shown(now)
        if not options.check:
            path.write_text(nbformat.writes(now) + "\n", encoding="utf-8")  # type: ignore[no-untyped-call]  # of nbformat
        elif today != shown(_read(path)):
            stale = 1
            print(f"{path.name}: its outputs are not what it gives; run scripts/notebooks.py")
    return stale


if __name__ == "__main__":
    sys.exit(main())
