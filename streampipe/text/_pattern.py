"""Read a regular expression into a tree, refusing what a text cut anywhere cannot be matched with.

Python's own parser reads it, and each set of characters is handed back to `re`, so that a pattern
means here what it means there. What is zero characters wide becomes a look at the one character
before or behind: so much of the text, and no more, has to be known.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, replace
from typing import Any

__all__ = [
    "MAX_NODES",
    "CharSet",
    "Choice",
    "Concat",
    "Look",
    "PatternError",
    "Repeat",
    "Tree",
    "parse",
]

MAX_NODES = 20_000
"""How large an automaton may get: each repetition that a `{m,n}` asks for counts."""

# Here since CPython 3.11, but in no documentation, so that no stub knows it.
_parser: Any = importlib.import_module("re._parser")

_ALPHABETS = re.ASCII | re.LOCALE | re.UNICODE
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}
_WIDE_LOOK = (
    "look-around of anything but one character is not possible: put one character or set into it, "
    r"such as (?<![\w.]), or match the longer text and shorten it with `check`"
)
_REFUSED = {
    "GROUPREF": "back-references are not possible: spell out what may stand there",
    "GROUPREF_EXISTS": "conditional groups are not possible: write both cases with |",
    "ATOMIC_GROUP": "atomic groups (?>...) are not possible: write (?:...)",
    "POSSESSIVE_REPEAT": "possessive repeats are not possible: write *, +, ? or {m,n} alone",
    "FAILURE": _WIDE_LOOK,  # (?!), as newer Pythons read it
}
_DOLLAR = r"$ without re.MULTILINE looks at two characters: write \Z, or give re.MULTILINE"
_EMPTY = "it can match nothing at all: make it need at least one character"
_EMPTY_REPEAT = (
    "a repeat of what can match nothing is not possible: write (?:x?)* as x*, (?:x*)+ as x*"
)


class PatternError(ValueError):
    """A pattern that cannot be matched exactly while its text is still arriving."""


@dataclass(frozen=True, slots=True)
class CharSet:
    """One character of a set: `source` is a pattern that matches exactly one."""

    source: str
    flags: int = 0


@dataclass(frozen=True, slots=True)
class Look:
    """A look at the character on either side of a place; it consumes nothing.

    Attributes:
        behind: whether the character before the place is meant, not the one after it.
        chars: the set that it has to be in, or must not be in.
        negated: whether it must not.
        edge: whether the place may be the text's own beginning or end instead.
    """

    behind: bool
    chars: CharSet
    negated: bool = False
    edge: bool = False

    def opposite(self) -> Look:
        """The look that holds wherever this one does not."""
        return replace(self, negated=not self.negated, edge=not self.edge)


@dataclass(frozen=True, slots=True)
class Concat:
    """All parts, one after the other."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the options; an earlier one is preferred."""

    options: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The body `least` to `most` times, None being any number; if greedy, rather more than less."""

    body: Tree
    least: int
    most: int | None
    greedy: bool


Tree = CharSet | Look | Concat | Choice | Repeat

_NEVER = CharSet(r"[^\s\S]")
_NEWLINE = CharSet(r"\n")


def parse(pattern: str, flags: int = 0) -> Tree:
    """The tree of a pattern.

    Raises:
        re.error: it is no regular expression.
        PatternError: it is one that cannot be matched exactly while text arrives, that matches the
            empty string, or that is too large; says what to write instead.
    """
    parsed = _parser.parse(pattern, flags)
    tree = _concat(parsed, parsed.state.flags)
    if _is_nullable(tree):
        raise PatternError(_EMPTY)
    if (size := _size(tree)) > MAX_NODES:
        msg = f"it is too large, {size} nodes of {MAX_NODES}: lower the bounds of its repeats"
        raise PatternError(msg)
    return tree


def _concat(parsed: Any, flags: int) -> Tree:
    parts = tuple(_node(op.name, argument, flags) for op, argument in parsed)
    return parts[0] if len(parts) == 1 else Concat(parts)


def _node(kind: str, argument: Any, flags: int) -> Tree:
    if kind in _REFUSED:
        raise PatternError(_REFUSED[kind])
    match kind:
        case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
            return _char_set(kind, argument, flags)
        case "AT":
            return _anchor(argument.name, flags)
        case "ASSERT" | "ASSERT_NOT":
            return _look_around(argument, flags, negated=kind == "ASSERT_NOT")
        case "BRANCH":
            return Choice(tuple(_concat(option, flags) for option in argument[1]))
        case "SUBPATTERN":
            _, added, removed, body = argument
            if added & _ALPHABETS:  # (?a:...) inside of (?u) takes its place
                flags &= ~_ALPHABETS
            return _concat(body, flags & ~removed | added)
        case "MAX_REPEAT" | "MIN_REPEAT":
            return _repeat(argument, flags, greedy=kind == "MAX_REPEAT")
    msg = f"{kind} is not possible"  # whatever a later Python adds
    raise PatternError(msg)


def _char_set(kind: str, argument: Any, flags: int) -> CharSet:
    match kind:
        case "ANY":
            source = "."
        case "LITERAL":
            source = _escaped(argument)
        case "NOT_LITERAL":
            source = f"[^{_escaped(argument)}]"
        case _:
            source = f"[{''.join(_member(op.name, value) for op, value in argument)}]"
    return CharSet(source, flags & (re.IGNORECASE | re.ASCII | re.DOTALL))


def _member(kind: str, argument: Any) -> str:
    """A member of a set, as it is written between brackets."""
    match kind:
        case "NEGATE":
            return "^"
        case "RANGE":
            return "-".join(_escaped(code) for code in argument)
        case "CATEGORY":
            return _CATEGORIES[argument.name]
        case _:
            return _escaped(argument)


def _escaped(code: int) -> str:
    return f"\\U{code:08x}"


def _anchor(name: str, flags: int) -> Tree:
    many_lines = bool(flags & re.MULTILINE)
    match name:
        case "AT_BEGINNING" if many_lines:
            return Look(behind=True, chars=_NEWLINE, edge=True)
        case "AT_BEGINNING" | "AT_BEGINNING_STRING":
            return Look(behind=True, chars=_NEVER, edge=True)
        case "AT_END" if many_lines:
            return Look(behind=False, chars=_NEWLINE, edge=True)
        case "AT_END_STRING":
            return Look(behind=False, chars=_NEVER, edge=True)
        case "AT_BOUNDARY" | "AT_NON_BOUNDARY":
            word = CharSet(r"\w", flags & re.ASCII)
            before, after = Look(behind=True, chars=word), Look(behind=False, chars=word)
            if name == "AT_NON_BOUNDARY":
                before = before.opposite()
            leaving = Concat((before, after.opposite()))
            entering = Concat((before.opposite(), after))
            return Choice((leaving, entering))
    raise PatternError(_DOLLAR)


def _look_around(argument: Any, flags: int, *, negated: bool) -> Tree:
    direction, body = argument
    tree = _concat(body, flags)
    options = tree.options if isinstance(tree, Choice) else (tree,)
    looks = tuple(_look(option, behind=direction < 0) for option in options)
    if negated:  # none of the options, that is: not this one, and not that one
        return Concat(tuple(look.opposite() for look in looks))
    return Choice(looks)


def _look(tree: Tree, *, behind: bool) -> Look:
    if isinstance(tree, CharSet):
        return Look(behind=behind, chars=tree)
    if isinstance(tree, Look) and tree.behind is behind:  # such as the end in (?=\s|\Z)
        return tree
    raise PatternError(_WIDE_LOOK)


def _repeat(argument: Any, flags: int, *, greedy: bool) -> Tree:
    least, most, body = argument
    tree = _concat(body, flags)
    # How often nothing is matched is where automata and `re` differ in what they match next.
    if most > 1 and _is_nullable(tree):
        raise PatternError(_EMPTY_REPEAT)
    return Repeat(tree, least, None if most == _parser.MAXREPEAT else most, greedy)


def _is_nullable(tree: Tree) -> bool:
    match tree:
        case CharSet():
            return False
        case Look():
            return True
        case Concat(parts):
            return all(map(_is_nullable, parts))
        case Choice(options):
            return any(map(_is_nullable, options))
        case Repeat(body, least):
            return least == 0 or _is_nullable(body)


def _size(tree: Tree) -> int:
    """How many nodes the automaton of a tree gets."""
    match tree:
        case CharSet() | Look():
            return 1
        case Concat(parts):
            return sum(map(_size, parts))
        case Choice(options):
            return 1 + sum(map(_size, options))
        case Repeat(body, least, most):
            times = max(least, 1) if most is None else most
            return times * (_size(body) + 1)
