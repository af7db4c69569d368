"""Stop sequences: found wherever the text is cut, and nothing else is held back for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.errors import ConfigurationError
from streampipe.text._stop import StopAt
from tests.text.cuttings import cuttings

ALPHABET = st.sampled_from("ab.*")
sequences = st.lists(st.text(ALPHABET, min_size=1, max_size=5), min_size=1, max_size=4)
small = cuttings(st.text(ALPHABET, max_size=30))


def whole(text: str, stops: list[str], *, include: bool) -> str:
    """What leaves, found by trying every end."""
    for end in range(len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            return text[: end if include else end - max(map(len, found))]
    return text


@given(cutting=small, stops=sequences, include=st.booleans())
def test_cuts_do_not_show(
    cutting: tuple[str, list[str]], stops: list[str], *, include: bool
) -> None:
    """What leaves is the text before the sequence that ends first, or the text up to its end."""
    text, pieces = cutting
    stop = StopAt(*stops, include=include)
    out = "".join([*map(stop.feed, pieces), stop.finish()])
    assert out == whole(text, stops, include=include)
    assert stop.done is any(sequence in text for sequence in stops)


@given(small, sequences)
def test_only_what_may_become_a_stop_is_held(
    cutting: tuple[str, list[str]], stops: list[str]
) -> None:
    """The longest end of the text that begins a sequence without being one."""
    beginnings = tuple(stop[:size] for stop in stops for size in range(1, len(stop)))
    stop, text = StopAt(*stops), ""
    for piece in cutting[1]:
        text += piece
        stop.feed(piece)
        held = [len(beginning) for beginning in beginnings if text.endswith(beginning)]
        assert stop.held == (0 if stop.done else max(held, default=0))


@given(small, sequences)
def test_with_the_sequence_nothing_is_held(
    cutting: tuple[str, list[str]], stops: list[str]
) -> None:
    """If the stop sequence leaves too, every piece up to it leaves at once."""
    stop = StopAt(*stops, include=True)
    for piece in cutting[1]:
        out = stop.feed(piece)
        assert stop.held == 0
        assert stop.done or out == piece


@pytest.mark.parametrize(
    ("stops", "expected"),
    [(["bc", "abcd"], "xa"), (["bc", "abc"], "x"), (["abcd", "cde"], "x"), (["e", "abcd"], "x")],
)
def test_the_first_stop_is_the_one_that_ends_first(stops: list[str], expected: str) -> None:
    """Of several that end together the longest."""
    assert StopAt(*stops).feed("xabcde") == expected


def test_a_piece_without_a_beginning_is_passed_as_it_is() -> None:
    """The same string, not a copy."""
    piece = "plain prose"
    assert StopAt("###").feed(piece) is piece


def test_after_the_stop_all_is_dropped() -> None:
    """Later pieces and the end give nothing."""
    stop = StopAt("\n\nUser:")
    assert stop.feed("Yes.\n\nUser: and") == "Yes."
    assert (stop.feed("more"), stop.finish(), stop.held) == ("", "", 0)


def test_long_texts_take_linear_time() -> None:
    """A text that nearly stops at every character, with a long sequence, is read in one go."""
    stop = StopAt("a" * 100 + "b")
    out = "".join([*(stop.feed("aaaa") for _ in range(50_000)), stop.finish()])
    assert out == "a" * 200_000


@pytest.mark.parametrize("stops", [(), ("",), ("a", "")])
def test_no_sequence_is_refused(stops: tuple[str, ...]) -> None:
    """An empty sequence would stop every text before it begins."""
    with pytest.raises(ConfigurationError, match=r"StopAt: the stop sequences are .* give one"):
        StopAt(*stops)
