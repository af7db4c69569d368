"""`StreamErrorRetry`: an answer that broke is asked for again."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence

from streampipe.contracts import ProcessAPIErrorArgs, ProcessAPIErrorResult, Processor
from streampipe.errors import ConfigurationError, IncompleteStreamError, ModelError
from streampipe.operators._functions import check_async_function
from streampipe.processors._options import Count, Name, Wait, checked_options

__all__ = ["Matcher", "StreamErrorRetry"]

Matcher = type[BaseException] | str | Callable[[Exception], bool | Awaitable[bool]]
"""Which failures are meant: a class of errors, words in the message, or a function of the error."""


def broke_off(error: Exception) -> bool:
    """Whether an answer broke in the middle, and may not the next time.

    No client tries that again: some of the answer has gone through its hands. A model that says
    nothing of it, since it is none of ours, is known by the end that its answer lacks.
    """
    if not isinstance(error, ModelError) or not error.is_retryable:
        return False
    return error.mid_stream or isinstance(error, IncompleteStreamError)


class StreamErrorRetry(Processor):
    """Asks again when a model's answer breaks in the middle, which no client can do by itself.

    For `error_processors`. What the client got of the broken answer is void, and shown so. The
    wait before a retry is what the provider asks for, else it doubles from `delay` up to
    `max_delay`, and a random half of it is left out, so that many runs that broke together do not
    come back together. It ends at once when the run is stopped.

    A model's own client has tried again before, wherever it could: matchers that take in those
    failures too, such as `ServerError`, multiply its tries. All retries count towards the agent's
    `max_processor_retries`. `generate()` has tried again by itself, in each step as often as the
    model's `max_retries` says, before it asks here.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.testing import ScriptedModel, turn
    >>> model = ScriptedModel([turn("Half a", incomplete=True), ["A whole answer."]])
    >>> agent = Agent(model=model, error_processors=[StreamErrorRetry(delay=0)])
    >>> asyncio.run(agent.generate("Hello")).text
    'A whole answer.'
    """

    @checked_options
    def __init__(
        self,
        max_retries: Count = 2,
        *,
        matchers: Sequence[Matcher] | None = None,
        delay: Wait = 0.5,
        max_delay: Wait = 30.0,
        respect_retry_after: bool = True,
        id: Name = "stream-error-retry",  # noqa: A002 - named as the attribute
    ) -> None:
        """Say for which failures, how often and how soon.

        Args:
            max_retries: how often a step is tried again at most, at least 1.
            matchers: which failures are meant, any of them: classes (of the error, or of what
                caused it), words that its message has (in any case), and functions of the error,
                plain or async. By default what broke in the middle and is retryable.
            delay: seconds before the first retry of a step; 0 asks again at once.
            max_delay: seconds that a wait takes at most. A provider that asks for longer is not
                asked again.
            respect_retry_after: wait as long as the provider asks for.
            id: what it goes by.

        Raises:
            ConfigurationError: an option is none of these, `matchers` is empty, or `max_delay` is
                below `delay`.
        """
        name = type(self).__name__
        self.id = id
        self._max_retries = max_retries
        self._matchers = [broke_off] if matchers is None else _checked(name, matchers)
        self._delay = delay
        self._max_delay = max_delay
        if max_delay < delay:
            msg = f"{name}: max_delay ({max_delay} s) must not be below delay ({delay} s)"
            raise ConfigurationError(msg)
        self._respects = respect_retry_after

    async def process_api_error(self, args: ProcessAPIErrorArgs) -> ProcessAPIErrorResult | None:
        """Wait and ask for a retry, if the failure is meant and there are retries left."""
        state = args.state
        if state.get("step_number") != args.step_number:
            state.update(step_number=args.step_number, retries=0)
        if state["retries"] >= self._max_retries or not await self._is_meant(args.error):
            return None
        pause = self._pause(state["retries"], args.error)
        if pause is None:
            return None
        state["retries"] += 1
        await asyncio.sleep(pause)
        return ProcessAPIErrorResult(retry=True)

    async def _is_meant(self, error: Exception) -> bool:
        for matcher in self._matchers:
            if isinstance(matcher, type):
                found = any(isinstance(one, matcher) for one in _chain(error))
            elif isinstance(matcher, str):
                found = matcher.casefold() in str(error).casefold()
            else:
                answer = matcher(error)
                found = await answer if inspect.isawaitable(answer) else answer
            if found:
                return True
        return False

    def _pause(self, retries: int, error: Exception) -> float | None:
        """Seconds to wait; None when the provider asks for more than anybody should wait."""
        asked = getattr(error, "retry_after", None)
        if self._respects and asked is not None:
            return asked if asked <= self._max_delay else None
        longest = min(self._max_delay, self._delay * 2**retries)
        return random.uniform(longest / 2, longest)  # noqa: S311 - no secret


def _checked(name: str, matchers: object) -> list[Matcher]:
    """The matchers that were given.

    Raises:
        ConfigurationError: they are no list, there is none, or one is no matcher.
    """
    if not isinstance(matchers, Sequence) or isinstance(matchers, str) or not matchers:
        msg = f"{name}: matchers must be a list with at least one of them, not {matchers!r:.80}"
        raise ConfigurationError(msg)
    for place, matcher in enumerate(matchers):
        where = f"matchers[{place}]"
        if isinstance(matcher, type):
            if not issubclass(matcher, BaseException):
                msg = f"{name}: {where} is {matcher.__name__}, which is no class of errors"
                raise ConfigurationError(msg)
        elif isinstance(matcher, str):
            if not matcher.strip():
                msg = f"{name}: {where} is an empty text, which every message has"
                raise ConfigurationError(msg)
        else:
            check_async_function(name, where, matcher)
    return list(matchers)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, what caused it, what caused that, and so on."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__
