"""Section 6 of the contract: what `abort` does, without and with `retry`, and the retry budget."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from streampipe import Agent, StepFinish, StepStart, TripWire, TripwireChunk, TripwireData
from streampipe.contracts import HOOKS, ProcessorViolation
from streampipe.errors import ConfigurationError
from streampipe.testing import ScriptedModel, call, fail
from tests.contract.guards import (
    ENDED,
    STEP_HOOKS,
    Act,
    Runner,
    balanced,
    contents,
    guard,
    guarded,
    list_of,
    model_of,
    processor,
    script_to,
    texts,
    types,
    unchanged,
)

TRIPWIRE = TripwireData("no", None, {"category": "pii"}, "guard")
REASON = "mention the price"
WISH = TripwireData(REASON, retry=True, processor_id="guard")


def block(args: Any) -> Any:
    """Block the run."""
    args.abort("no", metadata={"category": "pii"})


def reject_once(args: Any) -> Any:
    """Ask for one retry; then change nothing."""
    if args.retry_count == 0:
        args.abort(REASON, retry=True, metadata={"score": 3})
    return getattr(args, "part", None)


def reject(args: Any) -> Any:
    """Ask for a retry whenever called."""
    args.abort(REASON, retry=True)


# --- abort without retry ----------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("hook", HOOKS)
async def test_6_abort_without_retry_from_any_hook_ends_the_run(
    run: Runner, hook: str, *, asynchronous: bool
) -> None:
    """Open parts are closed, one `tripwire` says who and why, `finish` says `other`; no error."""
    seen = await run(guarded(hook, block, asynchronous=asynchronous))
    assert seen.result.tripwire == TRIPWIRE
    assert seen.result.finish_reason == "other"
    assert seen.result.error is None
    if seen.chunks is not None:
        tail = [chunk for chunk in seen.chunks if chunk.type in ENDED]
        run_id = seen.result.run_id
        wire = TripwireChunk("no", None, {"category": "pii"}, "guard", run_id=run_id)
        assert tail[0] == wire
        assert types(seen.chunks)[-2:] == types(tail) == ["tripwire", "finish"]
        assert seen.chunks[-1].to_wire()["payload"]["reason"] == "other"
        assert balanced(seen.chunks)


@pytest.mark.parametrize("hook", HOOKS)
async def test_6_no_later_hook_tool_or_model_call_runs_after_a_block(
    run: Runner, hook: str
) -> None:
    """The block is the last thing that happens."""
    log: list[str] = []

    def noted(args: Any) -> Any:
        log.append("block")
        block(args)

    await run(guarded(hook, noted, log=log))
    assert log[-1] == "block"
    assert log.count("block") == 1


@pytest.mark.parametrize("hook", HOOKS)
async def test_6_the_step_in_which_a_block_fell_is_void(run: Runner, hook: str) -> None:
    """Whichever hook blocked, the step's text and calls are in no accessor."""
    turns = script_to(hook)[:1] if hook != "process_output_result" else [["one"]]
    result = (await run(guarded(hook, block, script=turns))).result
    assert contents(result) == []


@pytest.mark.parametrize("hook", STEP_HOOKS)
async def test_6_accepted_steps_stay_when_a_later_one_is_blocked(run: Runner, hook: str) -> None:
    """A block in the second step leaves the first one in every accessor."""
    first = ["one", call("lookup", {"word": "x"})]
    last = {"process_api_error": fail(), "process_tool_result": call("lookup", {"word": "y"})}
    script = [first, ["two", last.get(hook, "")]]

    def in_second_step(args: Any) -> bool:
        return bool(getattr(args, "step_number", model_of(agent).calls - 1) == 1)

    agent = guarded(hook, block, when=in_second_step, script=script)
    result = (await run(agent)).result
    assert result.tripwire == TRIPWIRE
    assert result.text == "one"
    assert [step.text for step in result.steps] == ["one"]
    assert [message.text for message in result.messages] == ["one"]
    assert [tool_call.args for tool_call in result.tool_calls] == [{"word": "x"}]
    assert [r.result for r in result.tool_results] == ["meaning of x"]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("hook", HOOKS)
async def test_6_code_after_abort_does_not_run_and_except_exception_cannot_undo_it(
    run: Runner, hook: str, *, asynchronous: bool
) -> None:
    """A hook's own `except Exception` does not see the block."""
    went_on: list[str] = []

    def careless(args: Any) -> Any:
        try:
            args.abort("no")
            went_on.append("after abort")
        except Exception:  # noqa: BLE001 - as hooks do around a call of a service
            went_on.append("swallowed")
        return unchanged(hook, args)

    result = (await run(guarded(hook, careless, asynchronous=asynchronous))).result
    assert went_on == []
    assert result.tripwire is not None
    assert result.tripwire.reason == "no"


@pytest.mark.parametrize("ending", ["returns", "raises"])
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("hook", HOOKS)
async def test_6_even_a_bare_except_cannot_undo_a_block(
    run: Runner, hook: str, ending: str, *, asynchronous: bool
) -> None:
    """The run remembers that `abort` was called, however the hook ended."""

    def stubborn(args: Any) -> Any:
        try:
            args.abort("no")
        except BaseException as error:  # the worst that a hook can do
            if ending == "raises":
                msg = "something else"
                raise ValueError(msg) from error
        return unchanged(hook, args)

    result = (await run(guarded(hook, stubborn, asynchronous=asynchronous))).result
    assert result.tripwire == TripwireData("no", None, None, "guard")
    assert result.error is None


@pytest.mark.parametrize("hook", HOOKS)
async def test_6_a_tripwire_raised_by_hand_blocks_as_well(run: Runner, hook: str) -> None:
    """`raise TripWire(...)` is an abort of the processor that raised it."""

    def by_hand(args: Any) -> Any:
        raise TripWire("no")

    result = (await run(guarded(hook, by_hand))).result
    assert result.finish_reason == "other"
    assert result.tripwire == TripwireData("no", None, None, "guard")


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_6_a_block_closes_the_models_stream_at_once(
    run: Runner, *, asynchronous: bool
) -> None:
    """After a block at the second piece of 60 no more is pulled, and the stream is closed."""

    def second_piece(args: Any) -> bool:
        return bool(args.part.type == "text-delta" and args.part.text == "2 ")

    script = [[f"{n} " for n in range(1, 61)]]
    agent = guarded(
        "process_output_stream", block, when=second_piece, script=script, asynchronous=asynchronous
    )
    seen = await run(agent)
    assert model_of(agent).pulled == 4  # response-metadata, text-start and two pieces
    assert model_of(agent).open == 0
    if seen.chunks is not None:
        assert texts(seen.chunks) == ["1 "]
        assert types(seen.chunks)[-4:] == ["text-delta", "text-end", "tripwire", "finish"]


async def test_6_a_block_is_told_with_its_defaults(run: Runner) -> None:
    """Without arguments the reason is empty, and neither retry nor metadata are on the wire."""
    seen = await run(guarded("process_output_step", lambda args: args.abort()))
    assert seen.result.tripwire == TripwireData("", None, None, "guard")
    if seen.chunks is not None:
        assert seen.chunks[-2].to_wire()["payload"] == {"reason": "", "processorId": "guard"}


@pytest.mark.parametrize("hook", HOOKS)
async def test_6_every_abort_is_told_to_on_violation_once(run: Runner, hook: str) -> None:
    """With id, reason and metadata; what the callback raises is no matter."""
    told: list[ProcessorViolation] = []

    def on_violation(violation: ProcessorViolation) -> None:
        told.append(violation)
        msg = "broken callback"
        raise RuntimeError(msg)

    agent = guarded(hook, block)
    lists: dict[str, Any] = dict(agent.options)
    lists[list_of(hook)][0].on_violation = on_violation
    result = (await run(agent)).result
    assert told == [ProcessorViolation("guard", "no", {"category": "pii"})]
    assert result.tripwire == TRIPWIRE


async def test_6_a_block_cancels_the_tools_that_still_run(run: Runner) -> None:
    """One tool's result is blocked while another one works: that one is stopped."""
    log: list[str] = []

    async def work(seconds: int) -> str:
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            log.append("cancelled")
            raise
        return "done"

    script: list[Any] = [[call("work", {"seconds": 0}), call("work", {"seconds": 30})]]
    output = [guard("process_tool_result", block)]
    agent = Agent(model=ScriptedModel(script), tools=[work], output_processors=output)
    assert (await run(agent)).result.tripwire == TRIPWIRE
    assert log == ["cancelled"]


# --- abort with retry -------------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("hook", STEP_HOOKS)
async def test_6_abort_with_retry_runs_the_same_step_again(
    run: Runner, hook: str, *, asynchronous: bool
) -> None:
    """The client sees the attempt voided and a new one of the same step, and no tripwire."""
    script = [["one"], ["two"]] if hook == "process_output_result" else script_to(hook)
    agent = guarded(
        hook, reject_once, script=script, max_processor_retries=1, asynchronous=asynchronous
    )
    seen = await run(agent)
    assert seen.result.finish_reason == "stop"
    assert seen.result.tripwire is None
    assert seen.result.retries == 1
    assert seen.result.text == ("onetwo" if never_called(hook) else "two")
    if seen.chunks is None:
        return
    starts = [chunk for chunk in seen.chunks if isinstance(chunk, StepStart)]
    assert [(s.step_number, s.attempt) for s in starts][:2] == [(0, 0), (0, 1)]
    [voided] = (c for c in seen.chunks if isinstance(c, StepFinish) and c.reason == "retry")
    assert voided.tripwire == TripwireData(
        REASON, retry=True, metadata={"score": 3}, processor_id="guard"
    )
    assert seen.chunks[seen.chunks.index(voided) + 1] == starts[1]
    assert "tripwire" not in types(seen.chunks)
    assert balanced(seen.chunks[: seen.chunks.index(voided)])
    assert balanced(seen.chunks)


def never_called(hook: str) -> bool:
    """Whether the hook rejects before the model is called: the first turn is then not used up."""
    return hook in ("process_input_step", "process_llm_request")


@pytest.mark.parametrize("hook", STEP_HOOKS)
async def test_6_a_retry_tells_the_model_why_and_forgets_the_rejected_answer(
    run: Runner, hook: str
) -> None:
    """The reason is a system message of that call only; the rejected answer is in no prompt."""
    script = [
        ["draft", *([fail()] if hook == "process_api_error" else [call("lookup", {"word": "d"})])],
        ["step", call("lookup", {"word": "x"})],
        ["end"],
    ]
    if hook == "process_output_result":
        script[0] = ["draft"]
    if never_called(hook):
        del script[0]
    agent = guarded(hook, reject_once, script=script, max_processor_retries=1)
    seen = await run(agent)
    model = model_of(agent)
    model.assert_complete()
    retried, following = model.prompts()[-2:]
    assert retried.count(REASON) == 1
    assert model.requests[-2].prompt[0].role == "system"
    assert REASON in model.requests[-2].prompt[0].text
    assert REASON not in following
    assert "draft" not in retried + following
    assert [message.text for message in seen.result.messages] == ["step", "end"]


@pytest.mark.parametrize("hook", STEP_HOOKS)
async def test_6_retry_count_is_one_higher_in_every_hook_of_the_new_attempt(
    run: Runner, hook: str
) -> None:
    """Each rejection is counted, and every hook is told how many there were."""
    counts: list[int] = []

    def twice(args: Any) -> Any:
        counts.append(args.retry_count)
        if args.retry_count < 2:
            args.abort(REASON, retry=True)
        return unchanged(hook, args)

    failing = hook == "process_api_error"
    script = [["a", fail()] if failing else ["a", call("lookup", {"word": "a"})]] * 3 + [["b"]]
    if hook == "process_output_result":
        script = [["a"]] * 3
    agent = guarded(hook, twice, script=script, max_processor_retries=3)
    if failing:  # the third failure is passed on
        seen = await run(agent)
        assert counts == [0, 1, 2]
        assert seen.error is not None
        return
    seen = await run(agent)
    assert counts[:3] == [0, 1, 2]
    assert set(counts[2:]) == {2}
    assert seen.result.retries == 2


@pytest.mark.parametrize("budget", [0, 5])
async def test_6_abort_with_retry_from_process_input_is_a_block(run: Runner, budget: int) -> None:
    """There is no step to try again: the run ends, and the tripwire says `retry: true`."""
    agent = guarded("process_input", reject, max_processor_retries=budget)
    seen = await run(agent)
    assert seen.result.finish_reason == "other"
    assert seen.result.retries == 0
    assert seen.result.tripwire == WISH
    assert model_of(agent).calls == 0
    if seen.chunks is not None:
        assert types(seen.chunks) == ["start", "tripwire", "finish"]
        assert seen.chunks[1].to_wire()["payload"]["retry"] is True


@pytest.mark.parametrize("hook", STEP_HOOKS)
async def test_6_abort_with_retry_without_budget_is_a_block(run: Runner, hook: str) -> None:
    """Once the budget is spent the run ends; the tripwire says `retry: true`, the step is void."""
    failing = hook == "process_api_error"
    turn: list[Any] = ["one", fail()] if failing else ["one", call("lookup", {"word": "x"})]
    script = [["one"] if hook == "process_output_result" else turn] * 3
    agent = guarded(hook, reject, script=script, max_processor_retries=2)
    seen = await run(agent)
    assert seen.result.retries == 2
    assert seen.result.finish_reason == "other"
    assert seen.result.tripwire == WISH
    assert contents(seen.result) == []
    if seen.chunks is not None:
        assert types(seen.chunks)[-2:] == ["tripwire", "finish"]
        voids = [c for c in seen.chunks if isinstance(c, StepFinish) and c.reason == "retry"]
        assert len(voids) == 2
        assert balanced(seen.chunks)


@pytest.mark.parametrize("budget", [None, 1])
async def test_6_a_retry_without_any_budget_is_told_in_the_log(
    run: Runner, caplog: pytest.LogCaptureFixture, budget: int | None
) -> None:
    """Else a guard that asks for another answer seems to do no more than block."""
    options: dict[str, Any] = {} if budget is None else {"max_processor_retries": budget}
    agent = guarded("process_output_step", reject, script=[["one"]] * 3, **options)
    await run(agent)
    told = [message for message in caplog.messages if "max_processor_retries" in message]
    assert len(told) == (budget is None)
    assert all(message.startswith("processor 'guard' asked for another") for message in told)


# --- the budget -------------------------------------------------------------------------------


async def retries_of(run: Runner, agent: Agent, **options: Any) -> int:
    """How many retries an agent with an insatiable guard got."""
    result = (await run(agent, **options)).result
    assert result.finish_reason == "other"
    return int(result.retries)


def insatiable(**options: Any) -> Agent:
    """An agent whose answers are all rejected."""
    model = ScriptedModel(["no"], repeat=True)
    output = [guard("process_output_step", reject)]
    return Agent(model=model, output_processors=output, **options)


NO_HELP = processor("no-help", process_api_error=lambda _: None)


@pytest.mark.parametrize(
    ("agent", "on_call", "budget"),
    [
        ({}, {}, 0),
        ({"max_processor_retries": 3}, {}, 3),
        ({"max_processor_retries": 3}, {"max_processor_retries": 1}, 1),
        ({"max_processor_retries": 3}, {"max_processor_retries": 0}, 0),
        ({}, {"max_processor_retries": 2}, 2),
        ({"error_processors": [NO_HELP]}, {}, 10),
        ({}, {"error_processors": [NO_HELP]}, 10),
        ({"error_processors": []}, {}, 0),
        ({"error_processors": [NO_HELP]}, {"error_processors": []}, 0),
        ({"error_processors": [NO_HELP], "max_processor_retries": 0}, {}, 0),
        ({"error_processors": [NO_HELP]}, {"max_processor_retries": 4}, 4),
    ],
)
async def test_6_budget_is_the_calls_else_the_agents_else_0_or_10_with_error_processors(
    run: Runner, agent: dict[str, Any], on_call: dict[str, Any], budget: int
) -> None:
    """Where the retry budget comes from."""
    assert await retries_of(run, insatiable(**agent), **on_call) == budget


async def test_6_aborts_and_api_errors_share_the_budget(run: Runner) -> None:
    """A failed call, a rejected answer, and the budget of two is spent."""
    model = ScriptedModel([[fail()], ["no"], ["no"], ["never asked for"]])
    errors = [processor("again", process_api_error=lambda _: {"retry": True})]
    output = [guard("process_output_step", reject)]
    agent = Agent(
        model=model, error_processors=errors, output_processors=output, max_processor_retries=2
    )
    assert await retries_of(run, agent) == 2
    assert model.calls == 3


async def test_6_the_budget_is_the_runs_not_the_steps(run: Runner) -> None:
    """A retry in the first step is missing in the second."""

    def each_first_attempt(args: Any) -> Any:
        if args.step_number == 0 and args.retry_count == 0:
            args.abort(REASON, retry=True)
        if args.step_number == 1:
            args.abort(REASON, retry=True)

    used = call("lookup", {"word": "x"})
    script = [["a", used], ["b", used], ["c"], ["d"]]
    agent = guarded(
        "process_output_step", each_first_attempt, script=script, max_processor_retries=1
    )
    seen = await run(agent)
    assert seen.result.finish_reason == "other"
    assert seen.result.retries == 1
    assert seen.result.text == "b"


@pytest.mark.parametrize("budget", [-1, 1.5, "3", True])
async def test_6_a_budget_that_is_no_count_is_refused(run: Runner, budget: Any) -> None:
    """Before any model call, by name."""
    agent = insatiable()
    with pytest.raises(ConfigurationError, match="max_processor_retries must be a whole number"):
        await run(agent, max_processor_retries=budget)


# --- what stays of a rejected attempt -----------------------------------------------------------


async def test_6_usage_counts_rejected_attempts(run: Runner) -> None:
    """Tokens that a rejected answer cost were spent: the run's usage holds them."""
    agent = guarded(
        "process_output_step", reject_once, script=[["a"], ["b"]], max_processor_retries=1
    )
    seen = await run(agent)
    assert seen.result.usage.input_tokens == 2
    assert seen.result.steps[0].usage.input_tokens == 1


async def test_6_tools_of_a_rejected_step_do_not_run(run: Runner) -> None:
    """A step that is rejected before its tools leaves no effect; the accepted one runs them."""
    log: list[str] = []
    used = call("lookup", {"word": "x"})
    agent = guarded(
        "process_output_step",
        reject_once,
        script=[["a", used], ["b", used], ["c"]],
        log=log,
        max_processor_retries=1,
    )
    await run(agent)
    assert log.count("tool") == 1


@pytest.mark.parametrize("act", [block, reject])
async def test_6_a_second_abort_in_one_call_changes_nothing(run: Runner, act: Act) -> None:
    """The first abort of a call counts."""

    def twice(args: Any) -> Any:
        try:
            act(args)
        except BaseException:  # noqa: BLE001 - on purpose
            args.abort("another")

    result = (await run(guarded("process_output_step", twice))).result
    assert result.tripwire is not None
    assert result.tripwire.reason in ("no", REASON)
