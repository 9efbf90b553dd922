"""Smooth networks fitted to the same rows, each without a fold of its own, all in one batched program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import gelu

BATCH = 256
CHUNK = 1 << 13
RATE, WARM_UP = 5e-3, 100
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

    def only(self, chosen: Sequence[int]) -> Ensemble:
        return Ensemble(tuple((weight[list(chosen)], bias[list(chosen)]) for weight, bias in self.layers))

    def double(self) -> Ensemble:
        return Ensemble(tuple((weight.double(), bias.double()) for weight, bias in self.layers))


def train_ensemble(
    rows: Float[Tensor, "row variable"],
    targets: Float[Tensor, " row"],
    folds: Int[Tensor, " row"],
    generator: torch.Generator,
    *,
    width: int = 64,
    depth: int = 2,
    steps: int = 1000,
    progress: Callable[[int, int], None] | None = None,
) -> Ensemble:
    """Member m learns from the rows outside fold m, which judge it: the weights kept are those with the least error
    there. Adam on the mean square, the rate warms up and decays as a cosine."""
    members = int(folds.max()) + 1
    sizes = [rows.shape[1], *([width] * depth), 1]
    parameters = _drawn(members, sizes, generator)
    optimiser = torch.optim.Adam([p for pair in parameters for p in pair], lr=RATE, betas=(0.9, 0.99), fused=True)
    taught = _others(folds, members)
    held, weight = _own(folds, members)
    batch = min(BATCH, taught.shape[1])
    a_pass = taught.shape[1] // batch
    best = Ensemble(tuple((w.detach().clone(), b.detach().clone()) for w, b in parameters))
    lowest = torch.full((members,), math.inf)
    order = taught
    for step in range(steps):
        place = step % a_pass
        if place == 0:
            shuffled = torch.rand(taught.shape, generator=generator).argsort(1)
            order = taught.gather(1, shuffled)
        drawn = order[:, place * batch : (place + 1) * batch]
        optimiser.param_groups[0]["lr"] = (
            RATE * min(1.0, (step + 1) / WARM_UP) * 0.5 * (1 + math.cos(math.pi * step / steps))
        )
        loss = ((Ensemble(parameters).outputs(rows[drawn]) - targets[drawn]) ** 2).mean(1).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if (step + 1) * LOOKS // steps > step * LOOKS // steps:
            with torch.no_grad():
                now = Ensemble(parameters)
                error = (weight * (now.outputs(rows[held]) - targets[held]) ** 2).sum(1) / weight.sum(1)
                best = _better(best, now, error < lowest)
                lowest = torch.minimum(lowest, error)
            if progress is not None:
                progress(step + 1, steps)
    return best


def _drawn(members: int, sizes: list[int], generator: torch.Generator) -> tuple[tuple[Tensor, Tensor], ...]:
    layers = []
    for fan_in, fan_out in pairwise(sizes):
        last = fan_out == 1
        weight = torch.randn(members, fan_in, fan_out, generator=generator) * ((0.3 if last else 1) / math.sqrt(fan_in))
        # biases spread the units' bends over the inputs; the target is centred, so the output starts there
        bias = torch.zeros(members, 1, 1) if last else torch.rand(members, 1, fan_out, generator=generator) * 2 - 1
        layers.append((weight.requires_grad_(), bias.requires_grad_()))
    return tuple(layers)


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


def _better(best: Ensemble, now: Ensemble, improved: Tensor) -> Ensemble:
    choose = improved[:, None, None]
    return Ensemble(
        tuple(
            (torch.where(choose, w, old_w).detach().clone(), torch.where(choose, b, old_b).detach().clone())
            for (w, b), (old_w, old_b) in zip(now.layers, best.layers, strict=True)
        )
    )
