"""Options that are names."""

from __future__ import annotations

from collections.abc import Collection

from streampipe.errors import ConfigurationError

__all__ = ["checked_names"]


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
