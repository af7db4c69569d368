"""What the model made goes back to it, in Google's protocol: signatures, and what ran there."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streampipe.messages import (
    FilePart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from tests.models.test_google_request import (
    CODE,
    RAN,
    SIGNED,
    assistant,
    body_of,
    given_back,
    parts_of,
    user,
)


def test_signatures_go_back_to_who_made_them() -> None:
    """On text, thoughts, calls and files, and to no other provider."""
    said = assistant(
        ReasoningPart("hm", "c2ln", provider_metadata=SIGNED),
        TextPart("x", SIGNED),
        ToolCallPart("1", "look", {}, provider_metadata=SIGNED),
        FilePart("aGk=", "image/png", provider_metadata=SIGNED),
    )
    parts = parts_of(said)
    assert parts[0] == {"text": "hm", "thought": True, "thoughtSignature": "c2ln"}
    assert [part["thoughtSignature"] for part in parts] == ["c2ln"] * 4
    assert not any("thoughtSignature" in part for part in parts_of(said, provider="vertex"))
    assert len(parts_of(said, provider="vertex")) == 3, "nobody else's thoughts are shown to it"


def test_thoughts_without_a_signature_stay_here() -> None:
    """The model has no use for them; that is no loss to warn of."""
    warnings: list[str] = []
    assert parts_of(assistant(ReasoningPart("hm"), "x"), warnings=warnings) == [{"text": "x"}]
    assert warnings == []


def test_a_signature_without_words_goes_back_as_it_came() -> None:
    """One that stood on an empty text is no thought."""
    noted = {"google": {"thoughtSignature": "c2ln", "thought": False}}
    parts = parts_of(assistant(ReasoningPart("", "c2ln", provider_metadata=noted)))
    assert parts == [{"text": "", "thoughtSignature": "c2ln"}]


@pytest.mark.parametrize(
    ("model_id", "is_marked"),
    [("gemini-2.5-flash", False), ("gemini-3-pro", True), ("models/gemini-flash", True)],
)
def test_a_call_that_another_model_made_is_marked(model_id: str, *, is_marked: bool) -> None:
    """Since Gemini 3 the first call of a step has to be signed; others are marked."""
    foreign = assistant("x", ToolCallPart("1", "look", {}), ToolCallPart("2", "look", {}))
    own = assistant(ToolCallPart("3", "look", {}, provider_metadata=SIGNED))
    contents = body_of(foreign, user("y"), own, model_id=model_id)["contents"]
    marks = [part.get("thoughtSignature") for c in contents for part in c["parts"]]
    mark = "skip_thought_signature_validator" if is_marked else None
    assert marks == [None, mark, None, None, "c2ln"]


SEARCH = {"id": "1", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}
FOUND = {"id": "1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"n": 1}}


@pytest.mark.parametrize(
    ("kind", "call", "result_kind", "result"),
    [
        ("executableCode", CODE, "codeExecutionResult", RAN),
        ("toolCall", SEARCH, "toolResponse", FOUND),
    ],
)
def test_what_ran_at_the_provider_goes_back(
    kind: str, call: dict[str, Any], result_kind: str, result: dict[str, Any]
) -> None:
    """Call and result stand in the model's content, one behind the other, signed as they were."""
    noted = {"google": {kind: call, "thoughtSignature": "c2ln"}}
    made = ToolCallPart("1", "x", {}, provider_executed=True, provider_metadata=noted)
    prompt = (
        assistant(made, ToolCallPart("2", "look", {})),
        given_back(
            ToolResultPart("2", "look", "y"),
            ToolResultPart("1", "x", {**result, "thoughtSignature": "dGhpcw=="}),
        ),
    )
    said, given = body_of(*prompt)["contents"]
    assert said["parts"][:2] == [
        {kind: call, "thoughtSignature": "c2ln"},
        {result_kind: result, "thoughtSignature": "dGhpcw=="},
    ]
    assert [list(part) for part in said["parts"][2:] + given["parts"]] == [
        ["functionCall"],
        ["functionResponse"],
    ]
    replaced = body_of(assistant(made), given_back(ToolResultPart("1", "x", "other")))
    told = replaced["contents"][0]["parts"][1][result_kind]
    assert "other" in orjson.dumps(told).decode()
    assert told.get("id") == call.get("id")


def test_what_ran_at_another_provider_is_left_out_and_told() -> None:
    """Google cannot be shown it."""
    warnings: list[str] = []
    noted = {"openai": {"id": "1"}}
    made = ToolCallPart("1", "web", {}, provider_executed=True, provider_metadata=noted)
    parts = parts_of(
        assistant("x", made), given_back(ToolResultPart("1", "web", "y")), warnings=warnings
    )
    assert parts == [{"text": "x"}]
    assert len(warnings) == 1
    assert "'web'" in warnings[0]
