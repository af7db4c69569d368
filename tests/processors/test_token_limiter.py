"""`TokenLimiter`: prompts that fit, answers that end, and a conversation that stays whole."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import regex  # type: ignore[import-untyped]  # it ships no types
from hypothesis import given, settings
from hypothesis import strategies as st

from streampipe import Agent, MessageList, TripWire, tool
from streampipe import operators as ops
from streampipe.chunks import (
    Chunk,
    DataChunk,
    FinishChunk,
    StepFinish,
    TextDelta,
    TextEnd,
    TextStart,
    Usage,
)
from streampipe.contracts import ModelRequest, ProcessorViolation
from streampipe.errors import ConfigurationError, ProcessorError
from streampipe.messages import Message, PromptMessage, ToolCallPart, ToolResultPart
from streampipe.processors import TokenLimiter
from streampipe.processors._tokens import _encoding, estimated_tokens, message_tokens
from streampipe.testing import (
    PROCESSOR_LAWS,
    ScriptedModel,
    call,
    check_processor,
    reasoning,
    turn,
)

EXAMPLES = max(1_000, 10 * settings().max_examples)


@tool
def look_up(n: int) -> int:
    """Look a number up."""
    return n


def words(text: str) -> int:
    """A token a word, so that tests can be read."""
    return len(text.split())


def chat(*texts: str) -> list[dict[str, str]]:
    """A conversation, user and assistant in turn, the user last."""
    roles = ["user", "assistant"]
    first = (len(texts) + 1) % 2
    return [{"role": roles[(first + i) % 2], "content": text} for i, text in enumerate(texts)]


def sent(model: ScriptedModel, number: int = 0) -> list[str]:
    """The texts that the model was sent."""
    return [message.text for message in model.requests[number].prompt]


# --- the prompt ----------------------------------------------------------------------------


async def sent_of(limiter: TokenLimiter, messages: Any, **options: Any) -> list[str]:
    """What a model is sent of a conversation."""
    model = ScriptedModel([["ok"]])
    await Agent(model=model, input_processors=[limiter], **options).generate(messages)
    return sent(model)


async def test_a_prompt_that_fits_is_sent_as_it_is() -> None:
    """Up to the limit itself: four tokens a message, and those of its words."""
    assert await sent_of(TokenLimiter(15, count=words), chat("a", "b", "c")) == ["a", "b", "c"]
    assert await sent_of(TokenLimiter(14, count=words), chat("a", "b", "c")) == ["c"]


@pytest.mark.parametrize(
    ("mode", "limit", "expected"),
    [
        ("best-fit", 21, ["old", "newer", "newer answer", "now"]),
        ("contiguous", 21, ["newer", "newer answer", "now"]),
        ("best-fit", 12, ["now"]),
        ("contiguous", 12, ["now"]),
    ],
)
async def test_what_does_not_fit_goes(mode: Any, limit: int, expected: list[str]) -> None:
    """Best-fit goes on to older messages that do; an answer goes with the first question."""
    messages = chat("old", "long " * 20, "newer", "newer answer", "now")
    assert await sent_of(TokenLimiter(limit, count=words, mode=mode), messages) == expected


async def test_a_conversation_that_never_began_with_a_user_need_not() -> None:
    """It was sent so before."""
    messages = chat("hello", "long " * 20, "greeting", "now")
    assert await sent_of(TokenLimiter(15, count=words), messages) == ["hello", "greeting", "now"]


async def test_only_what_is_remembered_goes_in_memory_only() -> None:
    """What the caller gave stays, however old."""

    class Memory:
        id = "memory"

        def process_input(self, args: Any) -> Any:
            """Remember two messages; they come first."""
            given = list(args.messages)
            args.message_list.remove_by_ids([m.id for m in given])
            for text in ("first", "second"):
                args.message_list.add(Message.user(text), source="memory")
            args.message_list.add(given)
            return args.message_list

    model = ScriptedModel([["ok"]], repeat=True)
    limiter = TokenLimiter(20, count=words, mode="memory-only")
    agent = Agent(model=model, input_processors=[Memory(), limiter])
    await agent.generate(chat("given", "answer", "now"))
    assert sent(model) == ["second", "given", "answer", "now"]
    result = await agent.generate(chat("given " * 10, "answer", "now"))
    assert result.tripwire is not None
    assert model.calls == 1


async def test_system_messages_and_the_current_turn_are_sent_always() -> None:
    """However little room they leave."""
    limiter = TokenLimiter(12, count=words)
    got = await sent_of(limiter, chat("a", "b", "c d"), instructions="Be brief.")
    assert got == ["Be brief.", "c d"]


async def test_a_turn_that_alone_is_too_long_blocks() -> None:
    """With the numbers, and before the model is asked."""
    found: list[ProcessorViolation] = []
    limiter = TokenLimiter(10, count=words, on_violation=found.append)
    model = ScriptedModel([["never"]])
    result = await Agent(model=model, input_processors=[limiter]).generate("x " * 50)
    assert result.tripwire is not None
    assert "54 tokens, 10 are allowed" in result.tripwire.reason
    assert result.tripwire.metadata == {"tokens": 54, "limit": 10}
    assert (model.calls, len(found)) == (0, 1)


async def test_the_conversation_stays_whole() -> None:
    """What is not sent is not forgotten: later hooks and the stored messages have it all."""
    seen: list[list[str]] = []

    class Look:
        id = "look"

        def process_output_result(self, args: Any) -> None:
            """Note the conversation."""
            seen.append([message.text for message in args.message_list.all])

    model = ScriptedModel([["ok"]])
    limiter = TokenLimiter(8, count=words)
    agent = Agent(model=model, input_processors=[limiter], output_processors=[Look()])
    await agent.generate(chat("a", "b", "c"))
    assert (sent(model), seen) == (["c"], [["a", "b", "c", "ok"]])


async def test_steps_of_the_current_turn_are_sent() -> None:
    """The call and the result of this very turn stay, and older messages make room for them."""
    model = ScriptedModel([[call("look_up", {"n": 1})], ["done"]])
    limiter = TokenLimiter(21, count=words)
    agent = Agent(model=model, tools=[look_up], input_processors=[limiter])
    result = await agent.generate(chat("a", "b", "c"))
    assert result.text == "done"
    assert [message.role for message in model.requests[1].prompt] == ["user", "assistant", "tool"]


async def test_a_call_that_the_current_turn_answers_is_sent() -> None:
    """Though it stands before that turn: a result without its call is refused by providers."""
    prompt = [
        PromptMessage("user", Message.user("a").parts),
        PromptMessage("assistant", [ToolCallPart("1", "look_up", {})]),
        PromptMessage("assistant", Message.assistant("x").parts),
        PromptMessage("user", Message.user("b").parts),
        PromptMessage("tool", [ToolResultPart("1", "look_up", "c")]),
    ]
    model = ScriptedModel([["ok"]])
    limiter = TokenLimiter(16, count=words)
    await Agent(model=model, input_processors=[Fixed(prompt), limiter]).generate("hi")
    assert model.requests[0].prompt == [prompt[1], *prompt[3:]]


texts = st.text("ab ", max_size=12)


@st.composite
def conversations(draw: st.DrawFn) -> list[PromptMessage]:
    """Prompts with system messages, and with calls and results now and then."""
    prompt = [PromptMessage.system(text) for text in draw(st.lists(texts, max_size=2))]
    for index in range(draw(st.integers(0, 6))):
        made = draw(st.sampled_from(["user", "assistant", "call", "calls"]))
        if made in ("user", "assistant"):
            message = Message.user(draw(texts)) if made == "user" else Message.assistant("b")
            prompt.append(PromptMessage(message.role, message.parts))
            continue
        ids = [f"{index}-{n}" for n in range(2 if made == "calls" else 1)]
        prompt.append(PromptMessage("assistant", [ToolCallPart(i, "look_up", {}) for i in ids]))
        prompt += [PromptMessage("tool", [ToolResultPart(i, "look_up", draw(texts))]) for i in ids]
    return [*prompt, *draw(st.lists(texts.map(lambda t: PromptMessage("user", [])), max_size=1))]


class Fixed:
    """An input processor that puts the prompt in its place."""

    id = "fixed"

    def __init__(self, prompt: list[PromptMessage]) -> None:
        """Take the prompt."""
        self.prompt = prompt

    def process_llm_request(self, args: Any) -> Any:
        """Give it."""
        return {"prompt": self.prompt}


@given(conversations(), st.integers(1, 80), st.sampled_from(["best-fit", "contiguous"]))
def test_a_trimmed_prompt_is_a_prompt(prompt: list[PromptMessage], limit: int, mode: Any) -> None:
    """It fits, in the same order, calls with their results; and no message more would fit."""
    model = ScriptedModel([["ok"]])
    limiter = TokenLimiter(limit, count=words, mode=mode)
    agent = Agent(model=model, input_processors=[Fixed(prompt), limiter])
    result = asyncio.run(agent.generate("hi"))
    sizes = {id(message): message_tokens(message, words) for message in prompt}
    users = [index for index, message in enumerate(prompt) if message.role == "user"]
    if result.tripwire is not None:
        assert sum(sizes.values()) > limit
        return
    got = model.requests[0].prompt
    kept = [id(message) for message in got]
    assert sum(sizes[key] for key in kept) <= limit
    assert [id(message) for message in prompt if id(message) in kept] == kept
    assert all(id(message) in kept for message in prompt if message.role == "system")
    assert not users or all(id(message) in kept for message in prompt[users[-1] :])
    parts = [part for message in got for part in message.content]
    calls = {part.tool_call_id for part in parts if isinstance(part, ToolCallPart)}
    assert {part.tool_call_id for part in parts if isinstance(part, ToolResultPart)} == calls
    talk = [message.role for message in prompt if message.role != "system"]
    starts = [message.role for message in got if message.role != "system"][:1]
    assert talk[:1] != ["user"] or starts == ["user"]
    room = limit - sum(sizes[key] for key in kept)
    gone = [message for message in prompt if id(message) not in kept]
    alone = [
        m for m in gone if not any(isinstance(p, ToolCallPart | ToolResultPart) for p in m.content)
    ]
    if mode == "best-fit":
        first = next((i for i, m in enumerate(prompt) if m in got and m.role != "system"), 0)
        lost = [m for m in gone if m.role != "user" and prompt.index(m) < first]
        room -= sum(sizes[id(message)] for message in lost)
        assert all(sizes[id(message)] > room for message in alone if message not in lost)
    elif gone:
        newest = max(prompt.index(message) for message in gone)
        assert not any(
            id(message) in kept and message.role != "system" for message in prompt[:newest]
        )


# --- the answer ----------------------------------------------------------------------------


async def chunks_of(agent: Agent) -> list[Chunk]:
    """The chunks that a client gets."""
    async with agent.stream("hi") as run:
        return [chunk async for chunk in run]


def limited(script: list[Any], limiter: TokenLimiter, **options: Any) -> Agent:
    """An agent that plays the script, its answers limited."""
    model = ScriptedModel(script)
    return Agent(model=model, output_processors=[limiter], tools=[look_up], **options)


async def test_an_answer_ends_at_the_limit() -> None:
    """Client, result and message agree; text ends, and the reason is the length."""
    agent = limited([["One two", " three four ", "five"]], TokenLimiter(3, count=words))
    chunks = await chunks_of(agent)
    assert "".join(c.text for c in chunks if isinstance(c, TextDelta)) == "One two three "
    assert [c.type for c in chunks[-3:]] == ["text-end", "step-finish", "finish"]
    agent = limited([["One two", " three four ", "five"]], TokenLimiter(3, count=words))
    result = await agent.generate("hi")
    assert result.text == result.messages[0].text == "One two three "
    assert [result.finish_reason, result.steps[0].finish_reason] == ["length", "length"]
    reasons = [getattr(c, "reason", None) for c in chunks[-2:]]
    assert reasons == ["length", "length"]


async def test_an_answer_that_fits_is_left_alone() -> None:
    """Also with what is held at its end, and the model's own reason."""
    agent = limited([[reasoning("Hm hm hm hm."), "One", " two"]], TokenLimiter(3, count=words))
    result = await agent.generate("hi")
    assert (result.text, result.finish_reason, result.reasoning) == (
        "One two",
        "stop",
        "Hm hm hm hm.",
    )


async def test_nothing_is_said_or_called_behind_the_end() -> None:
    """Text parts to come, reasoning and calls are left out, and no tool runs."""
    script = [["a b c", reasoning("hm"), "d", call("look_up", {"n": 1})]]
    result = await limited(script, TokenLimiter(2, count=words)).generate("hi")
    assert (result.text, result.reasoning, result.tool_calls) == ("a b ", "", [])


async def test_what_was_called_before_the_end_runs() -> None:
    """A call that the client saw has its result, and the next answer its own limit."""
    script = [[call("look_up", {"n": 7}), "a b c"], ["d e f"]]
    result = await limited(script, TokenLimiter(2, count=words)).generate("hi")
    assert [r.result for r in result.tool_results] == [7]
    assert (result.text, result.finish_reason) == ("a b d e ", "length")


async def test_all_text_parts_share_the_limit() -> None:
    """Two parts of an answer are one answer."""
    script = [["a b ", reasoning("hm"), "c d"]]
    result = await limited(script, TokenLimiter(3, count=words)).generate("hi")
    assert result.text == "a b c "


async def test_a_blocked_answer_is_void() -> None:
    """With the strategy "block" the step is in no accessor, and the callback is told once."""
    found: list[ProcessorViolation] = []
    limiter = TokenLimiter(2, count=words, strategy="block", on_violation=found.append)
    result = await limited([["a b c d"]], limiter).generate("hi")
    assert (result.text, result.messages, result.finish_reason) == ("", [], "other")
    assert result.tripwire is not None
    assert result.tripwire.processor_id == "token-limiter"
    assert result.tripwire.reason == "the answer is longer than 2 tokens"
    assert len(found) == 1


async def test_an_answer_of_exactly_the_limit_is_not_blocked() -> None:
    """Only what is longer is."""
    limiter = TokenLimiter(2, count=words, strategy="block")
    result = await limited([["a ", "b "]], limiter).generate("hi")
    assert (result.text, result.tripwire) == ("a b ", None)


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_cut_is_reported_once(*, is_async: bool) -> None:
    """To a plain function and to a coroutine."""
    found: list[ProcessorViolation] = []

    async def later(violation: ProcessorViolation) -> None:
        found.append(violation)

    limiter = TokenLimiter(1, count=words, on_violation=later if is_async else found.append)
    await limited([["a b", "c"]], limiter).generate("hi")
    assert [(v.message, v.detail) for v in found] == [
        ("the answer was cut at 1 tokens", {"limit": 1})
    ]


async def test_a_rejected_answer_counts_for_nothing() -> None:
    """After a void the next attempt has the whole limit, and its own reason."""

    class Once:
        id = "once"

        def process_output_step(self, args: Any) -> None:
            """Reject the first answer."""
            if not args.retry_count:
                args.abort("again", retry=True)

    limiter = TokenLimiter(3, count=words)
    model = ScriptedModel([["a b c d e"], ["f g"]])
    agent = Agent(model=model, output_processors=[limiter, Once()], max_processor_retries=1)
    result = await agent.generate("hi")
    assert (result.text, result.finish_reason) == ("f g", "stop")


class Endless:
    """A model that says a word for ever, and notes when it is closed."""

    provider = "endless"
    model_id = "endless"

    def __init__(self) -> None:
        """Nothing said yet."""
        self.said = 0
        self.closed = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Talk."""
        try:
            yield TextStart("0")
            while True:
                await asyncio.sleep(0)
                self.said += 1
                yield TextDelta("0", "word ")
        finally:
            await asyncio.sleep(0)
            self.closed = True


async def test_in_both_lists_it_closes_the_model() -> None:
    """As soon as nothing more can get out; usage is estimated, since nobody will tell it."""
    model = Endless()
    limiter = TokenLimiter(100, output=5, count=words)
    agent = Agent(model=model, input_processors=[limiter], output_processors=[limiter])
    chunks: list[Chunk] = []
    async with agent.stream("hi there") as run:
        async for chunk in run:
            chunks.append(chunk)
            assert model.closed or chunk.type != "step-finish"
    assert model.said == 6
    assert [c.type for c in chunks[-3:]] == ["text-end", "step-finish", "finish"]
    last = chunks[-1]
    assert isinstance(last, FinishChunk)
    assert (last.reason, last.usage) == ("length", Usage(6, 5))


async def test_a_word_that_does_not_fit_is_not_in_the_usage() -> None:
    """What is estimated is what was shown."""
    limiter = TokenLimiter(100, output=8, count=lambda text: 3 * words(text))
    agent = Agent(model=Endless(), input_processors=[limiter], output_processors=[limiter])
    result = await agent.generate("hi")
    assert (result.text, result.usage.output_tokens) == ("word word ", 6)


async def test_without_a_limit_of_prompts_they_are_left_alone() -> None:
    """`output` alone, in both lists."""
    model = ScriptedModel([["a b c d"]])
    limiter = TokenLimiter(output=2, count=words)
    agent = Agent(model=model, input_processors=[limiter], output_processors=[limiter])
    result = await agent.generate("x " * 500)
    assert (result.text, result.finish_reason, model.calls) == ("a b ", "length", 1)


async def test_a_model_that_ends_in_time_tells_its_own_usage() -> None:
    """Nothing of its end is changed."""
    usage = Usage(7, 8)
    model = ScriptedModel([turn("a b", usage=usage, finish_reason="content-filter")])
    limiter = TokenLimiter(100, count=words)
    agent = Agent(model=model, input_processors=[limiter], output_processors=[limiter])
    result = await agent.generate("hi")
    assert (result.usage, result.finish_reason) == (usage, "content-filter")


async def test_runs_of_one_limiter_are_apart() -> None:
    """Two at a time, each with its own count."""
    limiter = TokenLimiter(100, output=3, count=words)
    lists: Any = {"input_processors": [limiter], "output_processors": [limiter]}
    agents = [
        Agent(model=ScriptedModel([[f"{name} " for _ in range(9)]]), **lists) for name in "ab"
    ]
    results = await asyncio.gather(*(agent.generate("hi") for agent in agents))
    assert [result.text for result in results] == ["a a a ", "b b b "]


@given(st.text("a e\u0301\U0001f469\u200d🔬。字\n", max_size=40), st.integers(1, 12))
def test_a_cut_is_between_graphemes_and_the_longest_that_fits(text: str, limit: int) -> None:
    """What is out is a beginning of whole graphemes, and it fits."""
    agent = limited([list(text)], TokenLimiter(limit))
    said = asyncio.run(agent.generate("hi")).text
    graphemes = regex.findall(r"\X", text)
    assert text.startswith(said)
    assert said in {"".join(graphemes[:n]) for n in range(len(graphemes) + 1)}
    assert estimated_tokens(said) <= limit + 1  # white space may merge across words
    if estimated_tokens(text) * 2 <= limit:
        assert said == text


async def test_data_keeps_its_place() -> None:
    """What a processor before it writes does not overtake held text."""

    class Writes:
        id = "writes"

        def process_output_stream(self, args: Any) -> Any:
            """Write behind the first piece."""
            if isinstance(args.part, TextDelta) and args.part.text == "b":
                args.writer.custom({"type": "data-x", "data": 1})
            return args.part

    model = ScriptedModel([["a a", "b", " c"]])
    limiter = TokenLimiter(9, count=words)
    agent = Agent(model=model, output_processors=[Writes(), limiter])
    kinds = [
        c.text if isinstance(c, TextDelta) else c.type
        for c in await chunks_of(agent)
        if isinstance(c, TextDelta | DataChunk)
    ]
    assert kinds.index("data-x") == 2
    assert "".join(kinds) == "a adata-xb c"


# --- bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "TokenLimiter: give limit, output or both"),
        ({"limit": 0}, "TokenLimiter: limit must be a whole number of 1 or more, not 0"),
        ({"limit": True}, "TokenLimiter: limit must be a whole number"),
        ({"limit": 1, "output": -1}, "TokenLimiter: output must be a whole number"),
        ({"limit": 1, "strategy": "cut"}, "TokenLimiter: strategy must be one of truncate, block"),
        ({"limit": 1, "mode": "x"}, "TokenLimiter: mode must be one of best-fit, contiguous, mem"),
        ({"limit": 1, "count": "gpt-1"}, "TokenLimiter: count='gpt-1' is no encoding"),
        ({"limit": 1, "count": 3}, "TokenLimiter: count must be a function"),
    ],
)
def test_a_bad_option_is_refused_when_it_is_made(options: Any, message: str) -> None:
    """By the name of class and option, with what is allowed."""
    with pytest.raises(ConfigurationError, match=message):
        TokenLimiter(**options)


def test_an_async_count_is_refused() -> None:
    """It would have to be awaited for every word."""

    async def count(text: str) -> int:
        return len(text)

    with pytest.raises(ConfigurationError, match="plain function"):
        TokenLimiter(1, count=count)  # type: ignore[arg-type]  # the mistake


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line that installs it."""
    monkeypatch.setitem(sys.modules, "bpe_openai", None)
    _encoding.cache_clear()
    with pytest.raises(ConfigurationError, match=r"pip install 'streampipe-rx\[tokens\]'"):
        TokenLimiter(1, count="text-embedding-3-small")


@pytest.mark.parametrize(
    "count",
    [lambda _: -1, lambda _: 1.5, int],
    ids=["negative", "fraction", "raising"],
)
async def test_a_count_that_is_wrong_fails_closed(count: Any) -> None:
    """In the answer and in the prompt, naming the processor."""
    limiter = TokenLimiter(5, count=count)
    with pytest.raises(ProcessorError, match="token-limiter") as caught:
        await limited([["a b c"]], limiter).generate("hi")
    assert caught.value.result.text == ""
    agent = Agent(model=ScriptedModel([["a"]]), input_processors=[limiter])
    with pytest.raises(ProcessorError, match="process_llm_request"):
        await agent.generate("hi")


async def test_a_tokenizer_counts() -> None:
    """By a model's name, as the model would."""
    assert await sent_of(TokenLimiter(10, count="gpt-4o"), chat("a", "b", "hello world"))
    limiter = TokenLimiter(3, count="openai/gpt-5-mini")
    result = await limited([["Internationalization is long"]], limiter).generate("hi")
    assert result.text == "Internationalization is "


# --- the laws ------------------------------------------------------------------------------


def test_a_cutting_one_keeps_the_laws() -> None:
    """Whatever the stream; but that its text parts share the limit, so that each has a say."""
    check_processor(
        lambda: TokenLimiter(10_000, output=4),
        laws=set(PROCESSOR_LAWS) - {"ids"},
        max_examples=EXAMPLES // 3,
        drops=True,
        rewrites=True,
    )


def test_a_blocking_one_keeps_the_laws() -> None:
    """It fails with nothing but a wire."""
    check_processor(
        lambda: TokenLimiter(10_000, output=4, strategy="block"),
        max_examples=EXAMPLES // 8,
        fails=TripWire,
    )


def test_one_that_is_never_full_keeps_the_laws() -> None:
    """It loses and changes nothing."""
    check_processor(lambda: TokenLimiter(10_000), max_examples=EXAMPLES // 8)


async def test_any_stream_ends_with_what_was_open() -> None:
    """Applied to a bare stream, a cut closes the part that it is in."""
    parts: list[Chunk] = [TextStart("0"), TextDelta("0", "a b c d"), TextEnd("0")]
    cut = ops.of(*parts).pipe(ops.process(TokenLimiter(2, count=words)))
    got = [chunk.type async for chunk in ops.to_aiter(cut)]
    assert got == ["text-start", "text-delta", "text-end"]


async def test_what_ends_a_step_comes_also_where_it_cuts() -> None:
    """A text that nobody closed is cut by the end of its step, which is not lost."""
    parts: list[Chunk] = [TextDelta("0", "ab"), StepFinish("stop")]
    cut = ops.of(*parts).pipe(ops.process(TokenLimiter(1, count=words)))
    got = [chunk async for chunk in ops.to_aiter(cut)]
    assert [chunk.type for chunk in got] == ["text-delta", "step-finish"]
    assert got[-1] == StepFinish("length")


def test_a_message_list_is_counted_in_prompt_form() -> None:
    """The count of a prompt is the sum of its messages'."""
    prompt = MessageList(["a b", Message.assistant("c")]).all.to_prompt()
    assert [message_tokens(message, words) for message in prompt] == [6, 5]
