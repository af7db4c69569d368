"""Draw cases, hold each to the laws, and report the smallest that breaks one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from typing import Any

from streampipe.errors import ConfigurationError
from streampipe.testing._bench import Broken, cleared
from streampipe.testing._clock import VirtualLoop, refuse_nesting
from streampipe.testing._hypothesis import Flaky, hypothesis, st
from streampipe.testing._trial import Shown

__all__ = ["LawError", "chosen_laws", "examine", "on_a_loop_of_its_own"]


class LawError(AssertionError):
    """A law does not hold; the message has the smallest example that was found.

    Attributes:
        law: the name of the law.
    """

    def __init__(self, message: str, *, law: str) -> None:
        """Report a broken law."""
        super().__init__(message)
        self.law = law


def chosen_laws(check: str, laws: Collection[str] | None, known: Iterable[str]) -> frozenset[str]:
    """The laws that were asked for; all of the known ones if none were.

    Raises:
        ConfigurationError: one is unknown.
    """
    known = list(known)
    unknown = [] if laws is None else sorted(set(laws) - set(known))
    if isinstance(laws, str) or unknown:
        raise ConfigurationError(
            f"{check}: laws takes a collection of {', '.join(map(repr, known))}, not {laws!r}"
        )
    return frozenset(known if laws is None else laws)


@contextlib.contextmanager
def on_a_loop_of_its_own(check: str) -> Iterator[VirtualLoop]:
    """A jumping-clock loop that nobody complains to.

    Yields:
        The loop.

    Raises:
        RuntimeError: an event loop runs already.
    """
    refuse_nesting(check)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)  # noqa: S101 - for the type checkers
        yield loop


Verdict = Callable[[Any, VirtualLoop, str], Coroutine[Any, Any, None]]
"""Gets a case, its loop and the one law to look at ("" for all); raises `Broken`."""


class _Examiner:
    """Tries cases, one after the other, on one loop."""

    def __init__(self, verdict: Verdict, loop: VirtualLoop) -> None:
        self.found: tuple[Any, Broken] | None = None
        self._verdict = verdict
        self._loop = loop
        self._complaints: list[Mapping[str, Any]] = []
        loop.set_exception_handler(lambda _, context: self._complaints.append(context))

    def example(self, case: Any) -> None:
        """Try a case. Once a law was broken, only cases that break the same one are of interest."""
        try:
            self._loop.run_until_complete(self._trial(case))
        except Broken as broken:
            self.found = case, broken
            raise

    async def _trial(self, case: Any) -> None:
        try:
            await self._verdict(case, self._loop, self.found[1].law if self.found else "")
            if self._complaints:
                raise Broken("cancel", f"the event loop complains: {_told(self._complaints[0])}")
        finally:
            self._complaints.clear()
            await cleared()


def examine(
    subject: str,
    strategy: st.SearchStrategy[Any],
    verdict: Verdict,
    describe: Callable[[Any], Mapping[str, object]],
    max_examples: int | None,
    *,
    share: float = 1,
) -> None:
    """Hold drawn cases to a verdict.

    Args:
        subject: what is being checked, for the report.
        strategy: the cases.
        verdict: the judge.
        describe: what to show of a case in the report.
        max_examples: how many cases; None for as many as the active Hypothesis profile says.
        share: how much of that number is to do.

    Raises:
        LawError: a case breaks a law.
        RuntimeError: an event loop runs already.
    """
    with on_a_loop_of_its_own(subject) as loop:
        examiner = _Examiner(verdict, loop)
        configured = _settings(max_examples, share)
        try:
            configured(hypothesis.given(strategy)(examiner.example))()
        except (Broken, Flaky) as error:
            if examiner.found is None:
                raise
            case, broken = examiner.found
            unsure = isinstance(error, Flaky)
            raise report(subject, broken, describe(case), unsure=unsure) from None


def _settings(max_examples: int | None, share: float) -> hypothesis.settings:
    profile = hypothesis.settings()
    count = profile.max_examples if max_examples is None else max_examples
    # To explain is to trace every line: it costs more than all the rest.
    phases = [phase for phase in profile.phases if phase is not hypothesis.Phase.explain]
    return hypothesis.settings(
        max_examples=max(1, int(count * share)),
        phases=phases,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=[*hypothesis.HealthCheck],  # pyright: ignore[reportArgumentType]  # an enum
    )


def report(subject: str, broken: Broken, case: Mapping[str, object], *, unsure: bool) -> LawError:
    """A finding as an error to be read."""
    facts = {**broken.facts, **case}
    width = max(map(len, facts), default=0)
    lines = [f"{subject}: law {broken.law!r} is broken", f"  {broken.what}"]
    lines += [
        f"    {name.replace('_', ' '):{width}}  {_text(fact)}" for name, fact in facts.items()
    ]
    if unsure:
        lines.append("  and not every time: it depends on more than its input")
    return LawError("\n".join(lines), law=broken.law)


def _text(fact: object) -> str:
    return fact if isinstance(fact, Shown) else repr(fact)


def _told(context: Mapping[str, Any]) -> str:
    return f"{context.get('message')}: {context.get('exception')!r}"
