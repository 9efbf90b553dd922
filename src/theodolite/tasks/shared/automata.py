"""Deterministic finite automata: random minimal ones, and how many ways lead from each state to acceptance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from random import Random

import numpy as np


@dataclass(frozen=True)
class Automaton:
    """Starts in state 0; `moves[state][symbol]` is the next state, `accepting[state]` whether a word may end there."""

    moves: tuple[tuple[int, ...], ...]
    accepting: tuple[bool, ...]

    @property
    def states(self) -> int:
        return len(self.moves)

    @property
    def symbols(self) -> int:
        return len(self.moves[0])

    def kinds(self) -> Iterator[frozenset[bool]]:
        """For the lengths 0, 1, 2, …, without end: whether some word is accepted (True) and some rejected (False)."""
        reached = frozenset([0])
        while True:
            yield frozenset(self.accepting[state] for state in reached)
            reached = frozenset(after for state in reached for after in self.moves[state])

    def minimal(self) -> bool:
        """Whether no two states answer alike to every word (Moore's refinement) and all are reached."""
        blocks = [int(accepts) for accepts in self.accepting]
        while True:
            signatures = [(blocks[q], *(blocks[after] for after in self.moves[q])) for q in range(self.states)]
            numbers = {signature: number for number, signature in enumerate(dict.fromkeys(signatures))}
            if len(numbers) == len(set(blocks)):
                break
            blocks = [numbers[signature] for signature in signatures]
        reached, edge = {0}, [0]
        while edge:
            found = set(self.moves[edge.pop()]) - reached
            reached |= found
            edge += found
        return len(numbers) == len(reached) == self.states


@lru_cache(maxsize=64)
def random_automaton(states: int, symbols: int, draw: int) -> Automaton:
    """The automaton of that number, the same on every machine: minimal, and from the length `states` on every length
    has accepted words and rejected ones.

    A random tree over the states makes all of them reachable; the other moves are uniform, and every state accepts
    with probability ½.
    """
    source = Random(f"random-language {states} {symbols} {draw}")
    choose = lambda count: int(source.random() * count)  # `random` alone is the same in every Python
    while True:
        moves = [[choose(states) for _ in range(symbols)] for _ in range(states)]
        free = [(0, symbol) for symbol in range(symbols)]
        for state in range(1, states):
            parent, symbol = free.pop(choose(len(free)))
            moves[parent][symbol] = state
            free += [(state, symbol) for symbol in range(symbols)]
        drawn = Automaton(tuple(map(tuple, moves)), tuple(source.random() < 0.5 for _ in range(states)))
        if drawn.minimal() and _never_one_kind(drawn):
            return drawn


def _never_one_kind(automaton: Automaton) -> bool:
    """Whether every length from `states` on has both kinds of words; the sets of states reached come round again."""
    reached = frozenset([0])
    met: set[frozenset[int]] = set()
    for length in range(2**automaton.states + automaton.states):
        if length >= automaton.states:
            if reached in met:
                break
            met.add(reached)
            if len({automaton.accepting[state] for state in reached}) == 1:
                return False
        reached = frozenset(after for state in reached for after in automaton.moves[state])
    return True


@dataclass(frozen=True)
class EditWalk:
    """A Markov chain whose paths are accepted words, or pairs of an accepted and a rejected one that differ in a place.

    Nodes: first the states q of an accepted word; then q again, of a pair that has not differed yet; then (p, q), where
    its accepted and its rejected word are after the place where they differ; last a node without paths. The step
    numbered a·symbols + b reads a in the accepted word and b in the word that is drawn.
    """

    automaton: Automaton
    steps: np.ndarray  # (node, step) int64: the node it leads to
    ends: np.ndarray  # (node,) float64: 0 where a path may end, −∞ elsewhere

    @property
    def start_of_accepted(self) -> int:
        return 0

    @property
    def start_of_rejected(self) -> int:
        return self.automaton.states


@lru_cache(maxsize=64)
def edit_walk(automaton: Automaton) -> EditWalk:
    states, symbols = automaton.states, automaton.symbols
    moves, accepting = np.array(automaton.moves), np.array(automaton.accepting)
    nowhere = 2 * states + states**2
    pair = lambda p, q: 2 * states + p * states + q
    steps = np.full((nowhere + 1, symbols, symbols), nowhere, dtype=np.int64)
    every = np.arange(states)
    for a in range(symbols):
        steps[every, a, a] = moves[:, a]
        steps[states + every, a, a] = states + moves[:, a]
        steps[pair(every[:, None], every), a, a] = pair(moves[:, a][:, None], moves[:, a])
        for b in range(symbols):
            if a != b:
                steps[states + every, a, b] = pair(moves[:, a], moves[:, b])
    may_end = np.zeros(nowhere + 1, dtype=bool)
    may_end[:states] = accepting
    may_end[2 * states : nowhere] = (accepting[:, None] & ~accepting).flatten()
    return EditWalk(automaton, steps.reshape(nowhere + 1, -1), np.where(may_end, 0.0, -np.inf))


@lru_cache(maxsize=64)
def log_paths(automaton: Automaton, longest: int) -> np.ndarray:
    """(longest + 1, node) float64: the logarithm of the number of paths of each length from each node of the walk."""
    walk = edit_walk(automaton)
    counts = np.empty((longest + 1, len(walk.ends)))
    counts[0] = walk.ends
    for length in range(1, longest + 1):
        counts[length] = np.logaddexp.reduce(counts[length - 1][walk.steps], axis=1)
    return counts
