"""The deterministic automaton of one pattern, made state by state as texts need it.

It looks for matches from every place of a text at once and prefers what `re` prefers. Its state
is a list of *threads*, the most preferred first: where in the pattern an attempt stands, and which
attempt it is. Of two threads at the same place in the pattern the later can be forgotten, since
both fare alike from there on. A match cuts off all threads after it; it is decided when none is
left before it either.

No state holds a position in the text. So there are finitely many, and who reads a text keeps the
beginnings of its attempts beside the state, in the order of their age, as each `Move` tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from streampipe.text._nfa import MATCH, Consume, Node, Split, compile_nfa
from streampipe.text._pattern import parse

__all__ = ["Automaton", "Move", "State", "automaton"]

MAX_SIZE = 200_000
"""Threads and edges kept before all states are forgotten, to be made again as they are needed."""

_Thread = tuple[int, int, tuple[int, ...]]
"""Which attempt, at which node, and the masks that the next character has to meet."""


@dataclass(frozen=True, slots=True)
class Move:
    """What a character does to the attempts.

    Attributes:
        kept: numbers of the attempts that go on. An attempt's number is its place in the order of
            age; the one that begins with this very character comes last.
        matched: number of the attempt that has a match, else None.
        including: whether that match ends with this character, not before it.
    """

    kept: tuple[int, ...]
    matched: int | None = None
    including: bool = False


class State(dict[str, tuple["State", Move | None]]):
    """Where the attempts stand; maps each character to the next state and what it does.

    The move is None when every attempt simply goes on and none begins. `EDGE` ends the text.

    Attributes:
        number: no other state has it.
        threads: see the module.
        is_matched: whether a match is known, but not yet decided.
    """

    __slots__ = ("_automaton", "_by_bits", "attempts", "is_matched", "number", "threads")

    def __init__(
        self,
        automaton: Automaton,
        threads: tuple[_Thread, ...],
        attempts: int,
        number: int,
        *,
        is_matched: bool,
    ) -> None:
        """Know no edge yet."""
        super().__init__()
        self._automaton = automaton
        self._by_bits: dict[int, tuple[State, Move | None]] = {}
        self.threads = threads
        self.attempts = attempts
        self.number = number
        self.is_matched = is_matched

    def __missing__(self, char: str) -> tuple[State, Move | None]:
        """Find the edge of a character that is met in this state for the first time."""
        automaton = self._automaton
        bits = automaton.alphabet[char]
        edge = self._by_bits.get(bits)
        if edge is None:
            edge = self._by_bits[bits] = automaton.step(self, bits)
        automaton.grow(1)
        self[char] = edge
        return edge

    def forget(self) -> None:
        """Drop the edges; they are found again when they are needed."""
        self.clear()
        self._by_bits.clear()


class Automaton:
    """All states of one pattern that were needed so far; shared by all who look for it."""

    def __init__(self, pattern: str, flags: int) -> None:
        """Read and vet the pattern.

        Raises:
            re.error: it is no regular expression.
            PatternError: it cannot be matched exactly while text arrives.
        """
        self._nodes, self._start, self.alphabet = compile_nfa(parse(pattern, flags))
        self._states: dict[tuple[tuple[_Thread, ...], int, bool], State] = {}
        self._starts: dict[int, State] = {}  # by what is before them
        self._size = 0
        self._made = 0

    def start(self, before: str) -> State:
        """The state from which a text is read on behind the character `before`, or its `EDGE`."""
        bits = self.alphabet[before]
        state = self._starts.get(bits)
        if state is None:
            threads = _Threads(self._nodes)
            threads.add(0, self._start, bits)
            state = self._starts[bits] = self._state(threads.found, 0, is_matched=False)
        return state

    def step(self, state: State, bits: int) -> tuple[State, Move | None]:
        """The edge of a character with these bits."""
        after = _Threads(self._nodes)
        matched: int | None = None
        including = False
        for attempt, node, needs in state.threads:
            if not all(bits & mask for mask in needs):
                continue
            if node == MATCH:
                matched = attempt
                break
            consume = self._nodes[node]
            if not isinstance(consume, Consume) or not bits & consume.mask:
                continue
            if after.add(attempt, consume.then, bits):
                matched, including = attempt, True
                break
        kept = tuple(dict.fromkeys(attempt for attempt, _, _ in after.found))
        move = None
        if matched is not None or kept != tuple(range(state.attempts)):
            move = Move(kept, matched, including)
        is_matched = state.is_matched or matched is not None
        number = {attempt: number for number, attempt in enumerate(kept)}
        threads = [(number[attempt], node, needs) for attempt, node, needs in after.found]
        if not is_matched:  # else an attempt that begins here comes too late
            after.found.clear()
            after.add(len(kept), self._start, bits)
            threads += after.found
        return self._state(threads, len(kept), is_matched=is_matched), move

    def grow(self, size: int) -> None:
        """Note what was added, and start anew when it is too much."""
        self._size += size
        if self._size > MAX_SIZE:
            for state in list(self._states.values()):
                state.forget()
            self._states.clear()
            self._starts.clear()
            self._size = 0

    def _state(self, threads: list[_Thread], attempts: int, *, is_matched: bool) -> State:
        key = tuple(threads), attempts, is_matched
        state = self._states.get(key)
        if state is None:
            self.grow(len(threads) + 1)
            self._made += 1
            state = State(self, key[0], attempts, self._made, is_matched=is_matched)
            self._states[key] = state
        return state


class _Threads:
    """A list of threads while it is made."""

    def __init__(self, nodes: list[Node]) -> None:
        self.found: list[_Thread] = []
        self._nodes = nodes
        self._seen: set[tuple[int, tuple[int, ...]]] = set()

    def add(self, attempt: int, node: int, before: int) -> bool:
        """Add where an attempt can get to from a node without consuming anything.

        Args:
            attempt: its number.
            node: where it stands.
            before: bits of the character that was consumed last.

        Returns:
            Whether it gets to a match whatever follows. Then no thread may be added any more.
        """
        seen = self._seen
        stack: list[tuple[int, tuple[int, ...]]] = [(node, ())]
        while stack:
            here = node, needs = stack.pop()
            if here in seen:  # by a preferred thread
                continue
            seen.add(here)
            if node == MATCH:
                if not needs:
                    return True
                self.found.append((attempt, node, needs))
                continue
            place = self._nodes[node]
            if isinstance(place, Consume):
                self.found.append((attempt, node, needs))
            elif isinstance(place, Split):
                stack += [(target, needs) for target in reversed(place.targets)]
            elif not place.behind:
                stack.append((place.then, tuple(sorted({*needs, place.mask}))))
            elif before & place.mask:
                stack.append((place.then, needs))
        return False


@lru_cache(maxsize=256)
def automaton(pattern: str, flags: int) -> Automaton:
    """The automaton of a pattern; see `Automaton`."""
    return Automaton(pattern, flags)
