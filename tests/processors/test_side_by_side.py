"""`SideBySide`: guards that ask, asked at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

from streampipe import Agent, TripWire
from streampipe.contracts import ProcessorViolation
from streampipe.errors import ConfigurationError, ProcessorError
from streampipe.processors import (
    Guard,
    PromptInjectionDetector,
    RegexFilter,
    SideBySide,
    SystemPromptScrubber,
)
from streampipe.testing import ScriptedModel, check_processor, run_virtual


def without(word: str, seconds: float = 0.0) -> Callable[[str], Any]:
    """A check that objects to a word, after a while."""

    async def check(text: str) -> bool | str:
        await asyncio.sleep(seconds)
        return f"it says {word}" if word in text else True

    return check


def said(guard: Any, *pieces: str, **options: Any) -> Any:
    """The result of a run whose answer comes in these pieces, on the jumping clock."""
    agent = Agent(model=ScriptedModel([list(pieces)]), output_processors=[guard], **options)
    return run_virtual(agent.generate("Well?"))


def test_questions_are_asked_at_the_same_time() -> None:
    """Three guards of 0.3 s add 0.3 s; one behind the other they add 0.9 s."""

    async def took(*guards: Any) -> float:
        agent = Agent(model=ScriptedModel([["One sentence."]]), output_processors=list(guards))
        begin = asyncio.get_running_loop().time()
        await agent.generate("Well?")
        return asyncio.get_running_loop().time() - begin

    def three() -> list[Guard]:
        return [Guard(without("x", 0.3), id=f"guard-{n}") for n in range(3)]

    assert run_virtual(took(SideBySide(*three()))) == pytest.approx(0.3, abs=0.01)
    assert run_virtual(took(*three())) == pytest.approx(0.9, abs=0.01)


def test_the_first_in_the_list_that_stops_the_answer_decides() -> None:
    """Although another was there first; and in its own name."""
    slow, fast = Guard(without("b", 0.5), id="slow"), Guard(without("b", 0.1), id="fast")
    result = said(SideBySide(slow, fast), "a. ", "b.")
    assert (result.tripwire.processor_id, result.tripwire.reason) == ("slow", "it says b")


def test_who_stops_goes_before_who_replaces() -> None:
    """Whatever their order."""
    guards = Guard(without("a"), "replace", id="one"), Guard(without("a"), "block", id="two")
    assert said(SideBySide(*guards), "a.").tripwire.processor_id == "two"


def test_one_of_them_may_replace() -> None:
    """Each with its own text."""
    guard = SideBySide(
        Guard(without("one"), "replace", replacement="[1] ", id="one"),
        Guard(without("two"), "replace", replacement="[2] ", id="two"),
    )
    assert said(guard, "Is one. ", "Is two. ", "Is.").text == "[1] [2] Is."


def test_where_two_want_to_replace_the_text_is_blocked() -> None:
    """Neither has seen what the other made of it."""
    guards = [Guard(without("a"), "replace", id=f"guard-{n}") for n in range(2)]
    result = said(SideBySide(*guards), "a.")
    assert (result.text, result.tripwire.processor_id) == ("", "guard-0")


@pytest.mark.parametrize("strategy", ["block", "replace", "warn"])
def test_everyone_that_objects_is_told(strategy: Any) -> None:
    """Once each, whoever decides."""
    told: list[ProcessorViolation] = []
    guards = [
        Guard(without("a"), strategy, id="one", on_violation=told.append),
        Guard(without("a"), "warn", id="two", on_violation=told.append),
    ]
    said(SideBySide(*guards), "a.")
    assert [each.processor_id for each in told] == ["one", "two"]


def test_each_is_asked_about_its_own_places_and_keeps_its_own_count() -> None:
    """The detector is not asked about the model's own words; budgets are not shared."""
    asked: list[str] = []

    async def note(text: str) -> bool:
        asked.append(text)
        return True

    async def scores(text: str) -> dict[str, float]:
        asked.append(f"injection? {text}")
        return {}

    guard = SideBySide(Guard(note, max_checks=2), PromptInjectionDetector(check=scores))
    agent = Agent(
        model=ScriptedModel([["Yes."]]), input_processors=[guard], output_processors=[guard]
    )
    result = run_virtual(agent.generate("Well?"))
    assert (result.text, sorted(asked)) == ("Yes.", ["Well?", "Yes.", "injection? Well?"])


def test_a_retry_is_asked_for_in_the_name_of_who_wants_it() -> None:
    """And granted."""
    guard = SideBySide(Guard(without("a"), "retry", id="one"), Guard(without("x"), id="two"))
    model = ScriptedModel([["a."], ["b."]])
    agent = Agent(model=model, output_processors=[guard], max_processor_retries=1)
    result = run_virtual(agent.generate("Well?"))
    assert (result.text, result.retries) == ("b.", 1)
    assert "it says a" in repr(model.requests[1].prompt)


@pytest.mark.parametrize(
    ("guards", "problem"),
    [
        ([], "two guards or more"),
        ([Guard(without("a"))], "two guards or more"),
        ([Guard(without("a")), Guard(without("b"))], "share an id"),
        ([Guard(without("a")), RegexFilter("a")], "guards that ask"),
        ([Guard(without("a")), SystemPromptScrubber()], "guards that ask"),
    ],
    ids=["none", "one", "same id", "rules", "scrubber"],
)
def test_what_cannot_stand_side_by_side_is_refused(guards: list[Any], problem: str) -> None:
    """When it is made."""
    with pytest.raises(ConfigurationError, match=f"SideBySide.*{problem}"):
        SideBySide(*guards)


def test_it_keeps_the_laws() -> None:
    """As the guards in it do."""
    check_processor(
        lambda: SideBySide(
            Guard(without("a", 0.2), "replace", replacement="#", id="one"),
            Guard(without("?", 0.1), id="two"),
        ),
        fails=(TripWire, ProcessorError),
        allowance=30,
        max_examples=max(1_000, 10 * settings().max_examples),
    )
