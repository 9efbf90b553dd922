"""How near to each other the inputs of a unit lie, against chance.

The statistic is a mean, over all pairs of inputs that one unit reads, of a kernel over pairs: 1 for neighbours and 0
else (the share of neighbouring pairs), a distance, or 1 for two variables of one constituent (purity). Chance keeps how
many inputs every unit reads and how many units read every input: border pixels that nobody reads would otherwise make
any mask look local. Such masks are drawn by Strona's curveball: two units pool the inputs that only one of them reads
and share them out anew.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from theodolite.errors import BadInput


@dataclass(frozen=True)
class Against:
    """The observed mean against masks of the same margins. `value` over `chance` is the ratio; `z` counts deviations of
    chance; `low` and `high` bound the middle 95 % of chance's own ratios. None where no unit reads a pair."""

    value: float | None
    chance: float | None
    ratio: float | None
    z: float | None
    low: float | None
    high: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def pair_mean(mask: np.ndarray, kernel: np.ndarray) -> float | None:
    """Over all pairs of different inputs of a unit, all units together. `mask` is (unit, input), `kernel` symmetric."""
    pairs = _pairs(mask)
    total = pairs.sum()
    return float((pairs * kernel).sum() / total) if total else None


def against_chance(
    mask: np.ndarray, kernels: Mapping[str, np.ndarray], generator: np.random.Generator, draws: int = 100
) -> dict[str, Against]:
    """One comparison per kernel, all with the same drawn masks."""
    mask = np.asarray(mask, dtype=bool)
    for name, kernel in kernels.items():
        if mask.ndim != 2 or kernel.shape != (mask.shape[1],) * 2:
            raise BadInput(
                f"the kernel '{name}' must be (input, input) for a mask of (unit, input), not {kernel.shape}"
            )
    pairs = np.stack([_pairs(other) for other in same_margins(mask, generator, draws)])
    return {name: _against(pair_mean(mask, kernel), pairs, kernel) for name, kernel in kernels.items()}


def _pairs(mask: np.ndarray) -> np.ndarray:
    """How many units read both inputs; 0 on the diagonal."""
    living = mask.astype(np.float32)
    pairs = living.T @ living
    np.fill_diagonal(pairs, 0.0)
    return pairs


def _against(value: float | None, pairs: np.ndarray, kernel: np.ndarray) -> Against:
    if value is None:
        return Against(None, None, None, None, None, None)
    # A unit of n inputs has n(n − 1)/2 pairs: equal margins have equally many.
    chance = (pairs * kernel).sum((1, 2), dtype=float) / pairs.sum((1, 2), dtype=float)
    mean, deviation = float(chance.mean()), float(chance.std(ddof=1))
    if mean == 0:
        return Against(value, 0.0, None, None, None, None)
    low, high = np.quantile(chance / mean, [0.025, 0.975])
    z = (value - mean) / deviation if deviation > 1e-9 else None  # None: all masks of these margins are alike
    return Against(value, mean, value / mean, z, float(low), float(high))


def same_margins(mask: np.ndarray, generator: np.random.Generator, draws: int, sweeps: int = 12) -> np.ndarray:
    """(draw, unit, input): random masks that keep every unit's and every input's count; in a sweep every unit trades
    once. Draws are chains of their own."""
    units = len(mask)
    found = np.repeat(mask[None], draws, axis=0)
    if units < 2:
        return found
    chains = np.arange(draws)[:, None]
    for _ in range(sweeps):
        order = generator.random((draws, units)).argsort(1)[:, : units // 2 * 2]
        first, second = order[:, ::2], order[:, 1::2]
        a, b = found[chains, first], found[chains, second]
        differ = a != b
        # Ranks of random keys among the inputs that only one reads: the first units' share of them goes to it.
        keys = np.where(differ, generator.random(a.shape, dtype=np.float32), 2.0)
        rank = keys.argsort(-1).argsort(-1)
        taken = rank < (a & differ).sum(-1, keepdims=True)
        found[chains, first] = np.where(differ, taken, a)
        found[chains, second] = np.where(differ, ~taken, b)
    return found


def neighbours(shape: tuple[int, ...], reach: int = 1) -> np.ndarray:
    """1 for different places of a grid that no axis sets further apart than `reach`."""
    return ((_apart(shape).max(-1) <= reach) & ~np.eye(math.prod(shape), dtype=bool)).astype(float)


def distances(shape: tuple[int, ...]) -> np.ndarray:
    """Euclidean distances on a grid."""
    return np.sqrt((_apart(shape) ** 2).sum(-1))


def siblings(groups: list[list[int]], inputs: int) -> np.ndarray:
    """1 for different inputs of one group."""
    kernel = np.zeros((inputs, inputs))
    for group in groups:
        kernel[np.ix_(group, group)] = 1.0
    np.fill_diagonal(kernel, 0.0)
    return kernel


def _apart(shape: tuple[int, ...]) -> np.ndarray:
    places = np.stack(np.meshgrid(*(np.arange(size) for size in shape), indexing="ij"), -1).reshape(-1, len(shape))
    return np.abs(places[:, None] - places[None, :])
