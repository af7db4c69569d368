"""What bad input gets: an error that names the part at fault, before any model call if it can be.

Each case says in its list of words what the message has to name: the part, and what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from streampipe import Agent, ErrorChunk, TextDelta, tool
from streampipe.errors import (
    ConfigurationError,
    IncompleteStreamError,
    ModelError,
    OverloadedError,
    ProviderStreamError,
    StreampipeError,
    StructuredOutputError,
    WireError,
)
from streampipe.models import resolve_model
from streampipe.testing import ModelServer, ScriptedModel, call, turn
from tests.contract.guards import Runner, processor, texts, types


async def coroutine() -> str:
    """A function of which the call's result is not a value yet."""
    return "value"


def passes(args: Any) -> Any:
    """A stream hook that changes nothing."""
    return args.part


async def passes_later(text: str) -> bool:
    """A check, and no processor."""
    return bool(text)


def untyped(word):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - the point of it
    """A tool without type hints."""
    return word


def typed(word: str) -> str:
    """A tool."""
    return word


GUARD = processor(process_output_stream=passes)
TWIN = processor(process_output_stream=passes)
INPUT_ONLY = processor("reads-input", process_input=lambda args: args.messages)


class Guard:
    """A processor class, for those who forget to make an instance."""

    id = "guard"
    process_output_stream = staticmethod(passes)


# --- options ------------------------------------------------------------------------------------

OPTIONS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown list of hooks": (
        {"output_processor": [GUARD]},
        ["'output_processor'", "did you mean 'output_processors'"],
    ),
    "unknown option": ({"colour": "red"}, ["'colour'", "known: "]),
    "a processor for a list": (
        {"output_processors": GUARD},
        ["output_processors must be a list", "function"],
    ),
    "processor without a hook of its list": (
        {"output_processors": [GUARD, INPUT_ONLY]},
        ["output_processors[1]", "'reads-input'", "process_output_stream", "process_input"],
    ),
    "processor without any hook": (
        {"error_processors": [processor("idle")]},
        ["error_processors[0]", "'idle'", "process_api_error", "no hook at all"],
    ),
    "processor without an id": (
        {"input_processors": [processor("", process_input=passes)]},
        ["input_processors[0]", "'id'"],
    ),
    "class for a processor": ({"output_processors": [Guard]}, ["Guard is a class", "Guard()"]),
    "no processor at all": ({"output_processors": [7]}, ["output_processors[0]", "7", "'id'"]),
    "list in a list": (
        {"output_processors": [[GUARD]]},
        ["output_processors[0]", "a list in the list", "[*first, *second]"],
    ),
    "name of a processor": (
        {"input_processors": ["redact:pii"]},
        ["input_processors[0]", "'redact:pii' is a text", "processors_from"],
    ),
    "async function for a processor": (
        {"output_processors": [passes_later]},
        ["output_processors[0]", "passes_later", "an async function", "Guard"],
    ),
    "two processors with one id": (
        {"output_processors": [GUARD, TWIN]},
        ["'guard'", "output_processors", "give each its own id"],
    ),
    "one id in two lists": (
        {
            "output_processors": [GUARD],
            "input_processors": [processor(process_input=passes)],
        },
        ["'guard'", "output_processors", "input_processors"],
    ),
    "function that makes no list": (
        {"output_processors": lambda _: GUARD},
        ["output_processors (returned by the function)", "list"],
    ),
    "unknown model prefix": (
        {"model": "opnai/gpt-5-mini"},
        ["'opnai/gpt-5-mini'", "'opnai'", "openai", "register_provider"],
    ),
    "model without a prefix": ({"model": "gpt-5-mini"}, ["'gpt-5-mini'", "provider/model"]),
    "no model": ({"model": None}, ["'a'", "model must be", "openai/gpt-5-mini", "None"]),
    "class for a model": ({"model": ScriptedModel}, ["'a'", "model must be", "ScriptedModel"]),
    "missing key": ({"model": "openai/gpt-5-mini"}, ["openai", "OPENAI_API_KEY"]),
    "missing key of another": ({"model": "groq/llama"}, ["groq", "GROQ_API_KEY"]),
    "tool without type hints": ({"tools": [untyped]}, ["'untyped'", "'word'", "type hint"]),
    "called tool": ({"tools": [7]}, ["tools", "7", "type hints"]),
    "two tools of one name": ({"tools": [typed, typed]}, ["tools", "'typed'", "another name"]),
    "a tool for a list": ({"tools": typed}, ["tools must be a list or a dict"]),
    "wrong max_steps": ({"max_steps": 0}, ["max_steps", "at least 1", "0"]),
    "wrong tool_concurrency": ({"tool_concurrency": "2"}, ["tool_concurrency", "'2'"]),
    "wrong instructions": ({"instructions": 7}, ["instructions must be a string", "7"]),
    "structured output of no type": ({"structured_output": 7}, ["structured_output", "7"]),
    "structured output in a dict": (
        {"structured_output": {"schema": Guard}},
        ["structured_output", "'schema' is Guard", "give a type itself"],
    ),
    "condition of no function": ({"stop_when": 7}, ["stop_when must be a function", "7"]),
    "wrong tool choice": ({"tool_choice": "some"}, ["tool_choice must be 'auto'", "'some'"]),
    "wrong names of tools": ({"active_tools": [7]}, ["active_tools must be a list of names"]),
    "wrong settings": ({"model_settings": 7}, ["model_settings must be a dict", "7"]),
    "wrong provider options": ({"provider_options": [7]}, ["provider_options must be a dict"]),
}


@pytest.mark.parametrize("place", ["agent", "call"])
@pytest.mark.parametrize("name", OPTIONS)
async def test_bad_options_are_refused_before_any_model_call(
    run: Runner, monkeypatch: pytest.MonkeyPatch, name: str, place: str
) -> None:
    """On the agent or on a call: when it is made, or when the run is asked for."""
    for variable in ("OPENAI_API_KEY", "GROQ_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    options, words = OPTIONS[name]
    model = ScriptedModel(["never said"])
    with pytest.raises(ConfigurationError) as caught:
        if place == "agent":
            given: dict[str, Any] = {"model": model, **options}
            await run(Agent(id="a", **given))
        else:
            await run(Agent(id="a", model=model), **options)
    for word in words:
        assert word in str(caught.value)
    assert model.calls == 0


CALL_OPTIONS: dict[str, tuple[Any, str]] = {
    "prepare_step": (7, "prepare_step must be a function, not 7"),
    "abort_signal": (7, "abort_signal must be an AbortSignal, not 7"),
    "request_context": (7, "request_context must be a dict, not 7"),
    "threads": ("t", "'threads'; did you mean 'thread'"),
}


@pytest.mark.parametrize("name", CALL_OPTIONS)
async def test_bad_options_of_a_call_are_refused_before_any_model_call(
    run: Runner, name: str
) -> None:
    """Those that an agent does not have."""
    value, told = CALL_OPTIONS[name]
    model = ScriptedModel(["never said"])
    with pytest.raises(ConfigurationError) as caught:
        await run(Agent(model=model), **{name: value})
    assert told in str(caught.value)
    assert model.calls == 0


COROUTINES: dict[str, Callable[[Any], Any]] = {
    "model": lambda made: made,
    "tools": lambda made: [made],
    "instructions": lambda made: made,
    "input_processors": lambda made: lambda _: made,
    "output_processors": lambda made: [made],
    "error_processors": lambda made: made,
    "active_tools": lambda made: made,
    "stop_when": lambda made: made,
    "structured_output": lambda made: made,
    "model_settings": lambda made: made,
    "prepare_step": lambda made: made,
}


@pytest.mark.parametrize("name", COROUTINES)
async def test_a_coroutine_where_a_value_is_needed_is_refused(run: Runner, name: str) -> None:
    """A forgotten `await`: the error names the option and shows the coroutine."""
    made = coroutine()
    model = ScriptedModel(["never said"])
    with pytest.raises(ConfigurationError) as caught:
        await run(Agent(model=model), **{name: COROUTINES[name](made)})
    made.close()
    assert name in str(caught.value)
    assert "coroutine" in str(caught.value)
    assert model.calls == 0


@pytest.mark.parametrize("way", ["observe", "stream"])
def test_bad_options_are_refused_where_they_are_given(way: str) -> None:
    """Not later, when somebody subscribes or iterates."""
    agent = Agent(id="a", model=ScriptedModel([]))
    with pytest.raises(ConfigurationError, match="did you mean 'max_steps'"):
        getattr(agent, way)("hi", max_step=1)


def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A key with a stray newline: the message names the header, not the key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret\n")
    with pytest.raises(ConfigurationError, match="stray newline") as caught:
        resolve_model("openai/gpt-5-mini")
    assert "very-secret" not in str(caught.value)


PROMPTS: dict[str, tuple[Any, list[str]]] = {
    "nothing": ([], ["the prompt is empty", "a string"]),
    "number": (7, ["a message is", "int"]),
    "no role": ([{"content": "hi"}], ["'role' must be one of", "None"]),
    "function": (coroutine, ["a message is", "function"]),
}


@pytest.mark.parametrize("name", PROMPTS)
async def test_a_bad_prompt_is_refused_before_any_model_call(run: Runner, name: str) -> None:
    """The message says what a prompt is."""
    prompt, words = PROMPTS[name]
    model = ScriptedModel(["never said"])
    with pytest.raises((ConfigurationError, WireError)) as caught:
        await run(Agent(model=model), prompt)
    for word in words:
        assert word in str(caught.value)
    assert model.calls == 0


# --- tools --------------------------------------------------------------------------------------


def test_a_tool_is_refused_where_it_is_made() -> None:
    """`@tool` says what is missing, when the module is imported."""
    with pytest.raises(ConfigurationError, match=r"'untyped'.*'word'"):
        tool(untyped)


async def test_tool_arguments_that_are_no_json_are_told_to_the_model(run: Runner) -> None:
    """It sees what it wrote, and may answer again; the tool does not run."""
    ran: list[str] = []

    def search(word: str) -> str:
        ran.append(word)
        return word

    async with ModelServer([[call("search", '{"word": "x')], ["sorry"]]) as server:
        seen = await run(Agent(model=server.model(), tools=[search]))
        told = server.requests[1].body["messages"][-1]
    assert seen.result.text == "sorry"
    assert ran == []
    assert told["role"] == "tool"
    for word in ("'search'", "not valid JSON", '{"word": "x'):
        assert word in told["content"]


# --- what a provider says -----------------------------------------------------------------------


def event(content: str) -> bytes:
    """A piece of text as a provider sends it."""
    return (
        b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n' % content.encode()
    )


STREAMS: dict[str, tuple[bytes, type[ModelError], list[str]]] = {
    "no JSON": (b"data: {oops\n\n", ProviderStreamError, ["JSON"]),
    "no object": (b"data: 7\n\n", ProviderStreamError, ["7"]),
    "no UTF-8": (b"data: \xff\xfe\n\n", ProviderStreamError, ["UTF-8"]),
    "an error of its own": (
        b'data: {"error": {"message": "overloaded"}}\n\n',
        OverloadedError,
        ["overloaded"],
    ),
    "without its end": (b"", IncompleteStreamError, []),
    "cut within an event": (b'data: {"id":"c","cho', IncompleteStreamError, []),
}


@pytest.mark.parametrize("name", STREAMS)
async def test_what_a_provider_sends_against_its_protocol_is_an_error_chunk(
    run: Runner, name: str
) -> None:
    """After what came before it; the error names the model, and the step is void."""
    data, kind, words = STREAMS[name]
    async with ModelServer([event("fine") + data]) as server:
        seen = await run(Agent(model=server.model("small", max_retries=0)))
    assert type(seen.error) is kind
    for word in ("openai/small", *words):
        assert word in str(seen.error)
    assert seen.result.text == ""
    assert seen.result.messages == []
    if seen.chunks is not None:
        assert texts(seen.chunks) == ["fine"]
        assert types(seen.chunks)[-3:] == ["text-end", "error", "finish"]
        told = seen.chunks[-2]
        assert isinstance(told, ErrorChunk)
        assert told.error.name == kind.__name__


async def test_an_answer_that_is_no_stream_is_an_error(run: Runner) -> None:
    """A page of a proxy, say: the error says what came instead."""
    async with ModelServer([b"<html>not here</html>"]) as server:
        seen = await run(Agent(model=server.model("small", max_retries=0)))
    assert isinstance(seen.error, IncompleteStreamError)
    assert "openai/small" in str(seen.error)


async def test_a_model_that_ends_without_finish_is_incomplete(run: Runner) -> None:
    """Whatever model it is: a stream that just stops is no success, and may be tried again."""
    seen = await run(Agent(model=ScriptedModel([turn("half", incomplete=True)])))
    assert isinstance(seen.error, IncompleteStreamError)
    assert seen.error.is_retryable
    assert "scripted/script" in str(seen.error)


class Careless:
    """A model that yields whatever it was given."""

    provider = "careless"
    model_id = "m"

    def __init__(self, *items: Any) -> None:
        """Take the items."""
        self._items = items

    async def stream(self, request: Any) -> Any:
        """Yield them."""
        for item in self._items:
            yield item


async def test_a_model_that_yields_no_chunks_is_named(run: Runner) -> None:
    """The error names the model, and the run ends as after any failure."""
    careless: Any = Careless(TextDelta("0", "x"), "text")
    seen = await run(Agent(model=careless))
    assert isinstance(seen.error, ModelError)
    assert "careless/m" in str(seen.error)
    if seen.chunks is not None:
        assert types(seen.chunks)[-2:] == ["error", "finish"]


@pytest.mark.parametrize("answer", ["no json", '{"age": "old"}'])
async def test_an_answer_that_does_not_fit_its_schema_is_an_error(run: Runner, answer: str) -> None:
    """The run ends with `StructuredOutputError`, which says where it does not fit."""

    @dataclass
    class Person:
        age: int

    seen = await run(Agent(model=ScriptedModel([answer]), structured_output=Person))
    assert isinstance(seen.error, StructuredOutputError)
    assert "structured output: the answer" in str(seen.error)
    assert seen.result.object is None


@pytest.mark.parametrize("bad", ["returns", "raises"])
async def test_a_bad_operator_among_the_processors_is_named(run: Runner, bad: str) -> None:
    """An Rx operator that raises, or makes no observable."""

    def shout(source: Any) -> Any:
        if bad == "raises":
            raise ValueError
        return 7

    seen = await run(Agent(model=ScriptedModel(["a"]), output_processors=[shout]))
    assert isinstance(seen.error, StreampipeError)
    assert "operator 'shout'" in str(seen.error)
