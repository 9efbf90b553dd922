"""What a set of variables adds together, measured on rows that the surrogate has not seen.

For a set S, h_S(x) = Σ_{T ⊆ S} (−1)^|T| f̂(x with x_T redrawn from other rows), averaged over redraws, is the part of
the surrogate f̂ in which all of S act together (for independent variables: all terms of the analysis of variance whose
variables contain S). Taking it out of f̂ changes the squared error at a held-out row; its covariance with what is left,

    C_S = E[(y − f̂ + h_S) · h_S],

is E[f_S · h_S] with f_S the same part of the true function. It is zero when S does not interact, however large the
surrogate's own h_S: an interaction that the surrogate made up does not predict unseen rows. z_S = C_S / its standard
error over the rows is then about normal, so no threshold has to be chosen by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from theodolite.structure.data.source import Array
from theodolite.structure.surrogate.surrogate import SurrogateSource

Set = tuple[int, ...]
ENTRIES = 1 << 24  # outputs kept, for all pairs: 128 MiB
LEAST_ROWS = 1000


@dataclass(frozen=True)
class Effect:
    """`z` as above; `share`, the part of the target's variance that the set's joint effect explains on unseen rows."""

    z: float
    share: float


class HeldOut:
    """Effects of sets of variables; single ones and pairs are kept, for triples need them."""

    def __init__(
        self, source: SurrogateSource, generator: np.random.Generator, redraws: int = 4, rows: int | None = None
    ) -> None:
        """`redraws` (at least 2) of every variable at `rows` rows of the data: all that memory allows, unless given."""
        if rows is None:
            rows = max(LEAST_ROWS, ENTRIES // (redraws * len(source.variables) ** 2))
        self.source = source
        self.chosen = np.sort(generator.permutation(len(source.rows))[:rows])
        self.here = source.rows[self.chosen]
        self.folds = source.folds[self.chosen]
        others = generator.integers(len(source.rows), size=(redraws, len(self.chosen)))
        self.there = source.rows[others]  # (redraw, row, variable)
        self._kept: dict[Set, Array] = {(): np.broadcast_to(self._outputs(()), (redraws, len(self.chosen)))}
        self.residuals = source.targets[self.chosen] - self._kept[()][0]

    def effects(self, sets: Sequence[Set]) -> dict[Set, Effect]:
        return {members: self.effect(members) for members in sets}

    def effect(self, members: Set) -> Effect:
        """Different redraws stand in the two factors, so that their own scatter does not count as an effect."""
        parts = self._joint(members)
        count = len(parts)
        mean = parts.mean(0)
        square = (parts.sum(0) ** 2 - (parts**2).sum(0)) / (count * (count - 1))
        product = self.residuals * mean + square
        covariance, size = float(product.mean()), float(square.mean())
        error = float(product.std(ddof=1) / np.sqrt(len(product)))
        z = covariance / error if error > 0 else 0.0
        share = max(covariance, 0.0) ** 2 / size if size > 0 else 0.0
        return Effect(z, share / self.source.unit**2)

    def _joint(self, members: Set) -> Array:
        """h_S for each redraw: (redraw, row)."""
        found = np.zeros((len(self.there), len(self.here)))
        for size in range(len(members) + 1):
            for part in combinations(members, size):
                found += (-1) ** size * self._moved(part)
        return found

    def _moved(self, part: Set) -> Array:
        if part not in self._kept:
            found = self._outputs(part)
            if len(part) > 2:
                return found
            self._kept[part] = found
        return self._kept[part]

    def _outputs(self, part: Set) -> Array:
        """f̂ with x_part redrawn, by the member that has not seen the row."""
        found = np.empty((len(self.there) if part else 1, len(self.here)))
        for member in range(self.source.ensemble.members):
            mine = self.folds == member
            points = np.repeat(self.here[None, mine], len(found), axis=0)
            for index in part:
                points[:, :, index] = self.there[:, mine, index]
            found[:, mine] = self.source.unseen(member, points.reshape(-1, points.shape[2])).reshape(len(found), -1)
        return found
