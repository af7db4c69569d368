"""The rules of the house, so that nobody has to argue about them; CONTRIBUTING.md lists them."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Folders as they lie on disk: `streampipe/operators` is a link, and rglob does not follow it.
SOURCES = sorted(file for top in ("streampipe", "operators") for file in (ROOT / top).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
LONGEST_FILE = 500
LONGEST_FUNCTION = 60
# What an `__init__` imports for its own use: `exported` makes its `__getattr__`.
MACHINERY = {"TYPE_CHECKING", "annotations", "exported"}
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}
MADE = {"build", "dist", "__pycache__"}
TEXT = {
    ".cfg",
    ".ini",
    ".json",
    ".jsonl",
    ".lock",
    ".md",
    ".py",
    ".toml",
    ".txt",
    ".yaml",
    ".yml",
    "",
}
PRIVATE_PLACES = re.compile(r"""(?:^|[\s"'`(=:])/(?:home|Users|root|work)/\w|[A-Z]:\\Users\\""")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(file: Path) -> str:
    """A file's path as a person would write it."""
    return str(file.relative_to(ROOT))


def texts(folder: Path = ROOT) -> Iterator[Path]:
    """Every text file of the project: neither what was made nor what only git or a tool reads."""
    for entry in sorted(folder.iterdir()):
        parts = entry.relative_to(ROOT).parts
        if entry.name in MADE or (entry.name.startswith(".") and parts[0] != ".ci"):
            continue
        if entry.is_file() and entry.suffix in TEXT:
            yield entry
        elif entry.is_dir() and not entry.is_symlink():
            yield from texts(entry)


def module_name(file: Path) -> str:
    """The name that a source file is imported by."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    if parts[0] == "operators":
        parts = ("streampipe", *parts)
    return ".".join(parts).removesuffix(".__init__")


def functions(tree: ast.AST) -> Iterator[Function]:
    """Every function in a tree, nested ones included."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def imported(node: ast.AST) -> list[str]:
    """The modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return ["streampipe" if node.level else node.module or ""]
    return []


def is_ours(name: str) -> bool:
    """Whether a module is of this project."""
    return name.partition(".")[0] in {"streampipe", "operators"}


def late_imports(tree: ast.AST) -> list[str]:
    """Our own modules that functions of a tree import."""
    nodes = (node for function in functions(tree) for node in ast.walk(function))
    return [name for node in nodes for name in imported(node) if is_ours(name)]


def long_functions(tree: ast.AST) -> list[str]:
    """Functions that are longer than allowed, their decorators counted."""
    found: list[str] = []
    for function in functions(tree):
        first = min([function.lineno, *(node.lineno for node in function.decorator_list)])
        lines = (function.end_lineno or first) - first + 1
        if lines > LONGEST_FUNCTION:
            found.append(f"{function.name} has {lines} lines")
    return found


def definitions(tree: ast.Module) -> list[str]:
    """What a module defines itself, wherever it stands in it."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    return [getattr(node, "name", "lambda") for node in ast.walk(tree) if isinstance(node, kinds)]


def bare_ignores(text: str) -> list[str]:
    """Type ignores that lack a code, or a reason behind it."""
    ignores = re.findall(r"#\s*(?:type|pyright):\s*ignore.*", text)
    return [line for line in ignores if not re.match(r"#[^\[]*\[[\w, -]+\]\s*(?:#|-)\s*\w", line)]


def public_names(module: ModuleType) -> set[str]:
    """What a package offers by its names: all without an underscore, but modules not listed."""
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not (isinstance(value, ModuleType) and name not in getattr(module, "__all__", ()))
        and name not in MACHINERY
    }


def root_imports(tree: ast.AST) -> list[str]:
    """What is taken from the roof, which re-exports all and so would close a cycle.

    A submodule may be asked for through it, as in `from streampipe import operators as ops`.
    """
    taken: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and imported(node) == ["streampipe"]:
            taken += [alias.name for alias in node.names]
        elif "streampipe" in imported(node):
            taken.append("streampipe")
    modules = {path.stem for path in (ROOT / "streampipe").iterdir()}
    return [name for name in taken if name not in modules]


@pytest.fixture(params=SOURCES, ids=name_of)
def source(request: pytest.FixtureRequest) -> Path:
    """Each of our modules."""
    return Path(request.param)


@cache
def parsed(file: Path) -> ast.Module:
    """A file as a syntax tree, which several rules look at."""
    return ast.parse(file.read_text(encoding="utf-8"))


@pytest.fixture
def tree(source: Path) -> ast.Module:
    """Each of our modules as a syntax tree."""
    return parsed(source)


def test_a_file_is_short(source: Path) -> None:
    """A module fits in one head."""
    lines = len(source.read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST_FILE, f"{name_of(source)} has {lines} lines: split it by what it does"


def test_a_function_is_short(source: Path, tree: ast.Module) -> None:
    """A function fits on one screen."""
    assert not long_functions(tree), name_of(source)


def test_a_module_is_named_for_what_it_does(source: Path) -> None:
    """No drawer for everything."""
    assert source.stem.strip("_") not in VAGUE, f"{name_of(source)}: name it for what it does"


def test_imports_stand_at_the_top(source: Path, tree: ast.Module) -> None:
    """An import of ours inside a function hides a cycle."""
    assert not late_imports(tree), f"{name_of(source)}: move them to the top of the module"


def test_the_roof_is_not_imported(source: Path, tree: ast.Module) -> None:
    """Modules import each other by their own names, not from the package that re-exports them."""
    if source == ROOT / "streampipe" / "__init__.py":
        return  # the roof itself
    assert not root_imports(tree), f"{name_of(source)}: write `from streampipe.<module> import …`"


@pytest.mark.parametrize("file", [f for f in SOURCES if f.name == "__init__.py"], ids=name_of)
def test_a_package_only_lists(file: Path) -> None:
    """An `__init__` says what there is; the code is in a module with a name."""
    found = definitions(parsed(file))
    assert not found, f"{name_of(file)} defines {found}: move them to a module"


@pytest.mark.parametrize("file", [f for f in SOURCES if f.name == "__init__.py"], ids=name_of)
def test_all_names_what_is_public(file: Path) -> None:
    """`__all__` is each public name, once; ruff's RUF022 keeps it sorted."""
    module = importlib.import_module(module_name(file))
    listed: list[str] = module.__all__
    assert len(listed) == len(set(listed)), "a name is listed twice"
    lazy = {name for name in listed if name not in vars(module)}
    assert all(hasattr(module, name) for name in lazy), "a listed name cannot be imported"
    assert set(listed) - lazy == public_names(module)


@pytest.mark.parametrize("file", [*SOURCES, *TESTS], ids=name_of)
def test_a_type_ignore_says_what_and_why(file: Path) -> None:
    """`# type: ignore[code]  # reason`."""
    assert not bare_ignores(file.read_text(encoding="utf-8")), name_of(file)


def test_operators_is_a_link() -> None:
    """The folder at the top is the package: interpreters and type checkers follow a link."""
    link = ROOT / "streampipe" / "operators"
    assert link.is_symlink(), (
        "streampipe/operators is no link, so the checkout cannot be imported from. Run "
        "`git config core.symlinks true && git checkout -- streampipe/operators` "
        "(on Windows in developer mode)."
    )
    assert link.resolve() == ROOT / "operators"


def test_operators_has_one_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Imported as `operators` every module would exist twice; so that is refused."""
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.delitem(sys.modules, "operators", raising=False)
    with pytest.raises(ImportError, match=r"import streampipe\.operators, not operators"):
        importlib.import_module("operators")


def test_no_file_knows_where_it_was_written() -> None:
    """No file of the project names a folder of somebody's machine."""
    found = [
        f"{name_of(file)}:{number}: {line.strip()[:80]}"
        for file in texts()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if PRIVATE_PLACES.search(line)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("rule", "breach", "fine"),
    [
        (late_imports, "def f():\n    import streampipe.wire", "import streampipe.wire"),
        (late_imports, "def f():\n    from . import wire", "def f():\n    import httpx"),
        (root_imports, "from streampipe import Agent", "from streampipe.agent import Agent"),
        (root_imports, "import streampipe", "from streampipe import operators as ops"),
        (definitions, "if x:\n    def f(): ...", "from a import f\n__all__ = ['f']"),
        (definitions, "f = lambda: 1", "f = g"),
        (long_functions, "def f():\n" + "    x\n" * 60, "def f():\n" + "    x\n" * 59),
        (long_functions, "@d\n@d\ndef f():\n" + "    x\n" * 58, "class A:\n" + "    x\n" * 90),
    ],
)
def test_a_rule_sees_its_breach(rule: object, breach: str, fine: str) -> None:
    """The rules are checked by something that can fail."""
    assert callable(rule)
    assert rule(ast.parse(breach))
    assert not rule(ast.parse(fine))


@pytest.mark.parametrize(
    ("line", "is_bare"),
    [
        ("x = 1  # type: " + "ignore", True),
        ("x = 1  # type: " + "ignore[misc]", True),
        ("x = 1  # pyright: " + "ignore", True),
        ("x = 1  # type: " + "ignore[misc]  # the stub is wrong", False),
        ("x = 1  # type: " + "ignore[arg-type, misc]  # see above", False),
        ("x = 1  # a type that people ignore", False),
    ],
)
def test_a_bare_ignore_is_seen(line: str, *, is_bare: bool) -> None:
    """An ignore needs a code and a reason."""
    assert bool(bare_ignores(line)) is is_bare


@pytest.mark.parametrize(
    ("line", "is_private"),
    [
        ("see /" + "home/ann/streampipe", True),
        ('path = "/' + 'work/main"', True),
        ("C:" + "\\Users\\ann", True),
        ("https://example.org/work/items", False),
        ("/workflows/main", False),
        ("/usr/bin/env", False),
    ],
)
def test_a_private_place_is_seen(line: str, *, is_private: bool) -> None:
    """Paths of a machine are told from paths of a server."""
    assert bool(PRIVATE_PLACES.search(line)) is is_private
