"""The hooks between chunks, each as an operator used alone in `pipe()`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from streampipe import MessageList, StepResult, TextDelta, ToolResult, TripWire
from streampipe import operators as ops
from streampipe.chunks import Chunk, FinishChunk
from streampipe.contracts import ModelRequest, OutputResult
from streampipe.errors import ConfigurationError, ProcessorError, ProviderError
from streampipe.messages import Message, PromptMessage, ToolInvocationPart
from streampipe.operators import ModelAnswer, ModelCall, StepInput
from streampipe.testing import ScriptedModel

MODEL = ScriptedModel([["never asked"]])


def processor(hook: str, function: Any, name: str = "p") -> Any:
    """An object with an id and one hook."""
    return type("Made", (), {"id": name, hook: lambda self, args: function(args)})()


async def elements(source: Any) -> list[Any]:
    """Everything that a stream emits."""
    return [element async for element in source]


async def test_process_input_changes_each_conversation() -> None:
    """Each element is a conversation; list order decides."""
    first = processor("process_input", lambda a: [*a.messages, Message.user("one")], "first")
    second = processor("process_input", lambda a: [*a.messages, Message.user("two")], "second")
    source = ops.of(MessageList(["hi"]), MessageList(["ho"]))
    got = await elements(source.pipe(ops.process_input([first, second])))
    assert [[m.text for m in chat.all] for chat in got] == [
        ["hi", "one", "two"],
        ["ho", "one", "two"],
    ]


async def test_state_lasts_over_the_elements_of_one_subscription_only() -> None:
    """A processor keeps its dict within a subscription, and starts anew in the next."""
    seen: list[int] = []

    def count(args: Any) -> Any:
        args.state["n"] = args.state.get("n", 0) + 1
        seen.append(args.state["n"])
        return args.messages

    stage = ops.process_input([processor("process_input", count)])
    for _ in range(2):
        await elements(ops.of(MessageList(["a"]), MessageList(["b"])).pipe(stage))
    assert seen == [1, 2, 1, 2]


async def test_process_input_step_overrides_what_the_step_asks() -> None:
    """A dict of overrides changes the step input; the next processor sees them."""
    seen: list[Any] = []
    first = processor("process_input_step", lambda a: {"tool_choice": "none"}, "first")
    second = processor("process_input_step", lambda a: seen.append(a.tool_choice), "second")
    chat = MessageList(["hi"])
    stage = ops.process_input_step([first, second], messages=chat)
    got = await elements(ops.of(StepInput(MODEL)).pipe(stage))
    assert got[0].tool_choice == "none"
    assert seen == ["none"]


async def test_process_llm_request_rewrites_or_replays() -> None:
    """A prompt replaces the prompt; a response stands for the model's answer."""
    call = ModelCall(MODEL, ModelRequest([PromptMessage.system("be brief")]))
    stage = processor(
        "process_llm_request",
        lambda a: {"prompt": ["be long"], "response": [TextDelta("0", "cached")]},
    )
    got = await elements(ops.of(call).pipe(ops.process_llm_request([stage])))
    assert [m.text for m in got[0].request.prompt] == ["be long"]
    assert got[0].replay == [TextDelta("0", "cached")]


async def test_process_llm_response_only_looks() -> None:
    """The answer passes; what the hook returns is an error."""
    answer = ModelAnswer(ModelCall(MODEL, ModelRequest([])), [TextDelta("0", "x")])
    seen: list[Any] = []
    look = processor("process_llm_response", lambda a: seen.extend(a.chunks))
    got = await elements(ops.of(answer).pipe(ops.process_llm_response([look])))
    assert got == [answer]
    assert seen == [TextDelta("0", "x")]
    wrong = processor("process_llm_response", lambda a: [1])
    with pytest.raises(ProcessorError, match="process_llm_response"):
        await elements(ops.of(answer).pipe(ops.process_llm_response([wrong])))


async def test_process_api_error_tries_again_while_the_budget_lasts() -> None:
    """A hook that asks for a retry has the source subscribed to again, `max_retries` times."""
    attempts: list[int] = []

    async def source(emit: Any) -> None:
        attempts.append(1)
        emit(TextDelta("0", "x"))
        raise ProviderError("no", status=400)

    counts: list[int] = []

    def ask(args: Any) -> dict[str, bool]:
        counts.append(args.retry_count)
        return {"retry": True}

    stage = ops.process_api_error([processor("process_api_error", ask)], max_retries=2)
    got: list[Chunk] = []
    pipeline: Any = ops.create(source).pipe(stage)
    with pytest.raises(ProviderError):
        async for chunk in pipeline:
            got.append(chunk)  # noqa: PERF401 - what came before the error counts
    assert len(attempts) == 3
    assert counts == [0, 1, 2]
    assert [c.type for c in got].count("step-finish") == 2


async def test_each_subscription_of_process_api_error_has_its_own_run() -> None:
    """Its state and its conversation begin anew, and two at once do not share them."""
    seen: list[tuple[int, int]] = []

    async def source(emit: Any) -> None:
        await asyncio.sleep(0)
        raise ProviderError("no", status=400)

    def ask(args: Any) -> dict[str, bool]:
        args.state["n"] = args.state.get("n", 0) + 1
        seen.append((args.state["n"], args.retry_count))
        args.message_list.add("again")
        assert len(args.message_list.all) == args.state["n"]
        return {"retry": True}

    stage = ops.process_api_error([processor("process_api_error", ask)], max_retries=1)
    failing: Any = ops.create(source).pipe(stage)
    ends = await asyncio.gather(*(elements(failing) for _ in range(2)), return_exceptions=True)
    assert [type(end) for end in ends] == [ProviderError] * 2
    assert seen == [(1, 0), (1, 0), (2, 1), (2, 1)]


async def test_process_output_step_may_reject() -> None:
    """`abort` ends the stream with the wire, before the step is emitted."""

    def reject(args: Any) -> None:
        args.abort(f"not {args.text}", retry=True)

    stage = ops.process_output_step([processor("process_output_step", reject, "judge")])
    with pytest.raises(TripWire) as caught:
        await elements(ops.of(StepResult(0, "good")).pipe(stage))
    assert (caught.value.reason, caught.value.retry, caught.value.processor_id) == (
        "not good",
        True,
        "judge",
    )


async def test_process_tool_result_shows_what_a_hook_made_of_it() -> None:
    """A result replaced in the message list is what the chunk shows; other chunks pass."""
    part = ToolInvocationPart("c1", "lookup", {})
    chat = MessageList([])
    chat.add(Message("assistant", [part]), source="response")

    def redact(args: Any) -> None:
        assert args.result == "secret"
        args.message_list.update_tool_invocation(args.tool_call_id, result="[gone]")

    stage = ops.process_tool_result([processor("process_tool_result", redact)], messages=chat)
    source = ops.of(FinishChunk(), ToolResult("c1", "lookup", "secret"))
    got = await elements(source.pipe(stage))
    assert got == [FinishChunk(), ToolResult("c1", "lookup", "[gone]")]
    assert part.result == "[gone]"


async def test_process_output_result_gets_the_run() -> None:
    """The hook sees text, usage, reason and steps."""
    seen: list[str] = []
    look = processor("process_output_result", lambda a: seen.append(a.result.text))
    result = OutputResult("done", FinishChunk().usage or StepResult().usage, "stop", [])
    assert await elements(ops.of(result).pipe(ops.process_output_result([look]))) == [result]
    assert seen == ["done"]


async def test_a_hook_that_raises_is_named_and_passes_catches_before_it() -> None:
    """What a stage raises is not taken for a failure of its source by a catch in front of it."""
    asked: list[Any] = []

    def handler(error: Any, attempt: int) -> bool:
        asked.append(error)
        return True

    def broken(args: Any) -> None:
        raise ProviderError("mine", status=500)

    pipeline = ops.of(ToolResult("c", "t", 1)).pipe(
        ops.catch_api_error(handler),
        ops.process_tool_result([processor("process_tool_result", broken, "broken")]),
    )
    with pytest.raises(ProcessorError, match=r"'broken', process_tool_result.*mine"):
        await elements(pipeline)
    assert asked == []


@pytest.mark.parametrize(
    "stage",
    [
        ops.process_input,
        ops.process_input_step,
        ops.process_llm_request,
        ops.process_llm_response,
        ops.process_api_error,
        ops.process_output_step,
        ops.process_tool_result,
        ops.process_output_result,
    ],
)
def test_a_processor_without_the_hook_is_refused_when_built(stage: Any) -> None:
    """Naming the operator, the processor, and what it does define."""
    lacking = processor("process_output_stream", lambda a: a.part, "lacking")
    with pytest.raises(ConfigurationError, match=r"ops\.process_.*'lacking'.*output_stream"):
        ops.of().pipe(stage([lacking]))
