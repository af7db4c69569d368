"""`EntityDetector`: what only its meaning tells, hidden wherever whoever is asked has found it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streampipe import Agent, TripWire, tool
from streampipe.contracts import ProcessorViolation
from streampipe.errors import ConfigurationError, ProcessorError
from streampipe.processors import Entity, EntityDetector
from streampipe.testing import ScriptedModel, call, check_processor, chunkings

NAMES = re.compile(r"Ada Lovelace|Grace Hopper")
ANSWER = "It is Ada Lovelace. Ask Grace Hopper, or ada lovelace. Nobody else."
HIDDEN = "It is [PERSON]. Ask [PERSON], or ada lovelace. Nobody else."


def by_name(text: str) -> list[tuple[int, int, str]]:
    """Finds two people."""
    return [(*match.span(), "PERSON") for match in NAMES.finditer(text)]


async def by_name_later(text: str) -> list[Entity]:
    """Finds them after a while."""
    await asyncio.sleep(0)
    return [Entity(*each) for each in by_name(text)]


@dataclass
class Recognised:
    """As Presidio's `RecognizerResult`."""

    entity_type: str
    start: int
    end: int
    score: float = 0.85


class FakeAnalyzer:
    """Takes what `presidio_analyzer.AnalyzerEngine.analyze` takes, and gives what it gives."""

    def __init__(self) -> None:
        """Nobody has asked yet."""
        self.asked: list[dict[str, Any]] = []

    def analyze(
        self, *, text: str, language: str, entities: list[str], score_threshold: float
    ) -> Iterable[Recognised]:
        """Find the two."""
        self.asked.append(
            {"language": language, "entities": entities, "score_threshold": score_threshold}
        )
        return [Recognised("PERSON", *match.span()) for match in NAMES.finditer(text)]


def said(guard: EntityDetector, *pieces: str, **options: Any) -> Any:
    """The result of a run whose answer comes in these pieces."""
    agent = Agent(model=ScriptedModel([list(pieces)]), output_processors=[guard], **options)
    return asyncio.run(agent.generate("Who is it?"))


@pytest.mark.parametrize("find", [by_name, by_name_later], ids=["plain", "async"])
@given(pieces=chunkings(ANSWER))
@settings(max_examples=20)
def test_what_is_found_is_hidden_wherever_the_text_was_cut(find: Any, pieces: list[str]) -> None:
    """Windows do not depend on the cutting, so neither does what is asked."""
    assert said(EntityDetector(find=find), *pieces).text == HIDDEN


@pytest.mark.parametrize(
    ("method", "shown"),
    [("placeholder", "[PERSON]"), ("mask", "*** ********"), ("remove", "")],
)
def test_a_method_says_what_stands_there(method: Any, shown: str) -> None:
    """The kind, asterisks for what can be seen, or nothing."""
    result = said(EntityDetector(find=by_name, method=method), "By Ada Lovelace.")
    assert result.text == f"By {shown}."


def test_presidio_is_asked_in_its_own_terms() -> None:
    """As its documentation has it: text, language, entities, score_threshold."""
    analyzer = FakeAnalyzer()
    guard = EntityDetector(["PERSON"], analyzer=analyzer, language="de", threshold=0.7)
    assert said(guard, ANSWER).text == HIDDEN
    assert analyzer.asked[0] == {"language": "de", "entities": ["PERSON"], "score_threshold": 0.7}


def quoting(*quotes: tuple[str, str]) -> ScriptedModel:
    """A model that quotes these."""
    told = [{"kind": kind, "quote": quote} for kind, quote in quotes]
    return ScriptedModel([[str({"mentions": told}).replace("'", '"')]], repeat=True)


def test_a_models_quote_is_found_whatever_its_case_and_spaces() -> None:
    """Each place it stands in."""
    guard = EntityDetector(model=quoting(("person", "ada lovelace")))
    result = said(guard, "Ada  Lovelace met ADA LOVELACE")
    assert result.text == "[PERSON] met [PERSON]"


def test_a_quote_that_does_not_stand_there_is_no_answer() -> None:
    """Something was meant, and nobody knows where it is: the text does not leave."""
    result = said(EntityDetector(model=quoting(("person", "Ada L."))), "Ada Lovelace came.")
    assert (result.text, result.tripwire.metadata["unchecked"]) == (
        "",
        "the check failed with UnfitError",
    )


def test_a_tools_result_stays_what_it_was_but_for_what_was_found() -> None:
    """An object stays an object: the model is sent JSON without the name."""

    @tool
    def who() -> dict[str, str]:
        """Who it is."""
        return {"name": "Ada Lovelace", "city": "London"}

    model = ScriptedModel([[call("who")], ["Done."]])
    guard = EntityDetector(find=by_name, covers=["tool-results"])
    agent = Agent(model=model, tools=[who], output_processors=[guard])
    result = asyncio.run(agent.generate("Who?"))
    assert result.tool_results[0].result == {"name": "[PERSON]", "city": "London"}


def test_on_violation_is_told_how_many_of_what_kind_and_not_whom() -> None:
    """Or what was hidden stands in a log."""
    told: list[ProcessorViolation] = []
    said(EntityDetector(find=by_name, on_violation=told.append), "Ada Lovelace, Grace Hopper.")
    assert [each.detail for each in told] == [{"entities": {"PERSON": 2}, "place": "text"}]
    assert "Ada" not in repr(told)


@pytest.mark.parametrize("found", [[(0, 99, "X")], [(2, 2, "X")], [(-1, 2, "X")], ["Ada"], [7]])
def test_places_that_are_none_block(found: Any) -> None:
    """A function that is wrong about where has not answered."""
    result = said(EntityDetector(find=lambda _: found), "Ada.")
    assert result.text == ""
    assert "UnfitError" in result.tripwire.metadata["unchecked"]


@given(
    spans=st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 10), st.sampled_from("ab")).filter(
            lambda span: span[0] < span[1]
        )
    )
)
def test_what_overlaps_is_one(spans: list[tuple[int, int, str]]) -> None:
    """Nothing that is in any of them is left, and all else is."""
    guard = EntityDetector(find=lambda _: spans, method="mask")
    covered = {at for start, end, _ in spans for at in range(start, end)}
    expected = "".join("*" if at in covered else char for at, char in enumerate("0123456789"))
    assert said(guard, "0123456789").text == expected


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "exactly one"),
        ({"find": by_name, "analyzer": FakeAnalyzer()}, "exactly one of model, analyzer"),
        ({"find": "Ada"}, "find must be a function"),
        ({"find": by_name, "entities": ["PERSON"]}, "entities are for"),
        ({"find": by_name, "method": "hash"}, "method must be one of placeholder, mask, remove"),
        ({"find": by_name, "model_settings": {}}, "model_settings are for a model"),
        ({"analyzer": FakeAnalyzer(), "threshold": 0}, "threshold"),
        ({"analyzer": FakeAnalyzer(), "entities": []}, "name at least one"),
        ({"analyzer": "presidio"}, r"pip install 'streampipe-rx\[presidio\]'"),
        ({"find": by_name, "strategy": "hide"}, "strategy must be one of"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_options_are_refused_when_it_is_made(options: dict[str, Any], problem: str) -> None:
    """By the class's name; a missing extra with the line that installs it."""
    with pytest.raises(ConfigurationError, match=f"EntityDetector.*{problem}"):
        EntityDetector(**options)


def test_it_keeps_the_laws() -> None:
    """Whatever the stream, and however it is cut."""

    def letters(text: str) -> list[tuple[int, int, str]]:
        return [(*match.span(), "A") for match in re.finditer("[ab]+", text)]

    check_processor(
        lambda: EntityDetector(find=letters),
        fails=(TripWire, ProcessorError),
        allowance=30,
        max_examples=max(1_000, 10 * settings().max_examples),
    )
