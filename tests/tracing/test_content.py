"""What was said is in no span, unless asked for; a key never is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streampipe import Agent, tool
from streampipe.errors import StreampipeError
from streampipe.messages import FilePart, Message, TextPart
from streampipe.testing import ModelServer, ScriptedModel, call, fail, reasoning
from streampipe.tracing._content import as_json
from tests.tracing.spans import Spans, told

KEY = "sk-canary-4f9a77e1b2c3d4e5f607"
SAID = ("the prompt", "the rules", "an argument", "a result", "a thought", "an answer", "a fault")


async def talk(spans: Spans) -> None:
    """A run in which everything that can be said is said."""

    @tool
    async def look(what: str) -> str:
        """Look."""
        return f"a result for {what}"

    @tool
    async def broken() -> None:
        """Break."""
        msg = "a fault"
        raise RuntimeError(msg)

    model = ScriptedModel(
        [
            [
                call("look", {"what": "an argument"}),
                call("broken"),
                call("look", "no {an argument"),
            ],
            [reasoning("a thought"), "an answer"],
        ]
    )
    agent = Agent(
        model=model, tools=[look, broken], instructions="the rules", tracing=spans.tracing
    )
    prompt = Message("user", [TextPart("the prompt"), FilePart("aGk=", "image/png", "hi.png")])
    await agent.generate([prompt])


@pytest.mark.parametrize("content", [False, True])
async def test_what_was_said_is_told_when_asked_for(content: bool) -> None:  # noqa: FBT001 - a case
    """Prompt, instructions, arguments, results, reasoning, answer and the text of errors."""
    spans = Spans(content=content)
    await talk(spans)
    text = spans.text()
    assert [said for said in SAID if said in text] == (list(SAID) if content else [])
    assert "aGk=" not in text


async def test_content_has_the_form_of_the_conventions() -> None:
    """Messages with role and parts; calls and their responses by id."""
    spans = Spans(content=True)
    await talk(spans)
    first, second = spans.named("chat")
    system, user = json.loads(told(first)["gen_ai.input.messages"])
    assert system == {"role": "system", "parts": [{"type": "text", "content": "the rules"}]}
    assert user["parts"][0] == {"type": "text", "content": "the prompt"}
    assert user["parts"][1] == {"type": "file", "mime_type": "image/png", "filename": "hi.png"}
    [asked] = json.loads(told(first)["gen_ai.output.messages"])
    assert asked["finish_reason"] == "tool-calls"
    assert asked["parts"][0] == {
        "type": "tool_call",
        "id": "call-0-0",
        "name": "look",
        "arguments": {"what": "an argument"},
    }
    given = json.loads(told(second)["gen_ai.input.messages"])[-1]
    assert given["role"] == "tool"
    assert given["parts"][0] == {
        "type": "tool_call_response",
        "id": "call-0-0",
        "response": "a result for an argument",
    }
    [answer] = json.loads(told(second)["gen_ai.output.messages"])
    assert answer["parts"] == [
        {"type": "reasoning", "content": "a thought"},
        {"type": "text", "content": "an answer"},
    ]
    looked = told(spans.named("execute_tool look")[0])
    assert json.loads(looked["gen_ai.tool.call.arguments"]) == {"what": "an argument"}
    assert json.loads(looked["gen_ai.tool.call.result"]) == "a result for an argument"


@pytest.mark.parametrize("content", [False, True])
async def test_no_key_is_in_a_span(content: bool) -> None:  # noqa: FBT001 - a case
    """Not when all goes well, and not when the provider quotes it in what it refuses."""
    spans = Spans(content=content)
    refusal: Any = fail(status=401, body={"error": {"message": f"wrong key {KEY}"}})
    async with ModelServer([["hello"], refusal]) as server:
        agent = Agent(model=server.model(api_key=KEY), tracing=spans.tracing)
        await agent.generate("hi")
        with pytest.raises(StreampipeError):
            await agent.generate("hi")
        assert KEY in str(server.requests[0].headers), "or nothing is shown here"
    assert len(spans.named("chat")) == 2
    assert KEY not in spans.text()
    assert ("wrong key" in spans.text()) is content


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({1: {2}}, {"1": "{2}"}),
        ("half a pair: \ud83d", r"'half a pair: \ud83d'"),
        (1 << 70, str(1 << 70)),
    ],
)
def test_what_json_has_no_word_for_is_told_as_it_prints(value: Any, expected: Any) -> None:
    """Whatever a tool or a hook came up with, telling it breaks no run."""
    assert json.loads(as_json(value)) == expected


async def test_an_answer_that_is_no_text_can_be_told() -> None:
    """Half a surrogate pair goes to the client as it came, and does not stop the run."""
    spans = Spans(content=True)
    agent = Agent(model=ScriptedModel(["hi \ud83d"]), tracing=spans.tracing)
    assert (await agent.generate("hi \ud83d")).text == "hi \ud83d"
    assert "ud83d" in told(spans.one("chat"))["gen_ai.output.messages"]
