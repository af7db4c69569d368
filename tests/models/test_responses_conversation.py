"""A conversation in the Responses protocol: what the model said and called, and what came of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe.contracts import ModelRequest
from streampipe.errors import ConfigurationError
from streampipe.messages import (
    FilePart,
    Part,
    PromptMessage,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from streampipe.models.openai_responses import encode_request
from tests.models.test_responses_request import assistant, items_of, judged, user

Item = dict[str, Any]


def thought(
    text: str = "", item_id: str = "rs_1", sealed: str | None = None, **more: Any
) -> ReasoningPart:
    """Reasoning that the provider made."""
    return ReasoningPart(text, sealed, None, {"openai": {"item_id": item_id, **more}})


def reasoning(*summary: str, item_id: str = "rs_1", sealed: str = "e1") -> Item:
    """The item of reasoning."""
    return {
        "type": "reasoning",
        "id": item_id,
        "summary": [{"type": "summary_text", "text": text} for text in summary],
        "encrypted_content": sealed,
    }


SAID = {"role": "assistant", "content": "x"}


# --- reasoning -----------------------------------------------------------------------------


def test_reasoning_goes_back_to_its_provider() -> None:
    """With its encrypted form, before what it led to; several summaries are one item."""
    assert items_of(assistant(thought("a"), thought("b", sealed="e1"), "x")) == [
        reasoning("a", "b"),
        SAID,
    ]
    sealed = ReasoningPart("", None, "e1", {"openai": {"item_id": "rs_1"}})
    assert items_of(assistant(sealed, "x")) == [reasoning(), SAID]
    two = assistant(thought("a", sealed="e1"), thought("b", "rs_2", sealed="e2"), "x")
    assert items_of(two) == [reasoning("a"), reasoning("b", item_id="rs_2", sealed="e2"), SAID]


def test_raw_reasoning_goes_back_as_such() -> None:
    """Not as a summary."""
    (item, _) = items_of(assistant(thought("a", sealed="e1", form="reasoning_text"), "x"))
    assert item == {**reasoning(), "content": [{"type": "reasoning_text", "text": "a"}]}


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(ReasoningPart("hm", "e1"), id="nobody's"),
        pytest.param(ReasoningPart("hm", "e1", None, {"acme": {"item_id": "r"}}), id="another's"),
        pytest.param(thought("hm"), id="not encrypted"),
    ],
)
def test_other_reasoning_does_not(part: Part) -> None:
    """A server makes its own, and cannot read that of another."""
    assert items_of(assistant(part, "x")) == [SAID]


def test_reasoning_that_led_to_nothing() -> None:
    """By itself it would be refused."""
    assert items_of(assistant(thought("a", sealed="e1")), user("hi")) == [
        {"role": "user", "content": "hi"}
    ]


def test_phases_of_a_message() -> None:
    """What was said in between stays apart from the answer."""
    said = [
        TextPart(text, {"openai": {"phase": phase}})
        for text, phase in (
            ("a", "commentary"),
            ("b", "commentary"),
            ("c", "final_answer"),
        )
    ]
    assert items_of(assistant(*said)) == [
        {"role": "assistant", "content": "ab", "phase": "commentary"},
        {"role": "assistant", "content": "c", "phase": "final_answer"},
    ]


def test_messages_of_two_steps_stay_apart() -> None:
    """The text of one is not drawn into the other."""
    assert items_of(assistant("x"), assistant("x")) == [SAID, SAID]


# --- calls ---------------------------------------------------------------------------------


def called(item: Item | None = None, args: Any = None, **noted: Any) -> ToolCallPart:
    """A call `1` of the tool `f`, with what the provider noted on it."""
    own = {**noted, **({"item": item} if item else {})}
    return ToolCallPart("1", "f", args, None, {"openai": own} if own else None)


def came(result: Any, *, is_error: bool = False) -> PromptMessage:
    """The result of the call."""
    return PromptMessage("tool", [ToolResultPart("1", "f", result, is_error)])


FUNCTION = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}


def test_a_function_call() -> None:
    """Arguments are JSON text; none at all, or such as were no JSON, are an empty object."""
    assert items_of(assistant(called(args={"a": 1}))) == [{**FUNCTION, "arguments": '{"a":1}'}]
    assert items_of(assistant(called())) == [FUNCTION]


def test_a_function_call_of_a_program() -> None:
    """Who called goes back with the call and with its result."""
    caller = {"type": "program", "caller_id": "p"}
    assert items_of(assistant(called(caller=caller, namespace="crm")), came("x")) == [
        {**FUNCTION, "caller": caller, "namespace": "crm"},
        {"type": "function_call_output", "call_id": "1", "output": "x", "caller": caller},
    ]


def test_a_call_goes_back_as_it_came_but_for_its_arguments() -> None:
    """What a processor made of them is what the model is told of."""
    custom = {"type": "custom_tool_call", "call_id": "old", "name": "f", "input": "secret"}
    (item,) = items_of(assistant(called(custom, {"input": "***"})))
    assert item == {**custom, "call_id": "1", "input": "***"}
    mcp = {
        "type": "mcp_call",
        "id": "1",
        "name": "f",
        "server_label": "s",
        "arguments": '{"a":"secret"}',
    }
    (item,) = items_of(assistant(called(mcp, {"a": "***"})))
    assert item == {**mcp, "arguments": '{"a":"***"}'}


def test_calls_that_the_provider_ran() -> None:
    """The item has what came of it, and is told once; the provider's own result as it came."""
    search: Item = {"type": "web_search_call", "id": "1", "status": "completed"}
    search["action"] = {"type": "search", "query": "x"}
    assert items_of(assistant(called(search)), came(search)) == [search]
    program = {"type": "program", "id": "cm_1", "call_id": "1", "code": "x", "fingerprint": "f"}
    output = {
        "type": "program_output",
        "id": "po_1",
        "call_id": "1",
        "result": "y",
        "status": "completed",
    }
    assert items_of(assistant(called(program)), came(output)) == [program, output]


def test_a_call_that_another_provider_ran() -> None:
    """It is left out with its result, and told to be."""
    call = ToolCallPart("1", "search", {"q": "x"}, provider_executed=True)
    warnings: list[str] = []
    assert items_of(assistant(call, "x"), came("found"), warnings=warnings) == [SAID]
    (told,) = warnings
    assert told == "a call of 'search', which another provider ran, was left out"


def test_an_image_that_the_model_made() -> None:
    """Its file is the item; the call is not told besides."""
    item = {"type": "image_generation_call", "id": "ig_1", "status": "completed"}
    call = ToolCallPart("ig_1", "image_generation", {}, True, {"openai": {"type": item["type"]}})  # noqa: FBT003 - of the part
    file = FilePart("UklGRg==", "image/webp", None, {"openai": {"item": item}})
    result = PromptMessage("tool", [ToolResultPart("ig_1", "image_generation", item)])
    assert items_of(assistant(call, file), result) == [{**item, "result": "UklGRg=="}]


# --- results -------------------------------------------------------------------------------

IMAGE = {"type": "image", "data": "aGk=", "mime_type": "image/png"}
SHOWN = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk="}


@pytest.mark.parametrize(
    ("result", "output"),
    [
        ("plain", "plain"),
        ({"a": 1}, '{"a":1}'),
        (None, "null"),
        ([], "[]"),
        ([1, 2], "[1,2]"),
        ([{"type": "text", "text": "x"}, IMAGE], [{"type": "input_text", "text": "x"}, SHOWN]),
        (({"type": "text", "text": "x"},), [{"type": "input_text", "text": "x"}]),
        (
            [{"type": "file", "data": "aGk=", "mime_type": "application/pdf", "filename": "a.pdf"}],
            [
                {
                    "type": "input_file",
                    "filename": "a.pdf",
                    "file_data": "data:application/pdf;base64,aGk=",
                }
            ],
        ),
        ([{"type": "text", "text": "x"}, 5], '[{"type":"text","text":"x"},5]'),
        ([{"type": "text"}], '[{"type":"text"}]'),
    ],
)
def test_results(result: Any, output: Any) -> None:
    """Content parts go as such where the protocol has them; all else is text."""
    assert items_of(assistant(called()), came(result))[1] == {
        "type": "function_call_output",
        "call_id": "1",
        "output": output,
    }


def test_a_result_that_is_an_error() -> None:
    """The protocol has no flag for it: the model is told in words."""
    assert items_of(came("no", is_error=True))[0]["output"] == "Error: no"
    output = items_of(came([IMAGE], is_error=True))[0]["output"]
    assert output == [{"type": "input_text", "text": "Error:"}, SHOWN]


SHELL: Item = {"type": "shell_call", "call_id": "1", "action": {"commands": ["ls"]}}
EXIT = {"type": "exit", "exit_code": 0}
PRINTED = {"stdout": "a", "stderr": "", "outcome": EXIT}
SHELL_OUTPUT = {"type": "shell_call_output", "call_id": "1", "output": [PRINTED]}
PATCH: Item = {"type": "apply_patch_call", "call_id": "1", "status": "completed"}
PATCH["operation"] = {"type": "delete_file", "path": "a"}
COMPUTER: Item = {
    "type": "computer_call",
    "id": "c",
    "call_id": "1",
    "pending_safety_checks": [],
    "status": "completed",
    "action": {"type": "screenshot"},
}
SCREENSHOT = {"type": "computer_screenshot", "image_url": "data:image/png;base64,aGk="}
LOCAL: Item = {"type": "local_shell_call", "id": "l", "call_id": "1", "status": "completed"}
LOCAL["action"] = {"type": "exec", "command": ["ls"], "env": {}}
SEARCH: Item = {"type": "tool_search_call", "call_id": "1", "execution": "client", "arguments": {}}
FOUND: Item = {
    "type": "tool_search_output",
    "call_id": "1",
    "execution": "client",
    "status": "completed",
}
ASKED: Item = {
    "type": "mcp_approval_request",
    "id": "1",
    "name": "f",
    "server_label": "s",
    "arguments": "{}",
}
ANSWERED = {"type": "mcp_approval_response", "approval_request_id": "1"}
CUSTOM: Item = {"type": "custom_tool_call", "call_id": "1", "name": "f", "input": ""}


@pytest.mark.parametrize(
    ("call", "result", "output"),
    [
        (CUSTOM, "x", {"type": "custom_tool_call_output", "call_id": "1", "output": "x"}),
        (LOCAL, "a", {"type": "local_shell_call_output", "id": "1", "output": "a"}),
        (SHELL, "a", SHELL_OUTPUT),
        (SHELL, PRINTED, SHELL_OUTPUT),
        (SHELL, [PRINTED, PRINTED], {**SHELL_OUTPUT, "output": [PRINTED, PRINTED]}),
        (SHELL, SHELL_OUTPUT, SHELL_OUTPUT),
        (
            {**SHELL, "action": {"commands": ["ls"], "max_output_length": 9}},
            "a",
            {**SHELL_OUTPUT, "max_output_length": 9},
        ),
        (
            PATCH,
            "done",
            {
                "type": "apply_patch_call_output",
                "call_id": "1",
                "status": "completed",
                "output": "done",
            },
        ),
        (
            COMPUTER,
            [IMAGE],
            {"type": "computer_call_output", "call_id": "1", "output": SCREENSHOT},
        ),
        (
            COMPUTER,
            "data:image/png;base64,aGk=",
            {"type": "computer_call_output", "call_id": "1", "output": SCREENSHOT},
        ),
        (SEARCH, [], {**FOUND, "tools": []}),
        (ASKED, True, {**ANSWERED, "approve": True}),
        (
            ASKED,
            {"approve": False, "reason": "no"},
            {**ANSWERED, "approve": False, "reason": "no"},
        ),
    ],
)
def test_results_of_other_calls(call: Item, result: Any, output: Item) -> None:
    """Each kind of call has an output of its own; one that is such an item is sent as it is."""
    assert items_of(assistant(called(call)), came(result)) == [call, output]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (LOCAL, {"output": "Error: no"}),
        (SHELL, {"output": [{**PRINTED, "stdout": "no", "outcome": {**EXIT, "exit_code": 1}}]}),
        (PATCH, {"status": "failed", "output": "no"}),
        (SEARCH, {"tools": []}),
        (ASKED, {"approve": False, "reason": "no"}),
    ],
)
def test_errors_of_other_calls(call: Item, told: Item) -> None:
    """A failure is told as the kind of call has it."""
    (_, output) = items_of(assistant(called(call)), came("no", is_error=True))
    assert {name: output[name] for name in told} == told


@pytest.mark.parametrize(
    ("call", "result", "told"),
    [
        (COMPUTER, "clicked", "must be a screenshot"),
        (COMPUTER, [{"type": "text", "text": "x"}], "must be a screenshot"),
        (SEARCH, "x", "must be a list of tools"),
        (ASKED, "yes", "must be True, False or"),
    ],
)
def test_results_that_a_call_does_not_take(call: Item, result: Any, told: str) -> None:
    """The error names the tool and what it should give."""
    with pytest.raises(ConfigurationError, match=f"the result of 'f'.* {told}"):
        items_of(assistant(called(call)), came(result))


# --- whatever is asked -----------------------------------------------------------------------

METADATA = st.none() | st.just({"openai": {"item_id": "rs_1"}, "acme": {"item": {"type": "x"}}})
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, st.text()),
    st.builds(
        FilePart,
        st.sampled_from(["aGk=", "https://a.example/x", "data:text/plain;base64,aGk="]),
        st.sampled_from(["image/png", "audio/wav", "application/pdf", "x"]),
        st.none() | st.text(),
    ),
    st.builds(ReasoningPart, st.text(), st.none() | st.text(), st.none(), METADATA),
    st.builds(
        ToolCallPart,
        st.text(min_size=1),
        st.text(min_size=1),
        st.none() | st.dictionaries(st.text(), st.integers() | st.text(), max_size=2),
        st.sampled_from([None, True]),
        METADATA,
    ),
    st.builds(
        ToolResultPart,
        st.text(min_size=1),
        st.text(min_size=1),
        st.text() | st.lists(st.integers()) | st.just([{"type": "text", "text": "x"}]),
        st.booleans(),
    ),
)
PROMPTS = st.lists(
    st.builds(
        PromptMessage,
        st.sampled_from(["user", "assistant", "system", "tool"]),
        st.lists(PARTS, max_size=4),
    ),
    max_size=4,
)


@given(PROMPTS)
def test_any_prompt_makes_a_body_that_the_sdk_accepts(prompt: list[PromptMessage]) -> None:
    """Text comes through; of files, calls and results, each is sent or told to be left out."""
    warnings: list[str] = []
    items = judged(encode_request(ModelRequest(prompt), "m", warnings=warnings))["input"]
    contents = [item["content"] for item in items if "content" in item]
    blocks = [b for content in contents if isinstance(content, list) for b in content]
    texts = [content for content in contents if isinstance(content, str)]
    assert sorted("".join([*texts, *(block.get("text", "") for block in blocks)])) == sorted(
        "".join(m.text for m in prompt if m.role != "tool")
    )
    left = [warning for warning in warnings if "provider ran" not in warning]
    others = [part for m in prompt for part in m.content if m.role != "tool"]
    files = sum(isinstance(part, FilePart) for part in others)
    sent = sum(block["type"] != "input_text" for block in blocks)
    assert sent + sum("'file'" in w and "tool message" not in w for w in left) == files
