"""Is the matrix of attention scores, X W_Q W_Kᵀ Xᵀ, near an isometry of sparse vectors? Its restricted isometry
constant.

For up to three columns at a time every support is tried and the constant is exact. Beyond that an interval is given:
its lower end is the worst support that a greedy search from many starts has found (supports that were not tried can
only be worse), its upper end follows from Gershgorin's circles and from the exact constants of orders 1 and 3.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from theodolite.errors import BadInput

EXHAUSTIVE = 3  # the largest order at which all supports are tried
_STARTS = 64


@dataclass(frozen=True)
class Constant:
    """The restricted isometry constant of an order after best scaling lies in [low, high]; exact where they are one."""

    order: int
    low: float
    high: float

    @property
    def exact(self) -> bool:
        return self.order <= EXHAUSTIVE


def restricted_isometry(
    matrix: Float[Tensor, "row column"], order: int, generator: torch.Generator, starts: int = _STARTS
) -> Constant:
    """δ of that order; the generator draws the starts of the search above order 3."""
    columns = matrix.shape[-1]
    if not 1 <= order <= columns:
        raise BadInput(f"order {order} is none of this matrix: choose 1 to {columns}, the number of its columns")
    gram = (matrix.T @ matrix).double()
    if order <= EXHAUSTIVE:
        low, high = (float(x) for x in extremes(gram, order))
        return Constant(order, _ratio(low, high), _ratio(low, high))
    smallest, largest = _worst(gram, order, generator, starts)
    return Constant(order, _ratio(smallest, largest), _upper(gram, order))


def extremes(gram: Float[Tensor, "column column"], order: int) -> tuple[Tensor, Tensor]:
    """The smallest and the largest eigenvalue of any principal block of that order; differentiable."""
    values = torch.linalg.eigvalsh(blocks(gram, supports(gram.shape[-1], order, gram.device)))
    return values[:, 0].min(), values[:, -1].max()


def supports(columns: int, order: int, device: torch.device) -> Tensor:
    """All of them, one a row."""
    return torch.tensor(list(itertools.combinations(range(columns), order)), device=device)


def blocks(gram: Float[Tensor, "column column"], chosen: Tensor) -> Tensor:
    return gram[chosen[..., :, None], chosen[..., None, :]]


def _ratio(smallest: float, largest: float) -> float:
    smallest = max(smallest, 0.0)  # a block is positive semidefinite; rounding may say otherwise
    return (largest - smallest) / (largest + smallest) if largest > 0 else 1.0


def _worst(gram: Tensor, order: int, generator: torch.Generator, starts: int) -> tuple[float, float]:
    """Supports grown column by column and then changed one column at a time, for either end of the spectrum."""
    columns = gram.shape[-1]
    found = []
    for sign in (1.0, -1.0):  # the smallest eigenvalue of ±G
        signed = sign * gram
        first = torch.argsort(torch.rand(starts, columns, generator=generator, device=gram.device), dim=1)[:, :1]
        chosen = first
        while chosen.shape[1] < order:
            chosen = _best(signed, chosen, columns)
        for place in list(range(order)) * 2:
            kept = torch.cat((chosen[:, :place], chosen[:, place + 1 :]), dim=1)
            chosen = _best(signed, kept, columns)
        found.append(sign * float(torch.linalg.eigvalsh(blocks(signed, chosen))[:, 0].min()))
    return found[0], found[1]


def _best(gram: Tensor, chosen: Tensor, columns: int) -> Tensor:
    """Every support with the one column more that makes its smallest eigenvalue smallest."""
    others = torch.arange(columns, device=gram.device).expand(len(chosen), columns)
    grown = torch.cat((chosen[:, None].expand(-1, columns, -1), others[..., None]), dim=-1)
    values = torch.linalg.eigvalsh(blocks(gram, grown))[..., 0]
    taken = (chosen[:, :, None] == others[:, None]).any(dim=1)
    place = values.masked_fill(taken, torch.inf).argmin(dim=1, keepdim=True)
    return torch.cat((chosen, place), dim=1)


def _upper(gram: Tensor, order: int) -> float:
    """The better of two bounds.

    Gershgorin: every eigenvalue of a block lies within a circle around a diagonal entry, whose radius is at most the
    sum of the order − 1 largest entries beside it. And with k = 3: a block less I is a weighted sum of its k × k blocks
    less I, so δ_s ≤ (s − 1)/(k − 1) · δ_k + (s − k)/(k − 1) · δ₁, all at the scale that is best for δ_k.
    """
    beside = (gram - torch.diag(gram.diagonal())).abs().sort(dim=1, descending=True).values
    radius, centre = beside[:, : order - 1].sum(dim=1), gram.diagonal()
    circles = _ratio(float((centre - radius).min()), float((centre + radius).max()))
    low, high = (float(x) for x in extremes(gram, EXHAUSTIVE))
    scale = 2 / (low + high)
    lengths = float((scale * centre - 1).abs().max())
    k = EXHAUSTIVE
    joined = (order - 1) / (k - 1) * _ratio(low, high) + (order - k) / (k - 1) * lengths
    return min(circles, joined, 1.0)
