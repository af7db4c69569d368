"""Every operator of the library, held to the laws of operators by the kit that users have."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from streampipe import MessageList, StepResult, TextDelta, ToolCall, ToolResult, TripWire, Usage
from streampipe import operators as ops
from streampipe.contracts import ModelRequest, OutputResult
from streampipe.errors import OperatorError
from streampipe.operators import ModelAnswer, ModelCall, StepInput
from streampipe.operators._operator import REGISTRY
from streampipe.testing import OPERATOR_LAWS, ScriptedModel, check_operator

# Ten times the profile, which is made for whole runs: a case of an operator takes milliseconds.
EXAMPLES = max(1_000, 10 * settings().max_examples)
FEW = EXAMPLES // 10  # for the operators of hooks, which are one function
KEYS = st.lists(st.sampled_from(["key", "k", "e", "y", " ", "ab", "."])).map("".join)
CHUNKS = st.builds(TextDelta, st.sampled_from("01"), st.text(max_size=3)) | st.just(
    ToolCall("t", "n")
)
TAGGED = st.lists(st.sampled_from(["<t>", "</t>", "a", "<", "t>", " "])).map("".join)

MODEL = ScriptedModel([["never asked"]])


class Same:
    """A processor that passes everything."""

    def __init__(self, name: str = "same") -> None:
        """Take a name."""
        self.id = name

    def process_output_stream(self, args: Any) -> Any:
        """Pass the chunk."""
        return args.part


class Later(Same):
    """The same, some turns later."""

    async def process_output_stream(self, args: Any) -> Any:
        """Pass the chunk."""
        await asyncio.sleep(0)
        return args.part


async def moody(item: Any) -> Any:
    """Take a different time for different elements."""
    await asyncio.sleep(0.01 * (len(repr(item)) % 3))
    return item


async def wanted(item: Any) -> bool:
    """Take a different time, and leave some out."""
    await moody(item)
    return bool(len(repr(item)) % 4)


async def allowed(text: str) -> bool:
    """Allow it, after a different time for each."""
    await moody(text)
    return True


def hold_one(kept: list[Any], item: Any) -> list[Any]:
    """One behind."""
    kept.append(item)
    return [kept.pop(0)] if len(kept) > 1 else []


def look(_: Any, args: Any) -> Any:
    """A hook that changes nothing; `process_input` has to give the conversation back."""
    return args.message_list if type(args).__name__ == "ProcessInputArgs" else None


def hooked(hook: str) -> list[Any]:
    """A processor with this hook, which only looks."""
    return [type("Looks", (), {"id": "looks", hook: look})()]


def failing(hook: str) -> Callable[[Any], Any]:
    """The hook's operator, of a processor whose hook is the given function."""

    def make(boom: Callable[..., Any]) -> Any:
        processor = type("Fails", (), {"id": "fails", hook: lambda self, args: boom(args)})()
        return getattr(ops, hook)([processor])

    return make


def held(
    make: Callable[..., Any], max_examples: int = EXAMPLES, **promises: Any
) -> Callable[[], None]:
    """A check of what `make` makes."""
    return lambda: check_operator(make, max_examples=max_examples, **promises)


CHECKS: dict[str, Callable[[], None]] = {
    "map": held(lambda: ops.map(lambda c: c), text_of_whole=str, faulty=ops.map),
    "filter": held(lambda: ops.filter(lambda c: c.type != "source"), drops=True, faulty=ops.filter),
    "flat_map": held(lambda: ops.flat_map(lambda c: [c]), faulty=ops.flat_map),
    "scan": held(lambda: ops.scan(operator.add, 0), kind="any", elements=st.integers()),
    "stateful": held(
        lambda: ops.stateful(list[Any], hold_one, lambda kept: kept),
        kind="any",
        faulty=lambda boom: ops.stateful(list[Any], boom),
    ),
    "tap": held(lambda: ops.tap(lambda c: None), text_of_whole=str, faulty=ops.tap),
    "take_while": held(
        lambda: ops.take_while(lambda c: c.type != "text-end"),
        ends_early=True,
        drops=True,
        faulty=ops.take_while,
    ),
    "distinct_until_changed": held(ops.distinct_until_changed, kind="any", drops=True),
    "of_type": held(lambda: ops.of_type(TextDelta), kind="any", elements=CHUNKS, drops=True),
    "map_text": held(lambda: ops.map_text(str.upper), text_of_whole=str.upper, faulty=ops.map_text),
    "text": held(ops.text, drops=True),
    "reasoning": held(ops.reasoning, drops=True),
    "accumulate_text": held(ops.accumulate_text, drops=True, chunking=False),
    "tool_calls": held(ops.tool_calls, drops=True),
    "redact": held(
        lambda: ops.redact("key", "*"), texts=KEYS, text_of_whole=lambda t: t.replace("key", "*")
    ),
    "replace": held(
        lambda: ops.replace("key", "*", parts=("text", "reasoning")),
        texts=KEYS,
        text_of_whole=lambda t: t.replace("key", "*"),
    ),
    "block": held(lambda: ops.block("key"), texts=KEYS, fails=TripWire),
    "detect": held(lambda: ops.detect("key", lambda m: None), texts=KEYS, text_of_whole=str),
    "rechunk": held(ops.rechunk, text_of_whole=str),
    "stop_at": held(lambda: ops.stop_at("key"), texts=KEYS, ends_early=True, drops=True),
    "limit_text": held(lambda: ops.limit_text(chars=5), ends_early=True, drops=True),
    "split_tags": held(
        lambda: ops.split_tags("t"),
        texts=TAGGED,
        drops=True,
        # `place` takes one `<` for another; tests/operators/test_text_flow.py has what it is about.
        laws=[law for law in OPERATOR_LAWS if law != "place"],
    ),
    "json_objects": held(ops.json_objects, texts=st.just('{"a": [1, "b"]}'), fails=OperatorError),
    "json_lines": held(ops.json_lines, texts=st.just("[1]\n{}\n"), fails=OperatorError),
    "throttle": held(lambda: ops.throttle(0.015), kind="any", timed=True, drops=True),
    "debounce": held(lambda: ops.debounce(0.015), kind="any", timed=True, drops=True),
    "heartbeat": held(lambda: ops.heartbeat(0.5), timed=True),
    "timeout_first": held(lambda: ops.timeout_first(60), timed=True, fails=OperatorError),
    "timeout_idle": held(lambda: ops.timeout_idle(60), timed=True, fails=OperatorError),
    "deadline": held(lambda: ops.deadline(3600), timed=True, fails=OperatorError),
    "batch": held(lambda: ops.batch(3), text_of_whole=str, allowance=4),
    "smooth": held(lambda: ops.smooth(0.01), timed=True, text_of_whole=str),
    "map_async": held(
        lambda: ops.map_async(moody, concurrency=3),
        allowance=5,
        faulty=lambda boom: ops.map_async(boom, concurrency=3),
    ),
    "filter_async": held(
        lambda: ops.filter_async(wanted, concurrency=3), kind="any", drops=True, allowance=5
    ),
    "check_async": held(lambda: ops.check_async(allowed, window=5), allowance=30),
    "catch_api_error": held(lambda: ops.catch_api_error(lambda error, n: False), text_of_whole=str),
    "retry_api": held(ops.retry_api, text_of_whole=str),
    "fallback": held(lambda: ops.fallback(ops.of()), text_of_whole=str),
    "feedback": held(lambda: ops.feedback(lambda item, _: ops.of(item)), text_of_whole=str),
    "branch": held(
        lambda: ops.branch(lambda c: isinstance(c, ToolCall), Same(), ops.map_text(str.upper)),
        text_of_whole=str.upper,
    ),
    "parallel": held(lambda: ops.parallel(Same("a"), Later("b")), text_of_whole=str),
    "process": held(lambda: ops.process(Same()), text_of_whole=str),
    "process_all": held(lambda: ops.process_all([Same("a"), Later("b")]), text_of_whole=str),
    "to_wire": held(ops.to_wire, kind="any", elements=CHUNKS),
    "to_jsonl": held(ops.to_jsonl, kind="any", elements=CHUNKS),
    "to_sse": held(ops.to_sse, kind="any", elements=CHUNKS),
    "materialize_errors": held(ops.materialize_errors, passes_errors=False, text_of_whole=str),
    "raise_errors": held(ops.raise_errors, text_of_whole=str),
}
CHUNKS_OF_TOOLS = st.just(TextDelta("0", "a")) | st.builds(
    ToolResult, st.sampled_from("ab"), st.just("n"), st.integers(0, 9)
)
CHECKS["process_api_error"] = held(
    lambda: ops.process_api_error(hooked("process_api_error")), FEW, text_of_whole=str
)
CHECKS["process_tool_result"] = held(
    lambda: ops.process_tool_result(hooked("process_tool_result")),
    FEW,
    kind="any",
    elements=CHUNKS_OF_TOOLS,
)
# Their elements are none of chunks; no hook changes one here, so runs can be given the same.
ELEMENTS: dict[str, st.SearchStrategy[Any]] = {
    "process_input": st.builds(MessageList, st.lists(st.text(min_size=1), max_size=2)),
    "process_input_step": st.builds(StepInput, st.none()),
    "process_llm_request": st.builds(lambda: ModelCall(MODEL, ModelRequest([]))),
    "process_llm_response": st.builds(lambda: ModelAnswer(ModelCall(MODEL, ModelRequest([])))),
    "process_output_step": st.builds(StepResult, st.integers(0, 9)),
    "process_output_result": st.builds(lambda: OutputResult("", Usage(), "stop", [])),
}
for name, made_of in ELEMENTS.items():
    CHECKS[name] = held(
        partial(getattr(ops, name), hooked(name)),
        FEW,
        kind="any",
        elements=made_of,
        faulty=failing(name),
        key=id,
    )


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", CHECKS)
def test_an_operator_keeps_the_laws(name: str) -> None:
    """On generated streams, with what it does not promise said."""
    CHECKS[name]()


def test_no_operator_is_left_out() -> None:
    """A new one is held to the laws too."""
    assert set(CHECKS) == set(REGISTRY)
