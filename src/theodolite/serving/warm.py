"""What the first question of each kind would wait for: libraries are loaded, and their first calls made."""

from __future__ import annotations

import logging

from theodolite.errors import TheodoliteError
from theodolite.serving.parts import iteration, partition, spectrum

logger = logging.getLogger(__name__)


def warm() -> None:
    """Asks each part that computes with torch for something small."""
    try:
        spectrum.answer("mlp", 2, 1, 2, "square")
        iteration.ends("tent", 1.0)
        partition.answer("self-attention", 1, 1, 2, "0|1")
    except TheodoliteError as error:
        logger.warning("the first answers take longer: %s", error)
