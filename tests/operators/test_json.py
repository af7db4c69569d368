"""Objects out of the text of an answer, while it streams."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, field_validator

from streampipe import ObjectChunk, ObjectResult, ReasoningEnd, StepFinish, TextDelta, TextEnd
from streampipe import operators as ops
from streampipe.errors import ConfigurationError, OperatorError
from tests.operators.sources import pieces, through

cuts = st.lists(st.integers(0, 9), max_size=30)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
objects = st.dictionaries(st.text(max_size=3), values, max_size=4)


class Dish(BaseModel):
    """What is asked for."""

    name: str
    minutes: int


@given(objects, cuts)
def test_the_last_object_is_the_whole_one(value: dict[str, Any], sizes: list[int]) -> None:
    """For any cutting, with a fence around it; the text passes as it is."""
    chunks = pieces(f"```json\n{json.dumps(value)}\n```", sizes)
    out = through(ops.json_objects(), chunks).items
    assert [c for c in out if not isinstance(c, ObjectChunk | ObjectResult)] == chunks
    assert [c.object for c in out if isinstance(c, ObjectResult)] == [value]
    assert out[-1] == TextEnd("0")


def test_objects_grow() -> None:
    """Each behind the text that it came with, no two in a row the same."""
    chunks = pieces('{"name": "soup", "minutes": 20}', [13, 3, 14])
    out = through(ops.json_objects(Dish), chunks).items
    grown = [c.object for c in out if isinstance(c, ObjectChunk)]
    assert grown == [{"name": "sou"}, {"name": "soup"}, {"name": "soup", "minutes": 20}]
    assert out[-2] == ObjectResult({"name": "soup", "minutes": 20})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"name": "secret", "minutes": "secret"}', "does not fit: minutes: int_parsing"),
        ('{"name": "secret"}', "minutes: missing"),
        ('{"name": "secret', "the text is no JSON"),
        ("secret", "the text is no JSON"),
    ],
)
def test_what_does_not_fit_is_named_without_the_text(text: str, message: str) -> None:
    """The place and what is wrong there."""
    witness = through(ops.json_objects(Dish), pieces(text, [5]))
    (error,) = witness.ends
    assert isinstance(error, OperatorError)
    assert message in str(error)
    assert "secret" not in str(error)


class Strict(BaseModel):
    """Nothing more, nothing converted, and a validator that quotes."""

    model_config = ConfigDict(extra="forbid", strict=True)
    when: date
    tags: dict[str, int] = {}
    word: str = ""

    @field_validator("word")
    @classmethod
    def short(cls, word: str) -> str:
        """Quote what is too long."""
        if len(word) > 3:
            raise ValueError(word)
        return word


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"word": "secret"}, "does not fit: word: value_error"),
        ({"secret": 1}, "does not fit: …: extra_forbidden"),
        ({"tags": {"secret": "x"}}, "does not fit: tags.…: int_type"),
    ],
)
def test_no_word_of_the_model_is_in_the_error(more: dict[str, Any], message: str) -> None:
    """Neither in a validator's message, nor as a key that no field has."""
    text = json.dumps({"when": "2026-01-02"} | more)
    (error,) = through(ops.json_objects(Strict), pieces(text, [5])).ends
    assert message in str(error)
    assert "secret" not in str(error)


def test_an_object_is_held_to_the_schema_as_json() -> None:
    """In a strict model too, a date is a string there."""
    out = through(ops.json_objects(Strict), pieces('{"when": "2026-01-02"}', []))
    assert out.ends == ["completed"]
    assert ObjectResult({"when": "2026-01-02"}) in out.items


def test_objects_are_of_the_run_of_their_text() -> None:
    """They carry its `run_id` and `from_`."""
    text = TextDelta("0", '{"a": 1}', run_id="r", from_="WORKFLOW")
    out = through(ops.json_objects(), [text, TextEnd("0", run_id="r", from_="WORKFLOW")]).items
    assert [(c.run_id, c.from_) for c in out] == [("r", "WORKFLOW")] * 4


def test_a_type_without_a_schema_is_refused() -> None:
    """When it is built."""
    with pytest.raises(ConfigurationError, match=r"json_objects: .* is no schema"):
        ops.json_objects(type("Strange", (), {}))


@given(st.lists(objects, max_size=4), cuts)
def test_every_line_is_an_object(lines: list[dict[str, Any]], sizes: list[int]) -> None:
    """With or without a line end behind the last."""
    for end in ("", "\n", "\n\n"):
        text = "\n".join(json.dumps(line) for line in lines) + end
        out = through(ops.json_lines(), pieces(text, sizes)).items
        assert [c.object for c in out if isinstance(c, ObjectChunk)] == lines


def test_a_bad_line_is_named() -> None:
    """By its number; those before it have left."""
    witness = through(ops.json_lines(), pieces('{"a": 1}\n{"secret\n{}', [9]))
    assert [c.object for c in witness.items if isinstance(c, ObjectChunk)] == [{"a": 1}]
    assert "line 2 is no JSON" in str(witness.ends[0])
    assert "secret" not in str(witness.ends[0])


@pytest.mark.parametrize("size", [1, 3, 99])
def test_lines_before_a_bad_one_are_not_lost(size: int) -> None:
    """However the text was cut, with the text that they were made of."""
    text = "[1]\n{}\nno\n[2]\n"
    pieces = [TextDelta("0", text[at : at + size]) for at in range(0, len(text), size)]
    witness = through(ops.json_lines(), pieces)
    assert [c.object for c in witness.items if isinstance(c, ObjectChunk)] == [[1], {}]
    said = "".join(c.text for c in witness.items if isinstance(c, TextDelta))
    assert said.startswith("[1]\n{}\nno\n")
    assert "line 3" in str(witness.ends[0])


def test_a_line_without_end_fails() -> None:
    """It is not held for ever."""
    witness = through(ops.json_lines(max_hold=20), pieces("[" * 50, [5] * 8))
    assert "longer than 20 characters" in str(witness.ends[0])
    with pytest.raises(ConfigurationError, match="max_hold must be a whole number of 1 or more"):
        ops.json_lines(max_hold=0)


@pytest.mark.parametrize("operator", [ops.json_objects(), ops.json_lines()])
def test_an_answer_that_is_void_may_be_no_json(operator: Any) -> None:
    """Its text ends before the void is told, as that of a run does; without the void it fails."""
    draft = [TextDelta("0", '{"a": '), TextEnd("0"), ReasoningEnd("r")]
    answer = [TextDelta("0", "[1]\n"), TextEnd("0")]
    witness = through(operator, [*draft, StepFinish("retry"), *answer])
    assert witness.ends == ["completed"]
    objects = [c.object for c in witness.items if isinstance(c, ObjectChunk | ObjectResult)]
    assert objects[-1] == [1]
    for rest in ([], [StepFinish("stop")], answer):
        witness = through(operator, [*draft, *rest])
        assert (witness.items[-1], type(witness.ends[0])) == (draft[-1], OperatorError)
