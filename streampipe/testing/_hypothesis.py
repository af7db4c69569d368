"""Hypothesis, or what to install: the one place that imports it."""

from __future__ import annotations

try:
    import hypothesis
    from hypothesis import strategies as st
    from hypothesis.errors import Flaky
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    msg = "strategies and checks need Hypothesis: pip install 'streampipe-rx[testing]'"
    raise ImportError(msg) from error

__all__ = ["Flaky", "hypothesis", "st"]
