"""`ModelRouter`: which model answers which step."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from streampipe.contracts import (
    Model,
    ProcessInputStepArgs,
    ProcessInputStepResult,
    Processor,
)
from streampipe.errors import ConfigurationError
from streampipe.operators._functions import check_async_function
from streampipe.processors._options import AnyModel, Name, checked_options

__all__ = ["Classifier", "ModelRouter", "When"]

When = int | Callable[[ProcessInputStepArgs], bool | Awaitable[bool]]
"""When a route is taken: in the step of this number, or when a function of the args says so."""
Classifier = Callable[[ProcessInputStepArgs], str | Awaitable[str | None] | None]
"""Gives the name of a route, or None for none of them."""


class ModelRouter(Processor):
    """Chooses the model of each step.

    For `input_processors`. Routes are given in one of two ways:

    - a list of pairs, when and model: the first whose number is that of the step, or whose function
      of the hook's args says so, is taken;
    - a dict of models by name, and `classify`, which gives one of the names. It may ask a model of
      its own, so it is asked once in a run, before its first step, and the answer holds for the
      run.

    Where no route is taken, `default` answers, and without one the model that the step would have
    had. What was taken stands in `args.state["route"]`: the name, or the place in the list; None if
    no route was.

    >>> import asyncio
    >>> from streampipe import Agent, tool
    >>> from streampipe.testing import ScriptedModel, call
    >>> @tool
    ... def count(word: str) -> int:
    ...     '''Count the letters.'''
    ...     return len(word)
    >>> fast = ScriptedModel([["Let me count. ", call("count", {"word": "two"})]])
    >>> strong = ScriptedModel([["Three."]])
    >>> router = ModelRouter([(0, fast)], default=strong)
    >>> agent = Agent(model=fast, tools=[count], input_processors=[router])
    >>> asyncio.run(agent.generate("How many letters has 'two'?")).text
    'Let me count. Three.'
    """

    @checked_options
    def __init__(
        self,
        routes: Sequence[tuple[When, Model | str]] | Mapping[str, Model | str],
        *,
        default: AnyModel | None = None,
        classify: Classifier | None = None,
        id: Name = "model-router",  # noqa: A002 - named as the attribute
    ) -> None:
        """Say which model is taken when.

        Args:
            routes: models, or router ids such as "openai/gpt-5-mini": by when, or by name.
            default: the model where no route is taken.
            classify: for routes by name: gives one of the names, or None; plain or async.
            id: what it goes by.

        Raises:
            ConfigurationError: a route is none of these, there is none, routes by name come
                without `classify`, or others with it. A router id of an unknown provider is found
                when the route is taken.
        """
        self.id = id
        self._classify = classify
        self._default = default
        if classify is not None:
            check_async_function("ModelRouter", "classify", classify)
        if not isinstance(routes, Mapping | Sequence) or isinstance(routes, str) or not routes:
            msg = (
                "ModelRouter: routes must be a list of (when, model), or a dict of models by name, "
                f"not {routes!r:.80}"
            )
            raise ConfigurationError(msg)
        if isinstance(routes, Mapping) is (classify is None):
            msg = (
                "ModelRouter: routes by name and classify go together: give both, or neither and "
                "the routes as a list of (when, model)"
            )
            raise ConfigurationError(msg)
        self._names: dict[str, Model | str] = {}
        self._rules: list[tuple[When, Model | str]] = []
        if isinstance(routes, Mapping):
            self._names = _checked_names(routes)
        else:
            self._rules = _checked_rules(routes)

    async def process_input_step(self, args: ProcessInputStepArgs) -> ProcessInputStepResult:
        """Take a route."""
        route = await (self._by_rule(args) if self._classify is None else self._by_name(args))
        args.state["route"] = route
        if route is None:
            model = self._default
        else:
            model = self._names[route] if isinstance(route, str) else self._rules[route][1]
        return ProcessInputStepResult() if model is None else ProcessInputStepResult(model=model)

    async def _by_rule(self, args: ProcessInputStepArgs) -> int | None:
        for place, (when, _) in enumerate(self._rules):
            if isinstance(when, int):
                fits: Any = when == args.step_number
            else:
                fits = when(args)
                if inspect.isawaitable(fits):
                    fits = await fits
            if fits:
                return place
        return None

    async def _by_name(self, args: ProcessInputStepArgs) -> str | None:
        if "route" in args.state or self._classify is None:
            return args.state.get("route")
        name = self._classify(args)
        if inspect.isawaitable(name):
            name = await name
        if name is not None and name not in self._names:
            msg = f"classify gave {name!r:.80}, which is no route; routes: {', '.join(self._names)}"
            raise ConfigurationError(msg)
        return name


def _check_model(where: str, value: object) -> None:
    """Refuse what is neither a model nor a router id.

    Raises:
        ConfigurationError: naming the place.
    """
    fits = "/" in value if isinstance(value, str) else callable(getattr(value, "stream", None))
    if not fits or isinstance(value, type):
        msg = (
            f"ModelRouter: {where} must be a model or a router id such as 'openai/gpt-5-mini', "
            f"not {value!r:.80}"
        )
        raise ConfigurationError(msg)


def _checked_names(routes: Mapping[str, Model | str]) -> dict[str, Model | str]:
    """The routes by name.

    Raises:
        ConfigurationError: a name is no text, or what it names no model.
    """
    for name, model in routes.items():
        if not isinstance(name, str):
            msg = f"ModelRouter: the names of routes are texts, not {name!r:.80}"
            raise ConfigurationError(msg)
        _check_model(f"routes[{name!r}]", model)
    return dict(routes)


def _checked_rules(routes: Sequence[tuple[When, Model | str]]) -> list[tuple[When, Model | str]]:
    """The routes by when.

    Raises:
        ConfigurationError: one is no pair of a step number or function, and a model.
    """
    for place, route in enumerate(routes):
        if not isinstance(route, tuple) or len(route) != 2:  # noqa: PLR2004 - when, and which
            msg = f"ModelRouter: routes[{place}] must be a pair (when, model), not {route!r:.80}"
            raise ConfigurationError(msg)
        when, model = route
        is_step = isinstance(when, int) and not isinstance(when, bool) and when >= 0
        if not is_step and not callable(when):
            msg = (
                f"ModelRouter: routes[{place}]: when must be a step number from 0, or a function "
                f"of the args, not {when!r:.80}"
            )
            raise ConfigurationError(msg)
        _check_model(f"routes[{place}]", model)
    return list(routes)
