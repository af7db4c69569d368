"""Texts as a model sends them: in pieces cut anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, pairwise
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

MARKUP = '<>/tag{}[]"\\:,0.1e \n'
JOINED = "a1 \u0301\u200d\ufe0f👩👧🏽🇩🇪क्षि\u0600\r\n漢かส."
PROSE = "Mr Dr U.S. 3.14 Hello, wörld! ”“ yes? No… 漢字。かな！ \r\n a.m. (x) 12. \n\n"  # noqa: RUF001 - CJK marks

texts = st.one_of(
    st.text(),
    *(
        st.lists(st.sampled_from(parts) | st.sampled_from(sorted(set("".join(parts))))).map("".join)
        for parts in (list(MARKUP), list(JOINED), [f"{word} " for word in PROSE.split(" ")])
    ),
)
"""Any text; those that hold what some machine waits for are likely."""


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    """A cutting of `text`: pieces that join to it, empty ones among them."""
    places = st.integers(0, len(text))
    cuts = draw(st.lists(places) | st.just(list(range(len(text) + 1))))
    return [text[begin:end] for begin, end in pairwise([0, *sorted(cuts), len(text)])]


def cuttings(of: st.SearchStrategy[str] = texts) -> st.SearchStrategy[tuple[str, list[str]]]:
    """A text and one of its cuttings."""
    return of.flatmap(lambda text: st.tuples(st.just(text), cut(text)))


def flat(outputs: Iterable[list[T]]) -> list[T]:
    """All that several calls gave."""
    return list(chain.from_iterable(outputs))
