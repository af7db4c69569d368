"""Operators that cut a text elsewhere, end it, or take something out of it."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reactivex.subject import Subject

from streampipe import (
    Agent,
    Chunk,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
)
from streampipe import operators as ops
from streampipe.errors import ConfigurationError, OperatorError
from streampipe.operators._cut import By
from streampipe.testing import ScriptedModel, chunkings
from tests.operators.sources import Counting, deltas, elements, pieces, reading, through, watched

cuts = st.lists(st.integers(0, 9), max_size=40)
SEPARATORS = [
    re.compile(r"\n\n+"),
    re.compile(r"[,;]\s*"),
    re.compile(r"\bend\b|(?<=e)n", re.IGNORECASE),
    re.compile(r"^#+ ?", re.MULTILINE),
]
CUT_TEXTS = (
    st.lists(st.sampled_from(["\n", ", ", "; \n", "end", "END ", "## ", "ab", "n", "e\u0301"]))
    .map("".join)
    .flatmap(chunkings)
)
PROSE = "Dr. Who said: no? No! 你好。 Then 👩‍👩‍👧 left.\r\nThe end"


def digit(number: int) -> Chunk:
    """A number as a piece of text."""
    return TextDelta("0", f"{number} ")


def texts(items: list[Any], cls: type[TextDelta | ReasoningDelta] = TextDelta) -> list[str]:
    """The texts of deltas that are not empty."""
    return [item.text for item in items if isinstance(item, cls) and item.text]


# --- rechunk -------------------------------------------------------------------------------


@given(cuts, st.sampled_from(["grapheme", "word", "line", "sentence", *SEPARATORS]))
def test_rechunk_gives_the_same_pieces_for_any_cutting(sizes: list[int], by: By) -> None:
    """They join to the text; its part has its start and its end."""
    out = through(ops.rechunk(by), pieces(PROSE, sizes)).items
    assert texts(out) == texts(through(ops.rechunk(by), pieces(PROSE, [])).items)
    assert "".join(texts(out)) == PROSE
    assert (out[0], out[-1]) == (TextStart("0"), TextEnd("0"))


def test_rechunk_cuts_where_people_would() -> None:
    """A family stays together, a doctor's title ends no sentence."""
    assert "👩‍👩‍👧" in texts(through(ops.rechunk("grapheme"), pieces(PROSE, [])).items)
    words = texts(through(ops.rechunk("word"), pieces(PROSE, [])).items)
    assert words[:3] == ["Dr. ", "Who ", "said: "]
    assert texts(through(ops.rechunk("sentence"), pieces(PROSE, [])).items)[0] == (
        "Dr. Who said: no? "
    )


def test_rechunk_lets_go_of_what_gets_too_long() -> None:
    """After so many characters."""
    out = through(ops.rechunk("line", max_hold=4), pieces("abcdefgh", [1] * 8)).items
    assert all(len(text) <= 4 for text in texts(out))


@given(CUT_TEXTS, st.sampled_from(SEPARATORS))
def test_rechunk_cuts_behind_what_a_pattern_matches(cut: list[str], by: re.Pattern[str]) -> None:
    """A piece ends where a match in the whole text does, and nowhere else but at the text's end."""
    text = "".join(cut)
    out = through(ops.rechunk(by, max_hold=10_000), [*deltas(*cut), TextEnd("0")]).items
    ends = {found.end() for found in by.finditer(text)}
    assert list(accumulate(map(len, texts(out)))) == sorted({*ends, len(text)} - {0})


@given(CUT_TEXTS, st.sampled_from(SEPARATORS), st.integers(1, 9))
def test_rechunk_cuts_what_is_longer_than_max_hold_too(
    cut: list[str], by: re.Pattern[str], max_hold: int
) -> None:
    """Every match still ends a piece, no piece is longer, and the cutting does not show."""
    text = "".join(cut)
    operator = ops.rechunk(by, max_hold=max_hold)
    out = texts(through(operator, [*deltas(*cut), TextEnd("0")]).items)
    assert max(map(len, out), default=0) <= max_hold
    assert set(accumulate(map(len, out))) >= {found.end() for found in by.finditer(text)}
    assert out == texts(through(operator, pieces(text, [])).items)


def test_rechunk_lets_a_piece_go_at_max_hold_though_no_separator_came() -> None:
    """What holds no beginning of a match does not wait for the text's end."""
    operator = ops.rechunk(re.compile(r"\n\n+"), max_hold=4)
    subject: Subject[Chunk] = Subject()
    witness, _ = watched(operator(subject))
    subject.on_next(TextDelta("0", "abcdefghi"))
    assert texts(witness.items) == ["abcd", "efgh"]


async def test_rechunk_names_itself_when_a_match_does_not_end() -> None:
    """What is not decided after 4096 characters fails, rather than being held for ever."""
    endless = ops.of(*deltas(*["-" * 100] * 50)).pipe(ops.rechunk(re.compile("-+>")))
    with pytest.raises(OperatorError, match="'rechunk': MatchLimitError on text-delta"):
        await elements(endless)


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"by": "page"}, "'page'; give one of 'grapheme', 'word', .* or a compiled pattern"),
        ({"by": r"\n\n"}, r"or a compiled pattern such as re\.compile"),
        ({"by": ["word"]}, "give one of 'grapheme'"),
        (
            {"by": re.compile("a*")},
            "make it need at least one character; or give one of 'grapheme'",
        ),
        ({"by": re.compile("(?=a)")}, "make it need at least one character"),
        ({"by": re.compile(r"(a|b)\1")}, "back-references .*: spell out what may stand there"),
        ({"by": re.compile("(?<=ab)c")}, "look-around .*: put one character or set into it"),
        ({"by": re.compile("a$")}, "or give re.MULTILINE"),
        ({"by": re.compile("a++")}, r"possessive repeats .*: write \*"),
        ({"by": re.compile(b"a")}, "the pattern is b'a'; give a str"),
        ({"max_hold": 0}, "max_hold is 0; give 1 or more"),
        ({"max_hold": "9"}, "max_hold is '9'; give 1 or more"),
        ({"parts": "html"}, "parts must be some of text, reasoning"),
    ],
)
def test_rechunk_refuses_bad_options(options: dict[str, Any], advice: str) -> None:
    """When it is built, by its name, with what to give instead."""
    with pytest.raises(ConfigurationError, match=f"^rechunk: .*{advice}"):
        ops.rechunk(**options)


# --- stop_at and limit_text ------------------------------------------------------------------


@given(cuts, st.booleans())
def test_stop_at_finds_its_text_however_it_is_cut(sizes: list[int], include: bool) -> None:  # noqa: FBT001 - Hypothesis gives it
    """What is before it leaves, the part is closed, and the stream completes."""
    witness = through(ops.stop_at("STOP", include=include), pieces("go on STOP here", sizes))
    said = "go on STOP" if include else "go on "
    assert "".join(texts(witness.items)) == said
    assert (witness.items[-1], witness.ends) == (TextEnd("0"), ["completed"])


async def test_stop_at_closes_the_source() -> None:
    """At once: no more is read from it."""
    counting = Counting()
    source = ops.from_aiter(counting).pipe(
        ops.map(digit),
        ops.stop_at("5"),
    )
    got = await elements(source)
    assert "".join(texts(got)) == "0 1 2 3 4 "
    assert (counting.given, counting.closed) == (6, 1)


def test_stop_at_may_leave_the_rest_of_the_stream_alone() -> None:
    """Then only the rest of the text is dropped, each part for itself."""
    chunks = [*pieces("a STOP b", [3]), ReasoningDelta("1", "STOP"), *pieces("c", [])]
    witness = through(ops.stop_at("STOP", close=False), chunks)
    assert texts(witness.items) == ["a ", "c"]
    assert [c.type for c in witness.items].count("text-end") == 2


async def test_stop_at_ends_a_models_answer() -> None:
    """The run goes on with what was said."""
    agent = Agent(
        model=ScriptedModel([["go ", "on ST", "OP he", "re"]]),
        output_processors=[ops.stop_at("STOP")],
    )
    result = await agent.generate("hi")
    assert (result.text, result.error) == ("go on ", None)


@given(cuts, st.integers(1, 30))
def test_limit_text_cuts_between_graphemes(sizes: list[int], chars: int) -> None:
    """As much as fits, the same for any cutting; an emoji is not halved."""
    out = through(ops.limit_text(chars=chars), pieces(PROSE, sizes)).items
    said = "".join(texts(out))
    assert PROSE.startswith(said)
    assert len(said) <= chars
    assert said == "".join(texts(through(ops.limit_text(chars=chars), pieces(PROSE, [])).items))
    assert out[-1] == TextEnd("0")


def test_a_text_that_ends_with_the_stream_is_closed_once() -> None:
    """Though other chunks wait behind it, and its limit is reached by its very end."""
    chunks: list[Chunk] = [TextStart("0"), TextDelta("0", "ab"), ToolCall("t", "n"), TextEnd("0")]
    witness = through(ops.limit_text(chars=2), chunks)
    kinds = [chunk.type for chunk in witness.items]
    assert (kinds.count("text-end"), witness.ends) == (1, ["completed"])


def test_what_waits_elsewhere_leaves_before_the_stream_ends() -> None:
    """Held text of another part comes before the ends that close both."""
    chunks: list[Chunk] = [TextDelta("0", "S"), TextStart("1"), TextDelta("1", "STOP")]
    out: list[Any] = through(ops.stop_at("STOP"), chunks).items
    assert [(chunk.type, chunk.id) for chunk in out] == [
        ("text-delta", "0"),
        ("text-start", "1"),
        ("text-end", "0"),
        ("text-end", "1"),
    ]


@pytest.mark.parametrize("operator", [ops.stop_at("X"), ops.limit_text(chars=2)])
def test_the_end_of_a_stream_closes_every_part(operator: Any) -> None:
    """Other texts and reasoning as well, covered or not, each once, in the order they opened."""
    chunks: list[Chunk] = [
        ReasoningStart("r", run_id="run"),
        ReasoningDelta("r", "x"),
        TextStart("b"),
        TextStart("c"),
        TextEnd("c"),
        TextDelta("b", "h"),
        TextStart("a"),
        TextDelta("a", "abX"),
        TextEnd("b"),
    ]
    out: list[Any] = through(operator, chunks).items
    assert out[-3:] == [ReasoningEnd("r", run_id="run"), TextEnd("b"), TextEnd("a")]
    assert sum(isinstance(chunk, TextEnd | ReasoningEnd) for chunk in out) == 4


def test_limit_text_counts_tokens() -> None:
    """By its estimate, or by a function of the user's."""
    chunks = pieces("one two three four", [5, 5])
    assert "".join(texts(through(ops.limit_text(tokens=2), chunks).items)) == "one two "
    by_word = ops.limit_text(tokens=3, count=lambda word: 1)
    assert "".join(texts(through(by_word, chunks).items)).strip() == "one two three"


async def test_limit_text_names_itself_when_the_count_raises() -> None:
    """Closed."""

    def broken(word: str) -> int:
        raise ValueError(word)

    source = ops.of(*pieces("secret words here", [])).pipe(ops.limit_text(tokens=3, count=broken))
    with pytest.raises(OperatorError, match="'limit_text': ValueError on text-delta"):
        await elements(source)


@pytest.mark.parametrize("options", [{}, {"chars": 0}, {"chars": 1, "tokens": 1}])
def test_limit_text_refuses_bad_options(options: dict[str, Any]) -> None:
    """When it is built, by its name."""
    with pytest.raises(ConfigurationError, match="limit_text"):
        ops.limit_text(**options)


def test_stop_at_needs_a_text() -> None:
    """One or more, none empty."""
    for sequences in ((), ("",)):
        with pytest.raises(ConfigurationError, match="stop_at"):
            ops.stop_at(*sequences)


# --- split_tags ----------------------------------------------------------------------------


@given(cuts)
def test_split_tags_makes_reasoning_of_what_stands_inside(sizes: list[int]) -> None:
    """However the tags are cut; each thought is a part with its start and its end."""
    text = "<think>hm, 1 < 2</think>Yes<think>or</think>."
    out: list[Any] = through(ops.split_tags("think"), pieces(text, sizes)).items
    assert "".join(texts(out)) == "Yes."
    thoughts: dict[str, str] = {}
    is_open: list[str] = []
    for chunk in out:
        if isinstance(chunk, ReasoningStart):
            is_open.append(chunk.id)
        elif isinstance(chunk, ReasoningEnd):
            is_open.remove(chunk.id)
        elif isinstance(chunk, ReasoningDelta):
            assert chunk.id in is_open
            thoughts[chunk.id] = thoughts.get(chunk.id, "") + chunk.text
        elif isinstance(chunk, TextDelta) and chunk.text:
            assert not is_open
    assert list(thoughts.values()) == ["hm, 1 < 2", "or"]
    assert (is_open, out[-1]) == ([], TextEnd("0"))


@given(cuts)
def test_split_tags_takes_two_thoughts_side_by_side_for_one(sizes: list[int]) -> None:
    """However they are cut: no text stands between them."""
    out: list[Any] = through(ops.split_tags("t"), pieces("<t>a</t><t>b</t>c", sizes)).items
    starts = [chunk.id for chunk in out if isinstance(chunk, ReasoningStart)]
    assert starts == ["0-thought-1"]
    assert "".join(texts(out, ReasoningDelta)) == "ab"


async def test_split_tags_in_a_run() -> None:
    """The result has text and reasoning apart; a thought that is not closed ends with the text."""
    agent = Agent(
        model=ScriptedModel([["<thi", "nk>why", "</think", "> so <think>but"]]),
        output_processors=[ops.split_tags("think")],
    )
    result = await agent.generate("hi")
    assert (result.text, result.reasoning) == (" so ", "whybut")


def test_split_tags_keeps_what_the_chunks_carry() -> None:
    """Run and origin of what is made, and the metadata once."""
    chunk = TextDelta("0", "<t>a</t>b", {"n": 1}, run_id="r", from_="USER")
    out: list[Any] = through(ops.split_tags("t"), [chunk]).items
    assert {(c.run_id, c.from_) for c in out} == {("r", "USER")}
    assert [c.provider_metadata for c in out if c.provider_metadata] == [{"n": 1}]


def test_split_tags_needs_a_name() -> None:
    """One that can stand in a tag."""
    for names in ((), ("a b",)):
        with pytest.raises(ConfigurationError, match="split_tags"):
            ops.split_tags(*names)


async def test_leaving_early_closes_the_source() -> None:
    """Whatever is held is dropped with it."""
    counting = Counting()
    source = ops.from_aiter(counting).pipe(
        ops.map(digit),
        ops.rechunk("word"),
    )
    async with reading(source) as items:
        await anext(items)
    assert counting.closed == 1
