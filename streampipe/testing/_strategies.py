"""Hypothesis strategies for what flows through an agent, and what goes into it.

They are drawn with few choices each, since a check draws thousands: a text is made of fragments,
the cuts of a text are the bits of one number, and so is the order in which parts are interleaved.
All of them shrink to what is plain: prose, uncut, one part after the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import regex  # type: ignore[import-untyped]  # it ships no types

from streampipe.chunks import (
    Chunk,
    DataChunk,
    FileChunk,
    FinishChunk,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseMetadata,
    SourceChunk,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolCallDelta,
    ToolCallInputEnd,
    ToolCallInputStart,
    Usage,
)
from streampipe.errors import ConfigurationError
from streampipe.messages import (
    Message,
    MessageList,
    Part,
    ReasoningPart,
    TextPart,
    ToolInvocationPart,
)
from streampipe.testing._hypothesis import st
from streampipe.testing._script import Piece, Turn, call, delay, fail, reasoning

__all__ = [
    "agent_scripts",
    "chunk_streams",
    "chunkings",
    "message_lists",
    "short_streams",
    "texts",
]

PROSE = ("a", "blue ", "The sky ", "is ", "so. ", "Is it? ", "1,000.50 ", "\n", "- item\n")
NASTY = (
    "e\u0301",  # a letter and its accent
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",  # a family: three people and two joiners
    "\U0001f1f5\U0001f1f9",  # a flag: two letters
    "\U0001f44d\U0001f3fd",  # a thumb and its colour
    "漢字。かな",
    "한국어 ",
    "שלום ",
    "مرحبا \u202e",
    "\u0e01\u0e33",  # Thai, with a vowel that belongs to the letter before
    "\r\n",
    "\r",
    "\0",
    "\u2028",
    "\ufeff",
    "\u00a0",
    "ﬁﬀ",
    "İß",  # whose lower and upper case are longer
    "```py\n",
    "<b>&amp;",
    '{"a": [1, "\\u00e9"',
    "**bold",
    "https://example.org/a?b=c#d ",
)
SECRETS = (
    "sk-" + "a1B2" * 6,
    "ghp_" + "Zz09" * 9,
    "4111 1111 1111 1111",
    "ann.o'neil+x@mail.example.org",
    "10.0.0.123",
    "+351 912 345 678",
    "078-05-1120",
    "GB82 WEST 1234 5698 7654 32",
    "password: swordfish",
)
_FRAGMENT = st.sampled_from((*PROSE, *NASTY, *SECRETS))
SHORT = 8  # code points: a check cuts each text at every one of them
_SHORT = st.sampled_from(
    ("ab", "a b. c", *(text for text in (*PROSE, *NASTY) if len(text) <= SHORT))
)
_FRAGMENTS = st.lists(_FRAGMENT, max_size=4).map("".join)
_TEXTS = _FRAGMENTS | _FRAGMENTS | st.text(max_size=12)


def texts() -> st.SearchStrategy[str]:
    """Texts as models write them, and as they should not.

    Prose, and fragments that break what was written for prose: combining marks, emoji of several
    code points, CJK, right-to-left scripts, CRLF, NUL, half a JSON object, and strings that look
    like keys, cards, addresses and passwords. No lone surrogates, since UTF-8 has none.

    Returns:
        A strategy of strings of up to about 150 characters, most of them short.
    """
    return _TEXTS


def chunkings(text: str) -> st.SearchStrategy[list[str]]:
    """Ways to cut a text: lists of pieces, empty ones included, that joined give the text.

    One in three is cut at every character, and some within user-perceived characters only
    (between a letter and its accent, within an emoji, between CR and LF).

    For `"sunny"` one is `["s", "", "unn", "y"]`.

    Args:
        text: what to cut.

    Returns:
        A strategy of lists of strings.
    """
    return st.builds(cut, st.just(text), _STYLES, _BITS, _BITS)


def _pieces(draw: st.DrawFn, text: str) -> list[str]:
    """One of `chunkings(text)`, without a strategy made for this text alone: that costs more."""
    return cut(text, draw(_STYLES), draw(_BITS), draw(_BITS))


_STYLES = st.sampled_from(("anywhere", "whole", "characters", "characters", "clusters"))
_BITS = st.integers(0, 2**48 - 1)


def cut(text: str, style: str, bits: int, empties: int) -> list[str]:
    """Cut a text: at the places whose bit is set, or as `style` says; then add empty pieces."""
    places = list(range(1, len(text)))
    if style == "whole":
        places = []
    elif style == "clusters":
        starts = {found.start() for found in regex.finditer(r"\X", text)}
        places = [place for place in places if place not in starts]
    elif style == "anywhere":
        places = [place for place in places if bits >> (place % 48) & 1]
    edges = [0, *places, len(text)]
    pieces = [text[start:stop] for start, stop in itertools.pairwise(edges)] if text else []
    while empties := empties >> 3:
        if empties & 7 == 7:  # noqa: PLR2004 - one in eight
            pieces.insert(empties % (len(pieces) + 1), "")
    return pieces


def _metadata(number: int) -> dict[str, Any]:
    return {f"provider-{number}": {"item": number}}


def _text_part(draw: st.DrawFn, index: int, text: st.SearchStrategy[str]) -> list[Chunk]:
    name = f"text-{index}"
    pieces = _pieces(draw, draw(text))
    return [TextStart(name), *(TextDelta(name, piece) for piece in pieces), TextEnd(name)]


def _reasoning_part(draw: st.DrawFn, index: int, text: st.SearchStrategy[str]) -> list[Chunk]:
    name = f"reasoning-{index}"
    pieces = _pieces(draw, draw(text))
    deltas = (ReasoningDelta(name, piece) for piece in pieces)
    return [ReasoningStart(name), *deltas, ReasoningEnd(name)]


_ARGUMENTS = st.sampled_from(('{"n":1}', "{}", '{"q":"\\u00e9\\"}"}', '{"list":[1,null,"x"]}'))
_DECODED: dict[str, Any] = {
    '{"n":1}': {"n": 1},
    "{}": {},
    '{"q":"\\u00e9\\"}"}': {"q": 'é"}'},
    '{"list":[1,null,"x"]}': {"list": [1, None, "x"]},
}


def _tool_part(draw: st.DrawFn, index: int, _: st.SearchStrategy[str]) -> list[Chunk]:
    name = f"call-{index}"
    arguments = draw(_ARGUMENTS)
    return [
        ToolCallInputStart(name, "search"),
        *(ToolCallDelta(name, piece) for piece in _pieces(draw, arguments)),
        ToolCallInputEnd(name),
        ToolCall(name, "search", _DECODED[arguments]),
    ]


def _other_part(draw: st.DrawFn, index: int, _: st.SearchStrategy[str]) -> list[Chunk]:
    name = f"other-{index}"
    which = draw(st.integers(0, 2))
    if which == 0:
        return [SourceChunk(name, title="A page", url=f"https://example.org/{index}")]
    if which == 1:
        return [DataChunk("data-progress", {"index": index})]
    return [FileChunk("aGk=", "text/plain", name)]


_PARTS = {
    "text": _text_part,
    "reasoning": _reasoning_part,
    "tool-call": _tool_part,
    "other": _other_part,
}


def chunk_streams(
    *,
    texts: st.SearchStrategy[str] | None = None,
    kinds: Sequence[str] = ("text", "text", "text", "reasoning", "tool-call", "other"),
    max_parts: int = 4,
    finished: bool | None = None,
) -> st.SearchStrategy[list[Chunk]]:
    """Streams that a model may answer with: every part opened and closed, with an id of its own.

    Parts follow one another or are interleaved. Some chunks have provider metadata, each under a
    key that no other chunk has, so that a test can tell whether it went missing or came twice.

    Args:
        texts: what text and reasoning say; `texts()` when None.
        kinds: the kinds of part: `text`, `reasoning`, `tool-call`, `other` (a source, data, a
            file); one named twice is drawn twice as often.
        max_parts: how many parts a stream has at most.
        finished: whether it begins with response metadata and ends with a `finish` chunk, as a
            model's own stream does; None for both.

    Returns:
        A strategy of lists of chunks.

    Raises:
        ConfigurationError: a kind is unknown.
    """
    unknown = sorted(set(kinds) - set(_PARTS))
    if unknown or not kinds:
        allowed = ", ".join(_PARTS)
        raise ConfigurationError(f"chunk_streams: kinds are {allowed}, not {list(kinds)!r}")
    shapes = st.lists(st.sampled_from(tuple(kinds)), max_size=max_parts)
    said = _TEXTS if texts is None else texts
    return _streams(shapes, said, st.booleans() if finished is None else st.just(finished))


@st.composite
def _streams(
    draw: st.DrawFn,
    shapes: st.SearchStrategy[Sequence[str]],
    said: st.SearchStrategy[str],
    finished: st.SearchStrategy[bool],
) -> list[Chunk]:
    return _stream(draw, draw(shapes), said, finished=draw(finished))


_SHAPES = st.sampled_from(
    (
        ("text",),
        ("text", "text"),
        ("text", "tool-call"),
        ("text", "reasoning"),
        ("text", "text", "other"),
        ("reasoning", "tool-call"),
        ("text", "other", "text"),
        ("text", "text", "tool-call"),
        (),
    )
)


@st.composite
def short_streams(draw: st.DrawFn, texts: st.SearchStrategy[str] | None = None) -> list[Chunk]:
    """The streams of checks: quick to draw, and mostly of several parts, since there faults lie."""
    shape = draw(_SHAPES)
    said = _SHORT if texts is None else texts
    return _stream(draw, shape, said, finished=len(shape) == 1 and draw(st.booleans()))


def _stream(
    draw: st.DrawFn, chosen: Sequence[str], said: st.SearchStrategy[str], *, finished: bool
) -> list[Chunk]:
    parts = [_PARTS[kind](draw, index, said) for index, kind in enumerate(chosen)]
    stream = interleaved(parts, draw(_BITS) if len(parts) > 1 else 0)
    marks = draw(_BITS)
    for number, chunk in enumerate(stream):
        # Two bits of three: most chunks of most streams carry none, as in life.
        if marks >> number % 48 & marks >> (number + 7) % 48 & 1 and _has_metadata(chunk):
            chunk.provider_metadata = _metadata(number)  # type: ignore[attr-defined]  # it has one
    if finished:
        stream.insert(0, ResponseMetadata("response-0", "model-0", provider="provider"))
        called = "tool-call" in chosen
        stream.append(FinishChunk("tool-calls" if called else "stop", Usage(3, len(stream))))
    for chunk in stream:
        chunk.run_id = "run"
    return stream


def _has_metadata(chunk: Chunk) -> bool:
    return hasattr(chunk, "provider_metadata")


def interleaved(parts: Sequence[Sequence[Chunk]], order: int) -> list[Chunk]:
    """Parts merged, each in its own order; `order` 0 puts them one after the other."""
    stream: list[Chunk] = []
    left = [list(reversed(part)) for part in parts if part]
    while left:
        order, which = divmod(order, len(left))
        stream.append(left[which].pop())
        if not left[which]:
            del left[which]
    return stream


_DAY = datetime(2025, 1, 31, 12, tzinfo=UTC)
_KINDS = st.lists(st.sampled_from("trc"), min_size=1, max_size=3)
_SYSTEM = st.lists(_FRAGMENTS, max_size=1)
_ROLES = st.sampled_from(("user", "assistant"))


def _assistant(draw: st.DrawFn, index: int) -> Message:
    parts: list[Part] = []
    for place, kind in enumerate(draw(_KINDS)):
        if kind == "t":
            parts.append(TextPart(draw(_FRAGMENTS)))
        elif kind == "r":
            parts.append(ReasoningPart(draw(_FRAGMENTS)))
        else:
            name, arguments = f"call-{index}-{place}", _DECODED[draw(_ARGUMENTS)]
            parts.append(
                ToolInvocationPart(
                    tool_call_id=name, tool_name="search", args=arguments, state="result", result=1
                )
            )
    return Message("assistant", parts, id=f"message-{index}", created_at=_DAY)


def message_lists(*, max_messages: int = 5) -> st.SearchStrategy[MessageList]:
    """Conversations: remembered messages, then input that ends with a user's message.

    Assistants' messages hold text, reasoning and answered tool calls. Ids are unique, and the same
    in every run.

    Args:
        max_messages: how many messages a list has at most, its last one not counted.

    Returns:
        A strategy of `MessageList`s of at least one message.
    """
    return _message_lists(st.lists(_ROLES, max_size=max_messages))


@st.composite
def _message_lists(draw: st.DrawFn, drawn: st.SearchStrategy[list[str]]) -> MessageList:
    system = draw(_SYSTEM)
    made = MessageList(system=[{"role": "system", "content": text} for text in system])
    roles = draw(drawn)
    remembered = draw(st.integers(0, len(roles)))
    for index, role in enumerate((*roles, "user")):
        if role == "assistant":
            message = _assistant(draw, index)
        else:
            text = [TextPart(draw(_FRAGMENTS))]
            message = Message("user", list[Part](text), id=f"message-{index}", created_at=_DAY)
        made.add(message, source="memory" if index < remembered else "input")
    return made


def agent_scripts(
    *,
    tools: Sequence[str] = (),
    failures: bool = False,
    texts: st.SearchStrategy[str] | None = None,
    max_turns: int = 3,
) -> st.SearchStrategy[list[Turn]]:
    """Scripts for `ScriptedModel` and `ModelServer`.

    Args:
        tools: names of tools that turns call, with `{"n": <number>}`, and now and then with
            arguments that are none, or no JSON; the last turn calls none.
        failures: whether a turn may fail, or stop without its protocol's end.
        texts: what pieces of text say; `texts()` when None.
        max_turns: how many turns a script has at most; it has at least one.

    Returns:
        A strategy of lists of turns.

    Raises:
        ConfigurationError: `max_turns` is below 1.
    """
    if max_turns < 1:
        raise ConfigurationError(f"agent_scripts: max_turns must be at least 1, not {max_turns}")
    said = _TEXTS if texts is None else texts
    kinds: list[st.SearchStrategy[Piece]] = [said, said, said.map(reasoning), st.just(delay(0))]
    plain = st.one_of(kinds)
    last = st.lists(plain, max_size=5)
    earlier = st.lists(plain | _calls(tools), max_size=5) if tools else last
    return _scripts(st.integers(0, max_turns - 1), earlier, last, failures)


@st.composite
def _scripts(
    draw: st.DrawFn,
    before: st.SearchStrategy[int],
    earlier: st.SearchStrategy[list[Piece]],
    last: st.SearchStrategy[list[Piece]],
    failures: bool,  # noqa: FBT001 - of our own strategy
) -> list[Turn]:
    turns: list[Turn] = []
    for said in (*[earlier] * draw(before), last):
        made = draw(said)
        fate = draw(_FATES) if failures else "whole"
        if fate == "fails":
            made.insert(draw(st.integers(0, len(made))), draw(_FAILURES))
        turns.append(Turn(tuple(made), incomplete=fate == "stops"))
    return turns


_FATES = st.sampled_from(("whole",) * 8 + ("fails", "stops"))
_FAILURES = st.sampled_from((fail(status=400), fail(status=503), fail(RuntimeError("it broke"))))


def _calls(tools: Sequence[str]) -> st.SearchStrategy[Piece]:
    arguments = st.sampled_from(({"n": 1}, {"n": 2}, {"n": 3}, {}, "{no json"))
    cuts = st.integers(1, 3)
    return st.builds(
        lambda name, value, pieces: call(name, value, pieces=pieces),
        st.sampled_from(tuple(tools)),
        arguments,
        cuts,
    )
