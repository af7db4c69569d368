"""`batch` and `smooth`: text in other pieces, at other times, and nothing of it lost."""

from __future__ import annotations

import re
from itertools import accumulate, groupby, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe import operators as ops
from streampipe.chunks import (
    Chunk,
    DataChunk,
    ReasoningDelta,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
)
from streampipe.errors import ConfigurationError
from streampipe.operators._cut import By
from streampipe.operators._pace import batch, smooth
from streampipe.testing import chunkings, run_virtual
from tests.operators.sources import deltas, elements
from tests.operators.timed import Script, play

CALL = ToolCall("1", "look_up")
CHUNKS = st.lists(
    st.one_of(
        st.builds(TextDelta, st.sampled_from("ab"), st.text("xy z\n", max_size=6)),
        st.builds(ReasoningDelta, st.just("a"), st.text("xy ", max_size=3)),
        st.builds(
            TextDelta, st.just("a"), st.just("m"), st.sampled_from([{"p": {"n": 1}}, {"p": {}}])
        ),
        st.just(CALL),
        st.builds(TextStart, st.sampled_from("ab")),
        st.builds(TextEnd, st.sampled_from("ab")),
    ),
    max_size=25,
)
GAPS = st.lists(st.sampled_from([0.0, 0.4, 1.5]), min_size=25, max_size=25)


def piece(text: str, **options: Any) -> TextDelta:
    """A piece of text "a"."""
    return TextDelta("a", text, **options)


def texts(chunks: list[Any]) -> dict[Any, str]:
    """The text of every part."""
    found: dict[Any, str] = {}
    for chunk in chunks:
        if isinstance(chunk, TextDelta | ReasoningDelta):
            key = chunk.type, chunk.id
            found[key] = found.get(key, "") + chunk.text
    return {key: text for key, text in found.items() if text}


def others(chunks: list[Any]) -> list[tuple[Any, dict[Any, str]]]:
    """The chunks that are no text, each with the text of every part that stood before it."""
    return [
        (chunk, texts(chunks[:index]))
        for index, chunk in enumerate(chunks)
        if not isinstance(chunk, TextDelta | ReasoningDelta)
    ]


def metadata(chunks: list[Any]) -> list[Any]:
    """Provider metadata in order, runs of equal ones of one part counted once."""
    said = [
        (chunk.type, chunk.id, chunk.provider_metadata)
        for chunk in chunks
        if isinstance(chunk, TextDelta | ReasoningDelta) and chunk.provider_metadata
    ]
    return [key for key, _ in groupby(said)]


def scripted(chunks: list[Chunk], gaps: list[float]) -> Script:
    """The chunks, each so long after the one before."""
    times = [sum(gaps[: n + 1]) for n in range(len(chunks))]
    return Script(*zip(times, chunks, strict=True))


def test_batch_joins_so_many() -> None:
    """Every `size` pieces are one; the rest leaves at the end."""
    source = ops.of(*(piece(letter) for letter in "abcde")).pipe(batch(2))
    assert run_virtual(elements(source)) == [piece("ab"), piece("cd"), piece("e")]


def test_batch_lets_go_in_time_though_the_source_is_silent() -> None:
    """A piece is held for `max_wait` seconds at most, counted from the first that is held."""
    script = Script((0, piece("a")), (0.6, piece("b")), (1.5, piece("c")), until=9)
    assert play(script.pipe(batch(max_wait=1))) == ([(1, piece("ab")), (2.5, piece("c"))], None)


def test_batch_takes_whichever_limit_comes_first() -> None:
    """With both options a full batch leaves at once, and the clock starts anew."""
    script = Script((0, piece("a")), (0.2, piece("b")), (0.9, piece("c")), until=9)
    assert play(script.pipe(batch(2, max_wait=1))) == (
        [(0.2, piece("ab")), (1.9, piece("c"))],
        None,
    )


@pytest.mark.parametrize("options", [{"size": 10}, {"size": 10, "max_wait": 5}])
def test_batch_holds_nothing_back_but_text(options: dict[str, Any]) -> None:
    """A chunk of another kind sends off the text before it, and passes at once."""
    script = Script((0, piece("a")), (1, piece("b")), (2, CALL), (3, piece("c")), until=4)
    items, end = play(script.pipe(batch(**options)))
    assert items == [(2, piece("ab")), (2, CALL), (4, piece("c"))]
    assert end is None


def test_batch_joins_only_what_is_said_to_be_alike() -> None:
    """Another id, kind, metadata or origin begins another batch; metadata stands on it once."""
    first, second = {"p": {"item": 1}}, {"p": {"item": 2}}
    chunks = [
        piece("a", provider_metadata=first),
        piece("b", provider_metadata=first),
        piece("c", provider_metadata=second),
        piece("d"),
        TextDelta("b", "e"),
        ReasoningDelta("b", "f"),
        ReasoningDelta("b", "g", run_id="2"),
    ]
    joined = run_virtual(elements(ops.of(*chunks).pipe(batch(10))))
    assert joined == [piece("ab", provider_metadata=first), *chunks[2:]]


def test_batch_leaves_a_single_piece_as_it_is() -> None:
    """What was not joined is the same object, and what was joined changes none that came."""
    lone, left, right = piece("a"), piece("b"), piece("c")
    got = run_virtual(elements(ops.of(lone, CALL, left, right).pipe(batch(10))))
    assert got[0] is lone
    assert (left.text, right.text) == ("b", "c")


@pytest.mark.parametrize("options", [{"size": 10}, {"max_wait": 5}])
def test_batch_drops_what_it_holds_when_the_source_fails(options: dict[str, Any]) -> None:
    """A step that failed is void, so what is held of it does not leave."""
    failure = ValueError("broken")
    script = Script((0, CALL), (0, piece("a")), until=1, error=failure)
    assert play(script.pipe(batch(**options))) == ([(0, CALL)], failure)


@given(chunks=CHUNKS, gaps=GAPS, size=st.none() | st.integers(1, 4), waits=st.booleans())
def test_batch_changes_nothing_but_the_cutting(
    chunks: list[Chunk], gaps: list[float], size: int | None, *, waits: bool
) -> None:
    """Every text is the same, at every other chunk and in all; others keep order and metadata."""
    wait = 1.0 if waits or size is None else None
    items, end = play(scripted(chunks, gaps).pipe(batch(size, max_wait=wait)))
    got = [chunk for _, chunk in items]
    assert end is None
    assert texts(got) == texts(chunks)
    assert others(got) == others(chunks)
    assert metadata(got) == metadata(chunks)
    assert len(got) <= len(chunks)


def test_smooth_cuts_words_and_paces_them() -> None:
    """A lump of text leaves word by word, `delay` apart; the last word waits for its end."""
    script = Script(
        (0, TextStart("a")), (1, piece("one two th")), (1, piece("ree")), (1, TextEnd("a"))
    )
    assert play(script.pipe(smooth(0.5))) == (
        [
            (0, TextStart("a")),
            (1, piece("one ")),
            (1.5, piece("two ")),
            (2.0, piece("three")),
            (2.0, TextEnd("a")),
        ],
        None,
    )


def test_smooth_does_not_slow_a_slow_source() -> None:
    """Words that come further apart than `delay` leave when they are whole."""
    script = Script((0, piece("one ")), (2, piece("two ")), (4, piece("three ")), until=5)
    items, _ = play(script.pipe(smooth(0.5)))
    assert items == [(2, piece("one ")), (4, piece("two ")), (5, piece("three "))]


def test_smooth_lets_other_chunks_wait_behind_their_text() -> None:
    """A tool call does not overtake the words before it, and is not paced itself."""
    script = Script((0, piece("one two")), (0, CALL), (0, DataChunk("data-x")), (1, TextEnd("a")))
    items, _ = play(script.pipe(smooth(2)))
    assert [chunk for _, chunk in items] == [
        piece("one "),
        piece("two"),
        CALL,
        DataChunk("data-x"),
        TextEnd("a"),
    ]
    assert [when for when, _ in items] == [0, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("by", "cut"),
    [
        ("grapheme", ["a", "b", ".", " ", "C", "\n", "d"]),
        ("line", ["ab. C\n", "d"]),
        ("sentence", ["ab. ", "C\nd"]),
        (re.compile(r"[.\n]\s*"), ["ab. ", "C\n", "d"]),
    ],
)
def test_smooth_cuts_as_it_is_told(by: By, cut: list[str]) -> None:
    """`by` names the pieces."""
    got = run_virtual(elements(ops.of(piece("ab. C\nd"), TextEnd("a")).pipe(smooth(1, by))))
    assert [chunk.text for chunk in got[:-1]] == cut


@given(
    cut=st.text("ab,; \n", max_size=40).flatmap(chunkings),
    by=st.sampled_from([re.compile(r"\n\n+"), re.compile(r"[,;]\s*"), re.compile(r"\bb+\b")]),
)
def test_smooth_cuts_behind_what_a_pattern_matches(cut: list[str], by: re.Pattern[str]) -> None:
    """A piece ends where a match in the whole text does, however the text was cut."""
    text = "".join(cut)
    out = run_virtual(elements(ops.of(*deltas(*cut), TextEnd("0")).pipe(smooth(0.25, by))))
    lengths = [len(chunk.text) for chunk in out if isinstance(chunk, TextDelta) and chunk.text]
    ends = {found.end() for found in by.finditer(text)}
    assert list(accumulate(lengths)) == sorted({*ends, len(text)} - {0})


@given(
    chunks=CHUNKS,
    gaps=GAPS,
    by=st.sampled_from(["word", "grapheme", "line", "sentence", re.compile(r"y\s*")]),
)
def test_smooth_loses_nothing(chunks: list[Chunk], gaps: list[float], by: By) -> None:
    """Texts, the order of other chunks, and `delay` between pieces, for any source."""
    items, end = play(scripted(chunks, gaps).pipe(smooth(0.25, by)))
    got = [chunk for _, chunk in items]
    assert end is None
    assert texts(got) == texts(chunks)
    assert [chunk for chunk, _ in others(got)] == [chunk for chunk, _ in others(chunks)]
    times = [when for when, chunk in items if isinstance(chunk, TextDelta) and chunk.text]
    assert all(b - a >= 0.249 for a, b in pairwise(times))


def test_smooth_closes_its_source_when_its_reader_leaves() -> None:
    """Leaving while a word waits its turn ends the source and leaves no task behind."""
    script = Script((0, piece("one two three ")), until=50)
    items, end = play(script.pipe(smooth(1), ops.take_while(lambda _: False, inclusive=True)))
    assert (items, end, script.closed) == ([(0, piece("one "))], None, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "batch: give size, max_wait or both"),
        ({"size": 0}, "batch: size must be a whole number of 1 or more, not 0"),
        ({"size": "3"}, "batch: size must be a whole number of 1 or more, not '3'"),
        ({"size": True}, "batch: size must be a whole number of 1 or more, not True"),
        ({"max_wait": 0}, "batch: max_wait must be above 0 s and finite, not 0"),
        ({"max_wait": "1"}, "batch: max_wait must be a number of seconds, not str"),
    ],
)
def test_bad_options_of_batch_are_refused(options: dict[str, Any], message: str) -> None:
    """Each is refused when the operator is configured, by name."""
    with pytest.raises(ConfigurationError, match=f"^{message}"):
        batch(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delay": 0}, "smooth: delay must be above 0 s"),
        ({"delay": None}, "smooth: delay must be a number of seconds"),
        ({"delay": 1, "by": "syllable"}, "smooth: .*'word', .* or a compiled pattern"),
        (
            {"delay": 1, "by": re.compile("y*")},
            "smooth: .* make it need .*; or give .*'word'",
        ),
        ({"delay": 1, "by": re.compile(b"y")}, "smooth: .* the pattern is b'y'; give a str"),
    ],
)
def test_bad_options_of_smooth_are_refused(options: dict[str, Any], message: str) -> None:
    """Each is refused when the operator is configured, by name."""
    with pytest.raises(ConfigurationError, match=f"^{message}"):
        smooth(**options)
