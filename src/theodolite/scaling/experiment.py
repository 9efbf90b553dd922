"""What is trained: every shape of every size, over seeds and rates, all of one size on the same number of tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from theodolite.bench.plan import TrainingPlan, plan_training
from theodolite.errors import BadInput
from theodolite.lab.cell import Cell
from theodolite.nets.contract import nets
from theodolite.scaling.shapes import WITHIN, Net, SizedShape, shapes_of
from theodolite.tasks.text import Text
from theodolite.training.group import Schedule
from theodolite.training.optimiser import Rates, Rule

_LOOKS = 20  # at the members, equally far apart


@dataclass(frozen=True)
class Experiment:
    """`tokens` a parameter, of every network of a size alike; a rate is constant through training, and where rates are
    `per_width` that number over the shape's width, so that one number serves wide and narrow networks."""

    net: Net
    task: Text
    sizes: Sequence[int]
    depths: Sequence[int]
    seeds: Sequence[int]
    rates: Sequence[float]
    tokens: float
    batch: int
    rows: int  # windows of what is held out
    precision: str = "float32"
    shape: Mapping[str, Any] = field(default_factory=dict)
    within: float = WITHIN
    per_width: bool = False

    def __post_init__(self) -> None:
        for name in ("sizes", "depths", "seeds", "rates"):
            if not getattr(self, name):
                raise BadInput(f"no {name} are given: give one or more")
        for name in ("sizes", "depths"):
            wrong = [value for value in getattr(self, name) if value < 1]
            if wrong:
                raise BadInput(f"{name} are whole numbers from 1 on, not {wrong[0]}")
        if not self.tokens > 0:
            raise BadInput(f"{self.tokens} tokens a parameter train nothing: give more than 0")
        if not 0 < self.within < 1:
            raise BadInput(
                f"sizes can be equal within a share between 0 and 1, not {self.within}: give one such as 0.01"
            )

    def steps(self, size: int) -> int:
        """Rounded up, so that looks are equally far apart."""
        scored = self.batch * (self.task.context - 1)
        return _LOOKS * max(1, math.ceil(self.tokens * size / scored / _LOOKS))

    def plan(self) -> Planned:
        training, placed, rates, left_out = TrainingPlan(), {}, {}, []
        for size in sorted(set(self.sizes)):
            shapes, reasons = shapes_of(self.net, size, sorted(set(self.depths)), self.shape, self.within)
            left_out += [f"size {size:,}: {reason}" for reason in reasons]
            steps = self.steps(size)
            schedule = Schedule(steps, self.batch, steps // _LOOKS, self.rows, to_the_end=True)
            for shape in shapes:
                one = plan_training(
                    self.net,
                    self.task,
                    schedule=schedule,
                    rule=Rule(),
                    rates=[Rates(rate / (shape.width if self.per_width else 1), 0.0) for rate in self.rates],
                    seeds=self.seeds,
                    shape=shape.arguments,
                    precision=self.precision,
                )
                if one.skipped:
                    raise BadInput(f"'{self.net}' cannot read text: {one.skipped[0]}")
                placed |= {cell.key: shape for cell in one.cells}
                for cell in one.cells:
                    rates[cell.key] = cell.config["lr"] * (shape.width if self.per_width else 1)
                training += one
        return Planned(self, training, placed, rates, tuple(left_out))


@dataclass(frozen=True)
class Planned:
    """`shapes` by the keys of cells, and rates as they were given; `left_out`: depths that a size has no shape for, and
    why."""

    experiment: Experiment
    training: TrainingPlan
    shapes: Mapping[str, SizedShape]
    rates: Mapping[str, float]
    left_out: tuple[str, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        return self.training.cells

    def chunk(self, device: torch.device) -> int | None:
        """Members in one batched call: all of a shape on CUDA, where that fills a GPU and no trial need say so; None
        where a trial decides, as for a net that nobody has seen batched."""
        experiment = self.experiment
        known = isinstance(experiment.net, str) and experiment.net in nets
        return len(experiment.seeds) * len(experiment.rates) if known and device.type == "cuda" else None

    def operations(self) -> float:
        """Of training in all: 6 for every parameter and token, readout included."""
        tokens = {
            size: self.experiment.steps(size) * self.experiment.batch * self.experiment.task.context
            for size in {shape.size for shape in self.shapes.values()}
        }
        read = lambda shape: 2 * shape.width * self.experiment.task.vocabulary
        return sum(6.0 * (shape.parameters + read(shape)) * tokens[shape.size] for shape in self.shapes.values())
