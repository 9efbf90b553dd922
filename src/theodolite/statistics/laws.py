"""Which law a falling curve follows, a power or an exponential: the one that says best what it was not fitted to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

FEWEST = 3  # points: two are left for a line that foretells the third
_WITHIN = 0.5  # of the logarithm: held-out values within a factor of e^0.5 on average are foretold,
_OF_RANGE = 0.07  # or within this part of the range of the curve,
_NOISES = 2.0  # or within so many standard errors of its points
_FLAT = 0.5  # powers below are no fall

Shape = Literal["flat", "power", "exponential"]


@dataclass(frozen=True)
class Law:
    """`exponent` of a power of x, `half_life` of an exponential in x; `errors` of both laws on points held out, as
    root mean squares of the logarithm. Where neither foretells them, there is no shape."""

    shape: Shape | None
    exponent: float | None = None
    half_life: float | None = None
    errors: dict[str, float] | None = None


def choose_law(x: np.ndarray, logs: np.ndarray, noise: float = 0.0) -> Law:
    """Of the logarithms of a curve at x, whose points have standard errors of `noise`."""
    if len(x) < FEWEST:
        return Law(None)
    scales = {"power": np.log(x), "exponential": np.asarray(x, dtype=float)}
    errors = {name: _held_out_error(scale, logs) for name, scale in scales.items()}
    best = min(errors, key=lambda name: errors[name])
    power, rate = (float(np.polyfit(scale, logs, 1)[0]) for scale in scales.values())
    within = max(_WITHIN, _OF_RANGE * float(np.ptp(logs)), _NOISES * noise)
    if abs(power) < _FLAT and errors["power"] <= within:
        return Law("flat", exponent=power, errors=errors)
    if errors[best] > within:
        return Law(None, errors=errors)
    if best == "power":
        return Law("power", exponent=power, errors=errors)
    return Law("exponential", half_life=-math.log(2) / rate, errors=errors) if rate < 0 else Law(None, errors=errors)


def _held_out_error(x: np.ndarray, y: np.ndarray) -> float:
    """Every point in turn is foretold by a line through the others."""
    rest = ~np.eye(len(x), dtype=bool)
    missed = [y[k] - np.polyval(np.polyfit(x[keep], y[keep], 1), x[k]) for k, keep in enumerate(rest)]
    return float(np.sqrt(np.mean(np.square(missed))))
