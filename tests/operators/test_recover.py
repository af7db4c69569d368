"""`catch_api_error` and `retry_api`: another attempt at a failed model call."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Any

import pytest
from reactivex import Observable
from reactivex import operators as rx

from streampipe import operators as ops
from streampipe.abort import TripWire
from streampipe.chunks import (
    Chunk,
    ReasoningStart,
    StepFinish,
    TextDelta,
    TextEnd,
    TextStart,
    TripwireData,
)
from streampipe.errors import (
    ConfigurationError,
    IncompleteStreamError,
    ModelConnectionError,
    ModelError,
    ProcessorError,
    ProviderError,
)
from streampipe.operators._core import Emit
from streampipe.testing import run_virtual
from tests.operators.sources import elements, push, reading, turns, watched


class Attempts:
    """A model that fails so many times before it answers; each attempt says its number first.

    Attributes:
        begun: how many attempts there were.
    """

    def __init__(self, *errors: BaseException) -> None:
        """Fail with these, one an attempt."""
        self.begun = 0
        self._errors = errors

    @property
    def stream(self) -> Observable[Chunk]:
        """The cold stream of an attempt."""

        async def run(emit: Emit[Chunk]) -> None:
            number = self.begun
            self.begun += 1
            await push(emit, TextDelta("0", str(number)))
            await turns(2)
            if number < len(self._errors):
                raise self._errors[number]

        return ops.create(run)


def notice(error: BaseException) -> StepFinish:
    """What keeps two attempts apart."""
    return StepFinish("retry", tripwire=TripwireData(str(error), retry=True))


async def outcome(stream: Observable[Any]) -> tuple[list[Any], Any]:
    """All elements and the one terminal event of a stream; a text for each text chunk."""
    witness, _ = watched(stream)
    await witness.ended.wait()
    (end,) = witness.ends
    return [item.text if isinstance(item, TextDelta) else item for item in witness.items], end


FIRST, SECOND = ModelError("first", is_retryable=True), ModelError("second", is_retryable=True)
FINAL = ModelError("final")


# --- catch_api_error -------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_the_handler_is_asked_and_obeyed(*, is_async: bool) -> None:
    """It gets the failure and its number; attempts are kept apart by a `step-finish`."""
    asked: list[tuple[ModelError, int]] = []

    def handler(error: ModelError, attempt: int) -> bool:
        asked.append((error, attempt))
        return True

    async def later(error: ModelError, attempt: int) -> bool:
        await turns(2)
        return handler(error, attempt)

    model = Attempts(FIRST, SECOND)
    stage = ops.catch_api_error(later if is_async else handler)
    assert await outcome(model.stream.pipe(stage)) == (
        ["0", notice(FIRST), "1", notice(SECOND), "2"],
        "completed",
    )
    assert asked == [(FIRST, 0), (SECOND, 1)]


@pytest.mark.parametrize("answer", [False, None])
async def test_a_handler_that_declines_lets_the_failure_out(answer: bool | None) -> None:  # noqa: FBT001 - a value
    """The very error, and no notice of another attempt."""
    model = Attempts(FIRST, SECOND)
    stage = ops.catch_api_error(lambda error, attempt: answer)
    assert await outcome(model.stream.pipe(stage)) == (["0"], FIRST)
    assert model.begun == 1


async def test_what_succeeds_is_left_alone() -> None:
    """Nobody is asked."""
    model = Attempts()
    assert await outcome(model.stream.pipe(ops.catch_api_error(never_asked))) == (
        ["0"],
        "completed",
    )


def never_asked(error: ModelError, attempt: int) -> bool:
    """A handler that must not be asked."""
    pytest.fail(f"asked about {error!r}")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("boom"),
        ProcessorError("boom", processor_id="p", hook="h"),
        TripWire("stop"),
    ],
    ids=["foreign", "processor", "signal"],
)
async def test_only_failures_of_models_are_caught(error: BaseException) -> None:
    """A processor's failure and a block pass as they are."""
    model = Attempts(error)
    assert await outcome(model.stream.pipe(ops.catch_api_error(never_asked))) == (["0"], error)


@pytest.mark.parametrize(
    "error",
    [
        ProviderError("busy", status=503),
        ModelConnectionError("gone"),
        IncompleteStreamError("x"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_every_failure_of_a_model_is_caught(error: ModelError) -> None:
    """Whatever its class."""
    model = Attempts(error)
    chunks, end = await outcome(model.stream.pipe(ops.catch_api_error(lambda *_: True)))
    assert (chunks, end) == (["0", notice(error), "1"], "completed")


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_a_handler_s_own_failure_ends_the_stream(*, is_async: bool) -> None:
    """It is told instead; the failure that it was asked about is its context."""
    own = ValueError("in the handler")

    def handler(error: ModelError, attempt: int) -> bool:
        raise own

    async def later(error: ModelError, attempt: int) -> bool:
        raise own

    model = Attempts(FIRST)
    stage = ops.catch_api_error(later if is_async else handler)
    assert await outcome(model.stream.pipe(stage)) == (["0"], own)
    assert own.__context__ is FIRST


@pytest.mark.parametrize(
    "stage",
    [
        ops.feedback(lambda _, __: Attempts(FINAL).stream),
        rx.flat_map(lambda _: Attempts(FINAL).stream),
    ],
    ids=["feedback", "rx"],
)
async def test_a_model_s_failure_further_down_is_not_the_source_s(stage: Any) -> None:
    """A stage after it may call models of its own: their failures end the stream."""
    model = Attempts()
    _, end = await outcome(model.stream.pipe(ops.catch_api_error(never_asked), stage))
    assert end is FINAL
    assert model.begun == 1


async def test_two_in_a_row_are_asked_from_the_inside_out() -> None:
    """What the first declines, the second may take."""
    model = Attempts(FIRST, SECOND)
    declines: list[ModelError] = []

    def decline(error: ModelError, attempt: int) -> None:
        declines.append(error)

    stages = (ops.catch_api_error(decline), ops.catch_api_error(lambda *_: True))
    chunks, end = await outcome(model.stream.pipe(*stages))
    assert (chunks, end) == (["0", notice(FIRST), "1", notice(SECOND), "2"], "completed")
    assert declines == [FIRST, SECOND]


async def test_leaving_early_ends_the_attempt() -> None:
    """Nothing is asked of a handler by a stream that is closed."""
    model = Attempts(FIRST)
    async with reading(model.stream.pipe(ops.catch_api_error(never_asked))) as items:
        assert await anext(items) == TextDelta("0", "0")
    await turns(5)
    assert model.begun == 1


async def test_a_source_through_rx_operators_is_caught_too() -> None:
    """Attempts are subscriptions of whatever the source is."""
    model = Attempts(FIRST)
    stream = model.stream.pipe(rx.filter(lambda _: True), ops.catch_api_error(lambda *_: True))
    assert await outcome(stream) == (["0", notice(FIRST), "1"], "completed")


async def test_a_handler_that_cannot_be_asked_fails_the_stream() -> None:
    """The subscriber is told, in place of another attempt."""
    _, end = await outcome(Attempts(FIRST).stream.pipe(ops.catch_api_error(lambda: True)))  # type: ignore[arg-type,misc]  # the point
    assert isinstance(end, TypeError)
    assert end.__context__ is FIRST


# --- retry_api and fallback -----------------------------------------------------------------


class Pauses(list[float]):
    """What was slept, in seconds, in place of sleeping."""

    async def sleep(self, seconds: float) -> None:
        """Note it."""
        self.append(seconds)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    """No pause takes time; each is noted."""
    noted = Pauses()
    monkeypatch.setattr("streampipe.operators._recover.asyncio.sleep", noted.sleep)
    return noted


def busy(after: float | None = None) -> ProviderError:
    """A failure that may pass."""
    return ProviderError("busy", status=429, retry_after=after, is_retryable=True)


async def drained(source: Observable[Chunk]) -> list[str]:
    """What is said, by type where there is no text; the failure's class comes last."""
    seen: list[str] = []
    async with reading(source) as items:
        try:
            async for chunk in items:
                seen.append(getattr(chunk, "text", chunk.type))  # noqa: PERF401 - kept on failure
        except ModelError as error:
            seen.append(type(error).__name__)
    return seen


async def test_retry_api_waits_longer_every_time(pauses: Pauses) -> None:
    """Doubling, up to the longest."""
    source = Attempts(busy(), busy(), busy(), busy())
    retry = ops.retry_api(4, backoff=1, max_backoff=5, jitter=False)
    assert (await drained(source.stream.pipe(retry)))[-1] == "4"
    assert [s for s in pauses if s] == [1, 2, 4, 5]


async def test_retry_api_waits_as_long_as_it_was_told_to(pauses: Pauses) -> None:
    """Never less than `Retry-After`, and the failure stands where that is too long."""
    retry = ops.retry_api(backoff=1, max_backoff=10, jitter=True)
    assert (await drained(Attempts(busy(2)).stream.pipe(retry)))[-1] == "1"
    assert [s for s in pauses if s] == [2]
    assert (await drained(Attempts(busy(11)).stream.pipe(retry)))[-1] == "ProviderError"
    ignoring = ops.retry_api(backoff=1, jitter=False, respect_retry_after=False)
    await drained(Attempts(busy(2)).stream.pipe(ignoring))
    assert [s for s in pauses if s] == [2, 1]


async def test_retry_api_takes_a_random_part_of_the_pause(pauses: Pauses) -> None:
    """So that not all clients come back at once."""
    retry = ops.retry_api(20, backoff=1, max_backoff=1)
    await drained(Attempts(*[busy()] * 20).stream.pipe(retry))
    waited = [s for s in pauses if s]
    assert all(0 <= second < 1 for second in waited)
    assert len(set(waited)) > 10


async def test_retry_api_knows_when_to_stop(pauses: Pauses) -> None:
    """After so many tries, and at once where trying does not help."""
    source = Attempts(busy(), busy(), busy())
    assert (await drained(source.stream.pipe(ops.retry_api(2))))[-1] == "ProviderError"
    assert source.begun == 3
    source = Attempts(ProviderError("no", status=400))
    assert (await drained(source.stream.pipe(ops.retry_api(2))))[-1] == "ProviderError"
    assert source.begun == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_retries": -1}, "max_retries must be a whole number of 0 or more, not -1"),
        ({"max_retries": "a"}, "max_retries must be a whole number of 0 or more, not 'a'"),
        ({"backoff": -1}, "backoff must be 0 s or more and finite, not -1"),
        ({"backoff": math.nan}, "backoff must be 0 s or more and finite, not nan"),
        ({"max_backoff": math.inf}, "max_backoff must be 0 s or more and finite, not inf"),
        ({"max_backoff": "1"}, "max_backoff must be a number of seconds, not str"),
    ],
    ids=repr,
)
def test_retry_api_refuses_bad_options(options: dict[str, Any], message: str) -> None:
    """When it is built."""
    with pytest.raises(ConfigurationError, match=f"^retry_api: {message}"):
        ops.retry_api(**options)


async def test_retry_api_goes_on_for_as_long_as_it_was_told(pauses: Pauses) -> None:
    """However often a pause is doubled, it stays within its limit."""
    source = Attempts(*[busy()] * 1_100)
    retry = ops.retry_api(1_100, backoff=0.5, max_backoff=2, jitter=False)
    assert (await drained(source.stream.pipe(retry)))[-1] == "1100"
    assert max(pauses) == 2


def test_bad_options_of_catch_and_fallback_are_refused() -> None:
    """What cannot be asked, and what cannot be subscribed to."""
    with pytest.raises(ConfigurationError, match=r"^catch_api_error: handler must be a function"):
        ops.catch_api_error("x")  # type: ignore[arg-type]  # the point
    with pytest.raises(ConfigurationError, match=r"^fallback: other must be an observable, not 5"):
        ops.fallback(5)  # type: ignore[arg-type]  # the point


async def test_fallback_goes_on_with_the_other() -> None:
    """What came of the first is void; a source that does not fail needs no other."""
    broken, whole = Attempts(busy()), Attempts()
    got = await drained(broken.stream.pipe(ops.fallback(whole.stream)))
    assert got == ["0", "step-finish", "0"]
    untouched = Attempts()
    assert await drained(Attempts().stream.pipe(ops.fallback(untouched.stream))) == ["0"]
    assert untouched.begun == 0


async def test_fallback_fails_as_the_other_does() -> None:
    """And a failure that is no model's is not its business."""
    got = await drained(Attempts(busy()).stream.pipe(ops.fallback(Attempts(busy()).stream)))
    assert got == ["0", "step-finish", "0", "ProviderError"]
    with pytest.raises(ValueError, match="mine"):
        await drained(Attempts(ValueError("mine")).stream.pipe(ops.fallback(Attempts().stream)))


async def test_fallback_says_nothing_of_an_attempt_that_said_nothing() -> None:
    """There is nothing to void."""

    async def silent(_emit: Emit[Chunk]) -> None:
        raise busy()

    assert await drained(ops.create(silent).pipe(ops.fallback(Attempts().stream))) == ["0"]


@pytest.mark.parametrize(
    "operator",
    [
        ops.retry_api(1, backoff=0),
        ops.catch_api_error(lambda error, attempt: attempt < 1),
        ops.fallback(ops.of(TextStart("0"), TextDelta("0", "whole"), TextEnd("0"))),
    ],
    ids=["retry_api", "catch_api_error", "fallback"],
)
def test_what_a_failed_attempt_left_open_ends_before_it_is_void(operator: Any) -> None:
    """Text and reasoning, in the order they were opened; what had ended does not end again."""
    attempts = 0

    async def source() -> AsyncIterator[Chunk]:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            for chunk in (TextStart("a"), TextEnd("a"), ReasoningStart("r"), TextStart("0")):
                yield chunk
            raise ModelError("cut off", is_retryable=True)
        yield TextStart("0")
        yield TextDelta("0", "whole")
        yield TextEnd("0")

    out = run_virtual(elements(ops.from_aiter(source).pipe(operator)))
    assert [chunk.type for chunk in out[2:7]] == [
        "reasoning-start",
        "text-start",
        "reasoning-end",
        "text-end",
        "step-finish",
    ]
    assert [getattr(chunk, "text", "") for chunk in out[7:]] == ["", "whole", ""]
