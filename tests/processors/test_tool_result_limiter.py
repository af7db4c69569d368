"""`ToolResultLimiter`: results that fit, stay JSON and say what is missing."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
import regex  # type: ignore[import-untyped]  # it ships no types
from hypothesis import given, settings
from hypothesis import strategies as st

from streampipe import Agent, tool
from streampipe.chunks import ToolCall, ToolErrorChunk, ToolResult
from streampipe.contracts import ProcessorViolation
from streampipe.errors import ConfigurationError, ProcessorError
from streampipe.messages import ToolResultPart
from streampipe.processors import ToolResultLimiter
from streampipe.testing import ScriptedModel, call, check_processor

EXAMPLES = max(1_000, 10 * settings().max_examples)
LEFT_OUT = re.compile(r"\[… ([0-9]+) (characters|items|entries) left out\]")


def returning(value: Any, name: str = "look_up") -> Any:
    """A tool that returns this."""

    def look_up() -> Any:
        """Look it up."""
        return value

    look_up.__name__ = name
    return tool(look_up)


async def result_of(value: Any, limiter: ToolResultLimiter, name: str = "look_up") -> Any:
    """What is made of a tool's result; the same for client, prompt and message."""
    model = ScriptedModel([[call(name)], ["done"]])
    agent = Agent(model=model, tools=[returning(value, name)], output_processors=[limiter])
    async with agent.stream("hi") as run:
        chunks = [chunk async for chunk in run]
        result = await run.result()
    shown = [chunk.result for chunk in chunks if isinstance(chunk, ToolResult)]
    parts = [part for message in model.requests[1].prompt for part in message.content]
    prompted = [part.result for part in parts if isinstance(part, ToolResultPart)]
    stored: Any = result.messages[0].parts[0]
    assert shown == prompted == [stored.result] == [r.result for r in result.tool_results]
    return shown[0]


def chars(value: Any) -> int:
    """The size of a value in a prompt."""
    if isinstance(value, str):
        return len(value)
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


@pytest.mark.parametrize("value", ["x" * 100, {"a": "x" * 92}, list(range(10)), None, 3.5])
async def test_what_fits_is_left_alone(value: Any) -> None:
    """Up to the limit itself, and nobody is told."""
    found: list[ProcessorViolation] = []
    limiter = ToolResultLimiter(max_chars=100, on_violation=found.append)
    assert await result_of(value, limiter) == value
    assert not found


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        ("head", "0123456789" * 6 + "01234567[… 932 characters left out]"),
        ("tail", "[… 932 characters left out]23456789" + "0123456789" * 6),
        ("both", "0123456789" * 3 + "0123[… 932 characters left out]6789" + "0123456789" * 3),
    ],
)
async def test_a_text_is_cut(keep: Any, expected: str) -> None:
    """As much as fits of what is to be kept, and the marker where something is missing."""
    got = await result_of("0123456789" * 100, ToolResultLimiter(max_chars=95, keep=keep))
    assert got == expected
    assert len(got) == 95


async def test_long_strings_of_a_structure_are_cut() -> None:
    """All to one length; what is short, and what is no text, stays."""
    value = {"id": 7, "pages": [{"title": "Home", "text": "a" * 5_000}, {"text": "b" * 900}]}
    got = await result_of(value, ToolResultLimiter(max_chars=400))
    assert chars(got) <= 400
    assert (got["id"], got["pages"][0]["title"]) == (7, "Home")
    kept = [LEFT_OUT.sub("", page["text"]) for page in got["pages"]]
    assert [set(text) for text in kept] == [{"a"}, {"b"}]
    assert len(kept[0]) == len(kept[1]) > 80


async def test_a_string_that_the_marker_would_not_shorten_stays() -> None:
    """There is nothing to gain."""
    value = {"a": "x" * 3_000, "b": "y" * 130}
    got = await result_of(value, ToolResultLimiter(max_chars=300))
    assert got["b"] == value["b"]
    assert 290 <= chars(got) <= 300


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        ("head", [*range(100, 109), "91 items"]),
        ("tail", ["91 items", *range(191, 200)]),
        ("both", [*range(100, 105), "91 items", *range(196, 200)]),
    ],
)
async def test_a_list_loses_items(keep: Any, expected: list[Any]) -> None:
    """Where no string can be cut; in between is said how many."""
    limiter = ToolResultLimiter(max_chars=50, keep=keep, marker="{missing} {unit}")
    assert await result_of(list(range(100, 200)), limiter) == expected


async def test_an_object_loses_entries() -> None:
    """The first stay, and an entry of its own says how many do not."""
    value = {f"key-{n}": n for n in range(100)} | {"…": 1}
    limiter = ToolResultLimiter(max_chars=90)
    got = await result_of({"…": 1, **value}, limiter)
    assert (got["…"], got["key-0"], got["……"][:4]) == (1, 0, "[… 9")
    assert chars(got) <= 90


async def test_what_cannot_be_cut_becomes_text() -> None:
    """One key that is too long: the beginning of the JSON, and the marker."""
    got = await result_of({"k" * 500: 1}, ToolResultLimiter(max_chars=100))
    assert got.startswith('{"kkk')
    assert LEFT_OUT.search(got)
    assert len(got) == 100


async def test_tokens_are_counted_as_told() -> None:
    """By a function, by a tokenizer or by the estimate."""
    text = "word " * 1_000
    for count in (None, "o200k_base", lambda text: len(text) // 2):
        got = await result_of(text, ToolResultLimiter(max_tokens=60, count=count))
        assert got.startswith("word word ")
        assert 60 <= len(got) <= 300


async def test_each_tool_has_its_limit() -> None:
    """A number of its own, none at all, or that of all."""
    limiter = ToolResultLimiter(max_chars=100, per_tool={"book": 200, "all": None})
    got = [len(await result_of("x" * 500, limiter, name)) for name in ("other", "book", "all")]
    assert got == [100, 200, 500]


async def test_a_cut_is_reported() -> None:
    """Once a result, with the tool and the numbers; a coroutine is waited for."""
    found: list[ProcessorViolation] = []

    async def later(violation: ProcessorViolation) -> None:
        await asyncio.sleep(0)
        found.append(violation)

    await result_of("x" * 500, ToolResultLimiter(max_chars=100, on_violation=later))
    assert [violation.detail for violation in found] == [
        {"tool_name": "look_up", "size": 500, "limit": 100}
    ]
    assert found[0].message == ("the result of 'look_up' has 500 characters; 100 are let through")


async def test_results_of_the_provider_stay_as_they_are() -> None:
    """The provider wants them back unchanged."""
    text = "x" * 500
    pieces: list[Any] = [
        ToolCall("1", "web", {}, provider_executed=True),
        ToolResult("1", "web", text, provider_executed=True),
        "done",
    ]
    agent = Agent(
        model=ScriptedModel([pieces]), output_processors=[ToolResultLimiter(max_chars=100)]
    )
    assert [r.result for r in (await agent.generate("hi")).tool_results] == [text]


async def test_errors_stay_as_they_are() -> None:
    """A tool that fails gave no result."""

    @tool
    def look_up() -> str:
        """Fail."""
        raise ValueError("x" * 500)

    agent = Agent(
        model=ScriptedModel([[call("look_up")], ["done"]]),
        tools=[look_up],
        output_processors=[ToolResultLimiter(max_chars=100)],
    )
    async with agent.stream("hi") as run:
        errors = [c.error async for c in run if isinstance(c, ToolErrorChunk)]
    assert ["x" * 500 in error for error in errors] == [True]


async def test_runs_of_one_limiter_are_apart() -> None:
    """Two at a time."""
    limiter = ToolResultLimiter(max_chars=100)
    got = await asyncio.gather(*(result_of(c * n, limiter) for c, n in (("a", 300), ("b", 90))))
    assert [got[0][:2], got[1]] == ["aa", "b" * 90]


async def test_a_rejected_step_is_shortened_again() -> None:
    """The second attempt's result too."""

    class Once:
        id = "once"

        def process_tool_result(self, args: Any) -> None:
            """Reject the first."""
            if not args.retry_count:
                args.abort("again", retry=True)

    agent = Agent(
        model=ScriptedModel([[call("look_up")], [call("look_up")], ["done"]]),
        tools=[returning("x" * 500)],
        output_processors=[ToolResultLimiter(max_chars=100), Once()],
        max_processor_retries=1,
    )
    result = await agent.generate("hi")
    assert [len(r.result) for r in result.tool_results] == [100]


graphemes = st.sampled_from(
    ["a", "b ", "é", "e\u0301", "👩\u200d🔬", "字", '"', "\n", "\r\n", "🇵🇹"]
)
strings = st.builds(lambda parts, n: "".join(parts) * n, st.lists(graphemes), st.integers(1, 40))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | strings,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(strings, inner, max_size=8),
    max_leaves=20,
)
KEEP = st.sampled_from(["head", "tail", "both"])


@given(values, st.integers(76, 500), KEEP)
def test_any_result_fits_and_is_json(value: Any, limit: int, keep: Any) -> None:
    """And one that fitted is the same."""
    got = asyncio.run(result_of(value, ToolResultLimiter(max_chars=limit, keep=keep)))
    assert chars(got) <= limit
    assert json.loads(json.dumps(got)) == got
    if chars(value) <= limit:
        assert got == value
    else:
        assert LEFT_OUT.search(json.dumps(got, ensure_ascii=False))


@given(strings, st.integers(76, 120), KEEP)
def test_a_text_is_cut_between_graphemes(text: str, limit: int, keep: Any) -> None:
    """Head and tail are whole graphemes of it, and the marker counts what is missing."""
    got = asyncio.run(result_of(text, ToolResultLimiter(max_chars=limit, keep=keep)))
    if len(text) <= limit:
        return
    found = LEFT_OUT.search(got)
    assert found is not None
    head, tail = got[: found.start()], got[found.end() :]
    assert int(found[1]) == len(text) - len(head) - len(tail)
    whole = regex.findall(r"\X", text)
    assert regex.findall(r"\X", head) == whole[: len(regex.findall(r"\X", head))]
    assert not tail or regex.findall(r"\X", tail) == whole[-len(regex.findall(r"\X", tail)) :]
    assert keep == "both" or not {"head": tail, "tail": head}[keep]


@pytest.mark.parametrize("keep", ["head", "tail", "both"])
@pytest.mark.parametrize("family", ["🇵🇹" * 3, "👩\u200d👩\u200d👧\u200d👦"])
async def test_what_is_far_from_either_end_stays_whole(keep: Any, family: str) -> None:
    """Where graphemes end is told by what stands right before them."""
    text = f"{family} " * 400
    whole = set(regex.findall(r"\X", text))
    for limit in range(600, 608):
        got = await result_of(text, ToolResultLimiter(max_chars=limit, keep=keep))
        head, tail = LEFT_OUT.split(got)[::3]
        assert {*regex.findall(r"\X", head), *regex.findall(r"\X", tail)} <= whole


async def test_a_count_that_never_gets_less_leaves_the_marker() -> None:
    """Which has to do, though that count finds too much in it too."""

    def count(text: str) -> int:
        return 1 if "1000000000" in text else 50

    got = await result_of("x" * 500, ToolResultLimiter(max_tokens=10, count=count))
    assert got == "[… 500 characters left out]"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "ToolResultLimiter: max_tokens=None, max_chars=None; give one of them"),
        ({"max_tokens": 100, "max_chars": 100}, "ToolResultLimiter: .*give one of them"),
        ({"max_chars": 0}, "ToolResultLimiter: max_chars must be a whole number"),
        ({"max_chars": 20}, "max_chars=20 leaves no room for the marker: give 76 characters"),
        ({"max_tokens": 3}, "max_tokens=3 leaves no room for the marker"),
        ({"max_chars": 99, "per_tool": {"a": 2}}, r"per_tool\['a'\]=2 leaves no room"),
        ({"max_chars": 99, "per_tool": {"a": "b"}}, r"per_tool\['a'\] must be a whole number"),
        ({"max_chars": 99, "per_tool": ["a"]}, "per_tool must be a dict"),
        ({"max_chars": 99, "keep": "middle"}, "keep must be one of head, tail, both"),
        ({"max_chars": 99, "marker": "[cut]"}, "marker must be a text with {missing}"),
        ({"max_chars": 99, "marker": "{missing} {x}"}, "marker must be a text with {missing}"),
        ({"max_chars": 99, "marker": "{"}, "marker must be a text with {missing}"),
        ({"max_chars": 99, "marker": 3}, "marker must be a text, not 3"),
        ({"max_chars": 99, "count": len}, "count counts tokens, so give max_tokens"),
        ({"max_tokens": 99, "count": "x"}, "count='x' is no encoding"),
    ],
)
def test_a_bad_option_is_refused_when_it_is_made(options: Any, message: str) -> None:
    """By the name of class and option, with what is allowed."""
    with pytest.raises(ConfigurationError, match=message):
        ToolResultLimiter(**options)


async def test_a_count_that_raises_fails_closed() -> None:
    """Nothing that could not be measured reaches the model."""

    def count(text: str) -> int:
        if len(text) > 100:
            raise ValueError("too much")
        return 1

    with pytest.raises(ProcessorError, match=r"tool-result-limiter.*too much"):
        await result_of("x" * 500, ToolResultLimiter(max_tokens=50, count=count))


def test_it_keeps_the_laws() -> None:
    """In whole runs, whatever the model."""
    check_processor(lambda: ToolResultLimiter(max_chars=100), max_examples=EXAMPLES)
