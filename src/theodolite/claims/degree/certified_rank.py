"""A smooth function whose exact rank is full at any points while its ε-rank is a handful.

e^{ab} is strictly totally positive: every minor at distinct points is positive, so K points a side give rank K for
every K. In floating point that drowns in rounding after some fifteen; ball arithmetic encloses the determinant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from theodolite.instruments.rank.function_distance import least_rank, size


def measure_certified_full_rank(config: Mapping[str, Any]) -> dict[str, Any]:
    """config: points, epsilons. e^{ab} at equally spaced points of [−1, 1]: is the determinant proven not to be 0?"""
    import flint

    points = config["points"]
    places = [(2 * i + 1 - points, points) for i in range(points)]
    with flint.ctx.workprec(80 * points):
        entries = [(flint.arb(i) / n * flint.arb(j) / n).exp() for i, n in places for j, _ in places]
        determinant = flint.arb_mat(points, points, entries).det()
        proven = not determinant.contains(0)
        shown = determinant.str(5, radius=False)
    axis = torch.tensor([i / n for i, n in places], dtype=torch.float64)
    matrix = torch.exp(axis[:, None] * axis)
    return {
        "points": points,
        "determinant": shown,
        "full": proven,
        "float_rank": int(torch.linalg.matrix_rank(matrix)),
        "epsilon_ranks": [least_rank(matrix, e * size(matrix, "d2"), "d2")[0] for e in config["epsilons"]],
    }
