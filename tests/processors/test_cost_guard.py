"""`CostGuard`: what is summed up, what blocks, and what is told."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streampipe import Agent, tool
from streampipe import operators as ops
from streampipe.chunks import ResponseMetadata, TextDelta, Usage
from streampipe.contracts import ProcessorViolation
from streampipe.errors import ConfigurationError, ProcessorError
from streampipe.models import FallbackModel
from streampipe.processors import CostGuard, TokenLimiter
from streampipe.processors._prices import PRICES, Price, price_of
from streampipe.testing import ScriptedModel, call, check_processor, fail, turn

EXAMPLES = max(1_000, 10 * settings().max_examples)
DOLLAR_EACH = {"script": {"input": 1_000_000, "output": 0}}
"""Every token of input costs 1 USD, and each scripted answer one token."""


@tool
def look_up(n: int) -> int:
    """Look a number up."""
    return n


def turns(count: int) -> list[Any]:
    """So many tool calls, then an answer; each costs 1."""
    return [*([call("look_up", {"n": 1})] for _ in range(count)), ["done"]]


def agent_of(model: Any, guard: CostGuard, **options: Any) -> Agent:
    """An agent whose money is guarded."""
    return Agent(model=model, tools=[look_up], input_processors=[guard], **options)


async def test_the_next_call_is_blocked_at_the_limit() -> None:
    """The call that reaches it still counts, and so do its tools; the one after is not made."""
    model = ScriptedModel(turns(5))
    result = await agent_of(model, CostGuard(2, prices=DOLLAR_EACH)).generate("hi")
    assert (model.calls, len(result.steps), len(result.tool_results)) == (2, 2, 2)
    assert (result.finish_reason, result.text) == ("other", "")
    assert result.tripwire is not None
    assert result.tripwire.reason == "2 USD are spent, of 2 USD"
    assert result.tripwire.metadata == {"spent": 2.0, "limit": 2.0, "currency": "USD"}


async def test_below_the_limit_nothing_happens() -> None:
    """And the client sees what it would have seen."""
    model = ScriptedModel(turns(2))
    agent = agent_of(model, CostGuard(3.5, prices=DOLLAR_EACH))
    async with agent.stream("hi") as run:
        kinds = [chunk.type async for chunk in run]
    assert "tripwire" not in kinds
    assert (await run.result()).text == "done"


async def test_a_share_is_told_once_and_then_the_block() -> None:
    """The callback gets both, with what was spent."""
    found: list[ProcessorViolation] = []
    guard = CostGuard(4, warn_at=0.5, prices=DOLLAR_EACH, on_violation=found.append)
    await agent_of(ScriptedModel(turns(9)), guard).generate("hi")
    assert [(v.message, v.detail["spent"]) for v in found] == [
        ("2 USD are spent, of 4 USD", 2.0),
        ("4 USD are spent, of 4 USD", 4.0),
    ]


async def test_warnings_only() -> None:
    """The run goes on; share and limit are told once each, to a coroutine too."""
    found: list[str] = []

    async def later(violation: ProcessorViolation) -> None:
        await asyncio.sleep(0)
        found.append(violation.message)

    guard = CostGuard(2, strategy="warn", prices=DOLLAR_EACH, on_violation=later)
    result = await agent_of(ScriptedModel(turns(4)), guard).generate("hi")
    assert result.text == "done"
    assert found == [
        "2 USD are spent, of 2 USD",
        "the limit is reached: 2 USD are spent, of 2 USD",
    ]


async def test_no_warning_without_a_share() -> None:
    """With `warn_at=None` the block alone is told."""
    found: list[ProcessorViolation] = []
    guard = CostGuard(2, warn_at=None, prices=DOLLAR_EACH, on_violation=found.append)
    await agent_of(ScriptedModel(turns(4)), guard).generate("hi")
    assert len(found) == 1


async def test_rejected_attempts_count() -> None:
    """They were paid for."""

    class Never:
        id = "never"

        def process_output_step(self, args: Any) -> None:
            """Reject."""
            args.abort("again", retry=True)

    model = ScriptedModel([["a"]], repeat=True)
    guard = CostGuard(3, prices=DOLLAR_EACH)
    agent = agent_of(model, guard, output_processors=[Never()], max_processor_retries=9)
    result = await agent.generate("hi")
    assert model.calls == 3
    assert result.tripwire is not None
    assert result.tripwire.processor_id == "cost-guard"


async def test_a_call_that_fails_costs_nothing() -> None:
    """It told no usage; the answer after it does."""
    guard = CostGuard(2, scope="user", prices=DOLLAR_EACH)

    class Again:
        id = "again"

        def process_api_error(self, args: Any) -> Any:
            """Try again."""
            return {"retry": True}

    model = ScriptedModel([[fail(status=400)], ["a"]])
    agent = agent_of(model, guard, error_processors=[Again()])
    assert (await agent.generate("hi", request_context={"user": "ada"})).text == "a"
    assert guard.spent("ada") == 1


async def test_an_answer_from_a_cache_costs_nothing() -> None:
    """No model was called."""

    class Cache:
        id = "cache"

        def process_llm_request(self, args: Any) -> Any:
            """Answer."""
            return {"response": [TextDelta("0", "cached")]}

    guard = CostGuard(1, scope="user", prices=DOLLAR_EACH, strict=True)
    agent = Agent(model=ScriptedModel([]), input_processors=[guard, Cache()])
    assert (await agent.generate("hi", request_context={"user": 1})).text == "cached"
    assert guard.spent(1) == 0


async def test_runs_of_a_key_spend_together() -> None:
    """One after the other and side by side; another key has its own, until it is reset."""
    guard = CostGuard(3, scope="user", prices=DOLLAR_EACH)
    model = ScriptedModel([["a"]], repeat=True)
    agent = agent_of(model, guard)

    async def ask(user: str) -> str:
        return (await agent.generate("hi", request_context={"user": user})).text

    texts = await asyncio.gather(*(ask(user) for user in ("ada", "bob", "ada")))
    assert texts == ["a", "a", "a"]
    assert [guard.spent(user) for user in ("ada", "bob", "eve")] == [2, 1, 0]
    assert [await ask("ada"), await ask("ada"), await ask("bob")] == ["a", "", "a"]
    guard.reset("ada")
    assert [guard.spent(user) for user in ("ada", "bob")] == [0, 2]
    assert await ask("ada") == "a"
    guard.reset()
    assert guard.spent("bob") == 0


async def test_runs_have_their_own_by_default() -> None:
    """Two at a time of one guard."""
    guard = CostGuard(2, prices=DOLLAR_EACH)
    models = [ScriptedModel(turns(count)) for count in (1, 5)]
    results = await asyncio.gather(*(agent_of(model, guard).generate("hi") for model in models))
    assert [result.text for result in results] == ["done", ""]
    assert [model.calls for model in models] == [2, 2]


async def test_the_least_recent_keys_are_forgotten() -> None:
    """So that memory is bounded; whoever comes again stays."""
    guard = CostGuard(9, scope="user", prices=DOLLAR_EACH, max_keys=2)
    agent = agent_of(ScriptedModel([["a"]], repeat=True), guard)
    for user in ("a", "b", "a", "c"):
        await agent.generate("hi", request_context={"user": user})
    assert [guard.spent(user) for user in "abc"] == [2, 0, 1]


@pytest.mark.parametrize("context", [{}, {"user": None}, {"user": ["a"]}])
async def test_a_call_without_the_key_fails_closed(context: Any) -> None:
    """And says what to give."""
    guard = CostGuard(9, scope="user", prices=DOLLAR_EACH)
    model = ScriptedModel([["a"]])
    with pytest.raises(ProcessorError, match=r"cost-guard.*request_context\['user'\]"):
        await agent_of(model, guard).generate("hi", request_context=context)
    assert model.calls == 0


# --- what has no price ---------------------------------------------------------------------


async def test_an_unknown_model_is_told_once_a_run(caplog: pytest.LogCaptureFixture) -> None:
    """To the log and the callback; the run goes on."""
    found: list[ProcessorViolation] = []
    guard = CostGuard(1, on_violation=found.append)
    with caplog.at_level(logging.WARNING, logger="streampipe"):
        result = await agent_of(ScriptedModel(turns(3)), guard).generate("hi")
    assert result.text == "done"
    assert [v.detail for v in found] == [{"model": "scripted/script"}]
    assert "scripted/script has no price (the table is of 20" in found[0].message
    assert [r.getMessage() for r in caplog.records] == [
        f"processor 'cost-guard': {found[0].message}"
    ]


async def test_a_strict_guard_blocks_an_unknown_model() -> None:
    """Before it is called; and each of a fallback's has to have a price."""
    unknown = ScriptedModel([["a"]], model_id="unknown")
    known = ScriptedModel([["a"]])
    for model in (unknown, FallbackModel(known, unknown)):
        guard = CostGuard(1, prices=DOLLAR_EACH, strict=True)
        result = await agent_of(model, guard).generate("hi")
        assert result.tripwire is not None
        assert result.tripwire.metadata == {"model": "scripted/unknown"}
    assert (unknown.calls, known.calls) == (0, 0)
    guard = CostGuard(2, prices=DOLLAR_EACH, strict=True)
    assert (await agent_of(FallbackModel(known, known), guard).generate("hi")).text == "a"


async def test_a_limiter_before_it_hides_no_model() -> None:
    """What wraps a model is asked as the model would be; an answer that was cut is counted."""
    limiter = TokenLimiter(output=2)
    guard = CostGuard(9, scope="user", prices=DOLLAR_EACH, strict=True)
    model = FallbackModel(ScriptedModel([["a b c d"]]), ScriptedModel([]))
    agent = Agent(model=model, input_processors=[limiter, guard], output_processors=[limiter])
    result = await agent.generate("hi", request_context={"user": 1})
    assert (result.text, result.finish_reason) == ("a b ", "length")
    assert guard.spent(1) == result.usage.input_tokens > 1


@pytest.mark.parametrize("way", ["stream", "generate"])
async def test_an_answer_that_an_operator_has_closed_is_told(way: str) -> None:
    """A provider tells the usage at the end, and nobody has waited for that."""
    found: list[ProcessorViolation] = []
    guard = CostGuard(1, prices=DOLLAR_EACH, on_violation=found.append)
    agent = Agent(
        model=ScriptedModel([["one ", "two"]]),
        input_processors=[guard],
        output_processors=[ops.limit_text(chars=3)],
    )
    run = agent.stream("hi")
    result = await (run.result() if way == "stream" else agent.generate("hi"))
    assert result.text == "one"
    assert [v.message for v in found] == [
        "scripted/script told no usage, so that nobody knows what it cost"
    ]


@pytest.mark.parametrize("strict", [False, True])
async def test_an_answer_without_usage_is_told(*, strict: bool) -> None:
    """It cannot be counted; a strict guard lets no such answer through."""

    class Silent:
        provider = "scripted"
        model_id = "script"

        def __init__(self) -> None:
            self.inner = ScriptedModel([["a"]])

        async def stream(self, request: Any) -> Any:
            async for chunk in self.inner.stream(request):
                if chunk.type == "finish":
                    chunk.usage = None  # type: ignore[attr-defined]  # a finish chunk's
                yield chunk

    found: list[ProcessorViolation] = []
    guard = CostGuard(1, prices=DOLLAR_EACH, strict=strict, on_violation=found.append)
    result = await agent_of(Silent(), guard).generate("hi")
    assert result.text == ("" if strict else "a")
    assert [v.message for v in found] == [
        "scripted/script told no usage, so that nobody knows what it cost"
    ]
    free = CostGuard(1, prices={"script": {"input": 0, "output": 0}}, strict=True)
    assert (await agent_of(Silent(), free).generate("hi")).text == "a"


async def test_the_model_that_answered_is_charged() -> None:
    """Which of a fallback's it was, or which version, says the response."""
    prices = {"dear": {"input": 1_000_000, "output": 0}, "script": {"input": 0, "output": 0}}
    guard = CostGuard(9, scope="user", prices=prices)
    pieces: list[Any] = [ResponseMetadata("1", "dear-2026-01-01", provider="scripted"), "a"]
    agent = agent_of(ScriptedModel([pieces]), guard)
    await agent.generate("hi", request_context={"user": 1})
    assert guard.spent(1) == 1


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_cost_is_the_sum_of_its_parts(fresh: int, cached: int, output: int) -> None:
    """Cached input is a part of the input, at its own price; as any other where it has none."""
    usage = Usage(fresh + cached, output, cached_input_tokens=cached)
    assert math.isclose(Price(2, 3, 1).of(usage), (2 * fresh + cached + 3 * output) / 1e6)
    assert math.isclose(Price(2, 3).of(usage), (2 * (fresh + cached) + 3 * output) / 1e6)


def test_cached_input_beyond_the_input_is_nobodys_gain() -> None:
    """Usage that does not add up costs what its input costs at least."""
    assert Price(2, 0, 1).of(Usage(10, 0, cached_input_tokens=99)) == 10 / 1e6


@pytest.mark.parametrize(
    ("provider", "model", "name"),
    [
        ("openai", "gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("anthropic", "claude-opus-4-1-20250805", "claude-opus-4-1"),
        ("anthropic", "claude-opus-4-20250514", "claude-opus-4"),
        ("anthropic", "claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("mistral", "mistral-large-2411", "mistral-large"),
        ("azure", "gpt-5", "gpt-5"),
    ],
)
def test_a_model_is_found_with_its_date(provider: str, model: str, name: str) -> None:
    """Whoever serves it."""
    assert price_of(PRICES, provider, model) is PRICES[name]


@pytest.mark.parametrize("model", ["gpt-5-pro", "gpt-4o-realtime", "o3-pro", "", "claude-opus-4-9"])
def test_a_like_name_is_another_model(model: str) -> None:
    """No price is better than a wrong one."""
    assert price_of(PRICES, "openai", model) is None


async def test_ones_own_price_counts() -> None:
    """It overrides the table, and one with the provider is the more exact."""
    prices = {
        "gpt-5": {"input": 1_000_000, "output": 0},
        "scripted/gpt-5": {"input": 2_000_000, "output": 0},
    }
    for table, cost in ((prices, 2), ({"gpt-5": prices["gpt-5"]}, 1), (None, 0.00000125)):
        guard = CostGuard(9, scope="user", prices=table)
        model = ScriptedModel([turn("a", usage=Usage(1, 0))], model_id="gpt-5")
        await agent_of(model, guard).generate("hi", request_context={"user": 1})
        assert math.isclose(guard.spent(1), cost)


async def test_another_currency_has_its_own_prices_only() -> None:
    """The table is in USD."""
    found: list[ProcessorViolation] = []
    guard = CostGuard(1, currency="EUR", prices=DOLLAR_EACH, on_violation=found.append)
    await agent_of(ScriptedModel([["a"]], model_id="gpt-5"), guard).generate("hi")
    assert found[0].message == "scripted/gpt-5 has no price: give it one with prices="
    guard = CostGuard(1, currency="EUR", prices=DOLLAR_EACH)
    result = await agent_of(ScriptedModel(turns(2)), guard).generate("hi")
    assert result.tripwire is not None
    assert result.tripwire.reason == "1 EUR are spent, of 1 EUR"


def test_the_table_is_sound() -> None:
    """Cached input is never dearer than input, nor output cheaper."""
    assert len(PRICES) > 40
    for name, price in PRICES.items():
        assert 0 < (price.cached_input or price.input) <= price.input <= price.output, name


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 0}, "CostGuard: limit must be a finite number above 0, not 0"),
        ({"limit": math.inf}, "CostGuard: limit must be a finite number above 0, not inf"),
        ({"limit": math.nan}, "CostGuard: limit must be a finite number above 0, not nan"),
        ({"limit": "1"}, "CostGuard: limit must be a finite number above 0"),
        ({"warn_at": 1.5}, "CostGuard: warn_at must be a number above 0 and at most 1"),
        ({"warn_at": 0}, "CostGuard: warn_at must be a number above 0 and at most 1"),
        ({"strategy": "stop"}, "CostGuard: strategy must be one of block, warn, not 'stop'"),
        ({"scope": ""}, "CostGuard: scope must be a name"),
        ({"currency": None}, "CostGuard: currency must be a name"),
        ({"currency": "EUR"}, "CostGuard: currency='EUR' needs prices"),
        ({"strict": 1}, "CostGuard: strict must be True or False"),
        ({"max_keys": 0}, "CostGuard: max_keys must be a whole number"),
        ({"prices": []}, "CostGuard: prices must be a dict"),
        ({"prices": {1: {}}}, "CostGuard: prices must be a dict"),
        ({"prices": {"a": 1}}, r"CostGuard: prices\['a'\] must be a dict with input, output"),
        ({"prices": {"a": {"input": 1}}}, r"CostGuard: prices\['a'\] must be a dict"),
        (
            {"prices": {"a": {"input": 1, "output": 1, "x": 1}}},
            r"CostGuard: prices\['a'\] must be a dict",
        ),
        (
            {"prices": {"a": {"input": -1, "output": 1}}},
            r"CostGuard: prices\['a'\]\['input'\] must be a number from 0 on",
        ),
    ],
)
def test_a_bad_option_is_refused_when_it_is_made(options: Any, message: str) -> None:
    """By the name of class and option, with what is allowed."""
    with pytest.raises(ConfigurationError, match=message):
        CostGuard(**{"limit": 1, **options})


def test_it_keeps_the_laws() -> None:
    """In whole runs, whatever the model; blocked or not."""
    check_processor(lambda: CostGuard(2, prices=DOLLAR_EACH), max_examples=EXAMPLES)
