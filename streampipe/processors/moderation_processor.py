"""`ModerationProcessor`: what is not to be said, by what a model makes of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Unpack

from streampipe.processors._options import checked_options
from streampipe.processors.classifier_processor import (
    ClassifierOptions,
    ClassifierProcessor,
    chosen_categories,
)

__all__ = ["MODERATION_CATEGORIES", "ModerationProcessor"]

MODERATION_CATEGORIES: dict[str, str] = {
    "harassment": "insults, bullies or demeans somebody",
    "harassment_threatening": "threatens somebody with harm",
    "hate": "disparages people for what they are: origin, religion, sex, disability and the like",
    "hate_threatening": "calls for harm to such people, or wishes it",
    "illicit": "tells how to do something unlawful",
    "illicit_violent": "tells how to do something unlawful that hurts people, such as weapons",
    "self_harm": "encourages self-harm or suicide, or tells how",
    "sexual": "is meant to arouse",
    "sexual_minors": "has sexual content with anybody under 18",
    "violence": "glorifies violence, or depicts it for its own sake",
}
"""The categories that are asked about unless others are named, and what the model is told of
them."""

QUESTION = (
    "Moderate a text. Say for each category how much the text is of it, from 0 (not at all) to 1 "
    "(beyond doubt). To mention a matter, to report it soberly, to warn of it or to refuse it is "
    "not to be of it."
)


class ModerationProcessor(ClassifierProcessor):
    """Keeps out what is harmful, by what a model, or a moderation service of yours, makes of it.

    It is a `ClassifierProcessor` with the categories that moderation services share. In place of a
    model give `check`, such as one that asks such a service and gives its scores.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.testing import ScriptedModel
    >>> async def service(text: str) -> dict[str, float]:
    ...     return {"harassment": 0.97 if "fool" in text else 0.01}
    >>> guard = ModerationProcessor(check=service, strategy="replace", replacement="")
    >>> model = ScriptedModel([["Sure. ", "Only a fool ", "would ask. ", "It is 4."]])
    >>> agent = Agent(model=model, output_processors=[guard])
    >>> asyncio.run(agent.generate("What is two and two?")).text
    'Sure. It is 4.'
    """

    @checked_options
    def __init__(
        self,
        *,
        categories: Mapping[str, str] | Collection[str] | None = None,
        **options: Unpack[ClassifierOptions],
    ) -> None:
        """Say whom to ask.

        Args:
            categories: names out of `MODERATION_CATEGORIES`, or names and meanings of your own; all
                of those when None.
            options: see `ClassifierOptions`; 300 characters of `context` unless told otherwise.

        Raises:
            ConfigurationError: as `ClassifierProcessor`; a category is not known.
        """
        options.setdefault("id", "moderation-processor")
        options.setdefault("context", 300)
        options.setdefault("instructions", QUESTION)
        owner = type(self).__name__
        super().__init__(chosen_categories(owner, MODERATION_CATEGORIES, categories), **options)
