"""Answers that break in the middle: `generate` asks again, whoever reads along is told."""

from __future__ import annotations

from typing import Any

import pytest

from streampipe import Agent, StepFinish, TextDelta
from streampipe.errors import IncompleteStreamError, ModelError, OverloadedError
from streampipe.testing import ModelServer, call, fail, turn
from tests.contract.guards import lookup_into, processor

BROKEN = turn("half an", fail())


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The bounds of the pauses before another attempt, which are not made."""
    bounds: list[float] = []

    def uniform(_low: float, high: float) -> float:
        bounds.append(high)
        return 0.0

    monkeypatch.setattr("random.uniform", uniform)
    return bounds


async def test_generate_asks_again(pauses: list[float]) -> None:
    """Nobody has read of the broken answer; it leaves no trace but the number of retries."""
    async with ModelServer([BROKEN, turn("half", incomplete=True), ["whole"]]) as server:
        result = await Agent(model=server.model()).generate("hi")
        server.assert_complete()
    assert result.text == "whole"
    assert result.retries == 2
    assert [step.text for step in result.steps] == ["whole"]
    assert [message.text for message in result.messages] == ["whole"]
    assert pauses == [0.5, 1.0]
    first, *others = (request.body["messages"] for request in server.requests)
    assert others == [first, first], "the model is told nothing of it"


async def test_generate_asks_no_more_often_than_the_model_s_client() -> None:
    """`max_retries` of the model is the bound; then the failure is the run's."""
    async with ModelServer([BROKEN], repeat=True) as server:
        with pytest.raises(IncompleteStreamError) as caught:
            await Agent(model=server.model(max_retries=1)).generate("hi")
        assert len(server.requests) == 2
    assert caught.value.mid_stream
    assert caught.value.result.text == ""
    assert caught.value.result.retries == 1


async def test_a_reader_is_told_instead() -> None:
    """Who streams has seen the half answer: it fails, once asked for."""
    async with ModelServer([BROKEN, ["whole"]]) as server:
        text = ""
        async with Agent(model=server.model()).stream("hi") as run:
            async for chunk in run:
                text += chunk.text if isinstance(chunk, TextDelta) else ""
            with pytest.raises(IncompleteStreamError):
                await run.result()
        assert len(server.requests) == 1
    assert text == "half an"


async def test_what_will_not_pass_is_not_asked_again() -> None:
    """A failure of the provider's own, in mid-stream, is asked again if it may pass only."""
    answer = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
    filtered = answer + b'data: {"error":{"message":"no","code":"content_filter"}}\n\n'
    overloaded = answer + b'data: {"error":{"message":"full","code":"overloaded"}}\n\n'
    async with ModelServer([filtered]) as server:
        with pytest.raises(ModelError):
            await Agent(model=server.model()).generate("hi")
        assert len(server.requests) == 1
    async with ModelServer([overloaded, overloaded, overloaded]) as server:
        with pytest.raises(OverloadedError):
            await Agent(model=server.model()).generate("hi")
        assert len(server.requests) == 3


async def test_a_refusal_is_not_multiplied() -> None:
    """What the client has asked for three times is not asked for again by the run."""
    async with ModelServer([[fail(status=503)]], repeat=True) as server:
        with pytest.raises(OverloadedError):
            await Agent(model=server.model()).generate("hi")
        assert len(server.requests) == 3


async def test_error_processors_come_after_that() -> None:
    """Their turn is when the model's own retries are used up; their budget is untouched."""
    seen: list[int] = []

    def hook(args: Any) -> dict[str, bool]:
        seen.append(args.retry_count)
        return {"retry": True}

    async with ModelServer([BROKEN, BROKEN, ["whole"]]) as server:
        agent = Agent(
            model=server.model(max_retries=1), error_processors=[processor(process_api_error=hook)]
        )
        result = await agent.generate("hi")
    assert result.text == "whole"
    assert seen == [0]
    assert result.retries == 2


async def test_each_step_has_the_model_s_retries() -> None:
    """A long run may meet a broken answer in every step, once too often in none."""
    steps: list[Any] = [
        BROKEN,
        [call("lookup", {"word": "a"})],
        BROKEN,
        [call("lookup", {"word": "b"})],
    ]
    async with ModelServer([*steps, BROKEN, ["done"]]) as server:
        agent = Agent(model=server.model(max_retries=1), tools=[lookup_into([])])
        result = await agent.generate("hi")
    assert (result.text, result.retries, len(result.steps)) == ("done", 3, 3)


async def test_what_the_client_tries_again_counts() -> None:
    """The result says how often the model was asked again, by whomever."""
    async with ModelServer([[fail(status=503)], [fail(status=503)], BROKEN, ["done"]]) as server:
        result = await Agent(model=server.model()).generate("hi")
        assert len(server.requests) == 4
    assert result.retries == 3


async def test_a_wait_that_is_too_long_is_the_error_processors_business() -> None:
    """As for the client: nobody is kept waiting for hours, and nobody asks early."""
    busy = b'data: {"error":{"code":429,"message":"slow","details":[{"retryDelay":"3600s"}]}}\n\n'
    said = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
    async with ModelServer([said + busy]) as server:
        with pytest.raises(ModelError) as caught:
            await Agent(model=server.model()).generate("hi")
        assert len(server.requests) == 1
    assert caught.value.retry_after == 3600


async def test_tools_run_once() -> None:
    """A broken second step asks for that step again: the tools of the first are done."""
    ran: list[str] = []
    async with ModelServer([[call("lookup", {"word": "a"})], BROKEN, ["done"]]) as server:
        result = await Agent(model=server.model(), tools=[lookup_into(ran)]).generate("hi")
    assert result.text == "done"
    assert ran == ["tool"]
    assert len(result.steps) == 2


async def test_a_broken_attempt_is_shown_to_hooks_as_a_retry() -> None:
    """Output processors see the void as any other: a step-finish with reason `retry`."""
    reasons: list[str] = []

    def watch(args: Any) -> Any:
        if isinstance(args.part, StepFinish):
            reasons.append(args.part.reason)
        return args.part

    async with ModelServer([BROKEN, ["whole"]]) as server:
        agent = Agent(
            model=server.model(), output_processors=[processor(process_output_stream=watch)]
        )
        await agent.generate("hi")
    assert reasons == ["retry", "stop"]
