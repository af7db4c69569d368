"""Processors of the command line: `--processors`, and the list of what may stand there."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streampipe import processors as shelf
from streampipe.agent import Agent
from streampipe.errors import ConfigurationError
from streampipe.processors._known import LISTS, KnownProcessor, ListName


def with_processors(agent: Agent, line: str | None, *, is_replay: bool = False) -> Agent:
    """An agent like this one, with the processors that a line names behind those it has.

    Args:
        agent: stays as it is.
        line: as `processors_from` takes it; None for none.
        is_replay: the agent asks no model, so that only its output processors have to do.

    Raises:
        ConfigurationError: the line is none, or in a replay a processor of it would do nothing.
    """
    if line is None:
        return agent
    options: dict[str, Any] = dict(agent.options)
    own = [each for option in LISTS for each in _listed(options.get(option))]
    lists = shelf.processors_from(line, beside=own)
    added: dict[ListName, list[Any]] = {option: lists[option] for option in LISTS if lists[option]}
    if is_replay:
        _check_replay(added)
    for option, processors in added.items():
        options[option] = _behind(options.get(option), processors)
    clone = copy.copy(agent)
    clone.options = options  # type: ignore[assignment]  # the same, but for the lists
    return clone


def _listed(value: Any) -> Sequence[Any]:
    """Those that are known before a run: a function says it of each."""
    return value if isinstance(value, list | tuple) else ()


def _behind(own: Any, added: list[Any]) -> list[Any] | Callable[[Any], list[Any]]:
    if callable(own):
        function: Callable[[Any], Any] = own
        return lambda context: [*(function(context) or ()), *added]
    return [*(own or ()), *added]


def _check_replay(added: Mapping[ListName, list[Any]]) -> None:
    takes_part = {id(each) for each in added.get("output_processors", [])}
    for option, processors in added.items():
        for each in processors:
            if id(each) not in takes_part:
                msg = (
                    f"{each.id!r} is one of the {option}, and a replay asks no model: it would "
                    "do nothing; leave it out"
                )
                raise ConfigurationError(msg)


def show_processors(known: Iterable[KnownProcessor], console: Console) -> None:
    """Print the processors as a table; without box characters where nobody watches."""
    table = Table(box=box.HEAVY_HEAD if console.is_terminal else box.ASCII)
    for heading in ("processor", "options", "what it does", "from"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("processor", "options"))
    for each in known:
        does = each.help if each.problem is None else f"cannot be used: {each.problem}"
        options = "\n".join(f";{option}=" for option in each.options)
        table.add_row(*map(escape, (each.usage, options, does, each.source)))
    console.print(table)


def print_processors(known: Iterable[KnownProcessor]) -> None:
    """Print the processors as JSON, one a line."""
    for each in known:
        told = {
            "name": each.name,
            "argument": each.argument,
            "options": each.options,
            "help": each.help,
            "lists": each.lists,
            "source": each.source,
            "problem": each.problem,
        }
        sys.stdout.buffer.write(orjson.dumps(told) + b"\n")
    sys.stdout.buffer.flush()
