"""Which depth goes with which width: the published fit, and the regimes of Theorems 7.1 and 7.2.

Source of the fit: Levine et al. 2020, *Limits to depth efficiencies of self-attention*: networks of depths 6 to 48,
trained on language, stop gaining more from depth than from width where ln d = 5.039(±.030) + .0555(±.0013)·L, with
N = 12·L·d² parameters without embeddings. Source of the ratio for images: Wies et al. 2021, *Which Transformer
architecture fits my data?*, where the best depth-to-width ratio is about ten times that of language. Source of the
effect: Kaplan et al. 2020, *Scaling laws for neural language models*, Figure 5, up to 1.5B parameters without
embeddings: "The loss varies only a few percent over a wide range of shapes"; 6 layers of width 4288 reach a loss within
3 % of 48 of width 1600.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

from theodolite.errors import OutsideDomain
from theodolite.theory.domain import whole

INTERCEPT, INTERCEPT_ERROR = 5.039, 0.030
SLOPE, SLOPE_ERROR = 0.0555, 0.0013
FITTED_DEPTHS = (6, 48)
IMAGE_RATIO = 10.0
"""L/d of images over L/d of language at equal size; the source gives it as "10x"."""
EFFECT_SHAPES = ((6, 4288), (48, 1600))
EFFECT = 0.03
"""Of the loss, the most by which those two shapes differ."""
EFFECT_RANGE = (4288 / 6) / (1600 / 48)
"""Between the width-to-depth ratios of those two: a factor of 21."""


@dataclass(frozen=True)
class Fit:
    """ln d = intercept + slope·L at ratio 1; at ratio ρ the shapes of equal N whose L/d is ρ times larger.

    N = 12·L·d² stays the same under L ↦ ρ^(2/3)·L, d ↦ ρ^(−1/3)·d, which multiplies L/d by ρ.
    """

    intercept: float = INTERCEPT
    slope: float = SLOPE
    ratio: float = 1.0

    def width(self, depth: float) -> float:
        """Infinite beyond what a float holds."""
        power = self.intercept + self.slope * depth / self.ratio ** (2 / 3)
        return math.exp(power) / self.ratio ** (1 / 3) if power < 700 else math.inf

    def depth(self, width: float) -> float:
        """Negative for widths below the intercept's, which no depth goes with."""
        return (math.log(width * self.ratio ** (1 / 3)) - self.intercept) / self.slope * self.ratio ** (2 / 3)

    def corners(self) -> tuple[Fit, ...]:
        """The four fits with both coefficients at an end of their published ±."""
        signs = product((-1, 1), repeat=2)
        return tuple(
            Fit(self.intercept + a * INTERCEPT_ERROR, self.slope + b * SLOPE_ERROR, self.ratio) for a, b in signs
        )

    def extrapolates(self, depth: float) -> bool:
        """Whether this depth, brought back to ratio 1, lies outside the depths that were trained."""
        low, high = FITTED_DEPTHS
        return not low <= depth / self.ratio ** (2 / 3) <= high


def dense_parameters(depth: float, width: float) -> float:
    """N = 12·L·d²: four d × d matrices of attention and an MLP of width 4d, a block."""
    return 12 * depth * width**2


def fitted_depth(parameters: float, fit: Fit | None = None) -> float:
    """The depth L with 12·L·d(L)² = N, for N > 0 parameters without embeddings."""
    if not parameters > 0 or math.isinf(parameters):
        raise OutsideDomain(f"parameters = {parameters!r} is outside the domain: pass a positive number")
    fit = fit or Fit()
    low, high = 0.0, 1.0
    while dense_parameters(high, fit.width(high)) < parameters:
        low, high = high, 2 * high
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if dense_parameters(middle, fit.width(middle)) < parameters else (low, middle)
    return (low + high) / 2


def depth_interval(parameters: float, fit: Fit | None = None) -> tuple[float, float]:
    """The least and the largest fitted depth over the corners of the published ±.

    No correlation of the two coefficients is published. The corners contain every pair within the ±, whatever the
    correlation, so the interval is the widest that the ± allow and has no level of confidence.
    """
    found = [fitted_depth(parameters, corner) for corner in (fit or Fit()).corners()]
    return min(found), max(found)


def boundary_depth(width: int) -> float:
    """log₃ d: below it Theorem 7.1 speaks (depth beats width), above it Theorem 7.2 (they count alike)."""
    return math.log(whole("width", width)) / math.log(3)
