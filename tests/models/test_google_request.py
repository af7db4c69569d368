"""Requests in Google's protocol: every kind of part, setting and option, as its SDK types them."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import orjson
import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, ValidationError

from streampipe.contracts import ModelRequest, OutputSchema, ToolSpec
from streampipe.errors import ConfigurationError
from streampipe.messages import (
    DataPart,
    FilePart,
    Part,
    PromptMessage,
    ReasoningPart,
    SourcePart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from streampipe.models.google import encode_request
from tests.models.streams import JSON


class Body(BaseModel):
    """The body of a call, made of the types of Google's SDK, which forbid what they do not know."""

    model_config = ConfigDict(extra="forbid")

    contents: list[types.Content]
    systemInstruction: types.Content | None = None  # noqa: N815 - as the protocol has it
    tools: list[types.Tool] | None = None
    toolConfig: types.ToolConfig | None = None  # noqa: N815
    generationConfig: types.GenerationConfig | None = None  # noqa: N815
    safetySettings: list[types.SafetySetting] | None = None  # noqa: N815
    cachedContent: str | None = None  # noqa: N815


SIGNED = {"google": {"thoughtSignature": "c2ln"}}
CODE = {"language": "PYTHON", "code": "1"}
RAN = {"outcome": "OUTCOME_OK", "output": "1"}
ALPHABET = str.maketrans("-_", "+/")

TOOL = ToolSpec(
    "look", "Look it up.", {"type": "object", "properties": {"id": {"type": "integer"}}}
)


def judged(body: dict[str, Any]) -> dict[str, Any]:
    """A body, after Google's types have read it, and written it again as it was.

    They take names in snake_case too, and what is left out on the way back was not understood.
    """
    sent = orjson.loads(orjson.dumps(body))
    read = Body.model_validate(sent)
    written = read.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert in_one_alphabet(written) == in_one_alphabet(sent)
    return body


def in_one_alphabet(value: Any) -> Any:
    """JSON values with base64 in one of its two alphabets: pydantic writes that of URLs."""
    if isinstance(value, dict):
        return {name: in_one_alphabet(inner) for name, inner in value.items()}
    if isinstance(value, str):
        return value.translate(ALPHABET)
    return [in_one_alphabet(inner) for inner in value] if isinstance(value, list) else value


def body_of(
    *prompt: PromptMessage,
    model_id: str = "gemini-2.5-flash",
    provider: str = "google",
    warnings: list[str] | None = None,
    **request: Any,
) -> dict[str, Any]:
    """The body of a request, after Google's own types have accepted it."""
    asked = ModelRequest(list(prompt) or [user("hi")], **request)
    before = copy.deepcopy(asked)
    body = encode_request(asked, model_id, provider=provider, warnings=warnings)
    assert asked == before, "the request is left as it is"
    return judged(body)


@pytest.mark.parametrize(
    "part",
    [{"text": "x", "colour": 1}, {"functionCall": {"nom": "f"}}, {"inline_data": {"data": "aGk="}}],
)
def test_the_judge_judges(part: Any) -> None:
    """The types that bodies are held to do refuse what is wrong deep inside."""
    with pytest.raises((ValidationError, AssertionError)):
        judged({"contents": [{"role": "user", "parts": [part]}]})


def user(*parts: str | Part) -> PromptMessage:
    """A user's message."""
    return PromptMessage("user", [TextPart(p) if isinstance(p, str) else p for p in parts])


def assistant(*parts: str | Part) -> PromptMessage:
    """An assistant's message."""
    return PromptMessage("assistant", user(*parts).content)


def given_back(*parts: Part) -> PromptMessage:
    """A message of tools."""
    return PromptMessage("tool", list(parts))


def parts_of(*prompt: PromptMessage, **options: Any) -> list[Any]:
    """The parts of the one content that a prompt becomes."""
    (content,) = body_of(*prompt, **options)["contents"]
    parts: list[Any] = content["parts"]
    return parts


def test_the_smallest_request() -> None:
    """Contents; nothing else. The model stands in the address."""
    assert body_of() == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def test_messages_of_every_role() -> None:
    """System messages are the instruction; those of one role that follow one another are one."""
    body = body_of(
        PromptMessage.system("Be brief."),
        user("a", "", "b"),
        user("c"),
        PromptMessage.system("Be kind."),
        assistant("d"),
        assistant("e"),
        user(""),
    )
    assert body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "a"}, {"text": "b"}, {"text": "c"}]},
            {"role": "model", "parts": [{"text": "d"}, {"text": "e"}]},
        ],
    }


PICTURE = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (FilePart("aGk=", "image/png"), PICTURE),
        (FilePart("data:image/png;base64,aGk=", "image/png"), PICTURE),
        (
            FilePart("https://a.example/x.pdf", "application/pdf", "x.pdf"),
            {"fileData": {"mimeType": "application/pdf", "fileUri": "https://a.example/x.pdf"}},
        ),
        (
            FilePart("gs://b/v", "video/mp4", None, {"google": {"videoMetadata": {"fps": 2.0}}}),
            {
                "fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/v"},
                "videoMetadata": {"fps": 2.0},
            },
        ),
    ],
    ids=["data", "data address", "address", "metadata"],
)
def test_files(part: FilePart, expected: Any) -> None:
    """Of any type, by data or address, from either side; metadata adds what only Google knows."""
    assert parts_of(user("see", part)) == [{"text": "see"}, expected]
    assert parts_of(assistant(part)) == [expected]


def test_a_round_of_tools() -> None:
    """Calls are the model's, results the user's; ids match; a failure is told as one."""
    contents = body_of(
        user("hi"),
        assistant("Looking.", ToolCallPart("1", "look", {"id": 7}), ToolCallPart("2", "look")),
        given_back(
            ToolResultPart("1", "look", {"colour": "blue"}),
            ToolResultPart("2", "look", "no id", is_error=True),
        ),
    )["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user"]
    assert contents[1]["parts"] == [
        {"text": "Looking."},
        {"functionCall": {"id": "1", "name": "look", "args": {"id": 7}}},
        {"functionCall": {"id": "2", "name": "look", "args": {}}},
    ]
    responses = [part["functionResponse"] for part in contents[2]["parts"]]
    assert responses == [
        {"id": "1", "name": "look", "response": {"output": {"colour": "blue"}}},
        {"id": "2", "name": "look", "response": {"error": "no id"}},
    ]


class Colour(BaseModel):
    """What a tool may return."""

    name: str


@pytest.mark.parametrize(
    ("result", "output"),
    [
        ("plain", "plain"),
        (None, None),
        (1.5, 1.5),
        ([1, "ä"], [1, "ä"]),
        ([], []),
        (Colour(name="blue"), {"name": "blue"}),
        (b"\xff", "_w=="),
        (
            {"n": [2**70, -(2**63) - 1, 2**60, True]},
            {"n": [str(2**70), str(-(2**63) - 1), 2**60, True]},
        ),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "text", "text": "a"}, {"type": "sound"}],) * 2,
        ([{"type": "image", "data": 1, "mime_type": "image/png"}],) * 2,
    ],
)
def test_a_result_of_any_kind(result: Any, output: Any) -> None:
    """Results are JSON values; what is no list of content parts is told as it is."""
    (part,) = parts_of(given_back(ToolResultPart("1", "look", result)))
    assert part["functionResponse"]["response"] == {"output": output}


def test_a_result_of_several_parts() -> None:
    """Texts are the output, files stand beside it."""
    result = [
        {"type": "text", "text": "seen"},
        {"type": "image", "data": "aGk=", "mime_type": "image/png"},
        {"type": "file", "data": "https://a.example/x", "mime_type": "application/pdf"},
    ]
    (part,) = parts_of(given_back(ToolResultPart("1", "look", result)))
    assert part["functionResponse"] == {
        "id": "1",
        "name": "look",
        "response": {"output": "seen"},
        "parts": [
            PICTURE,
            {"fileData": {"fileUri": "https://a.example/x", "mimeType": "application/pdf"}},
        ],
    }


def test_arguments_that_are_no_object_are_told() -> None:
    """The protocol has objects only; None stands for text that was no JSON."""
    warnings: list[str] = []
    parts = parts_of(
        assistant(ToolCallPart("1", "look", [1]), ToolCallPart("2", "look", None)),
        warnings=warnings,
    )
    assert [part["functionCall"]["args"] for part in parts] == [{}, {}]
    assert len(warnings) == 1
    assert "'look'" in warnings[0]


def test_tools_and_how_free_the_model_is() -> None:
    """Tools as functions; the choice is sent with them only; no parameters are none."""
    tools = [TOOL, ToolSpec("now", "The time.", {"type": "object", "properties": {}})]
    assert body_of(tools=tools)["tools"] == [
        {
            "functionDeclarations": [
                {
                    "name": "look",
                    "description": "Look it up.",
                    "parametersJsonSchema": TOOL.parameters,
                },
                {"name": "now", "description": "The time."},
            ]
        }
    ]
    for choice, config in {
        "auto": {"mode": "AUTO"},
        "none": {"mode": "NONE"},
        "required": {"mode": "ANY"},
    }.items():
        made = body_of(tools=tools, tool_choice=choice)["toolConfig"]
        assert made == {"functionCallingConfig": config}
    made = body_of(tools=tools, tool_choice={"tool_name": "look"})["toolConfig"]
    assert made["functionCallingConfig"] == {"mode": "ANY", "allowedFunctionNames": ["look"]}
    assert "toolConfig" not in body_of(tool_choice="required")


@pytest.mark.parametrize("choice", ["any", {"name": "look"}, None, 3])
def test_another_tool_choice_is_refused(choice: Any) -> None:
    """The error lists what there is."""
    with pytest.raises(ConfigurationError, match="tool_choice must be 'auto'"):
        body_of(tools=[TOOL], tool_choice=choice)


def test_settings() -> None:
    """Each by the protocol's name; None is not sent; what it lacks is told."""
    warnings: list[str] = []
    settings = {
        "temperature": 0.5,
        "max_output_tokens": 9,
        "top_p": 1.0,
        "top_k": 3,
        "stop": "x",
        "seed": 7,
        "frequency_penalty": 0.1,
        "presence_penalty": None,
        "parallel_tool_calls": False,
    }
    assert body_of(settings=settings, warnings=warnings)["generationConfig"] == {
        "temperature": 0.5,
        "maxOutputTokens": 9,
        "topP": 1.0,
        "topK": 3,
        "stopSequences": ["x"],
        "seed": 7,
        "frequencyPenalty": 0.1,
    }
    assert len(warnings) == 1
    assert "'parallel_tool_calls'" in warnings[0]


@pytest.mark.parametrize(
    ("model_id", "effort", "config"),
    [
        ("gemini-3-pro", "high", {"thinkingLevel": "HIGH", "includeThoughts": True}),
        ("gemini-3-pro", "none", {"thinkingLevel": "MINIMAL", "includeThoughts": False}),
        ("gemini-2.5-flash", "low", {"thinkingBudget": 1024, "includeThoughts": True}),
        ("models/gemini-2.5-pro", "none", {"thinkingBudget": 0, "includeThoughts": False}),
    ],
)
def test_reasoning_effort(model_id: str, effort: str, config: Any) -> None:
    """A level, or a budget for models that know no levels; thoughts are asked for with it."""
    body = body_of(model_id=model_id, settings={"reasoning_effort": effort})
    assert body["generationConfig"] == {"thinkingConfig": config}


@pytest.mark.parametrize("effort", ["max", 3, ["low"]])
def test_another_effort_is_refused(effort: Any) -> None:
    """The error lists what there is."""
    with pytest.raises(ConfigurationError, match="reasoning_effort must be one of none, minimal"):
        body_of(settings={"reasoning_effort": effort})


def test_structured_output() -> None:
    """A JSON schema, and JSON as the type of the answer."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert body_of(structured_output=OutputSchema("x", schema))["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": schema,
    }


def test_provider_options_have_the_last_word() -> None:
    """Objects are merged key by key, tools added, the rest replaced; others' are not sent."""
    options = {
        "google": {
            "generationConfig": {"temperature": 1.5, "candidateCount": 1},
            "tools": [{"googleSearch": {}}],
            "cachedContent": "cachedContents/1",
        },
        "vertex": {"cachedContent": "no"},
    }
    body = body_of(settings={"temperature": 0.1, "seed": 1}, tools=[TOOL], provider_options=options)
    assert body["generationConfig"] == {"temperature": 1.5, "seed": 1, "candidateCount": 1}
    assert [list(tool) for tool in body["tools"]] == [["functionDeclarations"], ["googleSearch"]]
    assert body["cachedContent"] == "cachedContents/1"
    assert body_of(provider_options=options)["tools"] == [{"googleSearch": {}}]


def test_provider_options_that_are_no_fields_are_refused() -> None:
    """The error names the provider."""
    with pytest.raises(ConfigurationError, match=r"'google'.*dict"):
        body_of(provider_options={"google": ["x"]})


def test_what_the_protocol_lacks_is_left_out_and_told() -> None:
    """No part vanishes without a word."""
    warnings: list[str] = []
    body_of(
        PromptMessage("system", [FilePart("aGk=", "image/png")]),
        user("x", SourcePart("s")),
        assistant("y", DataPart(type="data-x")),
        given_back(TextPart("t"), ToolResultPart("1", "look", "z")),
        warnings=warnings,
    )
    assert len(warnings) == 4
    for word in ("'file'", "'source'", "'data-x'", "'text'"):
        assert sum(word in warning for warning in warnings) == 1


NOTED = st.none() | st.just(SIGNED)
CALLS = st.builds(
    ToolCallPart,
    st.sampled_from(["1", "2", "3"]),
    st.text(),
    st.none() | JSON | st.dictionaries(st.text(), JSON),
    st.none() | st.booleans(),
    st.none() | st.sampled_from([SIGNED, {"google": {"executableCode": CODE}}]),
)
CONTENT_PARTS = st.lists(
    st.fixed_dictionaries({"type": st.just("text"), "text": st.text()})
    | st.fixed_dictionaries(
        {
            "type": st.sampled_from(["image", "file"]),
            "data": st.sampled_from(["aGk=", "https://a.example/x"]),
            "mime_type": st.just("image/png"),
        }
    )
)
ANY_PART = st.one_of(
    st.builds(TextPart, st.text(), NOTED),
    st.builds(ReasoningPart, st.text(), st.none(), provider_metadata=NOTED),
    st.builds(
        FilePart,
        st.sampled_from(["aGk=", "https://a.example/x", "data:text/plain;base64,aGk="]),
        st.sampled_from(["image/png", "audio/wav", "application/pdf", "text/plain"]),
        provider_metadata=NOTED,
    ),
    CALLS,
    st.builds(
        ToolResultPart,
        st.sampled_from(["1", "2", "3"]),
        st.text(),
        JSON | CONTENT_PARTS | st.just(RAN),
        st.booleans(),
    ),
)
ROLES = st.sampled_from(["system", "user", "assistant", "tool"])
PROMPTS = st.lists(st.builds(PromptMessage, ROLES, st.lists(ANY_PART)), min_size=1)


@given(PROMPTS, st.sampled_from(["gemini-2.5-flash", "gemini-3-pro"]))
def test_any_prompt_is_valid(prompt: list[PromptMessage], model_id: str) -> None:
    """Whatever stands in whatever message, Google's types accept the body; roles take turns."""
    roles = [content["role"] for content in body_of(*prompt, model_id=model_id)["contents"]]
    assert all(one != following for one, following in pairwise(roles))
