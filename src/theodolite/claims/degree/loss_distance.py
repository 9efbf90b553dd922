"""Losses that are not equivalent: step functions whose ε-ranks under d₁, d₂ and d∞ part without bound.

A step function on n × n equal blocks is its matrix of values. y = 1 + c·√n·[same block] is a constant with spikes on
the diagonal: they fill the share 1/n of the square, so their mean c/√n vanishes with n, their mean square stays c².

- d₁: the constant 1 is c/√n away, so rank 1 is enough once n is large.
- d₂: J + c·√n·I has the eigenvalue n + c·√n once and c·√n else: the relative error of rank r ≥ 1 is exactly
  √(c²·(1 − r/n)/(1 + 2c/√n + c²)), and the ε-rank grows like n.
- d∞: y within t of every value asks for I within δ = t/(c·√n). A Gram matrix of unit vectors with inner products up to
  δ/(1 − δ) does it, rank of order log n; no fewer do, by the packing of n rows in a ball of that dimension, and by
  rank X ≥ (tr X)²/‖X‖².
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.measurement import seed_of
from theodolite.training.loop import train
from theodolite.training.optimiser import ADAM, Rates
from theodolite.training.schedules import cosine

_CELLS = 32  # of each side in the fit of a single product
_SPIKE = 2  # cells along each side of the spike
_STEPS = 600


def measure_loss_ranks(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """config: blocks, epsilon, height (c). Relative ε-ranks of 1 + spikes; absolute ones of the spikes alone."""
    n, epsilon, height = config["blocks"], config["epsilon"], config.get("height", 1.0)
    if n < 2 or not 0 < epsilon < 0.5 or height <= 0:
        raise BadInput(
            f"{n} blocks, ε = {epsilon}, height {height}: use at least 2 blocks, ε below ½, a height above 0"
        )
    root = math.sqrt(n)
    delta = epsilon * (1 + height * root) / (height * root)
    generator = torch.Generator().manual_seed(seed_of(["loss-ranks", n, seed]))
    return {
        "norm_ratio": math.sqrt(1 + 2 * height / root + height**2) / (1 + height / root),
        "spike_norm_ratio": root,
        "relative": {
            "d1": _mean_rank(n, epsilon, height),
            "d2": _square_rank(n, epsilon, height),
            "sup": [max(1, identity_rank_floor(n, delta) - 1), min(n, 1 + identity_rank_reached(n, delta, generator))],
        },
        "absolute": {
            "d1": max(0, math.ceil(n - epsilon * n * root - 1e-9)),
            "d2": math.ceil(n * (1 - epsilon**2) - 1e-9),
            "sup": [identity_rank_floor(n, epsilon / root), n],
        },
    }


def _mean_rank(n: int, epsilon: float, height: float) -> list[int]:
    """[least, most] rank within relative d₁ error ε. Σ|E| ≥ ‖E‖_* ≥ Σ_{k>r} σ_k = c·√n·(n − r), and the constant with
    r − 1 of the spikes has the error c·√n·(n − r + 1)."""
    root = math.sqrt(n)
    allowed = epsilon * n * (n + height * root) / (height * root)  # in spikes
    least = max(1, math.ceil(n - allowed - 1e-9))
    return [least, max(1, math.ceil(n - allowed + 1 - 1e-9))]


def _square_rank(n: int, epsilon: float, height: float) -> int:
    size = 1 + 2 * height / math.sqrt(n) + height**2
    return max(1, math.ceil(n * (1 - epsilon**2 * size / height**2) - 1e-9))


def identity_rank_floor(n: int, delta: float) -> int:
    """No matrix of a smaller rank is within δ < ½ of the identity at every entry."""
    if delta >= 0.5:
        return 1
    trace = n * (1 - delta) ** 2 / ((1 + delta) ** 2 + (n - 1) * delta**2)
    # Rows lie in an r-dimensional ball of radius 1 + δ of the maximum norm, 1 − 2δ apart: n ≤ (1 + 2·radius/apart)^r.
    packing = math.log(n) / math.log(1 + 2 * (1 + delta) / (1 - 2 * delta))
    return math.ceil(max(trace, packing) - 1e-9)


def identity_rank_reached(n: int, delta: float, generator: torch.Generator) -> int:
    """A rank that is enough, checked entry by entry: (1 − δ) times the Gram matrix of drawn sign vectors."""
    if delta >= 0.5:
        return 1
    wanted = delta / (1 - delta)
    signs = 1 - 2 * torch.randint(2, (n, n), generator=generator, dtype=torch.float32)
    inner = torch.zeros(n, n)
    step = max(1, n // 64)
    for rank in range(step, n, step):
        part = signs[:, rank - step : rank]
        inner += part @ part.T  # whole numbers, exact in float32
        if float(inner.fill_diagonal_(0).abs().max()) <= wanted * rank:
            return rank
    return n


def measure_loss_minimiser(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """One product u(a)·v(b) trained by gradient descent on |error| and on error² for the same function.

    config: energy (of a spike of 1/256 of the square, beside a smooth product of energy 1), members.
    """
    generator = torch.Generator().manual_seed(seed_of(["loss-minimiser", seed]))
    place = (torch.arange(_CELLS, dtype=torch.float64) + 0.5) / _CELLS
    smooth = (1 + 0.5 * torch.sin(2 * math.pi * place))[:, None] * (1 + 0.5 * torch.cos(math.pi * place))
    smooth = smooth / smooth.square().mean().sqrt()
    spike = torch.zeros_like(smooth)
    spike[5 : 5 + _SPIKE, 20 : 20 + _SPIKE] = math.sqrt(config["energy"]) * _CELLS / _SPIKE
    target = smooth + spike
    found = {}
    for loss in ("absolute", "square"):
        fit = _trained(target, loss, config["members"], generator)
        rest = target - fit
        found[loss] = {
            "d1": _mean(rest.abs().mean((1, 2)) / target.abs().mean()),
            "d2": _mean((rest.square().mean((1, 2)) / target.square().mean()).sqrt()),
            "likeness_to_smooth": _mean(_cosine(fit, smooth)),
            "likeness_to_spike": _mean(_cosine(fit, spike)),
        }
    return found


def _trained(target: Tensor, loss: str, members: int, generator: torch.Generator) -> Tensor:
    """(member, row, column) after training."""
    shape = (members, _CELLS)
    start = {name: 0.5 + 0.5 * torch.rand(shape, generator=generator, dtype=torch.float64) for name in ("u", "v")}
    product = lambda weights: weights["u"][:, :, None] * weights["v"][:, None]
    size = torch.abs if loss == "absolute" else torch.square
    error = lambda weights, _: size(target - product(weights)).mean((1, 2))
    return product(train(start, error, steps=_STEPS, rule=ADAM, rates=Rates(0.05), schedule=cosine(_STEPS)))


def _cosine(fit: Tensor, other: Tensor) -> Tensor:
    return (fit * other).sum((1, 2)) / (fit.square().sum((1, 2)) * other.square().sum()).sqrt()


def _mean(values: Tensor) -> list[float]:
    """The mean over members, and the least and largest."""
    return [float(values.mean()), float(values.min()), float(values.max())]
