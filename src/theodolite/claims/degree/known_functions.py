"""The ε-rank instrument held against functions whose spectrum is known in closed form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.device import resolve_device
from theodolite.instruments.rank.epsilon import spectrum_of
from theodolite.instruments.rank.function_distance import nearest, rank_floor, size
from theodolite.instruments.rank.separation import separation_rank
from theodolite.measurement import seed_of
from theodolite.theory.operator_spectra import (
    GAUSSIAN_SCALE,
    MEHLER_RATIO,
    POISSON_RATIO,
    STEPS,
    KnownSpectrum,
    epsilon_rank_of,
    known_spectra,
    mean_epsilon_rank_of,
)

_GRID = 128  # points of each side at which an expectation is taken: the middles of equal shares of its law


class KnownFunction(nn.Module):
    """y(a, b) of `theory/operator_spectra.py` as a net: the variables of A, then those of B.

    Uniform inputs arrive from −1 to 1, as ε mode draws them, and are taken to 0 to 1.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.known = name, known_spectra[name]

    def forward(self, x: Tensor) -> Tensor:
        if self.known.inputs == "uniform":
            x = (x + 1) / 2
        return value_of(self.name, x[:, : self.known.variables], x[:, self.known.variables :])


def value_of(name: str, a: Tensor, b: Tensor) -> Tensor:
    """y(a, b) over (…, variables)."""
    known_spectra[name]  # refuses an unknown name
    if name == "flat":
        return (a * b).sum(-1)
    a, b = a[..., 0], b[..., 0]
    if name == "gaussian":
        return torch.exp(-(a - b).square() / (2 * GAUSSIAN_SCALE**2))
    if name == "mehler":
        r = MEHLER_RATIO
        return torch.exp((2 * r * a * b - r**2 * (a * a + b * b)) / (2 * (1 - r**2))) / math.sqrt(1 - r**2)
    if name == "brownian":
        return torch.minimum(a, b)
    if name == "bridge":
        return torch.minimum(a, b) - a * b
    if name == "order":
        return (a < b).to(a.dtype)
    if name == "poisson":
        r = POISSON_RATIO
        return (1 - r**2) / (1 - 2 * r * torch.cos(2 * math.pi * (a - b)) + r**2)
    return ((a * STEPS).floor() == (b * STEPS).floor()).to(a.dtype)


def grid_matrix(known: KnownSpectrum, name: str, points: int = _GRID) -> Tensor:
    """y at points that stand for equal shares of the law of each side: averages over it are expectations."""
    if known.inputs == "signs":
        axis = 2.0 * torch.cartesian_prod(*[torch.arange(2.0, dtype=torch.float64)] * known.variables) - 1
    else:
        middles = (torch.arange(points, dtype=torch.float64) + 0.5) / points
        axis = (torch.special.ndtri(middles) if known.inputs == "normal" else middles)[:, None]
    return value_of(name, axis[:, None], axis[None])


def measure_known_epsilon_rank(config: Mapping[str, Any], seed: int, device: str) -> dict[str, Any]:
    """ε-ranks of a known function beside the truth: config has function, epsilons, points, resamples."""
    name, known = config["function"], known_spectra[config["function"]]
    grid = grid_matrix(known, name)
    floor, whole = rank_floor(grid, "d1"), size(grid, "d1")
    cases = []
    for epsilon in config["epsilons"]:
        found = separation_rank(
            KnownFunction(name),
            mode="epsilon",
            partition="left-right",
            features=2 * known.variables,
            epsilon=epsilon,
            inputs=known.inputs,
            points=config["points"],
            repeats=config["resamples"],
            seed=seed,
            device=device,
        )
        truth = epsilon_rank_of(known, epsilon)
        cases.append(
            {
                "epsilon": epsilon,
                "truth": truth,
                "rank": found.rank,
                "interval": found.details["interval"],
                "resolved": found.details["resolved"],
                "d1_truth": mean_epsilon_rank_of(known, epsilon),
                "d1_interval": found.details["d1_interval"],
                "d1_grid": [int((floor > epsilon * whole * (1 + 1e-9)).sum()), _reached(grid, epsilon)],
            }
        )
    return {"cases": cases, "formula": known.formula}


def _reached(grid: Tensor, epsilon: float) -> int:
    """The least rank whose truncation has a d₁ error within ε on the grid: no interval may lie above it."""
    whole, r = size(grid, "d1"), 0
    while size(grid - nearest(grid, r, "d2"), "d1") > epsilon * whole:
        r += 1
    return r


def measure_tail_bias(config: Mapping[str, Any], seed: int, device: str | torch.device) -> dict[str, Any]:
    """Squared errors of rank-r truncations over many samples, in the sample and held out, over the closed form's.

    They are absolute: a sample's own size would bring a bias of its own. In the sample their expectation is at most the
    closed form, because the best function of rank r is one of those the sample chooses from.

    config: function, points, samples, epsilon (r is the closed form's ε-rank, or 1 less where that leaves nothing).
    """
    name, known = config["function"], known_spectra[config["function"]]
    r = epsilon_rank_of(known, config["epsilon"])
    r -= known.tail(r) < 1e-9
    generator = torch.Generator().manual_seed(seed_of(["tail-bias", name, seed]))
    points, device = config["points"], resolve_device(device)
    true = known.tail(r) ** 2 * known.energy
    inside, outside = [], []
    for _ in range(config["samples"]):
        a, b = (_draw(known, 2 * points, generator).to(device) for _ in range(2))
        matrix = value_of(name, a[:, None], b[None])
        spectrum = spectrum_of(matrix, points, 1e-14 * points)
        error = spectrum.held_out[min(r, len(spectrum.held_out) - 1)]
        inside.append(float(spectrum.in_sample[r] ** 2 * matrix[:points, :points].square().mean()) / true)
        outside.append(float(error**2 * matrix[points:, points:].square().mean()) / true)
    return {"rank": r, "in_sample": inside, "held_out": outside}


def _draw(known: KnownSpectrum, count: int, generator: torch.Generator) -> Tensor:
    shape = (count, known.variables)
    if known.inputs == "normal":
        return torch.randn(shape, generator=generator, dtype=torch.float64)
    if known.inputs == "uniform":
        return torch.rand(shape, generator=generator, dtype=torch.float64)
    return 2.0 * torch.randint(2, shape, generator=generator).to(torch.float64) - 1
