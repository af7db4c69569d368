"""Kinds of personal data: the rules that find them, and how a value may be shown."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from streampipe.processors._birth_dates import BIRTH_DATES, birth_date_in
from streampipe.processors._crypto_addresses import CRYPTO_ADDRESSES
from streampipe.processors._national_ids import NATIONAL_IDS
from streampipe.processors._phone_numbers import is_label
from streampipe.text import Rule, pii, secrets

__all__ = ["DATA_TYPES", "DataType", "hashed", "masked", "replaced_by"]

DataType = Literal[
    "email",
    "phone",
    "card",
    "iban",
    "ssn",
    "nino",
    "dni",
    "nir",
    "codice-fiscale",
    "cpf",
    "ip",
    "date-of-birth",
    "api-key",
    "crypto-address",
]

_IN_PII = {rule.name: rule for rule in pii}

DATA_TYPES: dict[DataType, tuple[Rule, ...]] = {
    "email": (_IN_PII["email"],),
    "phone": (_IN_PII["phone"],),
    "card": (_IN_PII["card"],),
    "iban": (_IN_PII["iban"],),
    "ssn": (_IN_PII["ssn"],),
    "nino": (NATIONAL_IDS["nino"],),
    "dni": (NATIONAL_IDS["dni"],),
    "nir": (NATIONAL_IDS["nir"],),
    "codice-fiscale": (NATIONAL_IDS["codice-fiscale"],),
    "cpf": (NATIONAL_IDS["cpf"],),
    "ip": (_IN_PII["ipv4"], _IN_PII["ipv6"]),
    "date-of-birth": BIRTH_DATES,
    "api-key": secrets,
    "crypto-address": CRYPTO_ADDRESSES,
}
"""The rules of each type."""

# What stands before a value in a match, and stays when the value goes.
_LABELS: dict[str, re.Pattern[str]] = {
    "ip": re.compile(r"(?:ip(?:v6)?:)?", re.IGNORECASE),
    "api-key": re.compile(r"(?:bearer[ \t]+)?", re.IGNORECASE),
    "phone": re.compile(r"[^0-9+(]*"),
}
_NO_TAIL = {"ip", "date-of-birth"}  # their last characters say too much
_SHOWN = 4
_FEWEST = 9  # letters and digits of a value whose last four may be shown
_EXACT = {"api-key", "crypto-address"}  # the same only when written the same
_LOOSE = {"card", "iban", "ssn", "nino", "dni", "nir", "codice-fiscale", "cpf", "phone"}
_DIGEST = 16  # hexadecimal digits

Show = Callable[[str, str], str]
"""How a value is shown, by its type and the value itself."""


def masked(data_type: str, value: str, *, keep_format: bool) -> str:
    """A value as asterisks.

    Args:
        data_type: its type.
        value: the value.
        keep_format: whether it keeps its length and separators, and the domain of an address of
            e-mail; of long numbers the last four characters too.
    """
    if not keep_format:
        return "********"
    if data_type == "email" and not re.search(r"\s", value):  # else it overlaps something more
        return f"***@{value.rpartition('@')[2]}"
    signs = [index for index, char in enumerate(value) if char.isalnum()]
    if data_type not in _NO_TAIL and len(signs) >= _FEWEST:
        del signs[-_SHOWN:]
    hidden = set(signs)
    return "".join(["*" if index in hidden else char for index, char in enumerate(value)])


def hashed(data_type: str, value: str, *, key: bytes) -> str:
    """A value as a keyed hash: the same for the same value, however it is written."""
    plain = value if data_type in _EXACT else value.upper()
    if data_type in _LOOSE:
        plain = "".join(filter(str.isalnum, plain))
    digest = hmac.digest(key, f"{data_type}:{plain}".encode(errors="surrogatepass"), hashlib.sha256)
    return f"[{data_type}:{digest.hex()[:_DIGEST]}]"


def replaced_by(rule: Rule, data_type: str, show: Show) -> Rule:
    """The rule with values shown so; the words in a match that say what they are stay."""

    def shown(text: str) -> str:
        begin, end = _value_in(data_type, text)
        return text[:begin] + show(data_type, text[begin:end]) + text[end:]

    return replace(rule, replacement=shown)


def _value_in(data_type: str, text: str) -> tuple[int, int]:
    """Where the value stands in a match: all of it, if not all else is known to be words."""
    whole = 0, len(text)
    if data_type == "date-of-birth":
        return birth_date_in(text) or whole
    label = _LABELS.get(data_type)
    found = None if label is None else label.match(text)
    if found is None or (data_type == "phone" and not is_label(found[0])):
        return whole
    return found.end(), len(text)
