"""The option `tracing`: who is traced, and what it costs those who are not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from streampipe import Agent
from streampipe.contracts import RunResult
from streampipe.errors import ConfigurationError
from streampipe.operators._process import OutputStage
from streampipe.operators._scope import Scope, bind
from streampipe.operators._trace import UNTRACED
from streampipe.testing import ScriptedModel
from streampipe.tracing import NoTracing, Tracing, tracing_of
from tests.tracing.spans import Spans
from tests.tracing.test_tree import Answering, Judge

RUN = """
import asyncio, json, sys
from streampipe import Agent
from streampipe.testing import ScriptedModel
agent = Agent(model=ScriptedModel(["hi"], repeat=True))
asyncio.run(agent.generate("hi"))
"""
UNTOUCHED = (
    RUN
    + """
import streampipe.tracing
print(json.dumps([name for name in sys.modules if name.startswith("opentelemetry")]))
"""
)
SET_UP = (
    RUN
    + """
from opentelemetry import trace
asyncio.run(agent.generate("the API alone"))
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
asyncio.run(agent.generate("still asked for by nobody"))
asyncio.run(agent.generate("asked for, with nowhere to go", tracing=True))
trace.set_tracer_provider(provider)
asyncio.run(agent.generate("told"))
asyncio.run(agent.generate("told too", tracing=True))
asyncio.run(agent.generate("not told", tracing=False))
names = [span.name.split()[0] for span in exporter.get_finished_spans()]
print(json.dumps(names))
"""
)
BY_ENVIRONMENT = (
    RUN
    + """
from opentelemetry import trace
print(json.dumps(type(trace.get_tracer_provider()).__module__))
"""
)


def fresh(code: str, **environment: str) -> Any:
    """What a fresh interpreter prints last, as JSON."""
    command = (sys.executable, "-W", "error", "-c", code)
    inherited = {name: v for name, v in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(  # noqa: S603 - our own code
        command, capture_output=True, text=True, check=False, env={**inherited, **environment}
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_program_that_sets_nothing_up_imports_no_opentelemetry() -> None:
    """Neither importing nor running needs it."""
    assert fresh(UNTOUCHED) == []


def test_a_provider_that_is_set_up_is_told() -> None:
    """By default and when asked for; not before, and not when refused."""
    assert fresh(SET_UP) == ["chat", "step", "invoke_agent"] * 2


def test_a_provider_that_the_environment_names_is_set_up() -> None:
    """OpenTelemetry loads it when the first run looks for it."""
    found = fresh(BY_ENVIRONMENT, OTEL_PYTHON_TRACER_PROVIDER="sdk_tracer_provider")
    assert found == "opentelemetry.sdk.trace"


def test_without_tracing_every_seam_gives_back_what_it_was_given() -> None:
    """The very same objects: nothing is added to the path of a chunk, or of anything else."""

    def work(*args: Any, **options: Any) -> Any:
        """Do nothing."""

    made = [
        UNTRACED.run(work, RunResult("r"), []),
        UNTRACED.step(work, 0, 0),
        UNTRACED.model(work, Answering(), None, is_replayed=False),  # type: ignore[arg-type]  # not read
        UNTRACED.tool(work),
        UNTRACED.hook(work, "p"),
        UNTRACED.stream_hook(work, "p"),
    ]
    assert all(each is work for each in made)
    assert NoTracing().open(None, Answering(), None) is UNTRACED


def test_without_tracing_a_kernel_calls_the_processor_s_own_hook() -> None:
    """With it, one that counts stands in the same place of the same kernel."""
    judge = Judge()

    def hook_of(scope: Scope) -> Any:
        ((hook, *_),) = OutputStage(bind([judge], scope))._stages
        return hook

    traced = Spans().tracing.open(Agent(model=ScriptedModel([])), Answering(), None)
    assert hook_of(Scope()) == judge.process_output_stream
    assert hook_of(Scope(trace=traced)) != judge.process_output_stream


def test_the_option_takes_four_forms() -> None:
    """A `Tracing`, True, False, or None, which is what the program has set up."""
    tracing = Tracing()
    assert tracing_of(tracing) is tracing
    assert isinstance(tracing_of(True), Tracing)  # noqa: FBT003 - the option's own form
    assert isinstance(tracing_of(False), NoTracing)  # noqa: FBT003 - the option's own form
    assert isinstance(tracing_of(None), NoTracing)


@pytest.mark.parametrize("wrong", ["yes", 1, 0, TracerProvider, Tracing])
def test_what_is_no_tracing_is_refused_where_it_is_given(wrong: Any) -> None:
    """Before anything runs; the message names the option and what it takes."""
    with pytest.raises(ConfigurationError, match=r"tracing must be a Tracing\(\), True, False"):
        Agent(model=ScriptedModel(["a"])).stream("hi", tracing=wrong)


@pytest.mark.parametrize(
    "options", [{"tracer_provider": "otlp"}, {"meter_provider": object()}, {"content": "yes"}]
)
def test_a_tracing_with_a_wrong_option_is_refused(options: dict[str, Any]) -> None:
    """The message names the option."""
    with pytest.raises(ConfigurationError, match=f"Tracing: {next(iter(options))} must"):
        Tracing(**options)


async def test_a_call_overrides_its_agent() -> None:
    """As every option does."""
    spans = Spans()
    agent = Agent(model=ScriptedModel(["hi"], repeat=True), tracing=spans.tracing)
    await agent.generate("hi", tracing=False)
    assert not spans.started
    await agent.generate("hi")
    assert spans.started


async def test_a_tracing_serves_a_provider_of_its_own() -> None:
    """Two agents with two providers are told apart."""
    one, other = Spans(), Spans()
    for spans in (one, other, one):
        await Agent(model=ScriptedModel(["hi"]), tracing=spans.tracing).generate("hi")
    assert (len(one.named("invoke_agent")), len(other.named("invoke_agent"))) == (2, 1)
