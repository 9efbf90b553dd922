"""What iterating z ↦ f(z, x) does, and how large a feed-forward network becomes when it is written as one such map.

Sources: Bai, Kolter & Koltun 2019, "Deep equilibrium models", Theorem 3 (weight-tied networks) and the remark that any
computation graph is one equilibrium layer; Banach's fixed-point theorem for contractions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from theodolite.errors import OutsideDomain
from theodolite.theory.domain import whole


def tied_size(widths: Sequence[int]) -> int:
    """Hidden units of the weight-tied network that equals one of these layer outputs: their sum (Theorem 3)."""
    for width in widths:
        whole("width", width)
    return sum(widths)


def equilibrium_steps(depth: int) -> int:
    """Steps until every intermediate value stands, from any start: the Jacobian in z is nilpotent of this order, so
    its spectral radius is 0 and the fixed point is reached exactly."""
    return whole("depth", depth)


def contraction_steps(factor: float, first_change: float, tolerance: float) -> int:
    """Banach: with ‖f(z) − f(z′)‖ ≤ q·‖z − z′‖, q < 1, ‖z_k − z*‖ ≤ q^k·‖z_1 − z_0‖/(1 − q); the k that is enough."""
    if not 0 < factor < 1:
        raise OutsideDomain(f"a contraction has a factor between 0 and 1, not {factor}")
    if first_change <= 0 or tolerance <= 0:
        raise OutsideDomain(f"changes and tolerances are above 0, not {first_change} and {tolerance}")
    return max(0, math.ceil(math.log(tolerance * (1 - factor) / first_change) / math.log(factor)))


def logistic_lyapunov() -> float:
    """Of z ↦ 4z(1 − z), conjugate to the tent map of slope 2: ln 2."""
    return math.log(2)
