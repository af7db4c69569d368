"""`Agent`: the options of an agent, checked once, and the three ways to run it."""

from __future__ import annotations

from typing import Any, Unpack

from streampipe.agent._options import (
    AGENT_NAMES,
    CALL_NAMES,
    AgentOptions,
    CallOptions,
    check_names,
)
from streampipe.agent._run import Execution
from streampipe.agent._spec import (
    LISTS,
    check_ids,
    check_model,
    check_no_operator,
    check_request,
    processor_list,
    resolve,
)
from streampipe.agent._stream import Run
from streampipe.chunks import Chunk
from streampipe.contracts import RunResult
from streampipe.errors import ConfigurationError
from streampipe.messages import new_id
from streampipe.operators._core import Emit, Flowable


class Agent:
    """An agent: a model, tools and processors. It keeps no state; any number of runs share it.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.testing import ScriptedModel
    >>> agent = Agent(id="greeter", model=ScriptedModel([["Hello", " there"]]))
    >>> asyncio.run(agent.generate("hi")).text
    'Hello there'
    """

    def __init__(
        self,
        *,
        id: str = "",  # noqa: A002 - the contract's name
        name: str | None = None,
        description: str | None = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        """Take an agent's options; see `AgentOptions`.

        Args:
            id: names the agent in errors and spans; a random one if empty.
            name: for people; the id if None.
            description: for people.
            options: what `AgentOptions` lists. Each can be overridden on a call.

        Raises:
            ConfigurationError: an option is unknown or wrong; the message names it.
        """
        check_names(options, AGENT_NAMES, "Agent")
        self.id = id or f"agent-{new_id()[:8]}"
        self.name = name or self.id
        self.description = description
        self.options = options
        if options.get("memory") is not None:
            msg = "memory is not there yet: this version keeps no threads; leave memory= out"
            raise ConfigurationError(msg)
        model = options.get("model")
        if model is not None:
            check_model(model, self.id)
        for where in LISTS:
            check_no_operator(options.get(where), where)
        lists = {
            where: processor_list(options.get(where), None, where, hooks)
            for where, hooks in LISTS.items()
            if not callable(options.get(where))
        }
        check_ids(lists)
        check_request(options)

    def __repr__(self) -> str:
        """The agent's id."""
        return f"Agent(id={self.id!r})"

    def _execution(self, prompt: Any, options: CallOptions, *, unread: bool = False) -> Execution:
        check_names(options, CALL_NAMES, f"agent {self.id!r}")
        return Execution(resolve(self, prompt, {**self.options, **options}), unread=unread)

    def observe(self, prompt: Any, **options: Unpack[CallOptions]) -> Flowable[Chunk]:
        """The run as a cold observable: each subscription is a run, disposing cancels it.

        A block or a failure of the run is told in its chunks (`tripwire`, `error`, then `finish`);
        the observable itself then completes.

        Args:
            prompt: a string, a message, or a list of these.
            options: what `CallOptions` lists.

        Raises:
            ConfigurationError: an option is wrong.
            WireError: the prompt holds what is no message.
        """
        self._execution(prompt, options)

        async def run(emit: Emit[Chunk]) -> None:
            await self._execution(prompt, options).into(emit)

        return Flowable(run)

    def stream(self, prompt: Any, **options: Unpack[CallOptions]) -> Run:
        """One run, asyncio-native: `async with agent.stream("hi") as run: async for chunk in run`.

        Args:
            prompt: a string, a message, or a list of these.
            options: what `CallOptions` lists.

        Raises:
            ConfigurationError: an option is wrong.
            WireError: the prompt holds what is no message.
        """
        return Run(self._execution(prompt, options))

    async def generate(self, prompt: Any, **options: Unpack[CallOptions]) -> RunResult:
        """The same run, collected.

        A block or a cancel is no error: see `result.tripwire` and `result.finish_reason`. An answer
        that breaks in the middle is asked for again, as often as the model's `max_retries` says:
        nobody has read of it yet.

        Args:
            prompt: a string, a message, or a list of these.
            options: what `CallOptions` lists.

        Raises:
            ConfigurationError: an option is wrong.
            WireError: the prompt holds what is no message.
            StreampipeError: what the run failed with; its `result` holds what came before.
        """
        async with Run(self._execution(prompt, options, unread=True)) as run:
            return await run.result()
