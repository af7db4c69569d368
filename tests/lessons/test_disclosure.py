"""What is blocked is disclosed nowhere: every guard of the shelf that blocks, in every accessor."""

from __future__ import annotations

import inspect
import logging
from typing import Any

import pytest

import streampipe.processors as shelf
from streampipe.chunks import ReasoningDelta, TextDelta
from streampipe.contracts import HOOKS
from streampipe.contracts.processor import STREAM_OPERATOR
from streampipe.operators._compose import Pipeline
from tests.lessons.attempts import ATTEMPTS, Case, Evidence, cases, tried
from tests.lessons.blockers import BLOCKERS, CANARY, CANNOT_BLOCK

MATRIX = [(guard, place) for guard, blocker in BLOCKERS.items() for place in blocker.places]


@pytest.mark.parametrize(("guard", "place"), MATRIX)
async def test_what_is_blocked_is_disclosed_nowhere(
    guard: str, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the step and the ending, streamed or collected, and whoever is asked of it."""
    caplog.set_level(logging.DEBUG)
    for case in cases(guard, place):
        evidence = await tried(case, caplog)
        told = [name for name, text in evidence.accessors().items() if CANARY in text]
        assert not told, case
        if not ATTEMPTS[place].leaves_early:
            assert CANARY not in evidence.client(), case
        assert CANARY not in evidence.sent(), case
        assert not evidence.ran, f"{case}: the tool ran"
        _check_ending(case, evidence)
        _check_what_was_allowed(case, evidence)


def _check_ending(case: Case, evidence: Evidence) -> None:
    """The run ended as it had to, by the guard that was to block."""
    result, wire = evidence.result, evidence.result.tripwire
    assert evidence.violations, f"{case}: nobody was told"
    if case.ending == "retry":
        assert (wire, result.finish_reason, result.retries) == (None, "stop", 1), case
        return
    assert wire is not None, case
    assert bool(wire.retry) is (case.ending == "exhausted"), case
    assert result.finish_reason == "other", case
    assert evidence.model.calls == {"message": 0, "request": 1}.get(case.place, case.step + 1), case
    if case.streams:
        ends = [chunk.type for chunk in evidence.chunks[-2:]]
        assert ends == ["tripwire", "finish"], case


def _check_what_was_allowed(case: Case, evidence: Evidence) -> None:
    """Accepted steps stay, and so does, for who reads along, what left before the block."""
    attempt, result = ATTEMPTS[case.place], evidence.result
    begun = "Begun. " if case.step and not attempt.schema else ""
    better = case.ending == "retry"
    if not attempt.schema:
        assert result.text == begun + ("fine" if better else ""), case
    assert result.object == ({"word": "fine"} if attempt.schema and better else None), case
    assert result.reasoning == "", case
    assert len(result.steps) == case.step + better, case
    names = [call.tool_name for call in result.tool_calls]
    assert names == ["safe"] * case.step, case
    assert [found.result for found in result.tool_results] == ["done"] * case.step, case
    assert sum(len(message.parts) for message in result.messages) > 0 or not result.steps, case
    if case.streams:
        kind: Any = ReasoningDelta if case.place == "reasoning" else TextDelta
        seen = evidence.parts()[kind].removeprefix(begun if kind is TextDelta else "")
        assert seen.startswith(attempt.shown), case


def test_every_processor_of_the_shelf_is_judged() -> None:
    """A new one that can block is in the matrix, and one that cannot is declared, with a reason."""
    found = {
        name
        for name in shelf.__all__
        if inspect.isclass(kind := getattr(shelf, name))
        and (
            issubclass(kind, Pipeline)
            or any(hasattr(kind, hook) for hook in (*HOOKS, STREAM_OPERATOR))
        )
    }
    assert found == BLOCKERS.keys() | CANNOT_BLOCK.keys()
    assert not BLOCKERS.keys() & CANNOT_BLOCK.keys()


@pytest.mark.parametrize("name", CANNOT_BLOCK)
def test_what_is_declared_not_to_block_has_nothing_to_block_with(name: str) -> None:
    """Neither `abort` nor a wire of its own, here or in the classes that it is made of."""
    for kind in getattr(shelf, name).__mro__:
        if kind.__module__.startswith("streampipe.processors"):
            source = inspect.getsource(kind)
            assert ".abort(" not in source
            assert "TripWire(" not in source
