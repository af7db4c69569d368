"""`LanguageDetector`: texts in other languages than were agreed on."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Unpack

from pydantic import BaseModel

from streampipe.contracts import Model
from streampipe.contracts.processor import HookArgs
from streampipe.errors import ConfigurationError
from streampipe.operators._functions import UnfitError, check_async_function
from streampipe.processors._ask_model import ModelQuestion
from streampipe.processors._asked import Asked
from streampipe.processors._check_guard import ConversationGuard, GuardOptions, Objection
from streampipe.processors._language import local_detector
from streampipe.processors._options import (
    AnyModel,
    Share,
    Whole,
    checked_names,
    checked_options,
    refuse_if,
)

__all__ = ["LanguageDetector"]

_CODE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
Detected = tuple[str, float]
Detector = Callable[[str], Detected | Awaitable[Detected]]
"""Gives the code of a text's language, and how sure that is, from 0 to 1; plain or async."""


class Translation(BaseModel):
    """What the model answers."""

    text: str


class LanguageDetector(ConversationGuard):
    """Lets texts in some languages pass only, or has the others translated by a model.

    The language is told on this machine, by a library that carries its data (the extra `language`),
    or by a function of yours. A text of fewer than `min_letters` letters is looked at together with
    what stands before it; if that is too short as well, or no language is told with `threshold`, it
    passes: a name, a number or a line of code is in no language.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.testing import ScriptedModel
    >>> guard = LanguageDetector(["en", "fr"])
    >>> agent = Agent(model=ScriptedModel([["Hello."]]), input_processors=[guard])
    >>> result = asyncio.run(agent.generate("Wo ist die Bestellung, die ich gestern gemacht habe?"))
    >>> result.tripwire.reason
    'the text is in de; allowed: en, fr'

    Attributes:
        id: names it in tripwires, violations and errors.
        covers: where it looks.
        on_violation: is told of every text in another language, translated or not.
    """

    @checked_options
    def __init__(
        self,
        languages: Collection[str],
        *,
        translator: AnyModel | None = None,
        translate_to: str | None = None,
        detect: Detector | None = None,
        threshold: Share = 0.6,
        min_letters: Whole = 20,
        model_settings: Mapping[str, Any] | None = None,
        **options: Unpack[GuardOptions],
    ) -> None:
        """Say which languages may pass.

        Args:
            languages: their codes of ISO 639-1, such as "en".
            translator: a model, or a router id, that translates what is in another language: the
                translation takes the text's place. Then there is no `strategy`.
            translate_to: into which language; the first of `languages` when None.
            detect: a function in the library's place.
            threshold: how sure it has to be, above 0 to 1.
            min_letters: how many letters a text needs to be looked at.
            model_settings: for the translator.
            options: see `GuardOptions`; 200 characters of `context` unless told otherwise.

        Raises:
            ConfigurationError: an option is none of its values, or contradicts another; a language
                is not known to the library; the extra is missing.
        """
        owner = type(self).__name__
        options.setdefault("id", "language-detector")
        options.setdefault("context", 200)
        refuse_if(
            owner,
            {
                "with a translator there is no strategy: its text takes the place": (
                    translator is not None and "strategy" in options
                ),
                "translate_to is for a translator": translate_to is not None and translator is None,
            },
        )
        super().__init__(**options)
        named = checked_names(owner, "languages", languages)
        self._allowed = frozenset(named)
        self._shown = ", ".join(named)
        refuse_if(owner, {"languages: name at least one, such as 'en'": not self._allowed})
        self._threshold = threshold
        self._least = min_letters
        target = named[0] if translate_to is None else translate_to
        self._detect = _detector(owner, detect, self._allowed)
        self._translation = _translation(owner, translator, target, model_settings)

    async def _look(self, asked: Asked, args: HookArgs) -> Objection | None:
        text = asked.text
        if _letters(text) < self._least:
            text = asked.before + text
            if _letters(text) < self._least:
                return None
        detected = self._detect(text)
        if inspect.isawaitable(detected):
            detected = await detected
        language, confidence = _checked(detected)
        if language in self._allowed or confidence < self._threshold:
            return None
        detail = {"language": language, "confidence": confidence, "place": asked.place}
        reason = f"the text is in {language}; allowed: {self._shown}"
        if self._translation is None:
            return Objection(reason, detail)
        translated: Translation = await self._translation.ask(asked, args)
        end = asked.text[len(asked.text.rstrip()) :]  # a window ends with the space behind it
        return Objection(reason, detail, "replace", translated.text.rstrip() + end)


def _detector(owner: str, detect: Detector | None, languages: frozenset[str]) -> Detector:
    """What tells the language: the function that was given, or the library.

    Raises:
        ConfigurationError: it is no function; the library is missing, or does not know a language.
    """
    if detect is not None:
        check_async_function(owner, "detect", detect)
        return detect
    local, known = local_detector(owner)
    unknown = languages - known
    if unknown:
        first = min(unknown)
        base = first.lower().replace("_", "-").partition("-")[0]
        names = repr(base) if base in known else ", ".join(sorted(known))
        msg = f"{owner}: languages: {first!r:.80} is not known; known: {names}"
        raise ConfigurationError(msg)
    return local


def _translation(
    owner: str,
    translator: Model | str | None,
    target: str,
    model_settings: Mapping[str, Any] | None,
) -> ModelQuestion | None:
    """What translates; None if nothing does.

    Raises:
        ConfigurationError: it is no model, or there are settings and no model.
    """
    if translator is None:
        if model_settings is not None:
            raise ConfigurationError(f"{owner}: model_settings are for a translator")
        return None
    told = (
        f"Translate `text` into the language with the ISO 639-1 code {target!r}. Keep the meaning, "
        "the tone, names, numbers, code, links and Markdown. Give the translation and nothing else."
    )
    return ModelQuestion(owner, translator, told, Translation, model_settings)


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text))


def _checked(detected: object) -> Detected:
    """What a detector gave.

    Raises:
        UnfitError: it is no language with a confidence.
    """
    match detected:
        case (str() as language, float() | int() as confidence) if _CODE.fullmatch(language):
            return language, confidence
        case _:
            msg = f"detect gave {type(detected).__name__}; give a code such as 'en', and how sure"
            raise UnfitError(msg)
