"""What a bad return value of a hook gets: an error that names the processor and the hook."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from streampipe import Message, MessageList
from streampipe.contracts import HOOKS
from streampipe.errors import ProcessorError
from tests.contract.guards import Runner, guarded, model_of, types


async def coroutine() -> str:
    """A function of which the call's result is not a value yet."""
    return "value"


def untyped(word):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - the point of it
    """A tool without type hints."""
    return word


FOREIGN = ["another MessageList", "args.message_list"]
MESSAGES = ["return a list of messages", "args.message_list"]


@dataclass
class Returned:
    """A hook's bad return value: made anew for each run, and the words that the error has."""

    hook: str
    make: Callable[[], Any]
    words: list[str] = field(default_factory=list[str])


BOTH = {"messages": [], "message_list": MessageList()}
RETURNS: dict[str, Returned] = {
    "None for the messages": Returned("process_input", lambda: None, ["returned None", "messages"]),
    "text for messages": Returned("process_input", lambda: "hi", ["returned str", *MESSAGES]),
    "no message": Returned("process_input", lambda: [7], ["a message is", "int"]),
    "message with a wrong key": Returned(
        "process_input", lambda: [{"role": "user", "txt": "x"}], ["unknown key 'txt'", "known: "]
    ),
    "one id twice": Returned(
        "process_input", lambda: [Message("user", id="m"), Message("user", id="m")], ["id twice"]
    ),
    "wrong key of the result": Returned(
        "process_input", lambda: {"system": []}, ["unknown key 'system'", "system_messages"]
    ),
    "wrong key of a step": Returned(
        "process_input_step", lambda: {"tool": []}, ["unknown key 'tool'", "tools"]
    ),
    "messages twice": Returned(
        "process_input_step", lambda: BOTH, ["both 'messages' and 'message_list'"]
    ),
    "unknown model of a step": Returned(
        "process_input_step", lambda: {"model": "opnai/gpt"}, ["unknown provider 'opnai'"]
    ),
    "untyped tool of a step": Returned(
        "process_input_step", lambda: {"tools": [untyped]}, ["'untyped'", "type hint"]
    ),
    "prompt of no messages": Returned(
        "process_llm_request", lambda: {"prompt": [7]}, ["a prompt message is", "7"]
    ),
    "prompt with a wrong key": Returned(
        "process_llm_request",
        lambda: {"prompt": [{"role": "user", "text": "x"}]},
        ["unknown key 'text'", "role, content"],
    ),
    "replay of no chunks": Returned(
        "process_llm_request",
        lambda: {"response": [{"txt": 1}]},
        ["a chunk is an object", "'type'"],
    ),
    "a value of a hook for effects": Returned(
        "process_llm_response", lambda: 7, ["for side effects", "return None"]
    ),
    "wrong key of an error result": Returned(
        "process_api_error", lambda: {"again": True}, ["unknown key 'again'", "retry"]
    ),
    "a number for a chunk": Returned(
        "process_output_stream", lambda: 7, ["returned int", "return a chunk"]
    ),
    "text for a chunk": Returned(
        "process_output_stream", lambda: "text", ["returned str", "return a chunk"]
    ),
    "chunk with a wrong key": Returned(
        "process_output_stream",
        lambda: {"type": "text-delta", "payload": {"id": "0", "txt": "x"}},
        ["text-delta", "unknown key 'txt'"],
    ),
    "coroutine for a chunk": Returned(
        "process_output_stream", coroutine, ["returned a coroutine", "async def"]
    ),
    "list with a coroutine": Returned(
        "process_output_stream", lambda: [coroutine()], ["returned a coroutine", "async def"]
    ),
    **{
        f"{hook}: foreign message list": Returned(hook, MessageList, FOREIGN)
        for hook in (
            "process_input",
            "process_input_step",
            "process_output_step",
            "process_tool_result",
            "process_output_result",
        )
    },
    "foreign message list of a step": Returned(
        "process_input_step", lambda: {"message_list": MessageList()}, FOREIGN
    ),
    **{
        f"{hook}: number for messages": Returned(hook, lambda: 7, ["returned int", *MESSAGES])
        for hook in ("process_output_step", "process_tool_result", "process_output_result")
    },
}


@pytest.mark.parametrize("name", RETURNS)
async def test_a_bad_return_value_of_a_hook_names_processor_and_hook(
    run: Runner, name: str
) -> None:
    """And says what to return instead; the run fails closed."""
    case = RETURNS[name]
    seen = await run(guarded(case.hook, lambda _: case.make()))
    error = seen.error
    assert isinstance(error, ProcessorError)
    assert (error.processor_id, error.hook) == ("guard", case.hook)
    for word in (f"processor 'guard', {case.hook}: ", *case.words):
        assert word in str(error)
    if seen.chunks is not None:
        assert types(seen.chunks)[-2:] == ["error", "finish"]


async def test_a_bad_hook_before_the_call_costs_no_call(run: Runner) -> None:
    """What is wrong with the input or the request is found before a model is asked."""
    for hook in ("process_input", "process_input_step", "process_llm_request"):
        agent = guarded(hook, lambda _: 7)
        assert isinstance((await run(agent)).error, ProcessorError)
        assert model_of(agent).calls == 0


@pytest.mark.parametrize("hook", [hook for hook in HOOKS if hook != "process_output_stream"])
async def test_a_coroutine_of_a_plain_hook_is_awaited(run: Runner, hook: str) -> None:
    """Between chunks a plain function may return an awaitable of its result: it costs nothing."""
    went: list[str] = []

    async def later(args: Any) -> Any:
        went.append(hook)
        return args.message_list if hook == "process_input" else None

    await run(guarded(hook, later))
    assert went
