"""Witnesses in the Transformer and the linear Transformer: attention that averages, perceptrons that decide.

With queries and keys 0 every token is seen alike, in softmax attention as in linear attention; the last token thus
averages all of them. Layer normalisation does no harm once two coordinates are ±`large`: they fix the mean at nearly 0
and the spread at nearly a constant, so what reads coordinates against these two sees them multiplied by that constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from theodolite.nets.contract import canonical_arguments, nets
from theodolite.nets.parts.as_vector import AsVector
from theodolite.nets.parts.positions import sinusoidal
from theodolite.nets.size import count_parameters
from theodolite.tasks.contract import Task
from theodolite.witness.contract import Witness, constructs
from theodolite.witness.registered_nets.shape import blank, fitted, put
from theodolite.witness.registered_nets.stages import Plan, Stage, plans

_SOURCE = "uniform attention under perceptrons of sharp GELUs, the norms held constant by two large coordinates"
_ANSWER = 0  # the coordinate that takes up the answer; the first two tell positions apart best


@constructs("transformer")
def transformer(task: Task, shape: Mapping[str, Any]) -> Witness | None:
    return _smallest("transformer", task, shape)


@constructs("linear-transformer")
def linear_transformer(task: Task, shape: Mapping[str, Any]) -> Witness | None:
    return _smallest("linear-transformer", task, shape)


def _smallest(net: str, task: Task, asked: Mapping[str, Any]) -> Witness | None:
    if task.spec.kind != "vector":
        return None
    asked = canonical_arguments(net, asked, nets[net].arguments)
    made = [_build(net, plan, asked) for plan in plans(task, net)]
    return min((w for w in made if w is not None), key=lambda w: count_parameters(w.module), default=None)


def _build(net: str, plan: Plan, asked: Mapping[str, Any]) -> Witness | None:
    """Entries that all weigh alike are averaged at once. Otherwise a first block multiplies each by the weights of its
    place, which its position tells, and the second one averages these products."""
    placed = not plan.alike
    entry = 2 if placed else 1
    sums = [len(plan.directions), *(len(stage.shift) for stage in plan.stages[:-1])]
    most = max(*(stage.relus for stage in plan.stages), plan.entries if placed else 1)
    width, heads = max(entry + 1 + sum(sums) + 2, -(-most // 4)), asked.get("heads", 1)
    needed = {
        "features": 1,
        "outputs": 1,
        "depth": len(plan.stages) + placed,
        "width": -(-width // heads) * heads,
        "heads": heads,  # queries and keys are 0: all heads do the same
        "block": "serial",
        "positions": "sinusoidal" if placed else asked.get("positions", "none"),
    }
    shape = fitted(net, needed, asked)
    if shape is None:
        return None
    module: Any = blank(net, shape)
    stream = _Stream(module, shape, plan, entry)
    blocks = list(module.blocks)
    places = np.cumsum([entry + 1, *sums])
    first = np.arange(places[0], places[1])
    if placed:
        if not stream.weigh(blocks.pop(0), first):
            return None
        stream.average(blocks[0], first, first, np.ones(sums[0]), -plan.directions.sum(axis=1))
    else:
        stream.average(blocks[0], np.full(sums[0], entry), first, plan.directions[:, 0], np.zeros(sums[0]))
    for number, stage in enumerate(plan.stages):
        target = _ANSWER if number == len(plan.stages) - 1 else int(places[number + 1])
        stream.compute(blocks[number], stage, int(places[number]), target)
    stream.answer(module.read)
    units = sum(stage.relus for stage in plan.stages) + (plan.entries if placed else 0)
    depth = len(plan.stages) + placed
    known = {"predicted": plan.predicted, "at_most": plan.at_most}
    if placed:  # one more block, with a unit for each place
        more = {"units": plan.entries, "depth": 1}
        known = {side: {name: n + more[name] for name, n in counts.items()} for side, counts in known.items()}
    return Witness(plan.name, AsVector(module), _SOURCE, units, depth, shape, **known)


class _Stream:
    """What the residual stream holds before anything is written into it, and how it is read through a norm."""

    def __init__(self, module: Any, shape: Mapping[str, Any], plan: Plan, entry: int) -> None:
        self.plan, self.entry, self.width = plan, entry, shape["width"]
        self.table = np.zeros((plan.entries, self.width))
        if shape["positions"] == "sinusoidal":
            self.table = sinusoidal(plan.entries, self.width, torch.zeros((), dtype=torch.float64)).numpy()
        fixed = np.zeros(self.width)
        fixed[-2:] = plan.large, -plan.large
        self.spread = float(np.sqrt((self.table[-1] + fixed).var() + module.read[0].eps))
        put(module.embed.weight, np.eye(self.width, 1, -entry))
        put(module.embed.bias, fixed)

    def weigh(self, block: Any, write: np.ndarray) -> bool:
        """Unit t is 1 where the token is the t-th and its entry +1, else 0; it writes 2·(weights of entry t), which is
        weight·entry but for a constant. The last token's weights count half: it meets them twice, in its own
        coordinates and in the average. False where positions are too much alike."""
        plan, tokens = self.plan, self.plan.entries
        near = self.table[:, :2] @ self.table[:, :2].T
        off = ~np.eye(tokens, dtype=bool)
        apart = (near.diagonal()[:, None] - near)[off].min(initial=1.0)
        # Away from place t the argument has to fall by 2 or more, whatever the other coordinates add.
        sharpness = 9 / max(apart, 1e-9)
        rows = np.zeros((tokens, self.width))
        rows[:, :2] = sharpness * self.table[:, :2]
        rows[:, self.entry] = 1.0
        rows = _balanced(rows)
        levels = rows @ self.table.T
        fall = (levels.diagonal()[:, None] - levels)[off]
        if sharpness > 1e4 or fall.min(initial=2.0) < 2:
            return False
        weights = 2.0 * plan.directions
        weights[:, -1] /= 2
        put(block.mlp[0].weight, plan.sharp * self.spread * rows)
        put(block.mlp[0].bias, -plan.sharp * levels.diagonal())
        put(block.mlp[2].weight, weights / plan.sharp, row=int(write[0]))
        return True

    def average(
        self, block: Any, read: np.ndarray, write: np.ndarray, weights: np.ndarray, constant: np.ndarray
    ) -> None:
        """Adds Σ over tokens of weight·(what was written into `read`) + constant to the coordinates `write`."""
        rows = self._reader(read) * weights[:, None]
        put(block.project.weight, self.spread * rows, row=2 * self.width)  # below the rows of queries and keys
        put(block.combine.weight, self.plan.entries * np.eye(len(read)), row=int(write[0]))
        put(block.combine.bias, constant - (rows @ self.table.T).sum(axis=1), row=int(write[0]))

    def compute(self, block: Any, stage: Stage, place: int, target: int) -> None:
        sharp, rows = self.plan.sharp, self._reader(place + stage.group)
        put(block.mlp[0].weight, sharp * self.spread * rows)
        put(block.mlp[0].bias, -sharp * (stage.knots + rows @ self.table[-1]))
        put(block.mlp[2].weight, stage.write / sharp, row=target)
        put(block.mlp[2].bias, stage.shift, row=target)

    def answer(self, read: Any) -> None:
        rows = self._reader(np.array([_ANSWER]))
        put(read[1].weight, self.spread * rows)
        put(read[1].bias, -rows @ self.table[-1])

    def _reader(self, coordinates: np.ndarray) -> np.ndarray:
        return _balanced(np.eye(self.width)[coordinates])


def _balanced(rows: np.ndarray) -> np.ndarray:
    """Rows that sum to 0, so that no mean matters to them; the two large coordinates, added, are not large."""
    rows[:, -2:] -= rows.sum(axis=1, keepdims=True) / 2
    return rows
