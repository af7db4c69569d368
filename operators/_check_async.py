"""Async functions that decide what may pass: on elements, and on text before it leaves."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from reactivex import Observable

from streampipe.abort import TripWire
from streampipe.chunks import Chunk
from streampipe.errors import ConfigurationError, OperatorError
from streampipe.operators._bridge import flowable
from streampipe.operators._core import Emit, Escape, Flowable
from streampipe.operators._functions import check_async_function, to_await
from streampipe.operators._fuse import Opened, Stage, fuse
from streampipe.operators._kinds import with_text
from streampipe.operators._map_async import Answer, answered
from streampipe.operators._operator import operator
from streampipe.operators._options import BOTH, Part, checked_count, options_of
from streampipe.operators._text import PARTS, Machine, checked_parts, text_stage
from streampipe.text import Splitter

T = TypeVar("T")

LONGEST_SENTENCE = 2_000  # characters; text without an end is not held for ever


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check says of a text; made by the class methods.

    Attributes:
        action: what happens with the text.
        reason: for whoever reads the tripwire: the client, and the model when it tries again.
        text: what takes its place, for `"replace"`.
    """

    action: Literal["allow", "block", "replace", "retry"]
    reason: str = ""
    text: str = ""

    @classmethod
    def allow(cls) -> Verdict:
        """The text leaves as it is."""
        return cls("allow")

    @classmethod
    def block(cls, reason: str = "") -> Verdict:
        """The run ends here."""
        return cls("block", reason)

    @classmethod
    def replace(cls, text: str) -> Verdict:
        """Another text leaves in its place; the empty one drops it."""
        return cls("replace", text=text)

    @classmethod
    def retry(cls, reason: str = "") -> Verdict:
        """The model is told the reason and tries the step again."""
        return cls("retry", reason)


Check = Callable[[str], Awaitable[Verdict | bool]]
"""Gets a window of text; True allows it, False blocks."""

ALLOWED = Verdict.allow()


@operator
def filter_async(
    source: Observable[T],
    predicate: Callable[[T], Awaitable[object]],
    *,
    concurrency: int = 1,
) -> Observable[T]:
    """The elements that `predicate` is true for once it was awaited, in their order.

    Args:
        source: any observable.
        predicate: an async function.
        concurrency: how many calls may run at once; that many elements are held at most.

    Returns:
        These elements. It fails with `OperatorError` when `predicate` raises: what stood before
        leaves first, the source is closed and calls still running are cancelled.

    Raises:
        ConfigurationError: `predicate` is no function, or `concurrency` no whole number of at
            least 1.
    """
    check_async_function("filter_async", "predicate", predicate)
    checked_count("filter_async", "concurrency", concurrency)

    async def asked(item: T) -> bool:
        return bool(await to_await(predicate(item), "predicate", "for a plain one there is filter"))

    def open_(emit: Emit[T], stage: Stage) -> Opened:
        def push(answer: Answer) -> Awaitable[Any] | None:
            if answer.error is not None:
                raise stage.fault(answer.error, answer.item) from answer.error
            return emit(answer.item) if answer.result else None

        return Opened(push)

    return answered(source, asked, Stage("filter_async", open_), concurrency)


@operator
def check_async(
    source: Observable[Chunk],
    check: Check,
    *,
    window: Literal["sentence", "line"] | int = "sentence",
    concurrency: int = 4,
    max_checks: int | None = None,
    over_budget: Literal["fail", "allow"] = "fail",
    parts: Iterable[Part] = BOTH,
) -> Observable[Chunk]:
    """Let text leave only once an async function, such as a moderation model, has allowed it.

    Text is held in windows that do not depend on how it was cut. They are checked side by side and
    leave in order, each as one piece; chunks of other kinds keep their place among them. So it
    reads ahead by `concurrency` windows and the one that is being filled. It fails closed: where
    there is no verdict, nothing leaves.

    Args:
        source: a stream of chunks.
        check: gets a window's text and gives a `Verdict`, or True to allow and False to block.
            Nothing is no verdict.
        window: `"sentence"` or `"line"`, at most 2000 characters of it; or how many characters,
            cut behind white space where there is some.
        concurrency: how many checks may run at once.
        max_checks: how many windows are checked in all; None is no limit.
        over_budget: what becomes of the windows after that: `"fail"`, or `"allow"` unchecked.
        parts: which parts are checked: "text", "reasoning".

    Returns:
        The chunks. It fails with `TripWire` when a window is blocked (with `retry` set for
        `Verdict.retry`), and with `OperatorError` when `check` raises, gives something else or is
        over its budget; the window at fault does not leave, what stood before it does. When the
        source fails, the text that is held is dropped.

    Raises:
        ConfigurationError: an option is none of what is said above.
    """
    check_async_function("check_async", "check", check)
    checked_count("check_async", "concurrency", concurrency)
    if max_checks is not None:
        checked_count("check_async", "max_checks", max_checks, least=0)
    if over_budget not in ("fail", "allow"):
        msg = f"check_async: over_budget must be 'fail' or 'allow', not {over_budget!r}"
        raise ConfigurationError(msg)
    kinds = tuple(PARTS[part][0] for part in checked_parts("check_async", parts))
    with options_of("check_async"):
        machine = window_machine(window)
    cut = text_stage("check_async", machine, parts, whole=True)

    enforce = Stage("check_async", _enforce)

    async def run(emit: Emit[Chunk]) -> None:
        checks = _Checks(check, kinds, max_checks, allows_more=over_budget == "allow")
        windows = fuse(flowable(source), cut)
        checked = answered(windows, checks.judged, enforce, concurrency, asks=checks.asks)
        await checked.into(emit)

    return Flowable(run)


class _Checks:
    """Asks for verdicts and counts them, in one subscription."""

    def __init__(
        self,
        check: Check,
        kinds: tuple[type[Chunk], ...],
        max_checks: int | None,
        *,
        allows_more: bool,
    ) -> None:
        self._check = check
        self._kinds = kinds
        self._left = max_checks
        self._max_checks = max_checks
        self._allows_more = allows_more

    def asks(self, chunk: Chunk) -> bool:
        """Whether a chunk is a window."""
        return isinstance(chunk, self._kinds) and bool(getattr(chunk, "text", ""))

    async def judged(self, chunk: Chunk) -> Verdict:
        """What is to become of a window.

        Raises:
            OperatorError: the check gives no verdict, or the budget is used up.
        """
        text: str = getattr(chunk, "text", "")
        if self._left is not None:
            if self._left == 0:
                return self._beyond()
            self._left -= 1
        return _verdict(
            await to_await(self._check(text), "check", "it has to be an async function")
        )

    def _beyond(self) -> Verdict:
        if self._allows_more:
            return ALLOWED
        msg = f"the budget of {self._max_checks} checks is used up; raise max_checks"
        raise OperatorError(msg, operator="check_async")


def _verdict(answer: object) -> Verdict:
    """What a check's answer means.

    Raises:
        OperatorError: it is none.
    """
    if isinstance(answer, Verdict):
        return answer
    if answer is True:
        return ALLOWED
    if answer is False:
        return Verdict.block("the text was not allowed")
    msg = f"check gave {type(answer).__name__}; give a Verdict, True or False"
    raise OperatorError(msg, operator="check_async")


def _enforce(emit: Emit[Chunk], stage: Stage) -> Opened:
    """The stage behind the checks: lets a chunk go, or ends the stream."""

    def push(answer: Answer) -> Awaitable[Any] | None:
        chunk, verdict, error = answer
        if isinstance(error, OperatorError) and error.operator == "check_async":
            raise Escape(error, stage.token)
        if error is not None:
            raise stage.fault(error, chunk) from error
        if verdict is None or verdict.action == "allow":
            return emit(chunk)
        if verdict.action == "replace":
            empty = not verdict.text and not chunk.provider_metadata
            return None if empty else emit(with_text(chunk, verdict.text))
        again = verdict.action == "retry"
        wire = TripWire(verdict.reason, retry=again, processor_id="check_async")
        raise Escape(wire, stage.token)

    return Opened(push)


_UP_TO_SPACE = re.compile(r".*\s", re.DOTALL)


class _Cutter:
    """Cuts a text after so many characters at most, behind the last white space among them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._text = ""

    @property
    def held(self) -> int:
        return len(self._text)

    def feed(self, piece: str) -> list[str]:
        text = self._text + piece
        pieces: list[str] = []
        start = 0
        while len(text) - start > self._size:
            found = _UP_TO_SPACE.match(text, start, start + self._size)
            end = found.end() if found is not None else start + self._size
            pieces.append(text[start:end])
            start = end
        self._text = text[start:]
        return pieces

    def finish(self) -> list[str]:
        text, self._text = self._text, ""
        return [text] if text else []


def window_machine(window: object) -> Callable[[str], Machine]:
    """What makes the machine that cuts a text part into windows.

    Raises:
        ConfigurationError: there is no such window.
    """
    if window in ("sentence", "line"):
        by = str(window)
        return lambda _: Splitter(by, max_hold=LONGEST_SENTENCE)
    if isinstance(window, int) and not isinstance(window, bool) and window >= 1:
        size = window
        return lambda _: _Cutter(size)
    msg = f"window must be 'sentence', 'line' or 1 character or more, not {window!r}"
    raise ConfigurationError(msg)
