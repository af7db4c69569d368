"""`streampipe doctor`: what a provider does when it is asked for real, one check a row."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import orjson
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streampipe.cli._checks import CHECKS, Check, Found, Pace, Provider, Status
from streampipe.contracts import Model
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
from streampipe.models._http.endpoint import HttpModel

LIMIT = 60.0  # seconds that a check may take
UNKNOWN = "no-such-model"

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


FIRST = "key and address"
CHECK_NAMES = (FIRST, *(check.name for check in CHECKS))


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
        yield CheckResult(name=FIRST, status="failed", seen=str(error), error=_name(error))
        for check in CHECKS:
            yield CheckResult(name=check.name, status="skipped", seen="there is no model to ask")
        return
    yield CheckResult(name=FIRST, status="ok", seen=provider.about)
    needless = ""
    for check in CHECKS:
        if needless:
            yield CheckResult(name=check.name, status="skipped", seen=needless)
            continue
        result, failure = await _conducted(check, provider, limit)
        yield result
        if check is CHECKS[0]:  # the first call: what stands in its way stands in every other's
            needless = _in_the_way(failure)


async def _conducted(
    check: Check, provider: Provider, limit: float
) -> tuple[CheckResult, Exception | None]:
    """Make a check within its time."""
    pace = Pace()
    failure: Exception | None = None
    try:
        async with asyncio.timeout(limit):
            found = await check.run(provider, pace)
    except TimeoutError as error:
        failure = error
        seen = f"not over in {limit:g} s; pieces of an answer so far: {pace.pieces}"
        found = Found("failed", seen, _name(error))
    except Exception as error:  # noqa: BLE001 - what goes wrong is what is looked for
        failure = error
        found = Found(_status(error, check.lacks), str(error), _name(error))
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


def _provider(router_id: str, base_url: str | None) -> Provider:
    """Who is to be examined.

    Raises:
        ConfigurationError: there is no such model, its key is missing, or the address is none.
    """
    prefix = router_id.partition("/")[0]
    model, unknown = (_model(each, base_url) for each in (router_id, f"{prefix}/{UNKNOWN}"))
    if not isinstance(model, HttpModel):
        return Provider(model, unknown, f"a {type(model).__name__} of your own")
    # Whoever keeps secrets out of sight has to know them.
    address, secret = model._base_url, model._call.secret  # noqa: SLF001
    key = "with a key" if secret else "without a key"
    return Provider(model, unknown, f"asking {_public(address)} {key}", secret)


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


def _public(address: str) -> str:
    """An address without user, password and query, each of which may be a secret."""
    url = urlsplit(address)
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
