"""`ModelRouter`: which model answers which step."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import settings

from streampipe import Agent, tool
from streampipe.contracts import ProcessInputStepArgs
from streampipe.errors import ConfigurationError, ProcessorError
from streampipe.models import _catalog, register_provider
from streampipe.processors import ModelRouter
from streampipe.testing import ScriptedModel, call, check_processor

EXAMPLES = max(1_000, 10 * settings().max_examples)


@tool
def look_up(q: str) -> str:
    """Look something up."""
    return q


class Speaker(ScriptedModel):
    """A model that says its name, after so many tool calls."""

    def __init__(self, name: str, calls: int = 0) -> None:
        """Take a name."""
        turns: list[Any] = [[name, call("look_up", {"q": name})]] * calls
        super().__init__([*turns, [name]], model_id=name, repeat=True)


class Taken:
    """Notes which route each step took."""

    def __init__(self, router: ModelRouter) -> None:
        """Stand in the router's place: it has the same state."""
        self.id = router.id
        self.router = router
        self.routes: list[Any] = []

    async def process_input_step(self, args: ProcessInputStepArgs) -> Any:
        """Ask the router, look at what it noted."""
        result = await self.router.process_input_step(args)
        self.routes.append(args.state["route"])
        return result


async def said(router: ModelRouter, model: Any = None, prompt: str = "hi") -> tuple[str, list[Any]]:
    """The text of a run, and the routes of its steps."""
    taken = Taken(router)
    model = model or Speaker("own")
    agent = Agent(model=model, tools=[look_up], input_processors=[taken])
    result = await agent.generate(prompt)
    return result.text, taken.routes


async def test_a_step_s_number_takes_its_route() -> None:
    """Others take the default."""
    router = ModelRouter([(0, Speaker("a", 1)), (1, Speaker("b", 1))], default=Speaker("c"))
    assert await said(router) == ("abc", [0, 1, None])


async def test_without_default_the_agent_s_model_answers() -> None:
    """Where no route is taken."""
    assert await said(ModelRouter([(0, Speaker("a", 1))])) == ("aown", [0, None])


async def slow(args: ProcessInputStepArgs) -> bool:
    """Whether the user is in no hurry."""
    await asyncio.sleep(0)
    return "slowly" in args.messages[0].text


@pytest.mark.parametrize(
    ("prompt", "text", "route"),
    [
        ("quickly", "own", None),
        ("slowly", "a", 0),
        ("both slowly and long", "a", 0),
        ("long", "b", 1),
    ],
)
async def test_the_first_rule_that_fits_is_taken(prompt: str, text: str, route: Any) -> None:
    """Rules are functions of the args, plain or async."""
    router = ModelRouter(
        [(slow, Speaker("a")), (lambda args: "long" in args.messages[0].text, Speaker("b"))]
    )
    assert await said(router, prompt=prompt) == (text, [route])


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_classifier_is_asked_once_a_run(is_async: Any) -> None:
    """What it says holds for all steps."""
    asked: list[int] = []

    def plain(args: ProcessInputStepArgs) -> str:
        asked.append(args.step_number)
        return "code"

    async def later(args: ProcessInputStepArgs) -> str:
        await asyncio.sleep(0)
        return plain(args)

    router = ModelRouter(
        {"code": Speaker("a", 1), "chat": Speaker("b")}, classify=later if is_async else plain
    )
    assert await said(router) == ("aa", ["code", "code"])
    assert asked == [0]
    await said(router)
    assert asked == [0, 0]


async def test_a_classifier_may_know_none() -> None:
    """Then the default answers, in every step; it is not asked again."""
    asked: list[int] = []

    def unsure(args: ProcessInputStepArgs) -> None:
        asked.append(args.step_number)

    router = ModelRouter({"code": Speaker("a")}, classify=unsure, default=Speaker("c", 1))
    assert await said(router) == ("cc", [None, None])
    assert asked == [0]


async def test_a_route_that_is_not_there_ends_the_run() -> None:
    """The message lists those that are."""
    router = ModelRouter({"code": Speaker("a"), "chat": Speaker("b")}, classify=lambda args: "poem")
    with pytest.raises(ProcessorError, match=r"classify gave 'poem'.*; routes: code, chat"):
        await said(router)


async def test_a_route_may_be_a_router_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked up when it is taken."""
    monkeypatch.setattr(_catalog, "_PROVIDERS", dict(_catalog._PROVIDERS))
    register_provider("speaker", Speaker)
    assert (await said(ModelRouter([(0, "speaker/x")])))[0] == "x"
    with pytest.raises(ProcessorError, match=r"'model-router'.*unknown provider 'nobody'"):
        await said(ModelRouter([(0, "nobody/x")]))


async def test_a_rejected_step_takes_its_route_again() -> None:
    """The next attempt is the same step; the classifier is not asked once more."""

    class Judge:
        id = "judge"

        def process_output_step(self, args: Any) -> None:
            """Reject the first answer."""
            if args.retry_count == 0:
                args.abort("again", retry=True)

    asked: list[int] = []

    def first(args: ProcessInputStepArgs) -> str:
        asked.append(args.step_number)
        return "a"

    model = Speaker("a")
    for router in (ModelRouter([(0, model)]), ModelRouter({"a": model}, classify=first)):
        agent = Agent(
            model=Speaker("own"),
            input_processors=[router],
            output_processors=[Judge()],
            max_processor_retries=1,
        )
        result = await agent.generate("hi")
        assert (result.text, result.retries) == ("a", 1)
    assert asked == [0]


async def test_one_instance_serves_two_runs_at_a_time() -> None:
    """What was taken is the run's."""
    router = ModelRouter(
        {"a": Speaker("a"), "b": Speaker("b")}, classify=lambda args: args.messages[0].text
    )
    first, second = await asyncio.gather(said(router, prompt="a"), said(router, prompt="b"))
    assert first == ("a", ["a"])
    assert second == ("b", ["b"])


MODEL = Speaker("a")


@pytest.mark.parametrize(
    ("routes", "options", "words"),
    [
        ([], {}, r"routes must be a list of \(when, model\)"),
        ("openai/gpt-5", {}, r"routes must be a list of \(when, model\)"),
        ({"a": MODEL}, {}, "routes by name and classify go together"),
        ([(0, MODEL)], {"classify": len}, "routes by name and classify go together"),
        ([MODEL], {}, r"routes\[0\] must be a pair \(when, model\)"),
        ([(0, MODEL, 1)], {}, r"routes\[0\] must be a pair \(when, model\)"),
        ([(0, MODEL), (-1, MODEL)], {}, r"routes\[1\]: when must be a step number from 0"),
        ([(True, MODEL)], {}, r"routes\[0\]: when must be a step number from 0"),
        ([("code", MODEL)], {}, r"routes\[0\]: when must be a step number from 0"),
        ([(0, "gpt-5")], {}, r"routes\[0\] must be a model or a router id"),
        ([(0, Speaker)], {}, r"routes\[0\] must be a model or a router id"),
        ({"a": 1}, {"classify": len}, r"routes\['a'\] must be a model or a router id"),
        ({1: MODEL}, {"classify": len}, "the names of routes are texts, not 1"),
        ({"a": MODEL}, {"classify": "a"}, "classify must be a function, not 'a'"),
        ([(0, MODEL)], {"default": 1}, "default must be a model or a router id"),
    ],
)
def test_a_wrong_option_is_refused(routes: Any, options: Any, words: str) -> None:
    """When it is made, by the class's name."""
    with pytest.raises(ConfigurationError, match=f"^ModelRouter: {words}"):
        ModelRouter(routes, **options)


def test_it_keeps_the_laws_of_processors() -> None:
    """In generated runs, whatever the model says."""

    def never(args: ProcessInputStepArgs) -> bool:
        return False

    check_processor(lambda: ModelRouter([(never, MODEL)]), max_examples=EXAMPLES)
