"""`SideBySide`: several guards that ask, asked at the same time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Unpack

from streampipe.contracts import StreamOperatorArgs
from streampipe.contracts.processor import HookArgs
from streampipe.errors import ConfigurationError
from streampipe.processors._asked import Asked
from streampipe.processors._check_guard import (
    CheckGuard,
    ConversationGuard,
    Objection,
    Strategy,
    WindowOptions,
)
from streampipe.processors._options import Name, checked_options
from streampipe.processors._text_guard import Place

__all__ = ["SideBySide"]

STOPPING = ("block", "retry", "raise")


class SideBySide(ConversationGuard):
    """Asks several guards about each text at the same time: what they add is one question's time.

    One behind the other, each waits for the one before it. Here each window, message, call and
    result goes to all that cover its place; it leaves when all have answered. Where several object,
    the first in the list that stops the answer decides; else the text of the first that replaces
    it takes its place, and it is blocked where two want to. What becomes of a text is said by the
    guard that objects, and tripwires and violations are in its name.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.processors import Guard
    >>> from streampipe.testing import ScriptedModel
    >>> async def short(text: str) -> bool:
    ...     return len(text) < 40
    >>> async def calm(text: str) -> bool:
    ...     return "!" not in text
    >>> guard = SideBySide(Guard(short, id="short"), Guard(calm, id="calm"))
    >>> agent = Agent(model=ScriptedModel([["Yes. ", "Now!"]]), output_processors=[guard])
    >>> asyncio.run(agent.generate("Now?")).tripwire.processor_id
    'calm'

    Attributes:
        id: names it in the run's list; the guards go by their own.
        guards: the guards, in order.
        covers: every place that one of them covers.
    """

    @checked_options
    def __init__(
        self,
        *guards: CheckGuard,
        id: Name = "side-by-side",  # noqa: A002 - the contract's name
        **options: Unpack[WindowOptions],
    ) -> None:
        """Put guards side by side.

        Args:
            guards: two or more of the guards that ask; `SystemPromptScrubber`, which changes the
                text before it asks, stands before or behind them.
            id: see the class.
            options: `window`, `context` and `concurrency`, for all of them; see `WindowOptions`.

        Raises:
            ConfigurationError: there are fewer than two, one is no such guard, two share an id, or
                an option is none of its values.
        """
        for guard in guards:
            asks = isinstance(guard, CheckGuard)
            if not asks or type(guard).stream_operator is not CheckGuard.stream_operator:
                msg = f"SideBySide: takes guards that ask and do nothing else, not {guard!r:.80}"
                hint = "; write SideBySide(*guards)" if isinstance(guard, list | tuple) else ""
                raise ConfigurationError(msg + hint)
        least = 2
        if len(guards) < least:
            raise ConfigurationError(f"SideBySide: takes two guards or more, not {len(guards)}")
        names = [guard.id for guard in guards]
        if len(set(names)) < len(names):
            raise ConfigurationError(f"SideBySide: two guards share an id: {', '.join(names)}")
        places = frozenset[Place]().union(*(guard.covers for guard in guards))
        super().__init__(id=id, covers=places, **options)
        self.asks = frozenset[Place]().union(*(guard.asks for guard in guards))
        self.guards = guards

    async def ruling(self, asked: Asked, args: HookArgs) -> Objection | None:
        """What there is to say against a text, by all that cover its place."""
        streams = isinstance(args, StreamOperatorArgs)
        those = [
            guard
            for guard in self.guards
            if asked.place in (guard.asks if streams else guard.covers)
        ]

        async def one(guard: CheckGuard) -> Objection | None:
            own = replace(args, state=args.state.setdefault(guard.id, {}))
            return await guard.ruling(asked, own)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(guard)) for guard in those]
        said = [
            replace(objection, by=guard)
            for guard, task in zip(those, tasks, strict=True)
            if (objection := task.result()) is not None
        ]
        return self._joined(said, asked.place) if said else None

    def _joined(self, said: list[Objection], place: Place) -> Objection:
        """What objections come to: the first that stops the answer leads, or that replaces."""
        actions = [_by(each).action(each, place) for each in said]
        stops = [each for each, action in zip(said, actions, strict=True) if action in STOPPING]
        replaces = [each for each, action in zip(said, actions, strict=True) if action == "replace"]
        leading = (stops or replaces or said)[0]
        strategy = _by(leading).action(leading, place)
        if not stops and len(replaces) > 1:
            strategy = "block"
        return replace(
            leading,
            strategy=strategy,
            replacement=_by(leading).replacement(leading),
            also=tuple(each for each in said if each is not leading),
        )

    async def _look(self, asked: Asked, args: HookArgs) -> Objection | None:
        return await self.ruling(asked, args)

    async def told(self, objection: Objection, error: BaseException | None) -> None:  # noqa: ARG002 - the base's
        """Tell the `on_violation` of each that objects: the run does not know them."""
        for each in (objection, *objection.also):
            await _by(each).told(each, None)

    def stop(self, objection: Objection, action: Strategy) -> BaseException | None:
        """What ends the answer, in the name of the guard that objects."""
        return _by(objection).stop(objection, action)


def _by(objection: Objection) -> CheckGuard:
    """Whose an objection is.

    Raises:
        LookupError: nobody's, which cannot be here.
    """
    if objection.by is None:
        raise LookupError(objection.reason)
    return objection.by
