"""`ResponseCache`: what is never stored, where it has to stand, and what breaks no run."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe import Agent
from streampipe import operators as ops
from streampipe.chunks import (
    FinishChunk,
    RawChunk,
    ResponseMetadata,
    TextDelta,
)
from streampipe.contracts import ProcessorViolation
from streampipe.errors import ProcessorError, StreampipeError, WireError
from streampipe.processors import MemoryStore, PrepareStep, ResponseCache
from streampipe.processors._cache_entry import answer_of, entry_of
from streampipe.testing import ScriptedModel, fail, turn
from tests.processors.caching import CALLS, Rewrites, agent_of, changes, is_stored, search, second

# --- what is not stored --------------------------------------------------------------------


class Blocks:
    """Aborts in one hook."""

    id = "blocks"

    def __init__(self, hook: str, *, when: str = "", retry: bool = False) -> None:
        """Say in which hook, and at which type of chunk; the first time only if it is a retry."""
        self.when = when
        self.retry = retry
        setattr(self, hook, self._block)

    def _block(self, args: Any) -> Any:
        part = getattr(args, "part", None)
        is_here = part is None or part.type == self.when
        if is_here and not (self.retry and args.retry_count):
            args.abort("no", retry=self.retry)
        return part


BLOCKS = [
    ("process_output_stream", "text-delta"),
    ("process_output_stream", "tool-result"),
    ("process_output_stream", "step-finish"),
    ("process_output_stream", "finish"),
    ("process_output_step", ""),
    ("process_tool_result", ""),
    ("process_output_result", ""),
]


@pytest.mark.parametrize(("hook", "when"), BLOCKS)
async def test_a_blocked_run_stores_nothing(hook: str, when: str) -> None:
    """Wherever it is blocked, at the last chunk too; not what it had accepted before either."""
    store = MemoryStore()
    cache = ResponseCache(store)
    agent = agent_of(
        ScriptedModel(CALLS), cache, tools=[search], output_processors=[Blocks(hook, when=when)]
    )
    result = await agent.generate("hi")
    assert result.tripwire is not None
    assert len(store) == 0


@pytest.mark.parametrize(("hook", "when"), BLOCKS[:-4] + BLOCKS[-3:])
async def test_a_rejected_attempt_is_not_stored(hook: str, when: str) -> None:
    """The one after it is, as the answer to what it was told."""
    store = MemoryStore()
    cache = ResponseCache(store)
    blocks = Blocks(hook, when=when, retry=True)
    script = [*CALLS[:1], ["Again."]] if "result" not in hook + when else [*CALLS, ["Again."]]
    model = ScriptedModel([*script, ["Again."]])
    options: Any = {"output_processors": [blocks], "max_processor_retries": 1, "tools": [search]}
    result = await agent_of(model, cache, **options).generate("hi")
    assert (result.tripwire, result.retries) == (None, 1)
    stored = [answer_of(entry) for entry, _ in store._entries.values()]
    said = ["".join(c.text for c in chunks if isinstance(c, TextDelta)) for chunks in stored]
    assert len(said) == len(result.steps)
    assert "".join(said) == result.text


async def test_a_rejected_answer_does_not_outlive_a_cut_one() -> None:
    """Where the attempt that is accepted cannot be stored, the one before it is not either."""
    cache = ResponseCache()
    blocks = Blocks("process_output_step", retry=True)
    model = ScriptedModel([["bad"], turn("good", finish_reason="length")])
    options: Any = {"output_processors": [blocks], "max_processor_retries": 1}
    assert (await agent_of(model, cache, **options).generate("hi")).text == "good"
    assert not await is_stored(cache)


@pytest.mark.parametrize(
    "answer",
    [
        turn("a", finish_reason="length"),
        turn("a", finish_reason="content-filter"),
        turn("a", finish_reason="other"),
    ],
    ids=lambda answer: answer.finish_reason,
)
async def test_a_cut_answer_is_not_stored(answer: Any) -> None:
    """Neither one that was filtered, nor one that ended for a reason nobody knows."""
    store = MemoryStore()
    agent = agent_of(ScriptedModel([answer]), ResponseCache(store))
    assert (await agent.generate("hi")).text == "a"
    assert len(store) == 0


@pytest.mark.parametrize(
    "answer", [turn("a", incomplete=True), turn("a", fail(status=400)), turn(fail(status=400))]
)
async def test_a_failed_answer_is_not_stored(answer: Any) -> None:
    """Wherever it breaks."""
    cache = ResponseCache()
    with pytest.raises(StreampipeError):
        await agent_of(ScriptedModel([answer]), cache).generate("hi")
    assert not await is_stored(cache)


async def test_a_run_that_a_hook_fails_stores_nothing() -> None:
    """Though the answer was whole."""

    class Breaks:
        id = "breaks"

        def process_output_result(self, args: Any) -> None:
            """Break."""
            raise ValueError("broken")

    cache = ResponseCache()
    with pytest.raises(ProcessorError):
        await agent_of(ScriptedModel([["a"]]), cache, output_processors=[Breaks()]).generate("hi")
    assert not await is_stored(cache)


async def test_a_cancelled_run_stores_nothing() -> None:
    """Though the answer was whole when the client left."""
    waiting = asyncio.Event()

    class Waits:
        id = "waits"

        async def process_output_result(self, args: Any) -> None:
            """Wait for ever."""
            waiting.set()
            await asyncio.Event().wait()

    cache = ResponseCache()
    agent = agent_of(ScriptedModel([["a"]]), cache, output_processors=[Waits()])
    async with agent.stream("hi") as run:
        reader = asyncio.create_task(run.result())
        await waiting.wait()
    assert (await reader).finish_reason == "aborted"
    assert not await is_stored(cache)


async def test_an_answer_that_an_operator_ends_is_not_stored() -> None:
    """Nobody has read the rest of it."""
    cache = ResponseCache()
    model = ScriptedModel([["a", "b", "c"]])
    agent = agent_of(model, cache, output_processors=[ops.limit_text(chars=1)])
    assert (await agent.generate("hi")).text == "a"
    assert not await is_stored(cache)


async def test_a_replay_that_is_rejected_is_not_given_again() -> None:
    """A guard that is new rejects what is stored, without a word: then the model is asked."""
    cache = ResponseCache()
    await agent_of(ScriptedModel([["bad"]]), cache).generate("hi")

    class NotBad:
        id = "not-bad"

        def process_output_step(self, args: Any) -> None:
            """Reject."""
            if args.text == "bad":
                args.abort("", retry=True)

    options: Any = {"output_processors": [NotBad()], "max_processor_retries": 3}
    model = ScriptedModel([["good"]])
    result = await agent_of(model, cache, **options).generate("hi")
    assert (result.text, result.retries, model.calls) == ("good", 1, 1)
    assert (await second(cache))[0].text == "good"


async def test_what_an_error_processor_mends_is_stored() -> None:
    """Of two attempts at a step the one that the model answered."""

    class Again:
        id = "again"

        def process_api_error(self, args: Any) -> Any:
            """Try again."""
            return {"retry": True}

    cache = ResponseCache()
    model = ScriptedModel([["b", fail(status=400)], ["a"]])
    assert (await agent_of(model, cache, error_processors=[Again()]).generate("hi")).text == "a"
    assert (await second(cache))[0].text == "a"


# --- in its place --------------------------------------------------------------------------


async def asked_behind(cache: ResponseCache, how: str) -> int:
    """A run whose request is changed behind the cache, and how often it asked its model."""
    behind: dict[str, list[Any]] = {"step": [PrepareStep(changes)], "prompt": [Rewrites()]}
    options: Any = {"prepare_step": changes} if how == "prepare_step" else {}
    model = ScriptedModel([["new"]])
    agent = Agent(
        model=model, input_processors=[cache, *behind.get(how, [])], output_processors=[cache]
    )
    await agent.generate("hi", **options)
    return model.calls


@pytest.mark.parametrize("how", ["prepare_step", "step", "prompt"])
async def test_a_request_changed_behind_it_is_not_stored(how: str) -> None:
    """It is told why, and what to do."""
    told: list[ProcessorViolation] = []
    store = MemoryStore()
    cache = ResponseCache(store, on_violation=told.append)
    assert [await asked_behind(cache, how) for _ in range(2)] == [1, 1]
    assert len(store) == 0
    assert [v.detail for v in told] == [{"problem": "request"}] * 2
    assert "stand before the cache" in told[0].message


@pytest.mark.parametrize("how", ["prepare_step", "step"])
async def test_an_answer_to_another_question_fails(how: str) -> None:
    """What was stored under the request as the cache saw it is none to the one that was meant."""
    cache = ResponseCache()
    await agent_of(ScriptedModel([["old"]]), cache).generate("hi")
    with pytest.raises(ProcessorError, match=r"response-cache.*PrepareStep"):
        await asked_behind(cache, how)


async def test_what_stands_before_it_is_part_of_the_request() -> None:
    """So that both prompts are known by what they became."""
    cache = ResponseCache()
    model = ScriptedModel([["a"], ["b"]])
    plain = agent_of(model, cache)
    brief = agent_of(model, cache, input_processors=[Rewrites(), PrepareStep(changes)])
    texts = [(await agent.generate("hi")).text for agent in (plain, brief, plain, brief)]
    assert texts == ["a", "b", "a", "b"]


async def test_it_has_to_stand_in_both_lists(caplog: pytest.LogCaptureFixture) -> None:
    """Among the input alone it never learns what was accepted; among the output alone, nothing."""
    cache = ResponseCache()
    with pytest.raises(ProcessorError, match="put this object into output_processors too"):
        await Agent(model=ScriptedModel([["a"]]), input_processors=[cache]).generate("hi")
    with caplog.at_level(logging.WARNING, logger="streampipe"):
        agent = Agent(model=ScriptedModel([["a"]]), output_processors=[cache])
        assert (await agent.generate("hi")).text == "a"
    assert "put this object into input_processors too" in caplog.text


async def test_an_answer_of_another_cache_is_left_alone() -> None:
    """Whether that stands before it or behind it."""

    class Other:
        id = "other"

        def process_llm_request(self, args: Any) -> Any:
            """Answer."""
            return {"response": [TextDelta("0", "theirs"), FinishChunk("stop")]}

    for place in (0, 1):
        cache = ResponseCache()
        lists: list[Any] = [cache]
        lists.insert(place, Other())
        agent = Agent(model=ScriptedModel([]), input_processors=lists, output_processors=[cache])
        assert (await agent.generate("hi")).text == "theirs"
        assert not await is_stored(cache)


# --- what breaks ---------------------------------------------------------------------------


class Broken(MemoryStore):
    """A store that fails, or never answers, in some of its methods."""

    def __init__(self, *methods: str, hangs: bool = False) -> None:
        """Say in which."""
        super().__init__()
        self.methods = methods
        self.hangs = hangs
        self.asked: list[str] = []

    async def _fail(self, method: str) -> None:
        self.asked.append(method)
        if method in self.methods:
            if self.hangs:
                await asyncio.Event().wait()
            raise OSError("disk on fire")

    async def get(self, key: str) -> bytes | None:
        """Fail."""
        await self._fail("get")
        return await super().get(key)

    async def set(self, key: str, entry: bytes, ttl: float | None) -> None:
        """Fail."""
        await self._fail("set")
        await super().set(key, entry, ttl)


@pytest.mark.parametrize("method", ["get", "set"])
@pytest.mark.parametrize("hangs", [False, True])
async def test_a_broken_store_breaks_no_run(
    method: str, caplog: pytest.LogCaptureFixture, *, hangs: bool
) -> None:
    """The model is asked; it is told once a run, and the store is left alone until the next."""
    told: list[ProcessorViolation] = []
    store = Broken(method, hangs=hangs)
    cache = ResponseCache(store, timeout=0.001, on_violation=told.append)
    with caplog.at_level(logging.WARNING, logger="streampipe"):
        for _ in range(2):
            agent = agent_of(ScriptedModel(CALLS), cache, tools=[search])
            assert (await agent.generate("hi")).text == "Let me see.Done."
    why = "TimeoutError: no answer within 0.001 s" if hangs else "OSError: disk on fire"
    message = f"the store failed, and is left alone for the rest of the run: {why}"
    assert [(v.message, v.detail) for v in told] == [(message, {"problem": "store"})] * 2
    assert [r.getMessage() for r in caplog.records] == [
        f"processor 'response-cache': {message}"
    ] * 2
    assert store.asked == (["get"] * 2 if method == "get" else ["get", "get", "set"] * 2)


@pytest.mark.parametrize("method", ["get", "set"])
async def test_a_strict_cache_fails_with_its_store(method: str) -> None:
    """The error is the cause."""
    agent = agent_of(ScriptedModel([["a"]]), ResponseCache(Broken(method), strict=True))
    with pytest.raises(ProcessorError, match=r"response-cache.*disk on fire") as caught:
        await agent.generate("hi")
    assert isinstance(caught.value.__cause__, OSError)


GARBAGE = [
    b"",
    b"\xff\x00",
    b"{}",
    b"5",
    b'{"type":"data-","payload":1}',
    b'{"type":"text-delta","payload":{"id":"0","text":"cut"}}',
    b'{"type":"text-delta","payload":{"id":"0","text":"a"}}\n{"type":"fin',
    b'{"type":"finish","payload":{"reason":"length"}}',
    "text",
    None,
]


@pytest.mark.parametrize("entry", GARBAGE[:-1], ids=repr)
async def test_garbage_is_not_replayed(entry: Any) -> None:
    """The model is asked, it is told, and the answer takes the place of the garbage."""
    told: list[ProcessorViolation] = []
    store = MemoryStore()
    cache = ResponseCache(store, on_violation=told.append)
    await agent_of(ScriptedModel([["old"]]), cache).generate("hi")
    (key,) = store._entries
    store._entries[key] = entry, None
    result, calls = await second(cache)
    assert (result.text, calls) == ("asked", 1)
    assert [v.detail for v in told] == [{"problem": "entry"}]
    assert await is_stored(cache)
    store._entries[key] = entry, None
    with pytest.raises(ProcessorError, match="WireError"):
        await second(ResponseCache(store, strict=True))


ENTRY = entry_of([ResponseMetadata("r"), TextDelta("0", "hi"), FinishChunk("stop")])


@given(at=st.integers(0, len(ENTRY)), cut=st.integers(0, 9), put=st.binary(max_size=3))
def test_a_damaged_entry_is_an_answer_or_an_error(at: int, cut: int, put: bytes) -> None:
    """Of one kind; and one that lost its end is never an answer."""
    damaged = ENTRY[:at] + put + ENTRY[at + cut :]
    try:
        chunks = answer_of(damaged)
    except WireError:
        return
    assert isinstance(chunks[-1], FinishChunk)


async def test_what_is_no_json_is_told() -> None:
    """In a request, or in an answer; the model is asked."""
    told: list[ProcessorViolation] = []
    cache = ResponseCache(on_violation=told.append)
    options: Any = {"model_settings": {"stop": object()}, "tools": [search]}
    for _ in range(2):  # of two steps each: it is told once a run
        agent = agent_of(ScriptedModel(CALLS), cache, **options)
        assert (await agent.generate("hi")).text == "Let me see.Done."
    answer: Any = [RawChunk(object()), "a"]
    for _ in range(2):
        model = ScriptedModel([answer])
        assert (await agent_of(model, cache).generate("hi")).text == "a"
    assert [v.detail["problem"] for v in told] == ["request"] * 2 + ["answer"] * 2
    with pytest.raises(ProcessorError, match="not JSON serializable: object"):
        await second(ResponseCache(strict=True), **options)
