"""Notebooks are run: cell by cell, in one namespace and one event loop, as Jupyter does it.

What the cells print has to be what the notebook was saved with.
"""

from __future__ import annotations

import asyncio
import inspect
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.test_docs import Block, compiled

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}

Cell = dict[str, Any]
Notebook = dict[str, Any]


def text(lines: str | list[str]) -> str:
    """A text of the format, which may be cut into lines."""
    return lines if isinstance(lines, str) else "".join(lines)


def code_cells(notebook: Notebook) -> list[Cell]:
    """The cells that can be run, in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_notebook(notebook: Notebook, name: str) -> list[str]:
    """Run the cells one after the other; gives what each has printed.

    Raises:
        SyntaxError: a cell is no Python; a line magic is none either.
        Exception: whatever a cell raises; the traceback names the cell and its line.
    """
    module = ModuleType("__main__")
    printed: list[str] = []
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.setitem(sys.modules, "__main__", module)  # type hints are looked up there
        for number, cell in enumerate(code_cells(notebook), 1):
            code = compiled(Block("python", text(cell["source"]), 1), f"{name}, cell {number}")
            with redirect_stdout(io.StringIO()) as output:
                waiting = eval(code, vars(module))  # noqa: S307 - our own notebooks
                if code.co_flags & inspect.CO_COROUTINE:
                    runner.run(waiting)
            printed.append(output.getvalue())
    return printed


def saved_outputs(notebook: Notebook) -> list[str]:
    """What each cell had printed when the notebook was saved.

    Raises:
        AssertionError: a cell has another kind of output, such as an error or a picture.
    """
    saved: list[str] = []
    for cell in code_cells(notebook):
        kinds = {(output["output_type"], output.get("name")) for output in cell["outputs"]}
        assert kinds <= {("stream", "stdout")}, f"print what a cell is to show; it has {kinds}"
        saved.append("".join(text(output["text"]) for output in cell["outputs"]))
    return saved


def notebook_of(*sources: str, outputs: list[Any] | None = None) -> Notebook:
    """A notebook of these cells, for tests of the tests."""
    cell = {"cell_type": "code", "outputs": outputs or []}
    return {"cells": [{**cell, "source": source} for source in sources]}


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    """Each notebook of the project."""
    return Path(request.param)


@pytest.fixture
def notebook(path: Path) -> Notebook:
    """Each notebook, read."""
    read: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return read


def test_there_is_a_notebook() -> None:
    """The tests below have something to run."""
    assert NOTEBOOKS


def test_a_notebook_shows_what_it_prints(
    path: Path, notebook: Notebook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Run from the top, without a key, every cell prints what a reader sees below it."""
    monkeypatch.chdir(tmp_path)
    printed = run_notebook(notebook, path.name)
    assert printed == saved_outputs(notebook), f"run {path.name} from the top and save it"


def test_a_notebook_opens_anywhere(notebook: Notebook) -> None:
    """It is in format 4.5, with a kernel that everybody has and an id for every cell."""
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"] == KERNEL
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(cell["cell_type"] in ("code", "markdown") for cell in notebook["cells"])


def test_a_notebook_was_run_from_the_top(notebook: Notebook) -> None:
    """The numbers of its cells count up, and it begins with what it is about."""
    counts = [cell["execution_count"] for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))
    assert text(notebook["cells"][0]["source"]).startswith("# ")


def test_cells_share_names_and_may_await() -> None:
    """A later cell builds on an earlier one, in the same event loop; each print is its own."""
    first = "import asyncio\nx = asyncio.ensure_future(asyncio.sleep(0, 3))\nawait x\nprint(1)"
    second = "assert x.get_loop() is asyncio.get_running_loop()\nprint(2, await x)"
    assert run_notebook(notebook_of(first, second), "n.ipynb") == ["1\n", "2 3\n"]


def test_a_failing_cell_is_named() -> None:
    """What a cell raises comes out, with the cell and the line in its traceback."""
    with pytest.raises(ZeroDivisionError) as caught:
        run_notebook(notebook_of("x = 0", "y = 1\ny / x"), "n.ipynb")
    last = caught.traceback[-1]
    assert (last.frame.code.raw.co_filename, last.lineno + 1) == ("n.ipynb, cell 2", 2)


def test_a_magic_is_no_python() -> None:
    """What only Jupyter understands is refused: a notebook has to run here too."""
    with pytest.raises(SyntaxError):
        run_notebook(notebook_of("%time x = 1"), "n.ipynb")


@pytest.mark.parametrize(
    "output",
    [
        {"output_type": "stream", "name": "stderr", "text": "oops"},
        {"output_type": "error", "ename": "E", "evalue": "", "traceback": []},
        {"output_type": "execute_result", "data": {"text/plain": "1"}},
    ],
    ids=["stderr", "error", "value"],
)
def test_an_output_that_cannot_be_checked_is_refused(output: Any) -> None:
    """A saved warning, error or bare value would be text that nobody compares."""
    with pytest.raises(AssertionError, match="print what a cell is to show"):
        saved_outputs(notebook_of("1", outputs=[output]))
