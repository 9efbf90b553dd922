"""How many symbols go with how many parameters: a published fit.

Source: Tao et al. 2024, *Scaling laws with vocabulary* (arXiv 2407.13623), coefficients as in the code published with
it. Language models of 33M to 3B parameters with vocabularies of 4k to 96k, each trained with as many tokens as is best
for its compute: the parameters N_v = V·d in the vocabulary should grow more slowly than those N_nv outside it. Two of
the paper's three estimates are powers and are given here; the third asks for the compute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from theodolite.theory.domain import whole

FITTED_SIZES = (33_000_000, 2_870_000_000)
"""N_nv of the models trained."""
FITTED_SYMBOLS = (4096, 98_304)


@dataclass(frozen=True)
class Vocabulary:
    """Symbols between the two estimates; `extrapolated` where size or symbols lie outside what was trained."""

    low: int
    high: int
    extrapolated: bool


def fitted_vocabulary(parameters: int, width: int) -> Vocabulary:
    """For a model with so many parameters outside its vocabulary, at this width."""
    size, width = whole("parameters", parameters), whole("width", width)
    # from N_nv = e^−2.4847·F^½ and N_v = e^−1.5890·F^0.4164, F the training compute
    by_compute = math.exp(-1.589031299255507) * (size / math.exp(-2.4846510161625193)) ** (2 * 0.4163622634135234)
    by_derivative = 3_145_728 * (size / 33_000_000) ** 0.8353974035228025
    low, high = (max(1, round(count / width)) for count in sorted((by_compute, by_derivative)))
    inside = FITTED_SIZES[0] <= size <= FITTED_SIZES[1] and FITTED_SYMBOLS[0] <= low and high <= FITTED_SYMBOLS[1]
    return Vocabulary(low, high, not inside)
