"""`LanguageDetector`: which languages pass, what is in none, and what a translator makes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

from streampipe import Agent, TripWire
from streampipe.errors import ConfigurationError, ProcessorError
from streampipe.processors import LanguageDetector
from streampipe.testing import ScriptedModel, check_processor

EXAMPLES = max(1_000, 10 * settings().max_examples)
SENTENCES = {
    "en": "Where is the order that I placed yesterday afternoon?",
    "de": "Wo ist die Bestellung, die ich gestern gemacht habe?",
    "fr": "Où est la commande que j'ai passée hier après-midi ?",
    "es": "¿Dónde está el pedido que hice ayer por la tarde?",
    "it": "Dov'è l'ordine che ho fatto ieri pomeriggio?",
    "nl": "Waar is de bestelling die ik gisteren heb geplaatst?",
    "ru": "Где заказ, который я сделал вчера вечером?",
    "ja": "昨日の午後に注文した商品はどこにありますか。教えてください。",
}


async def asked(guard: LanguageDetector, text: str) -> Any:
    """The result of a run whose input the detector looks at."""
    agent = Agent(model=ScriptedModel([["Fine."]]), input_processors=[guard])
    return await agent.generate(text)


@pytest.mark.parametrize("code", SENTENCES)
async def test_a_language_passes_where_it_is_allowed_and_only_there(code: str) -> None:
    """By the library on this machine."""
    text = SENTENCES[code]
    assert (await asked(LanguageDetector([code]), text)).text == "Fine."
    others = [each for each in SENTENCES if each != code]
    result = await asked(LanguageDetector(others), text)
    assert result.tripwire.metadata["language"] == code


@pytest.mark.parametrize("text", ["4711, 0815 and 42", "Ja!", "Müller", "x = f(y)", "😀" * 40, "…"])
async def test_what_is_in_no_language_passes(text: str) -> None:
    """Numbers, names, a line of code."""
    assert (await asked(LanguageDetector(["fr"]), text)).text == "Fine."


async def test_a_short_text_is_looked_at_with_what_stands_before_it() -> None:
    """Alone it would have too few letters."""
    seen: list[str] = []

    def detect(text: str) -> tuple[str, float]:
        seen.append(text)
        return "en", 1.0

    guard = LanguageDetector(["en"], detect=detect)
    model = ScriptedModel([[SENTENCES["en"] + " ", "So?"]])
    await Agent(model=model, output_processors=[guard]).generate("Well?")
    assert seen == [SENTENCES["en"] + " ", SENTENCES["en"] + " So?"]


async def test_a_translation_takes_the_texts_place_and_keeps_the_space_behind_it() -> None:
    """A window ends with white space, which the model does not give back."""
    translator = ScriptedModel([['{"text": "Where is it?\\n"}']], repeat=True)
    guard = LanguageDetector(["en"], translator=translator)
    model = ScriptedModel([[SENTENCES["de"] + "  ", SENTENCES["en"]]])
    result = await Agent(model=model, output_processors=[guard]).generate("Well?")
    assert result.text == "Where is it?  " + SENTENCES["en"]
    assert translator.calls == 1


@pytest.mark.parametrize("detected", [None, "de", ("de",), ("de", "very"), (1, 1.0)])
async def test_what_is_no_language_is_no_answer(detected: Any) -> None:
    """The text does not leave."""
    result = await asked(LanguageDetector(["en"], detect=lambda _: detected), SENTENCES["en"])
    assert "could not be checked" in result.tripwire.reason


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"languages": []}, "languages"),
        ({"languages": ["xx"]}, "languages"),
        ({"languages": [1]}, "languages"),
        ({"threshold": 0}, "threshold"),
        ({"min_letters": -1}, "min_letters"),
        ({"translate_to": "en"}, "translate_to"),
        ({"translator": ScriptedModel([]), "strategy": "warn"}, "strategy"),
        ({"model_settings": {}}, "model_settings"),
        ({"detect": 3}, "detect"),
    ],
)
def test_a_bad_option_is_refused_when_built(options: dict[str, Any], named: str) -> None:
    """With the class's name and the option's."""
    with pytest.raises(ConfigurationError, match=f"LanguageDetector.*{named}"):
        LanguageDetector(**dict[str, Any](languages=["en"]) | options)


def test_it_keeps_the_laws_of_processors() -> None:
    """Whatever the stream, and wherever its text is cut."""
    check_processor(
        lambda: LanguageDetector(["en"], detect=lambda _: ("de", 1.0), min_letters=1),
        max_examples=EXAMPLES,
        fails=(TripWire, ProcessorError),
        allowance=30,
    )
