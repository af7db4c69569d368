"""How tokens are counted: the estimate, tokenizers, and messages of a prompt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.messages import (
    FilePart,
    PromptMessage,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from streampipe.messages._json import shown_text
from streampipe.processors._tokens import (
    checked_count_of,
    estimated_tokens,
    message_tokens,
)


@given(st.text(), st.text())
def test_the_estimate_is_of_the_parts(first: str, second: str) -> None:
    """A text has no more tokens than its parts, and at most a character's difference to them."""
    whole, parts = (
        estimated_tokens(first + second),
        estimated_tokens(first) + estimated_tokens(second),
    )
    assert parts - len(first + second) <= whole <= parts + 1


@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox jumps over the lazy dog, and then it sleeps until noon.",
        'def mean(values):\n    """The mean."""\n    return sum(values) / len(values)\n',
        '{"order": 1234567, "state": "shipped", "items": [{"sku": "A-1", "count": 2}]}',
        "Der Vertrag verlängert sich stillschweigend um ein weiteres Jahr.",
    ],
)
def test_the_estimate_is_near_a_tokenizer(text: str) -> None:
    """Within half of what OpenAI's own says, for prose, code, JSON and another language."""
    exact = checked_count_of("Test", "o200k_base")(text)
    assert 1 / 2 <= estimated_tokens(text) / exact <= 3 / 2


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("gpt-4o-mini", "o200k_base"),
        ("openai/gpt-5.1", "o200k_base"),
        ("gpt-4.1", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
    ],
)
def test_a_model_has_its_encoding(name: str, encoding: str) -> None:
    """Families by their beginning, so that models to come are known."""
    assert checked_count_of("Test", name) is checked_count_of("Test", encoding)


def test_every_part_of_a_message_counts() -> None:
    """Text, reasoning, calls with arguments, results as JSON, and files as a thousand."""
    message = PromptMessage(
        "assistant",
        [
            TextPart("12"),
            ReasoningPart("345"),
            ToolCallPart("id", "f", {"a": 1}),
            ToolResultPart("id", "f", [1, 2]),
            FilePart("aGk=", "image/png"),
        ],
    )
    assert message_tokens(message, len) == 4 + 2 + 3 + (1 + 7) + 5 + 1_000


def test_json_is_compact_and_takes_anything() -> None:
    """As it is sent; what is no JSON by its name."""
    assert shown_text({"a": ["ä", None]}) == '{"a":["ä",null]}'
    assert shown_text("as it is") == "as it is"
    assert shown_text({1}) == "[1]"
