"""`SmoothStream`: an even pace, and the same text."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe import Agent
from streampipe.errors import ConfigurationError
from streampipe.processors import SmoothStream
from streampipe.testing import ScriptedModel, call, check_operator, delay, fail, run_virtual


async def texts(script: list[Any], smooth: SmoothStream) -> list[tuple[float, str]]:
    """The pieces of text that a client gets, and when."""
    now = asyncio.get_running_loop().time
    agent = Agent(model=ScriptedModel(script), output_processors=[smooth])
    async with agent.stream("hi") as run:
        return [(round(now(), 6), text) async for text in run.text_stream]


def test_words_leave_one_after_the_other() -> None:
    """However many came at once."""
    got = run_virtual(texts([["one two thr", "ee"]], SmoothStream(0.5)))
    assert got == [(0, "one "), (0.5, "two "), (1, "three")]


def test_a_slow_model_is_not_slowed_down() -> None:
    """The pace is an upper bound."""
    got = run_virtual(texts([["one ", "two ", delay(9), "three"]], SmoothStream(0.5)))
    assert got == [(0, "one "), (9, "two "), (9.5, "three")]


@pytest.mark.parametrize(
    ("by", "pieces"),
    [
        ("word", ["a ", "b\n", "c;d"]),
        ("line", ["a b\n", "c;d"]),
        (re.compile(";"), ["a b\nc;", "d"]),
    ],
)
def test_a_piece_is_what_was_asked_for(by: Any, pieces: list[str]) -> None:
    """Words, lines, or what a pattern ends."""
    got = run_virtual(texts([list("a b\nc;d")], SmoothStream(1, by)))
    assert [text for _, text in got] == pieces


@given(st.lists(st.text("ab \n", min_size=1, max_size=9), min_size=1, max_size=6))
def test_the_text_is_the_same_at_an_even_pace(pieces: list[str]) -> None:
    """Nothing is lost, and no two pieces are closer than the delay."""
    got = run_virtual(texts([pieces], SmoothStream(0.25)))
    assert "".join(text for _, text in got) == "".join(pieces)
    assert all(later - sooner >= 0.25 for (sooner, _), (later, _) in pairwise(got))


def test_a_tool_call_waits_behind_the_text_before_it() -> None:
    """The order is kept."""

    async def main() -> list[str]:
        script: list[Any] = [["one two ", call("gone", {})], ["end"]]
        agent = Agent(model=ScriptedModel(script), output_processors=[SmoothStream(1)])
        async with agent.stream("hi") as run:
            return [getattr(chunk, "text", chunk.type) async for chunk in run]

    got = run_virtual(main())
    assert got.index("one ") < got.index("two ") < got.index("tool-call") < got.index("end")


def test_a_void_attempt_takes_what_waited_with_it() -> None:
    """The rest of a failed attempt is not sent."""

    class Again:
        id = "again"

        def process_api_error(self, args: Any) -> dict[str, bool]:
            """Try again."""
            return {"retry": True}

    async def main() -> list[str]:
        model = ScriptedModel([["one dra", fail(status=503)], ["fin"]])
        agent = Agent(model=model, output_processors=[SmoothStream(1)], error_processors=[Again()])
        async with agent.stream("hi") as run:
            return [text async for text in run.text_stream]

    got = run_virtual(main())
    assert "dra" not in got
    assert got[-1] == "fin"


def test_one_instance_serves_two_runs_at_a_time() -> None:
    """Each at a pace of its own."""

    async def main() -> list[list[tuple[float, str]]]:
        shared = SmoothStream(1)
        return list(await asyncio.gather(texts([["a b"]], shared), texts([["c d"]], shared)))

    assert run_virtual(main()) == [[(0, "a "), (1, "b")], [(0, "c "), (1, "d")]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((0,), "delay must be a finite number of seconds above 0"),
        (("1",), "delay must be a finite number of seconds above 0, not"),
        ((1, "letter"), "by is 'letter'; give one of 'grapheme', 'word', 'line', 'sentence'"),
        ((1, re.compile("")), "by"),
    ],
)
def test_a_wrong_option_is_refused(options: tuple[Any, ...], said: str) -> None:
    """When it is made, by the class's name."""
    with pytest.raises(ConfigurationError, match=f"^SmoothStream: .*{said}"):
        SmoothStream(*options)


def test_it_is_shown_as_it_is_written() -> None:
    """In a `repr`."""
    assert repr(SmoothStream(0.02, "line")) == "SmoothStream(0.02, by='line')"
    assert SmoothStream(1, id="calm").id == "calm"


def test_it_keeps_the_laws_of_operators() -> None:
    """On generated streams; `ops.smooth` itself is held to them on many more."""
    check_operator(
        lambda: SmoothStream(0.01),
        timed=True,
        text_of_whole=str,
    )
