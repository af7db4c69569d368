"""The processors that have a name of their own in a line of them, and how each reads its argument.

A factory takes texts, and refuses what it cannot read with a `ConfigurationError`. A text that is
passed on as it is has the type `Any`: which choices there are is known where it goes.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

from streampipe import operators as ops
from streampipe.contracts import ProcessorViolation
from streampipe.errors import ConfigurationError
from streampipe.processors._known import (
    Factory,
    KnownProcessor,
    ListName,
    first_sentence,
    option_names,
)
from streampipe.processors.batch_parts import BatchParts
from streampipe.processors.cost_guard import CostGuard
from streampipe.processors.pii_detector import PIIDetector
from streampipe.processors.regex_filter import RegexFilter
from streampipe.processors.smooth_stream import SmoothStream
from streampipe.processors.token_limiter import TokenLimiter
from streampipe.processors.tool_call_guard import ToolCallGuard
from streampipe.processors.unicode_normalizer import UnicodeNormalizer

__all__ = ["BUILT_IN"]

BUILT_IN: dict[str, KnownProcessor] = {}
"""By name, in the order in which they are listed."""

log = logging.getLogger("streampipe")

_AMOUNT = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_COUNT = re.compile(r"[0-9]{1,9}")
_LIMIT = re.compile(rf"({_COUNT.pattern}) ?(tokens?|chars?)")
_TIME = re.compile(rf"({_AMOUNT.pattern})(ms|s|m)")
_UNITS = {"ms": 0.001, "s": 1, "m": 60}
_COVERS = "text+reasoning"


def _built_in(argument: str, *lists: ListName) -> Callable[[Factory], Factory]:
    """Make a factory known by its name; a guard that could stand elsewhere only watches answers."""

    def known(make: Factory) -> Factory:
        BUILT_IN[make.__name__] = KnownProcessor(
            name=make.__name__,
            argument=argument,
            options=option_names(make),
            help=first_sentence(make),
            lists=lists or ("output_processors",),
            make=make,
        )
        return make

    return known


# --- what finds something ------------------------------------------------------------------------


@_built_in("PRESET+...")
def redact(presets: str, *, covers: str = _COVERS) -> Any:
    """Hides what a preset finds: pii, secrets, urls."""
    return RegexFilter(presets=_values(presets), strategy="redact", covers=_values(covers))


@_built_in("PRESET+...")
def block(presets: str, *, covers: str = _COVERS, retry: str = "no") -> Any:
    """Blocks a run in whose answer a preset finds something; with retry=yes asks again."""
    again = _choice("retry", retry, {"yes": True, "no": False})
    return RegexFilter(presets=_values(presets), covers=_values(covers), retry=again)


@_built_in("PRESET+...")
def warn(presets: str, *, covers: str = _COVERS) -> Any:
    """Lets through what a preset finds, and tells the log."""
    return RegexFilter(
        presets=_values(presets), strategy="warn", covers=_values(covers), on_violation=_logged
    )


@_built_in("[TYPE+...]")
def pii(
    types: str | None,
    *,
    strategy: Any = "redact",
    method: Any = None,
    covers: str = _COVERS,
) -> Any:
    """Hides personal data by its structure: email, phone, card, iban, ...; by itself, all."""
    return PIIDetector(
        _values(types) or None,
        strategy=strategy,
        method=method,
        covers=_values(covers),
        on_violation=_logged if strategy == "warn" else None,
    )


@_built_in("[TOOL+...]")
def tools(names: str | None, *, calls: str | None = None, strategy: Any = "block") -> Any:
    """Blocks calls of all tools but these; of -TOOL, of that one; of more than calls= in a run."""
    signed = _values(names)
    return ToolCallGuard(
        [name for name in signed if not name.startswith("-")] or None,
        deny=[name[1:] for name in signed if name.startswith("-")],
        max_calls=None if calls is None else _count(calls),
        strategy=strategy,
    )


# --- limits --------------------------------------------------------------------------------------


@_built_in("LENGTH", "input_processors", "output_processors")
def limit(most: str) -> Any:
    """Ends an answer that grows longer than 400tokens or 2000chars."""
    match = _LIMIT.fullmatch(most)
    if match is None:
        raise ConfigurationError(f"limit takes 400tokens or 2000chars, not {most!r:.80}")
    count, unit = int(match[1]), match[2]
    return TokenLimiter(output=count) if unit.startswith("token") else ops.limit_text(chars=count)


@_built_in("DOLLARS", "input_processors")
def cost(amount: str, *, strategy: Any = "block") -> Any:
    """Blocks the next model call when a run has cost so many dollars, by list prices."""
    if not _AMOUNT.fullmatch(amount):
        raise ConfigurationError(f"cost takes dollars, such as 0.50, not {amount!r:.80}")

    def told(violation: ProcessorViolation) -> None:
        if "spent" in violation.detail:  # what has no price it tells the log itself
            _logged(violation)

    on_violation = told if strategy == "warn" else None
    return CostGuard(float(amount), strategy=strategy, on_violation=on_violation)


@_built_in("TEXT")
def stop(text: str) -> Any:
    """Ends the answer before a text."""
    return ops.stop_at(text)


@_built_in("TIME")
def first(time: str) -> Any:
    """Fails a step whose model says nothing for so long at the beginning."""
    return ops.timeout_first(_seconds(time))


@_built_in("TIME")
def idle(time: str) -> Any:
    """Fails a step whose model says nothing for so long."""
    return ops.timeout_idle(_seconds(time))


@_built_in("TIME")
def deadline(time: str) -> Any:
    """Fails a step whose answer is not complete by then."""
    return ops.deadline(_seconds(time))


# --- how the text comes --------------------------------------------------------------------------


@_built_in("[TAG+...]")
def think(tags: str | None) -> Any:
    """Makes reasoning of what stands between tags; by itself, <think> and </think>."""
    return ops.split_tags(*(_values(tags) or ["think"]))


@_built_in("[FORM]")
def normalize(form: Any) -> Any:
    """Brings text into the form NFKC or NFC of Unicode, without what cannot be seen."""
    return UnicodeNormalizer(form or "NFKC")


@_built_in("PIECE")
def rechunk(by: Any) -> Any:
    """Cuts the text into pieces of one kind: word, line, sentence, grapheme."""
    return ops.rechunk(by)


@_built_in("LIMIT")
def batch(most: str, *, wait: str | None = None) -> Any:
    """Joins 8 pieces of text, or those that come within 20ms; with wait=TIME whichever is first."""
    if _COUNT.fullmatch(most):
        return BatchParts(int(most), max_wait=None if wait is None else _seconds(wait))
    if wait is not None:
        raise ConfigurationError("batch has a time already; with wait= goes a count, such as 8")
    if not _TIME.fullmatch(most):
        raise ConfigurationError(f"batch takes a count or a time, 8 or 20ms, not {most!r:.80}")
    return BatchParts(max_wait=_seconds(most))


@_built_in("TIME")
def smooth(delay: str, *, by: Any = "word") -> Any:
    """Sends the text at an even pace: piece by piece, by= as for rechunk, every so often."""
    return SmoothStream(_seconds(delay), by)


@_built_in("TIME")
def heartbeat(time: str) -> Any:
    """Sends a sign of life whenever nothing has come for so long."""
    return ops.heartbeat(_seconds(time))


# --- how texts are read --------------------------------------------------------------------------


def _values(text: str | None) -> list[Any]:
    """What stands between plus signs; whoever takes the values says which there are."""
    return [] if text is None else [value.strip() for value in text.split("+")]


def _choice(option: str, text: str, choices: dict[str, bool]) -> bool:
    if text not in choices:
        raise ConfigurationError(f"{option} must be one of {', '.join(choices)}, not {text!r:.80}")
    return choices[text]


def _count(text: str) -> int:
    if not _COUNT.fullmatch(text):
        raise ConfigurationError(f"a count is a whole number, such as 8, not {text!r:.80}")
    return int(text)


def _seconds(text: str) -> float:
    match = _TIME.fullmatch(text)
    if match is None:
        msg = f"a time is a number and ms, s or m, such as 20ms or 1.5s, not {text!r:.80}"
        raise ConfigurationError(msg)
    return float(match[1]) * _UNITS[match[2]]


def _logged(violation: ProcessorViolation) -> None:
    log.warning("processor %r: %s", violation.processor_id, violation.message)
