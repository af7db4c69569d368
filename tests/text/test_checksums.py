"""Check digits are right, and every single slip is noticed."""

from __future__ import annotations

import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streampipe.text._checksums import (
    IBAN_LENGTHS,
    card_lengths,
    is_card_number,
    is_iban,
    is_luhn,
)
from tests.text.numbers import cards, ibans, luhn_digit, slips

digits = st.text(string.digits, min_size=1, max_size=40)


@given(digits=digits)
def test_one_of_ten_check_digits_is_right(digits: str) -> None:
    """To any digits exactly one more makes them right: the one that the definition gives."""
    right = [char for char in string.digits if is_luhn(digits + char)]
    assert right == [luhn_digit(digits)]


@given(data=st.data(), digits=digits)
def test_a_wrong_digit_is_noticed(data: st.DataObject, digits: str) -> None:
    """Of a right number no single digit can be changed."""
    right = digits + luhn_digit(digits)
    assert not is_luhn(data.draw(slips(right)))


@given(digits=digits, at=st.integers(0, 39))
def test_swapped_digits_are_noticed(digits: str, at: int) -> None:
    """Neighbours cannot be swapped, but for the one pair that Luhn's sum cannot tell."""
    right = digits + luhn_digit(digits)
    one, other = right[at : at + 1], right[at + 1 : at + 2]
    assume(other and one != other and {one, other} != {"0", "9"})
    assert not is_luhn(right[:at] + other + one + right[at + 2 :])


@pytest.mark.parametrize("text", ["", " ", "4x", "4 2", "-18", "٤٢", "²", "1.8", "18\n"])
def test_what_is_no_digits_has_no_check_digit(text: str) -> None:
    """Only the ten digits of ASCII count, and at least one is needed."""
    assert not is_luhn(text)
    assert not is_card_number(text)


@given(number=cards())
def test_a_card_of_a_network_is_one(number: str) -> None:
    """Prefix, length and check digit of a network are known."""
    assert is_card_number(number)
    assert len(number) in card_lengths(number)


@given(data=st.data(), number=cards())
def test_a_card_with_a_slip_is_none(data: st.DataObject, number: str) -> None:
    """No digit of a card's number can be changed."""
    assert not is_card_number(data.draw(slips(number)))


@pytest.mark.parametrize(
    "number",
    ["0000000000000000", "1234567812345670", "9999999999999995", "411111111111116", "79927398713"],
)
def test_a_right_number_of_no_network_is_no_card(number: str) -> None:
    """The check digit alone makes no card: the prefix or the length is nobody's."""
    assert is_luhn(number)
    assert not is_card_number(number)


@given(number=ibans())
def test_an_iban_is_one(number: str) -> None:
    """Country, length and check digits fit."""
    assert is_iban(number)


@given(number=ibans())
def test_an_account_has_one_iban(number: str) -> None:
    """Of the check digits that are given out, 02 to 98, no others are right."""
    right = [f"{rest:02}" for rest in range(2, 99) if is_iban(f"{number[:2]}{rest:02}{number[4:]}")]
    assert right == [number[2:4]]


@given(data=st.data(), number=ibans())
def test_an_iban_with_a_slip_is_none(data: st.DataObject, number: str) -> None:
    """No digit can be changed, nor a character be missing or added."""
    assert not is_iban(data.draw(slips(number)))
    at = data.draw(st.integers(0, len(number)))
    assert not is_iban(number[: max(at - 1, 0)] + number[max(at, 1) :])
    assert not is_iban(f"{number[:at]}0{number[at:]}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "DE",
        "DE89",
        "de89370400440532013000",
        "GB82west12345698765432",
        "DE89 3704 0044 0532 0130 00",
        "XX89370400440532013000",
        "DEA9370400440532013000",
        "DE893704004405320130\u0660\u0660",
        "89DE370400440532013000",
    ],
)
def test_what_is_not_written_as_an_iban_is_none(text: str) -> None:
    """Capitals and digits of ASCII in a known country's length, nothing between them."""
    assert not is_iban(text)


def test_lengths_of_ibans_are_possible() -> None:
    """Each country has two capitals and a length between the shortest and the longest possible."""
    assert all(15 <= length <= 34 for length in IBAN_LENGTHS.values())
    assert all(len(country) == 2 and country.isupper() for country in IBAN_LENGTHS)
    assert len(IBAN_LENGTHS) > 80
