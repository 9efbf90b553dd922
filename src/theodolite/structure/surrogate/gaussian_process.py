"""Gaussian processes as an ensemble's members: where rows are few they predict better than networks, and sooner.

The covariance is a² k(r) + b² [x = x'] with r² = Σ ((x_i − x'_i)/ℓ_i)² and k Gaussian or Matérn 5/2; the lengths ℓ, a
and b maximise the evidence log p(y), and of the two k the one with more evidence is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from theodolite.training.loop import Best, train
from theodolite.training.optimiser import Rates, Rule

Covariance = Literal["gaussian", "matern"]
LEARNT_FROM = 300  # rows that lengths and noise are chosen by; all rows make the prediction
STEPS, RATE = 60, 0.1
RULE = Rule(betas=(0.9, 0.9), clip=None)  # one memory for slopes and their squares
LEAST_NOISE = 1e-8
LOUD, QUIET = -0.7, -3.0  # log b to start from: to tell the noise, and to predict
ENTRIES = 1 << 18  # of a covariance matrix made at once: what a processor keeps at hand, which is several times faster


@dataclass(frozen=True)
class Processes:
    """Member m predicts Σ_r weight_mr · a² k(x, x_mr) from its own rows (member, row, variable), in units of ℓ."""

    kind: Covariance
    lengths: Float[Tensor, " variable"]
    rows: Float[Tensor, "member row variable"]
    weights: Float[Tensor, "member row"]

    @property
    def members(self) -> int:
        return len(self.rows)

    @property
    def chunk(self) -> int:
        return max(1, ENTRIES // (self.rows.shape[0] * self.rows.shape[1]))

    def outputs(self, rows: Float[Tensor, "member row variable"]) -> Float[Tensor, "member row"]:
        rows = rows.double() / self.lengths
        return torch.einsum("mpr,mr->mp", _covariance(self.kind, rows, self.rows), self.weights)

    def everywhere(self, rows: Float[Tensor, "row variable"]) -> Float[Tensor, "member row"]:
        return self.outputs(rows.expand(self.members, *rows.shape))

    def only(self, chosen: Sequence[int]) -> Processes:
        return Processes(self.kind, self.lengths, self.rows[list(chosen)], self.weights[list(chosen)])

    def double(self) -> Processes:
        return self


def fit_processes(
    rows: Float[Tensor, "row variable"],
    targets: Float[Tensor, " row"],
    folds: Int[Tensor, " row"],
    generator: torch.Generator,
) -> Processes:
    """Member m predicts from the rows outside fold m."""
    rows, targets = rows.double(), targets.double()
    few = torch.randperm(len(rows), generator=generator)[:LEARNT_FROM]
    learnt = [_learn(kind, rows[few], targets[few]) for kind in ("gaussian", "matern")]
    _, kind, setting = max(learnt, key=lambda found: found[0])
    lengths, height, noise = _read(setting)
    members = int(folds.max()) + 1
    held = [torch.nonzero(folds != member)[:, 0] for member in range(members)]
    shortest = min(len(own) for own in held)
    scaled = torch.stack([rows[own[:shortest]] for own in held]) / lengths
    answers = torch.stack([targets[own[:shortest]] for own in held])
    factor = _factor(_matrix(kind, scaled, height, noise))
    weights = torch.cholesky_solve(answers[..., None], factor)[..., 0]
    return Processes(kind, lengths, scaled, weights * height)


def noise_share(x: NDArray[np.float64], y: NDArray[np.float64], generator: np.random.Generator) -> float:
    """The share of the variance of y that a process of the more evident covariance takes for noise."""
    few = generator.permutation(len(y))[:LEARNT_FROM]
    rows, targets = x[few], y[few]
    spread = rows.std(0)
    rows = torch.from_numpy((rows - rows.mean(0)) / np.where(spread > 0, spread, 1.0))
    targets = torch.from_numpy((targets - y.mean()) / y.std())
    learnt = [_learn(kind, rows, targets, LOUD) for kind in ("gaussian", "matern")]
    _, _, setting = max(learnt, key=lambda found: found[0])
    return min(1.0, float(_read(setting)[2]))


def _learn(kind: Covariance, rows: Tensor, targets: Tensor, noise: float = QUIET) -> tuple[float, Covariance, Tensor]:
    """The greatest evidence that Adam finds over (log ℓ, log a, log b) from log b = `noise`, and where."""
    variables = rows.shape[1]
    first = [0.5 * math.log(variables)] * variables + [0.0, noise]
    start = {"setting": torch.tensor([first], dtype=torch.float64)}
    best = Best(start)

    def loss(weights: Mapping[str, Tensor], _: tuple[Tensor, ...]) -> Tensor:
        lengths, height, square = _read(weights["setting"][0])
        missing = -evidence(_matrix(kind, rows / lengths, height, square), targets)[None]
        best.offer(dict(weights), missing.detach())
        return missing

    train(start, loss, steps=STEPS, rule=RULE, rates=Rates(RATE))
    return -float(best.score), kind, best.weights["setting"][0]


class _Evidence(torch.autograd.Function):
    """log p(y) of a covariance K, but for a constant. ∂/∂K = ½ (K⁻¹ y yᵀ K⁻¹ − K⁻¹) and ∂/∂y = −K⁻¹ y spare the way
    back through the factor."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, targets: Tensor) -> Tensor:
        factor = _factor(matrix)
        solved = torch.cholesky_solve(targets[..., None], factor)
        ctx.save_for_backward(factor, solved)
        return -0.5 * (targets * solved[..., 0]).sum(-1) - factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, Tensor]:
        factor, solved = ctx.saved_tensors
        by_matrix = 0.5 * (solved @ solved.mT - torch.cholesky_inverse(factor))
        return slopes[0][..., None, None] * by_matrix, -slopes[0][..., None] * solved[..., 0]


def evidence(matrix: Float[Tensor, "*member row row"], targets: Float[Tensor, "*member row"]) -> Tensor:
    return _Evidence.apply(matrix, targets)  # pyright: ignore[reportReturnType]


def _read(setting: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """ℓ, a² and b²."""
    return setting[:-2].exp(), (2 * setting[-2]).exp(), (2 * setting[-1]).exp() + LEAST_NOISE


def _matrix(kind: Covariance, scaled: Tensor, height: Tensor, noise: Tensor) -> Tensor:
    return height * _covariance(kind, scaled, scaled) + noise * torch.eye(scaled.shape[-2], dtype=scaled.dtype)


def _factor(matrix: Tensor) -> Tensor:
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if bool(failed.any()):  # rounding made it singular
        more = 1e-6 * matrix.diagonal(dim1=-2, dim2=-1).amax()
        factor = torch.linalg.cholesky(matrix + more * torch.eye(matrix.shape[-1], dtype=matrix.dtype))
    return factor


def _covariance(kind: Covariance, a: Tensor, b: Tensor) -> Tensor:
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
        square = ((a**2).sum(-1)[..., :, None] + (b**2).sum(-1)[..., None, :] - 2 * a @ b.mT).clamp(min=0)
        if kind == "gaussian":
            return torch.exp(-0.5 * square)
        distance = (5 * square + 1e-12).sqrt()  # keeps the slope finite at 0
        return (1 + distance + distance**2 / 3) * torch.exp(-distance)
    square = (a @ b.mT).mul_(-2).add_((a**2).sum(-1)[..., :, None]).add_((b**2).sum(-1)[..., None, :]).clamp_(min=0)
    if kind == "gaussian":
        return square.mul_(-0.5).exp_()
    distance = square.mul_(5).add_(1e-12).sqrt_()
    return torch.addcmul(1 + distance, distance, distance, value=1 / 3).mul_(distance.neg_().exp_())
