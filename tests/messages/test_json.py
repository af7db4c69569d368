"""Values as JSON text: whatever a tool returned, what comes out is JSON that can be sent."""

from __future__ import annotations

import json
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.messages._json import json_text, shown_text

TEXTS = st.text(st.characters(exclude_categories=()))  # halves of characters too
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | TEXTS
    | st.binary()
    | st.complex_numbers()
)
KEYS = TEXTS | st.integers() | st.tuples(st.integers(), TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner) | st.tuples(inner) | st.dictionaries(KEYS, inner) | st.frozensets(TEXTS)
    ),
    max_leaves=12,
)


def refused(name: str) -> NoReturn:
    """What Python reads and JSON has not."""
    raise AssertionError(f"{name} is no JSON")


@given(VALUES)
def test_any_value_becomes_json_that_can_be_sent(value: Any) -> None:
    """Strictly read, and with a form in UTF-8."""
    text = json_text(value)
    text.encode()
    json.loads(text, parse_constant=refused)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": ["ä", None, 1.5, True]}, '{"a":["ä",null,1.5,true]}'),
        (2**70, "1180591620717411303424"),
        ({"a": "\ud83d\ude00", "b": "\ud83d"}, '{"a":"\U0001f600","b":"\ufffd"}'),
        ([float("nan"), float("inf")], '["NaN","Infinity"]'),
        ({(1, 2): b"x"}, '{"1,2":"eA=="}'),
    ],
    ids=["values", "large", "halves", "no-number", "key"],
)
def test_what_json_has_no_form_for_is_written_as_its_string(value: Any, text: str) -> None:
    """And what it has one for as it is."""
    assert json_text(value) == text
    assert shown_text(value) == text


def test_a_string_is_shown_as_it_is() -> None:
    """Without the quotes of JSON."""
    assert shown_text('say "hi"') == 'say "hi"'
