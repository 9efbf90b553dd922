"""Exact smallest circuits of all Boolean functions of at most three bits, gates shared as often as one likes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from theodolite.errors import BadInput
from theodolite.registry import unknown

MOST_BITS = 3
_HELD = 1 << 23  # names of sets held before equal ones are dropped
_Pairs = Mapping[str, Callable[[np.ndarray, np.ndarray, int], np.ndarray]]


@dataclass(frozen=True)
class _Basis:
    """Gates of two inputs and of one, as functions of truth tables. `literals`: negated inputs and constants come for
    nothing, and a function costs as much as its negation."""

    summary: str
    pairs: _Pairs
    single: bool  # a negation is a gate
    literals: bool
    most_bits: int = MOST_BITS


_AND_OR: _Pairs = {"and": lambda a, b, full: a & b, "or": lambda a, b, full: a | b}
_ONE_NEGATED: _Pairs = {"less": lambda a, b, full: (full ^ a) & b, "more": lambda a, b, full: a & (full ^ b)}
BASES: Mapping[str, _Basis] = {
    "fan-in-2": _Basis(
        "all 16 gates of two inputs; constants and negated inputs are free",
        {**_AND_OR, "xor": lambda a, b, full: a ^ b, **_ONE_NEGATED},
        single=False,
        literals=True,
    ),
    "and-or": _Basis(
        "and, or of two inputs; negations, of gates too, and constants are free",
        {**_AND_OR, **_ONE_NEGATED},
        single=False,
        literals=True,
    ),
    "and-or-not": _Basis(
        "and, or of two inputs and not, each counted; constants are made",
        _AND_OR,
        single=True,
        literals=False,
    ),
    "nand": _Basis(
        "nand of two inputs, the same input twice allowed; constants are made",
        {"nand": lambda a, b, full: full ^ (a & b)},
        single=True,
        literals=False,
        most_bits=2,  # of three bits some need ten gates or more: too many sets
    ),
}


@dataclass(frozen=True)
class MinimalSizes:
    """`sizes[f]` is the least number of gates of function f: bit i of f is its answer for input i, the first input the
    highest bit of i. `functions[s]` counts the functions of size s."""

    bits: int
    basis: str
    sizes: tuple[int, ...]

    @property
    def functions(self) -> tuple[int, ...]:
        return tuple(int(count) for count in np.bincount(self.sizes))

    @property
    def most(self) -> int:
        return max(self.sizes)


def minimal_sizes(bits: int, basis: str = "fan-in-2") -> MinimalSizes:
    """By breadth-first search over *sets* of functions that s gates can compute beside the inputs.

    Two sets that differ by the order of the inputs are one. With `literals` only functions that are 0 on input 0 are
    looked at: a gate and its negation cost the same, and the gates of the basis are closed under such changes.
    """
    if basis not in BASES:
        raise BadInput(unknown("basis of gates", basis, BASES))
    chosen = BASES[basis]
    if not 1 <= bits <= chosen.most_bits:
        limit = f"use 1 to {chosen.most_bits} for the basis '{basis}'"
        raise BadInput(f"smallest circuits of all functions of {bits} bits are out of reach: {limit}")
    full = 2 ** (2**bits) - 1
    inputs = _projections(bits)
    if chosen.literals:
        inputs = [f if not f & 1 else full ^ f for f in inputs]
    sizes = np.full(full + 1, -1)
    sizes[[*inputs, *([0] if chosen.literals else [])]] = 0
    wanted = np.array([f for f in range(full + 1) if not (chosen.literals and f & 1)])
    turns = _turns(bits)
    sets = np.zeros((1, 0), dtype=np.uint8)
    gates = 0
    while (sizes[wanted] < 0).any():
        gates += 1
        # New functions need no set of their own: a last look at what one more gate gives is enough to size them.
        fresh = _unsized(sets, inputs, chosen, full, sizes, turns)
        sizes[fresh] = gates
        if (sizes[wanted] >= 0).all():
            break
        sets = _grown(sets, inputs, chosen, full, turns)
    if chosen.literals:
        functions = np.arange(full + 1)
        sizes = np.where(functions & 1, sizes[full ^ functions], sizes)
    return MinimalSizes(bits, basis, tuple(int(size) for size in sizes))


def _projections(bits: int) -> list[int]:
    """Truth tables of the inputs."""
    return [sum(1 << i for i in range(2**bits) if i >> (bits - 1 - place) & 1) for place in range(bits)]


def _turns(bits: int) -> list[np.ndarray]:
    """For every order of the inputs, the truth table that each truth table becomes."""
    result = []
    for order in permutations(range(bits)):
        moved = [sum((i >> order[place] & 1) << place for place in range(bits)) for i in range(2**bits)]
        tables = np.arange(2 ** (2**bits))
        turned = np.zeros_like(tables)
        for i in range(2**bits):
            turned |= (tables >> i & 1) << moved[i]
        result.append(turned.astype(np.uint8))
    return result


def _candidates(sets: np.ndarray, inputs: list[int], basis: _Basis, full: int) -> Iterator[np.ndarray]:
    """What one more gate may compute, one array over all sets for every choice of its inputs."""
    columns = [np.full(len(sets), f, dtype=np.uint8) for f in inputs] + list(sets.T)
    for i, a in enumerate(columns):
        if basis.single:
            yield (full ^ a).astype(np.uint8)
        for b in columns[:i]:
            for join in basis.pairs.values():
                yield join(a, b, full).astype(np.uint8)


def _unsized(
    sets: np.ndarray, inputs: list[int], basis: _Basis, full: int, sizes: np.ndarray, turns: list[np.ndarray]
) -> np.ndarray:
    """Functions without a size yet that one more gate computes, in every order of the inputs."""
    found = np.zeros(full + 1, dtype=bool)
    for new in _candidates(sets, inputs, basis, full):
        found[new] = True
    for turn in turns:
        found[turn[np.flatnonzero(found)]] = True
    return np.flatnonzero(found & (sizes < 0))


def _grown(sets: np.ndarray, inputs: list[int], basis: _Basis, full: int, turns: list[np.ndarray]) -> np.ndarray:
    """Every set with one function more, each once, up to the order of the inputs."""
    kept, waiting, held = np.zeros(0, dtype=np.uint64), [], 0
    for new in _candidates(sets, inputs, basis, full):
        useful = ~np.isin(new, inputs) & ~(sets == new[:, None]).any(axis=1)
        if basis.literals:
            useful &= new != 0
        larger = np.concatenate([sets[useful], new[useful, None]], axis=1)
        waiting.append(_names(larger, turns))
        held += len(larger)
        if held > _HELD:
            kept, waiting, held = np.unique(np.concatenate([kept, *waiting])), [], 0
    kept = np.unique(np.concatenate([kept, *waiting]))
    return kept.view(np.uint8).reshape(len(kept), 8)[:, : sets.shape[1] + 1].copy()


def _names(sets: np.ndarray, turns: list[np.ndarray]) -> np.ndarray:
    """A set of at most 8 truth tables as one number: sorted, and the least over the orders of the inputs."""
    best = None
    for turn in turns:
        padded = np.zeros((len(sets), 8), dtype=np.uint8)
        padded[:, : sets.shape[1]] = np.sort(turn[sets], axis=1)
        name = padded.view(np.uint64).ravel()
        best = name if best is None else np.minimum(best, name)
    assert best is not None
    return best
