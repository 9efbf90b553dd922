"""What our own trainings of equal size on real text showed of depth, at the sizes that were trained."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from theodolite.advice.shape import ModelShape

NEAR = 2.0
"""A size speaks of models within this factor of its parameters in the blocks, and of its vocabulary."""
BYTES = 256


@dataclass(frozen=True)
class TrainedSize:
    """Decoders of `size` parameters in their blocks on symbols of a vocabulary, each after so many `tokens`: the depth
    that learnt best, its 95 % interval, the depths within one per cent of its loss, and the deepest with how much worse
    it was."""

    size: int
    vocab: int
    tokens: int
    best: int
    interval: tuple[int, int]
    flat: tuple[int, ...]
    deepest: int
    deepest_worse: float

    @property
    def symbols(self) -> str:
        return "bytes" if self.vocab == BYTES else f"{self.vocab:,} symbols"

    def reads_like(self, vocab: int) -> bool:
        """Fewer symbols than bytes are letters, which are like them."""
        return vocab <= NEAR * self.vocab and (self.vocab == BYTES or NEAR * vocab >= self.vocab)


@dataclass(frozen=True)
class Trained:
    """One study: what was read, and every size that is finished."""

    text: str
    sizes: tuple[TrainedSize, ...]

    def near(self, shape: ModelShape) -> TrainedSize | None:
        """The size that speaks of this shape: a language model of one stack, dense, within a factor of two, with about
        that vocabulary, on which the best depth depends. One without a vocabulary is taken to read bytes."""
        if not shape.one_dense_stack or shape.modality == "image" or shape.params_in_blocks <= 0:
            return None
        vocab = shape.vocab or BYTES
        off = lambda one: abs(math.log(one.size / shape.params_in_blocks))
        other = lambda one: abs(math.log(one.vocab / vocab))
        near = [one for one in self.sizes if off(one) <= math.log(NEAR) and one.reads_like(vocab)]
        return min(near, key=lambda one: (off(one), other(one)), default=None)


@cache
def trained() -> Trained:
    """The study that ships with the package; a test holds it beside the archived figures."""
    content = json.loads(files("theodolite.advice").joinpath("trained_depths.json").read_text("utf-8"))
    sizes = (
        TrainedSize(**{**one, "interval": tuple(one["interval"]), "flat": tuple(one["flat"])})
        for one in content["sizes"]
    )
    return Trained(content["text"], tuple(sizes))
