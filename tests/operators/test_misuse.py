"""Operators that are written wrongly: each is refused where it stands, and told what to write."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from typing import Any

import pytest
from reactivex import Observable
from reactivex import operators as rx

from streampipe import Agent, TextDelta
from streampipe import operators as ops
from streampipe.errors import ConfigurationError, OperatorError
from streampipe.operators._operator import REGISTRY, TAKE_STREAMS
from streampipe.testing import ScriptedModel
from streampipe.text import secrets
from tests.operators.sources import elements

SOURCE = ops.of(TextDelta("0", "private"))
UNCALLED = sorted(set(REGISTRY) & set(ops.__all__))


@pytest.mark.parametrize("name", [name for name in UNCALLED if name not in TAKE_STREAMS])
def test_an_operator_that_is_not_called_is_refused_behind_a_stream(name: str) -> None:
    """It is handed the stream in place of its options, and says so."""
    with pytest.raises(ConfigurationError, match=rf"^{name} is not called: write ops\.{name}\("):
        SOURCE.pipe(getattr(ops, name))


@pytest.mark.parametrize("name", UNCALLED)
@pytest.mark.parametrize(
    "build",
    [
        ops.pipe,
        lambda operator: ops.branch(bool, operator),
        lambda operator: Agent(model=ScriptedModel([["a"]]), output_processors=[operator]).observe(
            "hi"
        ),
    ],
    ids=["pipe", "branch", "agent"],
)
def test_an_operator_that_is_not_called_is_refused_where_it_is_put(build: Any, name: str) -> None:
    """Nothing has to run for it."""
    with pytest.raises(ConfigurationError, match=rf": {name} is not called: write ops\.{name}\("):
        build(getattr(ops, name))


@pytest.mark.parametrize(
    "build",
    [
        lambda: ops.redact(SOURCE, "a"),  # type: ignore[arg-type]  # the point
        lambda: ops.process_all(SOURCE, []),  # type: ignore[arg-type, call-arg]  # the point
        lambda: ops.stop_at("a", close=SOURCE),  # type: ignore[arg-type]  # the point
    ],
    ids=["first", "too many", "by keyword"],
)
def test_a_stream_among_the_options_is_refused(build: Any) -> None:
    """An operator takes its options; the stream comes by `pipe`."""
    with pytest.raises(ConfigurationError, match=r"the stream is no option: write stream\.pipe\("):
        build()


def test_a_stream_is_an_option_of_what_takes_one() -> None:
    """`fallback` is given one that goes on in place of the source."""
    assert isinstance(SOURCE.pipe(ops.fallback(SOURCE)), Observable)


@pytest.mark.parametrize("source", ["abc", None, ops.fallback(SOURCE)], ids=repr)
def test_what_is_no_stream_is_no_source(source: Any) -> None:
    """An operator is not put behind a list, nor behind an operator."""
    with pytest.raises(ConfigurationError, match="text: works on an observable, not on"):
        ops.text()(source)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: ops.scan(len), r"scan: missing a required argument: 'seed'.*ops\.scan\(fn"),  # type: ignore[call-overload]  # the point
        (lambda: ops.text(1), r"text: too many positional arguments.*ops\.text\(\)"),  # type: ignore[call-arg]  # the point
        (lambda: ops.map_text(str, by=1), r"map_text: got an unexpected keyword argument 'by'"),  # type: ignore[call-arg]  # the point
    ],
    ids=["missing", "too many", "unknown"],
)
def test_options_that_do_not_fit_are_told_with_those_that_do(build: Any, said: str) -> None:
    """The message has the operator's name and how it is called."""
    with pytest.raises(ConfigurationError, match=said):
        build()


@pytest.mark.parametrize("name", UNCALLED)
def test_help_shows_an_operator_as_it_is_called(name: str) -> None:
    """Without the source, which `pipe` gives it."""
    assert "source" not in inspect.signature(getattr(ops, name)).parameters


def nothing(*_: Any) -> Any:
    """A function that forgets to return."""


def one(*args: Any) -> Any:
    """A plain function that gives back what came, not in a list."""
    return args[-1]


async def awaited(*_: Any) -> Any:
    """What is awaited nowhere."""


def awaited_nowhere(*_: Any) -> Any:
    """A plain function that hands a coroutine on."""
    return awaited()


def stream(*_: Any) -> Any:
    """A stream, which Python would go through for ever."""
    return SOURCE.pipe(rx.skip(0))


async def pieces(*_: Any) -> AsyncIterator[Any]:
    """A function that yields where one that is awaited is meant."""
    yield 1


@pytest.mark.parametrize("make", [ops.map_async, ops.filter_async, ops.check_async])
def test_a_function_that_yields_is_nothing_to_await(make: Any) -> None:
    """That can be told when the operator is made."""
    with pytest.raises(ConfigurationError, match=r": (fn|predicate|check) yields, so it cannot"):
        make(pieces)


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        (lambda: ops.map_text(nothing), "'map_text': fn returned NoneType for a string"),
        (lambda: ops.flat_map(nothing), "'flat_map': fn returned NoneType; .* a list"),
        (lambda: ops.flat_map(one), "'flat_map': fn returned TextDelta; .* a list"),
        (lambda: ops.flat_map(awaited_nowhere), "'flat_map': fn returned coroutine; "),
        (lambda: ops.flat_map(stream), "'flat_map': fn returned Obs"),
        (lambda: ops.stateful(list, one), "'stateful': step returned TextDelta; .* a list"),
        (lambda: ops.stateful(list, lambda *_: (), nothing), "'stateful': finish returned None"),
        (lambda: ops.filter(awaited_nowhere), "'filter': predicate returned coroutine; "),
        (lambda: ops.map_async(one), "'map_async': fn returned TextDelta, .* there is map"),
        (lambda: ops.map_async(one, concurrency=2), "'map_async': fn returned TextDelta, "),
        (lambda: ops.filter_async(one), "'filter_async': predicate returned TextDelta, .* filter"),
        (lambda: ops.check_async(one), "'check_async': check returned str, .* async function"),
    ],
)
async def test_what_a_function_should_have_returned_is_said(operator: Any, said: str) -> None:
    """In the message itself: there is nothing of the stream in it."""
    with pytest.raises(OperatorError, match=said) as failure:
        await elements(ops.to_aiter(SOURCE.pipe(operator())))
    assert "private" not in str(failure.value)


async def test_what_a_function_raised_is_in_the_cause_only() -> None:
    """Its own text may quote the stream; the message says where it is."""

    def failing(chunk: Any) -> None:
        raise ValueError(chunk.text)

    with pytest.raises(OperatorError, match=r"ValueError on text-delta; see __cause__") as failure:
        await elements(ops.to_aiter(SOURCE.pipe(ops.map(failing))))
    assert "private" not in str(failure.value)
    assert "private" in str(failure.value.__cause__)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: Agent(model="gpt-5-mini"), "write 'provider/model', such as 'openai/gpt-5-mini'"),
        (lambda: Agent(model="nobody/x"), "unknown provider 'nobody'; known: .*openai"),
        (lambda: Agent(model=3), "model must be a router id .*, not 3"),  # type: ignore[arg-type]  # the point
        (lambda: Agent(model="openai/x", output_processors=ops.text), "text is not called"),  # type: ignore[arg-type]  # the point
        (
            lambda: Agent(model="openai/x", output_processors=ops.redact("a")),  # type: ignore[arg-type]  # the point
            r"output_processors must be a list: write output_processors=\[redact\('a'\)\]",
        ),
        (lambda: ScriptedModel("Hello"), r"a list of turns.*write \[\['Hello'\]\]"),
        (lambda: ops.rechunk("words"), "^rechunk: by is 'words'; give one of"),  # type: ignore[arg-type]  # the point
        (ops.limit_text, "^limit_text: chars=None"),
    ],
)
def test_what_is_put_together_wrongly_is_refused_at_once(build: Any, said: str) -> None:
    """Before any run, and without a provider's key."""
    with pytest.raises(ConfigurationError, match=said):
        build()


def test_an_operator_s_long_options_are_cut_within_their_brackets() -> None:
    """What is shown can be read as what was written."""
    assert repr(ops.redact(secrets)).endswith("...))")
