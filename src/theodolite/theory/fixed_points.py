"""What iterating z ↦ f(z, x) does, and how large a feed-forward network becomes when it is written as one such map.

Sources: Bai, Kolter & Koltun 2019, "Deep equilibrium models", Theorem 3 (weight-tied networks) and the remark that any
computation graph is one equilibrium layer; Banach's fixed-point theorem for contractions.
"""

from __future__ import annotations

from collections.abc import Sequence

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
