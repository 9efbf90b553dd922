"""ε-separation rank of any net: the spectrum of y as an operator between functions of the two sides.

With the points of A and B drawn independently, the singular values of M/K estimate those of the operator with kernel
y. The tail in the sample is biased low, so the error of a truncation is measured where it was not fitted: the rank-r
function g(a)·Σ_r⁻¹·h(b), g(a) = y(a, B)·V_r, h(b) = U_rᵀ·y(A, b), has separation rank r and is compared with y at
held-out points. d₂ is the root mean square error and d₁ the mean absolute error, both relative to y's own size.

A large constant in y, such as a bias, makes every error small beside it. Relative to y's spread, the mean over the
sample is taken off first, which changes the rank by at most 1 and the errors by as much as the constant hid.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from theodolite.device import device_name, require_memory, resolve_device
from theodolite.errors import BadInput
from theodolite.instruments.rank.exact import Progress
from theodolite.instruments.rank.function_distance import mean_floor
from theodolite.instruments.rank.pair_matrix import pair_matrix
from theodolite.instruments.rank.result import RankResult, described
from theodolite.instruments.rank.scalar import ScalarFunction
from theodolite.measurement import Provenance, seed_of
from theodolite.nets.load import Subject
from theodolite.partition import Partition

Inputs = Literal["normal", "uniform", "signs"]
Reference = Literal["size", "spread"]
_SHOWN = 64


@dataclass(frozen=True)
class Spectrum:
    """One sample: relative singular values, and the errors of truncation at every rank, in the sample and held out."""

    values: Tensor  # σ_k / ‖σ‖
    in_sample: Tensor  # relative d₂ error of rank r, r = 0, 1, …
    held_out: Tensor
    held_out_l1: Tensor
    l1_floor: Tensor  # no function of separation rank r has a smaller relative d₁ error on the sample

    @property
    def effective_rank(self) -> float:
        share = self.values[self.values > 0] ** 2
        return float(torch.exp(-(share * share.log()).sum()))


def epsilon_rank(
    subject: Subject,
    partition: str | Partition = "left-right",
    *,
    epsilon: float = 0.01,
    token: int | None = None,
    entry: int = 0,
    points: int = 256,
    resamples: int = 3,
    inputs: Inputs = "normal",
    dtype: str = "float64",
    relative_to: Reference = "size",
    seed: int = 0,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
) -> RankResult:
    """ε-rank under d₂, with d₁'s interval, effective rank, held-out error and the spread over resamples."""
    started = time.perf_counter()
    device = resolve_device(device)
    if not 0 < epsilon < 1:
        raise BadInput(f"epsilon {epsilon} is not between 0 and 1: it is an error relative to the function's size")
    if points < 4 or resamples < 1:
        raise BadInput(
            f"{points} points and {resamples} resamples measure nothing: use at least 4 points and 1 resample"
        )
    if dtype not in ("float32", "float64"):
        raise BadInput(f"dtype '{dtype}' is not float32 or float64")
    if inputs not in ("normal", "uniform", "signs"):
        raise BadInput(f"inputs '{inputs}' are unknown: use normal, uniform or signs")
    if relative_to not in ("size", "spread"):
        raise BadInput(f"errors relative to '{relative_to}' are unknown: use size or spread")
    split = Partition.parse(partition, subject.sites)
    function = ScalarFunction.of(subject, token, entry)
    held = max(2, points // 2)
    require_memory(8 * (points + held) ** 2 * 4, device, f"a spectrum of {points:,} points")
    generator = torch.Generator().manual_seed(seed_of(["epsilon", seed]))
    trial = _draw(subject, split.sites, 6, inputs, generator).to(device)
    evaluate, precision = function.in_floats(getattr(torch, dtype), device, trial)
    rounding = precision.rounding
    function.check(evaluate, trial, tolerance=1e4 * rounding)
    tolerance = rounding * points
    spectra, ticked = [], time.perf_counter()
    for number in range(resamples):
        a = _draw(subject, len(split.a), points + held, inputs, generator).to(device)
        b = _draw(subject, len(split.b), points + held, inputs, generator).to(device)
        label = f"resample {number + 1} of {resamples}"
        report = (lambda share, label=label: progress(label, share)) if progress else None
        matrix = pair_matrix(evaluate, a, b, split, report)
        if relative_to == "spread":
            matrix = matrix - matrix[:points, :points].mean()
        spectra.append(spectrum_of(matrix, points, tolerance))
    return RankResult(
        **described(function, split),
        mode="epsilon",
        exact=False,
        cap=None,
        saturated=False,
        failure_probability=None,
        covers=(),
        primes=(),
        points=points,
        bounds={"lower": None, "upper": None, "reason": "theory bounds exact ranks, not ε-ranks"},
        degree=None,
        seconds=time.perf_counter() - started,
        evaluate_seconds=time.perf_counter() - ticked,
        eliminate_seconds=0.0,
        provenance=Provenance.here(seed, device_name(device)),
        **_summary(
            spectra,
            epsilon,
            points=points,
            held_out_points=held,
            inputs="ids" if subject.vocab else inputs,
            dtype=str(precision.dtype).removeprefix("torch."),
            precision=precision.note,
            relative_to=relative_to,
            tolerance=tolerance,
        ),
    )


def _draw(subject: Subject, sites: int, count: int, inputs: Inputs, generator: torch.Generator) -> Tensor:
    shape = (count, sites, subject.features)
    if subject.vocab:
        return torch.randint(subject.vocab, shape, generator=generator).to(torch.float64)
    if inputs == "normal":
        return torch.randn(shape, generator=generator, dtype=torch.float64)
    if inputs == "uniform":
        return 2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1
    return 2 * torch.randint(2, shape, generator=generator).to(torch.float64) - 1


def spectrum_of(matrix: Tensor, points: int, tolerance: float) -> Spectrum:
    """Of y at drawn points: the first `points` rows and columns are the sample, the others are held out."""
    sample, test = matrix[:points, :points], matrix[points:, points:]
    size = float(sample.square().mean().sqrt())
    if size == 0 or float(test.abs().max()) == 0:
        raise BadInput("the function is 0 at every drawn point, or constant: choose another output entry or token")
    u, sigma, vt = torch.linalg.svd(sample)
    usable = int((sigma > tolerance * sigma[0]).sum())
    left = matrix[points:, :points] @ vt[:usable].T / sigma[:usable]
    right = u[:, :usable].T @ matrix[:points, points:]
    total, total_l1 = test.square().mean(), test.abs().mean()
    rest, errors, errors_l1 = test.clone(), [], []
    for r in range(usable + 1):
        errors.append((rest.square().mean() / total).sqrt())
        errors_l1.append(rest.abs().mean() / total_l1)
        if r < usable:
            rest = rest - left[:, r : r + 1] * right[r : r + 1]
    energy = sigma.square()
    tails = torch.cat([energy.flip(0).cumsum(0).flip(0), energy.new_zeros(1)]) / energy.sum()
    # Σ|E| ≥ ‖E‖_* ≥ Σ_{k>r} σ_k for every E = M − (a matrix of rank r): entries of a contraction are at most 1.
    nuclear = torch.cat([sigma.flip(0).cumsum(0).flip(0), sigma.new_zeros(1)])
    floor = nuclear / sample.abs().sum()
    pieces = mean_floor(sample)  # of the whole, this bound falls with more points; that of small pieces stays
    floor[: len(pieces)] = torch.maximum(floor[: len(pieces)], pieces / sample.abs().mean())
    return Spectrum(
        values=(sigma / energy.sum().sqrt()).cpu(),
        in_sample=tails.clamp_min(0).sqrt().cpu(),
        held_out=torch.stack(errors).cpu(),
        held_out_l1=torch.stack(errors_l1).cpu(),
        l1_floor=floor.cpu(),
    )


def first_within(errors: Tensor, epsilon: float) -> int | None:
    """The smallest rank whose error is at most ε; None when the sample does not reach it."""
    reached = (errors <= epsilon).nonzero()
    return int(reached[0, 0]) if len(reached) else None


def _summary(spectra: list[Spectrum], epsilon: float, **settings: Any) -> dict[str, Any]:
    """The ranks over all resamples and what surrounds them."""
    held = [first_within(s.held_out, epsilon) for s in spectra]
    in_sample = [first_within(s.in_sample, epsilon) or 0 for s in spectra]
    resolved = None not in held
    # The held-out rank is that of a function that exists, so an upper estimate; the sample's own tail is too small,
    # so the rank it gives is a lower one. A sample whose truncations do not reach ε bounds nothing from above.
    ranks = [r for r in held if r is not None] if resolved else in_sample
    upper_l1 = [first_within(s.held_out_l1, epsilon) for s in spectra]
    lower_l1 = [first_within(s.l1_floor, epsilon) or 0 for s in spectra]
    effective = [s.effective_rank for s in spectra]
    rank = round(statistics.median(ranks))
    errors = [float(s.held_out[rank] if resolved else s.held_out.min()) for s in spectra]
    drawn = _ladder(min(len(s.held_out) for s in spectra))
    details = {
        "epsilon": epsilon,
        "resolved": resolved,
        "interval": [min(in_sample), max(ranks) if resolved else None],
        "spread": [min(ranks), max(ranks)],
        "d1_interval": [min(lower_l1), None if None in upper_l1 else max(r for r in upper_l1 if r is not None)],
        "effective_rank": statistics.mean(effective),
        "effective_rank_interval": [min(effective), max(effective)],
        "held_out_error": statistics.mean(errors),
        "held_out_error_interval": [min(errors), max(errors)],
        "spectrum": torch.stack([s.values for s in spectra]).mean(0)[:_SHOWN].tolist(),
        "held_out_curve": [[r, statistics.mean(float(s.held_out[r]) for s in spectra)] for r in drawn],
        "resamples": len(spectra),
        **settings,
    }
    return {"rank": rank, "ranks": tuple(ranks), "lower_bound": None, "details": details}


def _ladder(length: int) -> list[int]:
    """Ranks 0, 1, 2, … growing by about a tenth: enough to draw the curve."""
    ranks, r = [], 0
    while r < length:
        ranks.append(r)
        r = max(r + 1, math.ceil(r * 1.1))
    return ranks
