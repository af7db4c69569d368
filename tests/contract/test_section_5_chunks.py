"""Section 5 of the contract: chunks on their way through `process_output_stream`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe import (
    AbortSignal,
    Agent,
    Chunk,
    DataChunk,
    FileChunk,
    ObjectChunk,
    RawChunk,
    SourceChunk,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolResult,
)
from streampipe.errors import ConfigurationError
from streampipe.testing import ScriptedModel, call, fail, reasoning
from tests.contract.guards import Runner, is_text, processor, texts, types
from tests.contract.listeners import (
    CALL,
    agent_with,
    joined,
    keeping,
    prompts_of,
    stream_processor,
)

EVERYTHING: list[Any] = [
    [
        reasoning("hm"),
        "one",
        SourceChunk("s", url="u"),
        FileChunk("aGk=", "text/plain"),
        ObjectChunk({"a": 1}),
        RawChunk({"x": 1}),
        CALL,
        call("break_down", {"word": "y"}),
    ],
    ["two"],
]
"""Two steps, with a chunk of every kind that a good run has."""


# --- which chunks pass --------------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_5_every_chunk_bound_for_the_client_passes(
    run: Runner, *, asynchronous: bool
) -> None:
    """In the client's order, `start`, `finish` and tool chunks included."""
    log: list[Chunk] = []
    keep = keeping(log, asynchronous=asynchronous)
    seen = await run(agent_with(keep, script=EVERYTHING))
    assert {"start", "finish", "tool-call", "tool-result", "tool-error", "raw"} <= set(types(log))
    if seen.chunks is not None:
        assert types(log) == types(seen.chunks)
        assert log[:-1] == seen.chunks[:-1]


@pytest.mark.parametrize("kind", ["tripwire", "error", "abort"])
async def test_5_chunks_that_stop_a_run_pass_no_processor(run: Runner, kind: str) -> None:
    """`tripwire`, `error` and `abort`, and what comes with them, go straight to the client."""
    log: list[Chunk] = []
    signal = AbortSignal()

    def stop(args: Any) -> None:
        if kind == "tripwire":
            args.abort("no")
        if kind == "error":
            raise ValueError
        signal.abort()

    chain = [keeping(log, process_data_parts=True), processor("s", process_output_step=stop)]
    seen = await run(agent_with(*chain, script=[["one"]]), abort_signal=signal)
    assert not {kind, "finish"} & set(types(log))
    if seen.chunks is not None:
        assert types(seen.chunks)[-2:] == [kind, "finish"]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_5_data_chunks_are_for_those_with_process_data_parts(
    run: Runner, *, asynchronous: bool
) -> None:
    """The others let them by untouched, wherever in the list they stand; the order is kept."""
    logs: dict[str, list[Chunk]] = {name: [] for name in ("blind", "sees", "also blind")}
    chain = [
        keeping(log, name, process_data_parts=name == "sees", asynchronous=asynchronous)
        for name, log in logs.items()
    ]
    data = DataChunk("data-x", {"n": 1})
    seen = await run(agent_with(*chain, script=[["a", data, "b"]]))
    assert [c.type for c in logs["sees"] if c.type in ("data-x", "text-delta")] == [
        "text-delta",
        "data-x",
        "text-delta",
    ]
    assert "data-x" not in types(logs["blind"]) + types(logs["also blind"])
    if seen.chunks is not None:
        assert types(seen.chunks) == types(logs["sees"])


@pytest.mark.parametrize("verdict", ["dropped", "changed"])
async def test_5_data_chunks_can_be_dropped_and_changed(run: Runner, verdict: str) -> None:
    """By a processor with `process_data_parts`, for client and message alike."""

    def judge(part: Chunk) -> Any:
        if part.type != "data-x":
            return part
        return None if verdict == "dropped" else {"type": "data-y", "data": 2}

    chain = [stream_processor(judge, process_data_parts=True)]
    seen = await run(agent_with(*chain, script=[["a", DataChunk("data-x", 1)]]))
    expected = [] if verdict == "dropped" else ["data-y"]
    [message] = seen.result.messages
    assert [p.type for p in message.parts if p.type.startswith("data-")] == expected
    if seen.chunks is not None:
        assert [c.type for c in seen.chunks if c.type.startswith("data-")] == expected


# --- what is let through is the truth -----------------------------------------------------------

EDITS: dict[str, Callable[[TextDelta], Any]] = {
    "drop": lambda _: None,
    "keep": lambda part: part,
    "twice": lambda part: [part, replace(part)],
    "upper": lambda part: replace(part, text=part.text.upper()),
    "empty": lambda part: replace(part, text=""),
}


@given(
    st.lists(st.sampled_from(list(EDITS)), min_size=1, max_size=6),
    st.sampled_from([None, "text-start", "text-end"]),
    st.sampled_from(["sync", "async"]),
)
async def test_5_what_processors_let_through_is_what_everybody_has(
    edits: list[str], swallowed: str | None, kind: str
) -> None:
    """Client, result, stored message and the next step's prompt hold the same text."""
    waiting = list(edits)

    def edit(part: Chunk) -> Any:
        if part.type == swallowed:
            return None
        if isinstance(part, TextDelta) and waiting:
            return EDITS[waiting.pop(0)](part)
        return part

    letters = list("abcdef"[: len(edits)])
    agent = agent_with(
        stream_processor(edit, asynchronous=kind == "async"), script=[[*letters, CALL], ["."]]
    )
    async with agent.stream("hi") as stream:
        chunks = [chunk async for chunk in stream]
        result = await stream.result()
    told = "".join(texts(chunks))
    assert result.text == told
    assert "".join(joined(result.messages)) == told
    assert "".join(m.text for m in prompts_of(agent)[1] if m.role == "assistant") == told[:-1]
    shown = "".join(
        {"drop": "", "keep": x, "twice": x + x, "upper": x.upper(), "empty": ""}[edit]
        for edit, x in zip(edits, letters, strict=True)
    )
    assert told == shown + "."


async def test_5_reasoning_that_is_dropped_is_nowhere(run: Runner) -> None:
    """Neither in the result nor in the message, nor in the next prompt."""
    hide = stream_processor(lambda part: None if part.type.startswith("reasoning") else part)
    agent = agent_with(hide, script=[[reasoning("secret"), "a", CALL], ["b"]])
    seen = await run(agent)
    assert seen.result.reasoning == ""
    assert "secret" not in repr(seen.result)
    assert "secret" not in repr(prompts_of(agent)[1])


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_5_a_tool_call_that_is_dropped_is_not_executed(
    run: Runner, *, asynchronous: bool
) -> None:
    """It leaves no dangling call in the message nor in the prompt; others are executed."""
    ran: list[str] = []

    def lookup(word: str) -> str:
        """Look a word up."""
        ran.append(word)
        return word

    def refuse(part: Chunk) -> Any:
        bad = isinstance(part, ToolCall) and part.args == {"word": "bad"}
        return None if bad else part

    model = ScriptedModel([["a", call("lookup", {"word": "bad"}), CALL], ["b"]])
    agent = Agent(
        model=model,
        tools=[lookup],
        output_processors=[stream_processor(refuse, asynchronous=asynchronous)],
    )
    seen = await run(agent)
    assert ran == ["x"]
    assert [c.tool_call_id for c in seen.result.tool_calls] == ["c1"]
    parts = [part.type for part in seen.result.messages[0].parts]
    assert parts == ["text", "tool-invocation"]
    assert [[p.type for p in m.content] for m in model.requests[1].prompt] == [
        ["text"],
        ["text", "tool-call"],
        ["tool-result"],
    ]


async def test_5_without_any_call_left_the_step_is_the_last(run: Runner) -> None:
    """The model is not asked again when its only call was dropped."""
    drop = stream_processor(lambda part: None if isinstance(part, ToolCall) else part)
    agent = agent_with(drop, script=[["a", CALL], ["never"]])
    seen = await run(agent)
    assert len(prompts_of(agent)) == 1
    assert joined(seen.result.messages) == ["a"]
    assert seen.result.tool_calls == []


async def test_5_a_tool_call_is_executed_with_rewritten_arguments(run: Runner) -> None:
    """The message and the prompt show them too."""

    def rewrite(part: Chunk) -> Any:
        return replace(part, args={"word": "mild"}) if isinstance(part, ToolCall) else part

    agent = agent_with(stream_processor(rewrite), script=[[CALL], ["b"]])
    seen = await run(agent)
    assert [r.result for r in seen.result.tool_results] == ["meaning of mild"]
    assert [c.args for c in seen.result.tool_calls] == [{"word": "mild"}]
    assert "'x'" not in repr(prompts_of(agent)[1])


async def test_5_a_tool_result_that_is_dropped_is_withheld_from_the_model(run: Runner) -> None:
    """The call gets a placeholder for its result, so that it does not dangle."""
    drop = stream_processor(lambda part: None if isinstance(part, ToolResult) else part)
    agent = agent_with(drop, script=[[CALL], ["b"]])
    seen = await run(agent)
    assert seen.result.tool_results == []
    assert seen.result.text == "b"
    told = repr(prompts_of(agent)[1])
    assert "meaning of x" not in told + repr(seen.result.messages)
    assert "withheld" in told


async def test_5_a_tool_result_that_is_rewritten_is_what_the_model_sees(run: Runner) -> None:
    """As the client, the result and the message."""

    def redact(part: Chunk) -> Any:
        return replace(part, result="***") if isinstance(part, ToolResult) else part

    agent = agent_with(stream_processor(redact), script=[[CALL], ["b"]])
    seen = await run(agent)
    assert [r.result for r in seen.result.tool_results] == ["***"]
    assert "meaning of x" not in repr(prompts_of(agent)[1]) + repr(seen.result)


# --- stream_parts -------------------------------------------------------------------------------


def without_edges_in_capitals(part: Chunk) -> Chunk | None:
    """Text in capitals, without the chunks that open and close it."""
    if isinstance(part, TextDelta):
        return replace(part, text=part.text.upper())
    return None if isinstance(part, TextStart | TextEnd) else part


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("window", [None, 0, 1, 3])
async def test_5_stream_parts_are_the_chunks_that_the_processor_was_given(
    run: Runner, window: int | None, *, asynchronous: bool
) -> None:
    """As its predecessors left them, this one included, over all steps; at most a window."""
    received: list[Chunk] = []
    wrong: list[Any] = []

    def look(args: Any) -> Any:
        received.append(args.part)
        kept = received if window is None else received[max(0, len(received) - window) :]
        if list(args.stream_parts) != kept:
            wrong.append((list(args.stream_parts), list(kept)))
        return args.part if is_text(args) else [args.part, DataChunk("data-x")]

    async def look_later(args: Any) -> Any:
        return look(args)

    hook = look_later if asynchronous else look
    first = stream_processor(without_edges_in_capitals, "first")
    chain = [first, processor("look", process_output_stream=hook, stream_window=window)]
    again = processor("again", process_api_error=lambda _: {"retry": True})
    script = [["a", CALL], ["b", fail()], ["c"]]
    seen = await run(agent_with(*chain, script=script, error_processors=[again]))
    assert not wrong
    assert seen.result.text == "AC"
    assert texts(received) == ["A", "B", "C"]
    assert "text-start" not in types(received)


@pytest.mark.parametrize("window", [-1, 2.5, "3", True])
def test_5_a_stream_window_that_is_no_count_is_refused(window: Any) -> None:
    """When the agent is made; the error names the processor and the attribute."""
    bad = stream_processor(lambda part: part, "looker", stream_window=window)
    with pytest.raises(ConfigurationError, match=r"output_processors\[0\]: .*'looker'.*window"):
        Agent(model=ScriptedModel([]), output_processors=[bad])
