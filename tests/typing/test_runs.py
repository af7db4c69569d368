"""The types of the operators on time, on failures, on composition, on hooks and of the wire."""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, assert_type

import pytest
from reactivex import Observable

from streampipe import operators as ops
from streampipe.chunks import Chunk, DataChunk, ErrorChunk, ErrorData, FinishChunk, Usage
from streampipe.contracts import (
    ModelRequest,
    OutputResult,
    ProcessAPIErrorArgs,
    ProcessInputArgs,
    ProcessOutputStreamArgs,
    StepResult,
)
from streampipe.errors import ConfigurationError, ModelError
from streampipe.messages import MessageList
from streampipe.operators import ModelAnswer, ModelCall, Pipeline, StepInput, Verdict
from streampipe.testing import ScriptedModel
from tests.typing.streams import CHUNKS, NUMBERS, emits

CALL = ModelCall(ScriptedModel([["never asked"]]), ModelRequest([]))


class Passing:
    """A processor that lets everything pass."""

    def __init__(self, name: str = "passing") -> None:
        """Call it by a name."""
        self.id = name

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        """The chunk as it is."""
        return args.part

    def process_input(self, args: ProcessInputArgs) -> MessageList:
        """The conversation as it is."""
        return args.message_list

    def process_input_step(self, args: object) -> None:
        """Nothing to override."""

    def process_llm_request(self, args: object) -> None:
        """Nothing to rewrite."""

    def process_llm_response(self, args: object) -> None:
        """Nothing to do."""

    def process_api_error(self, args: ProcessAPIErrorArgs) -> None:
        """Nothing to try again."""

    def process_output_step(self, args: object) -> None:
        """Nothing to change."""

    def process_tool_result(self, args: object) -> None:
        """Nothing to change."""

    def process_output_result(self, args: object) -> None:
        """Nothing to change."""


PROCESSORS = [Passing()]


def halved(number: int) -> float:
    """Half of it."""
    return number / 2


def twice(number: int) -> int:
    """Two times it."""
    return number * 2


SHOUT = ops.map_text(str.upper)
TWICE = ops.map(twice)


async def asked(number: int) -> str:
    """An answer, later."""
    return str(number)


async def is_odd(number: int) -> bool:
    """A predicate, later."""
    return number % 2 == 1


async def allowed(text: str) -> Verdict:
    """A check of text."""
    return Verdict.allow()


def again(error: ModelError, attempt: int) -> bool:
    """Whether to try again."""
    return False


async def test_types_map_async() -> None:
    """What the async function gives, awaited."""
    stream = NUMBERS.pipe(ops.map_async(asked, concurrency=2))
    await emits(assert_type(stream, Observable[str]), str)


async def test_types_filter_async() -> None:
    """The elements keep their type."""
    await emits(assert_type(NUMBERS.pipe(ops.filter_async(is_odd)), Observable[int]), int)


async def test_types_check_async() -> None:
    """Chunks in, chunks out."""
    await emits(assert_type(CHUNKS.pipe(ops.check_async(allowed)), Observable[Chunk]), Chunk)


async def test_types_throttle() -> None:
    """The elements keep their type."""
    await emits(assert_type(NUMBERS.pipe(ops.throttle(1)), Observable[int]), int)


async def test_types_debounce() -> None:
    """The elements keep their type."""
    await emits(assert_type(NUMBERS.pipe(ops.debounce(1)), Observable[int]), int)


async def test_types_heartbeat() -> None:
    """The elements, or a sign of life between them."""
    stream = CHUNKS.pipe(ops.heartbeat(1))
    await emits(assert_type(stream, Observable[Chunk | DataChunk]), Chunk)
    numbers = NUMBERS.pipe(ops.heartbeat(1, lambda: "still here"))
    await emits(assert_type(numbers, Observable[int | str | DataChunk]), int)
    events = ops.pipe(ops.to_sse(), ops.heartbeat(1))
    assert_type(events, Pipeline[Chunk, bytes | DataChunk])


async def test_types_timeout_first() -> None:
    """The elements keep their type."""
    await emits(assert_type(NUMBERS.pipe(ops.timeout_first(1)), Observable[int]), int)


async def test_types_timeout_idle() -> None:
    """The elements keep their type."""
    await emits(assert_type(NUMBERS.pipe(ops.timeout_idle(1)), Observable[int]), int)


async def test_types_deadline() -> None:
    """The elements keep their type."""
    await emits(assert_type(NUMBERS.pipe(ops.deadline(1)), Observable[int]), int)


async def test_types_batch() -> None:
    """Chunks in, chunks out."""
    await emits(assert_type(CHUNKS.pipe(ops.batch(2)), Observable[Chunk]), Chunk)


async def test_types_smooth() -> None:
    """Chunks in, chunks out."""
    await emits(assert_type(CHUNKS.pipe(ops.smooth(1e-6)), Observable[Chunk]), Chunk)
    lines = CHUNKS.pipe(ops.smooth(1e-6, re.compile(r"\n+")))
    await emits(assert_type(lines, Observable[Chunk]), Chunk)


async def test_types_catch_api_error() -> None:
    """Chunks in, chunks out."""
    await emits(assert_type(CHUNKS.pipe(ops.catch_api_error(again)), Observable[Chunk]), Chunk)


async def test_types_retry_api() -> None:
    """Chunks in, chunks out."""
    await emits(assert_type(CHUNKS.pipe(ops.retry_api(1)), Observable[Chunk]), Chunk)


async def test_types_fallback() -> None:
    """Chunks in, chunks out."""
    await emits(assert_type(CHUNKS.pipe(ops.fallback(CHUNKS)), Observable[Chunk]), Chunk)


async def test_types_process() -> None:
    """Chunks in, chunks out."""
    await emits(assert_type(CHUNKS.pipe(ops.process(Passing())), Observable[Chunk]), Chunk)


async def test_types_process_all() -> None:
    """Chunks in, chunks out."""
    await emits(assert_type(CHUNKS.pipe(ops.process_all(PROCESSORS)), Observable[Chunk]), Chunk)


async def test_types_branch() -> None:
    """Chunks in, chunks out; the predicate looks at a chunk."""
    shout = ops.branch(lambda c: c.type == "text-delta", ops.map_text(str.upper), Passing())
    await emits(assert_type(CHUNKS.pipe(shout), Observable[Chunk]), Chunk)


async def test_types_parallel() -> None:
    """Chunks in, chunks out."""
    both = ops.parallel(Passing("a"), Passing("b"))
    await emits(assert_type(CHUNKS.pipe(both), Observable[Chunk]), Chunk)


async def test_types_process_input() -> None:
    """Conversations in, conversations out."""
    stream = ops.of(MessageList(["hi"])).pipe(ops.process_input(PROCESSORS))
    await emits(assert_type(stream, Observable[MessageList]), MessageList)


async def test_types_process_input_step() -> None:
    """Step inputs in, step inputs out."""
    stream = ops.of(StepInput(None)).pipe(ops.process_input_step(PROCESSORS))
    await emits(assert_type(stream, Observable[StepInput]), StepInput)


async def test_types_process_llm_request() -> None:
    """Model calls in, model calls out."""
    stream = ops.of(CALL).pipe(ops.process_llm_request(PROCESSORS))
    await emits(assert_type(stream, Observable[ModelCall]), ModelCall)


async def test_types_process_llm_response() -> None:
    """Answers in, answers out."""
    stream = ops.of(ModelAnswer(CALL)).pipe(ops.process_llm_response(PROCESSORS))
    await emits(assert_type(stream, Observable[ModelAnswer]), ModelAnswer)


async def test_types_process_api_error() -> None:
    """Chunks in, chunks out."""
    stream = CHUNKS.pipe(ops.process_api_error(PROCESSORS))
    await emits(assert_type(stream, Observable[Chunk]), Chunk)


async def test_types_process_output_step() -> None:
    """Steps in, steps out."""
    stream = ops.of(StepResult()).pipe(ops.process_output_step(PROCESSORS))
    await emits(assert_type(stream, Observable[StepResult]), StepResult)


async def test_types_process_tool_result() -> None:
    """Chunks in, chunks out."""
    stream = CHUNKS.pipe(ops.process_tool_result(PROCESSORS))
    await emits(assert_type(stream, Observable[Chunk]), Chunk)


async def test_types_process_output_result() -> None:
    """Results in, results out."""
    result = OutputResult("", Usage(), "stop", [])
    stream = ops.of(result).pipe(ops.process_output_result(PROCESSORS))
    await emits(assert_type(stream, Observable[OutputResult]), OutputResult)


async def test_types_to_wire() -> None:
    """Dicts."""
    await emits(assert_type(CHUNKS.pipe(ops.to_wire()), Observable[dict[str, Any]]), dict)


async def test_types_to_jsonl() -> None:
    """Bytes."""
    await emits(assert_type(CHUNKS.pipe(ops.to_jsonl()), Observable[bytes]), bytes)


async def test_types_to_sse() -> None:
    """Bytes."""
    await emits(assert_type(CHUNKS.pipe(ops.to_sse()), Observable[bytes]), bytes)


async def test_types_materialize_errors() -> None:
    """Chunks in, chunks out: a failure is two of them."""
    failing: Observable[Chunk] = ops.of(ErrorChunk(ErrorData("E", "failed")))
    stream = failing.pipe(ops.raise_errors(), ops.materialize_errors())
    await emits(assert_type(stream, Observable[Chunk]), ErrorChunk, FinishChunk)


async def test_types_raise_errors() -> None:
    """Chunks in, chunks out."""
    await emits(assert_type(CHUNKS.pipe(ops.raise_errors()), Observable[Chunk]), Chunk)


async def test_types_pipe() -> None:
    """From what the first takes to what the last gives."""
    lengths = ops.pipe(ops.map_text(str.upper), ops.text(), ops.map(len), name="lengths")
    assert_type(lengths, Pipeline[Chunk, int])
    await emits(assert_type(CHUNKS.pipe(lengths), Observable[int]), int)
    nested = assert_type(ops.pipe(lengths, ops.map_async(asked)), Pipeline[Chunk, str])
    await emits(CHUNKS.pipe(nested), str)


async def test_types_pipe_of_one() -> None:
    """An operator of any elements, alone in a pipe, is one of chunks."""
    alone = assert_type(ops.pipe(ops.throttle(1)), Pipeline[Chunk, Chunk])
    await emits(CHUNKS.pipe(alone), Chunk)
    assert_type(ops.pipe(ops.text()), Pipeline[Chunk, str])
    assert_type(ops.pipe(ops.map(halved)), Pipeline[int, float])


async def test_types_pipe_of_many() -> None:
    """The elements are followed through eight operators of any types."""
    through_all = ops.pipe(SHOUT, SHOUT, SHOUT, ops.text(), ops.map(len), TWICE, TWICE, TWICE)
    assert_type(through_all, Pipeline[Chunk, int])
    await emits(CHUNKS.pipe(through_all), int)


async def test_types_pipe_of_a_list() -> None:
    """Operators that keep their type may be any number, and may stand in a list."""
    pipeline = assert_type(ops.pipe(*[SHOUT] * 12), Pipeline[Chunk, Chunk])
    await emits(CHUNKS.pipe(pipeline), Chunk)
    assert_type(
        ops.pipe(TWICE, TWICE, TWICE, TWICE, TWICE, TWICE, TWICE, TWICE, TWICE), Pipeline[int, int]
    )


def test_types_pipe_of_more_than_eight() -> None:
    """What the ninth gives is not known, but the first eight are checked; so pipes are nested."""
    last = ops.pipe(SHOUT, SHOUT, SHOUT, SHOUT, SHOUT, SHOUT, SHOUT, SHOUT, ops.text())
    assert_type(last, Pipeline[Chunk, Any])
    front = ops.pipe(SHOUT, SHOUT, SHOUT, SHOUT)
    nested = ops.pipe(front, SHOUT, SHOUT, SHOUT, SHOUT, ops.text(), ops.map(len))
    assert_type(nested, Pipeline[Chunk, int])


def test_types_explain() -> None:
    """Text, of an operator, a list of them, or an observable."""
    shown = assert_type(ops.explain(ops.pipe(ops.text())), str)
    assert shown == ops.explain([ops.text()])
    assert isinstance(ops.explain(CHUNKS.pipe(ops.text())), str)


def test_what_a_checker_refuses_fails_when_it_is_built() -> None:
    """A wrong option is a mistake twice: of the type, and of the operator."""
    with pytest.raises(ConfigurationError, match="number of seconds"):
        ops.throttle("1")  # type: ignore[arg-type]  # a text is no number
    with pytest.raises(ConfigurationError, match="over_budget must be"):
        ops.check_async(allowed, over_budget="drop")  # type: ignore[arg-type]  # no such way
    with pytest.raises(ConfigurationError, match="must be a function"):
        ops.branch("text", ops.text())  # type: ignore[arg-type]  # a name is no predicate
    with pytest.raises(ConfigurationError, match="not an operator"):
        ops.pipe(1)  # type: ignore[call-overload]  # a number is no operator
    with pytest.raises(ConfigurationError, match="explain: takes"):
        ops.explain(1)  # type: ignore[arg-type]  # a number is no pipeline


if TYPE_CHECKING:

    def refused_time() -> None:
        """Functions of other elements, and options of another type."""
        NUMBERS.pipe(ops.map_async(str))  # type: ignore[arg-type]  # nothing to await
        CHUNKS.pipe(ops.filter_async(is_odd))  # type: ignore[arg-type]  # chunks are no numbers
        CHUNKS.pipe(ops.check_async(asked))  # type: ignore[arg-type]  # takes no text
        ops.heartbeat(1, "ping")  # type: ignore[arg-type]  # not called, so no sign
        ops.deadline()  # type: ignore[call-arg]  # how long?
        ops.debounce("1")  # type: ignore[arg-type]  # a text is no number
        ops.timeout_first(None)  # type: ignore[arg-type]  # None is no limit
        ops.timeout_idle(seconds="1")  # type: ignore[arg-type]  # a text is no number
        NUMBERS.pipe(ops.batch(2))  # type: ignore[arg-type]  # numbers are no chunks
        ops.batch(max_wait="1")  # type: ignore[arg-type]  # a text is no number
        ops.smooth(1, 2)  # type: ignore[arg-type]  # a number is no way of cutting
        ops.smooth(1, "words")  # type: ignore[arg-type]  # a name of none

    def refused_recovery() -> None:
        """Handlers of another shape, and streams of no chunks."""
        ops.catch_api_error(is_odd)  # type: ignore[arg-type]  # takes the error and the attempt
        ops.retry_api(jitter="full")  # type: ignore[arg-type]  # yes or no
        ops.retry_api("often")  # type: ignore[arg-type]  # a text is no number
        CHUNKS.pipe(ops.fallback(NUMBERS))  # type: ignore[arg-type]  # numbers are no chunks

    def refused_composition() -> None:
        """What fits nowhere."""
        NUMBERS.pipe(ops.process(Passing()))  # type: ignore[arg-type]  # numbers are no chunks
        ops.process_all(Passing())  # type: ignore[arg-type]  # one processor is no list
        ops.process_all([Passing(), None])  # type: ignore[list-item]  # nothing is no processor
        ops.process(3)  # type: ignore[arg-type]  # a number is no processor
        ops.parallel(1, 2)  # type: ignore[arg-type]  # nor are several
        ops.branch(bool, 3, "x")  # type: ignore[arg-type]  # neither is an operator
        ops.branch(is_odd, ops.text())  # type: ignore[arg-type]  # looks at numbers
        NUMBERS.pipe(ops.parallel(*PROCESSORS))  # type: ignore[arg-type]  # no chunks
        NUMBERS.pipe(ops.pipe(ops.text()))  # type: ignore[arg-type]  # numbers are no chunks

    def refused_chains() -> None:
        """What one gives is not what the next takes, at any of the eight places."""
        text = ops.text()
        ops.pipe(text, SHOUT)  # type: ignore[misc]  # texts are no chunks
        ops.pipe(SHOUT, text, SHOUT)  # type: ignore[misc]  # the same
        ops.pipe(SHOUT, SHOUT, text, SHOUT)  # type: ignore[misc]  # the same
        ops.pipe(SHOUT, SHOUT, SHOUT, text, SHOUT)  # type: ignore[misc]  # the same
        ops.pipe(SHOUT, SHOUT, SHOUT, SHOUT, text, SHOUT)  # type: ignore[misc]  # the same
        ops.pipe(SHOUT, SHOUT, SHOUT, SHOUT, SHOUT, text, SHOUT)  # type: ignore[misc]  # the same
        six = SHOUT, SHOUT, SHOUT, SHOUT, SHOUT, SHOUT
        ops.pipe(*six, text, SHOUT)  # type: ignore[misc]  # the same
        ops.pipe(*six, text, SHOUT, SHOUT)  # type: ignore[misc]  # the same, with more behind it
        ops.pipe(text, SHOUT, *six, SHOUT)  # type: ignore[misc]  # the same, far before the end
        ops.pipe(ops.throttle(1), text, SHOUT)  # type: ignore[misc]  # nor is it behind any
        ops.pipe(text, ops.map(len), ops.map(str.upper))  # type: ignore[misc]  # numbers, no texts
        ops.pipe(SHOUT, 1)  # type: ignore[call-overload]  # a number is no operator

    def refused_hooks() -> None:
        """Each hook has its own elements."""
        CHUNKS.pipe(ops.process_input(PROCESSORS))  # type: ignore[arg-type]  # no conversations
        CHUNKS.pipe(ops.process_input_step(PROCESSORS))  # type: ignore[arg-type]  # no step inputs
        CHUNKS.pipe(ops.process_llm_request(PROCESSORS))  # type: ignore[arg-type]  # no calls
        CHUNKS.pipe(ops.process_llm_response(PROCESSORS))  # type: ignore[arg-type]  # no answers
        CHUNKS.pipe(ops.process_output_step(PROCESSORS))  # type: ignore[arg-type]  # no steps
        CHUNKS.pipe(ops.process_output_result(PROCESSORS))  # type: ignore[arg-type]  # no results
        NUMBERS.pipe(ops.process_tool_result(PROCESSORS))  # type: ignore[arg-type]  # no chunks
        NUMBERS.pipe(ops.process_api_error(PROCESSORS))  # type: ignore[arg-type]  # no chunks

    def refused_wire() -> None:
        """Only chunks have a wire form."""
        NUMBERS.pipe(ops.to_wire())  # type: ignore[arg-type]  # numbers are no chunks
        CHUNKS.pipe(ops.text(), ops.to_sse())  # type: ignore[misc]  # texts are no chunks
        CHUNKS.pipe(ops.to_sse(), ops.to_jsonl())  # type: ignore[misc]  # written already
        NUMBERS.pipe(ops.raise_errors())  # type: ignore[arg-type]  # numbers are no chunks
        NUMBERS.pipe(ops.materialize_errors())  # type: ignore[arg-type]  # numbers are no chunks
