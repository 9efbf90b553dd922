"""The training loop: stacked weights, a loss for each member, batches drawn in blocks, looks in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.training.cuda_graphs import Tensors
from theodolite.training.optimiser import Optimiser, Rates, Rule
from theodolite.training.schedules import RateSchedule
from theodolite.training.step import After, Before, Loss, LossGradients, Step, Weights

Batches = Callable[[int], Tensors]  # so many batches, one after another along the first axis
Look = Callable[[int, Weights], bool | None]  # the number of steps taken and the weights; True ends the training


def train(
    weights: Weights,
    loss: Loss,
    batches: Batches | None = None,
    *,
    steps: int,
    rule: Rule,
    rates: Rates | Sequence[Rates],
    schedule: RateSchedule | None = None,
    before: Before | None = None,
    after: After | None = None,
    looks: Iterable[int] = (),
    look: Look | None = None,
    block: int = 100,
    graphs: bool = True,
) -> Weights:
    """The weights after `steps` steps; those passed in are left alone.

    Parameters:
        weights: by name, (member, …); the device is theirs
        loss: of weights and one batch, one number per member
        batches: draws the next batches on the device, at most `block` at once, so that a step costs no transfer; None
            where the loss needs none
        rates: of every member, or common to all
        schedule: factor of the learning rate at steps 1, 2, …
        before, after: what is done to gradients and weights around the update, see `Step`
        look: called after the numbers of steps in `looks`, which ascend from 0 on; may draw, and end the training
        graphs: on CUDA a step is captured as a graph; False for losses that wait for the device

    Examples:
        >>> start = {"w": torch.zeros(2, 1)}
        >>> found = train(start, lambda w, _: (w["w"][:, 0] - 3) ** 2, steps=200, rule=Rule("sgd"), rates=Rates(0.1))
        >>> found["w"].round().tolist()
        [[3.0], [3.0]]
    """
    if steps < 0:
        raise BadInput(f"training needs 0 or more steps, not {steps}")
    weights = {name: w.detach().clone(memory_format=torch.contiguous_format) for name, w in weights.items()}
    members = len(next(iter(weights.values())))
    own = [rates] * members if isinstance(rates, Rates) else list(rates)
    factors = [1.0 if schedule is None else schedule(number) for number in range(1, steps + 1)]
    gradients = LossGradients(weights, lambda w, batch, *_: loss(w, batch))
    step = Step(Optimiser(rule, own, weights), gradients, factors=factors, before=before, after=after, graphs=graphs)
    step.begin(1)
    done, asked = 0, set(looks)
    for stop in sorted({*asked, steps}):
        while done < stop:
            count = min(block, stop - done)
            drawn = batches(count) if batches is not None else ()
            for number in range(count):
                done += 1
                step.take([tuple(part[number] for part in drawn)], 0, members)
        if look is not None and stop in asked and look(done, weights):
            break
    return weights


class Best:
    """The weights of every member with the least score so far; what is no number is never the least."""

    def __init__(self, weights: Weights) -> None:
        self.weights = {name: w.detach().clone() for name, w in weights.items()}
        first = next(iter(weights.values()))
        self.score = torch.full((len(first),), math.inf, device=first.device, dtype=first.dtype)

    def offer(self, weights: Weights, score: Tensor) -> None:
        better = score < self.score
        self.score = torch.where(better, score, self.score)
        for name, kept in self.weights.items():
            kept.copy_(torch.where(better.view(-1, *[1] * (kept.dim() - 1)), weights[name].detach(), kept))


def in_turn(*steps: Tensor) -> Batches:
    """The batches of all steps, which are known before and stand along the first axis."""
    done = 0

    def batches(count: int) -> Tensors:
        nonlocal done
        done += count
        return tuple(part[done - count : done] for part in steps)

    return batches


def singly(draw: Callable[[], Tensors]) -> Batches:
    """Blocks of batches that are drawn one by one."""
    return lambda count: tuple(torch.stack(parts) for parts in zip(*(draw() for _ in range(count)), strict=True))
