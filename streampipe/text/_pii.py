r"""Rules for what tells who somebody is, or where.

All of them begin with ASCII, and whatever may be part of a longer word begins only where a run of
such characters does: so a word is held until it ends, and text of other scripts never is. What the
patterns cannot tell, such as a checksum, their checks do.
"""

from __future__ import annotations

import ipaddress
import re
from itertools import pairwise

from streampipe.text._checksums import IBAN_LENGTHS, card_lengths, is_iban, is_luhn
from streampipe.text._rule import Rule

__all__ = ["is_no_phone_number", "pii"]

# Typography has more spaces and hyphens than ASCII: those that do not break, thin ones, a hyphen
# that is only that.
_SPACES = r" \u00a0\u2007\u2009\u202f"
_HYPHENS = r"\-\u2010\u2011"
_PLAIN = str.maketrans("\u00a0\u2007\u2009\u202f\u2010\u2011", "    --")

_LETTERS = r"A-Za-z\u00c0-\u052f"  # Latin, Greek and Cyrillic, as in the names of domains
_EMAIL = rf"""
    (?<![A-Za-z0-9._%+-]) [A-Za-z0-9._%+-]{{1,64}} @
    (?: [{_LETTERS}0-9] (?:[{_LETTERS}0-9-]{{0,61}}[{_LETTERS}0-9])? \. ){{1,8}}
    (?: xn--[A-Za-z0-9-]{{1,59}} | [{_LETTERS}]{{2,63}} ) \(?
"""
# What looks like an address, but is not a person's: a login of git, and a picture such as a@2x.png.
# And the product of two matrices, of which something is called, such as q@k.transpose(.
_NO_EMAIL = re.compile(
    r"git@|.*\.(?:gif|ico|jpe?g|png|svg|webp)\Z"
    r"|(?!.*\.(?:[a-z]{2}|com|dev|edu|gov|info|net|org)\(\Z).*\(\Z",
    re.IGNORECASE,
)

_GAP = rf"[{_SPACES}{_HYPHENS}.]"
_PHONE = rf"""
    (?<![A-Za-z0-9.+$-])
    (?: (?:\+|00)[1-9] (?:(?:\.|[{_SPACES}{_HYPHENS}()/]{{0,3}})[0-9]){{6,14}}  # +49 (0)30 123456
      | (?:1{_GAP})? (?:\([2-9][0-9]{{2}}\){_GAP}?|[2-9][0-9]{{2}}{_GAP})  # (555) 123-4567
        [1-9][0-9]{{2}}{_GAP}[0-9]{{4}}
      | [78]{_GAP}?\([0-9]{{3}}\){_GAP}?[0-9]{{3}}(?:{_GAP}[0-9]{{2}}){{2}}  # 8 (495) 123-45-67
      | (?:\(0[0-9]{{0,4}}\)[{_SPACES}{_HYPHENS}./]?|0[1-9][0-9]{{0,4}}[{_SPACES}{_HYPHENS}./])
        [0-9]{{2,8}}(?:[{_SPACES}{_HYPHENS}./][0-9]{{2,8}}){{0,5}}           # 030/123456
    ) (?![0-9])
"""
# A date, whatever follows it; what is written as social security numbers are; a signed decimal; a
# ZIP code of nine digits; binary numbers.
_NO_PHONE = re.compile(
    r"\+?(?!00)[0-9]{4}([ ./-])[0-9]{2}\1[0-9]{2}(?![0-9])"
    r"|[0-9]{2}([ ./-])[0-9]{2}\2[0-9]{4}(?![0-9])"
    r"|[0-9]{3}-[0-9]{2}-[0-9]{4}(?![0-9])"
    r"|\+[0-9]{1,3}\.[0-9]{1,8}\Z"
    r"|[0-9]{5}[ -][0-9]{4}\Z"
    r"|[01 ]+\Z"
)

# Digits behind a point are decimals. Behind other digits only what looks much like a card is one.
_DASH = rf"[{_SPACES}{_HYPHENS}]"
_CARD = rf"""
    (?<![0-9.]) (?:[2-6]|0(?=6)|1(?=8)) (?:{_DASH}?[0-9]){{11,18}}
    | (?<=[0-9]) [2-6][0-9]{{3}}(?:{_DASH}?[0-9]{{4}}){{2}}{_DASH}?[0-9]{{3,4}}
"""
_USUAL_CARD = {15, 16}  # digits
_NO_CARD = {"2337203685477580"}  # within the largest integer of 64 bits
_FEW_NUMBERS = 5
_SHORT_GROUP = re.compile(r"(?<![0-9])[0-9]{1,3}[ -]")

_IBAN = rf"(?<![A-Za-z0-9])[A-Z]{{2}}[0-9][{_SPACES}]?[0-9](?:[{_SPACES}]?[A-Z0-9]){{11,30}}"

_SSN = rf"""
    (?<![A-Za-z0-9.+_-])
    [0-9]{{3}}(?:[{_HYPHENS}][0-9]{{2}}[{_HYPHENS}]|[{_SPACES}][0-9]{{2}}[{_SPACES}])[0-9]{{4}}
    (?![A-Za-z0-9_])
"""
_NO_SSN = re.compile(r"000|666|9|....00|.{7}0000")  # areas, groups and serials never given out

_OCTET = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]{1,2})"
_ADDRESS = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
# More parts than an address has are taken along, for the check to see that it is a version.
_IPV4 = rf"""
    (?<![A-Za-z0-9._-]) {_ADDRESS}(?:-{_ADDRESS})? (?:\.[0-9]{{1,9}}){{0,4}} (?![A-Za-z0-9_])
"""
_IPV4_DOTS = 3
_VERSION = re.compile(r"(?!10\.)[1-9][0-9]*\.0\.0\.0")  # nobody's address

# Behind a bracket only what is no slice, such as [::2].
_IPV6 = r"""
    (?: (?<![A-Za-z0-9:._[-]) (?:[Ii][Pp](?:[Vv]6)?:)? [0-9A-Fa-f]{0,4}
      | (?<=\[)[0-9A-Fa-f]{3,4} )
    : (?:[0-9A-Fa-f]{0,4}:){1,9} [0-9A-Fa-f]{0,4} (?:\.[0-9]{1,3}){0,3}
    (?:-[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,8})? (?![A-Za-z0-9_(])
"""
_IPV6_LABEL = re.compile("ip(?:v6)?:", re.IGNORECASE)
_TIMES = re.compile(r"[0-9]{2}(?::[0-9]{2})*::[0-9]{2}(?::[0-9]{2})*")
_FEW_GROUPS = 3


def _email(text: str) -> int:
    return 0 if _NO_EMAIL.match(text) else len(text.rstrip("("))


def _is_counted(numbers: str) -> bool:
    """Whether small numbers are at equal steps, as those of a count or a table are."""
    groups = [int(group) for group in re.findall("[0-9]{1,2}(?![0-9])", numbers)]
    is_long = len(groups) >= _FEW_NUMBERS and not re.search("[0-9]{3}", numbers)
    steps = {after - before for before, after in pairwise(groups)}
    return is_long and len(steps) == 1 and steps != {0}


def is_no_phone_number(text: str) -> bool:
    """Whether what has the shape of a phone number is something else that does."""
    return _NO_PHONE.match(text) is not None or _is_counted(text)


def _phone(text: str) -> int:
    """Up to the last group of digits with which there are not too many of them."""
    text = text.translate(_PLAIN)
    if text.isdigit() or is_no_phone_number(text):
        return 0
    if text.startswith(("+1", "001")):
        fewest = most = 11
    elif text.startswith(("+", "00", "(")):
        fewest, most = 7, 15
    else:
        fewest, most = 9, 13
    digits = -2 if text.startswith("00") else 0
    length = 0
    for group in re.finditer("[0-9]+", text):
        digits += len(group[0])
        if fewest <= digits <= most:
            length = group.end()
    return length


def _card(text: str) -> int:
    """The longest number with which the text begins."""
    text = text.translate(_PLAIN)
    ends = [digit.end() for digit in re.finditer("[0-9]", text)]
    digits = "".join([text[end - 1] for end in ends])
    for length in card_lengths(digits):
        number = digits[:length]
        if len(number) == length and is_luhn(number) and number not in _NO_CARD:
            end = ends[length - 1]
            is_cut = text[end : end + 1].isdigit()
            if not is_cut and _is_counted(text[:end]):
                continue
            if not is_cut or (length in _USUAL_CARD and not _SHORT_GROUP.search(text, 0, end)):
                return end
    return 0


def _iban(text: str) -> int:
    """As much as the country's numbers are long."""
    text = text.translate(_PLAIN)
    left = IBAN_LENGTHS.get(text[:2], 0)
    end = 0
    while left and end < len(text):
        left -= text[end] != " "
        end += 1
    return end if is_iban(text[:end].replace(" ", "")) else 0


def _ssn(text: str) -> int:
    return 0 if _NO_SSN.match(text.translate(_PLAIN)) else len(text)


def _ipv4(text: str) -> int:
    addresses = text.split("-")  # the first and the last of a range, or only one
    if any(one.count(".") != _IPV4_DOTS for one in addresses):
        return 0
    return 0 if _VERSION.fullmatch(text) else len(text)


def _ipv6(text: str) -> int:
    """Less a colon or decimals behind it; with the last address of a range."""
    label = _IPV6_LABEL.match(text)
    begin = label.end() if label is not None else 0
    first, dash, last = text[begin:].partition("-")
    for address in (first, first.rstrip(":"), first.partition(".")[0]):
        groups = [group for group in address.split(":") if group]
        is_word = len(groups) < _FEW_GROUPS and not any(map(str.isdigit, address))
        if groups and not is_word and not _TIMES.fullmatch(address) and _is_ipv6(address):
            is_range = bool(dash) and address == first and _is_ipv6(last)
            return len(text) if is_range else begin + len(address)
    return 0


def _hidden(text: str) -> str:
    """An IPv6 address as it is shown; a label before it stays."""
    label = _IPV6_LABEL.match(text)
    return "[IP]" if label is None else f"{label[0]}[IP]"


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


pii = (
    Rule("email", _EMAIL, "[EMAIL]", _email, re.VERBOSE),
    Rule("ssn", _SSN, "[SSN]", _ssn, re.VERBOSE),
    Rule("phone", _PHONE, "[PHONE]", _phone, re.VERBOSE),
    Rule("card", _CARD, "[CARD]", _card, re.VERBOSE),
    Rule("iban", _IBAN, "[IBAN]", _iban),
    Rule("ipv4", _IPV4, "[IP]", _ipv4, re.VERBOSE),
    Rule("ipv6", _IPV6, _hidden, _ipv6, re.VERBOSE),
)
"""E-mail addresses, phone numbers, payment cards, IBANs, US social security numbers, IP addresses.

Cards and IBANs only with correct check digits. Phone numbers only with a separator or a plus sign.
"""
