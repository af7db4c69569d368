"""`PrepareStep`: a function that steers the steps, in its place among the input processors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from streampipe.contracts import ProcessInputStepArgs, ProcessInputStepResult, Processor
from streampipe.messages import Message, MessageList
from streampipe.operators._functions import check_async_function
from streampipe.processors._options import Name, checked_options

__all__ = ["PrepareStep", "Prepared"]

Prepared = ProcessInputStepResult | Mapping[str, Any] | MessageList | list[Message] | None
"""What `process_input_step` may return."""


class PrepareStep(Processor):
    """Makes an input processor of a function that is called before every step.

    It is what the option `prepare_step` is, which holds for one call or agent and runs after all
    input processors. As a processor it has a place among them, may stand in the list more than once
    (give each an id), and has a state of its own in `args.state`.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.testing import ScriptedModel
    >>> def soberly(args):
    ...     return {"model_settings": {**args.model_settings, "temperature": 0.0}}
    >>> model = ScriptedModel([["Yes."]])
    >>> agent = Agent(model=model, input_processors=[PrepareStep(soberly)])
    >>> asyncio.run(agent.generate("Is it true?")).text
    'Yes.'
    >>> model.requests[0].settings
    {'temperature': 0.0}
    """

    @checked_options
    def __init__(
        self,
        function: Callable[[ProcessInputStepArgs], Prepared | Awaitable[Prepared]],
        *,
        id: Name = "prepare-step",  # noqa: A002 - named as the attribute
    ) -> None:
        """Take the function.

        Args:
            function: plain or async; gets the args of `process_input_step`, and returns what that
                hook may.
            id: what it goes by.

        Raises:
            ConfigurationError: it is no function, or one that yields.
        """
        check_async_function(type(self).__name__, "function", function)
        self.id = id
        self._function = function

    def process_input_step(self, args: ProcessInputStepArgs) -> Prepared | Awaitable[Prepared]:
        """Call the function."""
        return self._function(args)
