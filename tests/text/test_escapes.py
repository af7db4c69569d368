"""JSON text as it reads: what stands in strings is seen, and what comes out says the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.testing import chunkings
from streampipe.text._escapes import Escaped, Unescaped, readable

TEXTS = st.text(max_size=12) | st.sampled_from(
    ["a@b.c", "\n", '"\n', '\\"\n', "\\", '"', "\\n", "é", "😀", "\x00"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
DOCUMENTS = st.lists(VALUES, max_size=3) | st.dictionaries(TEXTS, VALUES, max_size=3)
WRITTEN = st.builds(
    lambda value, ascii_, indent: json.dumps(value, ensure_ascii=ascii_, indent=indent),
    DOCUMENTS,
    st.booleans(),
    st.sampled_from([None, 2]),
)
FENCES = st.sampled_from(["{}", "\n {}", "```json\n{}\n```", "```\n{}```"])


def through(machine: Any, pieces: list[str]) -> str:
    """What leaves a machine in all; what it holds is what has not left."""
    out: str = ""
    for at, piece in enumerate(pieces, 1):
        out += machine.feed(piece)
        if machine.held == 0 and isinstance(machine, Unescaped):
            assert out == readable("".join(pieces[:at]))
    rest: str = machine.finish()
    return out + rest


@given(WRITTEN.flatmap(lambda text: st.tuples(st.just(text), chunkings(text))), FENCES)
def test_it_is_the_same_json_wherever_it_was_cut(cut: tuple[str, list[str]], fence: str) -> None:
    """And in between it does not depend on the cutting either."""
    text, pieces = cut
    before, _, behind = fence.partition("{}")
    seen = through(Unescaped(), [before, *pieces, behind])
    assert seen == readable(f"{before}{text}{behind}")
    again = through(Escaped(), [before, *pieces_of(seen[len(before) :]), ""])
    assert json.loads(again.removeprefix(before).removesuffix(behind)) == json.loads(text)


def pieces_of(text: str) -> list[str]:
    """A text in pieces of three characters."""
    return [text[at : at + 3] for at in range(0, len(text), 3)]


@given(st.text(st.characters(exclude_characters='"\\', exclude_categories=["Cs"]), min_size=1))
def test_what_a_string_says_is_seen(text: str) -> None:
    """All but the quote and the backslash, whoever wrote it."""
    for ascii_ in (True, False):
        assert f'"{text}"' in readable(json.dumps({"a": [text]}, ensure_ascii=ascii_))


@pytest.mark.parametrize(
    "text",
    [
        'He said "no\\nthing" {"a": "\\u0040"}',
        "plain \\n text",
        "\\u0040",
        "``not json \\u0040``",
        '"\\u0040"',
    ],
)
def test_what_is_no_json_document_stays(text: str) -> None:
    """Words of a model that are no answer in JSON are nobody's to change."""
    for pieces in ([text], list(text)):
        assert through(Unescaped(), pieces) == text
        assert through(Escaped(), pieces) == text


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ('{"a":"\\ud83d\\ude00"}', '{"a":"😀"}'),
        ('{"a":"\\ud83d\\n"}', '{"a":"\\ud83d\n"}'),
        ('{"a":"\\ude00\\/"}', '{"a":"\\ude00/"}'),
        ('{"a":"\\u0022\\u005c"}', '{"a":"\\"\\\\"}'),
        ('{"a":"\\\\n"}', '{"a":"\\\\n"}'),
        ('{"a":"\\uZZ"}', '{"a":"\\uZZ"}'),
        ('{"a":"\\u00', '{"a":"\\u00'),
    ],
)
def test_odd_escapes(text: str, seen: str) -> None:
    """Halves of characters, what a string needs, and what is no escape, stay as they are."""
    for pieces in ([text], list(text)):
        assert through(Unescaped(), pieces) == seen


def test_a_long_text_costs_in_proportion() -> None:
    """Each piece is looked at once."""
    machine, count = Unescaped(), 20_000
    out = [machine.feed(piece) for piece in ['["', *["\\u0040"] * count, '"]']]
    assert "".join(out) == '["' + "@" * count + '"]'
