"""Section 4 of the contract: what the output hooks may return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streampipe import Agent, Message, MessageList, TextDelta
from streampipe.errors import ProcessorError
from streampipe.messages import TextPart, ToolInvocationPart
from streampipe.testing import ScriptedModel, call
from tests.contract.guards import is_text, lookup_into, processor, texts
from tests.contract.listeners import CALL, Ask, joined

# --- process_output_stream ----------------------------------------------------------------------


def on_text(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A stream hook that makes something of text and lets all else pass."""
    return lambda args: make(args.part) if is_text(args) else args.part


def edited(part: TextDelta) -> TextDelta:
    """The very chunk, its text in capitals."""
    part.text = part.text.upper()
    return part


def wire(text: str) -> dict[str, Any]:
    """A piece of text in the wire form."""
    return {"type": "text-delta", "payload": {"id": "0", "text": text}}


STREAM_RETURNS: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "the same chunk": (lambda part: part, ["a", "b"]),
    "the same chunk, edited": (edited, ["A", "B"]),
    "another chunk": (lambda part: replace(part, text=part.text * 2), ["aa", "bb"]),
    "a wire form": (lambda part: wire(part.text + "!"), ["a!", "b!"]),
    "None for one": (lambda part: part if part.text == "b" else None, ["b"]),
    "None for all": (lambda _: None, []),
    "an empty list": (lambda part: [] if part.text == "a" else part, ["b"]),
    "a list": (lambda part: [part, replace(part, text="-"), wire("+")], ["a", "-", "+"] * 2),
    "a tuple": (lambda part: (part,), ["a", "b"]),
}
STREAM_RETURNS["a list"] = (STREAM_RETURNS["a list"][0], ["a", "-", "+", "b", "-", "+"])


@pytest.mark.parametrize("name", STREAM_RETURNS)
async def test_4_process_output_stream_what_is_returned_is_emitted(ask: Ask, name: str) -> None:
    """The next processor, the client, the result and the message get it; None drops one chunk."""
    make, expected = STREAM_RETURNS[name]
    given: list[str] = []

    def note(part: TextDelta) -> TextDelta:
        given.append(part.text)
        return part

    asked = await ask("process_output_stream", on_text(make), on_text(note), script=[["a", "b"]])
    assert given == expected
    assert asked.seen.result.text == "".join(expected)
    assert joined(asked.seen.result.messages) == (["".join(expected)] if expected else [])
    if asked.seen.chunks is not None:
        assert texts(asked.seen.chunks) == expected


async def test_4_process_output_stream_held_text_is_flushed_before_the_end(ask: Ask) -> None:
    """A list makes room for what was held: it comes before the chunk that ends its part."""

    def hold(args: Any) -> Any:
        held = args.state.setdefault("held", [])
        if is_text(args):
            held.append(args.part.text)
            return None
        if args.part.type == "text-end":
            return [TextDelta(args.part.id, "".join(held)), args.part]
        return args.part

    asked = await ask("process_output_stream", hold, script=[["a", "b", "c"]])
    assert asked.seen.result.text == "abc"
    if asked.seen.chunks is not None:
        assert [c.type for c in asked.seen.chunks][3:6] == ["text-start", "text-delta", "text-end"]


async def test_4_process_output_stream_a_chunk_of_another_type_takes_the_place(ask: Ask) -> None:
    """A piece of text may become data, which goes on as data does."""
    given: list[str] = []

    def note(args: Any) -> Any:
        given.append(args.part.type)
        return args.part

    as_data = on_text(lambda part: {"type": "data-text", "data": part.text})
    asked = await ask("process_output_stream", as_data, note)
    assert asked.seen.result.text == ""
    assert not {"text-delta", "data-text"} & set(given)
    if asked.seen.chunks is not None:
        assert [c.to_wire()["data"] for c in asked.seen.chunks if c.type == "data-text"] == ["a"]


@pytest.mark.parametrize("bad", [7, "text", [7], ["text"], [None], {"type": 7}, {"text": "x"}])
async def test_4_process_output_stream_what_is_no_chunk_is_an_error(ask: Ask, bad: Any) -> None:
    """Nothing that came with it, or after it, reaches the client."""
    asked = await ask("process_output_stream", on_text(lambda _: bad), script=[["a", "b"]])
    error = asked.seen.error
    assert isinstance(error, ProcessorError)
    assert (error.processor_id, error.hook) == ("p0", "process_output_stream")
    if asked.seen.chunks is not None:
        assert texts(asked.seen.chunks) == []


# --- the three hooks that return messages -------------------------------------------------------

MESSAGE_HOOKS = ["process_output_step", "process_tool_result", "process_output_result"]
SCRIPTS: dict[str, list[Any]] = {
    "process_output_step": [["one"]],
    "process_tool_result": [["one", CALL], [""]],
    "process_output_result": [["one"]],
}


def last_replaced(messages: Any) -> list[Any]:
    """The messages, the last of them with other text in front."""
    *rest, last = messages
    return [*rest, replace(last, id="new", parts=[TextPart("new "), *last.parts])]


def in_place(messages: MessageList) -> MessageList:
    """The list, its last message replaced by one with other text in front."""
    last = messages.all[-1]
    messages.replace(last.id, *last_replaced([last]))
    return messages


FORMS: dict[str, Callable[[Any], Any]] = {
    "list": lambda args: last_replaced(args.messages),
    "MessageList": lambda args: in_place(args.message_list),
    "None": lambda args: in_place(args.message_list) and None,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("hook", MESSAGE_HOOKS)
async def test_4_output_messages_are_replaced_or_changed_in_place(
    ask: Ask, hook: str, form: str
) -> None:
    """The next processor sees them, and they are what is stored."""
    given: list[list[str]] = []
    asked = await ask(
        hook, FORMS[form], lambda args: given.append(joined(args.messages)), script=SCRIPTS[hook]
    )
    assert [messages[-1] for messages in given] == ["new one"]
    assert joined(asked.seen.result.messages)[0] == "new one"
    if hook == "process_tool_result":
        assert asked.prompts[1][1] == ("assistant", "new one")


@pytest.mark.parametrize("hook", MESSAGE_HOOKS)
async def test_4_output_messages_none_is_no_change(ask: Ask, hook: str) -> None:
    """The response stays as it is."""
    asked = await ask(hook, lambda _: None, script=SCRIPTS[hook])
    assert joined(asked.seen.result.messages) == ["one"]
    assert asked.seen.result.text == "one"


async def test_4_process_output_step_empty_list_is_no_change(ask: Ask) -> None:
    """As a guardrail ends that has nothing to say; the tools of the step run as well."""
    asked = await ask("process_output_step", lambda _: [], script=[["one", CALL], ["two"]])
    assert joined(asked.seen.result.messages) == ["one", "two"]
    assert [r.result for r in asked.seen.result.tool_results] == ["meaning of x"]


async def test_4_process_output_step_what_is_removed_on_purpose_is_gone(ask: Ask) -> None:
    """From the message list, with an empty list or None returned; from a list that lacks it."""

    def remove(args: Any) -> Any:
        args.message_list.remove_by_ids([args.messages[-1].id])
        return []

    for hook in (remove, lambda args: args.messages[:-1]):
        asked = await ask("process_output_step", hook, script=[["one"]])
        assert asked.seen.result.messages == []


async def test_4_process_output_step_a_call_that_is_removed_is_not_executed(ask: Ask) -> None:
    """One whose arguments it rewrites in the message is executed with those."""

    def rewrite(args: Any) -> None:
        for part in list(args.messages[-1].parts):
            if isinstance(part, ToolInvocationPart):
                if part.args == {"word": "bad"}:
                    args.messages[-1].parts.remove(part)
                else:
                    part.args = {"word": "good"}

    script = [["one", CALL, call("lookup", {"word": "bad"})], ["two"]]
    asked = await ask("process_output_step", rewrite, script=script)
    assert [r.result for r in asked.seen.result.tool_results] == ["meaning of good"]
    assert [m[0] for m in asked.prompts[1]] == ["user", "assistant", "tool"]


async def test_4_process_output_result_empty_list_removes_the_response(ask: Ask) -> None:
    """There an empty list says what it says."""
    asked = await ask("process_output_result", lambda _: [])
    assert asked.seen.result.messages == []
    assert asked.seen.result.text == ""


async def test_4_process_output_result_rewrites_the_results_text(ask: Ask) -> None:
    """The text of the result is the stored one where that was changed, else that of the steps."""

    def redact(args: Any) -> Any:
        return [Message.assistant(m.text.replace("one", "***")) for m in args.messages]

    script = [["one ", CALL], ["two"]]
    asked = await ask("process_output_result", redact, script=script)
    assert asked.seen.result.text == "*** two"
    assert joined(asked.seen.result.messages) == ["*** ", "two"]

    def metadata_only(args: Any) -> Any:
        args.messages[0].metadata = {"checked": True}
        return args.messages

    asked = await ask("process_output_result", metadata_only, script=script)
    assert asked.seen.result.text == "one two"
    assert asked.seen.result.messages[0].metadata == {"checked": True}


async def test_4_process_output_result_that_changes_nothing_leaves_the_results_text(
    ask: Ask,
) -> None:
    """It stays the text of the steps, as the client saw it, where an earlier hook edited."""

    def edit(args: Any) -> None:
        args.messages[-1].parts[0].text = "edited"

    edits = [processor("edit", process_output_step=edit)]
    looks = [processor("look", process_output_result=lambda _: None)]
    for chain in (edits, [*edits, *looks]):
        asked = await ask("process_input_step", output_processors=chain, script=["one"])
        assert asked.seen.result.text == "one"
        assert joined(asked.seen.result.messages) == ["edited"]


async def test_4_process_output_result_leaves_the_input_alone(ask: Ask) -> None:
    """It returns the messages of its phase; the question is not among them and stays."""
    lists: list[MessageList] = []

    def last_only(args: Any) -> Any:
        lists.append(args.message_list)
        return args.messages[-1:]

    asked = await ask("process_output_result", last_only, script=[["one", CALL], ["two"]])
    assert joined(lists[0].all) == ["hi", "two"]
    assert joined(asked.seen.result.messages) == ["two"]


NEW = st.text(alphabet="xyz", min_size=1, max_size=3).map(Message.assistant)


@given(st.data())
async def test_4_a_returned_response_is_reconciled_with_the_message_list(
    data: st.DataObject,
) -> None:
    """Any selection, order and mixture of the run's messages and new ones is what is stored."""
    steps = data.draw(st.integers(1, 4))
    fresh = data.draw(st.lists(NEW, max_size=3))
    picks = data.draw(st.permutations(range(steps + len(fresh))))
    picks = picks[: data.draw(st.integers(0, len(picks)))]
    wanted: list[str] = []

    def mix(args: Any) -> Any:
        pool = [*args.messages, *fresh]
        wanted.extend(pool[i].id for i in picks)
        return [pool[i] for i in picks]

    script: list[Any] = [[f"s{i}", call("lookup", {"word": "x"})] for i in range(steps - 1)]
    agent = Agent(
        model=ScriptedModel([*script, ["end"]]),
        tools=[lookup_into([])],
        output_processors=[processor(process_output_result=mix)],
    )
    result = await agent.generate("hi")
    assert [message.id for message in result.messages] == wanted


BAD: dict[str, tuple[Any, str]] = {
    "foreign list": (MessageList(), "another MessageList"),
    "dict": ({"messages": []}, "returned dict"),
    "text": ("one", "returned str"),
    "no message": ([7], "a message is"),
    "wrong key": ([{"role": "assistant", "txt": "x"}], "unknown key 'txt'"),
    "one id twice": ([Message("assistant", id="m"), Message("assistant", id="m")], "one id twice"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("hook", MESSAGE_HOOKS)
async def test_4_output_messages_a_wrong_return_value_is_an_error(
    ask: Ask, hook: str, name: str
) -> None:
    """It names the processor, the hook and what is wrong; the step is void."""
    value, told = BAD[name]
    asked = await ask(hook, lambda _: value, script=SCRIPTS[hook])
    error = asked.seen.error
    assert isinstance(error, ProcessorError)
    assert (error.processor_id, error.hook) == ("p0", hook)
    assert told in str(error)
    assert asked.seen.result.messages == []
