"""Reasoning between tags, told from the answer wherever the text is cut."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.errors import ConfigurationError
from streampipe.text._tags import TagSplitter
from tests.text.cuttings import cuttings, flat

NAMES = ("t", "tag")
PARTS = ["<t>", "</t>", "<tag>", "</tag>", "<", "</", "t", "ag>", " ", "\n", "x", " " * 70]
marked_up = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


def split(
    pieces: list[str], *, implicit_open: bool = False, trim: bool = False
) -> list[tuple[bool, str]]:
    """What comes out, neighbours of one kind joined."""
    tags = TagSplitter(*NAMES, implicit_open=implicit_open, trim=trim)
    out = [*flat(tags.feed(piece) for piece in pieces), *tags.finish()]
    assert all(text for _, text in out), "an empty piece"
    return merged(out)


def merged(out: list[tuple[bool, str]]) -> list[tuple[bool, str]]:
    """The same with neighbours of one kind joined."""
    groups = groupby(out, key=lambda pair: pair[0])
    return [(inside, "".join(text for _, text in group)) for inside, group in groups]


def parsed(text: str) -> list[tuple[bool, str]]:
    """The same, from the whole text: up to each opening tag, then up to its closing tag."""
    out: list[tuple[bool, str]] = []
    while text:
        starts = {text.find(f"<{name}>"): name for name in NAMES if f"<{name}>" in text}
        if not starts:
            out.append((False, text))
            break
        name = starts[min(starts)]
        before, _, text = text.partition(f"<{name}>")
        inside, _, text = text.partition(f"</{name}>")
        out += [(False, before), (True, inside)]
    return merged([pair for pair in out if pair[1]])


@given(cutting=cuttings(marked_up), implicit_open=st.booleans(), trim=st.booleans())
def test_cuts_do_not_show(
    cutting: tuple[str, list[str]], *, implicit_open: bool, trim: bool
) -> None:
    """What is inside, and what outside, is up to the text alone."""
    text, pieces = cutting
    out = split(pieces, implicit_open=implicit_open, trim=trim)
    assert out == split([text], implicit_open=implicit_open, trim=trim)


@given(cuttings(marked_up))
def test_the_text_is_split_at_its_tags(cutting: tuple[str, list[str]]) -> None:
    """From an opening tag to the closing one of its name, both taken away; the rest is outside."""
    text, pieces = cutting
    assert split(pieces) == parsed(text)


@given(st.text(st.sampled_from("x </t"), max_size=9), cuttings(marked_up))
def test_a_text_that_begins_inside(inside: str, cutting: tuple[str, list[str]]) -> None:
    """It is read as if its opening tag had come first."""
    pieces = [inside, "</t>", *cutting[1]]
    assert split(pieces, implicit_open=True) == split(["<t>", *pieces])


@given(cutting=cuttings(marked_up), trim=st.booleans())
def test_only_what_may_be_a_tag_is_held(cutting: tuple[str, list[str]], *, trim: bool) -> None:
    """The beginning of a tag; with `trim` up to 64 characters of white space, too."""
    tags, text = TagSplitter(*NAMES, trim=trim), ""
    for piece in cutting[1]:
        text += piece
        tags.feed(piece)
        held = text[len(text) - tags.held :]
        space, begun = held[: len(held) - len(held.lstrip())], held.lstrip()
        assert len(space) <= (64 if trim else 0)
        assert any(f"<{slash}{name}>".startswith(begun) for slash in ("", "/") for name in NAMES)
        assert not held.endswith(">")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<t>Hm.</t>Yes.", [(True, "Hm."), (False, "Yes.")]),
        ("Well, <t>hm</t> yes", [(False, "Well, "), (True, "hm"), (False, " yes")]),
        ("a<t></t>b", [(False, "ab")]),
        ("<t>for ever", [(True, "for ever")]),
        ("a</t>b", [(False, "a</t>b")]),
        ("<t>a<t>b</tag></t>c</t>", [(True, "a<t>b</tag>"), (False, "c</t>")]),
        ("1 < 2 <T> <t > <<t>x", [(False, "1 < 2 <T> <t > <"), (True, "x")]),
        ("<t>a</t><tag>b</tag>c", [(True, "ab"), (False, "c")]),
        ("<ta", [(False, "<ta")]),
        ("<t>a</t", [(True, "a</t")]),
    ],
)
def test_tags_are_what_they_look_like(text: str, expected: list[tuple[bool, str]]) -> None:
    """Exactly `<name>` and `</name>`; they do not nest; all else is text."""
    assert split(list(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hm.</t>Yes.", [(True, "Hm."), (False, "Yes.")]),
        ("<t>Hm.</t>Yes.", [(True, "Hm."), (False, "Yes.")]),
        ("<t>Hm.</tag>Ah</t>Yes.", [(True, "Hm.</tag>Ah"), (False, "Yes.")]),
        ("Hm</tag>a<t>b</t>c", [(True, "Hm"), (False, "a"), (True, "b"), (False, "c")]),
        ("all of it", [(True, "all of it")]),
    ],
)
def test_the_opening_tag_may_be_missing(text: str, expected: list[tuple[bool, str]]) -> None:
    """With `implicit_open` the text begins inside."""
    assert split(list(text), implicit_open=True) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" <t>\n Hm. \n</t>\n\nYes. ", [(True, "Hm."), (False, "Yes. ")]),
        ("a <t> </t> b", [(False, "ab")]),
        ("a\n<b> <t>x", [(False, "a\n<b>"), (True, "x")]),
        (f"a{' ' * 70}<t>x", [(False, f"a{' ' * 6}"), (True, "x")]),
        (f"<t>{' ' * 70}x", [(True, "x")]),
    ],
)
def test_white_space_goes_with_its_tag(text: str, expected: list[tuple[bool, str]]) -> None:
    """With `trim`, on either side of a tag and nowhere else."""
    assert split(list(text), trim=True) == expected


def test_where_the_text_is() -> None:
    """An unclosed tag can be told at the end."""
    tags = TagSplitter("think")
    tags.feed("<think>and")
    assert tags.inside
    tags.feed("</think>")
    assert not tags.inside


@pytest.mark.parametrize("names", [(), ("",), ("<think>",), ("a", "b c"), ("/think",)])
def test_a_name_that_fits_no_tag_is_refused(names: tuple[str, ...]) -> None:
    """The names come without their brackets."""
    with pytest.raises(ConfigurationError, match=r"TagSplitter: the tags' names are .*without <"):
        TagSplitter(*names)


def test_long_texts_take_linear_time() -> None:
    """A text full of beginnings of tags is read in one go."""
    tags = TagSplitter("think", trim=True)
    out = [*flat(tags.feed(piece) for piece in ["<thi", "    "] * 50_000), *tags.finish()]
    assert sum(len(text) for _, text in out) == 400_000
