"""Texts in ten locales with personal data in them, and where it stands.

Half of the values stand behind words that say what they are, as in a form or a letter; half stand
bare among words. Dates of birth are always said to be some: without, they are dates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from faker import Faker

from benchmarks._guard_values import ANYWHERE, LOCALES, NATIONAL, TODAY, is_valid, value

__all__ = ["Sample", "Value", "samples"]

MOST_VALUES = 3
# A locale has one type of its own beside eight that all have, so that it comes more often.
_OWN_TYPE_WEIGHT = 4

_LABELS: dict[str, dict[str, tuple[str, ...]]] = {
    "de": {
        "email": ("E-Mail: {}", "Schreiben Sie an {}"),
        "phone": ("Telefon: {}", "Tel. {}", "Mobil: {}", "Rufen Sie mich unter {} an"),
        "card": ("Kreditkarte: {}", "Kartennummer {}"),
        "iban": ("IBAN: {}", "Bitte auf das Konto {} überweisen"),
        "ip": ("IP-Adresse: {}", "Der Server steht unter {}"),
        "date-of-birth": (
            "geboren am {}",
            "Geburtsdatum: {}",
            "geb. {}",
            "Sie wurde am {} geboren",
            "geboren in {city} am {}",
        ),
    },
    "en": {
        "email": ("Email: {}", "write to {}"),
        "phone": ("Phone: {}", "Tel. {}", "Mobile: {}", "call me at {}"),
        "card": ("Card number: {}", "paid by card {}"),
        "iban": ("IBAN: {}", "transfer it to {}"),
        "ip": ("IP address: {}", "the host is {}"),
        "date-of-birth": (
            "Born: {}",
            "Date of birth: {}",
            "DOB {}",
            "She was born on {}",
            "born in {city} on {}",
        ),
        "ssn": ("SSN: {}", "social security number {}"),
        "nino": ("NI number: {}", "National Insurance {}"),
    },
    "es": {
        "email": ("Correo: {}", "escriba a {}"),
        "phone": ("Teléfono: {}", "Tel. {}", "Móvil: {}", "llámame al {}"),
        "card": ("Tarjeta: {}", "pagado con la tarjeta {}"),
        "iban": ("IBAN: {}", "transferir a {}"),
        "ip": ("Dirección IP: {}", "el servidor es {}"),
        "date-of-birth": (
            "nacido el {}",
            "Fecha de nacimiento: {}",
            "Nació el {}",
            "nacida en {city} el {}",
        ),
        "dni": ("DNI: {}", "con documento {}"),
    },
    "fr": {
        "email": ("Courriel : {}", "écrivez à {}"),
        "phone": ("Téléphone : {}", "Tél. {}", "Portable : {}", "appelez-moi au {}"),
        "card": ("Carte : {}", "payé par carte {}"),
        "iban": ("IBAN : {}", "à verser sur {}"),
        "ip": ("Adresse IP : {}", "le serveur est {}"),
        "date-of-birth": (
            "né le {}",
            "née le {}",
            "Date de naissance : {}",
            "né à {city} le {}",
        ),
        "nir": ("Numéro de sécurité sociale : {}", "NIR {}"),
    },
    "it": {
        "email": ("Email: {}", "scrivere a {}"),
        "phone": ("Telefono: {}", "Tel. {}", "Cellulare: {}", "chiamami al {}"),
        "card": ("Carta: {}", "pagato con la carta {}"),
        "iban": ("IBAN: {}", "versare su {}"),
        "ip": ("Indirizzo IP: {}", "il server è {}"),
        "date-of-birth": (
            "nato il {}",
            "nata il {}",
            "Data di nascita: {}",
            "nato a {city} il {}",
        ),
        "codice-fiscale": ("Codice fiscale: {}", "C.F. {}"),
    },
    "ja": {
        "email": ("メール：{}", "{}にご連絡ください"),
        "phone": ("電話番号：{}", "電話：{}", "携帯：{}", "{}にお電話ください"),
        "card": ("カード番号：{}", "カード{}で支払いました"),
        "iban": ("IBAN：{}", "{}に振り込んでください"),
        "ip": ("IPアドレス：{}", "サーバーは{}です"),
        "date-of-birth": ("生年月日：{}", "{}生まれ", "誕生日は{}です"),
    },
    "nl": {
        "email": ("E-mail: {}", "schrijf naar {}"),
        "phone": ("Telefoon: {}", "Tel. {}", "Mobiel: {}", "bel mij op {}"),
        "card": ("Kaartnummer: {}", "betaald met kaart {}"),
        "iban": ("IBAN: {}", "overmaken naar {}"),
        "ip": ("IP-adres: {}", "de server is {}"),
        "date-of-birth": (
            "geboren op {}",
            "Geboortedatum: {}",
            "geb. {}",
            "geboren te {city} op {}",
        ),
    },
    "pl": {
        "email": ("E-mail: {}", "proszę pisać na {}"),
        "phone": ("Telefon: {}", "Tel. {}", "Komórka: {}", "proszę dzwonić pod {}"),
        "card": ("Numer karty: {}", "zapłacono kartą {}"),
        "iban": ("IBAN: {}", "przelew na {}"),
        "ip": ("Adres IP: {}", "serwer to {}"),
        "date-of-birth": (
            "urodzony {}",
            "urodzona {}",
            "Data urodzenia: {}",
            "ur. {}",
        ),
    },
    "pt": {
        "email": ("E-mail: {}", "escreva para {}"),
        "phone": ("Telefone: {}", "Tel. {}", "Celular: {}", "ligue para {}"),
        "card": ("Cartão: {}", "pago com o cartão {}"),
        "iban": ("IBAN: {}", "transferir para {}"),
        "ip": ("Endereço IP: {}", "o servidor é {}"),
        "date-of-birth": (
            "nascido em {}",
            "Data de nascimento: {}",
            "Nasceu em {}",
            "nascida em {city} em {}",
        ),
        "cpf": ("CPF: {}", "inscrito sob o CPF {}"),
    },
}
_INTERNATIONAL = {
    "api-key": ("API key: {}", "token {}"),
    "crypto-address": ("Wallet: {}", "bitcoin {}"),
}


@dataclass(frozen=True, slots=True)
class Value:
    """A value that stands in a text.

    Attributes:
        data_type: what it is.
        start: where it begins, in characters.
        stop: where it ends.
        is_valid: whether a judge that is not ours holds it for one that may have been given out.
    """

    data_type: str
    start: int
    stop: int
    is_valid: bool


@dataclass(frozen=True, slots=True)
class Sample:
    """A text, and the personal data in it."""

    locale: str
    text: str
    values: tuple[Value, ...]


@dataclass(slots=True)
class _Writer:
    """Writes a text, and notes where its values stand."""

    faker: Faker
    locale: str
    text: str = ""
    values: list[Value] = field(default_factory=list)

    def sample(self) -> Sample:
        """One to three values among prose, names, addresses and companies."""
        random = self.faker.random
        for _ in range(random.randint(1, MOST_VALUES)):
            self._distract()
            self._value()
        self._distract()
        return Sample(self.locale, self.text.strip(), tuple(self.values))

    def _distract(self) -> None:
        faker = self.faker
        said = faker.random.choice(
            (
                faker.sentence,
                faker.paragraph,
                lambda: f"{faker.name()}, {faker.address()}.",
                lambda: f"{faker.company()}: {faker.catch_phrase()}.",
                lambda: (
                    f"{faker.date(end_datetime=TODAY)} {faker.time(end_datetime=TODAY)}, "
                    f"{faker.pricetag()}."
                ),
            )
        )()
        self.text += f"{said} "

    def _value(self) -> None:
        random = self.faker.random
        own = [NATIONAL[self.locale]] * _OWN_TYPE_WEIGHT if self.locale in NATIONAL else []
        data_type = random.choice((*ANYWHERE, *own))
        made = value(data_type, self.faker, self.locale)
        is_labelled = data_type == "date-of-birth" or random.random() < 0.5
        before, after = self._labels(data_type) if is_labelled else self._words()
        self.text += before
        start = len(self.text)
        judged = is_valid(data_type, made, self.locale)
        self.values.append(Value(data_type, start, start + len(made), judged))
        self.text += f"{made}{after}. "

    def _labels(self, data_type: str) -> tuple[str, str]:
        """What stands before a value that is told, and what behind it."""
        known = _INTERNATIONAL | _LABELS[self.locale[:2]]
        form = self.faker.random.choice(known[data_type]).replace("{city}", self.faker.city())
        before, _, after = form.partition("{}")
        return before, after

    def _words(self) -> tuple[str, str]:
        """What stands around a bare value: half a sentence before it, half behind it."""
        between = "" if self.locale == "ja_JP" else " "
        words = [self.faker.word() for _ in range(self.faker.random.randint(2, 8))]
        half = len(words) // 2
        before, after = between.join(words[:half]), between.join(words[half:])
        return f"{before}{between}", f"{between}{after}"


def samples(count: int, seed: int = 0) -> Iterator[Sample]:
    """So many texts, the locales taking turns; the same ones for the same seed and hash seed."""
    fakers = [(locale, Faker(locale)) for locale in LOCALES]
    for number, (_, faker) in enumerate(fakers):
        faker.seed_instance(seed + number)
    for number in range(count):
        locale, faker = fakers[number % len(fakers)]
        yield _Writer(faker, locale).sample()
