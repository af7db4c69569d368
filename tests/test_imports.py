"""`import streampipe` is cheap: it loads what every run needs, and nothing that only some need."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable

import pytest

from streampipe import models

BUDGET_MS = 250
TRIES = 5
HEAVY = (
    "httpx",
    "httpx_sse",
    "typer",
    "rich",
    "hypothesis",
    "openai",
    "aiostream",
    "pytest",
    "opentelemetry",
)
MEASURE = """
import json, sys, time
begin = time.process_time()
import streampipe
took = time.process_time() - begin
print(json.dumps({"ms": took * 1000, "modules": sorted(sys.modules)}))
"""


def fresh(code: str) -> str:
    """What a fresh interpreter prints for `code`.

    Raises:
        CalledProcessError: the code failed.
    """
    command = (sys.executable, "-W", "error", "-c", code)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603


def test_import_leaves_heavy_libraries_alone() -> None:
    """The HTTP client, the command line and testing are imported by whoever asks for them."""
    modules = set(json.loads(fresh(MEASURE))["modules"])
    assert "streampipe.agent" in modules
    assert not modules & set(HEAVY)


def test_import_keeps_its_budget(record_property: Callable[[str, object], None]) -> None:
    """One of five fresh imports is within the budget; a busy machine only slows some."""
    best = math.inf
    for _ in range(TRIES):
        best = min(best, json.loads(fresh(MEASURE))["ms"])
        if best <= BUDGET_MS:
            break
    record_property("import_ms", round(best, 1))
    print(f"import streampipe: {best:.0f} ms")  # noqa: T201 - shown with pytest -s and on failure
    # Twice: a busy machine slows even CPU time; `make bench` shows the figure of a quiet one.
    assert best <= 2 * BUDGET_MS, f"import streampipe took {best:.0f} ms, the budget is {BUDGET_MS}"


def test_what_is_lazy_is_there_when_asked_for() -> None:
    """A class that is imported late is imported all the same."""
    code = "from streampipe.models import OpenAIChatModel as model; print(model.__name__)"
    assert fresh(code).strip() == "OpenAIChatModel"


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A lazy package says what it lacks, as any module does."""
    with pytest.raises(
        AttributeError, match=r"'streampipe\.models' has no attribute 'NoSuchModel'"
    ):
        _ = models.NoSuchModel  # type: ignore[attr-defined]  # that is the point
