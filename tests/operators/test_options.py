"""Bad options: refused when the operator is made, by its name, with what is allowed."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from streampipe import operators as ops
from streampipe.errors import ConfigurationError
from streampipe.text import Rule


async def slowly(*_: Any) -> Any:
    """An async function where a plain one is called."""


class Slow:
    """An object whose call is async."""

    async def __call__(self, *_: Any) -> Any:
        """Nothing."""


NO_FUNCTIONS: list[Any] = [None, "x", 5]
NOT_PLAIN: list[Any] = [slowly, Slow()]
PLAIN: dict[str, Any] = {
    "detect: on_match": lambda fn: ops.detect("a", fn),
    "feedback: step": ops.feedback,
}
OPTIONAL: dict[str, Any] = {
    "heartbeat: make": lambda fn: ops.heartbeat(1, fn),
    "limit_text: count": lambda fn: ops.limit_text(tokens=3, count=fn),
}
REPLACING: dict[str, Any] = {
    "redact: rule 'pattern 1': replacement": lambda fn: ops.redact("a", fn),
    "redact: rule 'r': replacement": lambda fn: ops.redact(Rule("r", "a"), fn),
    "replace: rule 'pattern': replacement": lambda fn: ops.replace("a", fn),
    "rule 'r': replacement": lambda fn: Rule("r", "a", fn),
    "rule 'r': check": lambda fn: Rule("r", "a", check=fn),
}
EITHER: dict[str, Any] = {
    "catch_api_error: handler": ops.catch_api_error,
    "map_async: fn": ops.map_async,
    "filter_async: predicate": ops.filter_async,
    "check_async: check": ops.check_async,
}


@pytest.mark.parametrize("who", [*PLAIN, *OPTIONAL])
@pytest.mark.parametrize("function", NOT_PLAIN, ids=["function", "object"])
def test_an_async_function_where_a_plain_one_is_called_is_refused(who: str, function: Any) -> None:
    """It would never run: what it gives is nobody's to await."""
    with pytest.raises(ConfigurationError, match=f"^{who} must be a plain function"):
        (PLAIN | OPTIONAL)[who](function)


@pytest.mark.parametrize("who", REPLACING)
@pytest.mark.parametrize("function", [5, *NOT_PLAIN], ids=["none", "function", "object"])
def test_a_rule_takes_plain_functions_only(who: str, function: Any) -> None:
    """A scan could not await."""
    with pytest.raises(ConfigurationError, match=f"^{who} is .*; give a .*plain function"):
        REPLACING[who](function)


@pytest.mark.parametrize(
    ("who", "bad"), [(who, bad) for who in [*PLAIN, *OPTIONAL, *EITHER] for bad in NO_FUNCTIONS]
)
def test_what_is_no_function_is_refused(who: str, bad: Any) -> None:
    """Neither a text nor nothing can be called; where an option may be absent, None is absent."""
    if who in OPTIONAL and bad is None:
        OPTIONAL[who](bad)
        return
    with pytest.raises(ConfigurationError, match=f"^{who} must be a function, not {bad!r}"):
        (PLAIN | OPTIONAL | EITHER)[who](bad)


COUNTS: dict[str, tuple[int, Any]] = {
    "map_async: concurrency": (1, lambda n: ops.map_async(slowly, concurrency=n)),
    "filter_async: concurrency": (1, lambda n: ops.filter_async(slowly, concurrency=n)),
    "check_async: concurrency": (1, lambda n: ops.check_async(slowly, concurrency=n)),
    "check_async: max_checks": (0, lambda n: ops.check_async(slowly, max_checks=n)),
    "batch: size": (1, ops.batch),
    "json_lines: max_hold": (1, lambda n: ops.json_lines(max_hold=n)),
    "retry_api: max_retries": (0, ops.retry_api),
    "ops.process_api_error: max_retries": (
        0,
        lambda n: ops.process_api_error([], max_retries=n),
    ),
    "to_aiter: high_water": (1, lambda n: ops.to_aiter(ops.of(), high_water=n)),
}


@pytest.mark.parametrize("who", COUNTS)
@pytest.mark.parametrize("bad", [-1, 1.5, True, "4", math.nan])
def test_a_count_is_a_whole_number(who: str, bad: Any) -> None:
    """Of at least so many."""
    least, make = COUNTS[who]
    allowed = f"{who} must be a whole number of {least} or more, not {bad!r}"
    with pytest.raises(ConfigurationError, match=f"^{re.escape(allowed)}"):
        make(bad)
    make(least)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ops.limit_text(chars="3"), "limit_text: .*give one of them, 1 or more"),  # type: ignore[arg-type]  # the point
        (lambda: ops.limit_text(tokens=True), "limit_text: .*tokens=True; give one of them"),
        (lambda: ops.stop_at(5), "stop_at: .*give one or more str, none empty"),  # type: ignore[arg-type]  # the point
        (lambda: ops.split_tags(5), "split_tags: .*names are .5,.; give one or more"),  # type: ignore[arg-type]  # the point
        (lambda: ops.replace("a", "b", max_match="a"), "replace: .*max_match is 'a'; give 1"),  # type: ignore[arg-type]  # the point
        (lambda: ops.replace("a", "b", flags="i"), "replace: .*flags is 'i'; give flags of re"),  # type: ignore[arg-type]  # the point
        (lambda: ops.replace("(", "b"), "replace: rule 'pattern'"),
        (lambda: ops.redact("("), "redact: rule 'pattern 1'"),
        (lambda: ops.redact(5), "redact: takes patterns and rules, not 5"),  # type: ignore[arg-type]  # the point
        (lambda: ops.process_all(5), "process_all: takes processors in a list, not 5"),  # type: ignore[arg-type]  # the point
        (lambda: ops.process_input(5), "ops.process_input: takes processors in a list, not 5"),  # type: ignore[arg-type]  # the point
        (lambda: ops.process_api_error(5), "ops.process_api_error: takes processors in a list"),  # type: ignore[arg-type]  # the point
        (lambda: ops.redact("a", parts=5), "redact: parts must be some of text, reasoning"),  # type: ignore[arg-type]  # the point
    ],
)  # fmt: skip
def test_other_bad_options_are_refused_by_name(make: Any, said: str) -> None:
    """With what is allowed; never a TypeError out of the middle."""
    with pytest.raises(ConfigurationError, match=f"^{said}"):
        make()
