"""Does a shared input enter a node directly, or only through other inputs of it?

If x_s enters a block through its inputs u_1 … u_m alone, then ∂_s f = Σ_j a_j ∂_{r_j} f, where r_j is a variable that
stands for u_j and a_j depends on what u_j reads, and on nothing else. On a grid over two of the inputs, all else held
fixed, that is a linear system with more equations than unknowns, since a_j takes one value for each setting of what u_j
reads: it has a solution, or x_s enters directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from theodolite.structure.data.source import Array, GradientSource

SPARE = 6  # equations beyond the unknowns, at least
RESOLUTION = 3e-4  # error over how much both groups together change the slope; above, "it has a solution" says nothing


@dataclass(frozen=True)
class Term:
    """One way into the function: the variable whose slope stands for it (none: the slope is 1), and all it reads."""

    variable: int | None
    reads: frozenset[int]


@dataclass(frozen=True, eq=False)
class Grid:
    """Slopes over `side` × `side` settings of two groups of variables, at several points for all the others."""

    varied: tuple[frozenset[int], frozenset[int]]
    side: int
    value: Array  # (base, row, variable)
    error: Array

    @classmethod
    def draw(
        cls,
        source: GradientSource,
        varied: tuple[frozenset[int], frozenset[int]],
        generator: np.random.Generator,
        side: int,
        bases: int,
    ) -> Grid:
        start = source.points(bases, generator)
        rows = np.repeat(start[:, None, :], side * side, axis=1)
        settings = [np.arange(side * side) // side, np.arange(side * side) % side]
        for group, setting in zip(varied, settings, strict=True):
            columns = sorted(group)
            drawn = source.points(bases * side, generator).reshape(bases, side, -1)[:, :, columns]
            rows[:, :, columns] = drawn[:, setting]
        slopes = source.gradients(rows.reshape(-1, rows.shape[2]))
        return cls(varied, side, slopes.value.reshape(rows.shape), slopes.error.reshape(rows.shape))

    def explains(self, target: int, terms: Sequence[Term]) -> Array | None:
        """For every base the p-value of ∂_target f being the sum over the terms; None if the grid cannot tell."""
        rows = self.side * self.side
        columns = [self._settings(term) for term in terms]
        unknowns = sum(int(column.max()) + 1 for column in columns)
        if rows < unknowns + SPARE:
            return None
        found = [self._p_value(base, target, terms, columns, unknowns) for base in range(len(self.value))]
        seen = [p for p in found if p is not None]
        return np.array(seen) if seen else None

    def _settings(self, term: Term) -> np.ndarray:
        """For every row which of its values the term's coefficient takes."""
        first, second = (bool(term.reads & group) for group in self.varied)
        row = np.arange(self.side * self.side)
        if first and second:
            return row
        if first:
            return row // self.side
        return row % self.side if second else np.zeros_like(row)

    def _p_value(
        self, base: int, target: int, terms: Sequence[Term], columns: Sequence[np.ndarray], unknowns: int
    ) -> float | None:
        value, error = self.value[base], self.error[base]
        rows = len(value)
        matrix, spread = np.zeros((rows, unknowns)), np.zeros((rows, unknowns))
        start = 0
        for term, column in zip(terms, columns, strict=True):
            place = (np.arange(rows), start + column)
            matrix[place] = 1.0 if term.variable is None else value[:, term.variable]
            spread[place] = 0.0 if term.variable is None else error[:, term.variable]
            start += int(column.max()) + 1
        wanted, doubt = value[:, target], _positive(error[:, target])
        sigma = doubt
        solution = np.zeros(unknowns)
        for _ in range(2):  # weights depend on the solution: errors of the slopes count as often as they are used
            # The penalty is what errors of the slopes cost: without it, two ways that are one up to errors would be
            # played off against each other with huge coefficients, and explain anything.
            penalty = np.diag(np.sqrt(np.sum((spread / sigma[:, None]) ** 2, axis=0)))
            system = np.concatenate([matrix / sigma[:, None], penalty])
            scale = _positive(np.linalg.norm(system, axis=0))
            solution = np.linalg.lstsq(system / scale, np.append(wanted / sigma, np.zeros(unknowns)), rcond=None)[0]
            solution = solution / scale
            sigma = np.sqrt(doubt**2 + (spread**2) @ (solution**2))
        table = wanted.reshape(self.side, self.side)
        together = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
        if np.mean(sigma**2) > RESOLUTION**2 * np.mean(together**2):
            return None
        left = (wanted - matrix @ solution) / sigma
        return float(chdtrc(rows - unknowns, float(left @ left)))


def _positive(values: Array) -> Array:
    return np.maximum(values, np.finfo(np.float64).tiny)
