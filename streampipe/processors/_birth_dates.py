"""Rules for dates of birth: dates beside a word that says what they are, in nine languages.

A date alone tells of nobody.
"""

from __future__ import annotations

import re

from streampipe.text import Rule

__all__ = ["BIRTH_DATES", "birth_date_in"]

_MONTHS = (
    # English, German, French, Spanish, Italian, Dutch, Polish, Portuguese.
    "January|February|March|April|May|June|July|August|September|October|November|December"
    "|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\\.?"
    "|Januar|Jänner|Februar|März|Mai|Juni|Juli|Oktober|Dezember"
    "|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre"
    "|enero|febrero|marzo|abril|mayo|junio|julio|agosto|sep?tiembre|octubre|noviembre|diciembre"
    "|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre"
    "|januari|februari|maart|mei|augustus"
    "|stycznia|lutego|marca|kwietnia|maja|czerwca|lipca|sierpnia|września|października|listopada"
    "|grudnia"
    "|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro"
)
_SPACE = "[ \u00a0\u202f]"
_DAY = "[0-3]?[0-9](?:st|nd|rd|th|er|[.º])?"
_DATE = (
    r"(?:[0-9]{4}[./-][0-9]{1,2}[./-][0-9]{1,2}|[0-9]{1,2}[./-][0-9]{1,2}[./-](?:[0-9]{4}|[0-9]{2})"
    "|[0-9]{4}年[0-9]{1,2}月[0-9]{1,2}日"
    rf"|{_DAY}{_SPACE}(?:(?:of|de){_SPACE})?(?:{_MONTHS}),?{_SPACE}(?:del?{_SPACE})?[0-9]{{4}}"
    rf"|(?:{_MONTHS}){_SPACE}{_DAY},?{_SPACE}[0-9]{{4}})"
)
_WORDS = (
    r"born|birth(?:[ ]?da(?:y|te))?|date[ ]of[ ]birth|d\.?o\.?b\.?"
    r"|geb\.|geboren|geburts(?:datum|tag)|geboorte(?:datum|dag)"
    "|née?|naissance"
    "|nacid[oa]|nació|nacimiento"
    "|nascita"
    r"|ur\.|urodzon[aey]|urodziła?(?:[ ]się)?|urodzenia"
    "|nascid[oa]|nasceu|nascimento"
    "|生年月日|誕生日"
)
_WORDS_BEHIND = "(?:[ ](?:geboren|urodzon[aey]|born)|[ ]?生まれ)"
_NAME = "(?:[A-Za-z\u00c0-\u024f'\u2019()/ -]|(?<=[Tt])[.]){2,40}"  # such as St. Gallen
_PLACE = f"(?:in|ad?|à|en|em|te|w|we){_SPACE}{_NAME},?{_SPACE}"
_ON = f"(?:is|was|on|am|den|le|el|il|op|em|dnia|día|dia){_SPACE}"
# Italian says more of it, for "nato" is an alliance too.
_CUE = (
    f"(?:(?:{_WORDS})[ \t]?[:=\uff1aは]?[ \t]{{0,2}}(?:{_PLACE})?(?:{_ON}){{0,2}}"
    f"|nat[oa]{_SPACE}(?:{_PLACE})?il{_SPACE})"
)
_SHOWN = re.compile(rf"({_CUE})?({_DATE})({_WORDS_BEHIND})?", re.IGNORECASE)
_PLACE_IN_CUE = re.compile(rf"{_SPACE}{_PLACE}(?:{_ON}){{0,2}}\Z", re.IGNORECASE)
_LONG_WORD = re.compile(r"(?<![^\W_])[a-zà-ɏ]{4,}")  # small letters: it is no name of a place


def birth_date_in(text: str) -> tuple[int, int] | None:
    """Where the date stands in what a rule has found; None if there is more in it than that."""
    found = _SHOWN.fullmatch(text)
    return None if found is None else found.span(2)


def _with_place(text: str) -> int:
    """Between the word and the date may only be a place."""
    span = birth_date_in(text)
    if span is None:
        return 0
    place = _PLACE_IN_CUE.search(text, 0, span[0])
    return 0 if place is not None and _LONG_WORD.search(place[0]) else len(text)


BIRTH_DATES = (
    Rule(
        "date-of-birth",
        rf"(?<![A-Za-z0-9\u00c0-\u024f_.@-]){_CUE}{_DATE}(?![0-9])",
        "[DATE OF BIRTH]",
        _with_place,
        re.IGNORECASE,
    ),
    Rule(
        "date-of-birth",
        rf"(?<![A-Za-z0-9./-]){_DATE}{_WORDS_BEHIND}",
        "[DATE OF BIRTH]",
        flags=re.IGNORECASE,
    ),
)
"""Numbers in the orders of most countries, or the name of the month, with the year."""
