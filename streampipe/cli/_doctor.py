"""`streampipe doctor`: what a provider does when it is asked for real, one check a row."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

import orjson
from pydantic import BaseModel
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streampipe.agent import Agent
from streampipe.chunks import Chunk, ReasoningDelta, StepStart, TextDelta, ToolCallDelta, Usage
from streampipe.contracts import Model, RunResult
from streampipe.errors import (
    AuthenticationError,
    ConfigurationError,
    ConnectTimeoutError,
    IncompleteStreamError,
    InvalidRequestError,
    ModelConnectionError,
    ModelTimeoutError,
    OverloadedError,
    ProviderStreamError,
    QuotaError,
    RateLimitError,
    ServerError,
    StructuredOutputError,
)
from streampipe.models import resolve_model
from streampipe.models._call import SHORTEST_KEY
from streampipe.models._endpoint import HttpModel
from streampipe.tools import tool

LIMIT = 60.0  # seconds that a check may take
BURST = 10_000  # chunks a second that no model writes: something has collected them
CLOSING = 1.0  # seconds that a cancelled call may take to let go of its connection
WIDEST = 300  # characters that a row says of what was seen
EXCERPT = 60  # characters of an answer's text that are quoted
UNKNOWN = "streampipe-doctor-no-such-model"

Status = Literal["ok", "failed", "not supported", "skipped"]

ADVICE: Mapping[type[BaseException], str] = {
    AuthenticationError: "check the key, and that it may use this model",
    QuotaError: "check the account's credit",
    RateLimitError: "wait a little and try again",
    OverloadedError: "the provider is busy: try again later",
    ServerError: "the fault is the provider's: try again later",
    InvalidRequestError: "check the model's name, and what the provider says it takes",
    IncompleteStreamError: "the server or a proxy cut the answer off: try again, then ask there",
    ProviderStreamError: "check the address: it may not be the API, or speak another protocol",
    ModelConnectionError: "check that the address is right, and that the server runs",
    ModelTimeoutError: "check the network and the address",
    StructuredOutputError: "the model does not keep to a schema: check its answers",
    TimeoutError: "give more time by --timeout if the model is only slow",
}
"""What to do about an error; the nearest class counts."""


@dataclass(slots=True, frozen=True, kw_only=True)
class CheckResult:
    """What a check found.

    Attributes:
        name: the check.
        status: `ok`, `failed`, `not supported` by the provider, or `skipped`.
        seen: what was seen, or what the error says.
        error: the error's class, if there was one.
        advice: what to do about it.
        first_chunk: seconds from asking to the first piece of the answer, if one came.
        total: seconds that the check took; None when nothing was asked.
        rate: chunks a second, from the first piece of an answer to its last.
    """

    name: str
    status: Status
    seen: str
    error: str | None = None
    advice: str | None = None
    first_chunk: float | None = None
    total: float | None = None
    rate: float | None = None

    @property
    def is_fine(self) -> bool:
        """Whether this is how it should be; what a provider does not support is not at fault."""
        return self.status in ("ok", "not supported")

    def to_json(self) -> bytes:
        """The result as UTF-8 JSON without a line break; times are in milliseconds."""
        return orjson.dumps(
            {
                "check": self.name,
                "status": self.status,
                "firstChunkMs": _milliseconds(self.first_chunk),
                "totalMs": _milliseconds(self.total),
                "chunksPerSecond": None if self.rate is None else round(self.rate, 1),
                "seen": self.seen,
                "error": self.error,
                "advice": self.advice,
            }
        )


@dataclass(slots=True)
class _Found:
    """What a check says of itself."""

    status: Status
    seen: str
    error: str | None = None


@dataclass(slots=True)
class _Pace:
    """How fast an answer came. Only what the model wrote counts, and no pause between steps."""

    began: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    first: float | None = None
    pieces: int = 0
    texts: int = 0
    _gaps: int = 0
    _spent: float = 0.0
    _last: float | None = None

    def note(self, chunk: Chunk) -> bool:
        """Take the next chunk; returns whether it is a piece of what the model wrote."""
        if isinstance(chunk, StepStart):
            self._last = None
        if not isinstance(chunk, TextDelta | ReasoningDelta | ToolCallDelta):
            return False
        now = asyncio.get_running_loop().time()
        if self.first is None:
            self.first = now - self.began
        if self._last is not None:
            self._gaps += 1
            self._spent += now - self._last
        self._last = now
        self.pieces += 1
        self.texts += isinstance(chunk, TextDelta)
        return True

    @property
    def rate(self) -> float | None:
        """Pieces a second."""
        return self._gaps / self._spent if self._spent else None


@dataclass(slots=True)
class _Provider:
    """Who is examined.

    Attributes:
        model: what is asked.
        unknown: the same provider under the name of a model that it does not have.
        about: its address, and whether there is a key.
        secret: its key, to be kept out of all that is shown.
        answer: what the text check got, for the checks that only look at it.
    """

    model: Model
    unknown: Model
    about: str
    secret: str = field(default="", repr=False)
    answer: RunResult | None = None

    def shown(self, text: str, width: int = WIDEST) -> str:
        """What others said, fit to be shown: no key, short, nothing that a terminal would obey."""
        if len(self.secret) >= SHORTEST_KEY:
            text = text.replace(self.secret, "***")
        plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return plain if len(plain) <= width else f"{plain[:width]} ..."

    def quoted(self, text: str) -> str:
        """The beginning of what the model said."""
        return f'"{self.shown(text, EXCERPT)}"'


# --- the checks --------------------------------------------------------------------------------


async def _text(provider: _Provider, pace: _Pace) -> _Found:
    """An answer comes in pieces, with its usage and why it ended."""
    prompt = "Write the numbers from one to thirty in words, separated by commas."
    result = provider.answer = await _asked(Agent(model=provider.model), prompt, pace)
    ended = f"finish reason {result.finish_reason!r}; {_told(result.usage)}"
    if not result.text.strip():
        return _Found("failed", f"an answer without text; {ended}")
    if pace.texts == 1:
        came = "does not stream: all came in one piece"
    elif pace.rate is None or pace.rate > BURST:
        came = f"does not stream: {pace.texts} pieces came all at once"
    else:
        came = f"streams: {pace.texts} pieces"
    return _Found("ok", f"{came}; {ended}{_warnings(result)}")


async def _reasoning(provider: _Provider, _pace: _Pace) -> _Found:
    """The answer of the text check came with reasoning."""
    result = provider.answer
    if result is None:
        return _Found("skipped", "the text check got no answer to look at")
    tokens = result.usage.reasoning_tokens
    if result.reasoning:
        return _Found("ok", f"{len(result.reasoning)} characters; {tokens} tokens")
    if tokens:
        return _Found("not supported", f"{tokens} tokens of reasoning, of which none is shown")
    return _Found("not supported", "none came")


@tool
async def parcel(order: int) -> dict[str, Any]:
    """Find out where the parcel of an order is.

    Args:
        order: the order's number.
    """
    return {"order": order, "place": "Porto"}


async def _tool_call(provider: _Provider, pace: _Pace) -> _Found:
    """A tool is called with arguments that fit, and its result is answered to."""
    agent = Agent(model=provider.model, tools=[parcel], max_steps=3)
    result = await _asked(agent, "Where is the parcel of order 7? Use the tool, then answer.", pace)
    if not result.tool_calls:
        said = f"answered without calling the tool: {provider.quoted(result.text)}"
        return _Found("not supported", said + _warnings(result))
    refused = [error.error for step in result.steps for error in step.tool_errors]
    if not result.tool_results:
        return _Found("failed", f"no call of the tool is valid: {'; '.join(refused)}")
    call = result.tool_results[-1]
    arguments = orjson.dumps(call.args).decode()
    answer = result.steps[-1].text
    if not answer.strip():
        return _Found("failed", f"called {call.tool_name}({arguments}), then gave no answer")
    attempts = f" after {len(refused)} invalid calls" if refused else ""
    seen = (
        f"called {call.tool_name}({arguments}){attempts}, then answered {provider.quoted(answer)}"
    )
    return _Found("ok", seen + _warnings(result))


class City(BaseModel):
    """What the check of structured output asks for."""

    name: str
    country: str
    rivers: list[str]


async def _structured_output(provider: _Provider, pace: _Pace) -> _Found:
    """An answer comes back as a valid instance of a pydantic model."""
    agent = Agent(model=provider.model, structured_output=City, max_steps=1)
    result = await _asked(agent, "Describe the city of Porto as JSON.", pace)
    if not isinstance(result.object, City):
        return _Found("failed", f"no object; finish reason {result.finish_reason!r}")
    return _Found("ok", f"valid: {result.object.model_dump_json()}{_warnings(result)}")


async def _cancel(provider: _Provider, pace: _Pace) -> _Found:
    """Leaving a run after the first piece of its answer closes the connection."""
    # Room for one chunk: a short answer would else be whole before there is anything to cancel.
    agent = Agent(model=provider.model, high_water=1)
    loop = asyncio.get_running_loop()
    async with agent.stream("Write the numbers from one to three hundred in words.") as run:
        async for chunk in run:
            if pace.note(chunk):
                break
        else:
            await run.result()  # raises what the run failed with
            return _Found("failed", "the answer ended before a piece of it came")
        left = loop.time()
    took = loop.time() - left
    if took > CLOSING:
        return _Found("failed", f"the connection was closed only after {took * 1000:.0f} ms")
    return _Found("ok", f"closed in {took * 1000:.1f} ms")


async def _unknown_model(provider: _Provider, pace: _Pace) -> _Found:
    """A wrong request is refused with an error of the class that it is."""
    try:
        await _asked(Agent(model=provider.unknown), "hi", pace)
    except (InvalidRequestError, AuthenticationError) as error:  # some say: not yours to use
        return _Found("ok", f"refused: {error}", type(error).__name__)
    return _Found("not supported", "the server answers under any model's name")


async def _asked(agent: Agent, prompt: str, pace: _Pace) -> RunResult:
    """Ask, and keep the pace.

    Raises:
        StreampipeError: what the run failed with.
    """
    async with agent.stream(prompt) as run:
        async for chunk in run:
            pace.note(chunk)
        return await run.result()


@dataclass(slots=True, frozen=True)
class _Check:
    """A check.

    Attributes:
        name: what it looks at.
        run: makes it.
        lacks: the words by which a provider says that it knows no such thing.
        asks: whether it calls the provider; else it only looks at an answer.
    """

    name: str
    run: Callable[[_Provider, _Pace], Awaitable[_Found]]
    lacks: re.Pattern[str] | None = None
    asks: bool = True


_FIRST = "key and address"
_CHECKS = (
    _Check("text", _text),
    _Check("reasoning", _reasoning, asks=False),
    _Check("tool call", _tool_call, re.compile("tool|function", re.IGNORECASE)),
    _Check(
        "structured output",
        _structured_output,
        re.compile("schema|structured|(response|output).?format", re.IGNORECASE),
    ),
    _Check("cancel", _cancel),
    _Check("unknown model", _unknown_model),
)
CHECK_NAMES = (_FIRST, *(check.name for check in _CHECKS))


# --- the examination ---------------------------------------------------------------------------


async def check_provider(
    router_id: str,
    *,
    base_url: str | None = None,
    limit: float = LIMIT,
) -> AsyncIterator[CheckResult]:
    """Check a provider by about six short calls, one check after the other.

    A check that fails does not keep the others from being made, unless nobody answers at all.

    Args:
        router_id: the model, such as `openai/gpt-5-mini`.
        base_url: where to ask instead of the provider's own address. The provider's key goes there.
        limit: seconds that a check may take.

    Yields:
        What each check found, as soon as it is known; never the key.

    Raises:
        ConfigurationError: `limit` is not a positive number of seconds.
    """
    if not 0 < limit < math.inf:
        raise ConfigurationError(f"timeout must be a positive number of seconds, not {limit}")
    try:
        provider = _provider(router_id, base_url)
    except ConfigurationError as error:
        yield CheckResult(name=_FIRST, status="failed", seen=str(error), error=_name(error))
        needless = "there is no model to ask"
    else:
        yield CheckResult(name=_FIRST, status="ok", seen=provider.about)
        needless = ""
    for check in _CHECKS:
        if needless:
            yield CheckResult(name=check.name, status="skipped", seen=needless)
            continue
        result, failure = await _conducted(check, provider, limit)
        yield result
        if check is _CHECKS[0]:  # the first call: what stands in its way stands in every other's
            needless = _in_the_way(failure)


async def _conducted(
    check: _Check, provider: _Provider, limit: float
) -> tuple[CheckResult, Exception | None]:
    """Make a check within its time."""
    pace = _Pace()
    failure: Exception | None = None
    try:
        async with asyncio.timeout(limit):
            found = await check.run(provider, pace)
    except TimeoutError as error:
        failure = error
        came = f"{pace.pieces} pieces of an answer came" if pace.pieces else "no answer came"
        found = _Found("failed", f"{came} within {limit:g} s, and no end", _name(error))
    except Exception as error:  # noqa: BLE001 - what goes wrong is what is looked for
        failure = error
        found = _Found(_status(error, check.lacks), str(error), _name(error))
    result = CheckResult(
        name=check.name,
        status=found.status,
        seen=provider.shown(found.seen),
        error=found.error,
        advice=_advice(failure) if found.status == "failed" else None,
        first_chunk=pace.first,
        total=asyncio.get_running_loop().time() - pace.began if check.asks else None,
        rate=pace.rate,
    )
    return result, failure


def _provider(router_id: str, base_url: str | None) -> _Provider:
    """Who is to be examined.

    Raises:
        ConfigurationError: there is no such model, its key is missing, or the address is none.
    """
    prefix = router_id.partition("/")[0]
    model, unknown = (_model(each, base_url) for each in (router_id, f"{prefix}/{UNKNOWN}"))
    if not isinstance(model, HttpModel):
        return _Provider(model, unknown, f"a {type(model).__name__} of your own")
    # Whoever keeps secrets out of sight has to know them.
    address, secret = model._base_url, model._call.secret  # noqa: SLF001
    key = "with a key" if secret else "without a key"
    return _Provider(model, unknown, f"asking {_public(address)} {key}", secret)


def _model(router_id: str, base_url: str | None) -> Model:
    model = resolve_model(router_id)
    if base_url is None:
        return model
    if not isinstance(model, HttpModel):
        msg = f"--base-url: a {type(model).__name__} has no address to change; leave it out"
        raise ConfigurationError(msg)
    return type(model)(
        model.model_id,
        base_url=base_url,
        api_key=model._call.secret,  # noqa: SLF001 - it has been looked up already
        provider=model.provider,
    )


def _in_the_way(error: Exception | None) -> str:
    """Why no further call is worth making; empty if one is."""
    if isinstance(error, AuthenticationError):
        return "the key is refused"
    silent = isinstance(error, ModelTimeoutError) and not isinstance(error, ConnectTimeoutError)
    return "nobody answers" if isinstance(error, ModelConnectionError) and not silent else ""


def _status(error: Exception, lacks: re.Pattern[str] | None) -> Status:
    refused = isinstance(error, InvalidRequestError) and lacks is not None
    return "not supported" if refused and lacks and lacks.search(str(error)) else "failed"


def _advice(error: Exception | None) -> str | None:
    return next((ADVICE[cls] for cls in type(error).__mro__ if cls in ADVICE), None)


# --- what is shown -----------------------------------------------------------------------------


def show_results(results: Iterable[CheckResult], console: Console) -> None:
    """Print the results as a table; without colours and box characters where nobody watches."""
    frame = box.HEAVY_HEAD if console.is_terminal else box.ASCII
    table = Table("check", "status", box=frame)
    for heading in ("first ms", "total ms", "chunks/s"):
        table.add_column(heading, justify="right")
    table.add_column("what was seen", overflow="fold")
    for result in results:
        status = f"[{_STYLES[result.status]}]{result.status}[/]"
        seen = f"{result.error}: {result.seen}" if result.error else result.seen
        if result.advice:
            seen += f"\n> {result.advice}"
        times = (_milliseconds(result.first_chunk), _milliseconds(result.total), result.rate)
        cells = ("" if value is None else f"{value:.0f}" for value in times)
        table.add_row(result.name, status, *cells, escape(seen))
    console.print(table)


_STYLES: Mapping[Status, str] = {
    "ok": "green",
    "failed": "bold red",
    "not supported": "yellow",
    "skipped": "dim",
}


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)


def _name(error: Exception) -> str:
    return type(error).__name__


def _told(usage: Usage) -> str:
    if not usage.total_tokens:
        return "no usage told"
    return f"{usage.input_tokens} tokens in, {usage.output_tokens} out"


def _warnings(result: RunResult) -> str:
    return "".join(f"; warning: {warning}" for warning in result.warnings)


def _public(address: str) -> str:
    """An address without user, password and query, each of which may be a secret."""
    url = urlsplit(address)
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
