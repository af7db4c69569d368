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
from tests.lessons.blockers import BLOCKERS, CANARY, CANNOT_BLOCK, Blocker, Tell

MATRIX = [(guard, place) for guard, blocker in BLOCKERS.items() for place in blocker.places]


async def check(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    """Run a case: the run ends as it has to, what was allowed is there, the canary is nowhere."""
    evidence = await tried(case, caplog)
    told = [name for name, text in evidence.accessors().items() if CANARY in text]
    if CANARY in evidence.client() and not ATTEMPTS[case.place].leaves_early:
        told.append("client")
    if CANARY in evidence.sent():
        told.append("model")
    assert not told, f"{case}: disclosed in {', '.join(told)}"
    check_ending(case, evidence)
    check_what_was_allowed(case, evidence)


def check_ending(case: Case, evidence: Evidence) -> None:
    """The run has ended as it had to, and somebody was told why."""
    result, wire = evidence.result, evidence.result.tripwire
    assert evidence.violations, f"{case}: nobody was told"
    if case.ending == "retry":
        assert (wire, result.finish_reason, result.retries) == (None, "stop", 1), case
        return
    asked = 0 if ATTEMPTS[case.place].is_sent else case.step + (case.place != "request")
    assert evidence.model.calls == asked, case
    if case.ending == "raise":
        ending = ["error", "finish"]
        assert (wire, result.finish_reason) == (None, "error"), case
        assert result.error is not None, case
    else:
        ending = ["tripwire", "finish"]
        assert wire is not None, case
        assert bool(wire.retry) is (case.ending == "exhausted"), case
        assert (result.error, result.finish_reason) == (None, "other"), case
    if case.streams:
        assert [chunk.type for chunk in evidence.chunks[-2:]] == ending, case


def check_what_was_allowed(case: Case, evidence: Evidence) -> None:
    """Accepted steps stay, and so does, for who reads along, what has left before the block."""
    attempt, result = ATTEMPTS[case.place], evidence.result
    begun = "Begun. " if case.step and not attempt.schema else ""
    better = case.ending == "retry"
    if not attempt.schema:
        assert result.text == begun + ("fine" if better else ""), case
    assert result.object == ({"word": "fine"} if attempt.schema and better else None), case
    assert result.reasoning == "", case
    assert len(result.steps) == case.step + better, case
    assert [call.tool_name for call in result.tool_calls] == ["safe"] * case.step, case
    assert [found.result for found in result.tool_results] == ["done"] * case.step, case
    assert "".join(message.text for message in result.messages) == result.text, case
    if case.streams:
        kind: Any = ReasoningDelta if case.place == "reasoning" else TextDelta
        seen = evidence.parts()[kind].removeprefix(begun if kind is TextDelta else "")
        assert seen.startswith(attempt.shown), case


@pytest.mark.parametrize(("guard", "place"), MATRIX)
async def test_what_is_blocked_is_disclosed_nowhere(
    guard: str, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the step and the ending, streamed or collected, and whoever is asked of it."""
    caplog.set_level(logging.DEBUG)
    for case in cases(guard, place):
        await check(case, caplog)


def test_every_processor_of_the_shelf_is_judged() -> None:
    """A new one that can block is in the matrix; one that cannot is declared, with a reason."""
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


class Leaky:
    """A guard gone wrong: it blocks, and gives away in one place what it has blocked."""

    id = "leaky"

    def __init__(self, tell: Tell, where: str) -> None:
        """Say where."""
        self.on_violation = tell
        self._where = where
        self._before = ""

    def process_output_stream(self, args: Any) -> Any:
        """Let the canary's pieces go, or block at the first of them."""
        part = args.part
        if part.type != "text-delta":
            return part
        self._before += part.text
        found = CANARY in self._before
        if self._where == "client":
            if "And more" in part.text:
                args.abort("too late")
        elif found or self._before.endswith(CANARY[:3]):
            if self._where == "log":
                logging.getLogger("streampipe").warning("blocked %s", CANARY)
            told = {self._where: f"not {CANARY}"}
            args.abort(told.get("reason", ""), metadata=told.get("metadata"))
        return part


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("client", "disclosed in records, client"),
        ("log", "disclosed in log"),
        ("metadata", "disclosed in tripwire, on_violation, client"),
        ("reason", "disclosed in tripwire, on_violation, records, spans, client"),
    ],
)
async def test_a_guard_that_gives_something_away_is_found(
    where: str, told: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the tests above show nothing."""
    leaky = Blocker(lambda tell, _: Leaky(tell, where))
    monkeypatch.setitem(BLOCKERS, "Leaky", leaky)
    with pytest.raises(AssertionError, match=told):
        await check(Case("Leaky", "text", 0, "block", streams=True), caplog)
