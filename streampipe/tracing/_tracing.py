"""`Tracing`: whether and how runs are told in spans. OpenTelemetry is imported by the first run.

A program that never imports OpenTelemetry can have set nothing up, so for it the whole cost is a
look into `sys.modules`.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from streampipe.contracts import Model
from streampipe.errors import ConfigurationError
from streampipe.operators._trace import UNTRACED, Trace, Untraced

if TYPE_CHECKING:  # at run time it is imported where it is needed first
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

PROVIDER_VARIABLE = "OTEL_PYTHON_TRACER_PROVIDER"  # OpenTelemetry loads the provider that it names
SPANS = "streampipe.tracing._spans"


class Tracing:
    """Tells runs in OpenTelemetry spans, after the conventions for generative AI.

    Give it to an agent or to a call: `Agent(..., tracing=Tracing(content=True))`. It may trace any
    number of runs, one after the other or at once.

    Attributes:
        content: whether prompts, answers, arguments, results and the messages of errors are told
            too. They are not unless asked for: whoever may read a trace need not be one who may
            read those.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        content: bool = False,
    ) -> None:
        """Say where spans and measurements go.

        Args:
            tracer_provider: makes the tracer; the program's own if None.
            meter_provider: makes the meter; the program's own if None.
            content: see the class.

        Raises:
            ConfigurationError: a provider is none, or `content` is no bool.
        """
        for name, provider, method in (
            ("tracer_provider", tracer_provider, "get_tracer"),
            ("meter_provider", meter_provider, "get_meter"),
        ):
            if provider is not None and not callable(getattr(provider, method, None)):
                msg = f"Tracing: {name} must have {method}(), or be None; not {provider!r:.80}"
                raise ConfigurationError(msg)
        if not isinstance(content, bool):
            msg = f"Tracing: content must be True or False, not {content!r:.80}"
            raise ConfigurationError(msg)
        self.content = content
        self._providers = (tracer_provider, meter_provider)
        self._instruments: Any = None

    def open(self, agent: Any, model: Model, thread: str | None) -> Trace:
        """Prepare to trace a run.

        Args:
            agent: whose run it is; has `id`, `name` and `description`.
            model: what it asks, unless a step says otherwise.
            thread: id of the conversation.
        """
        spans = importlib.import_module(SPANS)
        if self._instruments is None:
            self._instruments = spans.instruments(*self._providers)
        trace: Trace = spans.RunTrace(self._instruments, agent, model, thread, content=self.content)
        return trace


class NoTracing:
    """Stands where nothing is traced."""

    def open(self, agent: Any, model: Model, thread: str | None) -> Untraced:  # noqa: ARG002 - as Tracing
        """Begin a run that nobody traces."""
        return UNTRACED


NO_TRACING = NoTracing()
TRACING = Tracing()


def tracing_of(value: object) -> Tracing | NoTracing:
    """The option `tracing` in its final form.

    Args:
        value: a `Tracing`; True, which is `Tracing()`; False; or None: True where a tracer provider
            is set up, else False.

    Raises:
        ConfigurationError: it is none of these.
    """
    if value is None:
        value = is_set_up()
    if value is False:
        return NO_TRACING
    if value is True:
        return TRACING
    if not isinstance(value, Tracing):
        msg = f"tracing must be a Tracing(), True, False or None, not {value!r:.80}"
        raise ConfigurationError(msg)
    return value


def is_set_up() -> bool:
    """Whether the program has set up a tracer provider, other than the API's own that do nothing.

    OpenTelemetry is imported only if the environment names a provider to be loaded.
    """
    name = "opentelemetry.trace"
    if name not in sys.modules and PROVIDER_VARIABLE not in os.environ:
        return False
    api = importlib.import_module(name)
    none = (api.ProxyTracerProvider, api.NoOpTracerProvider)
    return not isinstance(api.get_tracer_provider(), none)
