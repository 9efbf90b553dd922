"""Random numbers for calls that are made side by side."""

from __future__ import annotations

import numpy as np


def own_draws(generator: np.random.Generator) -> np.random.Generator:
    """What a call draws from this does not depend on when and where it is made, nor on what others draw."""
    return np.random.default_rng(int(generator.integers(2**63)))
