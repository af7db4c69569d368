"""The spans of a run: which there are, what they say, and what is below them."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator
from typing import Any

import pytest
from opentelemetry.trace import SpanKind, StatusCode, get_current_span

from streampipe import Agent, Chunk, FinishChunk, TextDelta, Usage, tool
from streampipe import operators as ops
from streampipe.chunks import ResponseMetadata
from streampipe.contracts import ModelRequest, RunResult
from streampipe.errors import StreampipeError
from streampipe.models import FallbackModel
from streampipe.testing import ModelServer, ScriptedModel, Turn, call, fail
from tests.tracing.spans import Spans, events, parent_id, span_id, told


@tool
async def parcel(order: int) -> str:
    """Find a parcel."""
    return f"{order} is in Porto"


class Judge:
    """Sees every chunk, and does not take every answer."""

    id = "judge"

    def process_input(self, args: Any) -> Any:
        """Take it as it is."""
        return args.messages

    def process_output_stream(self, args: Any) -> Any:
        """Pass a chunk."""
        return args.part

    def process_output_step(self, args: Any) -> None:
        """Reject what is not sure."""
        if "not sure" in args.text:
            args.abort("be definite", retry=True)


def judged(spans: Spans, *turns: Any, **options: Any) -> Agent:
    """An agent with a tool and a judge."""
    judge = Judge()
    return Agent(
        id="support",
        model=ScriptedModel(turns),
        tools=[parcel],
        input_processors=[judge],
        output_processors=[judge],
        max_processor_retries=1,
        tracing=spans.tracing,
        **options,
    )


async def test_a_run_is_a_tree_of_spans() -> None:
    """Steps and retries under the run; model, tools and hooks under their step."""
    spans = Spans()
    agent = judged(spans, [call("parcel", {"order": 7})], "I am not sure.", "In Porto.")
    await agent.generate("Where is order 7?")
    assert spans.tree() == [
        "invoke_agent support",
        "  process_input judge",
        "  step",
        "    process_output_stream judge",
        "    chat script",
        "    process_output_step judge",
        "    execute_tool parcel",
        "  step",
        "    process_output_stream judge",
        "    chat script",
        "    process_output_step judge",
        "  step",
        "    process_output_stream judge",
        "    chat script",
        "    process_output_step judge",
    ]
    steps = [told(step) for step in spans.named("step")]
    assert [s["streampipe.step.number"] for s in steps] == [0, 1, 1]
    assert [s["streampipe.step.attempt"] for s in steps] == [0, 0, 1]
    assert [s.get("streampipe.outcome") for s in steps] == [None, "retried", None]


async def test_a_retry_and_its_reason_are_events_of_the_step() -> None:
    """Who rejected the attempt and why, and that another one followed."""
    spans = Spans()
    await judged(spans, "I am not sure.", "In Porto.").generate("hi")
    said = {"streampipe.processor.id": "judge", "streampipe.reason": "be definite"}
    rejected, accepted = spans.named("step")
    assert events(rejected) == [("streampipe.violation", said), ("streampipe.retry", said)]
    assert events(accepted) == []
    hooks = spans.named("process_output_step")
    assert [told(hook).get("streampipe.outcome") for hook in hooks] == ["blocked", None]


async def test_what_the_model_s_client_tries_again_is_an_event_of_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each attempt that failed before the answer: its error, and the pause after it."""
    monkeypatch.setattr("random.uniform", lambda _low, _high: 0.0)
    spans = Spans()
    async with ModelServer([[fail(status=503)], [fail(status=500)], ["Porto"]]) as server:
        agent = Agent(model=server.model(), tracing=spans.tracing)
        assert (await agent.generate("hi")).text == "Porto"
    kinds = ["streampipe.errors.OverloadedError", "streampipe.errors.ServerError"]
    assert events(spans.one("chat")) == [
        ("streampipe.retry", {"error.type": kind, "streampipe.retry.pause": 0.0}) for kind in kinds
    ]


async def test_a_block_is_an_event_of_the_run_and_no_error() -> None:
    """A run that a guard stopped did what it should."""
    spans = Spans()
    result = await judged(spans, "not sure", "not sure").generate("hi")
    assert result.tripwire is not None
    root = spans.one("invoke_agent")
    assert told(root)["streampipe.outcome"] == "blocked"
    assert root.status.status_code is StatusCode.UNSET
    assert [name for name, _ in events(root)] == ["streampipe.tripwire"]
    assert told(spans.named("step")[-1])["streampipe.outcome"] == "blocked"


async def test_a_run_s_span_names_agent_model_and_conversation() -> None:
    """By the names of the conventions; what is not known is left out."""
    spans = Spans()
    agent = Agent(id="a-1", name="support", model=ScriptedModel(["hi"]), tracing=spans.tracing)
    result = await agent.generate("hi", thread="t-1")
    root = told(spans.one("invoke_agent support"))
    wanted = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "script",
        "gen_ai.agent.id": "a-1",
        "gen_ai.agent.name": "support",
        "gen_ai.conversation.id": "t-1",
        "gen_ai.response.finish_reasons": ("stop",),
        "streampipe.run.id": result.run_id,
    }
    assert wanted.items() <= root.items()
    assert "gen_ai.agent.description" not in root


class Answering:
    """A model that says what it is."""

    provider, model_id = "google", "large"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Answer in three chunks."""
        yield ResponseMetadata("r-1", "large-2", provider="google")
        yield TextDelta("0", "a")
        yield TextDelta("0", "b")
        yield FinishChunk("length", Usage(3, 4, reasoning_tokens=2, cached_input_tokens=1))


async def test_a_model_call_s_span_says_what_was_asked_and_what_came() -> None:
    """Settings, response, usage and times."""
    spans = Spans()
    settings = {"temperature": 0.5, "max_output_tokens": 9, "stop": "END", "top_k": None}
    agent = Agent(model=Answering(), model_settings=settings, tracing=spans.tracing)
    await agent.generate("hi")
    chat = spans.one("chat large")
    attributes = told(chat)
    first = attributes.pop("gen_ai.response.time_to_first_chunk")
    mean = attributes.pop("streampipe.time_per_output_chunk")
    assert first > 0 < mean
    assert chat.kind is SpanKind.CLIENT
    assert attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "large",
        "gen_ai.request.stream": True,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.stop_sequences": ("END",),
        "gen_ai.output.type": "text",
        "gen_ai.response.id": "r-1",
        "gen_ai.response.model": "large-2",
        "gen_ai.response.finish_reasons": ("length",),
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.usage.cache_read.input_tokens": 1,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "streampipe.chunks": 3,
    }


async def test_a_fallback_s_span_says_who_answered() -> None:
    """The request names all models; the response the one that answered."""
    spans = Spans()
    failing = ScriptedModel([fail(status=503)], model_id="small")
    agent = Agent(model=FallbackModel(failing, Answering()), tracing=spans.tracing)
    await agent.generate("hi")
    attributes = told(spans.one("chat"))
    assert attributes["gen_ai.request.model"] == "scripted/small, google/large"
    assert attributes["gen_ai.response.model"] == "large-2"
    assert attributes["gen_ai.provider.name"] == "gcp.gemini"


async def test_a_replay_is_an_event_and_no_model_call() -> None:
    """Nobody was asked, so nothing was called."""

    class Cache:
        id = "cache"

        def process_llm_request(self, args: Any) -> Any:
            return {"response": [TextDelta("0", "known")]}

    spans = Spans()
    agent = Agent(model=Answering(), input_processors=[Cache()], tracing=spans.tracing)
    assert (await agent.generate("hi")).text == "known"
    assert spans.named("chat") == []
    assert [name for name, _ in events(spans.one("step"))] == ["streampipe.replay"]


async def test_user_code_s_spans_are_below_ours() -> None:
    """A tool's, in a thread as well, a hook's and a model's own."""
    spans = Spans()
    tracer = spans.provider.get_tracer("user")

    def work(name: str) -> None:
        with tracer.start_as_current_span(name):
            pass

    @tool
    async def asked() -> None:
        """Work in the loop."""
        await asyncio.sleep(0)
        work("in the loop")

    @tool
    def threaded() -> None:
        """Work in a thread."""
        work("in a thread")

    class Hooked:
        id = "hooked"

        async def process_output_step(self, args: Any) -> None:
            work("in a hook")

    class Working(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
            work("in a model")
            async for chunk in super().stream(request):
                yield chunk

    model = Working([[call("asked"), call("threaded")], "done"])
    agent = Agent(
        model=model,
        tools=[asked, threaded],
        output_processors=[Hooked()],
        tracing=spans.tracing,
        max_steps=1,
    )
    await agent.generate("hi")
    above = {s.name: parent_id(s) for s in spans.ended if s.name.startswith("in ")}
    assert above == {
        "in the loop": span_id(spans.one("execute_tool asked")),
        "in a thread": span_id(spans.one("execute_tool threaded")),
        "in a hook": span_id(spans.one("process_output_step hooked")),
        "in a model": span_id(spans.one("chat script")),
    }


@pytest.mark.parametrize("between", [[], [ops.tap(repr)], [ops.map_async(asyncio.sleep)]])
async def test_a_run_is_below_the_caller_s_span_and_leaves_it_current(between: list[Any]) -> None:
    """While a consumer reads, and afterwards, what is current is the consumer's own."""
    spans = Spans()
    agent = Agent(
        model=ScriptedModel(["one two"], repeat=True),
        output_processors=between[:1],
        tracing=spans.tracing,
    )
    tracer = spans.provider.get_tracer("user")
    with tracer.start_as_current_span("request") as request:
        async with agent.stream("hi") as run:
            async for _ in run:
                assert get_current_span() is request
        async for _ in ops.to_aiter(agent.observe("hi")):
            assert get_current_span() is request
        assert get_current_span() is request
    above = {parent_id(span) for span in spans.named("invoke_agent")}
    assert above == {request.get_span_context().span_id}


async def test_runs_at_once_are_apart() -> None:
    """Each is a trace of its own, of the same shape."""
    spans = Spans()
    agent = judged(spans, *[[call("parcel", {"order": 1})]] * 5, *["done"] * 5)
    await asyncio.gather(*(agent.generate("hi") for _ in range(5)))
    roots = {span.context.trace_id for span in spans.ended if span.context}
    assert len(roots) == 5
    shape = Spans()
    await judged(shape, [call("parcel", {"order": 1})], "done").generate("hi")
    tree = spans.tree()
    assert tree == shape.tree() * 5


async def test_a_hook_is_given_the_context_of_its_step() -> None:
    """For spans of its own in another task; every kind of hook."""
    seen: dict[str, Any] = {}

    class Curious:
        id = "curious"

        def process_input(self, args: Any) -> Any:
            seen["input"] = get_current_span(args.tracing_context)
            return args.messages

        def process_output_stream(self, args: Any) -> Any:
            if isinstance(args.part, TextDelta):
                seen["stream"] = get_current_span(args.tracing_context)
            return args.part

        def process_output_step(self, args: Any) -> None:
            seen["step"] = get_current_span(args.tracing_context)

    spans = Spans()
    curious = Curious()
    agent = Agent(
        model=ScriptedModel(["hi"]),
        input_processors=[curious],
        output_processors=[curious],
        tracing=spans.tracing,
    )
    await agent.generate("hi")
    got = {name: span.get_span_context().span_id for name, span in seen.items()}
    run, step = span_id(spans.one("invoke_agent")), span_id(spans.one("step"))
    assert got == {"input": run, "stream": step, "step": step}


async def test_a_run_that_fails_has_an_error_at_every_span_it_fell_through() -> None:
    """The kind of error and where it was raised; the model's span has the status."""
    spans = Spans()
    body = {"error": {"message": "too many"}}
    async with ModelServer([fail(status=429, body=body)]) as server:
        agent = Agent(model=server.model(max_retries=0), tracing=spans.tracing)
        with pytest.raises(StreampipeError):
            await agent.generate("hi")
    assert [span.name.split()[0] for span in spans.started] == ["invoke_agent", "step", "chat"]
    for span in spans.ended:
        attributes = told(span)
        assert attributes["error.type"] == "streampipe.errors.RateLimitError"
        assert attributes["http.response.status_code"] == 429
        assert attributes["streampipe.outcome"] == "failed"
        assert span.status.status_code is StatusCode.ERROR
        [(name, event)] = events(span)
        assert (name, event["exception.type"]) == ("exception", attributes["error.type"])
        assert "call.py" in event["exception.stacktrace"]


async def test_a_tool_that_fails_has_its_own_error() -> None:
    """What the tool raised, not what it became; the run goes on."""

    @tool
    async def broken() -> None:
        """Break."""
        raise KeyError("order")

    spans = Spans()
    model = ScriptedModel([[call("broken"), call("missing")], "done"])
    await Agent(model=model, tools=[broken], tracing=spans.tracing).generate("hi")
    kinds = {span.name: told(span)["error.type"] for span in spans.named("execute_tool")}
    assert kinds == {
        "execute_tool broken": "KeyError",
        "execute_tool missing": "streampipe.errors.UnknownToolError",
    }
    assert "error.type" not in told(spans.one("invoke_agent"))


async def test_a_processor_that_fails_is_not_the_model_s_failure() -> None:
    """The hook's span has the error, with what led to it; the model's was cut short."""

    class Broken:
        id = "broken"

        def process_output_stream(self, args: Any) -> Any:
            if isinstance(args.part, TextDelta):
                raise KeyError("order")
            return args.part

    spans = Spans()
    agent = Agent(model=ScriptedModel(["hi"]), output_processors=[Broken()], tracing=spans.tracing)
    with pytest.raises(StreampipeError):
        await agent.generate("hi")
    assert told(spans.one("process_output_stream"))["error.type"] == "KeyError"
    chat = told(spans.one("chat"))
    assert chat["streampipe.outcome"] == "cancelled"
    assert "error.type" not in chat
    step = spans.one("step")
    assert told(step)["error.type"] == "streampipe.errors.ProcessorError"
    assert events(step)[0][1]["streampipe.cause"] == "KeyError"


async def test_a_hook_between_chunks_that_fails_is_told() -> None:
    """By its own span, with the error that names the processor."""

    class Broken:
        id = "broken"

        def process_output_step(self, args: Any) -> None:
            raise KeyError("order") from None

    spans = Spans()
    agent = Agent(model=ScriptedModel(["hi"]), output_processors=[Broken()], tracing=spans.tracing)
    with pytest.raises(StreampipeError):
        await agent.generate("hi")
    hook = spans.one("process_output_step broken")
    assert told(hook)["error.type"] == "streampipe.errors.ProcessorError"
    assert told(hook)["streampipe.hook"] == "process_output_step"


async def test_an_error_that_was_raised_from_itself_is_told() -> None:
    """The way to the first cause ends."""

    @tool
    async def broken() -> None:
        """Break."""
        error = RuntimeError("again")
        raise error from error

    spans = Spans()
    model = ScriptedModel([[call("broken")], "done"])
    await Agent(model=model, tools=[broken], tracing=spans.tracing).generate("hi")
    assert told(spans.one("execute_tool"))["error.type"] == "RuntimeError"


async def test_a_run_that_the_interpreter_closes_ends_its_spans() -> None:
    """A coroutine that is closed, in whatever context, is cancelled; nothing complains."""
    spans = Spans()
    agent = Agent(model=ScriptedModel([Turn(("hi",))]))
    trace = spans.tracing.open(agent, Answering(), None)

    async def work(emit: Any) -> None:
        await asyncio.Future()

    run = trace.run(work, RunResult("r-1"), [])(print)
    contextvars.copy_context().run(run.send, None)
    run.close()
    assert told(spans.one("invoke_agent"))["streampipe.outcome"] == "cancelled"


async def test_a_caller_that_is_cancelled_ends_the_spans_it_began() -> None:
    """A task that waits in a tool is cancelled from outside."""
    began = asyncio.Event()

    @tool
    async def slow() -> None:
        """Never end."""
        began.set()
        await asyncio.Event().wait()

    spans = Spans()
    agent = Agent(model=ScriptedModel([call("slow")]), tools=[slow], tracing=spans.tracing)
    task = asyncio.create_task(agent.generate("hi"))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    outcomes = {s.name.split()[0]: told(s).get("streampipe.outcome") for s in spans.ended}
    assert outcomes == {
        "chat": None,
        "execute_tool": "cancelled",
        "step": "cancelled",
        "invoke_agent": "cancelled",
    }
