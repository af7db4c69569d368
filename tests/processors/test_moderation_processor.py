"""`ModerationProcessor`: the categories it brings, and those that are named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

from streampipe import Agent, TripWire
from streampipe.errors import ConfigurationError, ProcessorError
from streampipe.processors import ModerationProcessor
from streampipe.processors.moderation_processor import MODERATION_CATEGORIES
from streampipe.testing import ScriptedModel, check_processor

EXAMPLES = max(1_000, 10 * settings().max_examples)


async def rude(text: str) -> dict[str, float]:
    """Finds an insult."""
    return {"harassment": 0.97 if "fool" in text else 0.01}


async def test_what_is_harmful_does_not_leave() -> None:
    """By the scores of the service that is asked."""
    guard = ModerationProcessor(check=rude)
    agent = Agent(model=ScriptedModel([["You fool."]]), output_processors=[guard])
    result = await agent.generate("Well?")
    assert result.tripwire is not None
    assert (result.text, result.tripwire.reason) == ("", "harassment (0.97)")


@pytest.mark.parametrize(
    ("categories", "meanings"),
    [
        (None, MODERATION_CATEGORIES),
        (["hate"], {"hate": MODERATION_CATEGORIES["hate"]}),
        ({"hate": "mine"}, {"hate": "mine"}),
    ],
)
def test_a_known_name_brings_its_meaning(categories: Any, meanings: dict[str, str]) -> None:
    """Others mean what they are said to mean."""
    guard = ModerationProcessor(check=rude, categories=categories)
    assert guard.categories == meanings


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, "exactly one"),
        ({"check": rude, "categories": []}, "categories"),
        ({"check": rude, "categories": ["harrassment"]}, "there is no 'harrassment'; known: "),
        ({"check": rude, "threshold": {"gossip": 0.5}}, "gossip"),
        ({"check": rude, "strategy": "shout"}, "strategy"),
    ],
)
def test_a_bad_option_is_refused_when_built(options: dict[str, Any], named: str) -> None:
    """With the class's name and the option's."""
    with pytest.raises(ConfigurationError, match=f"ModerationProcessor.*{named}"):
        ModerationProcessor(**options)


def test_it_keeps_the_laws_of_processors() -> None:
    """Whatever the stream, and wherever its text is cut."""

    async def check(text: str) -> dict[str, float]:
        return {"hate": float("a" in text)}

    check_processor(
        lambda: ModerationProcessor(check=check),
        max_examples=EXAMPLES,
        fails=(TripWire, ProcessorError),
        allowance=30,
    )
