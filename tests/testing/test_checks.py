"""The checks: every law finds what breaks it, tells it well, and lets alone what keeps it."""

from __future__ import annotations

import asyncio
import operator
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from reactivex import Observable
from reactivex import operators as rx

from streampipe import operators as ops
from streampipe.abort import TripWire
from streampipe.chunks import Chunk, FinishChunk, StepFinish, TextDelta, TextEnd, Usage
from streampipe.contracts import ModelRequest
from streampipe.errors import ConfigurationError
from streampipe.operators import Flowable
from streampipe.testing import (
    MODEL_LAWS,
    OPERATOR_LAWS,
    PROCESSOR_LAWS,
    LawError,
    ModelServer,
    ScriptedModel,
    call,
    check_model,
    check_operator,
    check_processor,
    fail,
    no_leaks,
    reasoning,
    run_virtual,
    turn,
)
from streampipe.testing.pytest_plugin import leakless  # noqa: F401 - a fixture

Emit = Callable[[Any], Any]


async def moody(item: Any) -> Any:
    """Take a different time for different elements."""
    await asyncio.sleep(0.01 * (len(repr(item)) % 3))
    return item


def mapped(fn: Callable[[Any], Any]) -> Callable[[Observable[Any]], Observable[Any]]:
    """Rx's own map: an operator that knows nothing of ours."""
    return rx.map(fn)


def ran(run: Callable[[Flowable[Any], Emit], Any]) -> Callable[[Any], Flowable[Any]]:
    """An operator of a coroutine that reads a source and emits."""

    def apply(source: Any) -> Flowable[Any]:
        return Flowable(lambda emit: run(source, emit))

    return apply


# --- what is honest ------------------------------------------------------------------------

HONEST: dict[str, Callable[[], None]] = {
    "map_text": lambda: check_operator(
        lambda: ops.map_text(str.upper),
        text_of_whole=str.upper,
        faulty=ops.map_text,
    ),
    "Rx's map": lambda: check_operator(
        lambda: mapped(lambda item: item), text_of_whole=str, faulty=mapped
    ),
    "filter": lambda: check_operator(
        lambda: ops.filter(lambda chunk: chunk.type != "source"), drops=True, faulty=ops.filter
    ),
    "take_while": lambda: check_operator(
        lambda: ops.take_while(lambda chunk: chunk.type != "text-end"), ends_early=True, drops=True
    ),
    "map_async": lambda: check_operator(lambda: ops.map_async(moody), faulty=ops.map_async),
    "map_async, side by side": lambda: check_operator(
        lambda: ops.map_async(moody, concurrency=3),
        faulty=lambda boom: ops.map_async(boom, concurrency=3),
        allowance=5,
    ),
    "map_async, unordered": lambda: check_operator(
        lambda: ops.map_async(moody, concurrency=3, ordered=False),
        kind="any",
        preserves_order=False,
        allowance=5,
    ),
    "feedback": lambda: check_operator(
        lambda: ops.feedback(lambda item, _: ops.of(item)), text_of_whole=str
    ),
    "retry_api": lambda: check_operator(lambda: ops.retry_api(2), text_of_whole=str),
    "text": lambda: check_operator(ops.text, drops=True),
    "scan": lambda: check_operator(
        lambda: ops.scan(operator.add, 0), kind="any", elements=st.integers()
    ),
}


@pytest.mark.parametrize("check", HONEST.values(), ids=HONEST)
def test_what_keeps_the_laws_passes(check: Callable[[], None]) -> None:
    """Our own operators and Rx's pass, with what they do not promise said."""
    check()


# --- what each law finds, beyond the planted faults ----------------------------------------


async def chatty(source: Flowable[Any], emit: Emit) -> None:
    """Say something after the end."""
    await source.into(emit)
    asyncio.get_running_loop().call_soon(emit, TextDelta("late", "late"))


async def stuck(source: Flowable[Any], emit: Emit) -> None:
    """Wait for something that never comes."""
    await source.into(emit)
    await asyncio.Event().wait()


async def timing(source: Flowable[Any], emit: Emit) -> None:
    """Leave a timer behind."""
    asyncio.get_running_loop().call_later(3600, print)
    await source.into(emit)


def divide(chunk: Any) -> Any:
    """Fail on an empty text."""
    if isinstance(chunk, TextDelta):
        _ = 1 / len(chunk.text)
    return chunk


def doubled(chunk: Any) -> list[Any]:
    """Say every piece twice, metadata and all."""
    return [chunk, replace(chunk)] if isinstance(chunk, TextDelta) else [chunk]


def bare(chunk: Any) -> Any:
    """Forget the metadata."""
    return replace(chunk, provider_metadata=None) if isinstance(chunk, TextDelta) else chunk


def unended(chunk: Any) -> list[Any]:
    """Leave parts open."""
    return [] if isinstance(chunk, TextEnd) else [chunk]


def never_fused(source: Any) -> Any:
    """Do something else behind a kernel."""
    return ops.map_text(str.upper)(source) if type(source).__name__ == "Fused" else source


def only_flows(source: Any) -> Any:
    """Do something else behind an ordinary observable."""
    return source if isinstance(source, Flowable) else ops.map_text(str.upper)(source)


BROKEN: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "late": ("one end", "after the end", lambda: ran(chatty)),
    "stuck": ("one end", "neither completes nor fails", lambda: ran(stuck)),
    "fails": ("one end", "fails by itself", lambda: ops.map(divide)),
    "timer": ("cancel", "a timer is left", lambda: ran(timing)),
    "lost": ("metadata", "is lost", lambda: ops.map(bare)),
    "twice": ("metadata", "comes out twice", lambda: ops.flat_map(doubled)),
    "unended": ("parts", "is not closed", lambda: ops.flat_map(unended)),
    "unfused": ("fusion", "stage", lambda: never_fused),
    "flows": ("sources", "an ordinary observable", lambda: only_flows),
    "raises": ("one end", "using it raises ZeroDivisionError", lambda: lambda _: 1 / 0),
}


@pytest.mark.parametrize(("law", "what", "make"), BROKEN.values(), ids=BROKEN)
def test_a_breach_is_found(law: str, what: str, make: Callable[[], Any]) -> None:
    """Each law finds what breaks it, and says how."""
    with pytest.raises(LawError, match=what) as caught:
        check_operator(make, chunking=False, preserves_order=law != "sources", drops=law == "parts")
    assert caught.value.law == law


def test_a_report_shows_the_smallest_example() -> None:
    """Law, text, cutting, what was expected and what came: enough to see the fault."""
    with pytest.raises(LawError) as caught:
        check_operator(
            lambda: ops.map_text(lambda text: text.replace("ab", "X")),
            texts=st.text("ab"),
        )
    lines = [line.strip() for line in str(caught.value).splitlines()]
    assert lines[0] == "check_operator(map_text(<lambda>)): law 'chunking' is broken"
    assert lines[1] == "the joined text depends on how the text was cut"
    facts = {line.split("  ")[0]: line.split("  ", 1)[1].strip() for line in lines[2:]}
    assert "text-0:'ab'" in facts["cut so"]
    assert "text-0:'a' | text-0:'b'" in facts["or so"]
    assert (facts["first gives"], facts["second gives"]) == (
        "{'text text-0': 'X'}",
        "{'text text-0': 'ab'}",
    )


def test_what_is_not_reproducible_is_said_to_be() -> None:
    """An operator that depends on more than its input is reported as such."""
    calls: list[int] = []

    def sometimes(chunk: Any) -> Any:
        calls.append(1)
        if len(calls) == 50:
            msg = "a bad day"
            raise ValueError(msg)
        return chunk

    with pytest.raises(LawError, match="and not every time"):
        check_operator(lambda: ops.map(sometimes))


def test_what_a_function_raises_has_to_arrive() -> None:
    """`faulty` finds an operator that takes its user's failure for an end."""

    def lenient(boom: Callable[..., Any]) -> Any:
        def safely(item: Any) -> Any:
            try:
                return boom(item)
            except Exception:  # noqa: BLE001 - the fault
                return item

        return ops.map(safely)

    with pytest.raises(LawError, match="a function given to it raised") as caught:
        check_operator(lambda: ops.tap(id), faulty=lenient)
    assert caught.value.law == "failure"


def test_what_is_not_promised_is_not_looked_at() -> None:
    """Each promise that is taken back, and each law that is left out, lets its breach pass."""
    check_operator(lambda: ops.map(bare), drops=True)
    others = set(OPERATOR_LAWS) - {"metadata"}
    check_operator(lambda: ops.flat_map(doubled), laws=others, chunking=False)

    def trip(chunk: Any) -> Any:
        if isinstance(chunk, TextDelta):
            raise TripWire("no text", processor_id="me")
        return chunk

    check_operator(lambda: mapped(trip), fails=TripWire)
    with pytest.raises(LawError, match="fails by itself"):
        check_operator(lambda: mapped(trip))


def test_elements_are_the_callers() -> None:
    """Any strategy of elements will do, and a key compares those that are never equal."""

    class Odd:
        """Equal to itself only."""

        def __init__(self, value: Any) -> None:
            self.value = value

    def odd(value: Any) -> Any:
        return Odd(value)

    with pytest.raises(LawError):
        check_operator(lambda: mapped(odd), kind="any", elements=st.text())
    check_operator(lambda: mapped(odd), kind="any", elements=st.text(), key=lambda item: item.value)
    check_operator(lambda: ops.tap(id), streams=st.just([TextDelta("0", "x")]), laws=["order"])


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"kind": "strings"}, "'chunks' or 'any', not 'strings'"),
        ({"laws": ["gravity"]}, "'one end', 'order'.*not .'gravity'"),
        ({"laws": "order"}, "not 'order'"),
        ({"kind": "any", "laws": ["chunking"]}, "not .'chunking'"),
        ({"speed": 3}, "no option 'speed'; there are allowance, "),
    ],
    ids=["kind", "law", "string", "other kind", "option"],
)
def test_a_bad_option_is_refused(options: dict[str, Any], what: str) -> None:
    """The message says what there is."""
    with pytest.raises(ConfigurationError, match=what):
        check_operator(lambda: ops.tap(id), **options)
    with pytest.raises(ConfigurationError, match="make has to return an operator"):
        check_operator(lambda: 3)  # type: ignore[arg-type, return-value]  # that is the point


async def test_a_check_has_loops_of_its_own() -> None:
    """From within a loop it is refused, with what to do instead."""
    with pytest.raises(RuntimeError, match="call it from a function, not from a coroutine"):
        check_operator(lambda: ops.tap(id))


# --- processors ----------------------------------------------------------------------------


class Upper:
    """A processor that keeps every law."""

    id = "upper"

    async def process_output_stream(self, args: Any) -> Any:
        """Shout."""
        part = args.part
        return replace(part, text=part.text.upper()) if isinstance(part, TextDelta) else part


class Judge:
    """A processor without a stream hook, which asks for another answer."""

    id = "judge"

    def process_output_step(self, args: Any) -> None:
        """Reject what has a letter."""
        if "a" in args.text:
            args.abort("no a", retry=True)


class Moody:
    """A processor whose hooks share what they should not."""

    id = "moody"
    calls = 0

    def process_output_stream(self, args: Any) -> Any:
        """Count on the class: every stream goes on where the last one stopped."""
        Moody.calls += 1
        part = args.part
        return replace(part, text=f"{Moody.calls}") if isinstance(part, TextDelta) else part


class Failing:
    """A processor that fails in a run."""

    id = "failing"

    def process_input(self, args: Any) -> Any:
        """Raise."""
        raise ZeroDivisionError


class Withholding:
    """A processor that keeps tool results to itself."""

    id = "withholding"

    def process_output_stream(self, args: Any) -> Any:
        """Let all else pass."""
        return None if args.part.type in ("tool-result", "tool-error") else args.part


def test_a_processor_that_keeps_the_laws_passes() -> None:
    """With a stream hook and without."""
    check_processor(Upper, text_of_whole=str.upper)
    check_processor(Judge)


def test_a_processor_is_held_to_the_laws_of_operators() -> None:
    """What its hook does to a stream is looked at as an operator's work is."""
    with pytest.raises(LawError, match=r"check_processor\('moody'\)"):
        check_processor(Moody, chunking=False)


def test_a_run_is_looked_at() -> None:
    """`books` finds a hook that fails, and a call that stays without an answer."""
    with pytest.raises(LawError, match="the run fails: ProcessorError") as caught:
        check_processor(Failing)
    assert caught.value.law == "books"
    with pytest.raises(LawError, match="neither result nor error"):
        check_processor(Withholding, laws=["books"])
    check_processor(Withholding, drops=True)


def test_colour_is_looked_at() -> None:
    """A hook that counts the turns of the loop gives something else as a coroutine."""

    class Hasty:
        id = "hasty"

        def __init__(self) -> None:
            self.turns = 0

        def process_output_stream(self, args: Any) -> Any:
            asyncio.get_running_loop().call_soon(self.turned)
            part = args.part
            number = str(self.turns)
            return replace(part, text=number) if isinstance(part, TextDelta) else part

        def turned(self) -> None:
            self.turns += 1

    with pytest.raises(LawError) as caught:
        check_processor(Hasty, laws=["colour"])
    assert caught.value.law == "colour"


def test_what_is_no_processor_is_refused() -> None:
    """It has an id and a hook."""
    with pytest.raises(ConfigurationError, match=r"has to return a processor"):
        check_processor(object)
    with pytest.raises(ConfigurationError, match=r"not .'gravity'"):
        check_processor(Upper, laws=["gravity"])
    assert set(OPERATOR_LAWS) < set(PROCESSOR_LAWS)


# --- models --------------------------------------------------------------------------------


class Model(ScriptedModel):
    """A model that does with each chunk what it is told to."""

    def __init__(self, change: Callable[[Chunk], list[Any]]) -> None:
        """Take a change."""
        super().__init__([["a", reasoning("b"), call("c", {"n": 1}, pieces=2)]], repeat=True)
        self.change = change

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Play the script, changed."""
        async for chunk in super().stream(request):
            for changed in self.change(chunk):
                yield changed


class Rude(ScriptedModel):
    """A model that writes into the request."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Change it, and answer."""
        request.settings["temperature"] = 2
        async for chunk in super().stream(request):
            yield chunk


class Leaky(ScriptedModel):
    """A model that leaves a task behind."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Start one, and answer."""
        self.task = asyncio.get_running_loop().create_task(asyncio.sleep(3600))
        async for chunk in super().stream(request):
            yield chunk


class Raw(ScriptedModel):
    """A model whose failure is of no type of ours."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Fail."""
        raise ConnectionResetError
        yield FinishChunk()  # what makes it a generator


def without(*types: str) -> Callable[[], Model]:
    """A model that leaves chunks of some types out."""
    return lambda: Model(lambda chunk: [] if chunk.type in types else [chunk])


def finishing(finish: FinishChunk) -> Callable[[], Model]:
    """A model that finishes so."""
    return lambda: Model(lambda chunk: [finish if isinstance(chunk, FinishChunk) else chunk])


MODELS: dict[str, tuple[str, Callable[[], Any]]] = {
    "no model": ("protocol", object),
    "no chunk": ("protocol", lambda: Model(lambda _: ["text"])),
    "a failure": ("protocol", lambda: ScriptedModel([fail(status=500)], repeat=True)),
    "no finish": ("finish", without("finish")),
    "two finishes": ("finish", lambda: Model(lambda c: [c] * (1 + isinstance(c, FinishChunk)))),
    "no usage": ("finish", finishing(FinishChunk("stop"))),
    "a negative": ("finish", finishing(FinishChunk("stop", Usage(-1, 5)))),
    "an open part": ("parts", without("text-end")),
    "an orphan": ("parts", without("reasoning-start")),
    "no call": ("parts", without("tool-call")),
    "no start": ("parts", without("tool-call-input-streaming-start")),
    "a step": ("finish", lambda: Model(lambda c: [c, StepFinish()])),
    "a changed request": ("request", lambda: Rude([["a"]], repeat=True)),
    "a task": ("cancel", lambda: Leaky([["a", "b", "c"]], repeat=True)),
}


@pytest.mark.parametrize(("law", "make"), MODELS.values(), ids=MODELS)
def test_a_model_that_breaks_its_contract_is_found(law: str, make: Callable[[], Any]) -> None:
    """Each law finds what breaks it."""
    with pytest.raises(LawError) as caught:
        run_virtual(check_model(make))
    assert caught.value.law == law


async def test_a_model_that_keeps_its_contract_passes() -> None:
    """Scripted, and over HTTP, its failures too."""
    await check_model(
        lambda: ScriptedModel([turn("a", reasoning("b"), call("c", pieces=3))], repeat=True),
        failing=lambda: ScriptedModel([fail(status=503)]),
    )
    async with ModelServer([["a", "b", "c"]] * 12 + [[fail(status=500)]]) as server:
        await check_model(lambda: server.model(max_retries=0))
    await check_model(lambda: Model(lambda chunk: [chunk]), laws=["parts", "finish"])


def test_failures_of_a_model_are_typed() -> None:
    """What fails in any other way than by a `ModelError`, or not at all, is found."""
    good = lambda: ScriptedModel([["a"]], repeat=True)  # noqa: E731 - a factory
    for failing, what in ((lambda: Raw([]), "ConnectionResetError"), (good, "ends well")):
        with pytest.raises(LawError, match=what) as caught:
            run_virtual(check_model(good, failing=failing))
        assert caught.value.law == "errors"


def test_bad_options_of_a_model_are_refused() -> None:
    """By their names."""
    with pytest.raises(ConfigurationError, match="places"):
        run_virtual(check_model(lambda: ScriptedModel([]), places=0))
    with pytest.raises(ConfigurationError, match=repr(MODEL_LAWS[0])):
        run_virtual(check_model(lambda: ScriptedModel([]), laws=["gravity"]))


# --- leaks ---------------------------------------------------------------------------------


async def endless() -> AsyncIterator[int]:
    """A source that never ends."""
    while True:
        yield 1
        await asyncio.sleep(0)


async def test_a_task_that_is_left_is_a_leak(loop_complaints: list[Any]) -> None:
    """It is named; one that was there before is none."""
    before = asyncio.get_running_loop().create_task(asyncio.Event().wait())
    left: list[asyncio.Task[Any]] = []
    loop = asyncio.get_running_loop()
    with pytest.raises(AssertionError, match="task 'forgotten' still runs"):
        async with no_leaks(patience=0):
            left.append(loop.create_task(asyncio.Event().wait(), name="forgotten"))
    left[0].cancel()
    before.cancel()


async def test_a_source_that_is_left_open_is_a_leak() -> None:
    """A generator that somebody stopped reading is named; one that was closed is none."""
    source = endless()
    with pytest.raises(AssertionError, match="source 'endless' is still open"):
        async with no_leaks(patience=0):
            await anext(source)
    await source.aclose()  # type: ignore[attr-defined]  # a generator
    async with no_leaks(patience=0):
        async for number in ops.to_aiter(ops.of(1, 2)):
            assert number


async def test_a_complaint_is_a_leak() -> None:
    """What an unread failure makes the loop say is an error of the block that caused it."""

    async def fail_unseen() -> None:
        raise ZeroDivisionError

    with pytest.raises(AssertionError, match=r"never retrieved.*ZeroDivisionError"):
        async with no_leaks():
            asyncio.get_running_loop().create_task(fail_unseen())


async def test_a_failing_block_speaks_for_itself() -> None:
    """Its own error comes out, whatever it left behind."""
    source = endless()
    with pytest.raises(ZeroDivisionError):
        async with no_leaks():
            await anext(source)
            raise ZeroDivisionError
    await source.aclose()  # type: ignore[attr-defined]  # a generator


async def test_the_fixture_watches_a_whole_test(leakless: None) -> None:  # noqa: F811 - it is that
    """A test that asks for `leakless` and leaves nothing behind passes."""
    assert [number async for number in ops.to_aiter(ops.of(1, 2))] == [1, 2]


# --- without Hypothesis --------------------------------------------------------------------

HIDDEN = """
import sys
sys.modules["hypothesis"] = None  # what an import finds where it is not installed
import streampipe.testing as testing
testing.ScriptedModel([["hi"]]), testing.run_virtual, testing.check_marbles, testing.no_leaks
for name in ("check_operator", "check_processor", "check_model", "texts"):
    try:
        getattr(testing, name)
    except ImportError as error:
        print(error)
"""


def test_what_needs_hypothesis_says_how_to_get_it() -> None:
    """Without it scripted models, marbles and the clock are there; the rest names the command."""
    root = Path(__file__).resolve().parents[2]
    told = subprocess.run(  # noqa: S603 - ourselves
        [sys.executable, "-c", HIDDEN],
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    ).stdout
    assert told.count("pip install 'streampipe-rx[testing]'") == 4
