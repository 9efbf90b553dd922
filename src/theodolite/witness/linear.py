"""Whether one linear unit computes a Boolean function: a linear program, and a proof in whole numbers if none does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

_PER_ROUND = 256  # wrong inputs added to the program at a time


@dataclass(frozen=True)
class Farkas:
    """Inputs of ±1 with answers of ±1 and whole weights λ > 0 for which Σ λ·answer·input = 0 and Σ λ·answer = 0.

    A unit with answer·(w·input + b) > 0 on each of them would have 0 = Σ λ·answer·(w·input + b) > 0.
    """

    inputs: tuple[tuple[int, ...], ...]
    answers: tuple[int, ...]
    weights: tuple[int, ...]

    def holds(self) -> bool:
        """Checked in Python's whole numbers."""
        rows = list(zip(self.weights, self.answers, self.inputs, strict=True))
        if not rows or any(weight <= 0 or answer not in (-1, 1) for weight, answer, _ in rows):
            return False
        extended = [(weight * answer, (*row, 1)) for weight, answer, row in rows]
        return all(sum(factor * row[i] for factor, row in extended) == 0 for i in range(len(extended[0][1])))


@dataclass(frozen=True)
class Separation:
    """`weights` and `bias` where a unit was found, else the proof; both None where rounding left it open."""

    weights: np.ndarray | None
    bias: float
    proof: Farkas | None
    status: str
    programs: int
    inputs: int  # those the programs were about


def separate(inputs: np.ndarray, answers: np.ndarray) -> Separation:
    """inputs (row, bit) and answers (row,) of ±1. Starts with some rows and adds those that the unit found gets wrong,
    until none is wrong or the program has no solution, which is then proven for these rows and so for all."""
    from scipy.optimize import linprog

    rows, bits = inputs.shape
    signed = answers[:, None] * np.concatenate([inputs, np.ones((rows, 1))], axis=1)
    chosen = np.unique(np.linspace(0, rows - 1, min(rows, 2 * _PER_ROUND)).astype(int))
    for programs in range(1, rows + 2):
        program = linprog(
            np.zeros(bits + 1), A_ub=-signed[chosen], b_ub=-np.ones(len(chosen)), bounds=(None, None), method="highs"
        )
        if program.status == 2:
            proof = _prove(inputs[chosen], answers[chosen])
            return Separation(None, 0.0, proof, "infeasible", programs, len(chosen))
        if program.x is None:
            return Separation(None, 0.0, None, program.message, programs, len(chosen))
        gaps = signed @ program.x
        wrong = np.setdiff1d(np.flatnonzero(gaps <= 0.5), chosen)
        if not len(wrong):
            return Separation(program.x[:-1], float(program.x[-1]), None, "feasible", programs, len(chosen))
        worst = wrong[np.argsort(gaps[wrong])[:_PER_ROUND]]
        chosen = np.concatenate([chosen, worst])
    raise AssertionError("every round adds a row")


def _prove(inputs: np.ndarray, answers: np.ndarray) -> Farkas | None:
    """Farkas' lemma: a vertex of {λ ≥ 0, Σ λ = 1, Σ λ·answer·(input, 1) = 0} has few rows, on which the equations are
    solved again in fractions."""
    from scipy.optimize import linprog

    signed = (answers[:, None] * np.concatenate([inputs, np.ones((len(inputs), 1))], axis=1)).T
    system = np.concatenate([signed, np.ones((1, len(inputs)))])
    right = np.zeros(len(system))
    right[-1] = 1.0
    found = linprog(np.zeros(len(inputs)), A_eq=system, b_eq=right, bounds=(0, None), method="highs-ds")
    if found.x is None:
        return None
    rows = np.flatnonzero(found.x > 1e-9)
    weights = _kernel([[int(entry) for entry in line] for line in signed[:, rows]])
    if weights is None:
        return None
    proof = Farkas(
        tuple(tuple(int(entry) for entry in inputs[row]) for row in rows),
        tuple(int(answers[row]) for row in rows),
        weights,
    )
    return proof if proof.holds() else None


def _kernel(matrix: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
    """The positive whole vector, if there is just one up to scale, that the matrix sends to 0."""
    lines = [[Fraction(entry) for entry in line] for line in matrix]
    width, pivots = len(lines[0]), []
    for column in range(width):
        line = next((i for i in range(len(pivots), len(lines)) if lines[i][column]), None)
        if line is None:
            continue
        place = len(pivots)
        lines[place], lines[line] = lines[line], lines[place]
        head = lines[place][column]
        lines[place] = [entry / head for entry in lines[place]]
        for i, other in enumerate(lines):
            if i != place and other[column]:
                lines[i] = [a - other[column] * b for a, b in zip(other, lines[place], strict=True)]
        pivots.append(column)
    free = [column for column in range(width) if column not in pivots]
    if len(free) != 1:
        return None
    solution = [Fraction(0)] * width
    solution[free[0]] = Fraction(1)
    for place, column in enumerate(pivots):
        solution[column] = -lines[place][free[0]]
    if not all(entry > 0 for entry in solution):
        return None
    scale = lcm(*(entry.denominator for entry in solution))
    return tuple(int(entry * scale) for entry in solution)
