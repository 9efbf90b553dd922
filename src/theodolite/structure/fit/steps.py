"""Functions that are constant on boxes, added up: cuts found greedily, as trees find theirs, heights by least squares.

A function on the grid of its cuts is Σ_k c_k Π_v [x_v > t_kv]: linear once the cuts are known. A cut is placed where it
lowers the squared error most, and placed again when others have come; how many there are is decided, as elsewhere, by
the rows that are not learnt from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Term = tuple[int, ...]  # the columns that a function reads
Unit = tuple[tuple[int, float], ...]  # a product of steps: of each its place in the term, and its cut
MOST_ROWS = 4_000  # that cuts are found by; more place them again, once
MOST_UNITS = 80  # of one function
MOST_CUTS = 60
LEAST_ROWS = 3  # on both sides of a cut in a cell, for the cell to count
CHANCE = 2.0  # times the variance left: what a cut must gain in every cell that it parts
PATIENCE = 6  # cuts that lower no held-out error
AGAIN = 3  # cuts after which those before are placed again
RIDGE = 1e-6  # keeps heights of empty cells finite
LEAST_GAP = 1e-9  # of a standardised column: closer values are not told apart


@dataclass
class Grid:
    """The cuts of every variable of a term."""

    term: Term
    cuts: list[list[float]]

    @property
    def units(self) -> list[Unit]:
        choices = [[None, *sorted(cuts)] for cuts in self.cuts]
        chosen = ([(k, cut) for k, cut in enumerate(some) if cut is not None] for some in product(*choices))
        return [tuple(unit) for unit in chosen if unit]

    def size(self, extra: int | None = None) -> int:
        """Units; with one more cut in a place if that is given."""
        counts = [len(cuts) + 1 + (place == extra) for place, cuts in enumerate(self.cuts)]
        return int(np.prod(counts)) - 1

    def columns(self, rows: Array) -> Array:
        above = [[rows[:, [v]] > cut for cut in sorted(cuts)] for v, cuts in zip(self.term, self.cuts, strict=True)]
        found = np.ones((len(rows), 1))
        for steps in above:
            factors = np.column_stack([np.ones(len(rows)), *steps])
            found = (found[:, :, None] * factors[:, None, :]).reshape(len(rows), -1)
        return found[:, 1:]

    def cells(self, rows: Array) -> tuple[NDArray[np.int64], int]:
        found, count = np.zeros(len(rows), dtype=np.int64), 1
        for v, cuts in zip(self.term, self.cuts, strict=True):
            found = found * (len(cuts) + 1) + np.searchsorted(np.sort(cuts), rows[:, v])
            count *= len(cuts) + 1
        return found, count


@dataclass
class Steps:
    """A sum of functions on grids, fitted to the rows `learnt`, judged by the others."""

    grids: list[Grid]
    rows: Array = field(repr=False)
    wanted: Array = field(repr=False)
    learnt: NDArray[np.bool_] = field(repr=False)
    heights: Array = field(default_factory=lambda: np.zeros(1), repr=False)  # the constant first
    left: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    order: dict[int, NDArray[np.int64]] = field(default_factory=dict, repr=False)

    def solve(self) -> tuple[float, float]:
        """Heights of least squares; the mean squared errors on the rows learnt from and on the others."""
        basis = np.column_stack([np.ones(len(self.rows)), *(grid.columns(self.rows) for grid in self.grids)])
        own = basis[self.learnt]
        matrix = own.T @ own
        matrix[np.diag_indices_from(matrix)] += RIDGE * len(own)
        self.heights = np.linalg.solve(matrix, own.T @ self.wanted[self.learnt]).astype(np.float64)
        self.left = self.wanted - basis @ self.heights
        return float(np.mean(self.left[self.learnt] ** 2)), float(np.mean(self.left[~self.learnt] ** 2))

    def best_cut(self, place: int, which: int) -> tuple[float, float] | None:
        """Where, in one variable of one term, a further cut lowers the squared error most: its gain beyond chance, and
        the cut."""
        grid = self.grids[place]
        if grid.size(which) > MOST_UNITS:
            return None
        column = self.rows[:, grid.term[which]]
        if grid.term[which] not in self.order:
            self.order[grid.term[which]] = np.flatnonzero(self.learnt)[np.argsort(column[self.learnt], kind="stable")]
        order = self.order[grid.term[which]]
        cell, count = grid.cells(self.rows[order])
        values, left = column[order], self.left[order]
        inside = np.zeros((len(order), count))
        inside[np.arange(len(order)), cell] = 1.0
        below, sums = np.cumsum(inside, axis=0)[:-1], np.cumsum(inside * left[:, None], axis=0)
        total, sums, many = sums[-1], sums[:-1], inside.sum(0)
        above = many - below
        counts = (below >= LEAST_ROWS) & (above >= LEAST_ROWS)
        with np.errstate(divide="ignore", invalid="ignore"):
            gains = sums**2 / below + (total - sums) ** 2 / above - total**2 / many
        gain = (np.where(counts, gains, 0.0)).sum(1) - CHANCE * float(np.mean(left**2)) * counts.sum(1)
        gain = np.where(np.diff(values) > LEAST_GAP, gain, -np.inf)
        at = int(np.argmax(gain))
        return (float(gain[at]), float(values[at] + values[at + 1]) / 2) if np.isfinite(gain[at]) else None

    def places(self) -> Iterator[tuple[int, int]]:
        return ((place, which) for place, grid in enumerate(self.grids) for which in range(len(grid.term)))

    def place_again(self) -> None:
        """Every cut in turn is taken out and put where it lowers the error most."""
        for place, which in self.places():
            for cut in list(self.grids[place].cuts[which]):
                before, _ = self.solve()
                self.grids[place].cuts[which].remove(cut)
                self.solve()
                found = self.best_cut(place, which)
                moved = cut if found is None else found[1]
                self.grids[place].cuts[which].append(moved)
                if moved != cut and self.solve()[0] > before:
                    self.grids[place].cuts[which][-1] = cut
        self.solve()

    def prune(self) -> None:
        """Cuts go, those that matter least first, while the rows not learnt from lose nothing."""
        _, lowest = self.solve()
        while True:
            errors = []
            for place, which in self.places():
                for cut in list(self.grids[place].cuts[which]):
                    self.grids[place].cuts[which].remove(cut)
                    errors.append((self.solve()[1], place, which, cut))
                    self.grids[place].cuts[which].append(cut)
            if not errors or min(errors)[0] > lowest:
                break
            lowest, place, which, cut = min(errors)
            self.grids[place].cuts[which].remove(cut)
        self.solve()

    @property
    def open(self) -> NDArray[np.bool_]:
        """The rows that lie as near to a cut as the next rows learnt from (one on each side for every variable of the
        term, for the others decide whether a row shows the cut): on which side they lie is left open."""
        found = np.zeros(len(self.rows), dtype=bool)
        for grid in self.grids:
            near = len(grid.term)
            for v, cuts in zip(grid.term, grid.cuts, strict=True):
                column = self.rows[:, v]
                ends = np.full(near, np.inf)
                learnt = np.concatenate([-ends, np.sort(column[self.learnt]), ends])
                above = np.searchsorted(learnt, cuts)
                for low, high in zip(learnt[above - near], learnt[above + near - 1], strict=True):
                    found |= (column > low) & (column < high)
        return found & ~self.learnt

    def kept(self) -> list[list[list[float]]]:
        return [[list(cuts) for cuts in grid.cuts] for grid in self.grids]

    def restore(self, kept: Sequence[Sequence[Sequence[float]]]) -> None:
        for grid, cuts in zip(self.grids, kept, strict=True):
            grid.cuts = [list(own) for own in cuts]
        self.solve()


def grown(terms: Sequence[Term], rows: Array, wanted: Array, learnt: NDArray[np.bool_]) -> Steps:
    """Cut by cut, as long as the rows not learnt from gain by it."""
    thin = np.sort(np.random.default_rng(len(rows)).permutation(len(rows))[:MOST_ROWS])
    steps = Steps([Grid(term, [[] for _ in term]) for term in terms], rows[thin], wanted[thin], learnt[thin])
    _, lowest = steps.solve()
    best, since = steps.kept(), 0
    for number in range(1, MOST_CUTS + 1):
        found = [(cut, place) for place in steps.places() if (cut := steps.best_cut(*place)) is not None]
        if not found or since >= PATIENCE:
            break
        (_, cut), (place, which) = max(found)
        steps.grids[place].cuts[which].append(cut)
        if number % AGAIN == 0:
            steps.place_again()
        _, error = steps.solve()
        since = 0 if error < lowest else since + 1
        if error < lowest:
            best, lowest = steps.kept(), error
    steps.restore(best)
    steps.place_again()
    steps.prune()
    if len(steps.rows) == len(rows):
        return steps
    every = Steps(steps.grids, rows, wanted, learnt)
    every.place_again()
    return every
