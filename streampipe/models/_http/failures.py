"""What a provider says of its failures, told apart in the same way for every provider.

Providers agree on nothing but the HTTP status: each has codes of its own, some tell in words only.
So the codes decide where they are exact, then the words, then the vague codes, then the status.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC
from http import HTTPStatus
from typing import Any

import orjson

from streampipe.errors import (
    AuthenticationError,
    ContentFilterError,
    ContextLengthError,
    InvalidRequestError,
    OverloadedError,
    ProviderError,
    QuotaError,
    RateLimitError,
    ServerError,
)

EXCERPT = 1000  # characters of a message that an error shows
_PROXY_EXCERPT = 200  # characters of an answer that is not the provider's

_CODES: Mapping[str, type[ProviderError]] = {
    "account_deactivated": AuthenticationError,
    "authentication_error": AuthenticationError,
    "invalid_api_key": AuthenticationError,
    "permission_denied": AuthenticationError,
    "permission_error": AuthenticationError,
    "unauthenticated": AuthenticationError,
    "unauthorized": AuthenticationError,
    "content_filter": ContentFilterError,
    "content_policy_violation": ContentFilterError,
    "prohibited_content": ContentFilterError,
    "responsibleaipolicyviolation": ContentFilterError,
    "context_length_exceeded": ContextLengthError,
    "exceed_context_size_error": ContextLengthError,
    "string_above_max_length": ContextLengthError,
    "engine_overloaded": OverloadedError,
    "engine_overloaded_error": OverloadedError,
    "overloaded": OverloadedError,
    "overloaded_error": OverloadedError,
    "service_unavailable": OverloadedError,
    "slow_down": OverloadedError,
    "unavailable": OverloadedError,
    "billing_error": QuotaError,
    "billing_hard_limit_reached": QuotaError,
    "billing_not_active": QuotaError,
    "exceeded_current_quota_error": QuotaError,
    "insufficient_quota": QuotaError,
    "rate_limit_error": RateLimitError,
    "rate_limit_exceeded": RateLimitError,
    "rate_limit_reached_error": RateLimitError,
    "too_many_requests": RateLimitError,
}
_VAGUE: Mapping[str, type[ProviderError]] = {
    "resource_exhausted": RateLimitError,
    "api_error": ServerError,
    "deadline_exceeded": ServerError,
    "internal": ServerError,
    "internal_error": ServerError,
    "internal_server_error": ServerError,
    "server_error": ServerError,
    "timeout_error": ServerError,
    "failed_precondition": InvalidRequestError,
    "invalid_argument": InvalidRequestError,
    "invalid_prompt": InvalidRequestError,
    "invalid_request_error": InvalidRequestError,
    "model_not_found": InvalidRequestError,
    "not_found": InvalidRequestError,
    "not_found_error": InvalidRequestError,
    "request_too_large": InvalidRequestError,
}
_WORDS: Mapping[type[ProviderError], re.Pattern[str]] = {
    kind: re.compile("|".join(words), re.IGNORECASE)
    for kind, words in {
        ContextLengthError: (
            # Not in a name, which the message may quote: a tool's, say.
            r"\bcontext[ -](length|window|size|limit)\b",
            r"\bcontext_length_exceeded\b",
            "maximum (context|prompt length)",
            "prompt (is|was) too long",
            "too many (input |prompt )?tokens",
            "token count .{0,40}exceed",
            "reduce the length of",
            "too large for model",
        ),
        AuthenticationError: (
            "api.?key (is )?(not valid|invalid|expired)",
            "(incorrect|invalid) api.?key",
        ),
        QuotaError: (
            "credit balance is too low",
            "insufficient.{0,10}(balance|credit|funds|quota)",
            "exceeded your (current|monthly) quota",
            "(used|out of).{0,20}credits",
            "(does not|doesn.t|don.t|do not) have any credits",
        ),
        ContentFilterError: (
            "content (filter|management policy)",
            "flagged by",
            "safety (system|filter)",
        ),
        OverloadedError: ("overloaded", "no (available )?capacity", "capacity exceeded"),
    }.items()
}
_STATUSES: Mapping[int, type[ProviderError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    402: QuotaError,
    403: AuthenticationError,
    404: InvalidRequestError,
    405: InvalidRequestError,
    408: ProviderError,  # too slow, and a conflict: neither is a fault of what was asked
    409: ProviderError,
    413: InvalidRequestError,
    415: InvalidRequestError,
    422: InvalidRequestError,
    429: RateLimitError,
    503: OverloadedError,
    529: OverloadedError,
}
_PASSING = (OverloadedError, RateLimitError, ServerError)
"""What may be over when asked again, where there is no status to tell."""


def provider_error(
    body: Any,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> ProviderError:
    """A failure that the provider reports, as the class that it is.

    Args:
        body: what it said: decoded JSON, else text.
        status: HTTP status; None for an error within a stream, which may name one itself.
        headers: of the answer, names in lower case.
    """
    headers = headers or {}
    try:
        shown = body if isinstance(body, str) else orjson.dumps(body, default=str).decode()
    except TypeError:  # nested deeper than anybody could read, or walk through
        body = shown = "an error nested too deep to show"
    details = dict(_details(body))
    codes = [str(value).lower() for name, value in details.items() if name.startswith("code")]
    if status is None:
        status = next((int(c) for c in codes if re.fullmatch(r"[45]\d\d", c)), None)
    message = str(details.get("message") or "")
    waits = retry_after(headers) or _seconds(details.get("wait"))
    kind = _kind(codes, message, status, waits)
    if not message and isinstance(body, str) and body:  # not from the provider: a proxy's page
        found = headers.get("content-type", "no content type")
        message = f"answered {found!r} and no JSON: {body[:_PROXY_EXCERPT]!r}"
    elif not message:
        message = shown if body else "no body"
    return kind(
        message[:EXCERPT],
        status=status,
        body=body,
        request_id=request_id_of(headers) or details.get("request_id"),
        retry_after=waits,
        is_retryable=kind is not QuotaError
        and (issubclass(kind, _PASSING) if status is None else is_retryable(status)),
    )


def is_retryable(status: int) -> bool:
    """Whether a call that was answered with this status may succeed unchanged.

    >>> [status for status in (200, 400, 401, 408, 409, 429, 500, 529) if is_retryable(status)]
    [408, 409, 429, 500, 529]
    """
    return status in (408, 409, 429) or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """The wait that headers ask for, in seconds from now: as seconds, milliseconds or a date.

    >>> retry_after({"retry-after": "2.5"}), retry_after({"retry-after-ms": "300"})
    (2.5, 0.3)
    >>> retry_after({"retry-after": "soon"}), retry_after({})
    (None, None)
    """
    fine = _seconds(headers.get("retry-after-ms"))
    if fine is not None:
        return fine / 1000
    value = headers.get("retry-after")
    plain = _seconds(value)
    if plain is not None or not value:
        return plain
    try:
        date = email.utils.parsedate_to_datetime(value)
        at = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()  # HTTP's dates are
    except (ValueError, OverflowError):
        return None
    return max(0.0, at - (time.time() if now is None else now))


def _seconds(value: Any) -> float | None:
    """A number of seconds, also as Google writes one (`"34.5s"`); never less than none at all."""
    try:
        seconds = float(str(value).removesuffix("s"))
    except ValueError:
        return None
    return max(0.0, seconds) if seconds < float("inf") else None


def _kind(
    codes: list[str], message: str, status: int | None, waits: float | None
) -> type[ProviderError]:
    for code in codes:
        if code in _CODES:
            return _CODES[code]
    if status is None or status < HTTPStatus.INTERNAL_SERVER_ERROR:
        for kind, words in _WORDS.items():
            # Google says "quota" of a limit per minute too; but then it says how long to wait.
            if words.search(message) and not (kind is QuotaError and waits is not None):
                return kind
    if status is not None and status in _STATUSES:
        return _STATUSES[status]
    for code in codes:
        if code in _VAGUE:
            return _VAGUE[code]
    if status is not None and status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ServerError
    return ProviderError


def _details(body: Any) -> Iterator[tuple[str, Any]]:
    """Message, codes and the rest, out of the shapes that providers use.

    All of them nest an object under `error`, or say it at the top; Google lists it, Azure has an
    inner error, Responses a whole response.
    """
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, str) or not isinstance(body, Mapping):
        return
    response = body.get("response")
    inner = body.get("error") or (response.get("error") if isinstance(response, Mapping) else None)
    error = inner if isinstance(inner, Mapping) else body
    message = inner if isinstance(inner, str) else error.get("message") or error.get("detail")
    if message:
        yield "message", message
    yield "request_id", body.get("request_id")
    deeper = error.get("innererror")
    for place, found in enumerate((deeper if isinstance(deeper, Mapping) else {}, error)):
        for name in ("code", "type", "status"):
            if isinstance(found.get(name), str | int):
                yield f"code-{place}-{name}", found[name]
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, Mapping) and "retryDelay" in detail:
            yield "wait", detail["retryDelay"]


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The provider's id of a request, by the names that providers give it."""
    names = ("x-request-id", "request-id", "apim-request-id", "x-goog-request-id")
    return next((headers[name] for name in names if name in headers), None)
