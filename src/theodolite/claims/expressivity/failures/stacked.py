"""Several seeds of one small network as one program: stacked weights, the paper's optimisers, CUDA graphs on a GPU.

The optimisers are those of the TensorFlow the paper used. Its Adam adds ε to √v before the bias correction,
θ ← θ − lr·√(1−β₂ᵗ)/(1−β₁ᵗ) · m/(√v + ε), so that a large ε weighs more in the first steps than in torch's form.
"""

# pyright: reportPrivateImportUsage=false
# `torch._foreach_…` updates all weights in few kernels; `torch.optim` is built on it, and it has no public name.

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

Weights = dict[str, Tensor]
Batch = tuple[Tensor, ...]
Loss = Callable[[Mapping[str, Tensor], Batch], Tensor]  # one loss per member
Draw = Callable[[int], Batch]  # a block of batches, number of the batch first


@dataclass(frozen=True)
class Rule:
    name: Literal["sgd", "adam"]
    lr: float
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8

    def rate(self, step: int) -> float:
        """The step's factor; `step` counts from 1."""
        if self.name == "sgd":
            return self.lr
        return self.lr * (1 - self.betas[1] ** step) ** 0.5 / (1 - self.betas[0] ** step)


def truncated_normal(shape: Sequence[int], fan_in: int, generator: torch.Generator) -> Tensor:
    """Normal with deviation 1/√fan_in, redrawn beyond two deviations."""
    deviation = fan_in**-0.5
    empty = torch.empty(tuple(shape), device=generator.device)
    return nn.init.trunc_normal_(empty, 0.0, deviation, -2 * deviation, 2 * deviation, generator=generator)


def affine(name: str, members: int, inputs: int, outputs: int, generator: torch.Generator) -> Weights:
    """The weights of one fully connected layer per member, biases zero."""
    return {
        f"{name}.weight": truncated_normal((members, inputs, outputs), inputs, generator),
        f"{name}.bias": torch.zeros(members, 1, outputs, device=generator.device),
    }


def apply(weights: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    """(member, example, input) → (member, example, output)."""
    return torch.baddbmm(weights[f"{name}.bias"], x, weights[f"{name}.weight"])


def descend(
    weights: Weights, loss: Loss, rule: Rule, draw: Draw, looks: Sequence[int], block: int = 100
) -> Iterator[int]:
    """Train `weights` in place and come back at each number of steps in `looks`, in ascending order.

    Batches are drawn on the device, `block` at a time, so that a step costs no transfer and no synchronisation.
    """
    steps = _Steps(weights, loss, rule)
    done = 0
    for look in looks:
        while done < look:
            count = min(block, look - done)
            drawn = draw(count)
            for number in range(count):
                done += 1
                steps.take(tuple(part[number] for part in drawn), rule.rate(done))
        yield look


class _Steps:
    """One optimiser step, as it is or replayed from a CUDA graph that the second step was captured into."""

    def __init__(self, weights: Weights, loss: Loss, rule: Rule) -> None:
        self.leaves = {name: tensor.requires_grad_() for name, tensor in weights.items()}
        self.loss, self.rule = loss, rule
        parameters = list(self.leaves.values())
        self.device = parameters[0].device
        adam = rule.name == "adam"
        self.moments = [[torch.zeros_like(p) for p in parameters] for _ in range(2 if adam else 0)]
        self.rate = torch.zeros((), device=self.device)
        self.seen = False
        self.graph: torch.cuda.CUDAGraph | None = None
        self.held: Batch = ()

    def take(self, batch: Batch, rate: float) -> None:
        self.rate.fill_(rate)
        if self.device.type != "cuda":
            self._step(batch)
        elif not self.seen:
            self.seen = True
            stream = torch.cuda.Stream(self.device)
            stream.wait_stream(torch.cuda.current_stream(self.device))
            with torch.cuda.stream(stream):
                self._step(batch)
            torch.cuda.current_stream(self.device).wait_stream(stream)
        else:
            if self.graph is None:
                self._capture(batch)
            for held, part in zip(self.held, batch, strict=True):
                held.copy_(part)
            assert self.graph is not None
            self.graph.replay()

    def _capture(self, batch: Batch) -> None:
        self.held = tuple(part.clone() for part in batch)
        self.graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize(self.device)
        with torch.cuda.graph(self.graph):
            self._step(self.held)

    def _step(self, batch: Batch) -> None:
        parameters = list(self.leaves.values())
        gradients = torch.autograd.grad(self.loss(self.leaves, batch).sum(), parameters)
        with torch.no_grad():
            if self.rule.name == "sgd":
                change = torch._foreach_mul(gradients, self.rate)
            else:
                change = self._adam(gradients)
            torch._foreach_sub_(parameters, change)

    def _adam(self, gradients: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        first, second = self.moments
        beta1, beta2 = self.rule.betas
        torch._foreach_mul_(first, beta1)
        torch._foreach_add_(first, gradients, alpha=1 - beta1)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - beta2)
        below = torch._foreach_sqrt(second)
        torch._foreach_add_(below, self.rule.epsilon)
        change = torch._foreach_div(first, below)
        torch._foreach_mul_(change, self.rate)
        return tuple(change)


def hinge(scores: Tensor, signs: Tensor) -> Tensor:
    """max(0, 1 − y·score) averaged over all but the first dimension, the members."""
    return (1 - signs * scores).relu().flatten(1).mean(1)


def correct(scores: Tensor, signs: Tensor) -> Tensor:
    """The share of examples with the right sign, per member."""
    return (signs * scores > 0).flatten(1).float().mean(1)
