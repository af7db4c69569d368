"""Build the sdist, from it the wheel, look into both, and run the wheel outside the repository.

`streampipe/operators` is a link to a folder at the top; builders lose such links without a word,
and no test inside the repository can see it. Hence this check.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPERATORS = "streampipe/operators"


def run(*command: str | Path, cwd: Path) -> None:
    """Run a command and show what it says only if it fails.

    Raises:
        SystemExit: it failed.
    """
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        sys.exit(f"failed ({done.returncode}): {' '.join(map(str, command))}")


def expected() -> set[str]:
    """Every module of the package, by the path that it has in a wheel."""
    found = {"streampipe/py.typed"}
    for folder, prefix in ((ROOT / "streampipe", "streampipe"), (ROOT / "operators", OPERATORS)):
        # rglob does not follow links, so the operators come from their own folder only.
        found |= {f"{prefix}/{file.relative_to(folder)}" for file in folder.rglob("*.py")}
    return found


def check_contents(sdist: Path, wheel: Path) -> None:
    """Compare what was built with what is in the repository.

    Raises:
        SystemExit: a module is missing, or something is there that users must not get.
    """
    with tarfile.open(sdist) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    if missing := {"operators", "streampipe", "pyproject.toml", "LICENSE"} - tops:
        sys.exit(f"{sdist.name} lacks {sorted(missing)}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    held = {name for name in names if ".dist-info/" not in name}
    if missing := expected() - held:
        sys.exit(f"{wheel.name} lacks {sorted(missing)}: see [tool.hatch] in pyproject.toml")
    if stray := held - expected():
        sys.exit(f"{wheel.name} holds what is no part of the package: {sorted(stray)}")
    if not any(name.endswith("/licenses/LICENSE") for name in names):
        sys.exit(f"{wheel.name} lacks the licence")


def check_install(wheel: Path, place: Path) -> None:
    """Install the wheel alone into an empty environment, and use it from there.

    Raises:
        SystemExit: it does not install or does not run.
    """
    environment = place / "venv"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=place)
    # -I: neither the working directory nor PYTHONPATH may lend the repository's modules.
    run(python, "-I", "-W", "error", ROOT / "scripts" / "smoke.py", cwd=place)


def main() -> None:
    """Build, look, install, run.

    Raises:
        SystemExit: one of them failed; the message says which and why.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        run(sys.executable, "-m", "build", "--outdir", place, ROOT, cwd=place)
        (sdist,) = place.glob("*.tar.gz")
        (wheel,) = place.glob("*.whl")
        check_contents(sdist, wheel)
        check_install(wheel, place)
        print(f"{wheel.name}: complete, installs and runs")


if __name__ == "__main__":
    main()
