"""`PrefillErrorHandler`: a refused prefill is asked for in another way, once."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from hypothesis import settings

from streampipe import Agent, Message, tool
from streampipe.errors import ConfigurationError, ModelError, ProviderError
from streampipe.processors import PrefillErrorHandler
from streampipe.testing import ScriptedModel, call, check_processor, fail
from tests.processors.conversations import sent

EXAMPLES = max(1_000, 10 * settings().max_examples)
PREFILLED = [Message.user("Tell a story."), Message.assistant("Once upon")]
GO_ON = "user: Continue exactly where you stopped."
REFUSAL = fail(status=400, body="The conversation must end with a user message.")


@tool
def look_up(q: str) -> str:
    """Look something up."""
    return q


def agent_of(model: ScriptedModel, processor: Any, **options: Any) -> Agent:
    """An agent with an error processor."""
    return Agent(model=model, error_processors=[processor], tools=[look_up], **options)


@pytest.mark.parametrize(
    "said",
    [
        "This model does not support assistant message prefill.",
        "The conversation must end with a user message.",
        "Expected last role User or Tool (or Assistant with prefix True) but got assistant",
        "Please ensure that multiturn requests end with a user role or a function response.",
        "Requests ending with a model turn are not supported.",
        "The last message must not be from the assistant",
    ],
)
async def test_a_refusal_is_known_by_its_words(said: str) -> None:
    """Each provider has its own."""
    model = ScriptedModel([[fail(status=400, body=said)], [" a time."]])
    result = await agent_of(model, PrefillErrorHandler()).generate(PREFILLED)
    assert (result.text, result.retries) == (" a time.", 1)
    assert sent(model.requests[0])[-1] == "assistant: Once upon"
    assert sent(model.requests[1])[-2:] == ["assistant: Once upon", GO_ON]


async def test_the_message_is_of_the_prompt_alone() -> None:
    """Nobody who stores the conversation, or sends it again, has it twice, or at all."""
    seen: list[str] = []

    class Last:
        id = "last"

        def process_output_result(self, args: Any) -> None:
            """Look at the whole conversation."""
            seen.extend(message.role for message in args.message_list.all)

    model = ScriptedModel([[REFUSAL], [" a time."]])
    agent = agent_of(model, PrefillErrorHandler(), output_processors=[Last()])
    await agent.generate(PREFILLED)
    assert seen == ["user", "assistant", "assistant"]


async def test_the_client_is_told_of_the_retry() -> None:
    """As of every other: a step that is void, then the same again."""
    model = ScriptedModel([[REFUSAL], [" a time."]])
    async with agent_of(model, PrefillErrorHandler()).stream(PREFILLED) as run:
        chunks = [chunk async for chunk in run]
    assert [getattr(c, "reason", None) for c in chunks if c.type == "step-finish"] == [
        "retry",
        "stop",
    ]


async def test_it_asks_again_once() -> None:
    """A provider that refuses that too has another reason."""
    model = ScriptedModel([[REFUSAL], [REFUSAL], ["never"]])
    with pytest.raises(ProviderError, match="must end with a user message"):
        await agent_of(model, PrefillErrorHandler()).generate(PREFILLED)
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    ("prompt", "failure"),
    [
        (PREFILLED, fail(status=400, body="temperature is too high")),
        (PREFILLED, fail(status=500, body="prefill")),
        (PREFILLED, fail(ModelError("prefill"))),
        ("hi", REFUSAL),
    ],
)
async def test_another_failure_stands(prompt: Any, failure: Any) -> None:
    """Another reason, another status, no provider, or no prefill."""
    model = ScriptedModel([[failure], ["never"]])
    with pytest.raises(ModelError):
        await agent_of(model, PrefillErrorHandler()).generate(prompt)
    assert len(model.requests) == 1


async def test_a_later_step_is_as_it_is() -> None:
    """A prompt that ends with a tool's result needs no other end."""
    model = ScriptedModel([[REFUSAL], [call("look_up", {"q": "x"}, id="1")], ["done"]])
    result = await agent_of(model, PrefillErrorHandler()).generate(PREFILLED)
    assert result.text == "done"
    assert sent(model.requests[2])[-2:] == ["assistant: call 1", "tool: result 1"]


async def test_one_instance_serves_two_runs_at_a_time() -> None:
    """A refusal of the one changes nothing of the other."""
    shared = PrefillErrorHandler()
    refused, fine = ScriptedModel([[REFUSAL], ["a"]]), ScriptedModel(["b"])
    await asyncio.gather(
        agent_of(refused, shared).generate(PREFILLED), agent_of(fine, shared).generate(PREFILLED)
    )
    assert sent(refused.requests[1])[-1] == GO_ON
    assert sent(fine.requests[0])[-1] == "assistant: Once upon"


async def test_in_both_lists_it_is_one() -> None:
    """As an input processor too it says it once."""
    shared = PrefillErrorHandler()
    model = ScriptedModel([[REFUSAL], ["a"]])
    await agent_of(model, shared, input_processors=[shared]).generate(PREFILLED)
    assert sent(model.requests[1]).count(GO_ON) == 1


async def test_words_can_be_the_user_s_own() -> None:
    """Both what is said and what is looked for."""
    handler = PrefillErrorHandler(message="Weiter.", pattern=re.compile("nein"), id="weiter")
    model = ScriptedModel([[fail(status=422, body="nein")], ["a"]])
    await agent_of(model, handler).generate(PREFILLED)
    assert sent(model.requests[1])[-1] == "user: Weiter."


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"message": "  "}, "message must be a text that is not empty, not '  '"),
        ({"message": 1}, "message must be a text that is not empty, not 1"),
        ({"pattern": "prefill"}, "pattern must be a compiled pattern of text, not 'prefill'"),
        ({"pattern": re.compile(b"x")}, "pattern must be a compiled pattern of text"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], said: str) -> None:
    """When it is made, by the class's name."""
    with pytest.raises(ConfigurationError, match=f"^PrefillErrorHandler: {said}"):
        PrefillErrorHandler(**options)


def test_it_keeps_the_laws_of_processors() -> None:
    """In generated runs, whatever the model says."""
    check_processor(PrefillErrorHandler, max_examples=EXAMPLES)
