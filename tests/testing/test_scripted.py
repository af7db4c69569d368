"""`ScriptedModel`: what it was told to say comes out, turn by turn, as a model's stream."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.chunks import (
    Chunk,
    DataChunk,
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
from streampipe.contracts import Model, ModelRequest
from streampipe.errors import ConfigurationError, ProviderError, ScriptError
from streampipe.messages import PromptMessage
from streampipe.testing import ScriptedModel, call, delay, fail, reasoning, turn


def request(text: str = "go") -> ModelRequest:
    """A request with one message."""
    return ModelRequest([PromptMessage.system(text)])


async def played(model: ScriptedModel) -> list[Chunk]:
    """The chunks of the next turn."""
    return [chunk async for chunk in model.stream(request())]


async def body(*pieces: Any) -> list[Chunk]:
    """The chunks of a turn of these pieces, without what stands around them."""
    first, *chunks, last = await played(ScriptedModel([turn(*pieces)]))
    assert isinstance(first, ResponseMetadata)
    assert isinstance(last, FinishChunk)
    return chunks


# --- what a turn becomes -----------------------------------------------------------------------


async def test_a_turn_begins_with_metadata_and_ends_with_finish() -> None:
    """The response's id counts the turns; reason and usage come last."""
    model = ScriptedModel([["hi"], ["ho"]], model_id="m1")
    first, *_, last = await played(model)
    assert first == ResponseMetadata("response-0", "m1", provider="scripted")
    assert last == FinishChunk("stop", Usage(1, 1), raw_reason="stop")
    assert (await played(model))[0] == ResponseMetadata("response-1", "m1", provider="scripted")
    assert isinstance(model, Model)
    assert (model.provider, model.model_id) == ("scripted", "m1")


async def test_strings_are_pieces_of_one_text() -> None:
    """Neighbours share a part; reasoning in between closes it and opens its own."""
    assert await body("a", "b", reasoning("c"), "d") == [
        TextStart("0"),
        TextDelta("0", "a"),
        TextDelta("0", "b"),
        TextEnd("0"),
        ReasoningStart("1"),
        ReasoningDelta("1", "c"),
        ReasoningEnd("1"),
        TextStart("2"),
        TextDelta("2", "d"),
        TextEnd("2"),
    ]


async def test_a_call_is_streamed_in_pieces() -> None:
    """Its arguments as JSON text, cut in so many pieces, then whole."""
    start, *deltas, end, whole = await body(call("f", {"a": [1, 2]}, id="c1", pieces=3))
    assert start == ToolCallInputStart("c1", "f")
    assert len(deltas) == 3
    text = "".join(d.args_text_delta for d in deltas if isinstance(d, ToolCallDelta))
    assert text == '{"a":[1,2]}'
    assert end == ToolCallInputEnd("c1")
    assert whole == ToolCall("c1", "f", {"a": [1, 2]})


async def test_arguments_that_are_no_json_stay_as_they_are() -> None:
    """A string is what the model wrote: read where it is JSON, kept where it is not."""
    assert (await body(call("f", '{"a": 1}', id="c")))[-1] == ToolCall("c", "f", {"a": 1})
    assert (await body(call("f", '{"a": ', id="c")))[-1] == ToolCall("c", "f", None, '{"a": ')


async def test_calls_have_ids_of_their_own() -> None:
    """Without one, an id says turn and place; arguments are an empty object."""
    chunks = await body("x", call("f"), call("f"))
    calls = [chunk for chunk in chunks if isinstance(chunk, ToolCall)]
    assert [(c.tool_call_id, c.args) for c in calls] == [("call-0-1", {}), ("call-0-2", {})]


async def test_a_chunk_is_sent_as_a_copy() -> None:
    """What a run writes into it is not in the script, which may be played again."""
    source = SourceChunk("s1", title="t")
    (sent,) = await body(source)
    assert sent == source
    assert sent is not source
    assert await body("a", DataChunk("data-x", 1), "b") == [
        TextStart("0"),
        TextDelta("0", "a"),
        TextEnd("0"),
        DataChunk("data-x", 1),
        TextStart("1"),
        TextDelta("1", "b"),
        TextEnd("1"),
    ]


async def test_a_delay_interrupts_nothing() -> None:
    """A pause is within the part that is open."""
    chunks = await body(delay(0), "a", delay(0), "b")
    assert [chunk.type for chunk in chunks] == [
        "text-start",
        "text-delta",
        "text-delta",
        "text-end",
    ]


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (turn("a"), "stop"),
        (turn(), "stop"),
        (turn("a", call("f")), "tool-calls"),
        (turn(call("f"), finish_reason="length"), "length"),
    ],
    ids=["text", "nothing", "call", "given"],
)
async def test_the_reason_follows_from_the_turn_unless_given(made: Any, reason: str) -> None:
    """A turn with a call ends in `tool-calls`."""
    last = (await played(ScriptedModel([made])))[-1]
    assert isinstance(last, FinishChunk)
    assert last.reason == last.raw_reason == reason


async def test_usage_is_what_the_turn_says_and_never_shared() -> None:
    """Who adds to a run's usage does not change the script."""
    usage = Usage(5, 7)
    last = (await played(ScriptedModel([turn("a", usage=usage)])))[-1]
    assert isinstance(last, FinishChunk)
    assert last.usage == usage
    assert last.usage is not usage


async def test_an_incomplete_turn_just_stops() -> None:
    """No end of the part, no finish: the protocol's end is missing."""
    chunks = await played(ScriptedModel([turn("a", incomplete=True)]))
    assert [chunk.type for chunk in chunks] == ["response-metadata", "text-start", "text-delta"]


# --- failures ----------------------------------------------------------------------------------


async def test_a_failure_comes_where_it_stands() -> None:
    """What was said before it has been sent."""
    error = ValueError("boom")
    got: list[Chunk] = []
    with pytest.raises(ValueError, match="boom") as caught:
        async for chunk in ScriptedModel([turn("a", fail(error), "b")]).stream(request()):
            got.append(chunk)  # noqa: PERF401 - kept up to the failure
    assert caught.value is error
    assert [chunk.type for chunk in got] == ["response-metadata", "text-start", "text-delta"]


@pytest.mark.parametrize(
    ("status", "retryable"), [(400, False), (401, False), (408, True), (429, True), (503, True)]
)
async def test_a_status_is_an_error_as_a_provider_s(status: int, *, retryable: bool) -> None:
    """`fail(status=...)` tells retryable from final as HTTP does."""
    model = ScriptedModel([turn(fail(status=status, body={"why": "no"}))], model_id="m1")
    with pytest.raises(ProviderError, match=f"scripted/m1: HTTP {status}") as caught:
        await played(model)
    assert caught.value.is_retryable is retryable
    assert caught.value.body == {"why": "no"}


# --- the script --------------------------------------------------------------------------------


async def test_the_end_of_the_script_is_an_error() -> None:
    """It says which call of how many; the model is named."""
    model = ScriptedModel([["a"]])
    await played(model)
    with pytest.raises(ScriptError, match="scripted/script: call 2 of a script of 1 turns"):
        await played(model)


async def test_a_repeating_script_starts_again() -> None:
    """After the last turn comes the first."""
    model = ScriptedModel(["a", "b"], repeat=True)
    said = [chunk for _ in range(5) for chunk in await played(model)]
    assert [c.text for c in said if isinstance(c, TextDelta)] == ["a", "b", "a", "b", "a"]
    assert model.calls == 5


async def test_it_remembers_what_it_was_asked() -> None:
    """Requests in order; of a long run only the newest, where so told."""
    model = ScriptedModel(["a"], repeat=True, keep_requests=2)
    asked = [request(str(number)) for number in range(4)]
    for one in asked:
        async for _ in model.stream(one):
            pass
    assert model.requests == asked[2:]
    assert all(a is b for a, b in zip(model.requests, asked[2:], strict=True))


async def test_turns_left_over_fail_the_test() -> None:
    """`assert_complete` says how many."""
    model = ScriptedModel(["a", "b"])
    with pytest.raises(AssertionError, match="2 of 2 scripted turns were not played"):
        model.assert_complete()
    await played(model)
    with pytest.raises(AssertionError, match="1 of 2"):
        model.assert_complete()
    await played(model)
    model.assert_complete()


async def test_every_form_of_a_turn_is_taken() -> None:
    """A turn, a list, a tuple, a single piece."""
    model = ScriptedModel([turn("a"), ["a"], ("a",), "a"])
    first, *others = [(await played(model))[1:] for _ in range(4)]
    assert all(other == first for other in others)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ([7], "a script's entry is a turn, a piece or a list of pieces, not 7"),
        ([None], "not None"),
        (["a", ["b", 7]], "turn 2: 7 is no piece of a turn"),
        ([turn("a", ["b"])], "turn 1: .* is no piece of a turn"),  # type: ignore[arg-type]  # the fault
    ],
    ids=["number", "none", "in a list", "in a turn"],
)
def test_what_is_no_script_is_refused_when_the_model_is_made(script: Any, told: str) -> None:
    """The message names the turn."""
    with pytest.raises(ConfigurationError, match=told):
        ScriptedModel(script)


PIECES = st.one_of(
    st.text(max_size=3),
    st.builds(reasoning, st.text(max_size=3)),
    st.builds(call, st.just("f"), st.dictionaries(st.text(max_size=2), st.integers(-9, 9))),
    st.just(delay(0)),
    st.builds(SourceChunk, st.text(max_size=2)),
)


@given(st.lists(PIECES, max_size=8))
async def test_every_part_is_opened_filled_and_closed(pieces: list[Any]) -> None:
    """Whatever the turn: parts never overlap, ids are unique, and the texts are all there."""
    chunks = await body(*pieces)
    open_part = ""
    opened: list[str] = []
    for chunk in chunks:
        if isinstance(chunk, TextStart | ReasoningStart):
            assert not open_part
            open_part = chunk.id
            opened.append(chunk.id)
        elif isinstance(chunk, TextEnd | ReasoningEnd):
            assert chunk.id == open_part
            open_part = ""
        elif isinstance(chunk, TextDelta | ReasoningDelta):
            assert chunk.id == open_part
        else:
            assert not open_part
    assert not open_part
    assert len(set(opened)) == len(opened)
    said = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
    assert said == "".join(piece for piece in pieces if isinstance(piece, str))


async def test_an_empty_script_is_at_its_end_even_when_it_repeats() -> None:
    """There is no turn to begin again with."""
    with pytest.raises(ScriptError):
        [chunk async for chunk in ScriptedModel([], repeat=True).stream(ModelRequest([]))]
