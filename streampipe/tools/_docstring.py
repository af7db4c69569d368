"""What a docstring says of a function and of each parameter: Google and reST styles."""

from __future__ import annotations

import inspect
import re

_PARAMETERS = {"Args", "Arguments", "Keyword Args", "Keyword Arguments", "Parameters"}
_OTHERS = {
    "Attributes",
    "Example",
    "Examples",
    "Note",
    "Notes",
    "Raises",
    "References",
    "Return",
    "Returns",
    "See Also",
    "Todo",
    "Warning",
    "Warnings",
    "Warns",
    "Yield",
    "Yields",
}
_HEADING = re.compile(rf"^({'|'.join(sorted(_PARAMETERS | _OTHERS))}):\s*$")
_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\(.*?\))?:(?:\s+(.*))?$")
_FIELD = re.compile(
    r"^:(param|parameter|arg|argument|key|keyword|type|returns?|rtype|raises?|except|exception"
    r"|yields?|ytype|var|ivar|cvar|vartype|meta)\b([^:]*):\s*(.*)$",
)
_FIELD_OF_PARAMETER = {"param", "parameter", "arg", "argument", "key", "keyword"}


def describe(text: str) -> tuple[str, dict[str, str]]:
    """The description, and what is said of each parameter by name.

    A section ends at the next heading or at the next line that is not indented; what stands
    outside of all sections is the description.

    >>> describe('''Add two numbers.
    ...
    ... Args:
    ...     a: the first,
    ...         as an integer.
    ...     b: the second.
    ... ''')
    ('Add two numbers.', {'a': 'the first, as an integer.', 'b': 'the second.'})
    """
    about: list[str] = []
    parameters: dict[str, str] = {}
    section = current = ""
    entries_at = 0  # the indent of a section's entries; what is deeper continues one
    for line in inspect.cleandoc(text).splitlines():
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        if heading := _HEADING.match(line):
            section, current, entries_at = heading[1], "", 0
        elif field := _FIELD.match(line):
            section, current = "field", ""
            words = field[2].split()
            if field[1] in _FIELD_OF_PARAMETER and words:  # `:param int a: ...` has a type too
                current = words[-1].lstrip("*")
                parameters[current] = field[3]
        elif stripped and not indent:
            section = ""
            about.append(line)
        elif not section:
            about.append(line)
        elif stripped:
            entry = _ENTRY.match(stripped) if section in _PARAMETERS else None
            entries_at = entries_at or indent
            if entry and indent <= entries_at:
                current = entry[1]
                parameters[current] = entry[2] or ""
            elif current:
                parameters[current] = f"{parameters[current]} {stripped}".strip()
    return "\n".join(about).strip(), parameters
