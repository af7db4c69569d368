"""`Guard`: a guard made of a function."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Unpack

from streampipe.contracts.processor import HookArgs
from streampipe.operators import Verdict
from streampipe.operators._functions import UnfitError, check_async_function
from streampipe.processors._asked import Asked
from streampipe.processors._check_guard import CheckOptions, ConversationGuard, Objection, Strategy
from streampipe.processors._options import checked_options

__all__ = ["Check", "Guard"]

Answer = bool | str | Verdict
Check = Callable[[str], Answer | Awaitable[Answer]]
"""Gets a text: True lets it leave; False, or a text that says why not, objects."""


class Guard(ConversationGuard):
    """A guard made of a function, plain or async, that says of a text whether it may leave.

    In `input_processors` the function is asked about the texts of the messages, in
    `output_processors` about the answer a window at a time (a sentence, unless another is named);
    calls for several windows run at once, and what they say is done in order.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.testing import ScriptedModel
    >>> def decent(text: str) -> bool | str:
    ...     return "it swears" if "darn" in text.lower() else True
    >>> guard = Guard(decent, "replace", replacement="[...] ")
    >>> model = ScriptedModel([["Fine. ", "Da", "rn it! ", "Fine."]])
    >>> agent = Agent(model=model, output_processors=[guard])
    >>> asyncio.run(agent.generate("How is it?")).text
    'Fine. [...] Fine.'

    Attributes:
        id: names it in tripwires, violations and errors.
        covers: where it looks.
        on_violation: is told of every objection, and of every text that could not be checked.
    """

    @checked_options
    def __init__(
        self, check: Check, verdict: Strategy = "block", **options: Unpack[CheckOptions]
    ) -> None:
        """Say whom to ask, and what becomes of what is objected to.

        Args:
            check: gets a text. True lets it leave; False, or a text that tells why not, objects;
                an `ops.Verdict` says itself what becomes of the text. Nothing is no answer, so a
                forgotten `return` lets nothing leave.
            verdict: what becomes of it where `check` does not say so: "block", "retry", "replace",
                "warn" or "raise".
            options: see `CheckOptions`.

        Raises:
            ConfigurationError: `check` is no function, or an option none of its values.
        """
        owner = type(self).__name__
        check_async_function(owner, "check", check)
        options.setdefault("id", "guard")
        super().__init__(strategy=verdict, **options)
        self._check = check

    async def _look(self, asked: Asked, args: HookArgs) -> Objection | None:  # noqa: ARG002 - the base's
        said = self._check(asked.text)
        if inspect.isawaitable(said):
            said = await said
        detail = {"place": asked.place}
        match said:
            case True:
                return None
            case False:
                return Objection("the text was not allowed", detail)
            case str():
                return Objection(said or "the text was not allowed", detail)
            case Verdict():
                action = said.action
                if action == "allow":
                    return None
                reason = said.reason or "the text was not allowed"
                return Objection(reason, detail, action, said.text)
        what = "nothing" if said is None else type(said).__name__
        msg = f"check returned {what}; return True to let it leave, False, a reason or a Verdict"
        raise UnfitError(msg)
