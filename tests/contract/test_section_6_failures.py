"""Section 6 of the contract: failing models, hooks and tools, and the end of every run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from streampipe import AbortSignal, Agent, ErrorChunk, FinishChunk, StepFinish, ToolErrorChunk
from streampipe.chunks import ErrorData
from streampipe.contracts import HOOKS
from streampipe.errors import (
    IncompleteStreamError,
    ModelError,
    ProcessorError,
    ProviderError,
    StreampipeError,
)
from streampipe.messages import ToolInvocationPart
from streampipe.testing import Answer, ModelServer, ScriptedModel, call, fail, turn
from tests.contract.guards import (
    Runner,
    balanced,
    contents,
    guarded,
    list_of,
    lookup_into,
    model_of,
    processor,
    script_to,
    texts,
    types,
    unchanged,
)


def again(args: Any) -> Any:
    """Grant a retry."""
    return {"retry": True}


# --- process_api_error ------------------------------------------------------------------------

FAILURES: dict[str, tuple[list[Any], type[ModelError]]] = {
    "before the first chunk": ([fail(status=503)], ProviderError),
    "in mid-stream": (["half", fail(status=503)], ProviderError),
    "without the protocol's end": ([turn("half", incomplete=True)], IncompleteStreamError),
    "with an error that is not ours": (["half", fail(KeyError("choices"))], ModelError),
}


def script_with(failure: str, *more: Any) -> list[Any]:
    """A script whose first turn fails."""
    pieces, _ = FAILURES[failure]
    return [*(pieces if failure.startswith("without") else [pieces]), *more]


@pytest.mark.parametrize("failure", FAILURES)
async def test_6_process_api_error_is_called_for_every_model_failure(
    run: Runner, failure: str
) -> None:
    """Whenever it happens, mid-stream failures too; the hook is given the error."""
    errors: list[Any] = []
    script = script_with(failure, ["whole"])
    agent = Agent(
        model=ScriptedModel(script),
        error_processors=[processor(process_api_error=lambda args: errors.append(args.error))],
    )
    seen = await run(agent)
    _, kind = FAILURES[failure]
    assert [type(error) for error in errors] == [kind]
    assert seen.error is errors[0]


@pytest.mark.parametrize("failure", FAILURES)
async def test_6_a_retry_of_process_api_error_is_shown_as_one_of_abort(
    run: Runner, failure: str
) -> None:
    """The failed attempt is void: the client sees `step-finish` `retry` and a new `step-start`."""
    agent = Agent(
        model=ScriptedModel(script_with(failure, ["whole"])),
        error_processors=[processor(process_api_error=again)],
    )
    seen = await run(agent)
    assert seen.result.text == "whole"
    assert [message.text for message in seen.result.messages] == ["whole"]
    assert seen.result.retries == 1
    assert seen.result.finish_reason == "stop"
    if seen.chunks is not None:
        [voided] = (c for c in seen.chunks if isinstance(c, StepFinish) and c.reason == "retry")
        assert voided.tripwire is not None
        assert voided.tripwire.processor_id == "guard"
        assert voided.tripwire.retry is True
        assert balanced(seen.chunks[: seen.chunks.index(voided)])
        following = seen.chunks[seen.chunks.index(voided) + 1]
        assert following.to_wire()["payload"] | {"messageId": ""} == {
            "stepNumber": 0,
            "attempt": 1,
            "messageId": "",
        }
        assert not {"error", "tripwire"} & set(types(seen.chunks))


@pytest.mark.parametrize("failure", FAILURES)
async def test_6_a_model_failure_without_retry_ends_the_run(run: Runner, failure: str) -> None:
    """`error`, `finish` `error`; `generate` and `result` raise it, iteration does not."""
    agent = Agent(model=ScriptedModel(script_with(failure)))
    seen = await run(agent)
    _, kind = FAILURES[failure]
    assert isinstance(seen.error, kind)
    assert seen.result.error is seen.error
    assert seen.result.finish_reason == "error"
    assert contents(seen.result) == []
    if seen.chunks is not None:
        assert types(seen.chunks)[-2:] == ["error", "finish"]
        error = seen.chunks[-2]
        assert isinstance(error, ErrorChunk)
        status = 503 if kind is ProviderError else None
        assert error.error == ErrorData(kind.__name__, str(seen.error), status=status)
        assert seen.chunks[-1].to_wire()["payload"]["reason"] == "error"
        assert balanced(seen.chunks)


async def test_6_a_failure_keeps_what_came_before(run: Runner) -> None:
    """The error's `result` holds the accepted steps."""
    script = [["one", call("lookup", {"word": "x"})], ["two", fail()]]
    seen = await run(guarded("process_llm_response", lambda _: None, script=script))
    assert isinstance(seen.error, ProviderError)
    assert seen.result.text == "one"
    assert [r.result for r in seen.result.tool_results] == ["meaning of x"]


async def test_6_process_api_error_does_not_see_what_the_client_itself_cured(run: Runner) -> None:
    """The model client's own transient retries come first, count, and void nothing."""
    asked: list[Any] = []
    busy = Answer(b"{}", status=503, headers={"retry-after": "0"})
    errors = [processor(process_api_error=asked.append)]
    async with ModelServer([busy, ["cured"]]) as server:
        seen = await run(Agent(model=server.model(), error_processors=errors))
        assert len(server.requests) == 2
    assert seen.result.text == "cured"
    assert seen.result.retries == 1
    assert asked == []


async def test_6_process_api_error_sees_what_the_clients_retries_did_not_cure(run: Runner) -> None:
    """Once a request, not once a try; a retry asks anew."""
    asked: list[Any] = []

    def ask(args: Any) -> Any:
        asked.append(args.error.status)
        return {"retry": True}

    busy = Answer(b"{}", status=503, headers={"retry-after": "0"})
    async with ModelServer([busy, busy, ["late"]]) as server:
        model = server.model(max_retries=1)
        agent = Agent(model=model, error_processors=[processor(process_api_error=ask)])
        seen = await run(agent)
    assert asked == [503]
    assert seen.result.text == "late"


async def test_6_process_api_error_may_change_the_conversation_before_the_retry(
    run: Runner,
) -> None:
    """The new attempt is asked with what the hook made of the messages."""

    def shorten(args: Any) -> Any:
        args.message_list.remove_by_ids([args.messages[0].id])
        return {"retry": True}

    model = ScriptedModel([[fail(status=400)], ["ok"]])
    agent = Agent(model=model, error_processors=[processor(process_api_error=shorten)])
    await run(agent, ["too long", "question"])
    prompts = [[m.text for m in request.prompt] for request in model.requests]
    assert prompts == [["too long", "question"], ["question"]]


async def test_6_process_api_error_is_for_model_failures_only(run: Runner) -> None:
    """Neither a failing tool nor a failing hook is its business."""
    asked: list[Any] = []

    def broken(args: Any) -> Any:
        raise ValueError

    agent = Agent(
        model=ScriptedModel([[call("nothing")], ["two"]]),
        output_processors=[processor("broken", process_output_result=broken)],
        error_processors=[processor(process_api_error=asked.append)],
    )
    seen = await run(agent)
    assert isinstance(seen.error, ProcessorError)
    assert asked == []


async def test_6_a_retry_that_exceeds_the_budget_is_not_granted(run: Runner) -> None:
    """The error of the last attempt ends the run."""
    model = ScriptedModel([[fail(status=500)], [fail(status=501)], [fail(status=502)]])
    agent = Agent(
        model=model,
        error_processors=[processor(process_api_error=again)],
        max_processor_retries=2,
    )
    seen = await run(agent)
    assert isinstance(seen.error, ProviderError)
    assert seen.error.status == 502
    assert seen.result.retries == 2


# --- an exception in a hook ---------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("kind", [ValueError, StopIteration, asyncio.CancelledError])
@pytest.mark.parametrize("hook", HOOKS)
async def test_6_an_exception_in_a_hook_fails_closed(
    run: Runner, hook: str, kind: type[BaseException], *, asynchronous: bool
) -> None:
    """The run ends: `error` names processor and hook, `finish` `error`; the cause is chained."""
    log: list[str] = []

    def broken(args: Any) -> Any:
        log.append("broken")
        raise kind("broken")

    if asynchronous and kind is StopIteration:
        kind = LookupError  # a coroutine cannot raise StopIteration
    seen = await run(guarded(hook, broken, log=log, asynchronous=asynchronous))
    error = seen.error
    assert isinstance(error, ProcessorError)
    assert (error.processor_id, error.hook) == ("guard", hook)
    assert type(error.__cause__) is kind
    assert f"processor 'guard', {hook}: {kind.__name__}: " in str(error)
    assert seen.result.error is error
    assert seen.result.finish_reason == "error"
    assert log[-1] == "broken"  # nothing runs after it
    if seen.chunks is not None:
        told = seen.chunks[-2]
        assert isinstance(told, ErrorChunk)
        assert told.error == ErrorData(
            "ProcessorError", str(error), processor_id="guard", hook=hook
        )
        assert types(seen.chunks)[-1] == "finish"
        assert balanced(seen.chunks)


@pytest.mark.parametrize("hook", HOOKS)
async def test_6_the_step_of_a_broken_hook_is_void(run: Runner, hook: str) -> None:
    """What a guard has not passed is in no accessor."""

    def broken(args: Any) -> Any:
        raise ValueError

    script = [["one"]] if hook == "process_output_result" else None
    seen = await run(guarded(hook, broken, script=script))
    assert contents(seen.result) == []


async def test_6_content_that_a_broken_guard_has_not_passed_never_reaches_the_client(
    run: Runner,
) -> None:
    """Neither the chunk it broke on nor any later one."""

    def breaks_on_secrets(args: Any) -> Any:
        if args.part.text == "SECRET":
            raise ValueError
        return args.part

    script = [["fine ", "SECRET", " more"]]
    agent = guarded("process_output_stream", breaks_on_secrets, script=script)
    seen = await run(agent)
    assert contents(seen.result) == []
    if seen.chunks is not None:
        assert texts(seen.chunks) == ["fine "]
    assert model_of(agent).open == 0


# --- tools --------------------------------------------------------------------------------------


def half(number: int) -> float:
    """Half of a number.

    Raises:
        ValueError: it is 13.
    """
    if number == 13:
        msg = "13 is bad luck"
        raise ValueError(msg)
    return number / 2


TOOL_FAILURES: dict[str, tuple[Any, list[str]]] = {
    "raises": (call("half", {"number": 13}), ["ValueError", "13 is bad luck"]),
    "unknown tool": (call("double", {"number": 1}), ["no tool 'double'", "available tools: half"]),
    "wrong type": (call("half", {"number": "many"}), ["'half'", "number", "integer"]),
    "missing argument": (call("half", {}), ["'half'", "number", "required"]),
    "surplus argument": (call("half", {"number": 2, "by": 3}), ["'half'", "by"]),
    "no object": (call("half", [2]), ["'half'", "must be a JSON object"]),
    "no JSON": (call("half", '{"number": 2'), ["'half'", "not valid JSON", '{"number": 2']),
}


@pytest.mark.parametrize("failure", TOOL_FAILURES)
async def test_6_a_failing_tool_is_told_to_the_model_and_the_loop_goes_on(
    run: Runner, failure: str
) -> None:
    """A `tool-error` chunk, the same words for the model, no `process_tool_result`."""
    asked, words = TOOL_FAILURES[failure]
    checked: list[Any] = []
    model = ScriptedModel([["let me see", asked], ["sorry"]])
    agent = Agent(
        model=model,
        tools=[half],
        output_processors=[processor(process_tool_result=checked.append)],
    )
    seen = await run(agent)
    assert seen.error is None
    assert seen.result.finish_reason == "stop"
    assert seen.result.text == "let me seesorry"
    assert checked == []
    [told] = seen.result.steps[0].tool_errors
    assert isinstance(told, ToolErrorChunk)
    for word in words:
        assert word in told.error
    [outcome] = model.requests[1].prompt[-1].content
    assert getattr(outcome, "result", None) == told.error
    assert getattr(outcome, "is_error", False) is True
    [stored] = (p for p in seen.result.messages[0].parts if isinstance(p, ToolInvocationPart))
    assert (stored.result, stored.is_error, stored.state) == (told.error, True, "result")
    if seen.chunks is not None:
        assert [c for c in seen.chunks if c.type == "tool-error"] == [told]
        assert "tool-result" not in types(seen.chunks)
        assert "error" not in types(seen.chunks)


async def test_6_one_failing_tool_leaves_the_others_their_results(run: Runner) -> None:
    """Outcomes come in call order, each for its own call."""
    asked = [call("half", {"number": n}, id=f"c{n}") for n in (2, 13, 4)]
    agent = Agent(model=ScriptedModel([asked, ["done"]]), tools=[half])
    seen = await run(agent)
    [step, _] = seen.result.steps
    assert [(r.tool_call_id, r.result) for r in step.tool_results] == [("c2", 1.0), ("c4", 2.0)]
    assert [e.tool_call_id for e in step.tool_errors] == ["c13"]
    if seen.chunks is not None:
        outcomes = [t for t in types(seen.chunks) if t in ("tool-result", "tool-error")]
        assert outcomes == ["tool-result", "tool-error", "tool-result"]


# --- the end of every run -------------------------------------------------------------------------


def cancelled() -> AbortSignal:
    """A signal that says stop."""
    signal = AbortSignal()
    signal.abort("user left")
    return signal


def blocked(hook: str) -> dict[str, Any]:
    """Options with a guard that blocks at a hook."""
    return {list_of(hook): [processor(**{hook: lambda args: args.abort()})]}


ENDINGS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "stop": (["fine"], {}),
    "length": ([turn("cut", finish_reason="length")], {}),
    "tool-calls": ([[call("half", {"number": 2})]], {"max_steps": 1}),
    "content-filter": ([turn("", finish_reason="content-filter")], {}),
    "error": ([[fail()]], {}),
    "other": (["no"], blocked("process_output_step")),
    "aborted": (["late"], {"abort_signal": cancelled()}),
}


@pytest.mark.parametrize("reason", ENDINGS)
async def test_6_every_run_ends_with_exactly_one_finish(run: Runner, reason: str) -> None:
    """Whatever happened; it says how, and so does the result."""
    script, options = ENDINGS[reason]
    seen = await run(Agent(model=ScriptedModel(script), tools=[half]), **options)
    assert seen.result.finish_reason == reason
    if seen.chunks is not None:
        finishes = [chunk for chunk in seen.chunks if isinstance(chunk, FinishChunk)]
        assert [finish.reason for finish in finishes] == [reason]
        assert seen.chunks[-1] is finishes[0]
        assert finishes[0].usage == seen.result.usage
        assert balanced(seen.chunks)


@pytest.mark.parametrize("reason", ENDINGS)
async def test_6_an_observed_run_tells_its_end_in_chunks_and_completes(reason: str) -> None:
    """As a cold observable a failed or blocked run completes, behind its `finish`."""
    script, options = ENDINGS[reason]
    agent = Agent(model=ScriptedModel(script), tools=[half])
    chunks = [chunk async for chunk in agent.observe("hi", **options)]
    assert [chunk.type for chunk in chunks if chunk.type == "finish"] == ["finish"]
    assert chunks[-1].to_wire()["payload"]["reason"] == reason


@pytest.mark.parametrize("hook", HOOKS)
async def test_6_a_cancel_during_any_hook_ends_with_abort_and_finish(hook: str) -> None:
    """`cancel` while a hook waits: `abort` with its reason, then `finish` `aborted`."""
    entered = asyncio.Event()

    async def waits(args: Any) -> Any:
        entered.set()
        await asyncio.Event().wait()
        return unchanged(hook, args)

    lists: dict[str, Any] = {list_of(hook): [processor(**{hook: waits})]}
    agent = Agent(model=ScriptedModel(script_to(hook)), tools=[lookup_into([])], **lists)
    async with agent.stream("hi") as one:
        reading = asyncio.ensure_future(collect(one))
        await entered.wait()
        await one.cancel("enough")
        chunks = await reading
        result = await one.result()
    assert types(chunks)[-2:] == ["abort", "finish"]
    assert chunks[-2].to_wire()["payload"] == {"reason": "enough"}
    assert result.finish_reason == "aborted"
    assert result.error is None
    assert balanced(chunks)


@pytest.mark.parametrize("way", ["cancel", "signal"])
@pytest.mark.parametrize("hook", HOOKS)
async def test_6_a_cancel_from_within_any_hook_ends_with_abort_and_finish(
    hook: str, way: str
) -> None:
    """A hook that stops its own run is obeyed when it returns: nothing runs after it."""
    log: list[str] = []
    signal = AbortSignal()

    def stop(args: Any) -> Any:
        log.append("stop")
        if way == "signal":
            signal.abort("enough")
        else:
            one.cancel("enough")
        return unchanged(hook, args)

    one = guarded(hook, stop, log=log).stream("hi", abort_signal=signal)
    chunks = await collect(one)
    result = await one.result()
    assert types(chunks)[-2:] == ["abort", "finish"]
    assert chunks[-2].to_wire()["payload"] == {"reason": "enough"}
    assert result.finish_reason == "aborted"
    assert balanced(chunks)
    assert {"model", "tool"}.isdisjoint(log[log.index("stop") :])


async def collect(chunks: Any) -> list[Any]:
    """All of an async iterable."""
    return [chunk async for chunk in chunks]


async def test_6_a_model_that_was_cancelled_by_itself_is_a_failure(run: Runner) -> None:
    """A cancel that the model met on its own is not one of the run, nor of its caller."""
    agent = Agent(model=ScriptedModel([["half", fail(asyncio.CancelledError())]]))
    seen = await run(agent)
    assert isinstance(seen.error, StreampipeError)
    assert isinstance(seen.error.__cause__, asyncio.CancelledError)
    assert seen.result.finish_reason == "error"
