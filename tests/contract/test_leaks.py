"""Disclosure: what was blocked, rejected or left unchecked is nowhere to be found afterwards.

A matrix of hook, what the guard does there, and accessor: an accepted first step, then a second one
that is full of a secret, at which the guard acts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from reactivex import Observable
from reactivex import operators as rx

from streampipe import (
    Agent,
    Chunk,
    DataChunk,
    FileChunk,
    MessageList,
    SourceChunk,
    StepFinish,
    TextDelta,
    ToolContext,
)
from streampipe.testing import ScriptedModel, call, fail, reasoning
from tests.contract.guards import (
    STEP_HOOKS,
    LoggedModel,
    Runner,
    guard,
    list_of,
    processor,
    texts,
    types,
    unchanged,
)

LEAK = "s3cr3t"
ACCESSORS = (
    "text",
    "reasoning",
    "steps",
    "messages",
    "tool_calls",
    "tool_results",
    "object",
    "response",
    "warnings",
    "tripwire",
)
VIEWS = ("all", "input", "response", "remembered")
EARLY = ("process_input_step", "process_llm_request")  # they come before the model says a thing


def block(args: Any) -> Any:
    """Stop the run."""
    args.abort("blocked")


def reject(args: Any) -> Any:
    """Ask for another attempt."""
    args.abort("rejected", retry=True)


def break_down(args: Any) -> Any:
    """Fail."""
    msg = "broken"
    raise RuntimeError(msg)


ACTS: dict[str, Callable[[Any], Any]] = {"block": block, "retry": reject, "failure": break_down}


class Scene:
    """An agent whose second step is full of a secret, and a guard that acts there."""

    def __init__(self, hook: str, act: str) -> None:
        """Guard at `hook`; `lists` are the message lists that hooks were given."""
        self.lists: list[MessageList] = []
        self.hook = hook
        secret: list[Any] = [
            reasoning(LEAK),
            LEAK,
            SourceChunk(LEAK, title=LEAK),
            FileChunk(LEAK, "text/plain", LEAK),
            LEAK,
        ]
        if hook == "process_api_error":
            secret.append(fail())
        elif hook != "process_output_result":
            secret.append(call("lookup", {"word": LEAK}))
        first = ["fine", call("lookup", {"word": "x"})]
        again = ["clean", call("lookup", {"word": "y"})]
        skipped = hook in EARLY and act == "retry"
        self.model = LoggedModel([first, *([] if skipped else [secret]), again, ["end"]])
        action = ACTS[act]

        def once(args: Any) -> Any:
            args.state["acted"] = True
            return action(args)

        one = guard(hook, once, when=self.is_due)
        keeper = processor("keeper", process_input=self.keep)
        lists: dict[str, list[Any]] = {"input_processors": [keeper]}
        lists.setdefault(list_of(hook), []).append(one)
        options: dict[str, Any] = dict(lists)
        self.agent = Agent(
            model=self.model, tools=[self.lookup], max_processor_retries=1, **options
        )

    def keep(self, args: Any) -> Any:
        """Keep the live message list."""
        self.lists.append(args.message_list)
        return args.messages

    def is_due(self, args: Any) -> bool:
        """Whether this is the guard's moment: once, in the second step, at the secret."""
        if args.state or getattr(args, "step_number", self.model.calls - 1) != 1:
            return False
        return self.hook != "process_output_stream" or LEAK in repr(args.part)

    async def lookup(self, word: str, context: ToolContext) -> str:
        """A tool that tells of the secret in data, too."""
        await context.writer.custom({"type": "data-note", "data": word})
        return f"meaning of {word}"


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("hook", STEP_HOOKS)
async def test_leak_matrix_nothing_of_the_stopped_step_is_in_any_accessor(
    run: Runner, hook: str, act: str
) -> None:
    """Hook x act x accessor of the result, view of the message list, and prompt."""
    scene = Scene(hook, act)
    seen = await run(scene.agent)
    result = seen.result
    assert result.text == ("finecleanend" if act == "retry" else "fine")
    assert result.finish_reason == {"block": "other", "retry": "stop", "failure": "error"}[act]
    for accessor in ACCESSORS:
        assert LEAK not in repr(getattr(result, accessor)), accessor
    assert LEAK not in repr(result)
    assert LEAK not in str(seen.error)
    [messages] = scene.lists
    for name in VIEWS:
        view = getattr(messages, name)
        for form in (list(view), view.to_stored(), view.to_ui(), view.to_prompt()):
            assert LEAK not in repr(form), name
    assert LEAK not in "".join(scene.model.prompts())


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("hook", STEP_HOOKS)
async def test_leak_matrix_the_client_gets_nothing_after_what_was_allowed(
    hook: str, act: str
) -> None:
    """The void, tripwire or error and what follows are clean; stream guards let nothing by."""
    scene = Scene(hook, act)
    chunks = [chunk async for chunk in scene.agent.stream("hi")]
    ends = ("tripwire", "error")
    stop = next(
        place
        for place, chunk in enumerate(chunks)
        if chunk.type in ends or (isinstance(chunk, StepFinish) and chunk.reason == "retry")
    )
    assert LEAK not in repr(chunks[stop:])
    if hook == "process_output_stream" or hook in EARLY:
        assert LEAK not in repr(chunks)
    if hook == "process_tool_result":
        assert LEAK not in repr([c for c in chunks if c.type == "tool-result"])


@pytest.mark.parametrize("act", ["block", "retry", "failure"])
async def test_leak_a_text_stream_holds_nothing_that_was_blocked(act: str) -> None:
    """`run.text_stream` is fed by the same chunks."""
    scene = Scene("process_output_stream", act)
    pieces = [text async for text in scene.agent.stream("hi").text_stream]
    assert LEAK not in "".join(pieces)


# --- what is held back when a run is stopped ------------------------------------------------------


def holder() -> Any:
    """A processor that holds all text back until its part is closed."""

    def hold(args: Any) -> Any:
        held = args.state.setdefault("held", [])
        if args.part.type == "text-delta":
            held.append(args.part.text)
            return None
        if args.part.type == "text-end":
            whole = TextDelta(args.part.id, "".join(held))
            held.clear()
            return [whole, args.part]
        if args.part.type == "step-finish" and args.part.reason == "retry":
            held.clear()
        return args.part

    return processor("holder", process_output_stream=hold)


def on_secret(act: str) -> Any:
    """A stream guard that acts when it sees the secret, at first attempt."""

    def look(args: Any) -> Any:
        if args.part.type == "text-delta" and LEAK in args.part.text and not args.retry_count:
            ACTS[act](args)
        return args.part

    return processor(process_output_stream=look)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("guard_first", [False, True])
async def test_leak_held_text_is_discarded_when_the_step_is_stopped(
    run: Runner, act: str, *, guard_first: bool
) -> None:
    """The chunks that close open parts do not pass a holder: nothing slips out with them."""
    held = holder()
    output = [on_secret(act), held] if guard_first else [held, on_secret(act)]
    model = ScriptedModel([["held ", LEAK], ["clean"]])
    seen = await run(Agent(model=model, output_processors=output, max_processor_retries=1))
    expected = "clean" if act == "retry" else ""
    assert seen.result.text == expected
    if seen.chunks is not None:
        assert "".join(texts(seen.chunks)) == expected


@pytest.mark.parametrize("act", ACTS)
async def test_leak_an_operator_does_not_flush_what_it_holds_when_the_step_is_stopped(
    run: Runner, act: str
) -> None:
    """It is disposed on a block or void, not completed."""

    def last_first(source: Observable[Chunk]) -> Observable[Chunk]:
        """Hold everything until the source completes."""
        return source.pipe(rx.to_list(), rx.flat_map(lambda chunks: chunks))

    model = ScriptedModel([["held ", LEAK], ["clean"]])
    output = [on_secret(act), last_first]
    seen = await run(Agent(model=model, output_processors=output, max_processor_retries=1))
    expected = "clean" if act == "retry" else ""
    assert seen.result.text == expected
    if seen.chunks is not None:
        assert "".join(texts(seen.chunks)) == expected


# --- guards that leak: what users of such systems ran into ----------------------------------------


def redactor() -> Any:
    """A processor that redacts the secret in text, tool arguments and data."""

    def redact(args: Any) -> Any:
        part = args.part
        if part.type == "text-delta":
            part.text = part.text.replace(LEAK, "[...]")
        if part.type == "tool-call":
            part.args = {key: value.replace(LEAK, "[...]") for key, value in part.args.items()}
        if part.type.startswith("tool-call-"):
            return None
        if part.type == "tool-result":
            part.result = part.result.replace(LEAK, "[...]")
        return part

    return processor("redactor", process_output_stream=redact)


async def test_lesson_a_broken_processor_does_not_send_its_chunk_past_the_chain(
    run: Runner,
) -> None:
    """Nor is earlier redaction undone: the run fails closed."""

    def breaks(args: Any) -> Any:
        if args.part.type == "text-delta":
            raise RuntimeError
        return args.part

    output = [redactor(), processor("broken", process_output_stream=breaks)]
    seen = await run(Agent(model=ScriptedModel([LEAK]), output_processors=output))
    assert seen.result.finish_reason == "error"
    assert LEAK not in repr(seen)
    if seen.chunks is not None:
        assert texts(seen.chunks) == []


async def test_lesson_every_chunk_enters_at_the_head_of_the_chain(run: Runner) -> None:
    """Tool results, tool errors, step markers and data pass every output processor."""
    got: list[str] = []

    def note(args: Any) -> Any:
        got.append(args.part.type)
        return args.part

    async def search(word: str, context: ToolContext) -> str:
        await context.writer.custom({"type": "data-hits"})
        return word

    noting = processor("noting", process_output_stream=note, process_data_parts=True)
    script: list[Any] = [
        [reasoning("r"), "a", call("search", {"word": "x"}), call("nothing")],
        ["b"],
    ]
    agent = Agent(model=ScriptedModel(script), tools=[search], output_processors=[noting])
    seen = await run(agent)
    if seen.chunks is not None:
        assert got == types(seen.chunks)
    assert {"tool-result", "tool-error", "data-hits", "step-start", "step-finish"} <= set(got)


async def test_lesson_what_is_redacted_for_the_viewer_is_redacted_everywhere(run: Runner) -> None:
    """Client, result, stored message and next prompt are fed by one processed stream."""
    given: list[str] = []

    def search(word: str) -> str:
        given.append(word)
        return f"{LEAK} indeed"

    model = LoggedModel([[f"It is {LEAK}", call("search", {"word": LEAK})], ["ok"]])
    seen = await run(Agent(model=model, tools=[search], output_processors=[redactor()]))
    assert LEAK not in repr(seen)
    assert LEAK not in "".join(model.prompts())
    assert seen.result.text == "It is [...]ok"
    assert given == ["[...]"]
    assert "[...] indeed" in model.prompts()[1]


async def test_lesson_history_is_what_the_processor_received(run: Runner) -> None:
    """Behind a holder, `stream_parts` has the whole text, not the pieces that it held."""
    histories: list[list[str]] = []

    def moderate(args: Any) -> Any:
        if args.part.type == "text-end":
            histories.append(texts(args.stream_parts))
        return args.part

    output = [holder(), processor("moderator", process_output_stream=moderate)]
    await run(Agent(model=ScriptedModel([["a", "b", "c"]]), output_processors=output))
    assert histories == [["abc"]]


@pytest.mark.parametrize("hook", ["process_output_stream", "process_output_step"])
async def test_lesson_no_tool_runs_before_or_despite_a_block(run: Runner, hook: str) -> None:
    """Every guard of the step decides first, though the call came before the blocked text."""
    ran: list[str] = []

    def search(word: str) -> str:
        ran.append(word)
        return word

    def look(args: Any) -> Any:
        if hook == "process_output_step" or getattr(args.part, "text", "") == "bad":
            args.abort()
        return unchanged(hook, args)

    script: list[Any] = [[call("search", {"word": "x"}), "good", "bad"]]
    lists: dict[str, Any] = {"output_processors": [processor(**{hook: look})]}
    await run(Agent(model=ScriptedModel(script), tools=[search], **lists))
    assert ran == []


async def test_lesson_data_of_a_rejected_attempt_is_void_too(run: Runner) -> None:
    """What guards and tools wrote in it is not stored."""

    def write_and_reject(args: Any) -> Any:
        args.writer.custom(DataChunk("data-draft", LEAK))
        if args.retry_count == 0:
            reject(args)

    output = [processor(process_output_step=write_and_reject)]
    agent = Agent(
        model=ScriptedModel([["a"], ["b"]]), output_processors=output, max_processor_retries=1
    )
    seen = await run(agent)
    [message] = seen.result.messages
    assert [part.type for part in message.parts] == ["text", "data-draft"]
