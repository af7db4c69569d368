"""Every operator has its row on the page, its marble and its tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import operators_page
from streampipe import operators as ops
from streampipe.operators._operator import REGISTRY


def called(file: Path) -> Iterator[str]:
    """The operators that a test file names: `ops.NAME`, or what it imports from there."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "ops":
                yield node.attr
        elif isinstance(node, ast.ImportFrom) and node.module == "streampipe.operators":
            yield from (alias.name for alias in node.names)


ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
NAMES = sorted(REGISTRY)
# What has no marble: the loop of a run, and the hooks, whose elements are no chunks.
WITHOUT_MARBLE = {"feedback", *(name for name in NAMES if name.startswith("process_"))} - {
    "process_all"
}
# What is no operator of the registry, and has its type fixed as one.
BESIDE = {"concat", "create", "explain", "from_aiter", "of", "pipe", "to_aiter"}


@pytest.fixture(scope="module")
def tested() -> set[str]:
    """The operators that some test of what they do calls."""
    return {
        name
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        if file.parent.name != "typing"  # a type is no behaviour
        for name in called(file)
    }


@pytest.fixture(scope="module")
def typed() -> set[str]:
    """The functions that fix a type."""
    return {
        function.name
        for file in sorted((ROOT / "tests" / "typing").glob("test_*.py"))
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "assert_type"
    }


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_is_public(name: str) -> None:
    """It is exported under its name, as it was registered."""
    assert name in ops.__all__
    assert getattr(ops, name) is REGISTRY[name]


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_has_its_row(name: str) -> None:
    """One, with a marble that it gave."""
    rows = re.findall(
        rf"^\| `{name}` \| (kernel|boundary)[^|]* \| .+ \|(.*)\|$", PAGE, re.MULTILINE
    )
    assert len(rows) == 1
    assert (name in WITHOUT_MARBLE) is (rows[0][1].strip() == "")


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_is_tested(name: str, tested: set[str]) -> None:
    """By its public name, not by that of a builtin which is called the same."""
    assert name in tested


def test_a_builtin_is_no_operator(tmp_path: Path) -> None:
    """A file that maps and filters without the library tests none of its operators."""
    file = tmp_path / "test_other.py"
    file.write_text("from itertools import batched\nmap(str, filter(None, rx.scan(1)))\n")
    assert list(called(file)) == []
    file.write_text("from streampipe.operators import batch\nops.map(str)\n")
    assert sorted(called(file)) == ["batch", "map"]


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_says_what_it_takes_and_gives(name: str) -> None:
    """In its docstring."""
    doc = REGISTRY[name].__doc__ or ""
    assert len(doc.split("\n\n")[0]) > 20


def test_the_page_is_what_the_operators_give_today() -> None:
    """Marbles and all."""
    assert operators_page.page() == PAGE, "run scripts/operators_page.py"


@pytest.mark.parametrize("name", sorted({*NAMES, *BESIDE}))
def test_an_operator_is_typed(name: str, typed: set[str]) -> None:
    """A function of its own fixes the type of what comes out of it, for both checkers."""
    assert f"test_types_{name}" in typed, (
        f"add `test_types_{name}` to a file in tests/typing/: a use of ops.{name} whose result is "
        "fixed with `assert_type`, and what comes out held against it with `emits`; and in a "
        "function under `if TYPE_CHECKING` a wrong use, with `# type: ignore[code]  # reason`"
    )
