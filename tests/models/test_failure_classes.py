"""What each provider says of its failures, and the class that it is: the same for all of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from streampipe.models._http.failures import is_retryable, provider_error
from tests.models.streams import JSON


def openai(message: str, kind: str, code: str | None = None) -> dict[str, Any]:
    """An error as OpenAI and those like it tell one."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def anthropic(message: str, kind: str) -> dict[str, Any]:
    """An error as Anthropic tells one."""
    error = {"type": kind, "message": message}
    return {"type": "error", "error": error, "request_id": "req_1"}


def google(message: str, code: int, status: str, *details: Any) -> dict[str, Any]:
    """An error as Google tells one."""
    return {"error": {"code": code, "message": message, "status": status, "details": [*details]}}


WAIT = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
SAID: list[tuple[str, int | None, Any, type[ProviderError]]] = [
    ("openai key", 401, openai("Incorrect", "invalid_request_error", "invalid_api_key"), AuthenticationError),
    ("openai rate", 429, openai("Rate limit", "tokens", "rate_limit_exceeded"), RateLimitError),
    ("openai quota", 429, openai("Quota", "insufficient_quota", "insufficient_quota"), QuotaError),
    ("openai context", 400, openai("Too long", "invalid_request_error", "context_length_exceeded"), ContextLengthError),
    ("openai filter", 400, openai("No", "invalid_request_error", "content_policy_violation"), ContentFilterError),
    ("openai overload", 503, openai("The engine is currently overloaded", "server_error"), OverloadedError),
    ("openai server", 500, openai("The server had an error", "server_error"), ServerError),
    ("openai model", 404, openai("No such model", "invalid_request_error", "model_not_found"), InvalidRequestError),
    ("openai region", 403, openai("Country not supported", "request_forbidden"), AuthenticationError),
    ("openai in a stream", None, {"type": "error", "code": "rate_limit_exceeded", "message": "slow"}, RateLimitError),
    ("openai failed response", None, {"response": {"error": {"code": "server_error", "message": "x"}}}, ServerError),
    ("azure filter", 400, {"error": {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, ContentFilterError),
    ("azure key", 401, {"error": {"code": "401", "message": "Access denied"}}, AuthenticationError),
    ("anthropic key", 401, anthropic("invalid x-api-key", "authentication_error"), AuthenticationError),
    ("anthropic permission", 403, anthropic("no", "permission_error"), AuthenticationError),
    ("anthropic rate", 429, anthropic("slow down", "rate_limit_error"), RateLimitError),
    ("anthropic credit", 400, anthropic("Your credit balance is too low", "invalid_request_error"), QuotaError),
    ("anthropic context", 400, anthropic("prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error"), ContextLengthError),
    ("anthropic overload", 529, anthropic("Overloaded", "overloaded_error"), OverloadedError),
    ("anthropic overload in a stream", None, anthropic("Overloaded", "overloaded_error"), OverloadedError),
    ("anthropic server", 500, anthropic("Internal server error", "api_error"), ServerError),
    ("anthropic size", 413, anthropic("Request exceeds the maximum size", "request_too_large"), InvalidRequestError),
    ("google key", 400, google("API key not valid. Please pass a valid API key.", 400, "INVALID_ARGUMENT"), AuthenticationError),
    ("google permission", 403, google("denied", 403, "PERMISSION_DENIED"), AuthenticationError),
    ("google rate", 429, google("You exceeded your current quota", 429, "RESOURCE_EXHAUSTED", WAIT), RateLimitError),
    ("google quota", 429, google("You exceeded your current quota", 429, "RESOURCE_EXHAUSTED"), QuotaError),
    ("google context", 400, google("The input token count (9) exceeds the maximum number", 400, "INVALID_ARGUMENT"), ContextLengthError),
    ("google overload", 503, google("The model is overloaded.", 503, "UNAVAILABLE"), OverloadedError),
    ("google listed", 500, [google("An internal error", 500, "INTERNAL")], ServerError),
    ("google in a stream", None, google("The model is overloaded.", 503, "UNAVAILABLE"), OverloadedError),
    ("groq context", 413, openai("Request too large for model", "tokens"), ContextLengthError),
    ("groq capacity", 503, openai("over capacity", "internal_server_error"), OverloadedError),
    ("mistral key", 401, {"message": "Unauthorized", "request_id": "r"}, AuthenticationError),
    ("mistral field", 422, {"detail": [{"loc": ["body"], "msg": "Field required"}]}, InvalidRequestError),
    ("mistral rate", 429, {"object": "error", "message": "Requests rate limit exceeded", "type": "rate_limited", "code": "1300"}, RateLimitError),
    ("deepseek credit", 402, openai("Insufficient Balance", "unknown_error", "invalid_request_error"), QuotaError),
    ("xai key", 400, {"code": "Client specified an invalid argument", "error": "Incorrect API key provided"}, AuthenticationError),
    ("openrouter credit", 402, {"error": {"code": 402, "message": "Insufficient credits"}}, QuotaError),
    ("openrouter in a stream", None, {"error": {"code": 502, "message": "Provider returned error"}}, ServerError),
    ("ollama model", 404, {"error": "model 'x' not found"}, InvalidRequestError),
    ("vllm context", 400, {"object": "error", "message": "maximum context length is 4096 tokens", "type": "BadRequestError", "code": 400}, ContextLengthError),
    ("anthropic limit", 400, anthropic("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", "invalid_request_error"), ContextLengthError),
    ("xai context", 400, {"error": {"message": "This model's maximum prompt length is 131072 but the request contains 200000 tokens."}}, ContextLengthError),
    ("xai credit", 403, {"code": "The caller does not have permission", "error": "Your newly created team doesn't have any credits or licenses yet."}, QuotaError),
    ("llama.cpp context", 400, {"error": {"code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error"}}, ContextLengthError),
    ("a tool's name", 400, openai("Invalid schema for function 'reset_context_window'", "invalid_request_error", "invalid_function_parameters"), InvalidRequestError),
    ("another tool's name", 400, openai("Invalid schema for function 'context_size_of'", "invalid_request_error"), InvalidRequestError),
    ("a proxy", 502, "<html>Bad gateway</html>", ServerError),
    ("nothing", 418, "", ProviderError),
]  # fmt: skip
PASSING = (OverloadedError, RateLimitError, ServerError)


@pytest.mark.parametrize(
    ("status", "body", "kind"), [pytest.param(*said[1:], id=said[0]) for said in SAID]
)
def test_what_a_provider_says(status: int | None, body: Any, kind: type[ProviderError]) -> None:
    """The class, and whether asking again may help; the body stands as it was sent."""
    error = provider_error(body, status=status)
    assert type(error) is kind
    assert error.is_retryable is issubclass(kind, PASSING)
    assert error.body == body
    assert str(error)


def test_what_it_carries() -> None:
    """The request's id from the headers or the body; the wait from either, too."""
    headers = {"x-request-id": "head", "retry-after": "3"}
    error = provider_error(anthropic("no", "rate_limit_error"), status=429, headers=headers)
    assert (error.request_id, error.retry_after, error.status) == ("head", 3.0, 429)
    assert provider_error(anthropic("no", "rate_limit_error")).request_id == "req_1"
    waits = provider_error(google("slow", 429, "RESOURCE_EXHAUSTED", WAIT), status=429)
    assert waits.retry_after == 34.5


@given(JSON | st.text(), st.none() | st.integers(100, 999))
def test_whatever_is_said_it_is_an_error_of_ours(body: Any, status: int | None) -> None:
    """Total: any body with any status; a client's fault is never worth asking again."""
    error = provider_error(body, status=status)
    assert isinstance(error, ProviderError)
    if error.status is not None and 400 <= error.status < 500:
        assert error.is_retryable <= is_retryable(error.status)


def test_a_page_is_shown_with_its_type() -> None:
    """Status, content type and the first of it, no more."""
    error = provider_error("<html>" + "x" * 999, status=502, headers={"content-type": "text/html"})
    assert str(error).startswith("HTTP 502: answered 'text/html' and no JSON: '<html>xxx")
    assert len(str(error)) < 300
