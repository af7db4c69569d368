"""A call over HTTP: what is tried again, for how long, and what each failure becomes."""

from __future__ import annotations

import asyncio
import email.utils
import json
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streampipe.chunks import Chunk, TextDelta
from streampipe.contracts import Model, ModelRequest
from streampipe.errors import (
    ConfigurationError,
    IncompleteStreamError,
    ModelConnectionError,
    ModelError,
    ModelTimeoutError,
    ProviderError,
    ProviderStreamError,
)
from streampipe.messages import PromptMessage, TextPart
from streampipe.models._http.failures import retry_after
from streampipe.models._http.transport import Timeout
from streampipe.models.openai_chat import OpenAIChatModel
from tests.models.streams import event, sse

REQUEST = ModelRequest([PromptMessage("user", [TextPart("hi")])])
GOOD = sse(event({"content": "ok"}), event(reason="stop"))


async def collected(model: Model, request: ModelRequest = REQUEST) -> list[Chunk]:
    """The chunks of one call."""
    return [chunk async for chunk in model.stream(request)]


class Response:
    """An answer in pieces; an exception among them is raised in its place."""

    def __init__(
        self,
        *pieces: bytes | Exception,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Say what comes."""
        self.status = status
        self.headers = {"content-type": "text/event-stream", **(headers or {})}
        self.pieces = pieces
        self.read = 0
        self.is_closed = False

    async def body(self) -> AsyncGenerator[bytes, None]:
        """The pieces, one by one."""
        for piece in self.pieces:
            await asyncio.sleep(0)
            self.read += 1
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def aclose(self) -> None:
        """Note that it was closed."""
        self.is_closed = True


class Network:
    """A transport that answers from a list; an exception in it is what asking comes to."""

    def __init__(self, *answers: Response | Exception) -> None:
        """Say what it answers."""
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    async def post(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        content: bytes,
        timeout: Timeout,  # noqa: ASYNC109 - as the protocol says
    ) -> Response:
        """Answer the next request."""
        self.asked.append({"url": url, "headers": headers, "content": content, "timeout": timeout})
        found = self.answers[len(self.asked) - 1]
        if isinstance(found, Exception):
            raise found
        return found


def model_on(network: Network, **options: Any) -> OpenAIChatModel:
    """A model behind a network."""
    return OpenAIChatModel("m", api_key="k", transport=network, **options)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, which are not made."""
    made: list[float] = []
    sleep = asyncio.sleep

    async def pause(seconds: float) -> None:
        if seconds:
            made.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", pause)
    return made


def refusal(status: int, **headers: str) -> Response:
    """An HTTP error."""
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    body = b'{"error": {"message": "no", "code": "c"}}'
    return Response(body, status=status, headers={"content-type": "application/json", **said})


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_a_status_that_may_pass_is_tried_again(status: int, waits: list[float]) -> None:
    """With `max_retries=2` there are three attempts, then the last error."""
    network = Network(refusal(status), refusal(status), refusal(status))
    with pytest.raises(ProviderError, match=f"openai/m: HTTP {status}: no") as caught:
        await collected(model_on(network))
    assert len(network.asked) == 3
    assert len(waits) == 2
    assert caught.value.is_retryable
    assert all(isinstance(r, Response) and r.is_closed for r in network.answers)


@pytest.mark.parametrize("status", [201, 301, 400, 401, 403, 404, 413, 422])
async def test_a_status_that_will_not_pass_is_not_tried_again(
    status: int, waits: list[float]
) -> None:
    """Asking again unchanged would change nothing."""
    network = Network(refusal(status))
    with pytest.raises(ProviderError) as caught:
        await collected(model_on(network))
    assert len(network.asked) == 1
    assert not waits
    assert not caught.value.is_retryable


async def test_a_status_error_carries_what_the_provider_said() -> None:
    """Status, body, request id, the wait it asks for, and who it was."""
    network = Network(refusal(429, x_request_id="req_1", retry_after="7"))
    with pytest.raises(ProviderError) as caught:
        await collected(model_on(network, max_retries=0, provider="openai"))
    error = caught.value
    assert (error.status, error.request_id, error.retry_after) == (429, "req_1", 7.0)
    assert error.body == {"error": {"message": "no", "code": "c"}}
    assert (error.provider, error.model) == ("openai", "m")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"error": "plain"}', "plain"),
        (b'{"message": "top"}', "top"),
        (b'{"detail": "fast"}', "fast"),
        (b'[{"error": {"message": "listed"}}]', "listed"),
        (b"<html>proxy</html>", "answered 'text/html' and no JSON: '<html>proxy</html>'"),
        (b"\xff\xfe", "answered 'text/html' and no JSON: '\ufffd\ufffd'"),
        (b"", "no body"),
        (b"null", "answered 'text/html' and no JSON: 'null'"),
    ],
)
async def test_an_error_body_of_any_shape_is_told(body: bytes, told: str) -> None:
    """Providers and proxies each have their own shape; none of them hides the message."""
    network = Network(Response(body, status=400, headers={"content-type": "text/html"}))
    with pytest.raises(ProviderError, match="HTTP 400") as caught:
        await collected(model_on(network))
    assert str(caught.value) == f"openai/m: HTTP 400: {told}"


async def test_an_endless_error_body_is_not_read_to_its_end() -> None:
    """A body larger than any error is cut."""
    response = Response(*[b"x" * (1 << 18)] * 20, status=400)
    with pytest.raises(ProviderError):
        await collected(model_on(Network(response)))
    assert response.read < 20


async def test_an_error_body_that_breaks_is_told_as_far_as_it_came() -> None:
    """The status is the failure; that its body broke is only added."""
    broken = Response(b"no wa", ModelConnectionError("reset"), status=400)
    with pytest.raises(ProviderError, match=r"HTTP 400: .*no wa .*rest is missing.*reset"):
        await collected(model_on(Network(broken)))


@pytest.mark.parametrize(
    "failure",
    [
        ModelConnectionError("refused", is_retryable=True),
        ModelTimeoutError("slow", is_retryable=True),
        refusal(503),
        Response(ModelConnectionError("reset", is_retryable=True)),
        Response(b": ping\n\n"),
        Response(sse({"error": {"message": "overloaded", "code": 503}}, done=False)),
    ],
    ids=["refused", "timeout", "status", "broken at once", "nothing said", "error in the stream"],
)
async def test_a_failure_before_the_first_chunk_is_tried_again(
    failure: Any, waits: list[float]
) -> None:
    """Nobody has seen anything of it, so another attempt is as good as the first."""
    network = Network(failure, Response(GOOD))
    chunks = await collected(model_on(network))
    assert [chunk.text for chunk in chunks if isinstance(chunk, TextDelta)] == ["ok"]
    assert len(network.asked) == 2
    assert len(waits) == 1


async def test_a_failure_after_the_first_chunk_is_not_tried_again() -> None:
    """A part has been seen: to say it twice would be worse than to fail."""
    begun = sse(event({"content": "par"}), done=False)
    network = Network(Response(begun, ModelConnectionError("reset")), Response(GOOD))
    seen: list[Chunk] = []
    with pytest.raises(IncompleteStreamError, match="mid-stream") as caught:
        async for chunk in model_on(network).stream(REQUEST):
            seen.append(chunk)  # noqa: PERF401 - what came before the error is looked at
    assert [chunk.text for chunk in seen if isinstance(chunk, TextDelta)] == ["par"]
    assert caught.value.is_retryable  # the caller may void what it has seen
    assert len(network.asked) == 1


@pytest.mark.parametrize("retries", [0, 1, 4])
async def test_retries_count_exactly(retries: int, waits: list[float]) -> None:
    """`max_retries` more attempts than one, a pause before each of them."""
    network = Network(*[ModelConnectionError("x", is_retryable=True)] * (retries + 1))
    with pytest.raises(ModelConnectionError):
        await collected(model_on(network, max_retries=retries))
    assert len(network.asked) == retries + 1
    assert len(waits) == retries


async def test_every_attempt_sends_the_same(waits: list[float]) -> None:
    """A retry is the same request: address, headers and body."""
    network = Network(refusal(500), Response(GOOD))
    await collected(model_on(network))
    assert network.asked[0] == network.asked[1]
    assert network.asked[0]["url"] == "https://api.openai.com/v1/chat/completions"


async def test_the_wait_grows_within_its_jitter(
    monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    """Full jitter: anything from nothing to a bound that doubles, up to a longest wait."""
    bounds: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        bounds.append((low, high))
        return high

    monkeypatch.setattr("random.uniform", uniform)
    network = Network(*[refusal(500)] * 10)
    with pytest.raises(ProviderError):
        await collected(model_on(network, max_retries=9))
    assert bounds == [(0, min(60.0, 0.5 * 2**n)) for n in range(9)]
    assert waits == [high for _, high in bounds]


async def test_retry_after_is_honoured(waits: list[float]) -> None:
    """What the provider asks for is waited, not less."""
    network = Network(refusal(429, retry_after="3"), refusal(503, retry_after="60"), Response(GOOD))
    await collected(model_on(network))
    assert waits == [3.0, 60.0]


async def test_a_wait_that_is_too_long_is_not_begun(waits: list[float]) -> None:
    """Nobody is kept waiting for hours, and the provider is not asked early: the failure says."""
    network = Network(refusal(429, retry_after="9000"))
    with pytest.raises(ProviderError) as caught:
        await collected(model_on(network))
    assert caught.value.retry_after == 9000
    assert not waits
    assert len(network.asked) == 1


@given(st.integers(0, 10_000))
def test_retry_after_may_be_a_date(seconds: int) -> None:
    """A date in the future is a wait, in whole seconds; one in the past is none."""
    now = 1_700_000_000
    date = email.utils.formatdate(now + seconds, usegmt=True)
    assert retry_after({"retry-after": date}, now=now) == seconds
    assert retry_after({"retry-after": date}, now=now + seconds + 1) == 0.0


GREENWICH = "Tue, 14 Nov 2023 22:13:27 -0000"


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine nine hours from Greenwich.

    Yields:
        Nothing.
    """
    monkeypatch.setenv("TZ", "JST-9")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("far_east")
def test_a_date_without_a_zone_is_greenwichs() -> None:
    """HTTP's dates are, wherever the caller is."""
    assert retry_after({"retry-after": GREENWICH}, now=1_700_000_000) == 7.0


@given(st.text())
def test_a_retry_after_that_says_nothing_is_none(text: str) -> None:
    """Whatever stands there, the answer is a wait or nothing, never an error."""
    for name in ("retry-after", "retry-after-ms"):
        wait = retry_after({name: text})
        assert wait is None or 0 <= wait < float("inf")


@pytest.mark.parametrize("kind", ["text/html", "application/json", "text/plain; charset=utf-8"])
async def test_another_content_type_is_an_error(kind: str) -> None:
    """A proxy's page is no answer, and is shown in part."""
    page = Response(b"<html>Sign in</html>" * 100, headers={"content-type": kind})
    with pytest.raises(ProviderStreamError, match=f"answered '{kind}'.*Sign in") as caught:
        await collected(model_on(Network(page)))
    assert len(str(caught.value)) < 400
    assert page.is_closed


async def test_an_error_told_as_a_success_is_an_error() -> None:
    """A 200 with a JSON error in it says what the provider said."""
    told = Response(
        b'{"error": {"message": "quota"}}', headers={"content-type": "application/json"}
    )
    with pytest.raises(ProviderError, match="quota"):
        await collected(model_on(Network(told)))


async def test_an_error_told_as_a_success_may_pass(waits: list[float]) -> None:
    """It is the failure that it would be with its status: an overload is tried again."""
    told = b'{"error": {"message": "try later", "type": "overloaded_error"}}'
    kind = {"content-type": "application/json", "x-request-id": "r1"}
    network = Network(Response(told, headers=kind), Response(told, headers=kind), Response(GOOD))
    assert await collected(model_on(network))
    assert len(waits) == 2


@pytest.mark.parametrize("body", [b"data: {oops\n\n", b": ping\n\n", b'data: {"error": "x"}\n\n'])
async def test_a_failure_in_the_stream_has_the_request_s_id(body: bytes) -> None:
    """Whoever asks the provider what happened needs it most when the answer broke."""
    network = Network(Response(body, headers={"x-request-id": "r1"}))
    with pytest.raises(ModelError) as caught:
        await collected(model_on(network, max_retries=0))
    assert caught.value.request_id == "r1"


@pytest.mark.parametrize("place", [100, 118, 119, 120, 990, 1000])
async def test_no_part_of_a_key_is_told(place: int) -> None:
    """Where an excerpt ends within it, the rest is not shown either."""
    key = "sk-0123456789abcdefghijklmnopqrstuvwxyz"
    event = json.dumps({"error": {"message": "x" * place + key}}).encode()
    for body in (b"data: " + event + b"\n\n", b"data: " + b"x" * place + key.encode() + b"\n\n"):
        model = OpenAIChatModel("m", api_key=key, transport=Network(Response(body)), max_retries=0)
        with pytest.raises(ModelError) as caught:
            await collected(model)
        assert "sk-0123" not in f"{caught.value} {caught.value.body}"


async def test_a_token_in_a_header_is_as_secret_as_a_key() -> None:
    """As with a cloud's own login, which is given in `headers=`."""
    token = "ya29.0123456789"  # noqa: S105 - made up
    quoted = Response(f'{{"error": {{"message": "bad {token}"}}}}'.encode(), status=401)
    model = OpenAIChatModel(
        "m",
        base_url="http://127.0.0.1:9/v1",
        headers={"Authorization": f"Bearer {token}"},
        transport=Network(quoted),
    )
    with pytest.raises(ModelError) as caught:
        await collected(model)
    assert token not in f"{caught.value} {caught.value.body} {model!r} {vars(model)!r}"


async def test_the_type_of_a_stream_is_read_as_http_says() -> None:
    """Parameters, case, and a missing header are all fine."""
    for headers in ({"content-type": "Text/Event-Stream; charset=utf-8"}, {}):
        response = Response(GOOD)
        response.headers = dict(headers)
        assert await collected(model_on(Network(response)))


async def test_what_follows_the_end_is_read_but_not_told() -> None:
    """After `[DONE]` the body is read to its end, so that the connection can be used again."""
    response = Response(GOOD + sse(event({"content": "late"})), b": bye\n\n")
    chunks = await collected(model_on(Network(response)))
    assert [chunk.text for chunk in chunks if isinstance(chunk, TextDelta)] == ["ok"]
    assert response.read == 2


async def test_a_body_that_breaks_after_the_end_is_whole() -> None:
    """Everything was said: that the connection is lost then is no failure."""
    response = Response(GOOD, ModelConnectionError("reset"))
    assert len(await collected(model_on(Network(response)))) == 5


async def test_closing_early_closes_the_response() -> None:
    """A consumer that has enough lets go of the connection at once."""
    response = Response(*[sse(event({"content": "x"}), done=False)] * 50)
    stream = model_on(Network(response)).stream(REQUEST)
    async for chunk in stream:
        if isinstance(chunk, TextDelta):
            break
    await stream.aclose()
    assert response.is_closed
    assert response.read == 1


async def test_a_cancel_closes_the_response() -> None:
    """A task that is cancelled while it waits for the provider leaves nothing open."""
    waiting = asyncio.Event()

    class Silent(Response):
        async def body(self) -> AsyncGenerator[bytes, None]:
            waiting.set()
            await asyncio.Event().wait()
            yield b""

    response = Silent()
    task = asyncio.create_task(collected(model_on(Network(response))))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert response.is_closed


async def test_a_request_that_is_no_json_is_refused() -> None:
    """What cannot be written as JSON is named before anything is sent."""
    network = Network()
    request = ModelRequest(REQUEST.prompt, settings={"temperature": object()})
    with pytest.raises(ConfigurationError, match="no JSON"):
        await collected(model_on(network), request)
    assert not network.asked


@pytest.mark.parametrize(
    "error",
    [RuntimeError("a bug of the transport"), ConfigurationError("bad address")],
)
async def test_what_is_no_model_error_passes(error: Exception) -> None:
    """A transport's bug is neither tried again nor dressed up."""
    network = Network(error, Response(GOOD))
    with pytest.raises(type(error), match=str(error)):
        await collected(model_on(network))
    assert len(network.asked) == 1


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_garbage_never_gets_through_as_an_answer(pieces: Sequence[bytes]) -> None:
    """Bytes that are no chat stream end in a model error, whatever they are."""
    assume(b"[DONE]" not in b"".join(pieces))
    with pytest.raises(ModelError):
        asyncio.run(collected(model_on(Network(Response(*pieces)), max_retries=0)))


async def test_a_number_of_more_than_64_bits_is_sent() -> None:
    """An id that a model wrote into a call's arguments goes back as it is."""
    network = Network(Response(GOOD))
    await collected(model_on(network), ModelRequest(REQUEST.prompt, settings={"seed": 1 << 70}))
    assert f'"seed":{1 << 70}'.encode() in network.asked[0]["content"]
