"""Smooth networks fitted to the same rows, each without a fold of its own, all in one batched program."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import gelu

from theodolite.training.loop import Best, singly, train
from theodolite.training.optimiser import Rates, Rule
from theodolite.training.schedules import cosine
from theodolite.training.step import Weights

BATCH = 256
CHUNK = 1 << 13
RULE, RATE, WARM_UP = Rule(betas=(0.9, 0.99), clip=None), 5e-3, 100
LOOKS = 20  # times that the held-out rows are looked at: the best weights of each member are kept


@dataclass(frozen=True)
class Ensemble:
    """Perceptrons of GELU units, layer by layer as stacked weights (member, in, out) and biases (member, 1, out)."""

    layers: tuple[tuple[Tensor, Tensor], ...]

    @property
    def members(self) -> int:
        return len(self.layers[0][0])

    @property
    def chunk(self) -> int:
        """Rows to pass at once."""
        return CHUNK

    def outputs(self, rows: Float[Tensor, "member row variable"]) -> Float[Tensor, "member row"]:
        hidden = rows.to(self.layers[0][0].dtype)
        for index, (weight, bias) in enumerate(self.layers):
            hidden = torch.baddbmm(bias, hidden if index == 0 else gelu(hidden), weight)
        return hidden[..., 0]

    def everywhere(self, rows: Float[Tensor, "row variable"]) -> Float[Tensor, "member row"]:
        """Every member's output at the same rows."""
        return self.outputs(rows.expand(self.members, *rows.shape))

    def slopes(self, rows: Float[Tensor, "row variable"]) -> Float[Tensor, "member row variable"]:
        double = Ensemble(tuple((weight.double(), bias.double()) for weight, bias in self.layers))
        return slopes_of(double.outputs, self.members, rows)

    def only(self, chosen: Sequence[int]) -> Ensemble:
        return Ensemble(tuple((weight[list(chosen)], bias[list(chosen)]) for weight, bias in self.layers))


def slopes_of(
    outputs: Callable[[Tensor], Tensor], members: int, rows: Float[Tensor, "row variable"]
) -> Float[Tensor, "member row variable"]:
    """Of functions of (member, row, variable), by the way back."""
    leaf = rows.expand(members, *rows.shape).clone().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(outputs(leaf).sum(), leaf)[0]


def train_ensemble(
    rows: Float[Tensor, "row variable"],
    targets: Float[Tensor, " row"],
    folds: Int[Tensor, " row"],
    generator: torch.Generator,
    *,
    width: int = 64,
    depth: int = 2,
    steps: int = 1000,
) -> Ensemble:
    """Member m learns from the rows outside fold m, which judge it: the weights kept are those with the least error
    there. Adam on the mean square, the rate warms up and decays as a cosine."""
    members = int(folds.max()) + 1
    start = _drawn(members, [rows.shape[1], *([width] * depth), 1], generator)
    held, weight = _own(folds, members)
    order = _passes(_others(folds, members), generator)
    best = Best(start)

    def loss(weights: Mapping[str, Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        return ((_ensemble(weights).outputs(rows[batch[0]]) - targets[batch[0]]) ** 2).mean(1)

    def look(_: int, weights: Weights) -> None:
        with torch.no_grad():
            missed = (_ensemble(weights).outputs(rows[held]) - targets[held]) ** 2
        best.offer(weights, (weight * missed).sum(1) / weight.sum(1))

    train(
        start,
        loss,
        singly(lambda: (next(order),)),
        steps=steps,
        rule=RULE,
        rates=Rates(RATE),
        schedule=cosine(steps, WARM_UP),
        looks=[step for step in range(1, steps + 1) if step * LOOKS // steps > (step - 1) * LOOKS // steps],
        look=look,
    )
    return _ensemble(best.weights)


def _ensemble(weights: Mapping[str, Tensor]) -> Ensemble:
    layers = range(len(weights) // 2)
    return Ensemble(tuple((weights[f"{layer}.weight"], weights[f"{layer}.bias"]) for layer in layers))


def _passes(taught: Int[Tensor, "member row"], generator: torch.Generator) -> Iterator[Int[Tensor, "member batch"]]:
    """Batches of rows, shuffled for every member, pass after pass."""
    batch = min(BATCH, taught.shape[1])
    while True:
        order = taught.gather(1, torch.rand(taught.shape, generator=generator).argsort(1))
        for place in range(taught.shape[1] // batch):
            yield order[:, place * batch : (place + 1) * batch]


def _drawn(members: int, sizes: list[int], generator: torch.Generator) -> Weights:
    weights = {}
    for layer, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        last = fan_out == 1
        weight = torch.randn(members, fan_in, fan_out, generator=generator) * ((0.3 if last else 1) / math.sqrt(fan_in))
        # biases spread the units' bends over the inputs; the target is centred, so the output starts there
        bias = torch.zeros(members, 1, 1) if last else torch.rand(members, 1, fan_out, generator=generator) * 2 - 1
        weights |= {f"{layer}.weight": weight, f"{layer}.bias": bias}
    return weights


def _others(folds: Tensor, members: int) -> Int[Tensor, "member row"]:
    """The rows outside each fold, as many for every member."""
    lists = [torch.nonzero(folds != member)[:, 0] for member in range(members)]
    shortest = min(len(rows) for rows in lists)
    return torch.stack([rows[:shortest] for rows in lists])


def _own(folds: Tensor, members: int) -> tuple[Int[Tensor, "member row"], Float[Tensor, "member row"]]:
    """The rows of each fold, filled up to the longest, and a weight of 0 for what fills."""
    lists = [torch.nonzero(folds == member)[:, 0] for member in range(members)]
    longest = max(len(rows) for rows in lists)
    filled = torch.stack([torch.cat([rows, rows[:1].expand(longest - len(rows))]) for rows in lists])
    weight = torch.stack([(torch.arange(longest) < len(rows)).float() for rows in lists])
    return filled, weight
