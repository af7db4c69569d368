"""Section 4 of the contract: what the hooks around the model call may return."""

from __future__ import annotations

from typing import Any

import pytest

from streampipe import Message, MessageList, TextDelta, TextEnd, TextStart
from streampipe.contracts import (
    ProcessAPIErrorResult,
    ProcessLLMRequestResult,
)
from streampipe.errors import ProcessorError, ProviderError
from streampipe.messages import TextPart
from streampipe.testing import fail
from tests.contract.guards import processor, texts
from tests.contract.listeners import CALL, Ask, each_form, joined

TWO_STEPS: list[Any] = [[CALL], ["b"]]


# --- process_llm_request ------------------------------------------------------------------------


@each_form(ProcessLLMRequestResult)
async def test_4_process_llm_request_prompt_rewrites_this_call_only(ask: Ask, form: Any) -> None:
    """It is never persisted: the next call's prompt and the messages are as without it."""
    seen: list[Any] = []

    def rewrite(args: Any) -> Any:
        seen.append([(m.role, m.text) for m in args.prompt][:2])
        args.prompt[0].content[0].text = "edited"
        extra = {"role": "user", "content": [{"type": "text", "text": "extra"}]}
        return form(prompt=[*args.prompt, extra, Message.user("typed")])

    lists: list[Any] = []
    asked = await ask(
        "process_llm_request", rewrite, lambda a: lists.append(a.message_list), script=TWO_STEPS
    )
    assert asked.prompts[0] == [("user", "edited"), ("user", "extra"), ("user", "typed")]
    assert [prompt[0] for prompt in seen] == [("user", "hi")] * 2
    assert joined(lists[0].input) == ["hi"]
    assert joined(asked.seen.result.messages) == ["", "b"]


CACHED: list[Any] = [
    TextStart("0").to_wire(),
    TextDelta("0", "cached"),
    {"type": "text-end", "payload": {"id": "0"}},
]


@each_form(ProcessLLMRequestResult)
async def test_4_process_llm_request_response_is_replayed_without_a_call(
    ask: Ask, form: Any
) -> None:
    """Typed chunks and wire forms; they go through the output processors as a model's would."""
    passed: list[str] = []

    def passing(args: Any) -> Any:
        passed.append(args.part.type)
        return args.part

    asked = await ask(
        "process_llm_request",
        lambda _: form(response=CACHED),
        lambda _: pytest.fail("the first response is the answer"),
        output_processors=[processor(process_output_stream=passing)],
    )
    assert asked.model.calls == 0
    assert asked.seen.result.text == "cached"
    assert joined(asked.seen.result.messages) == ["cached"]
    assert passed[2:5] == ["text-start", "text-delta", "text-end"]
    if asked.seen.chunks is not None:
        assert texts(asked.seen.chunks) == ["cached"]
        assert CACHED[1] == TextDelta("0", "cached"), "the cached chunks stay as they are"


async def test_4_process_llm_request_none_leaves_the_prompt_as_it_is(ask: Ask) -> None:
    """None, and a result that says nothing."""
    asked = await ask("process_llm_request", lambda _: None, lambda _: {}, instructions="S")
    assert asked.prompts == [[("system", "S"), ("user", "hi")]]


# --- process_llm_response, process_api_error ----------------------------------------------------


async def test_4_process_llm_response_is_for_side_effects_only(ask: Ask) -> None:
    """It may edit its chunks as it likes: the answer is what it was."""

    def spoil(args: Any) -> None:
        for chunk in args.chunks:
            if isinstance(chunk, TextDelta):
                chunk.text = "spoiled"
        args.chunks.clear()

    asked = await ask("process_llm_response", spoil, script=[["a", "b"]])
    assert asked.seen.result.text == "ab"
    assert joined(asked.seen.result.messages) == ["ab"]
    asked = await ask("process_llm_response", lambda _: [TextEnd("0")])
    assert isinstance(asked.seen.error, ProcessorError)


@each_form(ProcessAPIErrorResult)
async def test_4_process_api_error_first_to_say_retry_wins(ask: Ask, form: Any) -> None:
    """Those before it are asked, those after it are not; the call is made with their changes."""
    asked_of: list[str] = []

    def pass_on(args: Any) -> Any:
        asked_of.append("first")
        args.message_list.add("changed")
        return form(retry=False)

    def again(args: Any) -> Any:
        asked_of.append("second")
        return form(retry=True)

    def never(args: Any) -> Any:
        asked_of.append("third")

    asked = await ask("process_api_error", pass_on, again, never, script=[[fail()], ["ok"]])
    assert asked_of == ["first", "second"]
    assert asked.prompts == [[("user", "hi")], [("user", "hi"), ("user", "changed")]]
    assert asked.seen.result.text == "ok"


@pytest.mark.parametrize("answer", [None, {}, {"retry": False}])
async def test_4_process_api_error_none_leaves_the_error(ask: Ask, answer: Any) -> None:
    """None, nothing said, or no: the run fails with it."""
    asked = await ask("process_api_error", lambda _: answer, script=[[fail()], ["never"]])
    assert isinstance(asked.seen.error, ProviderError)
    assert asked.model.calls == 1


# --- bad returns --------------------------------------------------------------------------------

BAD: dict[str, tuple[str, Any, str]] = {
    "foreign list": ("process_input", MessageList(["x"]), "another MessageList"),
    "both": (
        "process_input_step",
        {"messages": [], "message_list": MessageList()},
        "both 'messages' and 'message_list'",
    ),
    "wrong key": ("process_input_step", {"toolz": []}, "unknown key 'toolz'"),
    "key of a message": ("process_input", [{"role": "user", "texts": "x"}], "'texts'"),
    "key in camelCase": ("process_input", {"systemMessages": []}, "'systemMessages'"),
    "text for system messages": (
        "process_input",
        {"system_messages": "Be brief."},
        "'system_messages' must be a list, not 'Be brief.'",
    ),
    "text for a prompt": ("process_llm_request", {"prompt": "hi"}, "'prompt' must be a list"),
    "chunk for chunks": (
        "process_llm_request",
        {"response": TextDelta("0", "x")},
        "'response' must be a list",
    ),
    "settings": ("process_input_step", {"model_settings": 7}, "model_settings must be a dict"),
    "options": ("process_input_step", {"provider_options": 7}, "provider_options must be a dict"),
    "name for names": ("process_input_step", {"active_tools": "x"}, "must be a list of names"),
    "tool choice": ("process_input_step", {"tool_choice": "some"}, "tool_choice must be"),
    "model": ("process_input_step", {"model": None}, "model must be a router id"),
    "retry": ("process_api_error", {"retry": "no"}, "'retry' must be True or False, not 'no'"),
}


@pytest.mark.parametrize("name", BAD)
async def test_4_a_wrong_return_value_is_an_error_that_names_it(ask: Ask, name: str) -> None:
    """And the processor and the hook; the model is not asked."""
    hook, value, told = BAD[name]
    asked = await ask(hook, lambda _: value, script=[[fail()]])
    error = asked.seen.error
    assert isinstance(error, ProcessorError)
    assert (error.processor_id, error.hook) == ("p0", hook)
    assert told in str(error)
    assert asked.model.calls == (1 if hook == "process_api_error" else 0)


async def test_4_a_part_with_a_wrong_key_is_an_error_that_names_it(ask: Ask) -> None:
    """In a prompt message as in a message."""
    parts = [{"type": "text", "txt": "x"}]
    for hook, value in (
        ("process_llm_request", {"prompt": [{"role": "user", "content": parts}]}),
        ("process_input", [{"role": "user", "parts": parts}]),
    ):
        asked = await ask(hook, lambda _, value=value: value)
        assert isinstance(asked.seen.error, ProcessorError)
        assert "'txt'" in str(asked.seen.error)


async def test_4_a_message_of_typed_parts_is_taken_as_it_is(ask: Ask) -> None:
    """No copy is made of it: what a later hook edits is what is sent."""
    mine = Message("user", [TextPart("mine")])
    asked = await ask("process_input", lambda _: [mine], lambda a: [a.messages[0]])
    assert asked.prompts == [[("user", "mine")]]
