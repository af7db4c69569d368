"""Rules for numbers that states give to people: shapes, and check digits where there are some."""

from __future__ import annotations

import re

from streampipe.text import Rule

__all__ = ["NATIONAL_IDS"]

_BEFORE = "(?<![A-Za-z0-9])"
_AFTER = "(?![A-Za-z0-9])"

# The letters and the pairs of them that are never given out are left out.
_NINO = (
    rf"{_BEFORE}[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z][ ]?"
    rf"[0-9]{{2}}[ ]?[0-9]{{2}}[ ]?[0-9]{{2}}[ ]?[A-D]{_AFTER}"
)
_NO_NINO = {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}

_DNI = rf"{_BEFORE}(?:[0-9]{{2}}\.?[0-9]{{3}}\.?[0-9]{{3}}|[XYZxyz]-?[0-9]{{7}})-?[A-Za-z]{_AFTER}"
_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_NIE_DIGITS = str.maketrans("XYZ", "012")

# Sex, year, month, department, commune, number, key.
_NIR = (
    rf"{_BEFORE}[12][ ]?[0-9]{{2}}[ ]?(?:0[1-9]|1[0-2]|[2-9][0-9])[ ]?(?:[0-9]{{2}}|2[ABab])"
    rf"[ ]?[0-9]{{3}}[ ]?[0-9]{{3}}[ ]?[0-9]{{2}}{_AFTER}"
)
_CORSICA = {"2A": "19", "2B": "18"}

# Letters may stand for digits, where two people would else have the same code.
_DIGIT = "[0-9LMNP-Vlmnp-v]"
_CODICE_FISCALE = (
    rf"{_BEFORE}[A-Za-z]{{3}}[ ]?[A-Za-z]{{3}}[ ]?{_DIGIT}{{2}}[A-EHLMPRSTa-ehlmprst]{_DIGIT}{{2}}"
    rf"[ ]?[A-Za-z]{_DIGIT}{{3}}[ ]?[A-Za-z]{_AFTER}"
)
_ODD = (
    1,
    0,
    5,
    7,
    9,
    13,
    15,
    17,
    19,
    21,
    2,
    4,
    18,
    20,
    11,
    3,
    6,
    8,
    12,
    14,
    16,
    10,
    22,
    25,
    24,
    23,
)

_CPF = rf"{_BEFORE}[0-9]{{3}}\.?[0-9]{{3}}\.?[0-9]{{3}}-?[0-9]{{2}}{_AFTER}"


def _plain(text: str) -> str:
    """An identity number without its separators, in capitals."""
    return re.sub("[^A-Z0-9]", "", text.upper())


def _nino(text: str) -> int:
    return 0 if text[:2] in _NO_NINO else len(text)


def _dni(text: str) -> int:
    """The letter is the rest of a division by 23."""
    number = _plain(text)
    digits = int(number[:-1].translate(_NIE_DIGITS))
    return len(text) if _DNI_LETTERS[digits % len(_DNI_LETTERS)] == number[-1] else 0


def _nir(text: str) -> int:
    """The key completes the number to a multiple of 97."""
    number = _plain(text)
    department = number[5:7]
    digits = number[:5] + _CORSICA.get(department, department) + number[7:13]
    return len(text) if int(digits) % 97 + int(number[13:]) == 97 else 0  # noqa: PLR2004 - as said


def _codice_fiscale(text: str) -> int:
    """The last letter is a sum of values that depend on whether the place is odd or even."""
    code = _plain(text)
    values = [int(c) if c.isdigit() else ord(c) - ord("A") for c in code[:-1]]
    total = sum(_ODD[value] for value in values[::2]) + sum(values[1::2])
    return len(text) if chr(ord("A") + total % 26) == code[-1] else 0


def _cpf(text: str) -> int:
    """Two digits check those before them; numbers of one digit alone pass, but are nobody's."""
    digits = [int(digit) for digit in _plain(text)]
    if len(set(digits)) == 1:
        return 0
    for place in (9, 10):
        total = sum(digit * (place + 1 - index) for index, digit in enumerate(digits[:place]))
        if total * 10 % 11 % 10 != digits[place]:
            return 0
    return len(text)


NATIONAL_IDS = {
    "nino": Rule("nino", _NINO, "[NINO]", _nino),
    "dni": Rule("dni", _DNI, "[DNI]", _dni),
    "nir": Rule("nir", _NIR, "[NIR]", _nir),
    "codice-fiscale": Rule("codice-fiscale", _CODICE_FISCALE, "[CODICE FISCALE]", _codice_fiscale),
    "cpf": Rule("cpf", _CPF, "[CPF]", _cpf),
}
"""British, Spanish (also of foreigners), French, Italian and Brazilian numbers.

The British ones have no check digit, so that only their shape tells them.
"""
