"""`Guard`, and with it all guards that ask: rulings by place and strategy, windows, failures."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streampipe import Agent, TextDelta, TextEnd, TextStart, TripWire, tool
from streampipe import operators as ops
from streampipe.contracts import ProcessorViolation
from streampipe.errors import ConfigurationError, ProcessorError
from streampipe.operators import Verdict
from streampipe.processors import Guard, ModerationProcessor
from streampipe.testing import (
    ScriptedModel,
    call,
    check_processor,
    no_leaks,
    reasoning,
    run_virtual,
)

EXAMPLES = max(1_000, 10 * settings().max_examples)
STRATEGIES = ["block", "retry", "replace", "warn", "raise"]
ENDS = {"block", "retry", "raise"}


def decent(text: str) -> bool | str:
    """Objects to a word."""
    return "it swears" if "darn" in text else True


class Case:
    """An agent whose guard covers one place, with the word in that place."""

    def __init__(self, place: str, strategy: Any, check: Any = decent, **options: Any) -> None:
        """Build it."""
        self.told: list[ProcessorViolation] = []
        self.ran: list[str] = []

        @tool
        def look(q: str) -> str:
            """Look something up."""
            self.ran.append(q)
            return "darn it" if place == "tool-results" else "much"

        scripts: dict[str, Any] = {
            "text": [["Fine. ", "Da", "rn it? darn ", "it! ", "Bye."]],
            "reasoning": [[reasoning("Hm. darn it! "), "Bye."]],
            "tool-arguments": [[call("look", {"q": "darn"})], ["Bye."]],
            "tool-results": [[call("look", {"q": "x"})], ["Bye."]],
            "input": [["Bye."]],
        }
        self.model = ScriptedModel(scripts[place])
        covers: Any = ["text"] if place == "input" else [place]
        guard = Guard(check, strategy, covers=covers, on_violation=self.told.append, **options)
        where = "input_processors" if place == "input" else "output_processors"
        kwargs: dict[str, Any] = {where: [guard]}
        self.agent = Agent(model=self.model, tools=[look], **kwargs)
        self.sees = "darn input" if place == "input" else "Well?"

    async def result(self) -> Any:
        """How the run ends; an error is given, not raised."""
        try:
            return await self.agent.generate(self.sees)
        except ProcessorError as error:
            return error


@pytest.mark.parametrize("place", ["text", "reasoning", "tool-arguments", "tool-results", "input"])
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_what_becomes_of_a_text_by_strategy_and_place(strategy: str, place: str) -> None:
    """It is told once; the run ends by a wire, by an error or goes on, as was said."""
    case = Case(place, strategy)
    result = await case.result()
    assert [(each.processor_id, each.message) for each in case.told] == [("guard", "it swears")]
    if strategy == "raise":
        assert isinstance(result, ProcessorError)
        assert (result.processor_id, "it swears" in str(result)) == ("guard", True)
    elif strategy in ENDS or (strategy, place) == ("replace", "tool-arguments"):
        assert (result.tripwire.processor_id, result.tripwire.reason) == ("guard", "it swears")
        assert result.text == ""
    else:
        assert result.tripwire is None
        assert result.text.endswith("Bye.")


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_tool_runs_only_with_arguments_that_may_leave(strategy: str) -> None:
    """Arguments cannot be replaced by a text: there they are blocked."""
    case = Case("tool-arguments", strategy)
    await case.result()
    assert case.ran == (["darn"] if strategy == "warn" else [])


@pytest.mark.parametrize(("strategy", "kept"), [("replace", "[removed]"), ("warn", "darn it")])
async def test_the_model_is_sent_what_a_tools_result_became(strategy: str, kept: str) -> None:
    """A replacement is what the next step sees, and what the messages hold."""
    case = Case("tool-results", strategy)
    result = await case.result()
    sent = repr(case.model.requests[1])
    assert kept in sent
    assert ("darn" in sent) is (strategy == "warn")
    assert ("darn" in repr(result.messages)) is (strategy == "warn")


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_message_that_may_not_reach_the_model_does_not(strategy: str) -> None:
    """The model is not called at all where the run ends."""
    case = Case("input", strategy)
    await case.result()
    assert case.model.calls == (0 if strategy in ENDS else 1)
    assert ("darn" in repr(case.model.requests)) is (strategy == "warn")


async def test_what_stood_before_a_blocked_window_has_left_and_nothing_behind_it() -> None:
    """The client has the windows before; the step itself is void."""
    case = Case("text", "block")
    async with case.agent.stream("Well?") as run:
        seen = "".join([chunk.text async for chunk in run if isinstance(chunk, TextDelta)])
        result = await run.result()
    assert seen.startswith("Fine. ")
    assert "darn" not in seen
    assert "Bye" not in seen
    assert (result.text, result.messages) == ("", [])


async def test_a_retry_tells_the_model_why_within_the_budget() -> None:
    """The second answer is the result; the reason is in the second request."""
    model = ScriptedModel([["darn."], ["Fine."]])
    agent = Agent(model=model, output_processors=[Guard(decent, "retry")], max_processor_retries=1)
    result = await agent.generate("Well?")
    assert (result.text, result.tripwire) == ("Fine.", None)
    assert "it swears" in repr(model.requests[1])


async def test_retries_end_with_the_budget() -> None:
    """One retry may be had; the second objection ends the run."""
    model = ScriptedModel([["darn."]], repeat=True)
    agent = Agent(model=model, output_processors=[Guard(decent, "retry")], max_processor_retries=1)
    result = await agent.generate("Well?")
    assert (result.text, model.calls) == ("", 2)
    assert result.tripwire is not None


async def test_what_could_not_be_asked_has_its_cause_on_the_wire() -> None:
    """Who handles the wire outside of a run sees what went wrong."""
    text = ops.of(TextStart("0"), TextDelta("0", "Fine."), TextEnd("0"))
    with pytest.raises(TripWire, match="could not be checked") as caught:
        _ = [chunk async for chunk in ops.to_aiter(text.pipe(ops.process(Guard(broken))))]
    assert isinstance(caught.value.__cause__, OSError)


def broken(_: str) -> bool:
    """Has no answer."""
    msg = "no service"
    raise OSError(msg)


async def late(_: str) -> bool:
    """Has an answer too late."""
    await asyncio.sleep(60)
    return True


def nonsense(_: str) -> Any:
    """Gives what is no answer."""
    return 3


def forgotten(text: str) -> Any:
    """Has no `return`."""
    len(text)


async def scores(_: str) -> dict[str, float]:
    """Scores what nobody has asked about."""
    return {"So.": 0.1}


UNANSWERED = [
    pytest.param(broken, {}, "OSError", OSError, id="raises"),
    pytest.param(late, {"timeout": 2}, "within 2 s", TimeoutError, id="late"),
    pytest.param(nonsense, {}, "UnfitError", Exception, id="nonsense"),
    pytest.param(decent, {"max_checks": 0}, "budget of 0 checks", None, id="budget"),
]


@pytest.mark.parametrize("place", ["text", "reasoning", "tool-arguments", "tool-results", "input"])
@pytest.mark.parametrize(("check", "options", "why", "cause"), UNANSWERED)
def test_what_could_not_be_checked_does_not_leave(
    *, place: str, check: Any, options: Any, why: str, cause: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the strategy; logged is where it was raised, and not what it says."""
    case = Case(place, "warn", check, **options)
    result = run_virtual(case.result())
    assert why in result.tripwire.reason
    told = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert why in told[0].getMessage()
    assert (".py:" in told[0].getMessage()) is (cause is not None)
    assert all(record.exc_info is None for record in told)  # a message may quote the text
    assert result.text == ""


@pytest.mark.parametrize("place", ["text", "reasoning", "tool-arguments", "tool-results", "input"])
@pytest.mark.parametrize(("check", "options", "why", "_cause"), UNANSWERED)
def test_what_could_not_be_checked_leaves_if_told_so(
    place: str, check: Any, options: Any, why: str, _cause: Any
) -> None:
    """`error_strategy="allow"`: it leaves as it is, and the guard reports it."""
    case = Case(place, "block", check, error_strategy="allow", **options)
    result = run_virtual(case.result())
    assert (result.tripwire, result.text[-4:]) == (None, "Bye.")
    assert case.told
    assert all(why in each.message for each in case.told)


@given(
    seconds=st.lists(st.floats(0, 5), min_size=6, max_size=6),
    concurrency=st.integers(1, 6),
)
def test_windows_leave_in_order_and_each_is_asked_about_once(
    seconds: list[float], concurrency: int
) -> None:
    """However long the answers take, with no more open questions than was said."""
    windows = [f"Number {n}. " for n in range(6)]
    asked: list[str] = []
    left: list[str] = []
    answered: set[str] = set()
    running = most = 0

    async def check(text: str) -> bool:
        nonlocal running, most
        asked.append(text)
        running += 1
        most = max(most, running)
        await asyncio.sleep(seconds[len(asked) - 1])
        running -= 1
        answered.add(text)
        return True

    async def main() -> None:
        guard = Guard(check, concurrency=concurrency)
        agent = Agent(model=ScriptedModel([windows]), output_processors=[guard])
        async with agent.stream("Well?") as run:
            async for chunk in run:
                if isinstance(chunk, TextDelta):
                    assert chunk.text in answered, "it left before its verdict"
                    left.append(chunk.text)

    run_virtual(main())
    assert left == asked == windows
    assert most <= concurrency


def test_the_end_of_a_run_ends_its_questions() -> None:
    """A client that leaves cancels what is open, and no task is left."""
    begun: list[str] = []
    ended: list[str] = []

    async def check(text: str) -> bool:
        begun.append(text)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(text)
        return True

    async def main() -> None:
        model = ScriptedModel([["One. ", "Two. ", "Three."]])
        agent = Agent(model=model, output_processors=[Guard(check, timeout=None)])
        async with no_leaks(), agent.stream("Well?") as run:
            async for _ in run:
                if len(begun) == 3:
                    break

    run_virtual(main())
    assert begun == ["One. ", "Two. ", "Three."]
    assert sorted(ended) == sorted(begun)


async def test_runs_at_once_share_nothing_but_the_guard() -> None:
    """Each has its own budget of questions."""
    guard = Guard(decent, max_checks=2)
    agent = Agent(model=ScriptedModel([["One. ", "Two."]], repeat=True), output_processors=[guard])
    results = await asyncio.gather(*(agent.generate("Well?") for _ in range(3)))
    assert [result.text for result in results] == ["One. Two."] * 3


async def test_the_last_message_only() -> None:
    """Older messages have been asked about when they came."""
    guard = Guard(decent, last_message_only=True)
    agent = Agent(model=ScriptedModel([["Fine."]]), input_processors=[guard])
    messages = [
        {"role": "user", "content": "darn"},
        {"role": "assistant", "content": "Hm."},
        {"role": "user", "content": "Well?"},
    ]
    assert (await agent.generate(messages)).text == "Fine."


@pytest.mark.parametrize(
    ("said", "text", "blocked"),
    [
        (True, "So.", False),
        (None, "", True),
        (False, "", True),
        ("why", "", True),
        ("", "", True),
        (Verdict("allow"), "So.", False),
        (Verdict("replace", text="Else."), "Else.", False),
    ],
)
async def test_what_a_check_may_say(said: Any, text: str, blocked: bool) -> None:  # noqa: FBT001
    """An empty reason objects too, and a forgotten `return`; a verdict says what becomes of it."""
    agent = Agent(model=ScriptedModel([["So."]]), output_processors=[Guard(lambda _: said)])
    result = await agent.generate("Well?")
    assert (result.text, result.tripwire is not None) == (text, blocked)


@pytest.mark.parametrize(
    ("guard", "words"),
    [
        (Guard(forgotten), "check returned nothing; return True to let it leave"),
        (ModerationProcessor(check=nonsense), "give an async function"),
        (
            ModerationProcessor(check=scores),
            "a score of what is no category; categories: harassment",
        ),
        (Guard(broken), None),
    ],
    ids=["forgotten", "plain", "unknown", "theirs"],
)
async def test_whoever_runs_it_is_told_what_is_wrong_with_the_check(
    guard: Any, words: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """In our words, which quote no text, and in the log alone; of others' the class is told."""
    agent = Agent(model=ScriptedModel([["So."]]), output_processors=[guard])
    result = await agent.generate("Well?")
    assert result.tripwire is not None
    logged = caplog.messages[0]
    if words is None:
        assert "OSError" in logged
        assert "no service" not in logged
    else:
        assert words in logged
        assert words not in f"{result.tripwire}"


async def test_a_json_result_that_is_replaced_by_json_stays_json() -> None:
    """A result that was no text is given its replacement as JSON, where it is JSON."""
    seen: list[Any] = []

    @tool
    def look() -> dict[str, str]:
        """Look something up."""
        return {"said": "darn"}

    replacement = json.dumps({"said": "-"})
    guard = Guard(decent, "replace", covers=["tool-results"], replacement=replacement)
    model = ScriptedModel([[call("look")], ["Bye."]])
    result = await Agent(model=model, tools=[look], output_processors=[guard]).generate("Well?")
    seen += [each.result for each in result.tool_results]
    assert seen == [{"said": "-"}]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"covers": ["everything"]}, "covers"),
        ({"covers": []}, "covers"),
        ({"verdict": "shout"}, "verdict"),
        ({"error_strategy": "pray"}, "error_strategy"),
        ({"concurrency": 0}, "concurrency"),
        ({"context": -1}, "context"),
        ({"max_checks": -1}, "max_checks"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"window": "page"}, "window"),
        ({"window": 0}, "window"),
        ({"replacement": "x"}, "replacement"),
        ({"check": "no function"}, "check"),
    ],
)
def test_a_bad_option_is_refused_when_built(options: dict[str, Any], named: str) -> None:
    """With the class's name and the option's."""
    check: Callable[[str], Any] = options.pop("check", decent)
    with pytest.raises(ConfigurationError, match=f"Guard.*{named}"):
        Guard(check, **options)


def test_it_keeps_the_laws_of_processors() -> None:
    """Whatever the stream, and wherever its text is cut; here with both ways of a verdict."""

    def check(text: str) -> Verdict | bool:
        return Verdict("replace", text="#") if "a" in text else "?" not in text

    check_processor(
        lambda: Guard(check),
        max_examples=EXAMPLES,
        fails=(TripWire, ProcessorError),
        allowance=30,
    )
