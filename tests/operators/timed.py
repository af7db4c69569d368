"""Sources whose elements come at given times, and what a reader sees of them when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from reactivex import Observable

from streampipe import operators as ops
from streampipe.testing import run_virtual
from tests.operators.sources import elements

Timed = tuple[float, Any]
Pipe = Callable[[Observable[Any]], Observable[Any]]


class Script:
    """A source that emits each element when it is due, then ends or fails.

    Attributes:
        closed: how many iterations ended, whatever the way.
        given: how many elements were taken from it.
    """

    def __init__(
        self, *items: Timed, until: float = 0.0, error: BaseException | None = None
    ) -> None:
        """Emit `items`, each at its time; end at `until` or at once, with `error` if given."""
        self.closed = 0
        self.given = 0
        self._items = items
        self._until = until
        self._error = error

    async def __call__(self) -> AsyncIterator[Any]:
        """An iteration of its own."""
        now = asyncio.get_running_loop().time
        began = now()
        try:
            for due, item in self._items:
                await asyncio.sleep(began + due - now())
                self.given += 1
                yield item
            await asyncio.sleep(began + self._until - now())
            if self._error is not None:
                raise self._error
        finally:
            self.closed += 1

    def pipe(self, *operators: Pipe) -> Observable[Any]:
        """The source through operators."""
        return ops.from_aiter(self).pipe(*operators)


async def seen(stream: Observable[Any], pause: float = 0.0) -> tuple[list[Timed], Any]:
    """What comes when, and how it ends; the reader takes `pause` seconds over each element."""
    now = asyncio.get_running_loop().time
    items: list[Timed] = []

    async def dwell(item: Any) -> Any:
        items.append((round(now(), 6), item))
        await asyncio.sleep(pause)
        return item

    end: Any = None
    try:
        await elements(stream.pipe(ops.map_async(dwell)))
    except Exception as error:  # noqa: BLE001 - it is what the test looks at
        end = error
    assert asyncio.all_tasks() == {asyncio.current_task()}, "tasks were left running"
    return items, end


def play(stream: Observable[Any], pause: float = 0.0) -> tuple[list[Timed], Any]:
    """`seen` on a clock of its own."""
    return run_virtual(seen(stream, pause))
