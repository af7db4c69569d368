r"""Rules for what tells who somebody is, or where.

All sets are of ASCII, and whatever may be part of a longer word begins only where a run of such
characters does: so a word is held until it ends, and text of other scripts never is. What the
patterns cannot tell, such as a checksum, their checks do.
"""

from __future__ import annotations

import ipaddress
import re

from streampipe.text._checksums import IBAN_LENGTHS, card_lengths, is_iban, is_luhn
from streampipe.text._rule import Rule

__all__ = ["pii"]

_EMAIL = r"""
    (?<![A-Za-z0-9._%+-]) [A-Za-z0-9._%+-]{1,64} @
    (?: [A-Za-z0-9] (?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])? \. ){1,8}
    (?: xn--[A-Za-z0-9-]{1,59} | [A-Za-z]{2,63} )
"""
# What looks like an address, but is not a person's: a login of git, and a picture such as a@2x.png.
_NO_EMAIL = re.compile(r"git@|.*\.(?:gif|ico|jpe?g|png|svg|webp)\Z", re.IGNORECASE)

_PHONE = r"""
    (?<![A-Za-z0-9.+$-])
    (?: (?:\+|00)[1-9] (?:[ ().\-/]{0,2}[0-9]){6,14}              # +49 (0)30 123456
      | (?:1[ .-])? (?:\([2-9][0-9]{2}\)[ .-]?|[2-9][0-9]{2}[ .-])  # (555) 123-4567
        [0-9]{3}[ .-][0-9]{4}
      | (?:\(0[0-9]{0,4}\)[ ./-]?|0[1-9][0-9]{0,4}[ ./-])         # 030/123456
        [0-9]{2,8}(?:[ ./-][0-9]{2,8}){0,5}
    ) (?![0-9])
"""
# A date, whatever follows it; what is written as social security numbers are; a signed decimal.
_NO_PHONE = re.compile(
    r"\+?[0-9]{4}([ ./-])[0-9]{2}\1[0-9]{2}(?![0-9])"
    r"|[0-9]{2}([ ./-])[0-9]{2}\2[0-9]{4}(?![0-9])"
    r"|[0-9]{3}-[0-9]{2}-[0-9]{4}(?![0-9])"
    r"|\+[0-9]{1,3}\.[0-9]{1,8}\Z"
)

# Digits behind a point are decimals. Behind other digits only what looks much like a card is one.
_CARD = r"""
    (?<![0-9.]) [2-6](?:[ -]?[0-9]){12,18}
    | (?<=[0-9]) [2-6][0-9]{3}(?:[ -]?[0-9]{4}){2}[ -]?[0-9]{3,4}
"""
_USUAL_CARD = {15, 16}  # digits
_SHORT_GROUP = re.compile(r"(?<![0-9])[0-9]{1,3}[ -]")

_IBAN = r"(?<![A-Za-z0-9])[A-Z]{2}[0-9][ ]?[0-9](?:[ ]?[A-Z0-9]){11,30}"

_SSN = r"""
    (?<![A-Za-z0-9.+_-]) [0-9]{3}(?:-[0-9]{2}-|[ ][0-9]{2}[ ])[0-9]{4} (?![A-Za-z0-9_])
"""
_NO_SSN = re.compile(r"000|666|9|....00|.{7}0000")  # areas, groups and serials never given out

_OCTET = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]{1,2})"
_ADDRESS = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
# More parts than an address has are taken along, for the check to see that it is a version.
_IPV4 = rf"""
    (?<![A-Za-z0-9._-]) {_ADDRESS}(?:-{_ADDRESS})? (?:\.[0-9]{{1,9}}){{0,4}} (?![A-Za-z0-9_])
"""
_IPV4_DOTS = 3

# Behind a bracket only what is no slice, such as [::2].
_IPV6 = r"""
    (?: (?<![A-Za-z0-9:._[-])[0-9A-Fa-f]{0,4} | (?<=\[)[0-9A-Fa-f]{3,4} )
    : (?:[0-9A-Fa-f]{0,4}:){1,9} [0-9A-Fa-f]{0,4} (?:\.[0-9]{1,3}){0,3} (?![A-Za-z0-9_(])
"""
_FEW_GROUPS = 3


def _email(text: str) -> int:
    return 0 if _NO_EMAIL.match(text) else len(text)


def _phone(text: str) -> int:
    """Up to the last group of digits with which there are not too many of them."""
    if _NO_PHONE.match(text) or text.isdigit():
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
    ends = [digit.end() for digit in re.finditer("[0-9]", text)]
    digits = "".join([text[end - 1] for end in ends])
    for length in card_lengths(digits):
        if length <= len(digits) and is_luhn(digits[:length]):
            end = ends[length - 1]
            is_cut = text[end : end + 1].isdigit()
            if not is_cut or (length in _USUAL_CARD and not _SHORT_GROUP.search(text, 0, end)):
                return end
    return 0


def _iban(text: str) -> int:
    """As much as the country's numbers are long."""
    left = IBAN_LENGTHS.get(text[:2], 0)
    end = 0
    while left and end < len(text):
        left -= text[end] != " "
        end += 1
    return end if is_iban(text[:end].replace(" ", "")) else 0


def _ssn(text: str) -> int:
    return 0 if _NO_SSN.match(text) else len(text)


def _ipv4(text: str) -> int:
    addresses = text.split("-")  # the first and the last of a range, or only one
    return len(text) if all(one.count(".") == _IPV4_DOTS for one in addresses) else 0


def _ipv6(text: str) -> int:
    """Less a colon or decimals behind it."""
    for address in (text, text.rstrip(":"), text.partition(".")[0]):
        groups = [group for group in address.split(":") if group]
        is_word = len(groups) < _FEW_GROUPS and not any(map(str.isdigit, address))
        if groups and not is_word and _is_ipv6(address):
            return len(address)
    return 0


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
    Rule("ipv6", _IPV6, "[IP]", _ipv6, re.VERBOSE),
)
"""E-mail addresses, phone numbers, payment cards, IBANs, US social security numbers, IP addresses.

Cards and IBANs only with correct check digits. Phone numbers only with a separator or a plus sign.
"""
