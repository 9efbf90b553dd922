"""How far a new value may lie from its prediction, by the errors on rows that the networks did not see."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from theodolite.errors import BadInput

COVERAGE = 0.9


def half_width(residuals: ArrayLike, coverage: float = COVERAGE) -> float:
    """The ⌈(n + 1) · coverage⌉-th smallest of n absolute errors: exchangeable rows lie within it at least so often
    (Vovk, Gammerman and Shafer 2005). Infinite where n are too few for such a coverage.

    Examples:
        >>> half_width([0.1, 0.4, 0.2, 0.3], coverage=0.8)
        0.4
    """
    if not 0 < coverage < 1:
        raise BadInput(f"a coverage of {coverage!r} is no share of the rows: give one between 0 and 1, such as 0.9")
    ordered = np.sort(np.abs(np.asarray(residuals, dtype=np.float64)))
    place = math.ceil((len(ordered) + 1) * coverage - 1e-9)
    return float(ordered[place - 1]) if 0 < place <= len(ordered) else math.inf
