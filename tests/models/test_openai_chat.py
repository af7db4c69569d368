"""`OpenAIChatModel`: how it is built, what it never tells, and what OpenAI's own client sees."""

from __future__ import annotations

from typing import Any

import openai
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streampipe.agent import Agent
from streampipe.chunks import FinishChunk
from streampipe.contracts import Model, ModelRequest
from streampipe.errors import ConfigurationError, ModelError
from streampipe.messages import PromptMessage, TextPart
from streampipe.models import OpenAIChatModel
from streampipe.testing import ModelServer, Piece, call, fail, reasoning
from streampipe.tools import tool
from tests.models.streams import answer, event, sse
from tests.models.test_call import REQUEST, Network, Response, collected

CANARY = "sk-canary-0123456789"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see no keys of the machine."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_it_is_a_model() -> None:
    """It has what the contract asks for."""
    model: Model = OpenAIChatModel("m", api_key="k")
    assert isinstance(model, Model)
    assert (model.provider, model.model_id) == ("openai", "m")


def test_a_missing_key_is_told_when_the_model_is_built() -> None:
    """Not with the first call; the variable is named."""
    with pytest.raises(ConfigurationError, match="openai: no API key: set OPENAI_API_KEY"):
        OpenAIChatModel("m")
    with pytest.raises(ConfigurationError, match="acme: no API key: set ACME_KEY"):
        OpenAIChatModel(
            "m", base_url="http://127.0.0.1/v1", provider="acme", api_key_env="ACME_KEY"
        )


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        pytest.param({}, None, id="OpenAI's key does not go to another address"),
        pytest.param({"api_key": "given"}, "Bearer given", id="a key that is given"),
        pytest.param({"api_key_env": "ACME_KEY"}, "Bearer acme", id="a variable that is named"),
        pytest.param({"api_key_env": None}, None, id="no key"),
        pytest.param({"headers": {"Authorization": "Basic x"}}, "Basic x", id="a header"),
    ],
)
async def test_which_key_is_sent(
    options: dict[str, Any], sent: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each server gets the key that is meant for it."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("ACME_KEY", "acme")
    async with ModelServer([["hi"]]) as server:
        await collected(OpenAIChatModel("m", base_url=server.base_url, **options))
        assert server.requests[0].headers.get("authorization") == sent


async def test_openai_gets_the_key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """At its own address."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    network = Network(Response(sse(event({"content": "x"}, "stop"))))
    await collected(OpenAIChatModel("m", transport=network))
    assert network.asked[0]["headers"]["authorization"] == f"Bearer {CANARY}"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"model_id": ""}, "model_id is empty"),
        ({"base_url": "localhost:8000"}, "base_url must be an address"),
        ({"base_url": "ftp://127.0.0.1"}, "base_url must be an address"),
        ({"base_url": "http://[/v1"}, "base_url must be an address"),
        ({"base_url": "http://127.0.0.1:port"}, "base_url must be an address"),
        ({"base_url": "http://"}, "base_url must be an address"),
        ({"base_url": "http://127.0.0.1/v1?version=1"}, r"without '\?' or '#'"),
        ({"base_url": "http://127.0.0.1/v1?"}, r"without '\?' or '#'"),
        ({"base_url": "http://127.0.0.1/v1#top"}, r"without '\?' or '#'"),
        ({"max_retries": -1}, "max_retries must be 0 or more"),
        ({"timeout": 0}, "timeout must be a positive number"),
        ({"headers": {"x y": "z"}}, "header name 'x y'"),
        ({"headers": {"x": "a\r\nb: c"}}, "header 'x'"),
        ({"headers": {"x": "ä"}}, "header 'x'"),
        ({"http_client": object(), "transport": object()}, "give one of http_client, transport"),
    ],
)
def test_what_is_wrong_is_told_when_the_model_is_built(options: dict[str, Any], told: str) -> None:
    """Each message names the argument and what it should be."""
    with pytest.raises(ConfigurationError, match=told):
        OpenAIChatModel(**{"model_id": "m", "api_key": "k", **options})


def test_a_password_in_an_address_is_not_shown() -> None:
    """Nor is what looks like one, in an address that is wrong."""
    with pytest.raises(ConfigurationError) as caught:
        OpenAIChatModel("m", base_url=f"ftp://user:{CANARY}@127.0.0.1")
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("base_url", "provider", "name"),
    [
        ("https://api.openai.com/v1", "openai", "max_completion_tokens"),
        ("https://eu.api.openai.com/v1", "openai", "max_completion_tokens"),
        ("https://x.openai.azure.com/openai/v1/", "openai", "max_completion_tokens"),
        ("http://localhost:8000/v1", "openai", "max_tokens"),
        ("https://notopenai.com/v1", "openai", "max_tokens"),
        ("https://api.groq.com/openai/v1", "groq", "max_tokens"),
    ],
)
async def test_who_is_asked_decides_what_a_limit_is_called(
    base_url: str, provider: str, name: str
) -> None:
    """A local server under the default provider's name still gets the name that it knows."""
    network = Network(Response(sse(event({"content": "x"}, "stop"))))
    model = OpenAIChatModel(
        "m", base_url=base_url, provider=provider, api_key="k", transport=network
    )
    await collected(model, ModelRequest(REQUEST.prompt, settings={"max_output_tokens": 5}))
    assert f'"{name}":5'.encode() in network.asked[0]["content"]
    assert network.asked[0]["url"] == base_url.rstrip("/") + "/chat/completions"


# --- OpenAI's own client as a judge --------------------------------------------------------

ARGUMENTS = st.dictionaries(st.text(), st.integers(-(2**63), 2**63 - 1) | st.text())
PIECES = st.one_of(
    st.text(min_size=1),
    st.builds(call, st.sampled_from(["f", "g"]), ARGUMENTS, pieces=st.integers(1, 4)),
)
TURNS = st.lists(PIECES, min_size=1, max_size=6)


@given(st.lists(TURNS, min_size=8, max_size=8))
@settings(max_examples=5)  # a client takes longer to make than all turns to play
async def test_openais_client_reads_the_same(turns: list[Any]) -> None:
    """What our model makes of a stream is what OpenAI's SDK makes of it."""
    async with (
        ModelServer(turns, repeat=True) as server,
        openai.AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=0) as client,
    ):
        ours = [answer(await collected(server.model())) for _ in turns]
        for made in ours:
            async with client.chat.completions.stream(
                model="scripted", messages=[{"role": "user", "content": "hi"}]
            ) as stream:
                judged = (await stream.get_final_completion()).choices[0]
            assert made.text == (judged.message.content or "")
            assert made.finish_reason == judged.finish_reason
            assert made.tool_calls == [
                {
                    "id": found.id,
                    "name": found.function.name,
                    "arguments": orjson.loads(found.function.arguments),
                }
                for found in judged.message.tool_calls or []
            ]


async def test_openais_client_reads_a_whole_completion() -> None:
    """A request that asks for no stream gets one JSON object."""
    script: list[list[Piece]] = [[reasoning("hm"), "It is ", "blue.", call("f", {"a": 1})]]
    async with (
        ModelServer(script) as server,
        openai.AsyncOpenAI(base_url=server.base_url, api_key="k") as client,
    ):
        made = await client.chat.completions.create(
            model="scripted", messages=[{"role": "user", "content": "hi"}]
        )
    (choice,) = made.choices
    assert choice.message.content == "It is blue."
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls
    assert made.usage


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
async def test_openais_client_sees_the_same_failures(status: int) -> None:
    """Status and message are read alike."""
    script = [fail(status=status, body={"error": {"message": "told"}})] * 2
    async with (
        ModelServer(script) as server,
        openai.AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=0) as client,
    ):
        with pytest.raises(ModelError, match=f"HTTP {status}: told"):
            await collected(server.model(max_retries=0))
        with pytest.raises(openai.APIStatusError, match="told") as caught:
            await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "hi"}]
            )
        assert caught.value.status_code == status


# --- as a part of an agent -----------------------------------------------------------------


@tool
def look(number: int) -> str:
    """Look up the colour of a number.

    Args:
        number: which one.
    """
    return f"{number} is blue"


async def test_an_agent_over_sockets() -> None:
    """A tool loop over HTTP: the second request carries the call and its result."""
    async with ModelServer([[call("look", {"number": 7})], ["It is ", "blue."]]) as server:
        agent = Agent(id="a", model=server.model(), tools=[look])
        result = await agent.generate("What colour is 7?")
        server.assert_complete()
    assert result.text == "It is blue."
    sent = server.requests[1].body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]
    assert sent[2]["content"] == "7 is blue"


async def test_warnings_reach_the_result() -> None:
    """What the protocol cannot carry is said in `result.warnings`."""
    async with ModelServer([["hi"]]) as server:
        agent = Agent(id="a", model=server.model(), model_settings={"top_k": 3})
        result = await agent.generate("x")
    assert len(result.warnings) == 1
    assert "top_k" in result.warnings[0]


async def test_a_system_message_comes_first() -> None:
    """A prompt is sent in its order."""
    prompt = [PromptMessage.system("Be brief."), PromptMessage("user", [TextPart("hi")])]
    async with ModelServer([["ok"]]) as server:
        chunks = await collected(server.model(), ModelRequest(prompt))
        assert [m["role"] for m in server.requests[0].body["messages"]] == ["system", "user"]
    assert isinstance(chunks[-1], FinishChunk)
    assert chunks[-1].usage is not None
