"""What goes back to a provider, in every protocol: ids that fit, reasoning as it was signed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.contracts import ModelRequest, OutputSchema
from streampipe.messages import (
    FilePart,
    Part,
    PromptMessage,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from streampipe.models import anthropic, google, openai_chat, openai_responses
from streampipe.models._protocol.encoding import digest_of, sendable

Protocol = Literal["chat", "responses", "anthropic", "google"]
ENCODE: dict[Protocol, Callable[..., dict[str, Any]]] = {
    "chat": openai_chat.encode_request,
    "responses": openai_responses.encode_request,
    "anthropic": anthropic.encode_request,
    "google": google.encode_request,
}
SIGNED: dict[Protocol, tuple[str, dict[str, Any]]] = {
    "responses": ("openai", {"item_id": "rs_1"}),
    "anthropic": ("anthropic", {"signature": "S1G"}),
    "google": ("google", {"thoughtSignature": "S1G"}),
}
"""Protocols that sign reasoning: under whose name, and what their decoders note."""
SOUND = {"type": "file", "data": "aGk=", "mime_type": "audio/wav"}
IMAGE = {"type": "image", "data": "aGk=", "mime_type": "image/png"}


def said(*parts: Part) -> PromptMessage:
    """A message of the model."""
    return PromptMessage("assistant", list(parts))


def called(call_id: str, result: Any = "ok") -> list[PromptMessage]:
    """A call and its result."""
    return [
        said(ToolCallPart(call_id, "f", {})),
        PromptMessage("tool", [ToolResultPart(call_id, "f", result)]),
    ]


def encoded(protocol: Protocol, *prompt: PromptMessage, **options: Any) -> tuple[str, list[str]]:
    """A request's body as text, and what was left out."""
    told: list[str] = []
    request = ModelRequest([PromptMessage("user", [TextPart("q")]), *prompt])
    return json.dumps(ENCODE[protocol](request, "gpt-5", warnings=told, **options)), told


# --- ids of calls --------------------------------------------------------------------------

FORMS = [".{1,40}", "[a-zA-Z0-9_-]+", "[A-Za-z0-9]{9}"]
IDS = st.sampled_from(["", "a", "functions.f:0", "x" * 80, "123456789", "call_0", "\n"])


@pytest.mark.parametrize("allowed", FORMS)
@given(call_ids=st.lists(IDS, max_size=6), one_step=st.booleans())
def test_ids_fit_and_calls_keep_their_results(
    allowed: str, call_ids: list[str], *, one_step: bool
) -> None:
    """Whatever ids calls have: each one's own, its result's too, the same with every request."""
    calls: list[Part] = [ToolCallPart(i, "f", {"n": n}) for n, i in enumerate(call_ids)]
    results: list[Part] = [ToolResultPart(i, "f", n) for n, i in enumerate(call_ids)]
    if one_step:
        prompt = [said(*calls), PromptMessage("tool", results)]
    else:
        pairs = zip(calls, results, strict=True)
        prompt = [m for one, its in pairs for m in (said(one), PromptMessage("tool", [its]))]
    made = [part for message in sendable(prompt, allowed) for part in message.content]
    fitted = {p.args["n"]: p.tool_call_id for p in made if isinstance(p, ToolCallPart)}
    assert {p.result: p.tool_call_id for p in made if isinstance(p, ToolResultPart)} == fitted
    assert len(set(fitted.values())) == len(call_ids)
    assert all(re.fullmatch(allowed, i) for i in fitted.values())
    for n, i in enumerate(call_ids):
        assert fitted[n] == i or not re.fullmatch(allowed, i) or i in call_ids[:n]
    half = sendable(prompt[:2], allowed)
    assert half == sendable(prompt, allowed)[:2]


@pytest.mark.parametrize(
    ("protocol", "options", "call_id", "form"),
    [
        ("anthropic", {}, "functions.f:0", '"(?:tool_use_)?id": "([a-zA-Z0-9_-]+)"'),
        ("chat", {}, "x" * 41, '"(?:tool_call_)?id": "(.{1,40}?)"'),
        ("chat", {"provider": "mistral"}, "call_1", '"(?:tool_call_)?id": "([a-zA-Z0-9]{9})"'),
        ("responses", {}, "x" * 65, '"call_id": "(.{1,64}?)"'),
    ],
)
def test_a_foreign_id_is_made_to_fit(
    protocol: Protocol, options: dict[str, Any], call_id: str, form: str
) -> None:
    """The provider would refuse it; call and result get the same one in its place."""
    body, told = encoded(protocol, *called(call_id), **options)
    first, second = re.findall(form, body)
    assert first == second
    assert call_id not in body
    assert told == []


def test_a_result_without_a_call_has_a_fitting_id() -> None:
    """It is the server's to say what is wrong with it, and not its id."""
    (made,) = sendable(called("a b")[1:], FORMS[1])
    (part,) = made.content
    assert isinstance(part, ToolResultPart)
    assert re.fullmatch(FORMS[1], part.tool_call_id)


# --- reasoning -----------------------------------------------------------------------------


def thought(protocol: Protocol, text: str = "my secret plan") -> ReasoningPart:
    """Reasoning as a protocol's decoder noted it."""
    provider, noted = SIGNED[protocol]
    metadata = {provider: {**noted, "digest": digest_of(text)}}
    return ReasoningPart(text, signature="S1G", provider_metadata=metadata)


@pytest.mark.parametrize("protocol", SIGNED)
def test_reasoning_that_was_changed_stays_here(protocol: Protocol) -> None:
    """Its signature holds for another text; as it was, it goes back, without our digest."""
    part = thought(protocol)
    body, told = encoded(protocol, said(part, TextPart("so")))
    assert "S1G" in body
    assert "my secret plan" in body
    assert "digest" not in body
    assert told == []
    body, told = encoded(protocol, said(replace(part, text="my [x] plan"), TextPart("so")))
    assert "S1G" not in body
    assert "plan" not in body
    assert len(told) == 1
    assert "reasoning was left out" in told[0]


@pytest.mark.parametrize("protocol", SIGNED)
def test_reasoning_without_a_digest_goes_back(protocol: Protocol) -> None:
    """A conversation that was stored before has none."""
    part = thought(protocol)
    assert part.provider_metadata is not None
    for noted in part.provider_metadata.values():
        del noted["digest"]
    body, told = encoded(protocol, said(part, TextPart("so")))
    assert "S1G" in body
    assert told == []


@pytest.mark.parametrize(("text", "count"), [("my secret plan", 0), ("my [x] plan", 1)])
def test_items_of_reasoning_that_was_changed_stay_here(text: str, count: int) -> None:
    """In the chat protocol they hold the text once more, as it came."""
    details = [{"type": "reasoning.text", "text": "my secret plan", "signature": "S1G"}]
    noted = {"reasoning_details": details, "digest": digest_of("my secret plan")}
    part = ReasoningPart(text, provider_metadata={"openrouter": noted})
    call = ToolCallPart("c1", "f", {})
    body, told = encoded("chat", said(part, call), provider="openrouter")
    assert ("secret" in body, "S1G" in body, len(told)) == (not count, not count, count)
    assert "digest" not in body


@pytest.mark.parametrize("changed", [0, 1])
def test_several_summaries_are_one_reasoning(changed: int) -> None:
    """Where one was changed, the whole item stays here, and what follows is sent."""
    parts = [thought("responses", "one"), thought("responses", "two")]
    parts[changed] = replace(parts[changed], text="[x]")
    body, told = encoded("responses", said(*parts, TextPart("so")))
    assert '"reasoning"' not in body
    assert '"so"' in body
    assert len(told) == 1


# --- names of schemas ----------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["chat", "responses"])
def test_a_schema_without_a_title_has_a_name(protocol: Protocol) -> None:
    """The protocol takes no empty one."""
    output = OutputSchema("", {"type": "object", "properties": {}})
    request = ModelRequest([PromptMessage("user", [TextPart("q")])], structured_output=output)
    assert '"name": "answer"' in json.dumps(ENCODE[protocol](request, "gpt-5"))


# --- what is lost is told ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "result", "is_told"),
    [
        ("chat", [{"type": "text", "text": "see"}, IMAGE], True),
        ("chat", [{"type": "text", "text": "see"}], False),
        ("chat", [{"type": ["file"]}, 1, None], False),
        ("chat", {"type": "image"}, False),
        ("responses", [SOUND], True),
        ("responses", [IMAGE], False),
        ("anthropic", [SOUND], True),
        ("anthropic", [IMAGE], False),
        ("google", [SOUND], False),
    ],
)
def test_a_file_in_a_result(protocol: Protocol, result: Any, *, is_told: bool) -> None:
    """Where it only goes as text, the warning names the tool."""
    _, told = encoded(protocol, *called("c1", result))
    assert told == [
        "a file in the result of 'f' went as JSON text: no place for it here",
    ] * int(is_told)


def test_a_file_in_a_system_message() -> None:
    """The chat protocol has text there only."""
    file = FilePart("aGk=", "image/png")
    body, told = encoded("chat", PromptMessage("system", [TextPart("s"), file]))
    assert '"role": "system", "content": "s"' in body
    assert told == ["a 'file' part of a system message was left out: no part of the protocol"]


@pytest.mark.parametrize("role", ["user", "system"])
@pytest.mark.parametrize(("text", "count"), [(" \n", 1), ("", 0), (" a", 0)])
def test_white_space_alone(role: Any, text: str, count: int) -> None:
    """Anthropic refuses it: what is left out is told."""
    _, told = encoded("anthropic", PromptMessage(role, [TextPart(text)]))
    assert len(told) == count


@pytest.mark.parametrize("protocol", ENCODE)
@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
def test_half_a_character_in_a_text(protocol: Protocol, role: Role) -> None:
    """Whoever said it: it is replaced, and two halves are joined; the rest arrives."""
    text = "a\ud83db\ud83d\ude00c"
    said_by = called("c1", text) if role == "tool" else [PromptMessage(role, [TextPart(text)])]
    body, told = encoded(protocol, *said_by)
    assert json.dumps("a\ufffdb\U0001f600c") in body
    assert told == []


@pytest.mark.parametrize("protocol", ENCODE)
def test_half_a_character_in_a_result(protocol: Protocol) -> None:
    """It is replaced, in texts and in names; the rest arrives."""
    body, told = encoded(protocol, *called("c1", {"a\ud83d": ["b\ude00c"]}))
    assert "ufffdc" in body
    assert "ud83d" not in body
    assert "ude00" not in body
    assert told == []
