"""The benchmark of the guards counts right, and what it counts is within its bounds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from faker import Faker

from benchmarks import guards
from benchmarks._guard_texts import Sample, Value, samples
from benchmarks._guard_values import ANYWHERE, LOCALES, NATIONAL, is_valid, value
from benchmarks.guards import Found, Tally, found_in, recorded_texts, tallied
from streampipe.processors._personal_data import DATA_TYPES

TEXTS = 300
TEXT = "call 0123 or mail a@b.c"
PHONE = Value("phone", 5, 9, is_valid=True)


@pytest.fixture(scope="module")
def texts() -> list[Sample]:
    """Some of the texts."""
    return list(samples(TEXTS))


def outcome(*found: Found, known: Value = PHONE) -> Tally:
    """What becomes of one value when this is found."""
    tally = Tally()
    tally.add(Sample("en_US", TEXT, (known,)), found)
    return tally


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([Found("phone", 5, 9)], "found"),
        ([Found("phone", 0, 12)], "found"),
        ([Found("cpf", 5, 9), Found("phone", 5, 9)], "found"),
        ([Found("cpf", 5, 9), Found("phone", 5, 8)], "as another"),
        ([Found("phone", 5, 8)], "partly"),
        ([Found("phone", 5, 7), Found("phone", 7, 9)], "partly"),
        ([Found("phone", 0, 5), Found("phone", 9, 12)], "missed"),
        ([], "missed"),
    ],
)
def test_what_becomes_of_a_value(found: list[Found], expected: str) -> None:
    """It counts as found only where one part of its type covers it whole."""
    tally = outcome(*found)
    assert tally.outcomes == {("phone", expected): 1}
    assert tally.recall("phone") == (expected == "found")


def test_what_is_no_value_counts_against_its_type() -> None:
    """As precision, told by what it was."""
    tally = outcome(Found("phone", 5, 9), Found("phone", 15, 20), Found("cpf", 5, 9))
    assert tally.wrong == {("phone", "text"): 1, ("cpf", "phone"): 1}
    assert (tally.precision("phone"), tally.precision("cpf")) == (0.5, 0.0)
    assert tally.precision("email") == tally.recall("email") == 1.0
    row = next(row for row in tally.rows() if row[0] == "phone")
    assert row[1:] == ("1", "0", "1", "0", "0", "0", "1.0000", "0.5000", "1 in text")


def test_what_nobody_was_given_counts_neither_way() -> None:
    """Whether it was found or not."""
    unknown = Value("phone", 5, 9, is_valid=False)
    for found in ([Found("phone", 5, 9)], [Found("cpf", 5, 9)], []):
        tally = outcome(*found, known=unknown)
        assert not tally.outcomes
        assert not tally.wrong
        assert tally.left_out == {"phone": 1}


def values(data_type: str, locale: str) -> Iterator[str]:
    """Some values of a type."""
    faker = Faker(locale)
    faker.seed_instance(7)
    return (value(data_type, faker, locale) for _ in range(20))


@pytest.mark.parametrize("locale", LOCALES)
def test_values_are_held_for_valid_by_their_judges(locale: str) -> None:
    """Nearly all of those whose form Faker knows; of its phone numbers enough."""
    types = [*ANYWHERE, *([NATIONAL[locale]] if locale in NATIONAL else [])]
    for data_type in types:
        share = sum(is_valid(data_type, one, locale) for one in values(data_type, locale)) / 20
        assert share >= (0.2 if data_type == "phone" else 1.0), data_type


def test_a_judge_refuses_what_is_wrong() -> None:
    """Other check digits, and numbers that no plan has."""
    wrong = {
        "card": "4111111111111112",
        "codice-fiscale": "RSSMRA85T10A562T",
        "cpf": "529.982.247-26",
        "crypto-address": "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb",
        "dni": "12345678A",
        "iban": "GB82WEST12345698765433",
        "nir": "255081416802539",
        "phone": "12",
        "ssn": "000-12-3456",
    }
    assert not [
        data_type for data_type, text in wrong.items() if is_valid(data_type, text, "en_US")
    ]
    assert not is_valid("phone", "1" * 30, "en_US")


def test_texts_are_the_same_for_the_same_seed(texts: list[Sample]) -> None:
    """Ten locales in turn, one to three values each, where it is said that they stand."""
    assert list(samples(20)) == texts[:20]
    assert [sample.locale for sample in texts[:10]] == list(LOCALES)
    assert {len(sample.values) for sample in texts} == {1, 2, 3}
    assert {value.data_type for sample in texts for value in sample.values} == {
        *ANYWHERE,
        *NATIONAL.values(),
    }
    for sample in texts:
        for one in sample.values:
            assert sample.text[one.start : one.stop].strip()


async def test_recall_and_precision(texts: list[Sample]) -> None:
    """Of all values 99 of 100 are found, of no type fewer than 95, and hardly anything else."""
    tally = await tallied(texts)
    total = sum(tally.outcomes.values())
    found = sum(n for (_, outcome), n in tally.outcomes.items() if outcome == "found")
    assert total > TEXTS
    assert found >= 0.99 * total, tally.examples
    assert min(map(tally.recall, DATA_TYPES)) >= 0.95
    assert sum(tally.wrong.values()) <= 2


@pytest.mark.skipif(
    not recorded_texts(),
    reason="the recorded streams are not part of the project, and are not here",
)
async def test_nobody_is_found_in_recordings() -> None:
    """What models said to those who recorded them holds no personal data."""
    said = recorded_texts()
    assert sum(len(text.split()) for text in said) > 5_000
    assert not [text[one.start : one.stop] for text in said for one in await found_in(text)]


def test_recordings_may_be_absent(tmp_path: Path) -> None:
    """Then there is nothing to look at."""
    assert recorded_texts(tmp_path) == []


def test_the_table_can_be_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every type has a row; without recordings that is said; a missed bound counts if asked."""
    monkeypatch.setattr(guards, "recorded_texts", list)
    assert guards.main(["--texts", "10"]) == 0
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()[2:16]] == list(DATA_TYPES)
    assert "false positives were not counted" in printed
    monkeypatch.setattr(guards, "LEAST_RECALL", 1.1)
    assert guards.main(["--texts", "1"]) == 0
    assert guards.main(["--texts", "1", "--check"]) == 1
