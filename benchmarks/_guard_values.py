"""Values of structured types, made by Faker or as their issuers document them, none by our rules.

Others judge them: `phonenumbers` and `python-stdnum`. What these refuse is nobody's, and need not
be found.
"""

from __future__ import annotations

import base64
import calendar
import datetime as dt
import hashlib
import importlib
import string
from collections.abc import Callable
from dataclasses import dataclass

import phonenumbers
from faker import Faker
from stdnum import bitcoin, iban, luhn
from stdnum.br import cpf
from stdnum.es import dni, nie
from stdnum.fr import nir
from stdnum.it import codicefiscale
from stdnum.us import ssn

__all__ = ["ANYWHERE", "LOCALES", "NATIONAL", "is_valid", "value"]

LOCALES = (
    "de_DE",
    "en_GB",
    "en_US",
    "es_ES",
    "fr_FR",
    "it_IT",
    "ja_JP",
    "nl_NL",
    "pl_PL",
    "pt_BR",
)
TODAY = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)  # else the texts change with the clock
OLDEST = TODAY - dt.timedelta(days=115 * 365)

ANYWHERE = ("email", "phone", "card", "iban", "ip", "date-of-birth", "api-key", "crypto-address")
"""The types of which there are values in each locale."""
NATIONAL = {
    "en_GB": "nino",
    "en_US": "ssn",
    "es_ES": "dni",
    "fr_FR": "nir",
    "it_IT": "codice-fiscale",
    "pt_BR": "cpf",
}
"""The national id of a locale, where it is one that the detector knows."""

_ALNUM = string.ascii_letters + string.digits
_BASE64URL = f"{_ALNUM}_-"
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_HEX = "0123456789abcdef"
_EIP_55 = (  # the examples of the standard
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
)
_NEVER_NINO = ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ")
_POLISH_MONTHS = (  # as a date has them; Faker has their dictionary form
    "stycznia",
    "lutego",
    "marca",
    "kwietnia",
    "maja",
    "czerwca",
    "lipca",
    "sierpnia",
    "września",
    "października",
    "listopada",
    "grudnia",
)
# Besides that of ISO 8601, which is Faker's own.
_DATES = {
    "de_DE": ("%d.%m.%Y", "{day}. {month} %Y"),
    "en_GB": ("%d/%m/%Y", "{day} {month} %Y"),
    "en_US": ("%m/%d/%Y", "{month} {day}, %Y"),
    "es_ES": ("%d/%m/%Y", "{day} de {month} de %Y"),
    "fr_FR": ("%d/%m/%Y", "{day} {month} %Y"),
    "it_IT": ("%d/%m/%Y", "{day} {month} %Y"),
    "ja_JP": ("%Y/%m/%d", "%Y年{number}月{day}日"),
    "nl_NL": ("%d-%m-%Y", "{day} {month} %Y"),
    "pl_PL": ("%d.%m.%Y", "{day} {month} %Y"),
    "pt_BR": ("%d/%m/%Y", "{day} de {month} de %Y"),
}


@dataclass(frozen=True, slots=True)
class _Source:
    """Where the values of a locale come from."""

    faker: Faker
    locale: str

    def signs(self, count: int, alphabet: str = _ALNUM) -> str:
        return "".join(self.faker.random.choices(alphabet, k=count))

    def one_of(self, *options: str) -> str:
        return str(self.faker.random.choice(options))


def value(data_type: str, faker: Faker, locale: str) -> str:
    """A value of a type, as people of a locale write it."""
    return _MAKERS[data_type](_Source(faker, locale))


def is_valid(data_type: str, text: str, locale: str) -> bool:
    """Whether others than we hold a value for one that may have been given out."""
    judge = _JUDGES.get(data_type)
    return judge is None or judge(text, locale)


def _email(source: _Source) -> str:
    kind = source.one_of("email", "company_email", "free_email", "ascii_email", "safe_email")
    return str(source.faker.format(kind))


def _ip(source: _Source) -> str:
    return str(source.faker.format(source.one_of("ipv4", "ipv4_private", "ipv6")))


def _birthday(source: _Source) -> str:
    date = source.faker.date_between(OLDEST, TODAY)
    form = source.one_of("%Y-%m-%d", *_DATES[source.locale])
    is_first = source.locale == "fr_FR" and date.day == 1
    day = "1er" if is_first else str(date.day)
    month = _month(source.locale, date.month)
    return str(date.strftime(form.format(day=day, month=month, number=date.month)))


def _month(locale: str, number: int) -> str:
    if locale.startswith("en"):
        return str(calendar.month_name[number])
    if locale == "pl_PL":
        return _POLISH_MONTHS[number - 1]
    names = importlib.import_module(f"faker.providers.date_time.{locale}").Provider.MONTH_NAMES
    name = str(names[f"{number:02}"])
    return name.lower() if locale == "fr_FR" else name


def _nino(source: _Source) -> str:
    """By the rules for them: Faker makes only some that nobody will ever have."""
    prefix = "GB"
    while prefix in _NEVER_NINO:
        prefix = source.signs(2, "ABCEGHJKLMNPRSTWXYZ")
    form = source.one_of("?? ## ## ## !", "??######!", "?? ###### !")
    digits = source.faker.numerify(form.replace("!", source.one_of(*"ABCD")))
    return digits.replace("??", prefix)


def _dni(source: _Source) -> str:
    return str(source.faker.format(source.one_of("nif", "nie")))


def _cpf(source: _Source) -> str:
    return str(source.faker.format(source.one_of("cpf", "ssn")))


def _jwt(source: _Source) -> str:
    subject = source.faker.user_name()
    parts = ('{"alg":"HS256","typ":"JWT"}', f'{{"sub":"{subject}","iat":1516239022}}')
    encoded = [base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, source.signs(43, _BASE64URL)])


def _api_key(source: _Source) -> str:
    """One of those whose shape its service documents, or that scanners of secrets agree on."""
    signs, one_of = source.signs, source.one_of
    base32 = string.ascii_uppercase + "234567"
    made: Callable[[], str] = source.faker.random.choice(
        (
            lambda: one_of("AKIA", "ASIA") + signs(16, base32),
            lambda: f"gh{one_of(*'pousr')}_{signs(36)}",
            lambda: f"github_pat_{signs(22)}_{signs(59)}",
            lambda: f"AIza{signs(35, _BASE64URL)}",
            lambda: f"sk-{signs(20)}T3BlbkFJ{signs(20)}",
            lambda: f"sk-proj-{signs(74, _BASE64URL)}T3BlbkFJ{signs(74, _BASE64URL)}",
            lambda: f"sk-ant-api03-{signs(93, _BASE64URL)}AA",
            lambda: f"xoxb-{signs(12, string.digits)}-{signs(12, string.digits)}-{signs(24)}",
            lambda: f"{one_of('sk', 'rk')}_live_{signs(24)}",
            lambda: f"SG.{signs(22, _BASE64URL)}.{signs(43, _BASE64URL)}",
            lambda: f"npm_{signs(36)}",
            lambda: f"hf_{signs(34)}",
            lambda: f"glpat-{signs(20, _BASE64URL)}",
            lambda: f"gsk_{signs(52)}",
            lambda: _jwt(source),
        )
    )
    return made()


def _crypto_address(source: _Source) -> str:
    kind = source.one_of("base58", "bech32", "ethereum", "eip-55")
    if kind == "base58":
        return _base58(bytes([source.faker.random.choice((0, 5))]) + source.faker.binary(20))
    if kind == "bech32":
        return _bech32(source.signs(32, _BECH32))
    return f"0x{source.signs(40, _HEX)}" if kind == "ethereum" else source.one_of(*_EIP_55)


def _base58(payload: bytes) -> str:
    whole = payload + hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4]
    number, text = int.from_bytes(whole, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        text = _BASE58[rest] + text
    return "1" * (len(whole) - len(whole.lstrip(b"\0"))) + text


def _bech32(program: str) -> str:
    """The address of a key's hash, given in 32 symbols; its version is the symbol q, a zero."""
    symbols = [_BECH32.index(symbol) for symbol in f"q{program}"]
    rest = bitcoin.bech32_checksum([3, 3, 0, 2, 3, *symbols, 0, 0, 0, 0, 0, 0]) ^ 1
    check = "".join([_BECH32[rest >> 5 * place & 31] for place in range(5, -1, -1)])
    return f"bc1q{program}{check}"


def _faked(provider: str) -> Callable[[_Source], str]:
    return lambda source: str(source.faker.format(provider))


_MAKERS: dict[str, Callable[[_Source], str]] = {
    "api-key": _api_key,
    "card": _faked("credit_card_number"),
    "codice-fiscale": _faked("ssn"),
    "cpf": _cpf,
    "crypto-address": _crypto_address,
    "date-of-birth": _birthday,
    "dni": _dni,
    "email": _email,
    "iban": _faked("iban"),
    "ip": _ip,
    "nino": _nino,
    "nir": _faked("ssn"),
    "phone": _faked("phone_number"),
    "ssn": _faked("ssn"),
}


def _is_phone(text: str, locale: str) -> bool:
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(text, locale[-2:]))
    except phonenumbers.NumberParseException:
        return False


_JUDGES: dict[str, Callable[[str, str], bool]] = {
    "card": lambda text, _: luhn.is_valid(text),
    "codice-fiscale": lambda text, _: codicefiscale.is_valid(text),
    "cpf": lambda text, _: cpf.is_valid(text),
    "crypto-address": lambda text, _: text.startswith("0x") or bitcoin.is_valid(text),
    "dni": lambda text, _: dni.is_valid(text) or nie.is_valid(text),
    "iban": lambda text, _: iban.is_valid(text, check_country=False),
    "nir": lambda text, _: nir.is_valid(text),
    "phone": _is_phone,
    "ssn": lambda text, _: ssn.is_valid(text),
}
