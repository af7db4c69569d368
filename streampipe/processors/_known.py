"""What a name stands for in a line of processors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["LISTS", "Factory", "KnownProcessor", "ListName", "first_sentence", "option_names"]

ListName = Literal["input_processors", "output_processors", "error_processors"]
"""A list of an agent that processors stand in."""

LISTS: tuple[ListName, ...] = ("input_processors", "output_processors", "error_processors")

Factory = Callable[..., Any]
"""Takes the text of the argument, or None without one, and options by name, each a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProcessor:
    """A name that `processors_from` takes.

    Attributes:
        name: what is written.
        argument: what may be written behind a colon; in brackets if it may be left out, empty if
            there is none.
        options: names of what may be written behind semicolons.
        help: what it does, in a sentence.
        source: "streampipe", or the distribution that brings it, with its version.
        lists: the lists of an agent that it may stand in. It stands in those of them that it has a
            hook for.
        problem: why it cannot be used; None if it can.
        make: makes the processor, or the operator.
    """

    name: str
    argument: str = ""
    options: tuple[str, ...] = ()
    help: str = ""
    source: str = "streampipe"
    lists: tuple[ListName, ...] = LISTS
    problem: str | None = None
    make: Factory = field(repr=False, compare=False)

    @property
    def usage(self) -> str:
        """How it is written, without its options."""
        if not self.argument:
            return self.name
        is_optional = self.argument.startswith("[")
        return (
            f"{self.name}[:{self.argument[1:]}" if is_optional else f"{self.name}:{self.argument}"
        )


def option_names(factory: Factory) -> tuple[str, ...]:
    """The options of a factory: its parameters behind the first that are given by name."""
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    _argument, *options = inspect.signature(factory).parameters.values()
    return tuple(option.name for option in options if option.kind in by_name)


def first_sentence(factory: Factory) -> str:
    """What a factory says of itself, in one line."""
    return " ".join((inspect.getdoc(factory) or "").split("\n\n")[0].split())
