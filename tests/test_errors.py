"""The errors are the tree that their module draws, and say who is at fault."""

from __future__ import annotations

import re

import pytest

from streampipe import errors
from streampipe.errors import StreampipeError


def drawn() -> set[tuple[str, str]]:
    """Pairs of parent and child out of the drawing in the module's docstring."""
    assert errors.__doc__ is not None
    drawing = re.search(r"```text\n(.*?)```", errors.__doc__, re.DOTALL)
    assert drawing is not None
    path: list[str] = []
    pairs: set[tuple[str, str]] = set()
    for line in drawing[1].splitlines():
        name = line.lstrip("│├└─ ")
        depth = (len(line) - len(name)) // 4
        del path[depth:]
        if path:
            pairs.add((path[-1], name))
        path.append(name)
    return pairs


def real(base: type[StreampipeError]) -> set[tuple[str, str]]:
    """Pairs of parent and child that the module defines."""
    below = [cls for cls in base.__subclasses__() if cls.__module__ == errors.__name__]
    return {(base.__name__, cls.__name__) for cls in below}.union(*map(real, below))


NAMES = sorted({name for pair in drawn() for name in pair})


def test_the_tree_is_as_drawn() -> None:
    """Every error is drawn below its parent, and no other is."""
    assert drawn() == real(StreampipeError)


def test_every_error_is_exported() -> None:
    """`__all__` names each error of the tree, and nothing else."""
    assert sorted(errors.__all__) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_an_error_is_an_exception_that_may_carry_a_result(name: str) -> None:
    """Failures are for `except Exception`, unlike signals; without a run there is no result."""
    cls = getattr(errors, name)
    assert cls.result is None
    assert issubclass(cls, Exception)


def test_a_processor_s_error_names_the_hook() -> None:
    """Message and attributes say which hook of which processor."""
    error = errors.ProcessorError("boom", processor_id="pii", hook="process_input")
    assert str(error) == "processor 'pii', process_input: boom"
    assert (error.processor_id, error.hook) == ("pii", "process_input")


def test_an_operator_s_error_names_it() -> None:
    """Message and attribute say which operator."""
    error = errors.OperatorError("boom", operator="map_async")
    assert str(error) == "operator 'map_async': boom"
    assert error.operator == "map_async"


@pytest.mark.parametrize("cls", errors.ToolFailure.__subclasses__())
def test_a_tool_s_failure_names_the_tool_but_not_in_its_words(
    cls: type[errors.ToolFailure],
) -> None:
    """The message is for the model, as it stands."""
    error = cls("say it otherwise", tool_name="lookup")
    assert str(error) == "say it otherwise"
    assert error.tool_name == "lookup"


@pytest.mark.parametrize(
    ("provider", "model", "told"),
    [
        ("acme", "m1", "acme/m1: boom"),
        ("acme", "", "acme: boom"),
        ("", "m1", "m1: boom"),
        ("", "", "boom"),
    ],
)
def test_a_model_s_error_says_which_as_far_as_known(provider: str, model: str, told: str) -> None:
    """Provider and model stand before the message; a failure is final unless said otherwise."""
    error = errors.ModelError("boom", provider=provider, model=model)
    assert str(error) == told
    assert not error.is_retryable


def test_a_status_error_keeps_what_the_provider_said() -> None:
    """Status, body, request id and how long to wait."""
    error = errors.ProviderError(
        "slow down",
        status=429,
        body={"code": 1},
        request_id="r1",
        retry_after=2.5,
        provider="acme",
        is_retryable=True,
    )
    assert str(error) == "acme: HTTP 429: slow down"
    assert (error.status, error.body, error.request_id) == (429, {"code": 1}, "r1")
    assert error.retry_after == 2.5
    assert error.is_retryable


@pytest.mark.parametrize(
    "cls",
    [errors.ProcessorError, errors.OperatorError, errors.ToolFailure],
)
def test_whose_fault_it_is_cannot_be_left_out(cls: type[StreampipeError]) -> None:
    """An error that names a party needs it."""
    with pytest.raises(TypeError, match="keyword-only"):
        cls("boom")
