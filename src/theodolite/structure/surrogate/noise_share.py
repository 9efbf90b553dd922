"""How much of a target is noise, and how little it may be, by a Gaussian process of its rows.

What a process takes for noise may be a function that it cannot follow: that shrinks as rows become more, and nearly as
much evidence is for less of it, where noise stays and is told sharply. So a share of noise is sure only if the evidence
falls where there is less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from theodolite.structure.surrogate.gaussian_process import ROWS, Learnt, learn, most_evident

FIXED = 25  # steps with the noise given
LOUD = -0.7  # log b to start from: from below, noise is overlooked
FALL = 2.0  # of the log evidence, from the greatest to that with less noise, which is then ruled out at 97.7 %


@dataclass(frozen=True)
class NoiseShare:
    """Of the variance; `learnt` is the process that says so, of these standardised rows and targets."""

    learnt: Learnt
    rows: Float[Tensor, "row variable"]
    targets: Float[Tensor, " row"]

    @property
    def value(self) -> float:
        return min(1.0, self.learnt.noise)

    def surely_above(self, share: float) -> bool:
        """Whether so little noise, or less, is ruled out."""
        if share <= 0:
            return True
        if share >= self.value:
            return False
        start = torch.cat([self.learnt.setting[:-1], torch.tensor([0.5 * math.log(share)], dtype=torch.float64)])
        least = learn(self.learnt.kind, self.rows, self.targets, start, steps=FIXED, noise_given=True)
        return least.evidence < self.learnt.evidence - FALL


Noise = Callable[[], NoiseShare]  # told once, when it is first asked for


def noise_share(x: NDArray[np.float64], y: NDArray[np.float64], generator: np.random.Generator) -> NoiseShare:
    """By the process of the more evident covariance."""
    few = generator.permutation(len(y))[:ROWS]
    rows, targets = x[few], y[few]
    spread = rows.std(0)
    scaled = torch.from_numpy((rows - rows.mean(0)) / np.where(spread > 0, spread, 1.0))
    wanted = torch.from_numpy((targets - y.mean()) / y.std())
    return NoiseShare(most_evident(scaled, wanted, LOUD), scaled, wanted)
