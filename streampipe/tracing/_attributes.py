"""Attributes of spans: the names of the conventions for generative AI, and ours."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping

from opentelemetry.trace import Span, Status, StatusCode
from opentelemetry.util.types import AttributeValue

from streampipe.abort import TripWire
from streampipe.chunks import Usage
from streampipe.contracts import Model, ModelRequest
from streampipe.operators._core import is_cancel, unwrapped

OUTCOME = "streampipe.outcome"
"""How a span ended that was not completed: `retried`, `blocked`, `cancelled` or `failed`."""

_PROVIDERS = {"google": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}
_SETTINGS = {
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "max_output_tokens": "gen_ai.request.max_tokens",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "seed": "gen_ai.request.seed",
    "temperature": "gen_ai.request.temperature",
    "top_k": "gen_ai.request.top_k",
    "top_p": "gen_ai.request.top_p",
}


def provider_name(provider: str) -> str:
    """A provider by the name that the conventions have for it."""
    return _PROVIDERS.get(provider, provider)


def model_attributes(model: Model) -> dict[str, AttributeValue]:
    """What names a model, whatever it calls itself."""
    return {
        "gen_ai.provider.name": provider_name(getattr(model, "provider", type(model).__name__)),
        "gen_ai.request.model": getattr(model, "model_id", ""),
    }


def request_attributes(request: ModelRequest) -> Iterator[tuple[str, AttributeValue]]:
    """What a request asks for, besides its prompt."""
    yield "gen_ai.request.stream", True
    yield "gen_ai.output.type", "json" if request.structured_output else "text"
    for name, attribute in _SETTINGS.items():
        value = request.settings.get(name)
        if isinstance(value, int | float):
            yield attribute, value
    stop = request.settings.get("stop")
    if stop:
        yield "gen_ai.request.stop_sequences", [stop] if isinstance(stop, str) else list(stop)


def usage_attributes(usage: Usage) -> Mapping[str, AttributeValue]:
    """Tokens by kind; those of which there are none are left out."""
    tokens = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_input_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    return {name: count for name, count in tokens.items() if count}


def wire_attributes(wire: TripWire) -> Mapping[str, AttributeValue]:
    """Who pulled a wire and why, as the client or the model is told."""
    return {"streampipe.processor.id": wire.processor_id, "streampipe.reason": str(wire.reason)}


def kind_of(error: BaseException) -> str:
    """The full name of an error's class."""
    cls = type(error)
    name = cls.__qualname__
    return name if cls.__module__ == "builtins" else f"{cls.__module__}.{name}"


def tell_end(span: Span, error: BaseException, *, content: bool) -> None:
    """Tell what a span's work ended with: a signal is no error, and anything else is."""
    stopped = stopped_by(error)
    if stopped:
        span.set_attribute(OUTCOME, stopped)
    else:
        tell_failure(span, unwrapped(error), content=content)


def stopped_by(error: BaseException) -> str:
    """The outcome of work that a signal ended; empty if it failed."""
    if isinstance(error, TripWire):
        return "blocked"
    return "cancelled" if isinstance(error, GeneratorExit) or is_cancel(error) else ""


def tell_failure(span: Span, error: BaseException, *, content: bool) -> None:
    """Tell an error: its kind, that of the error which led to it, and where that was raised.

    Its message may quote what was said, so it is told with `content` only; that of what led to it
    never: nobody has cut secrets out of that one.
    """
    kind = kind_of(error)
    span.set_attribute(OUTCOME, "failed")
    span.set_attribute("error.type", kind)
    status = getattr(error, "status", None)
    if isinstance(status, int):
        span.set_attribute("http.response.status_code", status)
    first = _first(error)
    event = {
        "exception.type": kind,
        "exception.stacktrace": "".join(traceback.format_tb(first.__traceback__)),
    }
    if first is not error:
        event["streampipe.cause"] = kind_of(first)
    if content:
        event["exception.message"] = str(error)
    span.add_event("exception", event)
    span.set_status(Status(StatusCode.ERROR, kind))


def _first(error: BaseException) -> BaseException:
    """The error that led to this one."""
    seen = {error}  # an error may be raised from itself
    while error.__cause__ is not None and error.__cause__ not in seen:
        error = error.__cause__
        seen.add(error)
    return error
