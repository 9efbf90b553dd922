"""Levenberg–Marquardt for many small networks at once, the strength of ℓ₂ set by the evidence (MacKay 1992).

Minimises Σ w r² + ρ ‖θ‖² over a network's parameters θ, with r the residuals and w the weights of the rows (0: held
out). Each step solves (JᵀWJ + (ρ + μ) I) δ = −(JᵀWr + ρ θ); the damping μ shrinks while steps succeed. Networks of a
graph are small, a few hundred parameters, which is where this reaches errors of 1e-8 that first-order methods do not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from scipy.linalg.lapack import dtrtri  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from torch import Tensor

from theodolite.structure.fit.jacobian import by_hand, jacobian, values
from theodolite.structure.fit.side_by_side import shares, side_by_side, threads
from theodolite.training.stacked import Stacked

TRIES = 4  # dampings tried with one Jacobian before a new one is made
LEAST_DAMPING, MOST_DAMPING = 1e-12, 1e10
FIRST_LOOK, EVERY, SELDOM = 4, 2, 8  # steps to looks at the evidence, each of which costs as much as a step;
SETTLED = 1.25  # they become rarer while ρ does not change by more than this factor
FIRST_PENALTY, LEAST_PENALTY = 1e-2, 1e-9  # ρ; the evidence drives it to 0 where there is no noise,
FARTHEST = 10.0  # by at most this factor at a look


@dataclass(frozen=True)
class Minimum:
    """Where every member came to: its parameters, the mean square of its residuals on its own and on held-out rows."""

    members: Float[Tensor, "member parameter"]
    trained: Float[Tensor, " member"]
    held_out: Float[Tensor, " member"]
    steps: int


def least_squares(
    net: Stacked,
    members: Float[Tensor, "member parameter"],
    rows: Float[Tensor, "row feature"] | Float[Tensor, "member row feature"],
    targets: Float[Tensor, " row"] | Float[Tensor, "member row"],
    weights: Float[Tensor, "member row"],
    *,
    penalty: float | None = None,
    warm: bool = False,
    steps: int = 100,
    patience: int = 8,
    tolerance: float = 1e-4,
    until: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Minimum:
    """`weights` are 1 on the rows a member learns from and 0 on those held out; the parameters kept are the best on the
    held-out rows (the last where none are). `penalty` None: the evidence sets ρ, from the first step on where members
    are `warm`, near a minimum, which a larger ρ would take them away from. A member stops once it has not
    improved by `tolerance`, relatively, for `patience` steps; all do at the time `until` (of `time.monotonic`).
    Members know nothing of each other: threads share them out.
    """

    def share(part: slice) -> Minimum:
        own_rows = rows if rows.ndim == 2 else rows[part]
        own_targets = targets if targets.ndim == 1 else targets[part]
        tell = progress if part.start == 0 else None
        limits = (penalty, warm, steps, patience, tolerance, until)
        return _least_squares(net, members[part], own_rows, own_targets, weights[part], *limits, tell)

    if not by_hand(net.module):  # torch's transforms make its Jacobian, and only in the thread that they began in
        return share(slice(0, len(members)))
    found = side_by_side(share, shares(len(members), threads()))
    if len(found) == 1:
        return found[0]
    both = lambda name: torch.cat([getattr(part, name) for part in found])
    return Minimum(both("members"), both("trained"), both("held_out"), max(part.steps for part in found))


def _least_squares(
    net: Stacked,
    members: Tensor,
    rows: Tensor,
    targets: Tensor,
    weights: Tensor,
    penalty: float | None,
    warm: bool,
    steps: int,
    patience: int,
    tolerance: float,
    until: float | None,
    progress: Callable[[int, int], None] | None,
) -> Minimum:
    held = 1 - weights
    blind = held.sum(1) == 0  # nothing held out: the last parameters are kept
    judged = torch.where(blind[:, None], weights, held)
    going = torch.arange(len(members))  # those that have not stopped, whose figures alone are below
    best, w, scored = members.clone(), weights, judged
    own_x = lambda: rows if rows.ndim == 2 else rows[going]
    own_y = lambda: targets if targets.ndim == 1 else targets[going]

    state, count = members.clone(), weights.sum(1)
    residuals = values(net, state, rows) - targets
    damping, since = torch.ones_like(count), torch.zeros_like(count)
    rho = torch.full_like(count, FIRST_PENALTY if penalty is None else penalty)
    lowest = (scored * residuals**2).sum(1) / scored.sum(1)
    learnt = weights.argsort(dim=1, descending=True, stable=True)[:, : int(count.max())]
    taught = rows[learnt] if rows.ndim == 2 else rows.gather(1, learnt[:, :, None].expand(-1, -1, rows.shape[2]))
    step, table = 0, None
    due, every = (torch.full_like(going, first) for first in (1 if warm else FIRST_LOOK, EVERY))

    for step in range(1, steps + 1):
        table = jacobian(net, state, taught, table)
        normal = _Normal(table, residuals.gather(1, learnt), w.gather(1, learnt))
        looked = (due == step).nonzero()[:, 0]
        if penalty is None and len(looked):
            missed = (w * residuals**2).sum(1)
            told = (rho[looked], missed[looked], (state**2).sum(1)[looked], count[looked], looked)
            found = _evidence(normal, *told, most=math.inf if step == 1 else FARTHEST)
            settled = (found / rho[looked]).log().abs() < math.log(SETTLED)
            rho[looked] = found
            every[looked] = torch.where(settled, (2 * every[looked]).clamp(max=SELDOM), EVERY)
            due[looked] = step + every[looked]
        loss = (w * residuals**2).sum(1) + rho * (state**2).sum(1)
        left = torch.arange(len(state))  # the members that no damping has helped yet
        x, y = own_x(), own_y()
        for _ in range(TRIES):
            change = normal.solve(rho[left] + damping[left], rho[left, None] * state[left], left)
            tried = state[left] + change
            missed = values(net, tried, x if x.ndim == 2 else x[left]) - (y if y.ndim == 1 else y[left])
            value = (w[left] * missed**2).sum(1) + rho[left] * (tried**2).sum(1)
            better = value < loss[left]
            helped = left[better]
            state[helped], residuals[helped] = tried[better], missed[better]
            damping[left] = (damping[left] * torch.where(better, 0.2, 4.0)).clamp(LEAST_DAMPING, MOST_DAMPING)
            left = left[~better]
            if not len(left):
                break
        score = (scored * residuals**2).sum(1) / scored.sum(1)
        since = torch.where(score < lowest * (1 - tolerance), 0, since + 1)
        best[going] = torch.where((blind[going] | (score < lowest))[:, None], state, best[going])
        lowest = torch.minimum(score, lowest)
        if progress is not None:
            progress(step, steps)
        on = since < patience
        if not bool(on.any()) or (until is not None and time.monotonic() > until):
            break
        if not bool(on.all()):
            going, state, residuals, count, damping, since, due, every = (
                t[on] for t in (going, state, residuals, count, damping, since, due, every)
            )
            rho, lowest, learnt, taught, w, scored = (t[on] for t in (rho, lowest, learnt, taught, w, scored))
            table = table[: len(going)]
    last = values(net, best, rows) - targets
    mean = lambda w: (w * last**2).sum(1) / w.sum(1).clamp(min=1)
    return Minimum(best, mean(weights), mean(judged), step)


class _Normal:
    """JᵀWJ and JᵀWr, or WJJᵀW where there are fewer rows than parameters: the smaller system is solved."""

    def __init__(self, jacobian: Tensor, residuals: Tensor, weights: Tensor) -> None:
        self.jacobian = jacobian.mul_(weights[:, :, None])  # weights are 0 and 1, so W = W²
        self.gradient = torch.einsum("mnp,mn->mp", self.jacobian, residuals)
        self.parameters = jacobian.shape[2]
        self.dual = jacobian.shape[1] < self.parameters
        self.gram = _gram(self.jacobian if self.dual else self.jacobian.mT)

    def factor(self, shift: Tensor, of: Tensor | None = None) -> Tensor:
        shifted = self.gram.clone() if of is None else self.gram[of]
        shifted.diagonal(dim1=1, dim2=2).add_(shift[:, None])
        factor = _cholesky(shifted)
        if factor is None:  # rounding made it singular: a little more on the diagonal
            scale = 1e-12 * shifted.diagonal(dim1=1, dim2=2).amax(1).clamp(min=1e-300)
            shifted.diagonal(dim1=1, dim2=2).add_(scale[:, None])
            factor, _ = torch.linalg.cholesky_ex(shifted)
        return factor

    def solve(self, shift: Tensor, pull: Tensor, of: Tensor | None = None) -> Tensor:
        """−(JᵀWJ + shift·I)⁻¹ (JᵀWr + pull), of these members alone where they are given."""
        own = lambda every: every if of is None or len(of) == len(every) else every[of]
        g = (own(self.gradient) + pull)[:, :, None]
        factor = self.factor(shift, of)
        if not self.dual:
            return -torch.cholesky_solve(g, factor)[:, :, 0]
        slopes = own(self.jacobian)
        inner = torch.cholesky_solve(slopes @ g, factor)
        return -((g - slopes.transpose(1, 2) @ inner) / shift[:, None, None])[:, :, 0]

    def trace_of_inverse(self, shift: Tensor, of: Tensor | None = None) -> Tensor:
        trace = _trace_of_inverse(self.factor(shift, of))
        return trace + (self.parameters - self.gram.shape[1]) / shift if self.dual else trace


def _gram(several: Float[Tensor, "member row column"]) -> Float[Tensor, "member row row"]:
    """A Aᵀ of every member. On a CPU NumPy sees that both factors are one, and does half the work."""
    if several.device.type != "cpu":
        return several @ several.mT
    return torch.from_numpy(np.stack([one @ one.T for one in several.detach().numpy()]))


def _cholesky(several: Tensor) -> Tensor | None:
    """None where one of them is not positive. On a CPU by NumPy, which takes four fifths of the time of torch."""
    if several.device.type != "cpu":
        factor, failed = torch.linalg.cholesky_ex(several)
        return None if bool(failed.any()) else factor
    try:
        return torch.from_numpy(np.linalg.cholesky(several.numpy()))
    except np.linalg.LinAlgError:
        return None


def _trace_of_inverse(factors: Tensor) -> Tensor:
    """tr (L Lᵀ)⁻¹ = ‖L⁻¹‖², for which the inverse itself is not needed."""
    if factors.device.type != "cpu":
        return torch.cholesky_inverse(factors).diagonal(dim1=1, dim2=2).sum(1)
    inverses = (dtrtri(factor.numpy().T, lower=0)[0] for factor in factors)
    return factors.new_tensor([float(np.square(inverse).sum()) for inverse in inverses])


def _evidence(
    normal: _Normal, rho: Tensor, errors: Tensor, size: Tensor, count: Tensor, of: Tensor, most: float
) -> Tensor:
    """ρ = α/β with γ = P − ρ tr(JᵀWJ + ρ)⁻¹ parameters that the data determine, α = γ/‖θ‖², β = (n − γ)/Σ w r², for
    these members; at most so many times what it was, or less."""
    determined = (normal.parameters - rho * normal.trace_of_inverse(rho, of)).clamp(min=1e-3)
    determined = torch.minimum(determined, 0.9 * count)
    found = determined / size * errors / (count - determined)
    return torch.minimum(torch.maximum(found, rho / most), rho * most).clamp(min=LEAST_PENALTY)
