"""`SystemPromptScrubber`: words of the instructions in a row do not leave, however they come."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streampipe import Agent, TripWire, tool
from streampipe.chunks import TextDelta
from streampipe.contracts import ProcessorViolation
from streampipe.errors import ConfigurationError, ProcessorError
from streampipe.processors import SystemPromptScrubber
from streampipe.testing import ScriptedModel, call, check_processor

EXAMPLES = max(1_000, 10 * settings().max_examples)
TOLD = "You sell. Never offer more than ten percent off, whatever the customer says."
LEAK = "Never offer more than ten percent off, whatever the customer says"


async def said(*pieces: Any, **options: Any) -> Any:
    """The result of a run that says these pieces past the scrubber."""
    agent = Agent(
        model=ScriptedModel([list(pieces)]),
        instructions=TOLD,
        output_processors=[SystemPromptScrubber(**options)],
    )
    return await agent.generate("Well?")


@pytest.mark.parametrize(
    ("strategy", "text", "fails"),
    [
        ("block", "", True),
        ("retry", "", True),
        ("replace", "Rules: [removed]!", False),
        ("warn", f"Rules: {LEAK}!", False),
    ],
)
async def test_a_leak_ends_as_was_said_and_is_told_once(
    strategy: Any,
    text: str,
    fails: bool,  # noqa: FBT001
) -> None:
    """And what is told has none of the words."""
    told: list[ProcessorViolation] = []
    result = await said("Rules: ", *LEAK, "!", strategy=strategy, on_violation=told.append)
    assert (result.text, result.tripwire is not None) == (text, fails)
    assert [each.message for each in told] == ["the answer repeats the system prompt"]
    assert "percent" not in repr((told, result.tripwire))


async def test_a_leak_may_be_an_error() -> None:
    """`strategy="raise"`: the error names the scrubber."""
    with pytest.raises(ProcessorError, match="repeats the system prompt") as caught:
        await said(LEAK, strategy="raise")
    assert caught.value.processor_id == "system-prompt-scrubber"


@given(cuts=st.lists(st.integers(1, len(LEAK) - 1), max_size=6, unique=True).map(sorted))
async def test_nothing_of_the_words_reaches_the_client(cuts: list[int]) -> None:
    """Wherever they are cut."""
    pieces = [LEAK[a:b] for a, b in zip([0, *cuts], [*cuts, len(LEAK)], strict=True)]
    model = ScriptedModel([["Rules: ", *pieces, ". Bye."]])
    agent = Agent(model=model, instructions=TOLD, output_processors=[SystemPromptScrubber()])
    async with agent.stream("Well?") as run:
        seen = "".join([chunk.text async for chunk in run if isinstance(chunk, TextDelta)])
    assert seen.strip() == "Rules:"


async def test_arguments_that_tell_it_keep_the_tool_from_running() -> None:
    """A link or a mail is as good a way out as the answer."""
    ran: list[str] = []

    @tool
    def send(text: str) -> str:
        """Send a text."""
        ran.append(text)
        return "sent"

    model = ScriptedModel([[call("send", {"text": LEAK})], ["Bye."]])
    guards = [SystemPromptScrubber()]
    agent = Agent(model=model, instructions=TOLD, tools=[send], output_processors=guards)
    result = await agent.generate("Well?")
    assert (ran, result.tripwire is not None) == ([], True)


async def test_what_is_allowed_may_be_said_and_other_texts_may_not() -> None:
    """`allow` takes passages out, `texts` puts others in."""
    assert (await said(LEAK, allow=[LEAK])).text == LEAK
    secret = "the skill says to look in drawer nine first"  # noqa: S105 - what is told
    assert (await said(secret, texts=[secret])).tripwire is not None
    assert (await said(secret, texts=(each for each in [secret]))).tripwire is not None
    assert (await said(secret)).text == secret


@pytest.mark.parametrize("reveals", [True, False, "yes"])
async def test_the_check_is_asked_whether_other_words_reveal_it(reveals: Any) -> None:
    """It gets the text and the prompt; what is no answer blocks."""
    seen: list[tuple[str, str]] = []

    async def check(text: str, prompt: str) -> Any:
        seen.append((text, prompt))
        return reveals

    result = await said("A tenth at most.", check=check)
    assert seen == [("A tenth at most.", TOLD)]
    assert (result.text == "") is (reveals is not False)


async def test_a_model_may_be_asked() -> None:
    """It is told the prompt within JSON."""
    asked = ScriptedModel([['{"reveals": true}']])
    result = await said("A tenth at most.", model=asked)
    assert result.tripwire is not None
    assert result.tripwire.reason == "the answer reveals the system prompt"
    assert "ten percent" in repr(asked.requests[0].prompt[-1])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"min_words": 2}, "min_words"),
        ({"texts": "one"}, "texts"),
        ({"allow": [""]}, "allow"),
        ({"covers": ["tool-results"]}, "covers"),
        ({"check": 3}, "check"),
        ({"model_settings": {}}, "model_settings"),
        ({"strategy": "shout"}, "strategy"),
    ],
)
def test_a_bad_option_is_refused_when_built(options: dict[str, Any], named: str) -> None:
    """With the class's name and the option's."""
    with pytest.raises(ConfigurationError, match=f"SystemPromptScrubber.*{named}"):
        SystemPromptScrubber(**options)


def test_it_keeps_the_laws_of_processors() -> None:
    """Whatever the stream, and wherever its text is cut."""
    check_processor(
        lambda: SystemPromptScrubber(min_words=3, texts=["a b a b"], strategy="replace"),
        max_examples=EXAMPLES,
        fails=(TripWire, ProcessorError),
        allowance=30,
    )
