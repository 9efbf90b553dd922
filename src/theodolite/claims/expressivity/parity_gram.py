"""The Gram matrix of all parities, in whole numbers, and the products that are said to give it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from theodolite.instruments.gradient.walsh import cube
from theodolite.theory.gradient import parity_correlation


def measure_parity_gram(config: Mapping[str, Any]) -> dict[str, Any]:
    """config: bits, factors (whether the products are checked too, pair by pair)."""
    bits = config["bits"]
    size = 1 << bits
    signs = cube(bits, torch.float64, torch.device("cpu"))
    subsets = [[number >> i & 1 for i in range(bits)] for number in range(size)]
    parities = torch.stack([signs[:, [i for i in range(bits) if v[i]]].prod(dim=1) for v in subsets])
    # Sums of up to 2^10 signs are whole numbers that float64 holds exactly.
    gram = parities @ parities.T
    result = {"bits": bits, "identity": bool(torch.equal(gram, size * torch.eye(size, dtype=torch.float64)))}
    counts = {"pairs": 0, "corrected": 0, "printed": 0}
    if config["factors"]:
        for i, v in enumerate(subsets):
            for j, other in enumerate(subsets):
                true = int(gram[i, j])
                counts["pairs"] += 1
                counts["corrected"] += parity_correlation(v, other) * size == true
                counts["printed"] += parity_correlation(v, other, printed=True) * size == true
    return {**result, **counts}
