"""Processors by name: what is built in, what is installed, and lists of them out of a line."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypedDict

from streampipe.contracts import ERROR_HOOKS, HOOKS, INPUT_HOOKS, OUTPUT_HOOKS
from streampipe.contracts.processor import STREAM_OPERATOR
from streampipe.errors import ConfigurationError
from streampipe.operators._operator import check_called
from streampipe.operators._scope import check_processor_shape
from streampipe.processors._built_in import BUILT_IN
from streampipe.processors._known import (
    LISTS,
    Factory,
    KnownProcessor,
    ListName,
    first_sentence,
    option_names,
)
from streampipe.processors._processor_text import Written, parse, said_of
from streampipe.processors.regex_filter import PRESETS

__all__ = ["GROUP", "ProcessorLists", "known_processors", "processors_from"]

GROUP = "streampipe.processors"
"""The group of entry points that bring processors."""

_HOOKS: dict[ListName, tuple[str, ...]] = {
    "input_processors": INPUT_HOOKS,
    "output_processors": (*OUTPUT_HOOKS, STREAM_OPERATOR),
    "error_processors": ERROR_HOOKS,
}
_ALL_HOOKS = (*HOOKS, STREAM_OPERATOR)


class ProcessorLists(TypedDict):
    """The lists of an agent, to be given to it as they are: `Agent(model=model, **lists)`."""

    input_processors: list[Any]
    output_processors: list[Any]
    error_processors: list[Any]


def processors_from(line: str, *, beside: Iterable[Any] = ()) -> ProcessorLists:
    r"""Make the processors that a line names, such as `"redact:pii,block:secrets,batch:20ms"`.

    A line is `name[:argument][;option=value...]`, with commas between. White space around each of
    these does not count; a backslash makes the sign behind it plain text, and `\n` is a line break.
    `known_processors` says which names there are; in a terminal, `streampipe processors`.

    A built-in processor goes by what was written: a run is blocked by `block:secrets`. One that is
    installed keeps its own id. Where an id is taken already, a number is put behind it.

    >>> import asyncio
    >>> from streampipe import Agent
    >>> from streampipe.testing import ScriptedModel
    >>> model = ScriptedModel([["Ask ada@exa", "mple.com."]])
    >>> agent = Agent(model=model, **processors_from("redact:pii, rechunk:word"))
    >>> asyncio.run(agent.generate("Whom?")).text
    'Ask [EMAIL].'

    Args:
        line: names with their arguments, in the order in which the processors are to stand.
        beside: processors that these will stand beside, whose ids are taken.

    Returns:
        For each list of an agent those that stand in it; one that has to do in several is the same
        object in each.

    Raises:
        ConfigurationError: the line cannot be read, a name is not known, or a processor refuses its
            argument: the message says where, and what is known. Or an installed distribution is
            at fault, which it names.
    """
    lists = ProcessorLists(input_processors=[], output_processors=[], error_processors=[])
    others = [other for other in beside if isinstance(getattr(other, "id", None), str)]
    for written in parse(line):
        with said_of(str(written), written.place):
            known = _known(written.name)
            made = _made(known, written)
            for name in _stands_in(made, known):
                lists[name].append(made)
            if not _is_operator(made):
                _give_id(made, written.head if known.name in BUILT_IN else made.id, others)
                others.append(made)
    return lists


def known_processors() -> list[KnownProcessor]:
    """What `processors_from` takes: what is built in, then what is installed, by name.

    Returns:
        Each with its usage. What an installed distribution brings is imported for that; where this
        fails, or the name is another's, `problem` says so.

    Raises:
        ConfigurationError: the metadata of the installed distributions cannot be read.
    """
    installed = sorted(_entry_points(), key=lambda point: (point.name, _source(point)))
    return [*BUILT_IN.values(), *(_listed(point, installed) for point in installed)]


# --- names -------------------------------------------------------------------------------------


def _known(name: str) -> KnownProcessor:
    """What stands behind a name.

    Raises:
        ConfigurationError: nothing, more than one distribution, or one that cannot be used.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    installed = _entry_points()
    found = [point for point in installed if point.name == name]
    if not found:
        names = [*BUILT_IN, *sorted({point.name for point in installed} - BUILT_IN.keys())]
        close = difflib.get_close_matches(name, names, n=1)
        close += [f"redact:{name}"] if name in PRESETS else []
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ConfigurationError(f"unknown processor {name!r}{hint} (known: {', '.join(names)})")
    _check_unique(found[0], installed)
    return _loaded(found[0])


def _entry_points() -> list[EntryPoint]:
    try:
        return list(entry_points(group=GROUP))
    except Exception as error:
        msg = (
            f"the entry points of the installed distributions cannot be read "
            f"({type(error).__name__}: {error}); look for a broken entry_points.txt"
        )
        raise ConfigurationError(msg) from error


def _check_unique(point: EntryPoint, installed: list[EntryPoint]) -> None:
    """Refuse a name that is built in, or that another distribution brings too.

    Raises:
        ConfigurationError: naming the distributions.
    """
    if point.name in BUILT_IN:
        msg = f"the name {point.name!r} of {_source(point)} is built in; it has to choose another"
        raise ConfigurationError(msg)
    others = [_source(other) for other in installed if other.name == point.name]
    if len(others) > 1:
        msg = f"the name {point.name!r} is brought by {' and by '.join(others)}; uninstall one"
        raise ConfigurationError(msg)


def _loaded(point: EntryPoint) -> KnownProcessor:
    """What an entry point brings.

    Raises:
        ConfigurationError: it cannot be imported, or is nothing to be called with an argument.
    """
    where = f"the entry point {point.name!r} = {point.value!r} of {_source(point)}"
    try:
        factory: Any = point.load()
    except (Exception, SystemExit) as error:
        msg = f"{where} cannot be loaded ({type(error).__name__}: {error})"
        raise ConfigurationError(msg) from error
    if not callable(factory) or inspect.iscoroutinefunction(factory):
        kind = "a coroutine function" if callable(factory) else f"a {type(factory).__name__}"
        msg = f"{where} is {kind}; it has to be a plain function of the argument's text, or None"
        raise ConfigurationError(msg)
    try:
        argument, *_ = inspect.signature(factory).parameters.values()
        options = option_names(factory)
    except ValueError as error:  # no parameter, or no signature
        msg = f"{where} takes no argument; it has to be a function of the argument's text, or None"
        raise ConfigurationError(msg) from error
    return KnownProcessor(
        name=point.name,
        argument=f"[{argument.name.upper()}]",
        options=options,
        help=first_sentence(factory),
        source=_source(point),
        make=partial(_called, factory, where),
    )


def _called(factory: Factory, where: str, argument: str | None, **options: str) -> Any:
    """What an installed factory makes.

    Raises:
        ConfigurationError: it raises, which is its way to refuse an argument too.
    """
    try:
        return factory(argument, **options)
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(f"{where} raised {type(error).__name__}: {error}") from error


def _listed(point: EntryPoint, installed: list[EntryPoint]) -> KnownProcessor:
    try:
        _check_unique(point, installed)
        return _loaded(point)
    except ConfigurationError as error:
        return KnownProcessor(
            name=point.name, source=_source(point), problem=str(error), make=_nothing
        )


def _nothing(argument: str | None) -> None:
    """Stands where nothing could be loaded."""


def _source(point: EntryPoint) -> str:
    """The distribution that an entry point belongs to."""
    dist = point.dist
    return f"{dist.name} {dist.version}" if dist is not None else "an unknown distribution"


# --- processors --------------------------------------------------------------------------------


def _made(known: KnownProcessor, written: Written) -> Any:
    """The processor, or the operator.

    Raises:
        ConfigurationError: the argument or an option is wrong.
    """
    if known.argument and not known.argument.startswith("[") and written.argument is None:
        msg = f"{known.name} needs an argument: {known.usage}; it {_decapitalized(known.help)}"
        raise ConfigurationError(msg)
    for option, _ in written.options:
        if option not in known.options:
            has = f"its options: {', '.join(known.options)}" if known.options else "it has none"
            raise ConfigurationError(f"{known.name} has no option {option!r}; {has}")
    return known.make(written.argument, **dict(written.options))


def _decapitalized(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _is_operator(made: Any) -> bool:
    return callable(made) and not any(hasattr(made, hook) for hook in _ALL_HOOKS)


def _stands_in(made: Any, known: KnownProcessor) -> list[ListName]:
    """The lists for what was made: all that it has a hook for, among those that it may stand in.

    Raises:
        ConfigurationError: it is neither a processor nor an operator.
    """
    where = f"{known.name} of {known.source}"
    if _is_operator(made) and not isinstance(made, type):
        check_called(made, where)
        return ["output_processors"]
    check_processor_shape(made, _ALL_HOOKS, where)
    return [
        name
        for name in LISTS
        if name in known.lists and any(callable(getattr(made, hook, None)) for hook in _HOOKS[name])
    ]


def _give_id(made: Any, wanted: str, others: list[Any]) -> None:
    """Let a processor go by an id that none of the others has.

    Raises:
        ConfigurationError: it would have to change its own, and cannot.
    """
    if any(other is made for other in others):  # one object, one state
        return
    taken = {other.id for other in others}
    numbered = (f"{wanted}#{number}" for number in range(2, len(taken) + 3))
    free = wanted if wanted not in taken else next(each for each in numbered if each not in taken)
    if made.id == free:
        return
    try:
        made.id = free
    except AttributeError as error:
        msg = f"another processor has the id {made.id!r}, and this one's cannot be changed"
        raise ConfigurationError(msg) from error
