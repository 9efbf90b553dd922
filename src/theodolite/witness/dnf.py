"""The smallest disjunction of conjunctions that computes a Boolean function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from theodolite.errors import BadInput

MOST_BITS = 10


@dataclass(frozen=True)
class Term:
    """A conjunction: the input must agree with `ones` on the bits of `mask`, the first input the highest bit."""

    mask: int
    ones: int

    def literals(self, bits: int) -> list[tuple[int, bool]]:
        """(input, whether it must be true)."""
        places = [(i, bits - 1 - i) for i in range(bits)]
        return [(i, bool(self.ones >> place & 1)) for i, place in places if self.mask >> place & 1]


@dataclass(frozen=True)
class Dnf:
    """`minimal` says that no disjunction of fewer conjunctions computes the function: proven by the cover's search."""

    bits: int
    terms: tuple[Term, ...]
    primes: int
    minimal: bool

    def evaluate(self) -> np.ndarray:
        """The truth table, 2^bits booleans."""
        inputs = np.arange(2**self.bits)
        table = np.zeros(2**self.bits, dtype=bool)
        for term in self.terms:
            table |= (inputs & term.mask) == term.ones
        return table


def minimal_dnf(answers: Sequence[int | bool]) -> Dnf:
    """Answers for 0 … 2^n − 1, n up to 10: prime implicants (Quine, McCluskey), then a smallest cover of the true
    inputs by them, an integer program. Some smallest disjunction consists of prime implicants, so this is the least."""
    table = np.asarray(answers, dtype=bool)
    bits = len(table).bit_length() - 1
    if len(table) != 2**bits:
        raise BadInput(f"a truth table has 2^n answers, not {len(table)}: give one for every input")
    if bits > MOST_BITS:
        raise BadInput(f"a minimal DNF of {bits} bits is out of reach: use {MOST_BITS} bits or fewer")
    primes = prime_implicants(table)
    if not primes:
        return Dnf(bits, (), 0, True)
    true = np.flatnonzero(table)
    covers = np.stack([(true & prime.mask) == prime.ones for prime in primes], axis=1)
    chosen, minimal = _smallest_cover(covers)
    return Dnf(bits, tuple(primes[i] for i in chosen), len(primes), minimal)


def prime_implicants(table: np.ndarray) -> list[Term]:
    """Conjunctions that imply the function and none of whose literals can be left out."""
    bits = len(table).bit_length() - 1
    full = 2**bits - 1
    # holds[mask]: for which fixings `ones` of the mask's bits the function is true whatever the other bits are
    holds = {full: table}
    for dropped in range(1, bits + 1):
        for mask in (m for m in range(2**bits) if m.bit_count() == bits - dropped):
            free = next(1 << i for i in range(bits) if not mask >> i & 1)
            wider = holds[mask | free]
            inputs = np.arange(2**bits)
            holds[mask] = wider & wider[inputs ^ free]
    found = []
    for mask, true in holds.items():
        prime = true.copy()
        for place in range(bits):
            if mask >> place & 1:
                prime &= ~holds[mask ^ (1 << place)]
        inputs = np.flatnonzero(prime)
        found += [Term(mask, int(ones)) for ones in inputs[(inputs & ~mask) == 0]]
    return found


def _smallest_cover(covers: np.ndarray) -> tuple[list[int], bool]:
    """Columns, as few as can be, that cover every row. Those that alone cover some row must be taken."""
    alone = covers[covers.sum(axis=1) == 1]
    essential = sorted(set(alone.argmax(axis=1).tolist())) if len(alone) else []
    left = ~covers[:, essential].any(axis=1) if essential else np.ones(len(covers), dtype=bool)
    if not left.any():
        return essential, True
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csc_array

    rest = covers[left]
    useful = np.flatnonzero(rest.any(axis=0))
    result = milp(
        np.ones(len(useful)),
        integrality=np.ones(len(useful)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(csc_array(rest[:, useful].astype(float)), lb=1),
        options={"mip_rel_gap": 0, "time_limit": 60},
    )
    if result.x is None:
        raise BadInput("the integer program for the smallest cover found nothing in 60 s: use fewer bits")
    chosen = useful[np.flatnonzero(result.x > 0.5)].tolist()
    # Sizes are whole numbers: a proven lower bound within 1 of the size found leaves no smaller one.
    minimal = result.status == 0 and result.mip_dual_bound > len(chosen) - 1 + 1e-6
    return essential + chosen, bool(minimal)
