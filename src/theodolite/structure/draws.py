"""Random numbers for calls that are made side by side."""

from __future__ import annotations

import numpy as np


def own_draws(generator: np.random.Generator) -> np.random.Generator:
    """What a call draws from this does not depend on when and where it is made, nor on what others draw."""
    return np.random.default_rng(int(generator.integers(2**63)))


def draws_beside(generator: np.random.Generator) -> np.random.Generator:
    """The same, and what `generator` draws later stays as it is, if it has a seed to be parted (one of NumPy's older
    states has none)."""
    try:
        return generator.spawn(1)[0]
    except TypeError:
        return own_draws(generator)
