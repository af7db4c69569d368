"""Strategies of regular expressions that rules accept, of texts they may match, and of cuttings."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from streampipe.errors import ConfigurationError
from streampipe.text import Rule

__all__ = ["patterns", "pieces", "rules", "texts"]

ALPHABET = "abAé \n1"
texts = st.text(ALPHABET, max_size=24)

_chars = st.sampled_from(
    ["a", "b", "A", "é", "É", " ", "\\n", "1", ".", "[ab]", "[^a]", "[a-b1]", "[^\\s1]", "\\w",
     "\\W", "\\d", "\\s", "\\S", "[\\wé]", "(?i:a)", "(?a:\\w)", "(?s:.)"]
)  # fmt: skip
_places = st.sampled_from(
    ["\\b", "\\B", "\\A", "\\Z", "^", "(?m:^)", "(?m:$)", "(?=a)", "(?!b)", "(?<=a)", "(?<![\\w])",
     "(?=[\\s1])", "(?!\\s)", "(?<=\\W)", "(?=\\s|\\Z)", "(?!a|\\Z)", "(?a:\\b)"]
)  # fmt: skip
_times = st.sampled_from(
    ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,3}", "{2,}", "{1,3}?", "{2,}?"]
)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=2, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda options: f"(?:{'|'.join(options)})"),
        st.tuples(inner, _times).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        inner.map(lambda body: f"({body})"),
    )


patterns = st.recursive(st.one_of(_chars, _chars, _places), _larger, max_leaves=9)
_flags = st.sampled_from([0, re.IGNORECASE, re.ASCII, re.MULTILINE, re.DOTALL | re.MULTILINE])


def _shortened(text: str) -> int:
    """Lets go of the last character of long matches, and of all of some."""
    return len(text) - (len(text) > 2) if "1" not in text[1:] else 0


@st.composite
def _rule(draw: st.DrawFn, number: int) -> Rule | None:
    pattern, flags = draw(patterns), draw(_flags)
    check = draw(st.sampled_from([None, None, _shortened]))
    try:
        return Rule(f"rule{number}", pattern, f"<{number}>", check, flags)
    except ConfigurationError:  # it matches the empty string, or repeats what does
        return None


def rules(count: int) -> st.SearchStrategy[list[Rule]]:
    """One to `count` rules; their replacements are all different."""
    return (
        st.lists(st.integers(0, 9), min_size=1, max_size=count, unique=True)
        .flatmap(lambda numbers: st.tuples(*[_rule(number) for number in numbers]))
        .map(lambda found: [rule for rule in found if rule is not None])
        .filter(bool)
    )


@st.composite
def pieces(draw: st.DrawFn, text: str) -> list[str]:
    """The text cut somewhere, into pieces of which some may be empty."""
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
