"""Sizes at one budget of FLOPs: what each would reach by the published fit, and what it costs afterwards.

The message is how flat it is: from half to twice the best size the loss moves by less than a percent (from 10²⁰ FLOPs
on), while the cost of every token written moves with the size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from theodolite.advice.budget.scaling_laws import CHINCHILLA, LAWS, ScalingLaw
from theodolite.advice.budget.spending import Rate, spend
from theodolite.advice.cost import cost
from theodolite.advice.shape import ModelShape
from theodolite.errors import BadInput

STEPS = {"1/2": 0.5, "1/√2": 0.5**0.5, "1": 1.0, "√2": 2.0**0.5, "2": 2.0}
OVERTRAINED = 10.0
"""Times Chinchilla's tokens per parameter, for the row of a smaller model trained on more."""


@dataclass(frozen=True)
class Point:
    """One size at the budget. `above_best` is the loss over the least one of the table, minus 1."""

    label: str
    params: int
    depth: int
    width: int
    tokens: float
    tokens_per_parameter: float
    loss: float
    above_best: float
    days: float | None
    inference_flops: float


@dataclass(frozen=True)
class Optimum:
    """Where one fit puts the best size, and the sizes whose loss is at most 1 % above it."""

    source: str
    params: float
    tokens: float
    low: float
    high: float


@dataclass(frozen=True)
class Frontier:
    flops: float
    source: str
    points: tuple[Point, ...]
    optima: tuple[Optimum, ...]

    def to_json(self) -> dict[str, Any]:
        lists = {"points": [asdict(one) for one in self.points], "optima": [asdict(one) for one in self.optima]}
        return {"flops": self.flops, "source": self.source, **lists}


def frontier(
    flops: float,
    sequence: int,
    shape_at: Callable[[int], ModelShape],
    *,
    own: ModelShape | None = None,
    rate: Rate | None = None,
    law: ScalingLaw = LAWS[0],
) -> Frontier:
    """Sizes about the best one, one that is over-trained, and the model's own.

    Parameters:
        flops: the budget
        sequence: tokens of context
        shape_at: the shape of the family with about this many parameters; sizes it refuses are left out
        own: the shape in question
        rate: of the GPUs, for days
        law: the fit that losses are from

    Examples:
        >>> from theodolite.advice.configs import read_config
        >>> gpt2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257}
        >>> frontier(1e19, 1024, lambda size: read_config(gpt2, "gpt2")).points[0].params
        124439808
    """
    best = law.best_size(flops)
    sizes = {label: factor * best for label, factor in STEPS.items()}
    sizes["over-trained"] = math.sqrt(flops / (6 * OVERTRAINED * CHINCHILLA))
    shapes: dict[str, ModelShape] = {}
    for label, size in sizes.items():
        try:
            shapes[label] = shape_at(round(size))
        except BadInput:  # too small for the vocabulary
            continue
    if own is not None:
        same = [label for label, shape in shapes.items() if (shape.depth, shape.width) == (own.depth, own.width)]
        for label in same:
            del shapes[label]
        shapes[f"{same[0]}, this" if same else "this model"] = own
    rows = [_point(label, shape, flops, sequence, rate, law) for label, shape in shapes.items()]
    least = min((row.loss for row in rows), default=0.0)
    rows = [Point(**{**asdict(row), "above_best": row.loss / least - 1}) for row in rows]
    rows.sort(key=lambda row: row.params)
    return Frontier(flops, law.source, tuple(rows), optima(flops))


def optima(flops: float) -> tuple[Optimum, ...]:
    """By each published fit."""
    found = []
    for law in LAWS:
        size = law.best_size(flops)
        found.append(Optimum(law.source, size, flops / (6 * size), *law.sizes_within(flops)))
    return tuple(found)


def _point(label: str, shape: ModelShape, flops: float, sequence: int, rate: Rate | None, law: ScalingLaw) -> Point:
    spent = spend(shape, sequence, flops=flops, rate=rate)
    return Point(
        label=label,
        params=shape.params,
        depth=shape.depth,
        width=shape.width,
        tokens=spent.tokens,
        tokens_per_parameter=spent.tokens_per_parameter,
        loss=law.loss(spent.params, spent.tokens),
        above_best=0.0,
        days=spent.days,
        inference_flops=float(cost(shape, sequence).inference_flops or 2 * shape.active),
    )
