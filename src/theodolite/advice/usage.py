"""What models of a size look like: width over depth in the catalogue, near one size and along all of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from theodolite.advice.catalogue import models
from theodolite.advice.shape import Modality, ModelShape
from theodolite.theory.shapes import dense_parameters

NEAR = 2.0
"""Models within this factor of 12·L·d² are of one size."""
FEWEST = 5


@dataclass(frozen=True)
class Usage:
    """Width over depth of the public models of about this size: the least, the median, the largest."""

    models: int
    low: float
    median: float
    high: float

    def holds(self, shape: ModelShape) -> bool:
        """Whether such a ratio is in use; two places are enough to tell ratios apart."""
        return round(self.low, 2) <= round(shape.width / shape.depth, 2) <= round(self.high, 2)


def usage_near(shape: ModelShape) -> Usage | None:
    """Of its own kind: one stack or two, images or text. None where fewer than five models are that near."""
    return usage_at(dense_parameters(shape.depth, shape.width), shape.modality, shape.two_stacks)


def usage_at(size: float, modality: Modality, two_stacks: bool = False) -> Usage | None:
    """Of models with about this N = 12·L·d²."""
    ratios = [ratio for other, ratio in _ratios(modality == "image", two_stacks) if 1 / NEAR <= other / size <= NEAR]
    if len(ratios) < FEWEST:
        return None
    return Usage(len(ratios), min(ratios), statistics.median(ratios), max(ratios))


@cache
def _ratios(image: bool, two_stacks: bool) -> tuple[tuple[float, float], ...]:
    """(12·L·d², d/L) of the models of a kind. Where layers share their weights that is not their size."""
    return tuple(
        (dense_parameters(shape.depth, shape.width), shape.width / shape.depth)
        for shape in _shapes()
        if (shape.modality == "image") == image and shape.two_stacks == two_stacks and shape.distinct_layers is None
    )


def _shapes() -> Iterator[ModelShape]:
    for model in models():
        yield model.shape
