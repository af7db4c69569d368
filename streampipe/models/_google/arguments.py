"""Arguments of a call that come piece by piece, each piece with the path of its place."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import orjson
from pydantic_core import from_json

from streampipe.errors import ProviderStreamError
from streampipe.models._protocol.decoding import EXCERPT, typed

DEEPEST = 100  # steps of a path; what is nested deeper, JSON libraries refuse to write
_STEP = re.compile(
    r"""\.([^.\[\]]+) | \[(\d{1,9})\] | \[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]""",
    re.VERBOSE | re.DOTALL,
)
_ENDS: dict[type[Any], str] = {dict: "}", list: "]"}
_VALUES: dict[str, tuple[type, ...]] = {"numberValue": (int, float), "boolValue": (bool,)}

Step = str | int
"""A key of an object, or an index of a list."""


class PartialArguments:
    r"""Pieces in, JSON text and values out. Linear in the size of the pieces.

    Text can only be added to. So it follows the pieces as long as they come in the order of a
    document; from the first one that goes back to a place which the text has left, nothing more is
    written, and only `value` is whole.

    >>> arguments = PartialArguments()
    >>> arguments.add({"jsonPath": "$.to[0].name", "stringValue": "An", "willContinue": True})
    '{"to":[{"name":"An'
    >>> arguments.add({"jsonPath": "$.to[0].name", "stringValue": "n"}) + arguments.end()
    'n"}]}'
    >>> arguments.value
    {'to': [{'name': 'Ann'}]}

    Attributes:
        value: the arguments; whole after `end`.
    """

    def __init__(self) -> None:
        """Start with no arguments."""
        self.value: dict[str, Any] = {}
        self._strings: dict[str, tuple[Any, Step, list[str]]] = {}  # unfinished ones, by path
        # Where the text stands: the containers that are open in it, each with the step into it.
        self._open: list[tuple[Step, Any]] = []
        self._inside = ""  # the path of the string that it is in, if it is in one
        self._is_begun = False
        self._is_ordered = True

    def add(self, piece: dict[str, Any]) -> str:
        """Take a piece; returns the JSON text that it adds.

        Raises:
            ProviderStreamError: a field is of another type, or the path leads nowhere.
        """
        path = typed(piece.get("jsonPath"), str, "partialArgs[].jsonPath")
        for name, kinds in _VALUES.items():
            if name in piece:
                value = piece[name]
                if type(value) not in kinds:
                    msg = f"partialArgs[].{name} is no such value: {value!r:.{EXCERPT}}"
                    raise ProviderStreamError(msg)
                return self.put(steps_of(path), value, path)
        if "nullValue" in piece:
            return self.put(steps_of(path), None, path)
        text = typed(piece.get("stringValue"), str, "partialArgs[].stringValue")
        if "stringValue" not in piece and path not in self._strings:
            return ""  # a piece that says nothing of a place
        return self._add_text(path, text, is_last=not piece.get("willContinue"))

    def put(self, steps: list[Step], value: Any, path: str) -> str:
        """Have a whole value at a place; returns the JSON text that it adds.

        Raises:
            ProviderStreamError: the place is none, or the value is nested too deeply.
        """
        container, text = self._enter(steps, path)
        try:
            text += orjson.dumps(value).decode()
        except TypeError as error:
            raise _misled(path, "has a value that is nested too deeply") from error
        _set(container, steps[-1], value)
        self._strings.pop(path, None)
        return self._written(text)

    def end(self) -> str:
        """Finish what is unfinished; returns the rest of the JSON text."""
        for container, step, pieces in self._strings.values():
            _set(container, step, "".join(pieces))
        self._strings.clear()
        text = "" if self._is_begun else "{"
        return self._written(text + self._leave(0) + "}")

    def _add_text(self, path: str, text: str, *, is_last: bool) -> str:
        written = ""
        found = self._strings.get(path)
        if found is None:
            steps = steps_of(path)
            container, written = self._enter(steps, path)
            _set(container, steps[-1], "")
            found = self._strings[path] = (container, steps[-1], [])
            self._inside = path
            written += '"'
        elif self._inside != path:
            self._is_ordered = False
        container, step, pieces = found
        pieces.append(text)
        written += orjson.dumps(text).decode()[1:-1]
        if is_last:
            _set(container, step, "".join(pieces))
            del self._strings[path]
            if self._inside == path:
                self._inside = ""
                written += '"'
        return self._written(written)

    def _enter(self, steps: list[Step], path: str) -> tuple[Any, str]:
        """Go to the container of a place; returns it, and the text up to the place's value."""
        shared = 0
        while shared < min(len(self._open), len(steps) - 1):
            if self._open[shared][0] != steps[shared]:
                break
            shared += 1
        text = ["" if self._is_begun else "{", self._leave(shared)]
        self._is_begun = True
        node: Any = self._open[-1][1] if self._open else self.value
        for step, following in pairwise(steps[shared:]):
            is_new = _is_new(node, step, path)
            text.append(_before(node, step))
            if is_new:
                _set(node, step, {} if isinstance(following, str) else [])
            else:
                self._is_ordered = False
            node = node[step]
            self._open.append((step, node))
            text.append("{" if isinstance(following, str) else "[")
        if not _is_new(node, steps[-1], path):
            self._is_ordered = False
        text.append(_before(node, steps[-1]))
        return node, "".join(text)

    def _leave(self, depth: int) -> str:
        """Close what is open in the text beyond this depth."""
        text = ['"'] if self._inside else []
        self._inside = ""
        text += [_ENDS[type(container)] for _, container in reversed(self._open[depth:])]
        del self._open[depth:]
        return "".join(text)

    def _written(self, text: str) -> str:
        return text if self._is_ordered else ""


def steps_of(path: str) -> list[Step]:
    """The steps of a JSON path that names one place of an object.

    >>> steps_of("$.a[0]['b.c']")
    ['a', 0, 'b.c']

    Raises:
        ProviderStreamError: it names none, or one that is nested too deeply.
    """
    steps: list[Step] = []
    place = 1
    while place < len(path) and (found := _STEP.match(path, place)):
        name, index, quoted = found.groups()
        steps.append(name or (int(index) if index else _unquoted(quoted)))
        place = found.end()
    if path[:1] != "$" or place < len(path) or not steps or len(steps) > DEEPEST:
        raise _misled(path, f"is no path of at most {DEEPEST} names and indices")
    return steps


def _unquoted(name: str) -> str:
    """A quoted key of a path; JSON's escapes, and those of the quotes around it."""
    inner = name[1:-1]
    if name[0] == "'":
        inner = inner.replace("\\'", "'").replace('"', '\\"')
    try:
        return str(from_json(f'"{inner}"'))
    except ValueError as error:
        raise _misled(name, "has an escape that is none") from error


def _is_new(node: Any, step: Step, path: str) -> bool:
    """Whether a container has nothing yet at a step."""
    if isinstance(node, dict) and isinstance(step, str):
        return step not in node
    if isinstance(node, list) and isinstance(step, int) and step <= len(node):
        return step == len(node)
    raise _misled(path, "leads past what came before")


def _before(node: Any, step: Step) -> str:
    """The text in front of a container's next value."""
    comma = "," if node else ""
    return comma if isinstance(step, int) else f"{comma}{orjson.dumps(step).decode()}:"


def _set(node: Any, step: Step, value: Any) -> None:
    if step == len(node) and isinstance(node, list):
        node.append(value)
    else:
        node[step] = value


def _misled(path: str, why: str) -> ProviderStreamError:
    return ProviderStreamError(f"partialArgs[].jsonPath {path!r:.{EXCERPT}} {why}")
