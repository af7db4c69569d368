"""Operators that arrange streams: one after another, later, again."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from reactivex import Observable
from reactivex.subject import Subject

from streampipe.errors import OperatorError
from streampipe.operators._bridge import flowable
from streampipe.operators._core import FAULTS, Emit, Escape, Flowable, is_cancel, run_stage
from streampipe.operators._functions import check_function
from streampipe.operators._fuse import Blamed
from streampipe.operators._operator import operator

T = TypeVar("T")
R = TypeVar("R")


def create(run: Callable[[Emit[T]], Coroutine[Any, Any, None]]) -> Flowable[T]:
    """An observable made by a coroutine function that pushes its elements.

    Args:
        run: gets `emit`; awaits what `emit` returns when that is not None; returns to complete,
            raises to fail.

    Returns:
        A cold `Flowable`: every subscription runs it anew.
    """
    return Flowable(run)


def of(*items: T) -> Flowable[T]:
    """These elements, then the end."""

    async def run(emit: Emit[T]) -> None:
        for item in items:
            wait = emit(item)
            if wait is not None:
                await wait

    return Flowable(run)


def concat(*sources: Observable[T]) -> Flowable[T]:
    """One source after the other; each is subscribed to when the one before has completed.

    Unlike Rx's `concat` it keeps back-pressure and costs nothing per element.

    Returns:
        A `Flowable` that fails as the source at turn fails; later ones are then never subscribed.
    """
    parts = [flowable(source) for source in sources]

    async def run(emit: Emit[T]) -> None:
        for part in parts:
            await part.into(emit)

    return Flowable(run)


@operator
def feedback(
    source: Observable[T],
    step: Callable[[T, Subject[T]], Observable[R]],
) -> Observable[R]:
    """A loop: every element becomes a stream, and may feed more elements back.

    `step(element, again)` makes the stream of one turn; `again.on_next(next_element)`, called at
    any time before that stream completes, re-enters the loop behind it. Turns run one at a time,
    in order, and the loop completes when the source has completed and nothing was fed back. The
    Subject is trampolined: it only queues, so a loop of any length runs in constant stack.

    Args:
        source: what the loop starts with.
        step: makes the stream of one turn.

    Returns:
        The turns' elements, one turn after the other. It fails as a turn or the source fails, and
        with `OperatorError` when `step` raises.

    Raises:
        ConfigurationError: `step` is no plain function.
    """
    check_function("feedback", "step", step)
    blamed = Blamed("feedback")

    def turn(element: T, again: Subject[T]) -> Flowable[R]:
        try:
            made = step(element, again)
        except FAULTS as error:
            raise blamed.fault(error, element) from error
        if not isinstance(made, Observable):
            msg = f"step made {type(made).__name__}; give an observable"
            raise OperatorError(msg, operator="feedback")
        return flowable(made)

    async def run(emit: Emit[R]) -> None:
        waiting: deque[T] = deque()
        again: Subject[T] = Subject()
        again.subscribe(waiting.append)

        async def turns() -> None:
            while waiting:
                try:
                    await turn(waiting.popleft(), again).into(emit)
                except FAULTS as error:
                    if is_cancel(error):
                        raise
                    raise Escape(error, blamed.token) from error

        def enter(element: T) -> Awaitable[None]:
            waiting.append(element)
            return turns()

        try:
            await run_stage(flowable(source), enter, blamed.token)
        finally:
            again.dispose()

    return Flowable(run)
