"""What holds of every model, whatever its protocol: the contract, the key, the recordings."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from typing import Any

import pytest

from streampipe import Agent
from streampipe.contracts import ModelRequest
from streampipe.errors import ConfigurationError, ModelError
from streampipe.messages import PromptMessage, TextPart
from streampipe.testing import (
    Answer,
    ModelServer,
    call,
    check_model,
    fail,
    faulty,
    reasoning,
    turn,
)
from streampipe.testing._protocols import PROTOCOLS, ProtocolName
from tests.models.streams import recorded
from tests.models.test_call import REQUEST, collected

CANARY = "sk-canary-0123456789abcdef"
FOLDERS: dict[ProtocolName, str] = {
    "openai-chat": "openai-chat",
    "openai-responses": "openai-responses",
    "anthropic": "anthropic-messages",
    "google": "google-generate-content",
}
each_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)
SAID = turn(reasoning("hm"), "Hel", "lo", call("f", {"a": 1}, pieces=3), call("g", {}))


@each_protocol
async def test_the_contract_of_models(protocol: ProtocolName) -> None:
    """Every law of `check_model`, over a socket; the endpoint that fails breaks in mid-stream."""
    cut = faulty(SAID, "cut", at=b"Hel")
    async with (
        ModelServer([SAID], repeat=True) as server,
        ModelServer([cut], repeat=True) as broken,
    ):
        await check_model(
            lambda: server.model(protocol=protocol),
            failing=lambda: broken.model(protocol=protocol, max_retries=0),
            places=12,
        )


def told(error: BaseException) -> str:
    """All that an exception tells, its causes and what it carries included."""
    text = "".join(traceback.format_exception(error))
    seen: list[BaseException] = []
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is not None and one not in seen:
            seen.append(one)
            text += f"{one!r} {one.args!r} {vars(one)!r}"
            left += [one.__cause__, one.__context__]
    return text


def holds_key(text: str) -> bool:
    """Whether the key is in a text, which is not shown: it is long, and would be all of it."""
    return CANARY in text


ECHO = f'{{"error": {{"message": "Incorrect API key: {CANARY}", "type": "x"}}}}'.encode()
QUOTED = f'data: {{"error": {{"message": "{CANARY}", "type": "x"}}, "type": "error"}}\n\n'.encode()
JSON_TYPE = {"content-type": "application/json"}


@each_protocol
@pytest.mark.parametrize(
    "script",
    [
        pytest.param([Answer(ECHO, 401, JSON_TYPE)], id="refused, quoting the key"),
        pytest.param([Answer(CANARY.encode(), 500)], id="a page that quotes the key"),
        pytest.param([Answer(ECHO, 200, JSON_TYPE)], id="an error as a success"),
        pytest.param([Answer(QUOTED)], id="an error in the stream"),
        pytest.param([b"data: " + CANARY.encode() + b"\n\n"], id="an event that quotes the key"),
        pytest.param([turn("x", fail())], id="a broken connection"),
        pytest.param([faulty(["x"], "end", at=3)], id="a cut event"),
        pytest.param([], id="no script"),
    ],
)
async def test_the_key_is_never_told(
    protocol: ProtocolName,
    script: list[Any],
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Not in an error, its causes, a chunk, a representation, a log or on the terminal."""
    caplog.set_level(logging.DEBUG)
    async with ModelServer(script) as server:
        model = server.model(protocol=protocol, api_key=CANARY, max_retries=0)
        async with Agent(model=model).stream("hi") as run:
            chunks = [chunk async for chunk in run]
            with pytest.raises(ModelError) as caught:
                await run.result()
        assert any(CANARY in value for value in server.requests[0].headers.values())
    assert not holds_key(told(caught.value))
    assert not holds_key(repr([chunk.to_wire() for chunk in chunks]))
    assert not holds_key(f"{model!r} {model._call!r} {vars(model)!r}")
    assert not holds_key(caplog.text)
    assert caplog.records, "the log was looked at"
    assert not holds_key("".join(capsys.readouterr()))


@each_protocol
@pytest.mark.parametrize("key", [f"{CANARY}\n", f" {CANARY}", f"{CANARY}\u2028", f"a\x00{CANARY}"])
def test_a_key_that_no_header_can_carry_is_not_told(protocol: ProtocolName, key: str) -> None:
    """A stray newline, say: the HTTP client would quote the key in its error."""
    with pytest.raises(ConfigurationError, match="newline") as caught:
        PROTOCOLS[protocol].model()("m", api_key=key)
    assert not holds_key(told(caught.value))


@each_protocol
def test_a_missing_key_is_named_before_any_connection(
    protocol: ProtocolName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says which variable to set."""
    kind = PROTOCOLS[protocol].model()
    for variable in (kind.home.key, *kind.home.other_keys):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ConfigurationError, match=f"no API key: set {kind.home.key} "):
        kind("m")


@pytest.mark.parametrize(
    ("protocol", "path"),
    [
        pytest.param(protocol, *param.values, id=f"{protocol} {param.id}", marks=param.marks)
        for protocol, folder in FOLDERS.items()
        for param in recorded(folder)
    ],
)
async def test_a_recording_is_an_answer_of_the_server(protocol: ProtocolName, path: Path) -> None:
    """Over a socket, dripped in pieces of 97 bytes, it comes to what it comes to in one piece."""
    outcomes: list[Any] = []
    async with ModelServer([path, faulty(path, "drip", size=97)]) as server:
        model = server.model(protocol=protocol, max_retries=0)
        for _ in range(2):
            try:
                outcomes.append(await collected(model, REQUEST))
            except ModelError as error:
                outcomes.append((type(error), str(error)))
    assert plain(outcomes[0]) == plain(outcomes[1])


def plain(outcome: Any) -> Any:
    """An outcome without ids that were made up."""
    if not isinstance(outcome, list):
        return outcome
    return [chunk.type for chunk in outcome]


@each_protocol
async def test_a_prompt_that_is_no_json_is_refused(protocol: ProtocolName) -> None:
    """Before anything is sent, naming what to look at."""
    asked = ModelRequest(
        [PromptMessage("user", [TextPart("hi")])],
        provider_options={p: {"x": object()} for p in ("openai", "anthropic", "google")},
    )
    async with ModelServer([SAID]) as server:
        with pytest.raises(ConfigurationError, match="no JSON"):
            await collected(server.model(protocol=protocol), asked)
        assert server.requests == []


REFUSED: dict[ProtocolName, dict[str, Any]] = {
    "openai-responses": {"type": "array", "items": {"type": "string"}},
    "anthropic": {"type": "object", "properties": {"x": {"$ref": "#/nowhere"}}},
    "google": {"type": "object", "not": {"required": ["x"]}},
}
"""Schemas without a form in the protocol; the chat protocol leaves that to its servers."""


@each_protocol
async def test_what_it_cannot_take_is_said_when_the_agent_is_built(protocol: ProtocolName) -> None:
    """A schema without a form in the protocol, or a setting of a wrong value; nothing is sent."""
    wrong: list[dict[str, Any]] = [
        {"provider_options": dict.fromkeys(("openai", "anthropic", "google"), 7)},
        {"tool_choice": "perhaps"},
    ]
    if protocol in REFUSED:
        wrong.append({"structured_output": REFUSED[protocol]})
    async with ModelServer() as server:
        for options in wrong:
            with pytest.raises(ConfigurationError):
                Agent(model=server.model(protocol=protocol), **options)
        assert server.requests == []
