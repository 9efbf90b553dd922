"""Linear-periodic targets cos⟨v, x⟩ with ‖v‖ = r and normal inputs, for the predictor cos⟨w, x⟩: no sampling of inputs.

Sampling noise of the size 1/√samples would swamp variances of exp(−r²); here every expectation over x is a formula,
and the one over v is a Bessel function, a quadrature, or a mean over drawn v.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from theodolite.theory.gradient import (
    cosine_gradient_power,
    cosine_variance,
    cosine_variance_by_quadrature,
    largest_cosine_variance,
)


@dataclass(frozen=True)
class Slope:
    """A straight line through (x, log y): `slope`, and `fit` is R²."""

    slope: float
    fit: float

    @classmethod
    def of(cls, x: Sequence[float], y: Sequence[float]) -> Slope:
        logs = np.log(np.maximum(np.asarray(y, dtype=float), 1e-300))
        slope, offset = np.polyfit(np.asarray(x, dtype=float), logs, 1)
        rest = logs - (slope * np.asarray(x) + offset)
        return cls(float(slope), float(1 - rest.var() / logs.var()) if logs.var() else 0.0)


def drawn_variance(
    dimensions: int, radius: float, weight_norm: float, directions: int, seed: int
) -> tuple[float, float]:
    """(variance, standard error) over drawn directions v of the exact gradient E[h_v g]."""
    generator = np.random.default_rng(seed)
    v = generator.standard_normal((directions, dimensions))
    v *= radius / np.linalg.norm(v, axis=1, keepdims=True)
    w = np.zeros(dimensions)
    w[0] = weight_norm
    apart, together = w - v, w + v
    near, far = (np.exp(-np.square(a).sum(axis=1, keepdims=True) / 2) for a in (apart, together))
    gradients = -(apart * near + together * far) / 2
    squares = np.square(gradients - gradients.mean(axis=0)).sum(axis=1) * directions / (directions - 1)
    return float(squares.mean()), float(squares.std() / math.sqrt(directions))


def largest_variances(dimensions: Sequence[int], radii: Sequence[float]) -> list[dict[str, float]]:
    """sup_w Var for every pair, with the norm of w that reaches it."""
    rows = []
    for d in dimensions:
        for r in radii:
            variance, norm = largest_cosine_variance(d, r)
            rows.append({"dimensions": d, "radius": r, "variance": variance, "norm": norm})
    return rows


def measure_linear_periodic_signal(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """config: kind. `point` (dimensions, radius, norm, directions): one variance in three ways. `largest`
    (dimensions, radii): the largest over all weights."""
    if config["kind"] == "largest":
        return {"rows": largest_variances(config["dimensions"], config["radii"])}
    d, r, norm = config["dimensions"], config["radius"], config["norm"]
    drawn, error = drawn_variance(d, r, norm, config["directions"], seed)
    half = 2 * stats.norm.ppf(0.975) * error
    return {
        "closed": cosine_variance(d, r, norm),
        "quadrature": cosine_variance_by_quadrature(d, r, norm),
        "drawn": drawn,
        "interval": [float(drawn - half), float(drawn + half)],
        "gradient_power": cosine_gradient_power(norm, d),
    }
