"""Many rules read as one: the automaton of their automata, for text in which nothing matches.

Nearly all text is such text. So one step for a character has to do for all rules, and there is
nothing to look at in between: a state knows how many characters have to be held. It does so by
holding the age of every attempt, which makes more states, but finitely many, since what gets old
is left to the rules one by one, as is whatever matches.
"""

from __future__ import annotations

from functools import lru_cache

from streampipe.text._automaton import State, automaton
from streampipe.text._nfa import EDGE

__all__ = ["LOST", "JointState", "Program", "program"]

MAX_AGE = 64
"""Characters after which an attempt is too old."""
MAX_SIZE = 100_000
"""Edges, and rules of states, kept before all states are forgotten."""
LOST = -1

Part = tuple[State, tuple[int, ...]]
"""Where a rule stands, and the ages of its attempts in characters."""


class JointState(dict[str, "JointState"]):
    """Where all rules stand; maps each character to the next state.

    Attributes:
        parts: where each rule stands.
        held: how many characters have to be held, or `LOST`: a rule may have matched, or an
            attempt is too old, and what was fed must be read again rule by rule.
    """

    __slots__ = ("_program", "held", "parts")

    def __init__(self, program: Program, parts: tuple[Part, ...], held: int) -> None:
        """Know no edge yet."""
        super().__init__()
        self._program = program
        self.parts = parts
        self.held = held

    def __missing__(self, char: str) -> JointState:
        """Find the edge of a character that is met in this state for the first time."""
        if self.held == LOST:  # for the rest of what is fed
            return self
        after = self._program.step(self, char)
        self._program.grow(1)
        self[char] = after
        return after


class Program:
    """All joint states that were needed so far; shared by all who look for the same patterns.

    Attributes:
        automata: that of each rule.
    """

    def __init__(self, keys: tuple[tuple[str, int, int], ...]) -> None:
        """Take the pattern, the flags and the `max_match` of each rule."""
        self.automata = [automaton(pattern, flags) for pattern, flags, _ in keys]
        self._max_ages = [min(MAX_AGE, max_match) for _, _, max_match in keys]
        self._states: dict[tuple[int | tuple[int, ...], ...], JointState] = {}
        self._size = 0
        self._lost = JointState(self, (), LOST)

    def start(self) -> JointState:
        """The state before a text."""
        # Not kept: states that are forgotten while somebody keeps them would grow for ever.
        return self._state([(one.start(EDGE), ()) for one in self.automata])

    def join(self, parts: list[Part]) -> JointState | None:
        """The state in which the rules stand so, None where one has a match or is too old."""
        for (state, ages), max_age in zip(parts, self._max_ages, strict=True):
            if state.is_matched or (ages and ages[0] > max_age):
                return None
        return self._state(parts)

    def step(self, state: JointState, char: str) -> JointState:
        """The state after a character."""
        parts: list[Part] = []
        for (one, ages), max_age in zip(state.parts, self._max_ages, strict=True):
            after, move = one[char]
            if move is not None:
                if move.matched is not None:
                    return self._lost
                before = (*ages, 0)
                older = tuple([before[number] + 1 for number in move.kept])
            else:
                older = tuple([age + 1 for age in ages]) if ages else ages
            if older and older[0] > max_age:
                return self._lost
            parts.append((after, older))
        return self._state(parts)

    def _state(self, parts: list[Part]) -> JointState:
        key = tuple([item for state, ages in parts for item in (state.number, ages)])
        state = self._states.get(key)
        if state is None:
            self.grow(len(parts))
            held = max((ages[0] for _, ages in parts if ages), default=0)
            state = self._states[key] = JointState(self, tuple(parts), held)
        return state

    def grow(self, size: int) -> None:
        """Note what was added, and start anew when it is too much."""
        self._size += size
        if self._size > MAX_SIZE:
            for state in list(self._states.values()):
                state.clear()
            self._states.clear()
            self._size = 0


@lru_cache(maxsize=64)
def program(keys: tuple[tuple[str, int, int], ...]) -> Program:
    """The program of these patterns; see `Program`."""
    return Program(keys)
