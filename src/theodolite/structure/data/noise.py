"""How rough a function is at the finest scale: the noise that limits finite differences, from a difference table."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np

from theodolite.structure.data.source import Array

TABLE = 12  # values along one short line
ORDERS = range(5, 11)
SPACING = 1e-3  # of the range: wide enough that single precision does not look constant


def estimate_noise(
    values: Callable[[Array], Array], starts: Array, widths: Array, generator: np.random.Generator
) -> float:
    """The standard deviation of what is not smooth in f along short lines from the starts (point, variable).

    The k-th differences of a smooth function fall off as spacing^k, those of noise grow as (2k choose k)^½ (Moré and
    Wild 2011), so the smallest estimate over the orders is the noise. A line that crosses a kink says too much; hence
    the upper quartile over the lines, not their maximum.
    """
    direction = generator.choice([-1.0, 1.0], size=starts.shape) * generator.uniform(0.5, 1.0, size=starts.shape)
    offsets = SPACING * (np.arange(TABLE) - (TABLE - 1) / 2)
    lines = starts[:, None, :] + offsets[None, :, None] * (direction * widths)[:, None, :]
    table = values(lines.reshape(-1, starts.shape[1])).reshape(len(starts), TABLE)
    by_order = []
    for order in ORDERS:
        differences = np.diff(table, n=order, axis=1)
        by_order.append(np.sqrt(np.mean(differences**2, axis=1) / comb(2 * order, order)))
    per_line = np.min(by_order, axis=0)
    return float(np.quantile(per_line, 0.75))
