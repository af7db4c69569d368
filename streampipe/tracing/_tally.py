"""What a processor did with the chunks of a step, counted: one span, not one for every chunk."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping
from typing import Any

from opentelemetry.util.types import AttributeValue

from streampipe.contracts import ProcessOutputStreamArgs
from streampipe.operators._trace import StreamHook


class Tally:
    """The counts of one processor, from one `clear` to the next.

    Attributes:
        processor_id: whose they are.
        begun: when its first chunk came, in nanoseconds since the epoch; 0 before it.
        error: what the hook raised, if it did.
    """

    __slots__ = ("_dropped", "_in", "_out", "_seconds", "begun", "error", "processor_id")

    def __init__(self, processor_id: str) -> None:
        """Count nothing yet."""
        self.processor_id = processor_id
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.begun = 0
        self.error: BaseException | None = None
        self._in = self._out = self._dropped = 0
        self._seconds = 0.0

    def attributes(self) -> Mapping[str, AttributeValue]:
        """The counts, and the seconds in the hook together."""
        return {
            "streampipe.chunks.in": self._in,
            "streampipe.chunks.out": self._out,
            "streampipe.chunks.dropped": self._dropped,
            "streampipe.hook.duration": self._seconds,
        }

    def counted(self, hook: StreamHook) -> StreamHook:
        """The same hook, of the same colour, counted."""
        clock = time.perf_counter

        def counted(args: ProcessOutputStreamArgs) -> Any:
            part = args.part  # the args are used again for every chunk
            if not self._in:
                self.begun = time.time_ns()
            start = clock()
            try:
                result = hook(args)
            except BaseException as error:
                self.error = error
                raise
            finally:
                self._in += 1
                self._seconds += clock() - start
            if result is part:
                self._out += 1
            else:
                self._came(result)
            return result

        async def counted_async(args: ProcessOutputStreamArgs) -> Any:
            part = args.part  # the args are used again for every chunk
            if not self._in:
                self.begun = time.time_ns()
            start = clock()
            try:
                result = await hook(args)
            except BaseException as error:
                self.error = error
                raise
            finally:
                self._in += 1
                self._seconds += clock() - start
            if result is part:
                self._out += 1
            else:
                self._came(result)
            return result

        return counted_async if inspect.iscoroutinefunction(hook) else counted

    def _came(self, result: Any) -> None:
        """Count what a hook returned: a chunk, several, or none."""
        out = len(result) if isinstance(result, list | tuple) else int(result is not None)
        self._out += out
        self._dropped += not out
