"""What is read out of docstrings, in Google and reST style."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.tools._docstring import describe

BODY = "Look a city up.\n\nIt knows: most of them."
ABOUT = {"city": "its name, in English.", "limit": "at most so many."}

GOOGLE = f"""{BODY}

Args:
    city: its name,
        in English.
    limit (int | None, optional): at most so many.

Returns:
    The cities: a list.

Raises:
    ValueError: no city.
"""
NARROW = f"""{BODY}

Arguments:
  city: its name, in
    English.
  limit: at most
    so many.
Note:
  ignored: this is no parameter.
"""
REST = f"""{BODY}

:param city: its name,
    in English.
:param int limit: at most so many.
:type city: str
:returns: the cities
:raises ValueError: no city
"""
KEYWORDS = f"""{BODY}

Args:
    city:
        its name, in English.

Keyword Args:
    limit: at most so many.
"""


@pytest.mark.parametrize(
    "text", [GOOGLE, NARROW, REST, KEYWORDS], ids=["google", "narrow", "reST", "keywords"]
)
def test_both_styles_are_read(text: str) -> None:
    """The description is what stands outside of sections; a parameter's lines are joined."""
    assert describe(text) == (BODY, ABOUT)


def test_a_section_ends_where_the_indent_does() -> None:
    """Text after a section is part of the description again."""
    text = "Do it.\n\nArgs:\n    a: first.\n\nMore: on it."
    assert describe(text) == ("Do it.\n\nMore: on it.", {"a": "first."})


def test_stars_of_a_parameter_are_no_part_of_its_name() -> None:
    """`*names` documents `names`."""
    assert describe("Do.\n\nArgs:\n    *names: all of them.")[1] == {"names": "all of them."}


def test_colons_in_prose_are_no_fields() -> None:
    """A line that only looks like a field or a heading is text."""
    text = ":wave: Say hello.\n\nFormat: one of these.\n    indented: an example"
    assert describe(text) == (text, {})


@pytest.mark.parametrize(
    "text",
    ["", "   ", "\n\n", "Args:", "Args:\n", "Args:\n    prose only", ":param: x", ":param x y"],
)
def test_broken_docstrings_are_read_as_far_as_they_go(text: str) -> None:
    """No docstring is an error; nothing is said of any parameter here."""
    assert describe(text)[1] == {}


@given(st.text(alphabet=st.sampled_from("ab :*\n\t()Args"), max_size=60))
def test_any_text_is_read(text: str) -> None:
    """Whatever it is: no failure, and parameters have names."""
    _, parameters = describe(text)
    assert all(name.isidentifier() or name.isdecimal() for name in parameters)


WORDS = st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=1, max_size=6)
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True)


@given(st.dictionaries(NAMES, WORDS, min_size=1, max_size=4), st.sampled_from([2, 4, 8]), WORDS)
def test_google_sections_are_read_back(
    about: dict[str, list[str]], indent: int, summary: list[str]
) -> None:
    """Entries at any indent, a word a line, come back joined."""
    deep = "\n" + " " * (2 * indent)
    entries = "".join(
        f"\n{' ' * indent}{name}: {deep.join(words)}" for name, words in about.items()
    )
    text = f"{' '.join(summary)}.\n\nArgs:{entries}\n"
    assert describe(text) == (
        f"{' '.join(summary)}.",
        {name: " ".join(words) for name, words in about.items()},
    )
