"""Another attempt at a step: who may ask for one, and how often."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from streampipe.abort import TripWire
from streampipe.agent._output import StructuredOutput
from streampipe.agent._spec import RunSpec
from streampipe.contracts import RunResult
from streampipe.errors import ModelError, StructuredOutputError
from streampipe.models._http.clock import pause_before
from streampipe.operators._hooks import process_api_error
from streampipe.operators._scope import Bound, Scope

log = logging.getLogger("streampipe")
NO_BUDGET = (
    "processor %r asked for another answer, but the agent has no retries: the run is blocked; "
    "give it max_processor_retries"
)


class ApiRetry(TripWire):
    """A failed model call is made again; the model is told nothing."""


class BrokenRetry(ApiRetry):
    """An answer that broke is asked for again, before anybody has read of it."""


class Retries:
    """The retries of one run.

    Aborts with `retry`, `process_api_error` and answers that do not fit their schema share one
    budget. An answer that broke in the middle has another, the model's own in each step: where
    nobody reads along, it is to the run what a refusal is to the model's client.
    """

    def __init__(
        self,
        spec: RunSpec,
        scope: Scope,
        result: RunResult,
        errors: list[Bound],
        *,
        unread: bool,
    ) -> None:
        """Start with nothing used up.

        Args:
            spec: the budgets.
            scope: the run; what is used up of the shared budget stands there, for hooks to see.
            result: is told of every retry.
            errors: the error processors.
            unread: nobody reads the chunks as they come.
        """
        self._spec = spec
        self._scope = scope
        self._result = result
        self._errors = errors
        self._broken = getattr(spec.model, "max_retries", 0) if unread else 0
        self._pauses = 0
        self._step = 0

    def asked_again(self, _error: ModelError, _pause: float) -> None:
        """The model's client has tried something again by itself."""
        self._result.retries += 1

    async def on_api_error(self, error: ModelError, _attempt: int) -> bool:
        """What is done about a failed model call; False lets it fail the run.

        Raises:
            ApiRetry: the step is to be tried again.
        """
        if self._step != self._scope.step_number:
            self._step, self._pauses = self._scope.step_number, 0
        if error.mid_stream and error.is_retryable and self._pauses < self._broken:
            pause = pause_before(self._pauses, error.retry_after)
            if pause is not None:
                self._pauses += 1
                await asyncio.sleep(pause)
                raise BrokenRetry(str(error), retry=True, processor_id="model")
        processor = await process_api_error(self._errors, error)
        if processor is not None and self._left():
            raise ApiRetry(str(error), retry=True, processor_id=processor.id)
        return False

    def validated(self, output: StructuredOutput, text: str) -> Any:
        """The answer as the values that were asked for.

        Raises:
            TripWire: it does not fit, and the model is to be told why.
            StructuredOutputError: it does not fit, and the budget is spent.
        """
        try:
            return output.parse(text)
        except StructuredOutputError as error:
            if not self._left():
                raise
            raise TripWire(str(error), retry=True, processor_id="structured_output") from error

    def grant(self, wire: TripWire) -> str:
        """Use up a retry.

        Returns:
            What the model is told of its rejected answer, which may be nothing.

        Raises:
            TripWire: no retry was asked for, or the budget is spent.
        """
        if not isinstance(wire, BrokenRetry):
            if not wire.retry or not self._left():
                if wire.retry and not self._spec.max_retries:
                    log.warning(NO_BUDGET, wire.processor_id)
                raise wire
            self._scope.retry_count += 1
        self._result.retries += 1
        return "" if isinstance(wire, ApiRetry) else wire.reason

    def _left(self) -> bool:
        return self._scope.retry_count < self._spec.max_retries
