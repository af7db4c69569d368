"""Phone numbers that a numbering plan knows: what is found, and what only looks like one."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import phonenumbers
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streampipe import Agent
from streampipe.errors import ConfigurationError
from streampipe.processors import PIIDetector
from streampipe.processors._phone_numbers import REGIONS, phone_rules
from streampipe.testing import ScriptedModel
from streampipe.text import Scanner
from streampipe.text._pii import is_no_phone_number
from tests.text.cuttings import cut
from tests.text.regex_oracle import redacted_by_re

RULES = phone_rules("test", None)
ALONE = [
    "«(404)634-1925x412» it is",
    "«212.555.0123 ext 6508»",
    "«03038 83685», then «030 3838685»",
    "«07903289218»!",
    "«508 899 579» and «22 836 85 95»",
    "«97 5957-4890»",
    "«90-3289-2184», «090-3289-2184»",
    "いつでも«090-7489-0682»まで",
    "«3716075987»",
    "«+44(0)117 4960038»",
    "«0047 22 12 34 56»",
]
BEHIND_A_WORD = [
    "«call me at 2125550123» today",
    "«Tel. 503289218».",
    "«Rufen Sie mich unter 30 3838685» an",
    "«appelez-moi au 612345678»",
    "«Telefon: 612345678»",
    "«電話番号：75-6508-8995»です",  # noqa: RUF001 - as it is written
    "«phone number is 2125550123 x3»",
    "«Mobile no.: 2125550123»",
    "«Tel. no. 2125550123»",
]
NOTHING = [
    "2125550123",
    "503289218",
    "1764750000",
    "0.6931471805",
    "0-589-91394-6",
    "ISBN 978-0-589-91394-6",
    "07564931-edcf-4109-aa6d",
    "id/0301234567, x=0301234567, #0301234567",
    "CEP 04616-439, CEP 06593540",
    "2026-12-02 08:50",
    "12 2019-2020",
    "331\u202f449\u202f281 people",
    "0110100101",
    "01 02 03 04 05",
    "call 911, phone 42",
    "call it a day. 2125550123",
    "0301234567a",
    "recall 2125550123",
    "zoe@x.tel 2125550123",
    "call 178.155.6.72",
    "in a cell. It is 2125550123",
]


def marked(text: str, rules: Sequence[Any] = RULES) -> str:
    """The text with what is found between guillemets, and behind a word without the word."""
    scanner = Scanner([_marking(rule) for rule in rules])
    return scanner.feed(text) + scanner.finish()


def _marking(rule: Any) -> Any:
    """The rule with a replacement that marks."""
    return type(rule)(rule.name, rule.pattern, "«{}»".format, rule.check, rule.flags)


@pytest.mark.parametrize("sample", [*ALONE, *BEHIND_A_WORD])
def test_numbers_are_found(sample: str) -> None:
    """Exactly what is marked, its extension with it."""
    assert marked(sample.replace("«", "").replace("»", "")) == sample


@pytest.mark.parametrize("sample", NOTHING)
def test_other_numbers_are_left(sample: str) -> None:
    """Decimals, dates, years, codes, and bare digits of which nothing says what they are."""
    assert marked(sample) == sample


def valid_numbers(region: str) -> st.SearchStrategy[phonenumbers.PhoneNumber]:
    """Numbers of a region: the library's examples of each kind, with other last digits."""
    kinds = phonenumbers.PhoneNumberType.values()
    examples = [phonenumbers.example_number_for_type(region, kind) for kind in kinds]
    return st.builds(
        _with_last_digits,
        st.sampled_from([one for one in examples if one is not None]),
        st.integers(0, 9999),
    ).filter(phonenumbers.is_valid_number)


@given(st.sampled_from(REGIONS).flatmap(valid_numbers), st.sampled_from("INE"))
def test_a_known_number_is_found_in_every_form(number: Any, form: str) -> None:
    """As the library writes it, with and without the country's code."""
    forms = phonenumbers.PhoneNumberFormat
    kind = {"I": forms.INTERNATIONAL, "N": forms.NATIONAL, "E": forms.E164}[form]
    text = phonenumbers.format_number(number, kind)
    assume(not is_no_phone_number(text))  # what looks like a date, or a ZIP code of nine digits
    assert marked(f"Telefon: {text}.") == f"«Telefon: {text}»."


@given(data=st.data())
def test_a_cut_changes_nothing(data: st.DataObject) -> None:
    """The text comes out as `re` would redact it whole, however it was cut."""
    words = st.sampled_from([*ALONE, *BEHIND_A_WORD, *NOTHING, "tel", "0", "12"])
    text = " ".join(data.draw(st.lists(words, max_size=4))).replace("«", "").replace("»", "")
    scanner = Scanner(RULES)
    pieces = [scanner.feed(piece) for piece in data.draw(cut(text))]
    assert "".join(pieces) + scanner.finish() == redacted_by_re(text, RULES)


@given(st.lists(st.sampled_from([*"0123456789 -(x.", "call ", "me at ", "電話"]), max_size=80))
def test_little_is_held(parts: list[str]) -> None:
    """A number and the words before it, never more."""
    scanner = Scanner(RULES)
    for part in parts:
        scanner.feed(part)
        assert scanner.held <= 120


def _with_last_digits(number: phonenumbers.PhoneNumber, last: int) -> phonenumbers.PhoneNumber:
    other = phonenumbers.PhoneNumber()
    other.merge_from(number)
    other.national_number = (number.national_number or 0) // 10_000 * 10_000 + last
    return other


async def _shown(text: str, **options: Any) -> str:
    agent = Agent(model=ScriptedModel([[text]]), output_processors=[PIIDetector(**options)])
    return (await agent.generate("hi")).text


async def test_regions_are_chosen() -> None:
    """National numbers only of these; international ones always."""
    said = "020 7946 0018, 2125550123 or +34 612 345 678; call 2125550123"
    assert await _shown(said, phone_regions=["US"], method="placeholder") == (
        "[PHONE], 2125550123 or [PHONE]; call [PHONE]"
    )
    none = await _shown("Tel. 07903289218, Tel. +34612345678", phone_regions=[], method="remove")
    assert none == "Tel. 07903289218, Tel. "


async def test_the_words_before_a_number_stay() -> None:
    """In each way to show it; the number keeps its form, and its last digits."""
    assert await _shown("Call me at 2125550123.") == "Call me at ******0123."
    assert await _shown("Tel.: 508 899 579", method="placeholder") == "Tel.: [PHONE]"


@pytest.mark.parametrize(
    "text", ["Zoe.long@x.tel 030 123456", "zoe@x.tel 030 123456", "zoe@x.dob 1990-01-31"]
)
async def test_what_overlaps_is_hidden_whole(text: str) -> None:
    """Where an address runs into a label, neither the address nor the value is seen."""
    seen = (await _shown(text)).lower()
    assert "zoe" not in seen
    assert "123456" not in seen.replace(" ", "")


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped rule does what it can; whoever names regions is told what to install."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert phone_rules("test", None) == ()
    with pytest.raises(ConfigurationError, match=r"^PIIDetector: phone_regions needs .*\[phone\]"):
        PIIDetector(phone_regions=["US"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"phone_regions": ["XX", "de"]}, "phone_regions takes codes .*, such as BR.*'XX', 'de'"),
        ({"phone_regions": ""}, "phone_regions must be a list of names, not ''"),
        ({"phone_regions": [1]}, "phone_regions must be a list of names"),
        ({"types": ["card"], "phone_regions": ["US"]}, "phone_regions is for types with 'phone'"),
    ],
)
def test_wrong_regions(options: dict[str, Any], told: str) -> None:
    """Each is refused when the detector is built, by the class's name."""
    with pytest.raises(ConfigurationError, match=f"^PIIDetector: {told}"):
        PIIDetector(**options)
