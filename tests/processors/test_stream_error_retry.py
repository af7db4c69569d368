"""`StreamErrorRetry`: which failures are tried again, how often, and after how long."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streampipe import AbortSignal, Agent, tool
from streampipe.errors import (
    ConfigurationError,
    IncompleteStreamError,
    ModelError,
    OverloadedError,
    ProcessorError,
    ProviderError,
    RateLimitError,
)
from streampipe.processors import StreamErrorRetry
from streampipe.testing import ScriptedModel, call, check_processor, fail, run_virtual, turn

EXAMPLES = max(1_000, 10 * settings().max_examples)
BROKEN = turn("half", incomplete=True)


@tool
def look_up(q: str) -> str:
    """Look something up."""
    return q


def agent_of(script: list[Any], processor: Any, **options: Any) -> Agent:
    """An agent with an error processor."""
    return Agent(
        model=ScriptedModel(script), tools=[look_up], error_processors=[processor], **options
    )


def timed(script: list[Any], processor: Any, **options: Any) -> tuple[Any, float]:
    """The result of a run, or what it failed with; and how long it took."""

    async def main() -> tuple[Any, float]:
        agent = agent_of(script, processor, **options)
        try:
            result: Any = await agent.generate("hi")
        except ModelError as error:
            result = error
        return result, asyncio.get_running_loop().time()

    return run_virtual(main())


def broken(kind: type[ModelError] = ModelError, **options: Any) -> Any:
    """A failure in the middle of an answer."""
    error = kind("it broke", **{"is_retryable": True, **options})
    error.mid_stream = True
    return fail(error)


@pytest.mark.parametrize("failure", [BROKEN, ["ha", broken()], ["ha", broken(OverloadedError)]])
def test_an_answer_that_broke_is_asked_for_again(failure: Any) -> None:
    """What the broken one said is void."""
    result, _ = timed([failure, ["whole"]], StreamErrorRetry())
    assert (result.text, result.retries) == ("whole", 1)


async def test_the_client_is_told() -> None:
    """The broken attempt ends with a retry, and the step starts again."""
    agent = agent_of([BROKEN, ["whole"]], StreamErrorRetry(delay=0))
    async with agent.stream("hi") as run:
        seen = [getattr(c, "text", getattr(c, "reason", c.type)) async for c in run]
    assert seen.index("half") < seen.index("retry") < seen.index("whole")


@pytest.mark.parametrize(
    "failure",
    [
        fail(ModelError("no stream began", is_retryable=True)),
        ["ha", broken(is_retryable=False)],
        fail(status=400, body="no"),
    ],
)
def test_another_failure_stands(failure: Any) -> None:
    """A client tried again already, or trying again is of no use."""
    error, took = timed([failure, ["never"]], StreamErrorRetry())
    assert isinstance(error, ModelError)
    assert took == 0


async def async_predicate(error: Exception) -> bool:
    """Whether it is about the weather."""
    await asyncio.sleep(0)
    return "weather" in str(error)


@pytest.mark.parametrize(
    ("matcher", "failure", "meant"),
    [
        (OverloadedError, OverloadedError("x"), True),
        (OverloadedError, RateLimitError("x"), False),
        (ProviderError, RateLimitError("x"), True),
        (ConnectionResetError, ConnectionResetError("x"), True),
        ("socket HANG up", ModelError("The socket hang UP."), True),
        ("socket hang up", ModelError("The line is dead."), False),
        (lambda error: "weather" in str(error), ModelError("bad weather"), True),
        (lambda error: "weather" in str(error), ModelError("bad"), False),
        (async_predicate, ModelError("bad weather"), True),
        (async_predicate, ModelError("bad"), False),
    ],
)
def test_a_matcher_says_which_failures_are_meant(
    matcher: Any, failure: Any, *, meant: bool
) -> None:
    """By class, also of the cause, by words, or by a function, plain or async."""
    processor = StreamErrorRetry(matchers=["never said", matcher])
    result, _ = timed([fail(failure), ["whole"]], processor)
    assert getattr(result, "text", None) == ("whole" if meant else None)


def test_matchers_stand_in_place_of_the_rule() -> None:
    """What broke is then tried again only where one of them says so."""
    error, _ = timed([BROKEN, ["never"]], StreamErrorRetry(matchers=["overloaded"]))
    assert isinstance(error, IncompleteStreamError)


@given(st.integers(1, 4), st.floats(0.1, 5), st.floats(5, 20))
def test_the_wait_doubles_up_to_the_longest(retries: int, delay: float, longest: float) -> None:
    """Between half of it and all of it, on the loop's clock; then the failure stands."""
    processor = StreamErrorRetry(retries, delay=delay, max_delay=longest)
    error, took = timed([BROKEN] * (retries + 1), processor)
    assert isinstance(error, IncompleteStreamError)
    most = sum(min(longest, delay * 2**n) for n in range(retries))
    assert most / 2 <= took + 1e-6
    assert took <= most + 1e-6


def test_the_provider_s_wait_is_kept() -> None:
    """Exactly; one longer than the longest is not waited for, and not cut short."""
    asks = ["ha", broken(retry_after=7.0)]
    result, took = timed([asks, ["whole"]], StreamErrorRetry(delay=0.1))
    assert (result.text, took) == ("whole", 7)
    error, took = timed([asks, ["never"]], StreamErrorRetry(max_delay=6))
    assert (isinstance(error, ModelError), took) == (True, 0)
    result, took = timed([asks, ["whole"]], StreamErrorRetry(delay=0, respect_retry_after=False))
    assert (result.text, took) == ("whole", 0)


def test_each_step_has_its_retries() -> None:
    """A step that came through leaves the next one all of them."""
    script = [BROKEN, [call("look_up", {"q": "x"})], BROKEN, ["whole"]]
    result, _ = timed(script, StreamErrorRetry(1))
    assert (result.text, result.retries) == ("whole", 2)


def test_the_agent_s_budget_is_above() -> None:
    """`max_processor_retries` counts them all."""
    error, _ = timed([BROKEN] * 5, StreamErrorRetry(4), max_processor_retries=1)
    assert error.result.retries == 1


def test_a_run_that_is_stopped_waits_no_longer() -> None:
    """The wait holds nothing up but its own run."""

    async def main() -> float:
        signal = AbortSignal()
        asyncio.get_running_loop().call_later(1, signal.abort)
        agent = agent_of([BROKEN] * 2, StreamErrorRetry(delay=60, max_delay=60))
        async with agent.stream("hi", abort_signal=signal) as run:
            kinds = [chunk.type async for chunk in run]
        assert kinds[-2:] == ["abort", "finish"]
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == pytest.approx(1)


def test_one_instance_serves_two_runs_at_a_time() -> None:
    """Each has its own retries, and waits beside the other."""

    async def main() -> list[Any]:
        shared = StreamErrorRetry(1, delay=8, max_delay=8)
        runs = [agent_of([BROKEN, [text]], shared).generate("hi") for text in "ab"]
        results = await asyncio.gather(*runs)
        assert asyncio.get_running_loop().time() <= 8
        return [result.text for result in results]

    assert run_virtual(main()) == ["a", "b"]


def test_a_matcher_that_fails_ends_the_run() -> None:
    """By the processor's name."""

    def weak(error: Exception) -> bool:
        """Fail."""
        raise ValueError("weak")

    with pytest.raises(ProcessorError, match="ValueError: weak"):
        timed([BROKEN], StreamErrorRetry(matchers=[weak]))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_retries": 0}, "max_retries must be a whole number of 1 or more, not 0"),
        ({"delay": -1}, "delay must be a finite number of seconds, 0 or more, not -1"),
        (
            {"max_delay": float("inf")},
            "max_delay must be a finite number of seconds, 0 or more, not inf",
        ),
        ({"delay": 3, "max_delay": 2}, r"max_delay \(2 s\) must not be below delay \(3 s\)"),
        ({"respect_retry_after": 1}, "respect_retry_after must be True or False, not 1"),
        ({"matchers": []}, "matchers must be a list with at least one"),
        ({"matchers": "overloaded"}, "matchers must be a list with at least one"),
        ({"matchers": [int]}, r"matchers\[0\] is int, which is no class of errors"),
        ({"matchers": ["a", " "]}, r"matchers\[1\] is an empty text"),
        ({"matchers": [503]}, r"matchers\[0\] must be a function, not 503"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], said: str) -> None:
    """When it is made, by the class's name."""
    with pytest.raises(ConfigurationError, match=f"^StreamErrorRetry: {said}"):
        StreamErrorRetry(**options)


def test_it_keeps_the_laws_of_processors() -> None:
    """In generated runs, whatever the model says."""
    check_processor(lambda: StreamErrorRetry(delay=0), max_examples=EXAMPLES)
