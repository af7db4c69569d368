"""Dates of birth: told from other dates by the words beside them, in nine languages."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.processors._birth_dates import BIRTH_DATES, birth_date_in
from streampipe.text import Scanner, redacted
from tests.text.cuttings import cut
from tests.text.regex_oracle import redacted_by_re

FOUND = [
    "born 1990-01-31",
    "Born in New York on January 31, 1990",
    "Born on 31 January 1990",
    "DOB: 31/1/90",
    "d.o.b. 31.01.1990",
    "birthday: Jan. 31st, 1990",
    "geboren in Bad Oeynhausen am 1. März 1990",
    "geb. 1.3.1990",
    "geboren in St. Johann am 1.3.1990",
    "Geburtsdatum: 01.03.1990",
    "03.02.2003 geboren",
    "né à Saint-Étienne le 1er mai 1990",
    "naissance : 12/05/1990",
    "nacida en San José el 3 de mayo de 1990",
    "Fecha de nacimiento: 03/05/1990".removeprefix("Fecha de "),
    "nato a Roma il 3/4/1990",
    "nata il 3 aprile 1990",
    "geboren te Rijswijk (NB) op 25 januari 1945",
    "ur. 12.05.1990",
    "urodzona 9 października 1990",
    "urodził się 9 maja 1990",
    "nascido em São Paulo em 3 de março de 1990",
    "生年月日：1990年1月3日",  # noqa: RUF001 - as it is written
    "誕生日は1990年1月3日",
    "1990/01/03生まれ",
]
NOTHING = [
    "on 1990-01-31",
    "born in 1990",
    "stubborn 1990-01-31",
    "DOB unknown, 1990-01-31",
    "born in Rome and married on 12/05/2010",
    "born in a tent. On 12/05/2010",
    "NATO 04/04/1949",
    "nato l'8/3/1980",
    "année 2020-01-01",
    "kultur. 12.05.1990",
    "zoe@x.dob 1990-01-31",
    "31 January 1990",
    "1990年1月3日に",
    "born 3 farms 1990",
]
MONTHS = {
    "born {} {} {}": "January March May June July August October December",
    "geboren am {}. {} {}": "Januar Februar März Mai Juni Juli Oktober Dezember",
    "né le {} {} {}": "janvier février avril juin juillet août septembre décembre",
    "nacido el {} de {} de {}": "enero marzo mayo junio julio agosto setiembre diciembre",
    "nato il {} {} {}": "gennaio febbraio maggio giugno luglio settembre ottobre dicembre",
    "geboren op {} {} {}": "januari februari maart mei juni juli augustus oktober",
    "ur. {} {} {}": "stycznia lutego marca kwietnia maja czerwca lipca grudnia",
    "nascida em {} de {} de {}": "janeiro fevereiro março maio junho julho outubro dezembro",
}


@pytest.mark.parametrize("sample", FOUND)
def test_dates_of_birth_are_found(sample: str) -> None:
    """With the word that tells of them, and the place between."""
    assert redacted(f"It is {sample}, I think.", BIRTH_DATES) == "It is [DATE OF BIRTH], I think."


@pytest.mark.parametrize("sample", NOTHING)
def test_other_dates_are_left(sample: str) -> None:
    """Dates of which no word says that they are of birth, and such words without a date."""
    assert redacted(f"It is {sample}, I think.", BIRTH_DATES) == f"It is {sample}, I think."


@given(st.dates(dt.date(1900, 1, 1)), st.sampled_from(list(MONTHS)), st.data())
def test_names_of_months(date: dt.date, form: str, data: st.DataObject) -> None:
    """Each language has its own."""
    month = data.draw(st.sampled_from(MONTHS[form].split()))
    text = form.format(date.day, month, date.year)
    assert redacted(f"{text}!", BIRTH_DATES) == "[DATE OF BIRTH]!"


@given(st.dates(dt.date(1900, 1, 1)), st.sampled_from(["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%y"]))
def test_only_the_date_is_a_value(date: dt.date, form: str) -> None:
    """The words around it are none; in what holds more than words and a date is no such place."""
    written = date.strftime(form)
    for text in (f"born in Rome on {written}", f"{written} geboren", written):
        span = birth_date_in(text)
        assert span is not None
        assert text[slice(*span)] == written
    assert birth_date_in(f"zoe@x born {written}") is None


@given(data=st.data())
def test_a_cut_changes_nothing(data: st.DataObject) -> None:
    """The text comes out as `re` would redact it whole, however it was cut."""
    words = st.sampled_from([*FOUND, *NOTHING, "born in", "1", "Rome"])
    text = " ".join(data.draw(st.lists(words, max_size=4)))
    scanner = Scanner(BIRTH_DATES)
    pieces = [scanner.feed(piece) for piece in data.draw(cut(text))]
    assert "".join(pieces) + scanner.finish() == redacted_by_re(text, BIRTH_DATES)


@given(st.lists(st.sampled_from(["born ", "in ", "Rome ", "on ", "1", "19", ".", "né ", "a"])))
def test_little_is_held(parts: list[str]) -> None:
    """A word, a place and a date, never more."""
    scanner = Scanner(BIRTH_DATES)
    for part in parts:
        scanner.feed(part)
        assert scanner.held <= 100
