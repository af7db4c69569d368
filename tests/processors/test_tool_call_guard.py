"""`ToolCallGuard`: what may be called, with what, how often, and that nothing else starts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streampipe import Agent, Chunk, tool
from streampipe.chunks import ToolCall, ToolCallInputStart, ToolResult
from streampipe.contracts import ProcessorViolation
from streampipe.errors import ConfigurationError, ProcessorError
from streampipe.processors import ToolCallGuard
from streampipe.testing import ScriptedModel, call, check_processor, run_virtual

EXAMPLES = max(50, settings().max_examples // 2)  # 1,000 in the profile "laws"
NAMES = ["look", "pay"]


class Ran:
    """Tools that write down how they ran."""

    def __init__(self) -> None:
        """Start with none."""
        self.calls: list[tuple[str, Any]] = []

        @tool
        def look(q: str = "") -> str:
            """Look something up."""
            self.calls.append(("look", q))
            return f"much about {q}"

        @tool
        def pay(amount: int = 0) -> str:
            """Pay an amount."""
            self.calls.append(("pay", amount))
            return "paid"

        self.tools = [look, pay]


def agent_of(ran: Ran, script: Any, guard: ToolCallGuard, **options: Any) -> Agent:
    """An agent with these tools that plays the script."""
    model = ScriptedModel(script)
    return Agent(model=model, tools=ran.tools, output_processors=[guard], **options)


async def test_a_refused_call_keeps_the_whole_step_from_starting() -> None:
    """The step's other calls too; the step is void, and the reason names tool and rule."""
    ran, told = Ran(), list[ProcessorViolation]()
    guard = ToolCallGuard(deny=["pay"], on_violation=told.append)
    script = [["On it. ", call("look", {"q": "x"}), call("pay", {"amount": 4711})]]
    result = await agent_of(ran, script, guard).generate("hi")
    assert (ran.calls, result.text, result.tool_calls, result.messages) == ([], "", [], [])
    assert result.tripwire is not None
    assert result.tripwire.processor_id == "tool-call-guard"
    assert result.tripwire.reason == "call of 'pay': this tool may not be called"
    assert result.tripwire.metadata == {"tool": "pay", "rule": "deny"}
    assert "4711" not in repr((result.tripwire, told))
    assert len(told) == 1


async def test_what_is_not_allowed_is_refused() -> None:
    """A tool that there is, and one that there is not."""
    for name in ("pay", "no_such_tool"):
        ran = Ran()
        guard = ToolCallGuard(["look"])
        script = [[call("look", {"q": "x"})], [call(name)]]
        result = await agent_of(ran, script, guard).generate("hi")
        assert ran.calls == [("look", "x")]
        assert result.tripwire is not None
        assert result.tripwire.metadata == {"tool": name, "rule": "allow"}
        assert len(result.steps) == 1, "the accepted step stays"


async def test_nothing_at_all_may_be_allowed() -> None:
    """An empty list is no missing one."""
    ran = Ran()
    result = await agent_of(ran, [[call("look")]], ToolCallGuard([])).generate("hi")
    assert (ran.calls, result.finish_reason) == ([], "other")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(False, "its arguments are not allowed"), ("not today", "not today"), ("", "")],
)
async def test_a_check_refuses_by_its_answer(answer: Any, reason: str) -> None:
    """No, or a text, even an empty one."""
    ran = Ran()
    guard = ToolCallGuard(check={"pay": lambda _: answer})
    result = await agent_of(ran, [[call("pay", {"amount": 4711})]], guard).generate("hi")
    assert ran.calls == []
    assert result.tripwire is not None
    assert result.tripwire.reason == f"call of 'pay': {reason}"


async def test_a_check_gets_what_the_tool_would() -> None:
    """The arguments as processors before the guard left them, also in the same hook."""
    seen: list[Any] = []

    class Lower:
        id = "lower"

        def process_output_step(self, args: Any) -> None:
            """Lower every amount."""
            for made in args.tool_calls:
                args.message_list.update_tool_invocation(
                    made.tool_call_id, args={"amount": 1}, state="call"
                )

    ran = Ran()

    def note(arguments: Any) -> bool:
        seen.append(arguments)
        return True

    guard = ToolCallGuard(check={"pay": note})
    model = ScriptedModel([[call("pay", {"amount": 900})], ["done"]])
    agent = Agent(model=model, tools=ran.tools, output_processors=[Lower(), guard])
    await agent.generate("hi")
    assert (seen, ran.calls) == ([{"amount": 1}], [("pay", 1)])


async def test_a_check_never_sees_what_is_no_json() -> None:
    """The call fails, and the model is told; it counts, and its name must be allowed."""
    broken: Any = ToolCall("c", "pay", None, '{"amount": 4')
    ran = Ran()
    guard = ToolCallGuard(check={"pay": lambda args: bool(args["amount"])}, max_calls=1)
    model = ScriptedModel([[broken], [call("look")]])
    agent = Agent(model=model, tools=ran.tools, output_processors=[guard])
    result = await agent.generate("hi")
    assert (ran.calls, len(model.requests)) == ([], 2)
    assert result.tripwire is not None
    assert result.tripwire.metadata == {"tool": "look", "rule": "max_calls"}
    denied = await agent_of(ran, [[broken]], ToolCallGuard(deny=["pay"])).generate("hi")
    assert denied.tripwire is not None


@pytest.mark.parametrize("answer", [None, 1, asyncio.sleep])
async def test_a_check_that_answers_something_else_lets_nothing_through(answer: Any) -> None:
    """The run fails, by the guard's name: a forgotten `return` is no yes."""
    ran = Ran()
    guard = ToolCallGuard(check={"pay": lambda _: answer})
    with pytest.raises(ProcessorError, match="tool-call-guard"):
        await agent_of(ran, [[call("pay")]], guard).generate("hi")
    assert ran.calls == []


async def test_a_check_that_raises_lets_nothing_through() -> None:
    """The run fails, without the arguments in the message."""
    ran = Ran()
    guard = ToolCallGuard(check={"pay": lambda args: args[4711]})
    with pytest.raises(ProcessorError, match="tool-call-guard") as caught:
        await agent_of(ran, [[call("pay", {"amount": 4711})]], guard).generate("hi")
    assert ran.calls == []
    assert "amount" not in str(caught.value)


@given(
    st.lists(st.lists(st.sampled_from(NAMES), max_size=3), max_size=5),
    st.none() | st.integers(1, 4),
    st.dictionaries(st.sampled_from(NAMES), st.integers(1, 3)),
)
def test_limits_hold_over_the_run(
    steps: list[list[str]], most: int | None, limits: dict[str, int]
) -> None:
    """A step runs if all calls up to its end are within every limit; else none of it does."""
    if most is not None:
        limits = {name: limit for name, limit in limits.items() if limit <= most}
    if most is None and not limits:
        most = 5
    script: list[Any] = [[*(call(name) for name in step), "."] for step in steps if step]
    ran = Ran()
    guard = ToolCallGuard(max_calls=most, max_calls_per_tool=limits)
    agent = agent_of(ran, [*script, ["end"]], guard)
    result = run_virtual(agent.generate("hi", max_steps=20))
    expected: list[str] = []
    fits = True
    for step in steps:
        whole = [*expected, *step]
        over = [name for name, limit in limits.items() if whole.count(name) > limit]
        fits = not over and (most is None or len(whole) <= most)
        if not fits:
            break
        expected = whole
    assert sorted(name for name, _ in ran.calls) == sorted(expected)
    assert (result.tripwire is None) is fits


async def test_a_rejected_answer_counts_for_nothing() -> None:
    """Its calls neither ran nor use up a limit, and the model is told why it was rejected."""
    ran = Ran()
    guard = ToolCallGuard(max_calls=2, deny=["pay"], strategy="retry")
    model = ScriptedModel(
        [
            [call("look", {"q": "a"})],
            [call("look", {"q": "b"}), call("pay", {"amount": 4711})],
            [call("look", {"q": "c"})],
            ["done"],
        ]
    )
    agent = Agent(model=model, tools=ran.tools, output_processors=[guard], max_processor_retries=1)
    result = await agent.generate("hi")
    assert ran.calls == [("look", "a"), ("look", "c")]
    assert (result.text, result.retries, result.tripwire) == ("done", 1, None)
    feedback = repr(model.requests[2].prompt)
    assert "call of 'pay': this tool may not be called" in feedback
    assert "4711" not in feedback


async def test_an_answer_that_another_processor_rejects_counts_for_nothing() -> None:
    """Also when that comes after the guard has counted."""

    class Once:
        id = "once"

        def process_output_step(self, args: Any) -> None:
            """Reject the first answer."""
            if args.retry_count == 0:
                args.abort("again", retry=True)

    ran = Ran()
    agent = Agent(
        model=ScriptedModel([[call("look")], [call("look")], ["done"]]),
        tools=ran.tools,
        output_processors=[ToolCallGuard(max_calls=1), Once()],
        max_processor_retries=1,
    )
    result = await agent.generate("hi")
    assert (len(ran.calls), result.text) == (1, "done")


SEARCH: list[Any] = [
    ToolCallInputStart("s", "search", provider_executed=True),
    ToolCall("s", "search", {"q": "secret"}, provider_executed=True),
    ToolResult("s", "search", "found", provider_executed=True),
    "It is so.",
]


@pytest.mark.parametrize(
    ("guard", "rule", "seen"),
    [
        (ToolCallGuard(["look"]), "allow", []),
        (ToolCallGuard(check={"search": lambda args: "q" not in args}), "check", ["start"]),
        (ToolCallGuard(max_calls_per_tool={"search": 1}), "max_calls_per_tool", SEARCH[:3]),
        (ToolCallGuard(max_calls=1), "max_calls", SEARCH[:3]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_the_provider_runs_is_looked_at_in_the_stream(
    guard: ToolCallGuard, rule: str, seen: list[Any]
) -> None:
    """The client sees nothing from the refused call on; the run is blocked at once."""
    again = [ToolCall("t", "search", {"q": "more"}, provider_executed=True)]
    agent = Agent(model=ScriptedModel([[*SEARCH[:3], *again, "It is."]]), output_processors=[guard])
    async with agent.stream("hi") as run:
        chunks: list[Chunk] = [chunk async for chunk in run]
        result = await run.result()
    kinds = ("tool-call", "tool-call-input-streaming-start", "tool-result")
    assert len([chunk for chunk in chunks if chunk.type in kinds]) == len(seen)
    assert result.tripwire is not None
    assert result.tripwire.metadata == {"tool": "search", "rule": rule}
    assert "It is" not in repr(chunks)


async def test_what_the_provider_runs_may_be_allowed() -> None:
    """It passes as it is, and is not counted a second time at the step's end."""
    guard = ToolCallGuard(["search"], max_calls=1)
    agent = Agent(model=ScriptedModel([SEARCH]), output_processors=[guard])
    result = await agent.generate("hi")
    assert (result.text, result.tripwire) == ("It is so.", None)


@pytest.mark.parametrize(
    "chunk",
    [
        ToolCall("s", "look", None, '{"q', provider_executed=True),
        ToolResult("s", "search", "found", provider_executed=True),
    ],
)
async def test_what_cannot_be_looked_at_is_refused(chunk: Any) -> None:
    """Arguments of the provider's call that are no JSON; a result whose call nobody saw."""
    agent = Agent(model=ScriptedModel([[chunk]]), output_processors=[ToolCallGuard(["look"])])
    assert (await agent.generate("hi")).tripwire is not None


async def test_runs_at_once_count_by_themselves() -> None:
    """One guard in two runs."""
    guard, ran = ToolCallGuard(max_calls=1), Ran()
    agents = [agent_of(ran, [[call("look", {"q": q})], [q]], guard) for q in "ab"]
    results = await asyncio.gather(*(agent.generate("hi") for agent in agents))
    assert [result.text for result in results] == ["a", "b"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "give allow, deny, check, max_calls or max_calls_per_tool"),
        ({"deny": ["pay", ""]}, "deny must be a list of names"),
        ({"allow": [1]}, "allow must be a list of names"),
        ({"allow": ["a"], "strategy": "warn"}, "strategy must be one of block, retry, not 'warn'"),
        ({"max_calls": 0}, "max_calls must be a whole number of 1 or more, not 0"),
        ({"max_calls_per_tool": {"a": True}}, r"max_calls_per_tool\['a'\] must be a whole number"),
        ({"max_calls_per_tool": [1]}, "max_calls_per_tool must be a dict"),
        ({"max_calls_per_tool": {1: 1}}, "max_calls_per_tool must be a list of names"),
        ({"check": {"a": 7}}, r"check\['a'\] must be a function, not 7"),
        ({"check": {"a": asyncio.sleep}}, r"check\['a'\] must be a plain function"),
        ({"check": {"a": bool}, "deny": ["a"]}, "check names 'a', which deny or allow rules out"),
        ({"check": {"a": bool}, "allow": ["b"]}, "check names 'a', which deny or allow rules out"),
        ({"allow": ["a"], "deny": ["a"]}, "allow names 'a', which deny or allow rules out"),
        ({"max_calls": 1, "max_calls_per_tool": {"a": 2}}, r"\['a'\] is 2, which is never reached"),
    ],
)
def test_wrong_options(options: dict[str, Any], told: str) -> None:
    """Each is refused when the guard is built, by the class's name."""
    with pytest.raises(ConfigurationError, match=f"^ToolCallGuard: .*{told}"):
        ToolCallGuard(**options)


def test_it_keeps_the_laws() -> None:
    """Whatever the stream; and in whole runs, whatever the model calls."""
    check_processor(
        lambda: ToolCallGuard(max_calls=2, deny=["a"]),
        max_examples=EXAMPLES,
        fails=BaseException,
    )
