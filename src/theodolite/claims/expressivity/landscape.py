"""The loss over two weights: where the gradient leads anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from theodolite.errors import BadInput
from theodolite.measurement import SCHEMA, finite
from theodolite.nets.contract import positive
from theodolite.theory.gradient import cosine_loss, cosine_loss_gradient

FLAT = 0.01  # a gradient below this share of the largest one on the grid counts as none


@dataclass(frozen=True)
class Landscape:
    """`loss[i][j]` at (xs[i], ys[j]), and the norm of the gradient there; `flat` is the share of the grid where that is
    below 1 % of its largest value, `minima` are the local ones of the grid, lowest first."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    loss: tuple[tuple[float, ...], ...]
    slope: tuple[tuple[float, ...], ...]
    flat: float
    minima: tuple[tuple[float, float, float], ...]
    exact: bool

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "quantity": "landscape", **finite(asdict(self))}


def cosine_landscape(target: tuple[float, float] = (2.0, 2.0), reach: float = 6.0, points: int = 121) -> Landscape:
    """F(w) = E[(cos⟨w, x⟩ − cos⟨v, x⟩)²] for w ∈ [−reach, reach]², v the target, x ~ N(0, I₂): in closed form."""
    positive(points=points)
    if not reach > 0:
        raise BadInput(f"a reach of {reach} spans no square: use one above 0")
    axis = np.linspace(-reach, reach, points)
    w = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    v = np.asarray(target, dtype=float)
    return _landscape(axis, axis, cosine_loss(w, v), np.linalg.norm(cosine_loss_gradient(w, v), axis=-1), exact=True)


def _landscape(xs: np.ndarray, ys: np.ndarray, loss: np.ndarray, slope: np.ndarray, exact: bool) -> Landscape:
    inner = loss[1:-1, 1:-1]
    shifted = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    rows, columns = loss.shape
    lowest = np.ones_like(inner, dtype=bool)
    for i, j in shifted:
        lowest &= inner < loss[1 + i : rows - 1 + i, 1 + j : columns - 1 + j]
    found = [(float(xs[i + 1]), float(ys[j + 1]), float(inner[i, j])) for i, j in np.argwhere(lowest)]
    return Landscape(
        xs=tuple(map(float, xs)),
        ys=tuple(map(float, ys)),
        loss=tuple(tuple(map(float, row)) for row in loss),
        slope=tuple(tuple(map(float, row)) for row in slope),
        flat=float((slope < FLAT * slope.max()).mean()) if slope.max() > 0 else 1.0,
        minima=tuple(sorted(found, key=lambda place: place[2])),
        exact=exact,
    )


def measure_cosine_landscape(config: Mapping[str, Any]) -> dict[str, Any]:
    """config: target, reach, points."""
    found = cosine_landscape(tuple(config["target"]), config["reach"], config["points"])
    return {"flat": found.flat, "minima": [list(place) for place in found.minima]}
