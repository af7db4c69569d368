"""The limits of a call, on a clock that jumps: each its own error, silence counted rightly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from streampipe.chunks import Chunk, TextDelta
from streampipe.errors import (
    ChunkTimeoutError,
    ConfigurationError,
    FirstChunkTimeoutError,
    ModelError,
    ModelTimeoutError,
    ProviderError,
    TotalTimeoutError,
)
from streampipe.models import Timeout
from streampipe.testing import run_virtual
from tests.models.streams import event, sse
from tests.models.test_call import REQUEST, Network, Response, model_on, refusal

WORD = sse(event({"content": "x"}), done=False)
END = sse(event(reason="stop"))
PING = b": ping\n\n"


class Slow(Response):
    """An answer whose pieces each come after a pause, and whose head does."""

    def __init__(self, *pieces: tuple[float, bytes], head: float = 0.0) -> None:
        """Say what comes after how many seconds."""
        super().__init__()
        self.slow = pieces
        self.head = head

    async def body(self) -> AsyncGenerator[bytes, None]:
        """The pieces, one by one."""
        for pause, piece in self.slow:
            await asyncio.sleep(pause)
            yield piece


class SlowNetwork(Network):
    """A network on which heads take their time."""

    async def post(self, url: str, **asked: Any) -> Response:
        """Answer the next request."""
        found = await super().post(url, **asked)
        await asyncio.sleep(getattr(found, "head", 0.0))
        return found


def call(
    network: Network, *, reader: float = 0.0, **options: Any
) -> tuple[str, float, ModelError | None]:
    """The text of a call, how long it took, and what it failed with, on a jumping clock.

    The reader takes `reader` seconds over each chunk.
    """

    async def run() -> tuple[str, float, ModelError | None]:
        text, now = "", asyncio.get_running_loop().time
        stream = model_on(network, **options).stream(REQUEST)
        try:
            async for chunk in stream:
                text += _text(chunk)
                await asyncio.sleep(reader)
        except ModelError as error:
            return text, now(), error
        return text, now(), None

    return run_virtual(run())


def _text(chunk: Chunk) -> str:
    return chunk.text if isinstance(chunk, TextDelta) else ""


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Slow(head=99), id="no head"),
        pytest.param(Slow((99, WORD)), id="no body"),
        pytest.param(Slow(*[(1.0, PING)] * 99), id="pings only"),
        pytest.param(Slow((3, b"data: {"), (3, b"}")), id="half an event"),
    ],
)
def test_a_first_chunk_that_does_not_come(answer: Slow) -> None:
    """Whatever keeps it away, the limit counts from the request; the answer is closed."""
    network = SlowNetwork(answer)
    text, took, error = call(network, timeout=Timeout(first_chunk=5), max_retries=0)
    assert isinstance(error, FirstChunkTimeoutError)
    assert (text, took) == ("", 5.0)
    assert "openai/m: no chunk of the answer came in 5 s" in str(error)
    assert error.is_retryable
    assert answer.is_closed or answer.head


def test_a_first_chunk_that_is_late_is_asked_for_again() -> None:
    """The limit holds for each attempt, and the second has its own."""
    network = SlowNetwork(Slow(head=99), Slow((4, WORD), (0, END)))
    text, took, error = call(network, timeout=Timeout(first_chunk=5), max_retries=1)
    assert error is None
    assert text == "x"
    assert 9.0 <= took <= 9.5, "the limit, a pause of half a second at most, the answer"


def test_silence_in_the_middle() -> None:
    """Between chunks another limit holds; what came stands, and the failure says so."""
    answer = Slow((4, WORD), (2, WORD), (2.5, PING), (2.5, WORD), (0, END))
    network = SlowNetwork(answer)
    text, took, error = call(network, timeout=Timeout(first_chunk=5, between_chunks=3))
    assert isinstance(error, ChunkTimeoutError)
    assert (text, took) == ("xx", 9.0)
    assert error.mid_stream
    assert len(network.asked) == 1, "nothing is asked again behind a reader's back"
    assert answer.is_closed


def test_a_slow_reader_is_no_silence() -> None:
    """The provider has sent all that it was asked for: the time is the reader's own."""
    answer = Slow(*[(1.0, WORD)] * 5, (0, END))
    text, took, error = call(SlowNetwork(answer), timeout=Timeout.of(2), reader=10)
    assert error is None
    assert text == "xxxxx"
    assert took > 50


def test_the_whole_call() -> None:
    """A provider that never falls silent, and never ends."""
    answer = Slow(*[(1.0, WORD)] * 99)
    text, took, error = call(SlowNetwork(answer), timeout=Timeout(total=4.5))
    assert isinstance(error, TotalTimeoutError)
    assert (text, took) == ("xxxx", 4.5)
    assert not error.is_retryable


def test_retries_are_part_of_the_whole_call() -> None:
    """A pause that would end after it is not begun: the failure itself says more."""
    network = SlowNetwork(refusal(503, retry_after="3"), refusal(503, retry_after="3"))
    _, took, error = call(network, timeout=Timeout(total=5))
    assert type(error) is not TotalTimeoutError
    assert isinstance(error, ProviderError)
    assert took == 3.0
    assert len(network.asked) == 2


def test_without_limits_anything_is_waited_for() -> None:
    """None waits for ever."""
    answer = Slow((1e6, WORD), (1e6, END))
    text, took, error = call(SlowNetwork(answer), timeout=None)
    assert (text, took, error) == ("x", 2e6, None)


def test_a_time_out_of_the_transport_s_own_is_none_of_ours() -> None:
    """What a transport raises is not taken for a limit that was set here."""
    network = SlowNetwork(Response(TimeoutError("theirs")))
    with pytest.raises(TimeoutError, match="theirs"):
        call(network, timeout=5, max_retries=0)


@pytest.mark.parametrize("limit", ["connect", "first_chunk", "between_chunks", "total"])
@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_limit_that_is_none(limit: str, seconds: float) -> None:
    """It is refused, by name."""
    with pytest.raises(ConfigurationError, match=f"{limit}: timeout must be a positive"):
        Timeout(**{limit: seconds})


def test_all_are_timeouts() -> None:
    """Who does not care which one catches them all."""
    for cls in (FirstChunkTimeoutError, ChunkTimeoutError, TotalTimeoutError):
        assert issubclass(cls, ModelTimeoutError)
