"""Texts that are held: order, identity and metadata of what a machine lets go, for any stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe import (
    Chunk,
    DataChunk,
    ReasoningDelta,
    StepFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolCallDelta,
    ToolCallInputStart,
)
from streampipe import operators as ops
from streampipe.errors import ConfigurationError, OperatorError
from streampipe.operators._fuse import fuse
from streampipe.operators._text import MOST_WAITING, text_stage
from streampipe.text import Rule
from tests.operators.sources import Witness, elements, through


class Words:
    """Lets go of whole words, louder; what it gives is a string, or a piece for every word."""

    def __init__(self, *, pieces: bool = False) -> None:
        """Start with nothing."""
        self.kept = ""
        self.pieces = pieces

    @property
    def held(self) -> int:
        """Characters of the word that has not ended."""
        return len(self.kept)

    def feed(self, piece: str) -> str | list[str]:
        """Give what ends in a space."""
        text = self.kept + piece
        cut = text.rfind(" ") + 1
        self.kept = text[cut:]
        return self._given(text[:cut])

    def finish(self) -> str | list[str]:
        """Give the last word."""
        text, self.kept = self.kept, ""
        return self._given(text)

    def _given(self, text: str) -> str | list[str]:
        loud = text.upper()
        return [f"{word} " for word in loud.split(" ")[:-1]] if self.pieces else loud


def words(chunks: Iterable[Chunk], parts: Any = ("text",), make: Any = Words) -> Witness:
    """Chunks through the machine, without a loop."""
    stage = text_stage("words", lambda _: make(), parts)
    return through(lambda source: fuse(source, stage), chunks)


IDS = ("a", "b")
pieces = st.builds(
    TextDelta,
    st.sampled_from(IDS),
    st.text("xy ", max_size=4),
    st.none() | st.fixed_dictionaries({"n": st.integers(0, 99)}),
)
others = st.builds(DataChunk, st.just("data-n"), st.integers(0, 99))
ends = st.builds(TextEnd, st.sampled_from(IDS))


@given(st.lists(pieces | pieces | others | ends, max_size=25))
def test_nothing_is_lost_and_nothing_overtakes(chunks: list[Any]) -> None:
    """Each text whole, under its id; other chunks behind what came before them."""
    out: list[Any] = words(chunks).items

    def before(stream: list[Any], place: int, text_id: str) -> str:
        return "".join(
            c.text for c in stream[:place] if isinstance(c, TextDelta) and c.id == text_id
        )

    for text_id in IDS:
        assert before(out, len(out), text_id) == before(chunks, len(chunks), text_id).upper()
    fixed = [c for c in chunks if not isinstance(c, TextDelta)]
    assert [c for c in out if not isinstance(c, TextDelta)] == fixed
    places = [i for i, c in enumerate(chunks) if not isinstance(c, TextDelta)]
    left = [i for i, c in enumerate(out) if not isinstance(c, TextDelta)]
    for came, went in zip(places, left, strict=True):
        end = chunks[came]  # the end of a text concerns nobody but that text
        for text_id in [end.id] if isinstance(end, TextEnd) else IDS:
            assert before(out, went, text_id).startswith(before(chunks, came, text_id).upper())


@given(st.lists(pieces | others, max_size=25))
def test_metadata_goes_out_once(chunks: list[Any]) -> None:
    """Whatever is merged or held, in the order it came, under the id it came with."""
    out: list[Any] = words(chunks).items
    for text_id in IDS:
        went, came = (
            [
                c.provider_metadata
                for c in stream
                if isinstance(c, TextDelta) and c.id == text_id and c.provider_metadata
            ]
            for stream in (out, chunks)
        )
        assert went == came


def test_a_tool_call_stays_behind_the_text_before_it() -> None:
    """That text leaves before it, and what comes behind it is another stretch."""
    call = ToolCall("t", "n", {})
    out = words([TextDelta("0", "he"), call, TextDelta("0", "y you"), TextEnd("0")]).items
    assert told(out) == ["HE", "tool-call", "Y ", "YOU", "text-end"]


def test_the_pieces_of_a_tool_call_never_wait() -> None:
    """However many they are, behind a text part that is held and left open."""
    call = [ToolCallDelta("c", "x") for _ in range(MOST_WAITING + 1)]
    out = words([TextDelta("0", "call the tool"), ToolCallInputStart("c", "t"), *call]).items
    assert told(out)[:4] == [
        "CALL THE ",
        "TOOL",
        "tool-call-input-streaming-start",
        "tool-call-delta",
    ]
    assert len(out) == len(call) + 3


texts_between = st.lists(st.text("bcdefX ", min_size=1, max_size=4), min_size=1, max_size=4)


@given(texts=texts_between, is_replaced=st.booleans())
def test_where_other_chunks_stand_does_not_depend_on_the_cutting(
    texts: list[str], *, is_replaced: bool
) -> None:
    """Text before and behind data comes out before and behind it, cut in characters or not."""
    rules = [Rule("long", "bcdX|cdefX|e+(?=f)", "#" if is_replaced else str)]
    whole: list[Chunk] = []
    single: list[Chunk] = []
    for number, text in enumerate(texts):
        whole += [TextDelta("0", text), DataChunk("data-n", number)]
        single += [*(TextDelta("0", char) for char in text), DataChunk("data-n", number)]
    places = [stretches(through(ops.redact(rules), chunks).items) for chunks in (whole, single)]
    assert places[0] == places[1]
    if not is_replaced:
        assert places[0] == [*texts, ""]


def stretches(chunks: list[Any]) -> list[str]:
    """The text between other chunks."""
    made = [""]
    for chunk in chunks:
        if isinstance(chunk, TextDelta):
            made[-1] += chunk.text
        else:
            made.append("")
    return made


def test_text_behind_data_stays_behind_it() -> None:
    """Though the text before it is decided by much of what follows."""
    rule = Rule("long", "bcdX|cdefX")
    for pieces_behind in (["cdefg tail"], ["cd", "efg tail"], list("cdefg tail")):
        behind = [TextDelta("0", piece) for piece in pieces_behind]
        chunks = [TextDelta("0", "ab"), DataChunk("data-n", 1), *behind]
        assert stretches(through(ops.redact(rule), chunks).items) == ["ab", "cdefg tail"]


def test_a_match_around_data_is_replaced_before_it() -> None:
    """What is behind the match stays behind the data."""
    chunks = [TextDelta("0", "a bc"), DataChunk("data-n", 1), TextDelta("0", "dX e")]
    assert stretches(through(ops.redact("bcdX", "#"), chunks).items) == ["a #", " e"]


VOID = StepFinish("retry")
AFTER: dict[str, Any] = {
    "rechunk": ops.rechunk("word"),
    "redact": ops.redact("secret"),
    "replace": ops.replace("secret", "#"),
    "detect": ops.detect("secret", lambda match: None),
    "block": ops.block("secret"),
    "stop_at": ops.stop_at("secret"),
    "stop_at, open": ops.stop_at("think", close=False),
    "limit_text": ops.limit_text(chars=14),
    "limit_text, open": ops.limit_text(chars=10, close=False),
    "split_tags": ops.split_tags("think"),
    "batch": ops.batch(5),
    "json_objects": ops.json_objects(),
    "json_lines": ops.json_lines(),
}


@pytest.mark.parametrize("name", AFTER)
def test_after_a_void_everything_begins_anew(name: str) -> None:
    """What comes out then is what comes out of the second attempt alone, whatever was held."""
    is_json = name.startswith("json")
    draft, answer = ('{"a": ', "[1]\n") if is_json else ("<think>a sec", "ret of it all")
    first = [TextStart("0"), TextDelta("0", draft)]
    second = [TextStart("0"), TextDelta("0", answer), TextEnd("0")]
    witness = through(AFTER[name], [*first, VOID, *second])
    alone = through(AFTER[name], second)
    after = witness.items[witness.items.index(VOID) + 1 :]
    assert (after, witness.ends) == (alone.items, alone.ends)


def test_held_text_is_dropped_at_a_void() -> None:
    """It is of the attempt that is void; what waits behind it is not lost."""
    data = DataChunk("data-n", 1)
    out = words([TextDelta("0", "one tw"), data, VOID, TextDelta("0", "o ")]).items
    assert told(out) == ["ONE ", "data-n", "step-finish", "O "]


def test_the_text_so_far_is_without_what_is_void() -> None:
    """A display that draws itself anew takes the draft back; accepted steps stand."""
    chunks: list[Chunk] = [
        TextDelta("0", "one "),
        StepFinish("tool-calls"),
        TextDelta("0", "draft"),
        VOID,
        VOID,
        TextDelta("0", "two"),
    ]
    assert through(ops.accumulate_text(), chunks).items == ["one ", "one draft", "one ", "one two"]


def told(chunks: list[Any]) -> list[str]:
    """The texts of chunks, else their types."""
    return [getattr(chunk, "text", chunk.type) for chunk in chunks]


def test_a_piece_that_is_not_changed_is_the_same_object() -> None:
    """With all that it carries."""
    chunk = TextDelta("0", "A ", {"n": 1}, run_id="r")
    assert words([chunk]).items[0] is chunk


def test_a_piece_that_is_changed_is_a_new_one() -> None:
    """The one that came may be shared."""
    chunk = TextDelta("0", "a ", run_id="r", from_="USER")
    (made,) = words([chunk]).items
    assert (chunk.text, made) == ("a ", TextDelta("0", "A ", run_id="r", from_="USER"))


def test_several_pieces_are_several_chunks() -> None:
    """The metadata with the first of them."""
    out = words([TextDelta("0", "a b c ", {"n": 1})], make=lambda: Words(pieces=True)).items
    assert [(c.text, c.provider_metadata) for c in out] == [
        ("A ", {"n": 1}),
        ("B ", None),
        ("C ", None),
    ]


def test_reasoning_is_a_text_of_its_own() -> None:
    """Covered when asked for, else passed by; the same id does not mix the two."""
    chunks = [TextDelta("0", "a"), ReasoningDelta("0", "b "), TextDelta("0", "c ")]
    both = words(chunks, ("text", "reasoning")).items
    assert [(c.type, c.text) for c in both] == [("reasoning-delta", "B "), ("text-delta", "AC ")]
    one = words(chunks).items
    assert [(c.type, c.text) for c in one] == [
        ("text-delta", "AC"),
        ("reasoning-delta", "b "),
        ("text-delta", " "),
    ]


def test_a_text_that_is_held_for_ever_keeps_no_more_than_so_much_waiting() -> None:
    """Then what waits passes it; of the text nothing leaves before its time."""
    waiting = [DataChunk("data-n", n) for n in range(MOST_WAITING)]
    begin, end = TextDelta("0", "a"), TextDelta("0", "b ")
    assert told(words([begin, *waiting[1:], end]).items)[0] == "AB"
    assert words([begin, *waiting, end]).items == [*waiting, TextDelta("0", "AB ")]


async def test_a_failing_machine_is_named_and_its_source_closed() -> None:
    """The text is not in the message."""

    class Broken(Words):
        def feed(self, piece: str) -> str:
            raise ValueError(piece)

    source = ops.of(TextDelta("0", "secret")).pipe(
        lambda s: fuse(s, text_stage("words", lambda _: Broken()))
    )
    with pytest.raises(OperatorError, match="'words': ValueError on text-delta") as caught:
        await elements(source)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("parts", [(), ("text", "tool-args"), "html"])
def test_an_unknown_part_is_refused(parts: Any) -> None:
    """With the known ones."""
    with pytest.raises(ConfigurationError, match="words: parts must be some of text, reasoning"):
        text_stage("words", lambda _: Words(), parts)


@pytest.mark.parametrize("kind", [TextDelta, ReasoningDelta])
def test_a_changed_piece_keeps_everything_but_its_text(kind: type[Any]) -> None:
    """Also what a later version of the class may have: every field is compared."""
    came = kind("3", "Hello", {"signed": True}, run_id="run-1", from_="USER")
    made = through(ops.redact("l+", "L"), [came, TextEnd("3")]).items[0]
    others = {field.name for field in fields(kind)} - {"text"}
    assert others >= {"id", "provider_metadata", "run_id", "from_"}
    assert {name: getattr(made, name) for name in others} == {
        name: getattr(came, name) for name in others
    }
    assert made.text == "HeLo"
    assert came.text == "Hello"
