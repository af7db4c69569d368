"""What a docstring says of a function and of each parameter: Google and reST styles."""

from __future__ import annotations

import inspect
import re

_SECTION = re.compile(
    r"^(Args|Arguments|Parameters|Returns|Return|Yields|Raises|Examples?|Notes?|Attributes):\s*$",
)
_PARAMETER = re.compile(r"^(\*{0,2}\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_FIELD = re.compile(r"^:(\w+)(?:\s+[^:]*?)?(\w*):\s*(.*)$")


def describe(function: object) -> tuple[str, dict[str, str]]:
    """The description, and what is said of each parameter by name.

    >>> def add(a, b):
    ...     '''Add two numbers.
    ...
    ...     Args:
    ...         a: the first,
    ...             as an integer.
    ...         b: the second.
    ...     '''
    >>> describe(add)
    ('Add two numbers.', {'a': 'the first, as an integer.', 'b': 'the second.'})
    """
    text = inspect.getdoc(function) or ""
    about: list[str] = []
    parameters: dict[str, str] = {}
    section = current = ""
    for line in text.splitlines():
        heading = _SECTION.match(line)
        rest = _FIELD.match(line)
        if heading:
            section, current = heading[1], ""
        elif rest:
            section, current = "field", ""
            if rest[1] in ("param", "parameter", "arg"):
                current = rest[2]
                parameters[current] = rest[3]
        elif section in ("Args", "Arguments", "Parameters"):
            current = _parameter_line(line, current, parameters)
        elif section == "field" and current and line.strip():
            parameters[current] = f"{parameters[current]} {line.strip()}".strip()
        elif not section:
            about.append(line)
    return "\n".join(about).strip(), parameters


def _parameter_line(line: str, current: str, parameters: dict[str, str]) -> str:
    """One line of an `Args:` section: a new parameter, or more of the one before it."""
    indent = len(line) - len(line.lstrip())
    entry = _PARAMETER.match(line.strip())
    if entry and (not current or indent <= _ENTRY_INDENT):
        parameters[entry[1]] = entry[2]
        return entry[1]
    if current and line.strip():
        parameters[current] = f"{parameters[current]} {line.strip()}".strip()
    return current


_ENTRY_INDENT = 4
