"""`ResponseCache`: what is replayed, and to whom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from streampipe import tool
from streampipe.chunks import (
    Chunk,
    FinishChunk,
    ResponseMetadata,
    TextDelta,
    ToolCall,
    ToolResult,
    Usage,
)
from streampipe.contracts import ModelRequest, ProcessorViolation, RunResult, ToolContext, ToolSpec
from streampipe.errors import ConfigurationError, ProcessorError, StreampipeError
from streampipe.messages import FilePart, Message, PromptMessage, TextPart
from streampipe.processors import CostGuard, MemoryStore, RegexFilter, ResponseCache
from streampipe.processors._cache_entry import answer_of, entry_of
from streampipe.processors._cache_key import request_key
from streampipe.testing import ScriptedModel, agent_scripts, call, check_processor, turn
from tests.processors.caching import agent_of, search, second

EXAMPLES = max(1_000, 10 * settings().max_examples)


# --- a replay ------------------------------------------------------------------------------


async def test_what_was_asked_is_not_asked_again() -> None:
    """The client gets the same chunks, but for tokens spent and the mark of a replay."""
    cache = ResponseCache()
    model = ScriptedModel([["In ", "Porto."]])
    agent = agent_of(model, cache)
    seen: list[list[Chunk]] = []
    for _ in range(2):
        async with agent.stream("Where?") as run:
            seen.append([replace(chunk, run_id="") async for chunk in run])
    assert model.calls == 1
    kinds = [[chunk.type for chunk in chunks] for chunks in seen]
    assert kinds[0] == kinds[1]
    texts = [[c.text for c in chunks if isinstance(c, TextDelta)] for chunks in seen]
    assert texts[0] == texts[1] == ["In ", "Porto."]


async def test_a_replay_costs_nothing() -> None:
    """Neither in the result nor for a guard of costs; and the step says that it is one."""
    cache = ResponseCache()
    guard = CostGuard(9, scope="user", prices={"script": {"input": 1_000_000, "output": 0}})
    model = ScriptedModel([turn("hi", usage=Usage(2, 1))])
    agent = agent_of(model, cache, input_processors=[guard])
    first, again = [await agent.generate("hi", request_context={"user": 1}) for _ in range(2)]
    assert (first.usage.total_tokens, again.usage.total_tokens) == (3, 0)
    assert guard.spent(1) == 2
    assert first.steps[0].provider_metadata is None
    assert again.steps[0].provider_metadata is not None
    assert again.finish_reason == "stop"


async def test_the_mark_of_a_replay_leaves_other_marks() -> None:
    """What the provider said of its answer is still there."""

    class Marks(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
            async for chunk in super().stream(request):
                if isinstance(chunk, FinishChunk):
                    chunk.provider_metadata = {"scripted": {"tier": "low"}}
                yield chunk

    agent = agent_of(Marks([["a"]]), ResponseCache(id="answers"))
    for marks in ({"scripted"}, {"scripted", "answers"}):
        assert set((await agent.generate("hi")).steps[0].provider_metadata or ()) == marks


async def test_an_answer_can_be_forgotten() -> None:
    """By the key that a replay tells, or with all others; then the model is asked again."""
    cache = ResponseCache()
    model = ScriptedModel([["a"], ["b"], ["c"]])
    agent = agent_of(model, cache)
    await agent.generate("hi")
    replayed = await agent.generate("hi")
    assert replayed.steps[0].provider_metadata is not None
    await cache.forget(replayed.steps[0].provider_metadata["response-cache"]["key"])
    assert (await agent.generate("hi")).text == "b"
    await cache.clear()
    assert (await agent.generate("hi")).text == "c"


async def test_output_processors_see_a_replay() -> None:
    """The store keeps what the model said, and every agent shows what it shows."""
    cache = ResponseCache()
    await agent_of(ScriptedModel([["a b", "ad word"]]), cache).generate("hi")
    hide = RegexFilter(r"bad", strategy="redact", replacement="[…]")
    result, calls = await second(cache, output_processors=[hide])
    assert (result.text, calls) == ("a […] word", 0)


@given(script=agent_scripts(tools=("search",), max_turns=3))
def test_replays_say_what_was_said(script: list[Any]) -> None:
    """Whatever a run came to, if it ended well: a second one comes to the same, with no model."""

    async def twice() -> None:
        cache = ResponseCache()
        models = ScriptedModel(script), ScriptedModel([])
        try:
            first = await agent_of(models[0], cache, tools=[search]).generate("hi")
        except StreampipeError:
            return
        assume(all(step.finish_reason in ("stop", "tool-calls") for step in first.steps))
        again = await agent_of(models[1], cache, tools=[search]).generate("hi")
        assert _come_to(again) == _come_to(first)
        assert again.usage == Usage()

    asyncio.run(twice())


def _come_to(result: RunResult) -> Any:
    parts = [[replace(part) for part in message.parts] for message in result.messages]
    calls = [replace(chunk, run_id="") for chunk in result.tool_calls]
    results = [replace(chunk, run_id="") for chunk in result.tool_results]
    return result.text, result.reasoning, result.finish_reason, calls, results, parts


async def test_your_tools_run_again() -> None:
    """Their results belong to the conversation; a new one makes the next request a new one."""
    numbers = iter([1, 2])

    @tool
    def draw() -> int:
        """Draw a number."""
        return next(numbers)

    cache = ResponseCache()
    model = ScriptedModel([[call("draw", id="c1")], ["It is 1."], ["It is 2."]])
    agent = agent_of(model, cache, tools=[draw])
    texts = [(await agent.generate("hi")).text for _ in range(2)]
    assert (texts, model.calls) == (["It is 1.", "It is 2."], 3)


async def test_tools_of_the_provider_do_not() -> None:
    """Their results are part of the answer."""
    done: list[Any] = [
        ToolCall("c1", "web", {"q": 1}, provider_executed=True),
        ToolResult("c1", "web", {"found": 7}, provider_executed=True),
    ]
    cache = ResponseCache()
    await agent_of(ScriptedModel([[*done, "It is 7."]]), cache).generate("hi")
    result, calls = await second(cache)
    assert (calls, result.text) == (0, "It is 7.")
    assert [chunk.result for chunk in result.tool_results] == [{"found": 7}]


async def test_what_a_delivery_was_is_not_kept() -> None:
    """Headers, tokens and the run's id."""
    chunks = [
        ResponseMetadata("r", headers={"set-cookie": "s3cret"}, run_id="r1"),
        TextDelta("0", "hi", run_id="r1"),
        FinishChunk("stop", Usage(77_777, 1), run_id="r1"),
    ]
    entry = entry_of(chunks)
    assert not any(word in entry for word in (b"s3cret", b"77777", b"r1"))
    assert chunks[0].run_id == "r1"
    assert [chunk.type for chunk in answer_of(entry)] == [chunk.type for chunk in chunks]


# --- what makes requests equal -------------------------------------------------------------


class Answer(BaseModel):
    """A schema."""

    text: str


@tool(name="search")
async def other_search(n: str) -> str:
    """Find a word."""
    return n


class OtherModel(ScriptedModel):
    """Another protocol."""


def served_elsewhere() -> ScriptedModel:
    """The same model at another provider."""
    model = ScriptedModel([[JSON]])
    model.provider = "elsewhere"
    return model


JSON = '{"text":"x"}'
BASE: dict[str, Any] = {"model_settings": {"seed": 1, "top_p": 0.5}, "tools": [search]}


def file(data: str) -> Message:
    """A message with a file."""
    return Message("user", [FilePart(data, "image/png")])


@pytest.mark.parametrize(
    ("prompt", "options"),
    [
        ("Hi", {}),
        (["hi", {"role": "assistant", "content": "hi"}], {}),
        (file("aGk="), {}),
        (file("https://example.org/a.png"), {}),
        ("hi", {"instructions": "Be brief."}),
        ("hi", {"model_settings": {"seed": 1}}),
        ("hi", {"model_settings": {"seed": 2, "top_p": 0.5}}),
        ("hi", {"provider_options": {"scripted": {"effort": "low"}}}),
        ("hi", {"tools": []}),
        ("hi", {"tools": [other_search]}),
        ("hi", {"active_tools": []}),
        ("hi", {"tool_choice": "none"}),
        ("hi", {"tool_choice": {"tool_name": "search"}}),
        ("hi", {"structured_output": Answer}),
        ("hi", {"model": ScriptedModel([[JSON]], model_id="other")}),
        ("hi", {"model": OtherModel([[JSON]])}),
        ("hi", {"model": served_elsewhere()}),
    ],
    ids=range(17),
)
async def test_another_request_is_asked(prompt: Any, options: dict[str, Any]) -> None:
    """Whatever it differs in; it is then known as well, and the first one still is."""
    store = MemoryStore()
    cache = ResponseCache(store)
    model = ScriptedModel([[JSON]], repeat=True)
    agent = agent_of(model, cache, **BASE)
    await agent.generate("hi")
    for _ in range(2):
        await agent.generate(prompt, **options)
    assert len(store) == 2
    await agent.generate("hi")
    assert len(store) == 2


CHOICE = {"tool_name": "search"}
BIAS = {50256: -100, 7: 1}


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"model_settings": {"seed": 1, "n": 2}}, {"model_settings": {"n": 2, "seed": 1}}),
        ({"model_settings": {"bias": BIAS}}, {"model_settings": {"bias": {7: 1, 50256: -100}}}),
        ({"tool_choice": CHOICE}, {"tool_choice": MappingProxyType(CHOICE)}),
    ],
    ids=["order", "numbers", "mapping"],
)
async def test_the_form_of_a_dict_is_no_matter(one: Any, two: Any) -> None:
    """The order of its keys, which may be numbers, and what kind of mapping it is."""
    cache = ResponseCache()
    model = ScriptedModel([["a"], ["b"]])
    for options in (one, two):
        result = await agent_of(model, cache, tools=[search], **options).generate("hi")
        assert result.text == "a"


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(0, 1) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)
SETTINGS = st.dictionaries(st.text(max_size=2), JSONS, max_size=4)


def turned(value: Any) -> Any:
    """A JSON value with the keys of its dicts the other way round."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(item) for item in value] if isinstance(value, list) else value


@given(one=SETTINGS, two=SETTINGS, scope=st.none() | st.text(max_size=2))
def test_keys_are_equal_as_requests_are(one: Any, two: Any, scope: Any) -> None:
    """No more and no less, whatever the settings."""
    model = ScriptedModel([])
    prompt = [PromptMessage("user", [TextPart("hi")])]

    def key(settings_: Any, who: Any = scope) -> str:
        tools = [ToolSpec("t", "d", {"type": "object"})]
        return request_key(model, ModelRequest(prompt, tools, settings=settings_), who)

    assert key(one) == key(turned(one))
    assert (key(one) == key(two)) == (repr(turned(one)) == repr(turned(two)) or one == turned(two))
    assert key(one) != key(one, "someone else")


@pytest.mark.parametrize(
    "scope", ["user", lambda context: context["user"]], ids=["key", "function"]
)
async def test_answers_stay_in_their_scope(scope: Any) -> None:
    """One of a user is never given to another; without a scope all share."""
    cache = ResponseCache(scope=scope)
    model = ScriptedModel([["a"], ["b"], ["c"]])
    agent = agent_of(model, cache)

    async def ask(user: Any) -> str:
        return (await agent.generate("hi", request_context={"user": user})).text

    assert [await ask(user) for user in ("ada", "bob", "ada", "bob")] == ["a", "b", "a", "b"]
    assert [await ask(user) for user in (1, 1, "ada")] == ["c", "c", "a"]


@pytest.mark.parametrize("user", [None, "", ["ada"], True])
async def test_without_a_scope_nobody_is_answered(user: Any) -> None:
    """A call that does not say who asks fails, before any model is asked."""
    model = ScriptedModel([["a"]])
    agent = agent_of(model, ResponseCache(scope="user"))
    with pytest.raises(ProcessorError, match=r"response-cache.*request_context\['user'\]"):
        await agent.generate("hi", request_context={"user": user})
    assert model.calls == 0


async def test_an_answer_grows_old() -> None:
    """By the clock of the store."""
    now = [0.0]
    cache = ResponseCache(MemoryStore(clock=lambda: now[0]), ttl=60)
    agent = agent_of(ScriptedModel([["a"], ["b"]]), cache)
    texts: list[str] = []
    for now[0] in (0.0, 59.0, 61.0):
        texts.append((await agent.generate("hi")).text)
    assert texts == ["a", "a", "b"]


# --- a call's own wish ---------------------------------------------------------------------


async def test_a_call_may_bypass_the_cache() -> None:
    """It reads nothing and stores nothing."""
    cache = ResponseCache()
    agent = agent_of(ScriptedModel([["a"], ["b"], ["c"]]), cache)
    bypass = {"response-cache": ResponseCache.BYPASS}
    texts = [(await agent.generate("hi", request_context=c)).text for c in (bypass, {}, bypass, {})]
    assert texts == ["a", "b", "c", "b"]


async def test_a_call_may_refresh_the_cache() -> None:
    """It reads nothing, and what it is told takes the place of what was stored."""
    cache = ResponseCache(id="answers")
    agent = agent_of(ScriptedModel([["a"], ["b"]]), cache)
    refresh = {"answers": ResponseCache.REFRESH}
    texts = [(await agent.generate("hi", request_context=c)).text for c in ({}, refresh, {})]
    assert texts == ["a", "b", "b"]


async def test_a_wish_may_come_in_mid_run() -> None:
    """It holds from the next step on, and nothing is told of it."""

    @tool
    def secret(context: ToolContext) -> int:
        """Find what is nobody's business."""
        context.request_context["response-cache"] = ResponseCache.BYPASS
        return 7

    told: list[ProcessorViolation] = []
    store = MemoryStore()
    cache = ResponseCache(store, on_violation=told.append)
    model = ScriptedModel([[call("secret", id="c1")], ["It is 7."]])
    assert (await agent_of(model, cache, tools=[secret]).generate("hi")).text == "It is 7."
    assert (len(store), told) == (1, [])


async def test_another_wish_is_an_error() -> None:
    """That names what there is."""
    agent = agent_of(ScriptedModel([["a"]]), ResponseCache())
    with pytest.raises(ProcessorError, match="must be 'bypass' or 'refresh', not 'of'"):
        await agent.generate("hi", request_context={"response-cache": "of"})


async def test_runs_at_once_each_ask() -> None:
    """And know nothing of each other; those after them are answered by the last one's."""
    together = asyncio.Barrier(3)

    class Slow(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
            await together.wait()
            async for chunk in super().stream(request):
                yield chunk

    cache = ResponseCache()
    agent = agent_of(Slow([[f"{n}"] for n in range(3)]), cache)
    results = await asyncio.gather(*(agent.generate("hi") for _ in range(3)))
    assert sorted(result.text for result in results) == ["0", "1", "2"]
    assert (await agent.generate("hi")).text in {"0", "1", "2"}


# --- options and laws ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"store": {}}, "store must be a CacheStore"),
        ({"store": MemoryStore}, "store must have the methods of a CacheStore"),
        ({"store": MemoryStore(), "max_entries": 5}, "give max_entries to the store"),
        ({"max_entries": 0}, "max_entries must be a whole number"),
        ({"ttl": 0}, "ttl must be a finite number of seconds above 0"),
        ({"ttl": "1h"}, "ttl must be a finite number of seconds above 0"),
        ({"timeout": -1}, "timeout must be a finite number of seconds above 0"),
        ({"scope": ""}, "scope must be a key of request_context or a function"),
        ({"scope": 7}, "scope must be a key of request_context or a function"),
        ({"scope": asyncio.sleep}, "scope must be a plain function"),
        ({"strict": 1}, "strict must be True or False"),
    ],
    ids=range(11),
)
def test_a_bad_option_is_refused(options: dict[str, Any], message: str) -> None:
    """When the cache is made; the message names the class and the option."""
    with pytest.raises(ConfigurationError, match=f"^(ResponseCache|MemoryStore): {message}"):
        ResponseCache(**options)


def test_it_keeps_the_laws() -> None:
    """Of processors."""
    check_processor(ResponseCache, max_examples=EXAMPLES)


def test_it_keeps_the_laws_of_runs_with_answers_of_others() -> None:
    """Each run asks the same, and so is given what another one was told."""
    store = MemoryStore()
    check_processor(lambda: ResponseCache(store), laws=["books"], max_examples=EXAMPLES)
    assert len(store) > 0
