"""What models cost: a table as data, and how a model is found in one."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streampipe.chunks import Usage
from streampipe.errors import ConfigurationError

__all__ = ["PRICED_ON", "PRICES", "Price", "checked_prices", "price_of"]

MILLION = 1_000_000
PRICED_ON = "2026-10-10"
"""The day of the table. What has come out or changed since is for the user's own."""


@dataclass(slots=True, frozen=True)
class Price:
    """What a million tokens of a model cost; without `cached_input`, cached input is as other."""

    input: float
    output: float
    cached_input: float | None = None

    def of(self, usage: Usage) -> float:
        """What a call cost."""
        cached = min(usage.cached_input_tokens, usage.input_tokens)
        rate = self.input if self.cached_input is None else self.cached_input
        fresh = usage.input_tokens - cached
        spent = fresh * self.input + cached * rate + usage.output_tokens * self.output
        return spent / MILLION


# List prices in USD, for prompts of ordinary length and without any discount but that for cached
# input: input, output, cached input. A name stands for those with a date, or "latest", behind it.
_ROWS = """
    claude-fable-5-1          10      50     0.25
    claude-haiku-4-5           1       5     0.1
    claude-opus-4             15      75     1.5
    claude-opus-4-0           15      75     1.5
    claude-opus-4-1           15      75     1.5
    claude-opus-4-5            5      25     0.5
    claude-opus-4-6            5      25     0.5
    claude-opus-4-7            5      25     0.5
    claude-opus-5              5      25     0.5
    claude-opus-5-5            4      20     0.2
    claude-sonnet-4            3      15     0.3
    claude-sonnet-4-0          3      15     0.3
    claude-sonnet-4-5          3      15     0.3
    claude-sonnet-5            2      10     0.2
    claude-3-5-haiku           0.8     4     0.08
    claude-3-haiku             0.25    1.25  0.03
    codestral                  0.3     0.9   -
    deepseek-chat              0.28    0.42  0.028
    deepseek-reasoner          0.28    0.42  0.028
    gemini-2.0-flash           0.1     0.4   0.025
    gemini-2.5-flash           0.3     2.5   0.03
    gemini-2.5-flash-lite      0.1     0.4   0.01
    gemini-2.5-pro             1.25   10     0.125
    gpt-4.1                    2       8     0.5
    gpt-4.1-mini               0.4     1.6   0.1
    gpt-4.1-nano               0.1     0.4   0.025
    gpt-4o                     2.5    10     1.25
    gpt-4o-mini                0.15    0.6   0.075
    gpt-5                      1.25   10     0.125
    gpt-5-mini                 0.25    2     0.025
    gpt-5-nano                 0.05    0.4   0.005
    gpt-5.1                    1.25   10     0.125
    gpt-5.2                    1.75   14     0.175
    gpt-5.4                    2.5    15     0.25
    gpt-5.4-mini               0.75    4.5   0.075
    grok-3                     3      15     0.75
    grok-3-mini                0.3     0.5   0.075
    grok-4                     3      15     0.75
    llama-3.1-8b-instant       0.05    0.08  -
    llama-3.3-70b-versatile    0.59    0.79  -
    mistral-large              2       6     -
    mistral-medium             0.4     2     -
    mistral-small              0.1     0.3   -
    o1                        15      60     7.5
    o3                         2       8     0.5
    o3-mini                    1.1     4.4   0.55
    o4-mini                    1.1     4.4   0.275
"""
_DATE = re.compile(r"[-@](?:\d{8}|\d{4}-\d\d-\d\d|\d{4}|latest)$")


def _read(rows: str) -> dict[str, Price]:
    made: dict[str, Price] = {}
    for row in rows.split("\n"):
        if row.strip():
            name, fresh, output, cached = row.split()
            made[name] = Price(
                float(fresh), float(output), None if cached == "-" else float(cached)
            )
    return made


PRICES: Mapping[str, Price] = _read(_ROWS)
"""In USD, by model."""


def price_of(prices: Mapping[str, Price], provider: str, model: str) -> Price | None:
    """What a model costs, by its name with or without provider and date; None if nobody says.

    >>> price_of(PRICES, "openai", "gpt-4o-2024-08-06") == PRICES["gpt-4o"]
    True
    """
    undated = _DATE.sub("", model)
    for name in (f"{provider}/{model}", model, f"{provider}/{undated}", undated):
        if name in prices:
            return prices[name]
    return None


def checked_prices(owner: str, prices: object) -> dict[str, Price]:
    """A table that a user gave.

    Raises:
        ConfigurationError: it is no table, or a row of it is none.
    """
    if not isinstance(prices, Mapping) or not all(isinstance(name, str) for name in prices):
        raise ConfigurationError(f"{owner}: prices must be a dict by model, not {prices!r:.80}")
    return {name: _checked(owner, name, row) for name, row in prices.items()}


def _checked(owner: str, name: str, row: Any) -> Price:
    known = {"input", "output", "cached_input"}
    if not isinstance(row, Mapping) or not {"input", "output"} <= set(row) <= known:
        msg = (
            f"{owner}: prices[{name!r}] must be a dict with input, output and perhaps "
            f"cached_input, not {row!r:.80}"
        )
        raise ConfigurationError(msg)
    for key, value in row.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value < math.inf:
            msg = (
                f"{owner}: prices[{name!r}][{key!r}] must be a number from 0 on, not {value!r:.80}"
            )
            raise ConfigurationError(msg)
    return Price(**row)
