"""Documentation is run: each Python block of a page, in order, in one namespace.

A block marked `python no-run` is only compiled. Docstrings' examples run as doctests.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

from streampipe.operators import _operator

ROOT = Path(__file__).resolve().parent.parent
REQUIRED = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PAGES = [*REQUIRED, *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(
    r"""
    ^(?P<indent>[ ]*)(?P<ticks>```+)[ ]*(?P<info>[^\n`]*)\n
    (?P<body>.*?)
    ^(?P=indent)(?P=ticks)[ ]*$
    """,
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
MAKE = re.compile(r"^\s*(?:\$ )?make\b([^#\n]*)", re.MULTILINE)
TARGET = re.compile(r"(?<![\w=-])(?!make\b)[a-z]+\b")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        info: what stands behind the opening fence.
        code: what stands between the fences, its indentation removed.
        line: where the code begins in its page, from 1.
    """

    info: str
    code: str
    line: int

    @property
    def is_python(self) -> bool:
        """Whether it has to compile."""
        return self.info.split()[:1] == ["python"]

    @property
    def is_run(self) -> bool:
        """Whether it has to run."""
        return self.is_python and "no-run" not in self.info.split()[1:]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(
            found["info"].strip(),
            re.sub(f"^{found['indent']}", "", found["body"], flags=re.MULTILINE),
            text[: found.start("body")].count("\n") + 1,
        )
        for found in FENCE.finditer(text)
    ]


def compiled(block: Block, page: str) -> CodeType:
    """A block as code whose traceback points into the page; `await` may stand at its top.

    Raises:
        SyntaxError: it is no Python.
    """
    padded = "\n" * (block.line - 1) + block.code
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code: CodeType = compile(padded, page, "exec", flags=flags, dont_inherit=True)
    return code


def run_page(text: str, page: str) -> dict[str, Any]:
    """Run the blocks of a page one after the other; gives the names they leave.

    A block with an `await` at its top runs in the page's event loop. One without runs as a script
    does, outside of any loop, so that it may call `asyncio.run`.

    Raises:
        SyntaxError: a block is no Python.
        Exception: whatever a block raises; the traceback names the page's line.
    """
    module = ModuleType("__main__")
    names = vars(module)
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        # Type hints and pydantic look a class's module up by its name.
        patch.setitem(sys.modules, "__main__", module)
        patch.setattr(_operator, "REGISTRY", {**_operator.REGISTRY})  # its operators stay with it
        for block in blocks(text):
            if not block.is_python:
                continue
            code = compiled(block, page)
            if not block.is_run:
                continue
            waiting = eval(code, names)  # noqa: S307 - our own pages
            if code.co_flags & inspect.CO_COROUTINE:
                runner.run(waiting)
    return names


def made_targets(makefile: str) -> set[str]:
    """The targets that a Makefile defines."""
    return set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))


def asked_targets(text: str) -> set[str]:
    """The targets that a page's shell blocks and inline code ask `make` for."""
    shell = [block.code for block in blocks(text) if not block.is_python]
    inline = re.findall(r"`(make [^`]+)`", text)
    return {
        word for line in MAKE.findall("\n".join([*shell, *inline])) for word in TARGET.findall(line)
    }


def page_name(page: Path) -> str:
    """A page's path as a person would write it."""
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_a_page_runs(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every example does what its page says it does, in a folder of its own, without a key."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    run_page(text, str(page))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_a_page_asks_for_targets_that_exist(page: Path) -> None:
    """A `make` command in a page is one that the Makefile knows."""
    made = made_targets((ROOT / "Makefile").read_text(encoding="utf-8"))
    assert not asked_targets(page.read_text(encoding="utf-8")) - made


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_a_page_links_to_files_that_exist(page: Path) -> None:
    """A link into the repository leads somewhere."""
    links = re.findall(r"\]\((?![a-z]+:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert not [link for link in links if not (page.parent / link).exists()]


def test_the_package_shows_the_readme() -> None:
    """Whoever finds the package in an index reads the README there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project.get("readme") == "README.md", 'say `readme = "README.md"` under [project]'


def test_blocks_are_found_where_they_are() -> None:
    """Blocks are told by their info, unindented, with the line that an error will name."""
    text = (
        "a\n```python\nx = 1\n```\n- b\n  ```python no-run\n  y = 2\n  ```\n```sh\n$ make z\n```\n"
    )
    first, second, third = blocks(text)
    assert (first.code, first.line, first.is_run) == ("x = 1\n", 3, True)
    assert (second.code, second.line, second.is_run) == ("y = 2\n", 7, False)
    assert second.is_python
    assert not third.is_python


def test_blocks_share_names_and_may_await() -> None:
    """A later block builds on an earlier one; `await` needs no function around it."""
    text = (
        "```python\nimport asyncio\nx = 1\n```\n```python\nx = await asyncio.sleep(0, x + 1)\n```\n"
    )
    assert run_page(text, "page.md")["x"] == 2


def test_a_block_may_be_a_script() -> None:
    """A block that runs its own event loop works as it does in a file, classes and all."""
    text = """```python
from __future__ import annotations
import asyncio, typing

class A: ...

async def main(a: A | None = None) -> int:
    return 3

if __name__ == "__main__":
    x = asyncio.run(main())
hints = typing.get_type_hints(main)
```
"""
    names = run_page(text, "page.md")
    assert names["x"] == 3
    assert names["hints"]["return"] is int


def test_a_block_that_is_not_run_still_compiles() -> None:
    """`no-run` spares a block its effects, not its syntax."""
    run_page("```python no-run\nraise SystemExit\n```\n", "page.md")
    with pytest.raises(SyntaxError):
        run_page("```python no-run\nawait =\n```\n", "page.md")


def test_a_failing_block_names_its_line() -> None:
    """What a block raises comes out, and its traceback points into the page."""
    with pytest.raises(ZeroDivisionError) as caught:
        run_page("text\n\n```python\nx = 0\n1 / x\n```\n", "page.md")
    last = caught.traceback[-1]
    assert (str(last.path).rpartition("/")[2], last.lineno + 1) == ("page.md", 5)


def test_targets_are_told_from_text() -> None:
    """`make` in a shell block or in backticks is a command; in a sentence it is a verb."""
    shell = "$ make demo\nmake -j2 PYTHON=python test check  # both\nmake x && make y\n"
    text = f"make sense of it\n```sh\n{shell}```\nrun `make laws`\n"
    assert asked_targets(text) == {"demo", "test", "check", "laws", "x", "y"}
    assert made_targets("all: x\n\tmake y\nx: z ## say\nV := 1\n") == {"all", "x"}
