"""Section 4 of the contract: what `process_input` and `process_input_step` may return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe import Agent, Message, MessageList, tool
from streampipe.contracts import (
    ProcessInputResult,
    ProcessInputStepResult,
)
from streampipe.messages import PromptMessage
from streampipe.testing import ModelServer, ScriptedModel, call, fail
from tests.contract.guards import processor
from tests.contract.listeners import CALL, Ask, each_form, joined

# --- process_input ------------------------------------------------------------------------------

HISTORY = ["one", {"role": "assistant", "content": "two"}, "three"]


async def test_4_process_input_list_replaces_messages(ask: Ask) -> None:
    """Missing ones are removed, new ones added, in the order that was returned."""

    def swap(args: Any) -> Any:
        first, _, third = args.messages
        return [third, {"role": "user", "content": "new"}, first]

    asked = await ask("process_input", swap, prompt=HISTORY, instructions="S")
    assert asked.prompts == [[("system", "S"), ("user", "three"), ("user", "new"), ("user", "one")]]


async def test_4_process_input_same_message_list_was_changed_in_place(ask: Ask) -> None:
    """What was done to it holds."""

    def change(args: Any) -> Any:
        args.message_list.remove_by_ids([args.messages[0].id])
        args.message_list.add("more")
        args.message_list.add_system("S2")
        return args.message_list

    asked = await ask("process_input", change, prompt=HISTORY, instructions="S")
    assert asked.prompts == [
        [
            ("system", "S"),
            ("system", "S2"),
            ("assistant", "two"),
            ("user", "three"),
            ("user", "more"),
        ]
    ]


@each_form(ProcessInputResult)
async def test_4_process_input_messages_and_system_messages_replace_both(
    ask: Ask, form: Any
) -> None:
    """System messages as strings, dicts or typed ones."""

    def both(args: Any) -> Any:
        system = ["S1", {"role": "system", "content": "S2"}, PromptMessage.system("S3")]
        return form(messages=args.messages[-1:], system_messages=system)

    asked = await ask("process_input", both, prompt=HISTORY, instructions="S")
    systems = [("system", f"S{n}") for n in (1, 2, 3)]
    assert asked.prompts == [[*systems, ("user", "three")]]


@each_form(ProcessInputResult)
async def test_4_process_input_what_is_not_given_stays(ask: Ask, form: Any) -> None:
    """A list of messages leaves the system messages, and either key of the dict the other."""
    asked = await ask("process_input", lambda _: form(system_messages=["T"]), instructions="S")
    assert asked.prompts == [[("system", "T"), ("user", "hi")]]
    asked = await ask("process_input", lambda _: form(messages=["ho"]), instructions="S")
    assert asked.prompts == [[("system", "S"), ("user", "ho")]]


async def test_4_process_input_system_messages_are_the_originals_of_every_step(ask: Ask) -> None:
    """What it made of them holds in all steps."""
    script = [[CALL], ["b"]]
    asked = await ask("process_input", lambda _: {"system_messages": ["T"]}, script=script)
    assert [prompt[0] for prompt in asked.prompts] == [("system", "T")] * 2


NEW = st.text(alphabet="xyz", min_size=1, max_size=3).map(Message.user)


@given(st.data())
async def test_4_a_returned_list_is_reconciled_with_the_message_list(data: st.DataObject) -> None:
    """Any selection, order and mixture: the conversation is what was returned."""
    size = data.draw(st.integers(1, 4))
    kept = data.draw(
        st.permutations(range(size)).map(lambda p: p[: data.draw(st.integers(0, size))])
    )
    fresh = data.draw(st.lists(NEW, max_size=3))
    order = data.draw(st.permutations(range(len(kept) + len(fresh))))
    wanted: list[str] = []
    lists: list[MessageList] = []

    def mix(args: Any) -> Any:
        pool = [*(args.messages[i] for i in kept), *fresh]
        mixed = [pool[i] for i in order]
        wanted.extend(message.id for message in mixed)
        lists.append(args.message_list)
        return mixed

    agent = Agent(model=ScriptedModel(["a"]), input_processors=[processor(process_input=mix)])
    result = await agent.generate([f"m{i}" for i in range(size)])
    assert [message.id for message in lists[0].input] == wanted
    assert joined(result.messages) == ["a"]


# --- process_input_step -------------------------------------------------------------------------


def define(word: str) -> str:
    """Another tool."""
    return word


TWO_STEPS: list[Any] = [[CALL], ["b"]]


def in_step_0(**overrides: Any) -> Callable[[Any], Any]:
    """A hook that overrides in the first step only."""
    return lambda args: overrides if args.step_number == 0 else None


async def test_4_process_input_step_model_instance_is_asked_in_this_step(ask: Ask) -> None:
    """The next step asks the agent's own model again."""
    other = ScriptedModel([["other", CALL]])
    asked = await ask("process_input_step", in_step_0(model=other), script=["own"])
    assert other.calls == asked.model.calls == 1
    assert asked.seen.result.text == "otherown"


async def test_4_process_input_step_model_may_be_a_router_id(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as `openai/gpt-5`; the next processor sees the model that it stands for."""
    seen: list[Any] = []
    async with ModelServer([["routed"]]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        asked = await ask(
            "process_input_step",
            lambda _: {"model": "openai-compatible/gpt-5"},
            lambda args: seen.append((args.model.provider, args.model.model_id)),
        )
        assert server.requests[0].body["model"] == "gpt-5"
    assert seen == [("openai-compatible", "gpt-5")]
    assert asked.seen.result.text == "routed"


STEP_OVERRIDES: dict[str, tuple[Any, Callable[[Any], Any], Any]] = {
    "tool_choice": ("required", lambda request: request.tool_choice, "auto"),
    "active_tools": ([], lambda request: [t.name for t in request.tools], ["lookup"]),
    "tools": ([define], lambda request: [t.name for t in request.tools], ["lookup"]),
    "provider_options": ({"x": {"y": 1}}, lambda request: request.provider_options, {}),
    "model_settings": ({"seed": 1}, lambda request: request.settings, {"seed": 0}),
    "structured_output": (
        {"title": "T", "type": "object"},
        lambda request: request.structured_output and request.structured_output.name,
        None,
    ),
    "system_messages": (
        ["T"],
        lambda request: [m.text for m in request.prompt if m.role == "system"],
        ["S"],
    ),
}
SHOWN = {"tools": ["define"], "structured_output": "T"}
"""What the request shows of an override, where it is not the value itself."""


@pytest.mark.parametrize("form", [dict, ProcessInputStepResult])
@pytest.mark.parametrize("key", STEP_OVERRIDES)
async def test_4_process_input_step_overrides_hold_for_this_step(
    ask: Ask, key: str, form: Any
) -> None:
    """The first call has it, the second has what the agent was given."""
    value, read, original = STEP_OVERRIDES[key]
    asked = await ask(
        "process_input_step",
        lambda args: form(**{key: value}) if args.step_number == 0 else None,
        script=TWO_STEPS,
        model_settings={"seed": 0},
        instructions="S",
    )
    assert [read(request) for request in asked.model.requests] == [SHOWN.get(key, value), original]


@pytest.mark.parametrize("key", [k for k in STEP_OVERRIDES if k != "system_messages"])
async def test_4_process_input_step_next_processor_sees_the_overrides(ask: Ask, key: str) -> None:
    """In its final form: tools by name, the rest as it was given; both reach the model."""
    value, read, _ = STEP_OVERRIDES[key]
    seen: list[Any] = []

    def second(args: Any) -> Any:
        found = getattr(args, key)
        seen.append([t.name for t in found.values()] if key == "tools" else found)
        return {}

    asked = await ask("process_input_step", lambda _: {key: value}, second)
    assert seen == [["define"] if key == "tools" else value]
    assert [read(request) for request in asked.model.requests] == [SHOWN.get(key, value)]


async def test_4_process_input_step_any_subset_is_chained(ask: Ask) -> None:
    """One changes the model, the next the tool choice: both hold."""
    other = ScriptedModel(["other"])
    await ask(
        "process_input_step",
        lambda _: {"model": other, "model_settings": {"seed": 1}},
        lambda _: {"tool_choice": "none"},
    )
    [request] = other.requests
    assert (request.tool_choice, request.settings) == ("none", {"seed": 1})


async def test_4_process_input_step_tools_are_those_that_are_run(ask: Ask) -> None:
    """A tool that only this step has is executed in it."""

    @tool
    def shout(word: str) -> str:
        """Shout."""
        return word.upper()

    asked = await ask(
        "process_input_step",
        lambda args: {"tools": {**args.tools, "shout": shout}},
        script=[[call("shout", {"word": "x"}), CALL], ["b"]],
    )
    assert [r.result for r in asked.seen.result.tool_results] == ["X", "meaning of x"]


MESSAGE_FORMS: dict[str, Callable[[Any], Any]] = {
    "list": lambda args: [*args.messages[1:], "new"],
    "messages": lambda args: {"messages": [*args.messages[1:], "new"]},
    "typed messages": lambda args: ProcessInputStepResult(messages=[*args.messages[1:], "new"]),
    "MessageList": lambda args: shifted(args.message_list),
    "message_list": lambda args: {"message_list": shifted(args.message_list)},
    "None": lambda args: shifted(args.message_list) and None,
}


def shifted(messages: MessageList) -> MessageList:
    """The list without its first message, and with a new one."""
    messages.remove_by_ids([messages.all[0].id])
    messages.add("new")
    return messages


@pytest.mark.parametrize("form", MESSAGE_FORMS)
async def test_4_process_input_step_messages_are_replaced_or_changed_in_place(
    ask: Ask, form: str
) -> None:
    """The next processor sees them, and so does the model."""
    seen: list[Any] = []
    await ask("process_input_step", MESSAGE_FORMS[form], lambda a: seen.append(joined(a.messages)))
    assert seen == [["new"]]
    asked = await ask("process_input_step", MESSAGE_FORMS[form], prompt=HISTORY)
    assert asked.prompts == [[("assistant", "two"), ("user", "three"), ("user", "new")]]


async def test_4_process_input_step_none_changes_nothing(ask: Ask) -> None:
    """The step is asked as it stands."""
    asked = await ask("process_input_step", lambda _: None, lambda _: {}, instructions="S")
    assert asked.prompts == [[("system", "S"), ("user", "hi")]]


@pytest.mark.parametrize("how", ["result", "in place"])
async def test_4_system_messages_are_reset_at_the_start_of_every_step(ask: Ask, how: str) -> None:
    """What a step did to them does not leak into the next, nor into another attempt."""
    seen: list[list[str]] = []

    def add(args: Any) -> Any:
        seen.append(joined(args.system_messages))
        if how == "result":
            return {"system_messages": [*args.system_messages, f"T{len(seen)}"]}
        args.message_list.system_messages[0].content[0].text = "S!"
        args.message_list.add_system(f"T{len(seen)}")
        return None

    retry = processor("retry", process_api_error=lambda _: {"retry": True})
    asked = await ask(
        "process_input_step",
        add,
        script=[[CALL], ["b", fail()], ["b"]],
        instructions="S",
        error_processors=[retry],
    )
    assert seen == [["S"]] * 3
    first = "S" if how == "result" else "S!"
    assert [prompt[:2] for prompt in asked.prompts] == [
        [("system", first), ("system", f"T{n}")] for n in (1, 2, 3)
    ]
