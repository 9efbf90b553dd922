"""How far a matrix of values is from every matrix of rank r: in the mean (d₁), mean square (d₂) and maximum (d∞).

For d₂ the distance is known (Eckart–Young). For d₁ and d∞ it is hard to compute, and is enclosed. The upper end is the
error of a matrix of rank r that was found. The lower end holds for every matrix of rank r:

- Let B be a square piece of M with r + 1 rows, and B − E singular. From B·x = E·x, x = B⁻¹·E·x ≠ 0 it follows that
  Σ|E_ij| ≥ 1/max|B⁻¹_ij| and max|E_ij| ≥ 1/Σ|B⁻¹_ij|. Both hold inside every piece, so sums of the first over disjoint
  pieces bound the whole sum, and the best second bounds the maximum.
- A piece of any size has Σ|E_ij| ≥ ‖E‖_* ≥ Σ_{k>r} σ_k, because the entries of a contraction are at most 1.
- A maximum is no smaller than any weighted root mean square, whose distance is again Eckart and Young's.

Pieces keep their bound while the matrix grows, where the nuclear norm of the whole, divided by its size, falls to 0.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from theodolite.errors import BadInput

Distance = Literal["d1", "d2", "sup"]
DISTANCES: tuple[Distance, ...] = ("d1", "d2", "sup")

_PIECES = (2, 3, 4, 6, 8, 12, 16, 32)  # rows of the pieces that are tried
_CUT = 128  # rows and columns of a sample that are cut into pieces: a sample of a sample is one too
_STEPS = 30


def size(matrix: Tensor, distance: Distance) -> float:
    """The distance from 0."""
    if distance == "d1":
        return float(matrix.abs().mean())
    if distance == "d2":
        return float(matrix.square().mean().sqrt())
    if distance == "sup":
        return float(matrix.abs().max())
    raise BadInput(f"the distance '{distance}' is unknown: use {', '.join(DISTANCES)}")


def least_rank(matrix: Tensor, epsilon: float, distance: Distance = "d2") -> tuple[int, int]:
    """The least rank within `epsilon` (absolute) of a matrix: no smaller than the first number, no larger than the
    second."""
    lower = rank_floor(matrix, distance)
    low = int((lower > epsilon * (1 + 1e-12)).sum())
    if distance == "d2":
        return low, low
    short, high = low - 1, min(matrix.shape)
    while high - short > 1:  # every rank that is kept was found to be enough, so the answer is a bound in any case
        middle = (short + high) // 2
        enough = size(matrix - nearest(matrix, middle, distance), distance) <= epsilon
        short, high = (short, middle) if enough else (middle, high)
    return low, high


def rank_floor(matrix: Tensor, distance: Distance = "d2") -> Tensor:
    """For r = 0, 1, …, min(shape): no matrix of rank r is nearer than this (for d₂: the nearest is exactly there)."""
    size(matrix, distance)  # refuses an unknown distance
    sigma = torch.linalg.svdvals(matrix)
    entries = matrix.numel()
    if distance == "d1":
        whole = torch.cat([_from_the_end(sigma), sigma.new_zeros(1)]) / entries
        pieces = mean_floor(matrix)
        whole[: len(pieces)] = torch.maximum(whole[: len(pieces)], pieces)
        whole[0] = matrix.abs().mean()
        return _never_rising(whole)
    tail = (torch.cat([_from_the_end(sigma.square()), sigma.new_zeros(1)]) / entries).clamp_min(0).sqrt()
    if distance == "d2":
        return tail
    tail = torch.maximum(tail, _weighted_tail(matrix))
    tail[0] = matrix.abs().max()
    for m in range(2, min(*matrix.shape, max(_PIECES)) + 1):
        tail[m - 1] = torch.maximum(tail[m - 1], _sup_floor(matrix, m))
    return _never_rising(tail)


def mean_floor(matrix: Tensor) -> Tensor:
    """For r = 0, 1, …: a mean |E_ij| that no approximation of rank r undercuts, from disjoint pieces of several sizes.

    Any way to cut holds. Rows and columns far apart in a singular vector make the pieces hard to approximate.
    """
    cut = matrix[:_CUT, :_CUT]
    u, _, vt = torch.linalg.svd(cut, full_matrices=False)
    limit = min(cut.shape)
    floor = cut.new_zeros(min(limit, max(_PIECES)))
    for order in range(min(2, limit)):
        sorted_cut = cut[u[:, order].argsort()][:, vt[order].argsort()]
        for m in (m for m in _PIECES if m <= limit):
            high, wide = cut.shape[0] // m, cut.shape[1] // m
            pieces = sorted_cut[: high * m, : wide * m].reshape(m, high, m, wide).permute(1, 3, 0, 2)
            pieces = pieces.reshape(-1, m, m)
            sums = _from_the_end(torch.linalg.svdvals(pieces)).sum(0)
            sums[m - 1] = _to_singular(pieces).sum()
            floor[:m] = torch.maximum(floor[:m], sums / cut.numel())  # what lies outside the pieces counts as 0
    return _never_rising(floor)


def nearest(matrix: Tensor, rank: int, distance: Distance = "d2") -> Tensor:
    """A matrix of that rank: the nearest under d₂, a near one under d₁ and d∞ (by alternating projections)."""
    best = _truncated(matrix, rank)
    if distance == "d2" or rank == 0:
        return best
    error = size(matrix - best, distance)
    start = best
    for shrink in (0.9, 0.7, 0.5):
        if distance == "d1":  # a spike that the truncation has taken in would never be seen as one
            limit = float(torch.quantile(matrix.abs().flatten(), shrink))
            start = _truncated(matrix.clamp(-limit, limit), rank)
        found = start
        for _ in range(_STEPS):
            rest = matrix - found
            if distance == "sup":  # the matrices within `radius` of M, then those of rank r
                radius = shrink * error
                found = _truncated(matrix - rest.clamp(-radius, radius), rank)
            else:  # what is far off counts as a spike and is left out; the scale falls to that of the rest
                scale = torch.quantile(rest.abs().flatten(), shrink)
                found = _truncated(torch.where(rest.abs() > scale, found, matrix), rank)
            now = size(matrix - found, distance)
            if now < error:
                best, error = found, now
    return best


def _truncated(matrix: Tensor, rank: int) -> Tensor:
    u, sigma, vt = torch.linalg.svd(matrix, full_matrices=False)
    return (u[:, :rank] * sigma[:rank]) @ vt[:rank]


def _from_the_end(values: Tensor) -> Tensor:
    """Σ_{k ≥ r} of the last axis."""
    return values.flip(-1).cumsum(-1).flip(-1)


def _never_rising(floor: Tensor) -> Tensor:
    """What holds for a larger rank holds for a smaller one."""
    return floor.flip(0).cummax(0).values.flip(0)


def _to_singular(pieces: Tensor) -> Tensor:
    """The least Σ|E_ij| that makes each piece singular, 1/max|B⁻¹|; 0 where it is singular already."""
    inverse, failed = torch.linalg.inv_ex(pieces)
    return torch.where(failed == 0, 1 / inverse.abs().amax((-1, -2)), 0).nan_to_num(0.0, 0.0, 0.0)


def _sup_floor(matrix: Tensor, m: int) -> Tensor:
    """1/Σ|B⁻¹| for the piece of m rows and columns that pivoting picks."""
    rows, columns = _pivots(matrix, m)
    inverse, failed = torch.linalg.inv_ex(matrix[rows][:, columns])
    return torch.where(failed == 0, 1 / inverse.abs().sum(), 0).nan_to_num(0.0, 0.0, 0.0)


def _pivots(matrix: Tensor, count: int) -> tuple[list[int], list[int]]:
    """Rows and columns of complete pivoting: their piece has a large determinant."""
    rest, rows, columns = matrix.clone(), [], []
    for _ in range(count):
        row, column = divmod(int(rest.abs().argmax()), rest.shape[1])
        rows.append(row)
        columns.append(column)
        pivot = rest[row, column]
        if pivot == 0:
            break
        rest = rest - rest[:, column : column + 1] * rest[row : row + 1] / pivot
    return rows, columns


def _weighted_tail(matrix: Tensor) -> Tensor:
    """Eckart–Young under weights that fall on rows and columns where rank is hard to save: their squared leverage."""
    u, _, vt = torch.linalg.svd(matrix, full_matrices=False)
    half = max(1, int((u.shape[1] + 1) // 2))
    best = matrix.new_zeros(min(matrix.shape) + 1)
    for k in sorted({1, 2, 4, 8, half}):
        if k > half:
            continue
        p, q = u[:, :k].square().sum(1) / k, vt[:k].square().sum(0) / k
        p, q = (p + 1 / len(p)) / 2, (q + 1 / len(q)) / 2
        sigma = torch.linalg.svdvals(p.sqrt()[:, None] * matrix * q.sqrt())
        tail = torch.cat([_from_the_end(sigma.square()), sigma.new_zeros(1)]).clamp_min(0).sqrt()
        best = torch.maximum(best, tail)
    return best
