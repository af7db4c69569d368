"""Notebooks are run: cell by cell, in one namespace and one event loop, as Jupyter does it.

What the cells print has to be what the notebook was saved with, but for lines that begin with
`measured`. A picture in HTML has to be the saved one; where a figure was saved, one has to be
drawn.
"""

from __future__ import annotations

import asyncio
import inspect
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib as mpl
import pytest
from hypothesis import settings
from matplotlib import pyplot as plt

from scripts.notebooks import FIGURE, Shown, comparable, shown
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


@contextmanager
def kept_profile() -> Iterator[None]:
    """A notebook may load a Hypothesis profile; the tests behind it run under their own."""
    profile = settings.get_current_profile_name()
    try:
        yield
    finally:
        settings.load_profile(profile)


def run_notebook(notebook: Notebook, name: str) -> list[Shown]:
    """Run the cells one after the other; gives what each has printed and drawn.

    Raises:
        SyntaxError: a cell is no Python; a line magic is none either.
        Exception: whatever a cell raises; the traceback names the cell and its line.
    """
    module = ModuleType("__main__")
    printed: list[Shown] = []
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.setitem(sys.modules, "__main__", module)  # type hints are looked up there
        patch.setattr(sys, "path", [*sys.path])
        patch.setenv("STREAMPIPE_QUICK", "1")
        drawn: list[str] = []

        def show() -> None:
            drawn.extend(FIGURE for _ in plt.get_fignums())
            plt.close("all")

        patch.setattr(plt, "show", show)
        patch.setattr("IPython.display.display", lambda shown: drawn.append(shown._repr_html_()))
        with mpl.rc_context(), kept_profile():
            for number, cell in enumerate(code_cells(notebook), 1):
                drawn.clear()
                code = compiled(Block("python", text(cell["source"]), 1), f"{name}, cell {number}")
                with redirect_stdout(io.StringIO()) as output:
                    waiting = eval(code, vars(module))  # noqa: S307 - our own notebooks
                    if code.co_flags & inspect.CO_COROUTINE:
                        runner.run(waiting)
                printed.append((comparable(output.getvalue()), [*drawn]))
    return printed


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
    mpl.use("Agg")
    printed = run_notebook(notebook, path.name)
    assert printed == shown(notebook), f"run {path.name} from the top and save it"


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
    assert run_notebook(notebook_of(first, second), "n.ipynb") == [("1\n", []), ("2 3\n", [])]


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
    with pytest.raises(ValueError, match="print what a cell is to show"):
        shown(notebook_of("1", outputs=[output]))


def test_what_was_measured_is_not_compared() -> None:
    """A line that begins with `measured` may say something else today; any other may not."""
    assert comparable("measured: 3 us\nsame\n") == comparable("measured 4 us\nsame\n")
    assert comparable("it measured 3 us") != comparable("it measured 4 us")


def test_a_figure_that_is_missing_is_noticed() -> None:
    """A cell is told by its figures as well: drawn in a run, saved as a PNG."""
    picture = {"output_type": "display_data", "data": {"image/png": "", "text/plain": ""}}
    code = "from matplotlib import pyplot as plt\nplt.figure()\nplt.show()"
    saved = shown(notebook_of(code, outputs=[picture]))
    assert run_notebook(notebook_of(code), "n.ipynb") == saved == [("", [FIGURE])]
    assert run_notebook(notebook_of("1"), "n.ipynb") != saved


def test_a_picture_in_html_is_compared_to_the_letter() -> None:
    """What an object shows of itself is made anew in a run, and has to be what was saved."""
    code = (
        "from IPython.display import display\n"
        "class Drawn:\n    def _repr_html_(self): return '<b>1</b>'\n"
        "display(Drawn())"
    )
    picture = {"output_type": "display_data", "data": {"text/html": ["<b>", "1</b>"]}}
    saved = shown(notebook_of(code, outputs=[picture]))
    assert run_notebook(notebook_of(code), "n.ipynb") == saved == [("", ["<b>1</b>"])]
    assert run_notebook(notebook_of(code.replace("1", "2")), "n.ipynb") != saved


def test_a_profile_that_a_notebook_loads_stays_with_it() -> None:
    """How many examples the tests draw does not depend on which notebook ran before."""
    before = settings.get_current_profile_name()
    code = "from hypothesis import settings\nsettings.load_profile('ci')"
    run_notebook(notebook_of(f"{code}\nprint(settings.get_current_profile_name())"), "n.ipynb")
    assert settings.get_current_profile_name() == before != "ci"
