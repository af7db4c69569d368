"""A pattern as a nondeterministic automaton, whose nodes ask about one character at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass

from streampipe.text._pattern import CharSet, Choice, Concat, Look, Repeat, Tree

__all__ = ["EDGE", "MATCH", "Alphabet", "Consume", "Node", "Peek", "Split", "compile_nfa"]

EDGE = ""
"""Stands for the character that is not there: before the first and after the last."""
MATCH = 0
"""The node at which a match is complete."""

KNOWN = 50_000  # characters whose membership an alphabet remembers


@dataclass(frozen=True, slots=True)
class Consume:
    """Goes on to `then` over a character whose bits meet the mask."""

    mask: int
    then: int


@dataclass(frozen=True, slots=True)
class Peek:
    """Goes on to `then`, consuming nothing, if the bits of a neighbour meet the mask."""

    mask: int
    behind: bool
    then: int


@dataclass(frozen=True, slots=True)
class Split:
    """Goes on to each of the targets, the earlier being preferred."""

    targets: tuple[int, ...]


Node = Consume | Peek | Split


class Alphabet(dict[str, int]):
    """The sets of a pattern that a character is in, as the bits of a number.

    The lowest bit is the edge's alone. Filled as characters are met.
    """

    def __init__(self) -> None:
        """Know the edge and no set."""
        super().__init__({EDGE: 1})
        self._masks: dict[tuple[CharSet, bool], int] = {}
        self._sets: list[tuple[re.Pattern[str], bool, int]] = []

    def mask(self, chars: CharSet, *, negated: bool = False) -> int:
        """The bit of a set; only asked for before a character is met."""
        mask = self._masks.get((chars, negated))
        if mask is None:
            mask = self._masks[chars, negated] = 2 << len(self._sets)
            self._sets.append((re.compile(chars.source, chars.flags), negated, mask))
        return mask

    def __missing__(self, char: str) -> int:
        """Ask every set, once for each character."""
        if len(self) > KNOWN:
            self.clear()
            self[EDGE] = 1
        bits = sum(
            mask for chars, negated, mask in self._sets if bool(chars.fullmatch(char)) != negated
        )
        self[char] = bits
        return bits


def compile_nfa(tree: Tree) -> tuple[list[Node], int, Alphabet]:
    """The nodes of a tree's automaton, the number of the one it starts at, and its alphabet.

    `nodes[MATCH]` is never looked at.
    """
    builder = _Builder()
    start = builder.add(tree, MATCH)
    return builder.nodes, start, builder.alphabet


class _Builder:
    """Builds from the end to the beginning, so that each part knows what follows it."""

    def __init__(self) -> None:
        self.nodes: list[Node] = [Split(())]  # takes the number of MATCH
        self.alphabet = Alphabet()

    def add(self, tree: Tree, then: int) -> int:
        """Add what matches the tree and goes on to `then`; returns where it begins."""
        match tree:
            case CharSet():
                return self._node(Consume(self.alphabet.mask(tree), then))
            case Look(behind, chars, negated, edge):
                mask = self.alphabet.mask(chars, negated=negated) | edge
                return self._node(Peek(mask, behind, then))
            case Concat(parts):
                for part in reversed(parts):
                    then = self.add(part, then)
                return then
            case Choice(options):
                return self._node(Split(tuple(self.add(option, then) for option in options)))
            case Repeat():
                return self._repeat(tree, then)

    def _repeat(self, tree: Repeat, then: int) -> int:
        body, least = tree.body, tree.least
        begin = then
        if tree.most is None:
            loop = self._node(Split(()))  # its target, the body, needs its number first
            again = self.add(body, loop)
            self.nodes[loop] = self._either(again, then, greedy=tree.greedy)
            begin, least = (again, least - 1) if least else (loop, 0)
        else:
            for _ in range(tree.most - least):
                begin = self._node(self._either(self.add(body, begin), then, greedy=tree.greedy))
        for _ in range(least):
            begin = self.add(body, begin)
        return begin

    def _either(self, more: int, enough: int, *, greedy: bool) -> Split:
        return Split((more, enough) if greedy else (enough, more))

    def _node(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1
