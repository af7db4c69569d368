"""The processors of flow and recovery beside each other."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from streampipe import Agent, Message
from streampipe.errors import ContextLengthError
from streampipe.processors import (
    BatchParts,
    ContextLengthRecovery,
    ModelRouter,
    PrefillErrorHandler,
    PrepareStep,
    ProviderHistoryCompat,
    SmoothStream,
    StreamErrorRetry,
    ToolCallFilter,
    ToolSearch,
)
from streampipe.testing import ModelServer, ScriptedModel, call, fail, run_virtual, turn
from streampipe.testing._protocols import PROTOCOLS, ProtocolName
from streampipe.tools import tool
from tests.processors.conversations import answered, sent, used


@tool
def get_weather(city: str) -> str:
    """Tell how the weather is."""
    return f"sunny in {city}"


MODEL = ScriptedModel(["ok"], repeat=True)
MAKERS: list[tuple[type[Any], tuple[Any, ...]]] = [
    (BatchParts, (2,)),
    (ContextLengthRecovery, ()),
    (ModelRouter, ([(0, MODEL)],)),
    (PrefillErrorHandler, ()),
    (PrepareStep, (lambda args: None,)),
    (ProviderHistoryCompat, ()),
    (SmoothStream, (1,)),
    (StreamErrorRetry, ()),
    (ToolCallFilter, ()),
    (ToolSearch, ([get_weather],)),
]


@pytest.mark.parametrize(("kind", "options"), MAKERS)
def test_an_id_is_the_name_of_the_class_or_the_user_s_own(kind: type[Any], options: Any) -> None:
    """Words with hyphens between."""
    kebab = re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()
    assert kind(*options).id == kebab
    assert kind(*options, id="mine").id == "mine"


def test_each_recovers_from_what_it_is_for() -> None:
    """One failure after the other, in one run; every later prompt keeps what was mended."""
    model = ScriptedModel(
        [
            [fail(ContextLengthError("too long"))],
            [fail(status=400, body="roles must alternate")],
            [fail(status=400, body="the conversation must end with a user message")],
            turn("Half", incomplete=True),
            ["whole"],
        ]
    )
    agent = Agent(
        model=model,
        error_processors=[
            ProviderHistoryCompat(),
            ContextLengthRecovery(),
            PrefillErrorHandler(),
            StreamErrorRetry(),
        ],
    )
    prompt = [
        Message.user("old"),
        answered("yes"),
        Message.user("one"),
        Message.user("two"),
        answered("Once "),
    ]
    result = run_virtual(agent.generate(prompt))
    assert (result.text, result.retries) == ("whole", 4)
    assert sent(model.requests[0])[0] == "user: old"
    assert sent(model.requests[1]) == ["user: one", "user: two", "assistant: Once"]
    assert sent(model.requests[2]) == ["user: one\n\ntwo", "assistant: Once"]
    go_on = "user: Continue exactly where you stopped."
    assert sent(model.requests[3]) == ["user: one\n\ntwo", "assistant: Once", go_on]
    assert sent(model.requests[4]) == sent(model.requests[3])


def test_one_run_takes_them_all() -> None:
    """Input, output and error processors, in a run that searches, fails and is smoothed."""
    script: list[Any] = [
        [call("search_tools", {"query": "weather"})],
        turn("Half", incomplete=True),
        ["I look. ", call("get_weather", {"city": "Porto"}, id="now")],
        ["It ", "is sun", "ny."],
    ]
    model = ScriptedModel(script)
    agent = Agent(
        model=MODEL,
        input_processors=[
            ModelRouter([(lambda args: True, model)]),
            ToolSearch([get_weather]),
            ToolCallFilter(),
            PrepareStep(lambda args: {"model_settings": {"seed": args.step_number}}),
        ],
        output_processors=[BatchParts(2, max_wait=1), SmoothStream(0.1)],
        error_processors=[StreamErrorRetry(), ProviderHistoryCompat()],
    )
    history = [Message.user("one"), answered(used("a", "a1")), Message.user("two")]

    async def main() -> tuple[list[str], Any]:
        async with agent.stream(history) as run:
            texts = [text async for text in run.text_stream]
            return texts, await run.result()

    texts, result = run_virtual(main())
    assert result.text == "I look. It is sunny."
    assert texts[-3:] == ["It ", "is ", "sunny."]
    assert [request.settings["seed"] for request in model.requests] == [0, 1, 1, 2]
    assert sent(model.requests[3])[:2] == ["user: one", "user: two"]
    assert sent(model.requests[3])[-1] == "tool: result now"


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_it_works_over_http(protocol: ProtocolName) -> None:
    """A connection that breaks in mid-stream, and a refusal, as a real client tells of them."""
    refusal = fail(status=400, body={"error": {"message": "roles must alternate"}})
    async with ModelServer([["half an", fail()], ["whole"], [refusal], ["joined"]]) as server:
        agent = Agent(
            model=server.model(protocol=protocol),
            error_processors=[StreamErrorRetry(delay=0), ProviderHistoryCompat()],
        )
        async with agent.stream("hi") as run:
            assert ("".join([text async for text in run.text_stream]))[-5:] == "whole"
            broken = await run.result()
        refused = await agent.generate(["one", "two"])
    assert (broken.text, broken.retries) == ("whole", 1)
    assert (refused.text, refused.retries) == ("joined", 1)
    assert r"one\n\ntwo" in json.dumps(server.requests[-1].body)
