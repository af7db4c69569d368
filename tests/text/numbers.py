"""Numbers with check digits, made by other means than those that are tested."""

from __future__ import annotations

import string

from hypothesis import strategies as st

__all__ = ["cards", "ibans", "luhn_digit", "slips", "spaced"]

CARDS = [
    *(("4", length) for length in (13, 16, 19)),
    *((prefix, 16) for prefix in ("51", "55", "2221", "2720", "2500")),
    *((prefix, 15) for prefix in ("34", "37")),
    *((prefix, length) for prefix in ("6011", "65", "644", "62", "3528") for length in (16, 19)),
    *((prefix, length) for prefix in ("300", "305", "36", "38") for length in (14, 16)),
    *((prefix, length) for prefix in ("5018", "6304", "6763") for length in (13, 16, 19)),
]
COUNTRIES = {"NO": 15, "BE": 16, "NL": 18, "AT": 20, "DE": 22, "GB": 22, "FR": 27, "MT": 31}


def luhn_digit(digits: str) -> str:
    """The digit that makes a right number of these: the sum is counted out as Luhn has it."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 if place % 2 else 2)
        total += value // 10 + value % 10
    return str(-total % 10)


@st.composite
def cards(draw: st.DrawFn) -> str:
    """The number of a payment card."""
    prefix, length = draw(st.sampled_from(CARDS))
    size = length - len(prefix) - 1
    digits = prefix + draw(st.text(string.digits, min_size=size, max_size=size))
    return digits + luhn_digit(digits)


@st.composite
def ibans(draw: st.DrawFn) -> str:
    """An IBAN."""
    country = draw(st.sampled_from(sorted(COUNTRIES)))
    size = COUNTRIES[country] - 4
    chars = string.digits + string.ascii_uppercase
    account = draw(st.text(chars, min_size=size, max_size=size))
    rest = 0
    for char in f"{account}{country}00":
        value = chars.index(char)
        rest = (rest * (10 if value < 10 else 100) + value) % 97
    return f"{country}{98 - rest:02}{account}"


@st.composite
def slips(draw: st.DrawFn, number: str) -> str:
    """A number with one of its digits replaced by another."""
    places = [place for place, char in enumerate(number) if char in string.digits]
    at = draw(st.sampled_from(places))
    other = draw(st.sampled_from([char for char in string.digits if char != number[at]]))
    return number[:at] + other + number[at + 1 :]


@st.composite
def spaced(draw: st.DrawFn, number: str, separators: str = " ", begin: int = 1) -> str:
    """A number with or without a separator before each of its characters from `begin` on."""
    between = st.sampled_from(["", *separators])
    return number[:begin] + "".join(draw(between) + char for char in number[begin:])
