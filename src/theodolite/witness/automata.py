"""Automata and grammars for aⁿbⁿ: how large a description is with and without the power to count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from theodolite.errors import BadInput
from theodolite.theory.domain import whole

State = int


@dataclass(frozen=True)
class Automaton:
    """A deterministic automaton with a transition for every state and letter; states are 0 … states − 1."""

    alphabet: str
    moves: tuple[tuple[State, ...], ...]  # moves[state][letter]
    start: State
    accepting: frozenset[State]

    @property
    def states(self) -> int:
        return len(self.moves)

    @property
    def live(self) -> int:
        """States from which a word can still be accepted."""
        alive = set(self.accepting)
        while True:
            more = {s for s, row in enumerate(self.moves) if s not in alive and not alive.isdisjoint(row)}
            if not more:
                return len(alive)
            alive |= more

    def accepts(self, word: str) -> bool:
        state = self.start
        for letter in word:
            if letter not in self.alphabet:
                raise BadInput(f"the letter '{letter}' is not of the alphabet '{self.alphabet}'")
            state = self.moves[state][self.alphabet.index(letter)]
        return state in self.accepting

    def minimal(self) -> Automaton:
        """States that tell no word apart are one (Moore): classes are split until none splits further."""
        reached = self._reached()
        block = {state: int(state in self.accepting) for state in reached}
        while True:
            kinds: dict[tuple[int, ...], int] = {}
            finer = {}
            for state in reached:
                kind = (block[state], *(block[there] for there in self.moves[state]))
                finer[state] = kinds.setdefault(kind, len(kinds))
            if len(kinds) == len(set(block.values())):
                break
            block = finer
        names: dict[int, int] = {}
        for state in reached:
            names.setdefault(block[state], len(names))
        moves: dict[int, tuple[int, ...]] = {}
        for state in reached:
            moves[names[block[state]]] = tuple(names[block[there]] for there in self.moves[state])
        accepting = frozenset(names[block[state]] for state in reached if state in self.accepting)
        rows = tuple(moves[name] for name in range(len(moves)))
        return Automaton(self.alphabet, rows, names[block[self.start]], accepting)

    def _reached(self) -> list[State]:
        found, waiting = [self.start], [self.start]
        while waiting:
            for there in self.moves[waiting.pop()]:
                if there not in found:
                    found.append(there)
                    waiting.append(there)
        return found


def automaton_of(words: Iterable[str], alphabet: str = "ab") -> Automaton:
    """The tree of all prefixes of finitely many words; state 0 is where no word can be completed."""
    moves: list[list[State]] = [[0] * len(alphabet), [0] * len(alphabet)]
    accepting = set()
    for word in words:
        state = 1
        for letter in word:
            place = alphabet.index(letter)
            if not moves[state][place]:
                moves[state][place] = len(moves)
                moves.append([0] * len(alphabet))
            state = moves[state][place]
        accepting.add(state)
    return Automaton(alphabet, tuple(map(tuple, moves)), 1, frozenset(accepting))


def balanced_words(most: int) -> list[str]:
    """ε, ab, aabb, …: the alternatives of a regular expression for aⁿbⁿ with n ≤ most."""
    whole("most", most, least=0)
    return ["a" * n + "b" * n for n in range(most + 1)]


@dataclass(frozen=True)
class Grammar:
    """Context-free rules (left side, right side); capital letters are variables, the first rule's left side starts.

    No rule may begin with its own variable (left recursion): membership is decided by descent.
    """

    rules: tuple[tuple[str, str], ...]

    def generates(self, word: str) -> bool:
        by_left: Mapping[str, Sequence[str]] = {
            left: [right for other, right in self.rules if other == left] for left, _ in self.rules
        }

        @cache
        def derives(symbols: str, low: int, high: int) -> bool:
            """Whether the symbols derive word[low:high]."""
            if not symbols:
                return low == high
            first, rest = symbols[0], symbols[1:]
            if first not in by_left:
                return low < high and word[low] == first and derives(rest, low + 1, high)
            return any(
                derives(right, low, middle) and derives(rest, middle, high)
                for middle in range(low, high + 1)
                for right in by_left[first]
            )

        return derives(self.rules[0][0], 0, len(word))


BALANCED = Grammar((("S", "aSb"), ("S", "")))
