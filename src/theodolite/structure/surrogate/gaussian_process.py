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
KINDS: tuple[Covariance, ...] = ("gaussian", "matern")
LEARNT_FROM = 300  # rows that lengths are chosen by; all rows make the prediction
ROWS, BEGIN_ROWS = 600, 300  # that `most_evident` learns from, and begins with
STEPS, RATE = 60, 0.1
GOES_ON = 25  # steps from what fewer rows show
RULE = Rule(betas=(0.9, 0.9), clip=None)  # one memory for slopes and their squares
LEAST_NOISE = 1e-8
QUIET = -3.0  # log b to start from, to predict
TINY = 1e-12  # added to a square whose root is taken
ENTRIES = 1 << 18  # of a covariance matrix made at once: what a processor keeps at hand, which is several times faster


@dataclass(frozen=True)
class Processes:
    """Member m predicts Σ_r weight_mr k(x, x_r) from rows that all have in common, in units of ℓ; its weights of those
    that it has not seen are 0."""

    kind: Covariance
    lengths: Float[Tensor, " variable"]
    rows: Float[Tensor, "row variable"]
    weights: Float[Tensor, "member row"]

    @property
    def members(self) -> int:
        return len(self.weights)

    @property
    def chunk(self) -> int:
        return max(1, ENTRIES // len(self.rows))

    def everywhere(self, rows: Float[Tensor, "row variable"]) -> Float[Tensor, "member row"]:
        near = covariance(self.kind, rows.double() / self.lengths, self.rows)
        return self.weights @ near.mT

    def slopes(self, rows: Float[Tensor, "row variable"]) -> Float[Tensor, "member row variable"]:
        """Of k(u, v) the slope by u is −(u − v) times a function of the distance, so that one matrix of these serves
        all members and variables: Σ_r w_mr s_pr (v_r − u_p)."""
        here = rows.double() / self.lengths
        steep = _steepness(self.kind, here, self.rows)
        weighted = torch.cat([self.weights[:, :, None], self.weights[:, :, None] * self.rows], dim=2)
        sums = torch.einsum("pr,mrv->mpv", steep, weighted)
        return (sums[:, :, 1:] - sums[:, :, :1] * here) / self.lengths

    def only(self, chosen: Sequence[int]) -> Processes:
        weights = self.weights[list(chosen)]
        seen = (weights != 0).any(0)
        return Processes(self.kind, self.lengths, self.rows[seen], weights[:, seen])


def fit_processes(
    rows: Float[Tensor, "row variable"],
    targets: Float[Tensor, " row"],
    folds: Int[Tensor, " row"],
    generator: torch.Generator,
) -> Processes:
    """Member m predicts from the rows outside fold m."""
    rows, targets = rows.double(), targets.double()
    few = torch.randperm(len(rows), generator=generator)[:LEARNT_FROM]
    best = max((learn(kind, rows[few], targets[few]) for kind in KINDS), key=lambda found: found.evidence)
    kind, (lengths, height, noise) = best.kind, best.read()
    members = int(folds.max()) + 1
    held = [torch.nonzero(folds != member)[:, 0] for member in range(members)]
    shortest = min(len(own) for own in held)
    seen = torch.stack([own[:shortest] for own in held])
    scaled = rows / lengths
    near = covariance_matrix(kind, scaled, height, noise)
    factor = factor_of(near[seen[:, :, None], seen[:, None, :]])
    solved = torch.cholesky_solve(targets[seen][..., None], factor)[..., 0]
    weights = torch.zeros(members, len(rows), dtype=torch.float64).scatter_(1, seen, solved * height)
    return Processes(kind, lengths, scaled, weights)


@dataclass(frozen=True)
class Learnt:
    """A covariance and its setting (log ℓ, log a, log b) of the greatest log evidence that was found, but for a
    constant."""

    kind: Covariance
    setting: Float[Tensor, " number"]
    evidence: float

    @property
    def noise(self) -> float:
        """b²."""
        return float(self.read()[2])

    def read(self) -> tuple[Tensor, Tensor, Tensor]:
        """ℓ, a² and b²."""
        return _read(self.setting)


def learn(
    kind: Covariance,
    rows: Float[Tensor, "row variable"],
    targets: Float[Tensor, " row"],
    start: Float[Tensor, " number"] | float = QUIET,
    *,
    steps: int = STEPS,
    noise_given: bool = False,
) -> Learnt:
    """By Adam, from a setting or a log b to start from, which it leaves where the noise is given."""
    if not isinstance(start, Tensor):
        variables = rows.shape[1]
        start = torch.tensor([0.5 * math.log(variables)] * variables + [0.0, start], dtype=torch.float64)
    free, given = (start[:-1], start[-1:]) if noise_given else (start, start[:0])
    weights = {"setting": free[None]}
    best = Best(weights)

    def loss(weights: Mapping[str, Tensor], _: tuple[Tensor, ...]) -> Tensor:
        lengths, height, square = _read(torch.cat([weights["setting"][0], given]))
        missing = -evidence(covariance_matrix(kind, rows / lengths, height, square), targets)[None]
        best.offer(dict(weights), missing.detach())
        return missing

    train(weights, loss, steps=steps, rule=RULE, rates=Rates(RATE))
    return Learnt(kind, torch.cat([best.weights["setting"][0], given]), -float(best.score))


def most_evident(
    rows: Tensor, targets: Tensor, start: float, kinds: Sequence[Covariance] = KINDS, go_on: int = len(KINDS)
) -> Learnt:
    """By the first rows, the covariance of more evidence, of as many as go on from what fewer rows show; rows are in
    any order."""
    learnt = [learn(kind, rows[:BEGIN_ROWS], targets[:BEGIN_ROWS], start) for kind in kinds]
    learnt = sorted(learnt, key=lambda one: -one.evidence)[:go_on]
    if len(rows) > BEGIN_ROWS:
        learnt = [learn(one.kind, rows[:ROWS], targets[:ROWS], one.setting, steps=GOES_ON) for one in learnt]
    return max(learnt, key=lambda one: one.evidence)


class _Evidence(torch.autograd.Function):
    """log p(y) of a covariance K, but for a constant. ∂/∂K = ½ (K⁻¹ y yᵀ K⁻¹ − K⁻¹) and ∂/∂y = −K⁻¹ y spare the way
    back through the factor."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, targets: Tensor) -> Tensor:
        factor = factor_of(matrix)
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


def covariance_matrix(kind: Covariance, scaled: Tensor, height: Tensor, noise: Tensor) -> Tensor:
    return height * covariance(kind, scaled, scaled) + noise * torch.eye(scaled.shape[-2], dtype=scaled.dtype)


def factor_of(matrix: Tensor) -> Tensor:
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if bool(failed.any()):  # rounding made it singular
        more = 1e-6 * matrix.diagonal(dim1=-2, dim2=-1).amax()
        factor = torch.linalg.cholesky(matrix + more * torch.eye(matrix.shape[-1], dtype=matrix.dtype))
    return factor


def covariance(kind: Covariance, a: Tensor, b: Tensor) -> Tensor:
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
        square = ((a**2).sum(-1)[..., :, None] + (b**2).sum(-1)[..., None, :] - 2 * a @ b.mT).clamp(min=0)
        if kind == "gaussian":
            return torch.exp(-0.5 * square)
        distance = (5 * square + TINY).sqrt()  # keeps the slope finite at 0
        return (1 + distance + distance**2 / 3) * torch.exp(-distance)
    if kind == "gaussian":
        return torch.from_numpy(_bell(a, b))
    distance, rest = _distances(a, b)
    near = distance * (1 / 3)
    near += 1
    near *= distance
    near += 1
    near *= rest
    return torch.from_numpy(near)


def _steepness(kind: Covariance, a: Tensor, b: Tensor) -> Tensor:
    """−2 dk/dr²."""
    if kind == "gaussian":
        return torch.from_numpy(_bell(a, b))
    distance, rest = _distances(a, b)
    distance += 1
    distance *= rest
    distance *= 5 / 3
    return torch.from_numpy(distance)


def _bell(a: Tensor, b: Tensor) -> NDArray[np.float64]:
    square = _squares(a, b)
    square *= -0.5
    return np.exp(square, out=square)


def _distances(a: Tensor, b: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """√5 r and exp(−√5 r)."""
    square = _squares(a, b)
    square *= 5
    square += TINY
    distance = np.sqrt(square, out=square)
    rest = -distance
    return distance, np.exp(rest, out=rest)


def _squares(a: Tensor, b: Tensor) -> NDArray[np.float64]:
    """r² of all pairs. NumPy's vectors take two thirds of the time of torch's."""
    x, y = a.detach().numpy(), b.detach().numpy()
    left = np.concatenate([-2 * x, (x**2).sum(1, keepdims=True), np.ones((len(x), 1))], axis=1)
    right = np.concatenate([y, np.ones((len(y), 1)), (y**2).sum(1, keepdims=True)], axis=1)
    found = left @ right.T
    return np.maximum(found, 0.0, out=found)
