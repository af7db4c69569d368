"""Rules for phone numbers that a numbering plan knows, for which `phonenumbers` is asked.

The rule of `streampipe.text` tells a number by its shape alone. These find more shapes, for each is
looked up: numbers without any separator, and as they are grouped in the countries at hand.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Collection, Iterator
from typing import Any

from streampipe.errors import ConfigurationError
from streampipe.processors._options import checked_names
from streampipe.text import Rule
from streampipe.text._pii import is_no_phone_number

__all__ = ["REGIONS", "is_label", "phone_rules"]

REGIONS = ("BR", "DE", "ES", "FR", "GB", "IT", "JP", "NL", "PL", "US")
"""Whose numbers are found when nobody says whose."""

INSTALL = "pip install 'streampipe-rx[phone]'"

_SPACES = r" \u00a0\u2007\u2009\u202f"
_BETWEEN = rf"(?:\.|[{_SPACES}\-\u2010\u2011()/]{{0,3}})"
_EXTENSION = r"(?:[ ]?(?:x|ext\.?|extension)[ ]?[0-9]{1,6})?"
_NUMBER = rf"\+?\(?[0-9](?:{_BETWEEN}[0-9]){{6,16}}{_EXTENSION}(?![A-Za-z0-9_])"
_WORDS = (
    "phone|telephone|tel|mobile|cell(?:phone)?|call|fax"
    "|telefon|handy|mobil|rufen|rufnummer|telefonnummer|handynummer"
    "|téléphone|tél|portable|appelez|appeler"
    "|teléfono|móvil|celular|llam[ae](?:me|r|dme)?"
    "|telefono|cellulare|chiama(?:mi|re|ci)?"
    "|telefoon|mobiel|bel|gsm"
    "|komórka|dzwonić|dzwoń"
    "|telefone|fone|ligue|liga(?:r)?"
    "|電話(?:番号)?|携帯(?:番号)?"
)
# Behind the word a few short ones, such as "me at", or one for "number", within a sentence.
_SHORT_WORD = r"[- \u00a0](?:[^\W\d_]{1,5}|n[or]\.|n[uúo]m[^\W\d_]{2,4})"
_CUE = rf"(?:{_WORDS})(?:\.(?:[ ]n[or]\.)?|(?:{_SHORT_WORD}){{0,3}})[: \u00a0\uff1a]{{0,3}}"
_LABEL = re.compile(_CUE, re.IGNORECASE)

_PLAIN = str.maketrans("\u00a0\u2007\u2009\u202f\u2010\u2011", "    --")
_BEFORE_NUMBER = re.compile(r"[^0-9+(]*")
_BEFORE_EXTENSION = re.compile("[^A-Za-z]*[0-9]")
_INTERNATIONAL = re.compile(r"\(?(?:\+|00)")
_TRUNK = re.compile(r"\(?0(?![.-])")  # behind a zero alone: decimals, or an ISBN
_IP_ADDRESS = re.compile(r"[1-9][0-9]{0,2}(?:\.[0-9]{1,3}){3}(?![0-9.])")
_YEARS = re.compile(r"(?:19|20)[0-9]{2}[ -]+(?:19|20)[0-9]{2}(?![0-9])")
_HYPHENED = re.compile("[0-9]+(?:-[0-9]+){2,}")
_FEWEST = 9  # digits of a number that begins with a zero: postal codes have eight
_IN_ONE_BLOCK = re.compile("[0-9]{10,}")
_ITALY = 39  # where mobile numbers are mostly written so, and begin with a 3


def is_label(text: str) -> bool:
    """Whether a text is what may stand before a number that it tells of."""
    return _LABEL.fullmatch(text) is not None


def phone_rules(owner: str, regions: Collection[str] | None) -> tuple[Rule, ...]:
    """Rules that ask the library; none if it is not there and nobody has asked for it.

    Args:
        owner: the processor's class, for errors.
        regions: whose national numbers to find, as codes of two letters; none are international
            ones only.

    Raises:
        ConfigurationError: a region is not known, or the library is needed and not installed.
    """
    if importlib.util.find_spec("phonenumbers") is None:
        if regions is None:
            return ()
        raise ConfigurationError(f"{owner}: phone_regions needs phonenumbers: {INSTALL}")
    import phonenumbers  # noqa: PLC0415 - an extra, and not needed by every program

    names = REGIONS if regions is None else checked_names(owner, "phone_regions", regions)
    wrong = sorted(set(names) - phonenumbers.SUPPORTED_REGIONS)
    if wrong:
        msg = (
            f"{owner}: phone_regions takes codes of countries with two letters, such as "
            f"{', '.join(REGIONS)}, not {', '.join(map(repr, wrong)):.80}"
        )
        raise ConfigurationError(msg)
    plans = _Plans(phonenumbers, tuple(sorted(names)))
    return (
        Rule("phone", rf"(?<![A-Za-z0-9\u00c0-\u024f_.+$/=#-]){_NUMBER}", "[PHONE]", plans.alone),
        Rule(
            "phone",
            rf"(?<![A-Za-z0-9\u00c0-\u024f_.@-]){_CUE}{_NUMBER}",
            "[PHONE]",
            plans.behind_a_word,
            re.IGNORECASE,
        ),
    )


class _Plans:
    """The numbering plans of some regions."""

    def __init__(self, phonenumbers: Any, regions: tuple[str, ...]) -> None:
        self._library = phonenumbers
        self._regions = regions

    def alone(self, text: str) -> int:
        """How much of a text is a number that is known, and written as one."""
        if _INTERNATIONAL.match(text) or _TRUNK.match(text):
            return self._known(text, fewest=_FEWEST)
        number = _BEFORE_EXTENSION.match(text)
        # Large numbers have such groups too: all of it has to fit, without spaces of typography.
        is_number = number is not None and text.isascii() and self._is_usual(number[0])
        return len(text) if is_number else 0

    def behind_a_word(self, text: str) -> int:
        """How much of a text that begins with such a word is a number that is known."""
        words = _BEFORE_NUMBER.match(text)
        begin = words.end() if words is not None else 0
        length = self._known(text[begin:])
        return begin + length if length else 0

    def _known(self, text: str, fewest: int = 0) -> int:
        """Up to the last group of digits with which a number is known."""
        number = _BEFORE_EXTENSION.match(text.translate(_PLAIN))
        if number is None or is_no_phone_number(number[0]) or _IP_ADDRESS.match(number[0]):
            return 0
        ends = [group.end() for group in re.finditer("[0-9]+", number[0])]
        for end in reversed(ends):
            part = number[0][:end]
            if sum(map(str.isdigit, part)) >= fewest and any(self._plans(part)):
                return len(text) if end == number.end() else end
        return 0

    def _is_usual(self, number: str) -> bool:
        """Whether a number is written as in its country, where hyphens may stand for a zero too."""
        groups = re.findall("[0-9]+", number)
        is_block = _IN_ONE_BLOCK.fullmatch(number) is not None
        is_else = is_no_phone_number(number) or _YEARS.search(number)
        if is_else or (len(groups) == 1 and not is_block):  # before anything is looked up
            return False
        library = self._library
        for found in self._plans(number):
            if is_block:
                kind = library.number_type(found)
                if found.country_code == _ITALY and kind == library.PhoneNumberType.MOBILE:
                    return True
                continue
            written = library.format_number(found, library.PhoneNumberFormat.NATIONAL)
            usual = re.findall("[0-9]+", written)
            if _HYPHENED.fullmatch(number):
                usual[0] = usual[0].removeprefix("0")
            if groups == usual:
                return True
        return False

    def _plans(self, number: str) -> Iterator[Any]:
        """What the library makes of a number, for each region in whose plan it is."""
        is_international = _INTERNATIONAL.match(number) is not None
        plain = re.sub(r"\A\(?00", "+", number) if is_international else number
        for region in (None,) if is_international else self._regions:
            try:
                found = self._library.parse(plain, region)
            except self._library.NumberParseException:
                continue
            if self._library.is_valid_number(found):
                yield found
