"""Whether a number is one that was really given out: check digits, lengths and prefixes."""

from __future__ import annotations

__all__ = ["IBAN_LENGTHS", "card_lengths", "is_card_number", "is_iban", "is_luhn"]

IBAN_LENGTHS = {
    **dict.fromkeys(("NO",), 15),
    **dict.fromkeys(("BE",), 16),
    **dict.fromkeys(("DK", "FI", "FK", "FO", "GL", "NL", "SD"), 18),
    **dict.fromkeys(("MK", "SI"), 19),
    **dict.fromkeys(("AT", "BA", "EE", "KZ", "LT", "LU", "MN", "XK"), 20),
    **dict.fromkeys(("CH", "CR", "HR", "LI", "LV"), 21),
    **dict.fromkeys(("BG", "BH", "DE", "GB", "GE", "IE", "ME", "RS", "VA"), 22),
    **dict.fromkeys(("AE", "GI", "IL", "IQ", "OM", "SO", "TL"), 23),
    **dict.fromkeys(("AD", "CZ", "ES", "MD", "PK", "RO", "SA", "SE", "SK", "TN", "VG"), 24),
    **dict.fromkeys(("LY", "PT", "ST"), 25),
    **dict.fromkeys(("IS", "TR"), 26),
    **dict.fromkeys(("BI", "DJ", "FR", "GR", "IT", "MC", "MR", "SM"), 27),
    **dict.fromkeys(("AL", "AZ", "BY", "CY", "DO", "GT", "HN", "HU", "LB", "NI", "PL", "SV"), 28),
    **dict.fromkeys(("BR", "EG", "PS", "QA", "UA"), 29),
    **dict.fromkeys(("JO", "KW", "MU", "YE"), 30),
    **dict.fromkeys(("MT", "SC"), 31),
    **dict.fromkeys(("LC",), 32),
    **dict.fromkeys(("RU",), 33),
}
"""How many characters an IBAN has, by the country that it begins with."""

_MAESTRO = ("5018", "5020", "5038", "5893", "6304", "6390", "6759", "6761", "6762", "6763")
# The first and the last prefix of a range, and how many digits a number has that begins so.
_CARDS = (
    ("4", "4", {13, 16, 19}),  # Visa
    ("51", "55", {16}),  # Mastercard
    ("2221", "2720", {16}),
    ("34", "34", {15}),  # American Express
    ("37", "37", {15}),
    ("6011", "6011", {16, 17, 18, 19}),  # Discover
    ("644", "659", {16, 17, 18, 19}),
    ("62", "62", {16, 17, 18, 19}),  # UnionPay
    ("300", "305", {14, 15, 16, 17, 18, 19}),  # Diners Club
    ("3095", "3095", {14, 15, 16, 17, 18, 19}),
    ("36", "36", {14, 15, 16, 17, 18, 19}),
    ("38", "39", {14, 15, 16, 17, 18, 19}),
    ("35", "35", {16}),  # JCB
    ("3528", "3589", {17, 18, 19}),
    ("2131", "2131", {15}),
    ("1800", "1800", {15}),
    ("2200", "2204", {16, 17, 18, 19}),  # Mir
    *((prefix, prefix, {12, 13, 14, 15, 16, 17, 18, 19}) for prefix in _MAESTRO),
    ("56", "58", {12}),  # Maestro of old
    ("0604", "0604", {12}),
)
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)  # the digit sum of twice the digit


def is_luhn(digits: str) -> bool:
    """Whether the last of some digits is the check digit of those before it, after Luhn.

    >>> is_luhn("79927398713"), is_luhn("79927398710")
    (True, False)
    """
    if not _is_decimal(digits):
        return False
    total = sum(map(int, digits[-1::-2])) + sum(_DOUBLED[int(digit)] for digit in digits[-2::-2])
    return total % 10 == 0


def card_lengths(digits: str) -> list[int]:
    """How many digits a payment card's number has that begins like these, the most first.

    >>> card_lengths("4111"), card_lengths("1234")
    ([19, 16, 13], [])
    """
    lengths = {
        length
        for first, last, lengths in _CARDS
        if first <= digits[: len(first)] <= last
        for length in lengths
    }
    return sorted(lengths, reverse=True)


def is_card_number(digits: str) -> bool:
    """Whether digits are the number of a payment card: prefix and length of a network, and Luhn.

    >>> is_card_number("4111111111111111"), is_card_number("4111111111111112")
    (True, False)
    """
    return len(digits) in card_lengths(digits) and is_luhn(digits)


def is_iban(text: str) -> bool:
    """Whether a text, without spaces and in capitals, is an IBAN: country, length, check digits.

    >>> is_iban("GB82WEST12345698765432"), is_iban("GB82WEST12345698765431")
    (True, False)
    """
    if len(text) != IBAN_LENGTHS.get(text[:2]) or not (text.isascii() and text.isalnum()):
        return False
    if not _is_decimal(text[2:4]) or text != text.upper():
        return False
    # Letters count as two digits: A is 10, Z is 35.
    number = "".join(str(int(char, 36)) for char in text[4:] + text[:4])
    return int(number) % 97 == 1


def _is_decimal(text: str) -> bool:
    """Whether a text is digits and nothing else; those of other scripts are none here."""
    return text.isascii() and text.isdigit()
