"""Boosted trees as a surrogate: for functions with jumps, which smooth members round off. They have no gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from theodolite.structure.boosting import boosted, trees_of_folds
from theodolite.structure.data.source import Array
from theodolite.structure.surrogate.surrogate import SurrogateSource

CHUNK = 1 << 16
FOLDS = 4


@dataclass(frozen=True)
class Trees:
    """Boosted trees, each fitted without a fold of the rows."""

    trees: tuple

    @property
    def members(self) -> int:
        return len(self.trees)

    @property
    def chunk(self) -> int:
        return CHUNK

    def everywhere(self, rows: Float[Tensor, "row variable"]) -> Float[Tensor, "member row"]:
        return torch.stack([torch.from_numpy(one.predict(rows.numpy())) for one in self.trees])

    def slopes(self, rows: Float[Tensor, "row variable"]) -> Float[Tensor, "member row variable"]:
        """Trees are constant on boxes."""
        return rows.new_zeros(self.members, *rows.shape)

    def only(self, chosen: Sequence[int]) -> Trees:
        return Trees(tuple(self.trees[member] for member in chosen))


def tree_source(x: Array, y: Array, variables: Sequence[str], seed: int) -> SurrogateSource:
    folds = np.random.default_rng(seed).permutation(len(y)) % FOLDS
    ensemble = Trees(tuple(trees_of_folds(x, y, folds, boosted(x, y, seed), seed)))
    said = ensemble.everywhere(torch.from_numpy(x)).numpy()
    missed = float(np.mean((said[folds, np.arange(len(y))] - y) ** 2))
    count = x.shape[1]
    scales = (np.zeros(count), np.ones(count), 0.0, 1.0)
    variance = float(y.var())
    return SurrogateSource(
        *(tuple(variables), x, y, folds, ensemble, *scales), r2=1 - missed / variance, noise=math.sqrt(missed)
    )
