"""How the learning rate goes over a training: a factor for every step, which count from 1."""

from __future__ import annotations

import math
from collections.abc import Callable

RateSchedule = Callable[[int], float]


def half_cosine(share: float) -> float:
    """From 1 at the start to 0 at the end of half a wave."""
    return 0.5 * (1 + math.cos(math.pi * share))


def cosine(steps: int, warm_up: int = 0) -> RateSchedule:
    """Half a cosine from the first step on, held down while it warms up."""
    return lambda step: min(1.0, step / max(1, warm_up)) * half_cosine((step - 1) / steps)


def rise_then_cosine(steps: int, rise: int) -> RateSchedule:
    """Up along a line for `rise` steps, then half a cosine down to 0."""
    return lambda step: step / rise if step <= rise else half_cosine((step - rise) / max(1, steps - rise))
