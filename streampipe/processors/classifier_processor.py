"""`ClassifierProcessor`: how much a text is of each of some categories, and what then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Unpack

from pydantic import create_model

from streampipe.contracts.processor import HookArgs
from streampipe.errors import ConfigurationError
from streampipe.operators._functions import UnfitError, check_async_function, to_await
from streampipe.processors._ask_model import ModelQuestion, checked_asked_one
from streampipe.processors._asked import Asked
from streampipe.processors._check_guard import ConversationGuard, GuardOptions, Objection
from streampipe.processors._options import (
    AnyModel,
    Share,
    Text,
    check_value,
    checked_names,
    checked_options,
    refuse_if,
)

__all__ = ["ClassifierOptions", "ClassifierProcessor", "Scores", "chosen_categories"]

Scores = Mapping[str, float]
"""By category, how much a text is of it: from 0 to 1. One that is missing is 0."""


class ClassifierOptions(GuardOptions, total=False):
    """What every guard that scores texts may be told; see `GuardOptions` as well.

    Attributes:
        model: whom to ask: a model, or a router id such as "openai/gpt-5-mini".
        check: an async function in the model's place: gets a text, gives its `Scores`.
        threshold: from which score on a text is objected to, above 0 to 1; for all categories, or
            by name (0.5 for those that are not named). 0.5.
        instructions: what the model is told to do; the categories follow.
        model_settings: for the model, such as `{"temperature": 0}`.
        reason: what the client is told; without it, which categories and how much.
    """

    model: AnyModel | None
    check: Callable[[str], Awaitable[Scores]] | None
    threshold: Share | Mapping[str, float]
    instructions: Text
    model_settings: Mapping[str, Any] | None
    reason: str | None


QUESTION = "Classify a text. Say for each category how much the text is of it, from 0 to 1."


class ClassifierProcessor(ConversationGuard):
    """Asks a model, or a function of yours, how much a text is of each of some categories.

    A text that reaches a category's threshold is objected to; what then becomes of it is said by
    `strategy`. The model is asked by an agent of its own, which has no processors and no tools; the
    text reaches it as data within JSON.

    In `input_processors` it asks about the messages that a run begins with, in `output_processors`
    about the answer, a window at a time. A question that fails, takes longer than `timeout` or is
    one more than `max_checks` is no answer, and what there is no answer for does not leave, unless
    `error_strategy="allow"`.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.testing import ScriptedModel
    >>> async def scores(text: str) -> dict[str, float]:  # or model="openai/gpt-5-mini"
    ...     return {"advice": 0.9 if "should buy" in text else 0.1}
    >>> guard = ClassifierProcessor({"advice": "tells what to buy or sell"}, check=scores)
    >>> model = ScriptedModel([["Gold rose. ", "You should ", "buy it. "]])
    >>> agent = Agent(model=model, output_processors=[guard])
    >>> asyncio.run(agent.generate("What of gold?")).tripwire.reason
    'advice (0.90)'

    Attributes:
        id: names it in tripwires, violations and errors.
        categories: what it asks about: names, and what each means.
        covers: where it looks.
        on_violation: is told of every objection, and of every text that could not be checked.
    """

    _has_rules = False  # whether there is something to look at with nobody to ask

    @checked_options
    def __init__(
        self,
        categories: Mapping[str, str] | Collection[str],
        *,
        model: AnyModel | None = None,
        check: Callable[[str], Awaitable[Scores]] | None = None,
        threshold: Share | Mapping[str, float] = 0.5,
        instructions: Text = QUESTION,
        model_settings: Mapping[str, Any] | None = None,
        reason: str | None = None,
        **options: Unpack[GuardOptions],
    ) -> None:
        """Say what to ask about, and whom; see `ClassifierOptions`.

        Args:
            categories: their names, or by name what each means.
            model: see `ClassifierOptions`, as for those that follow.
            check: see there.
            threshold: see there.
            instructions: see there.
            model_settings: see there.
            reason: see there.
            options: see `GuardOptions`.

        Raises:
            ConfigurationError: an option is none of its values; there is no category; both `model`
                and `check` are given, or neither.
        """
        owner = type(self).__name__
        options.setdefault("id", "classifier-processor")
        super().__init__(**options)
        self.categories = _checked_categories(owner, categories)
        self._thresholds = _checked_thresholds(owner, threshold, self.categories)
        self._reason = reason
        if model is not None or check is not None or not self._has_rules:
            checked_asked_one(owner, model, check)
        if check is not None:
            check_async_function(owner, "check", check)
        refuse_if(
            owner,
            {"model_settings are for a model": model is None and model_settings is not None},
        )
        self._check = check
        self._question: ModelQuestion | None = None
        if model is not None:
            told = "\n".join(f"- {name}: {what}" for name, what in self.categories.items())
            fields: dict[str, Any] = dict.fromkeys(self.categories, (float, ...))
            answer = create_model("Scores", **fields)
            asked = f"{instructions}\n\nCategories:\n{told}"
            self._question = ModelQuestion(owner, model, asked, answer, model_settings)

    async def _look(self, asked: Asked, args: HookArgs) -> Objection | None:
        scores = await self._scores(asked, args)
        found = {
            name: score
            for name, score in scores.items()
            if name in self._thresholds and score >= self._thresholds[name]
        }
        return self._objection(found, asked) if found else None

    def _objection(self, found: Mapping[str, float], asked: Asked) -> Objection:
        told = ", ".join(f"{name} ({score:.2f})" for name, score in found.items())
        detail = {"categories": dict(found), "place": asked.place}
        return Objection(told if self._reason is None else self._reason, detail)

    async def _scores(self, asked: Asked, args: HookArgs) -> dict[str, float]:
        """What the text is of, as whoever is asked says.

        Raises:
            UnfitError: that is no mapping of categories to numbers from 0 to 1.
            Exception: whoever is asked has failed.
        """
        given: Any = {}
        if self._question is not None:
            given = (await self._question.ask(asked, args)).model_dump()
        elif self._check is not None:
            given = await to_await(self._check(asked.text), "check", "give an async function")
        if not isinstance(given, Mapping):
            msg = f"check gave {type(given).__name__}; give scores by category"
            raise UnfitError(msg)
        for name, score in given.items():
            if not isinstance(score, int | float) or not 0 <= score <= 1:
                named = repr(name) if name in self.categories else "what is no category"
                msg = f"the score of {named} is no number from 0 to 1"
                raise UnfitError(msg)
        unknown = given.keys() - self.categories.keys()
        if unknown:
            known = ", ".join(self.categories)
            msg = f"there is a score of what is no category; categories: {known}"
            raise UnfitError(msg)
        return {str(name): float(score) for name, score in given.items()}


def chosen_categories(
    owner: str, known: Mapping[str, str], given: Mapping[str, str] | Collection[str] | None
) -> Mapping[str, str]:
    """What is asked about, where there are categories to choose among.

    Args:
        owner: the processor's class.
        known: by name, what each means.
        given: names out of these; or others, and what they mean; or None for all.

    Raises:
        ConfigurationError: a name without a meaning is none of these.
    """
    if given is None or isinstance(given, Mapping):
        return known if given is None else given
    names = checked_names(owner, "categories", given)
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        msg = f"{owner}: categories: there is no {unknown!r:.80}; known: {', '.join(known)}"
        raise ConfigurationError(f"{msg}; one of your own needs a meaning: {{name: meaning}}")
    return {name: known[name] for name in names}


def _checked_categories(owner: str, given: object) -> dict[str, str]:
    """What is asked about, by name.

    Raises:
        ConfigurationError: there is nothing, or a name or meaning that is no text.
    """
    made: dict[Any, Any] = {}
    if isinstance(given, Mapping):
        made = dict(given)
    else:
        names = checked_names(owner, "categories", given)
        made = {name: name.replace("_", " ") for name in names}
    if made and all(isinstance(text, str) and text for pair in made.items() for text in pair):
        return made
    msg = f"{owner}: categories must be names, or names and what they mean, not {given!r:.80}"
    raise ConfigurationError(msg)


def _checked_thresholds(
    owner: str, given: float | Mapping[str, float], categories: Mapping[str, str]
) -> dict[str, float]:
    """By category, from which score on a text is objected to.

    Raises:
        ConfigurationError: one is no number above 0 to 1, or is for no category.
    """
    named = given if isinstance(given, Mapping) else dict.fromkeys(categories, given)
    for name, value in named.items():
        refuse_if(owner, {f"threshold: there is no category {name!r:.80}": name not in categories})
        check_value(f"{owner}: threshold[{name!r:.80}]", value, Share)
    return {name: named.get(name, 0.5) for name in categories}
