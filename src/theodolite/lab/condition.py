"""Which training cells belong together; kept apart from the training itself, so that reading results needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from theodolite.measurement import canonical

TRAINING = "training"  # the measure of a cell that `learn` runs


def condition(config: Mapping[str, Any]) -> str:
    """What members of one group have in common: everything but seed and rates."""
    return canonical({k: v for k, v in config.items() if k not in ("seed", "lr", "weight_decay")})
