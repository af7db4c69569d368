"""Options of processors: a bad one is refused when the processor is made, by its class's name."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from streampipe.errors import ConfigurationError

__all__ = ["check_one_of", "checked_names", "checked_threshold", "refuse_if"]


def checked_names(owner: str, option: str, value: object) -> frozenset[str]:
    """The names that a processor was given.

    Raises:
        ConfigurationError: it is no list, tuple or set of non-empty strings; one string is none.
    """
    if isinstance(value, Collection) and not isinstance(value, str | bytes):
        names = [name for name in value if isinstance(name, str) and name]
        if len(names) == len(value):
            return frozenset(names)
    msg = f"{owner}: {option} must be a list of names, not {value!r:.80}"
    raise ConfigurationError(msg)


def checked_threshold(owner: str, value: object) -> float:
    """From how sure on something counts.

    Raises:
        ConfigurationError: it is no number above 0 to 1.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1:
        return value
    msg = f"{owner}: threshold must be above 0 and at most 1, not {value!r:.80}"
    raise ConfigurationError(msg)


def refuse_if(owner: str, problems: Mapping[str, bool]) -> None:
    """Refuse options that contradict one another.

    Raises:
        ConfigurationError: one of the problems is there.
    """
    for problem, is_so in problems.items():
        if is_so:
            raise ConfigurationError(f"{owner}: {problem}")


def check_one_of(owner: str, option: str, value: object, known: tuple[object, ...]) -> None:
    """Refuse what is none of the values of an option.

    Raises:
        ConfigurationError: it is none; the message lists them.
    """
    if value not in known:
        msg = f"{owner}: {option} must be one of {', '.join(map(str, known))}, not {value!r:.80}"
        raise ConfigurationError(msg)
