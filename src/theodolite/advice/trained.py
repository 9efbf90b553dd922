"""What our own trainings of equal size on real text showed of depth, at the sizes that were trained."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from theodolite.advice.shape import ModelShape

NEAR = 2.0
"""A size speaks of models within this factor of its parameters in the blocks."""


@dataclass(frozen=True)
class TrainedSize:
    """Decoders of `size` parameters in their blocks, each after so many `tokens`: the depth that learnt best, its 95 %
    interval, the depths within one per cent of its loss, and the deepest with how much worse it was."""

    size: int
    tokens: int
    best: int
    interval: tuple[int, int]
    flat: tuple[int, ...]
    deepest: int
    deepest_worse: float


@dataclass(frozen=True)
class Trained:
    """One study: what was read, and every size that is finished."""

    text: str
    sizes: tuple[TrainedSize, ...]

    def near(self, shape: ModelShape) -> TrainedSize | None:
        """The size that speaks of this shape: a language model of one stack, dense, within a factor of two."""
        if not shape.one_dense_stack or shape.modality == "image" or shape.params_in_blocks <= 0:
            return None
        nearest = min(self.sizes, key=lambda one: abs(math.log(one.size / shape.params_in_blocks)))
        return nearest if 1 / NEAR <= nearest.size / shape.params_in_blocks <= NEAR else None


@cache
def trained() -> Trained:
    """The study that ships with the package; a test holds it beside the archived figures."""
    content = json.loads(files("theodolite.advice").joinpath("trained_depths.json").read_text("utf-8"))
    sizes = (
        TrainedSize(**{**one, "interval": tuple(one["interval"]), "flat": tuple(one["flat"])})
        for one in content["sizes"]
    )
    return Trained(content["text"], tuple(sizes))
