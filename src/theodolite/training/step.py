"""One step of descent: gradients, the optimiser's update and what is done around it; on CUDA one captured graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from theodolite.kernels.launch import fusing
from theodolite.training.cuda_graphs import CapturedSteps, Tensors
from theodolite.training.optimiser import Corrections, Optimiser, Pace

Weights = dict[str, Tensor]  # (member, …)
Loss = Callable[[Mapping[str, Tensor], Tensors], Tensor]  # of weights and a batch: one per member
Gradients = Callable[[Tensors, int, int], list[Tensor]]  # of a batch, for members [start, stop)
StepSize = Callable[[str], float | Tensor]  # of every entry of these weights
Before = Callable[[Weights, list[Tensor], float | Tensor], list[Tensor]]  # weights, gradients, learning rate
After = Callable[[Weights, StepSize], None]
StepProgram = Callable[[Tensors, int, int, Tensor], bool]  # a step at this number; whether it was taken


class Step:
    """`before` changes gradients before the update, or weights in place; `after` changes the weights in place. Both
    are part of what is captured. `factors` of the learning rate are those of steps 1, 2, … where they are known.
    The first of `programs` that can takes the whole step, without hooks."""

    def __init__(
        self,
        optimiser: Optimiser,
        gradients: Gradients,
        *,
        factors: Sequence[float] | None = None,
        before: Before | None = None,
        after: After | None = None,
        graphs: bool = False,
        programs: Sequence[StepProgram] = (),
    ) -> None:
        self.optimiser, self._gradients, self._programs = optimiser, gradients, programs
        self._before, self._after = before, after
        like = next(iter(optimiser.parameters.values()))
        device = like.device
        self._number = torch.zeros((), device=device)
        self._factors = factors
        self._steady = factors is not None and all(factor == 1.0 for factor in factors)
        if factors is not None and device.type == "cuda":
            betas = optimiser.rule.betas
            rows = [(factor, *Corrections.at(betas, number)) for number, factor in enumerate(factors, start=1)]
            self._table = torch.tensor([(0.0, 0.0, 0.0), *rows], dtype=like.dtype, device=device)
        self.captured = CapturedSteps(device) if graphs and device.type == "cuda" else None

    @property
    def fixed_shapes(self) -> bool:
        """Whether every new shape of a batch costs time once."""
        return self.captured is not None or bool(self._programs)

    def begin(self, number: int) -> None:
        """The next step to be taken is number `number`, from 1; those after it count on."""
        self._number.fill_(number)

    def take(self, batches: Sequence[Tensors], start: int, stop: int) -> None:
        """One step of members [start, stop) for each of the batches, which are alike in shape."""
        if self.captured is None:
            self._run(batches, start, stop)
        else:
            self.captured.run((start, stop), batches, lambda held: self._run(held, start, stop))

    def _run(self, batches: Sequence[Tensors], start: int, stop: int) -> None:
        with fusing():
            for batch in batches:
                if not any(program(batch, start, stop, self._number) for program in self._programs):
                    self._run_one(batch, start, stop)

    def _run_one(self, batch: Tensors, start: int, stop: int) -> None:
        gradients = self._gradients(batch, start, stop)
        optimiser, pace = self.optimiser, self._pace()
        with torch.no_grad():
            if self._before is not None:
                gradients = self._before(self._weights(start, stop), gradients, optimiser.lr(start, stop, pace.factor))
            optimiser.update(start, stop, gradients, pace)
            if self._after is not None:
                size = lambda name: optimiser.step_size(name, start, stop, pace)
                self._after(self._weights(start, stop), size)
            self._number.add_(1)

    def _pace(self) -> Pace:
        if self._factors is None:
            return Pace(self._number)
        if not self._number.is_cuda:
            return Pace(self._number, self._factors[int(self._number) - 1])
        factor, *known = self._table.index_select(0, self._number.long().view(1)).squeeze(0).unbind()
        return Pace(self._number, 1.0 if self._steady else factor, Corrections(*known))

    def _weights(self, start: int, stop: int) -> Weights:
        return {n: p.detach()[start:stop] for n, p in self.optimiser.parameters.items()}


class LossGradients:
    """Gradients of losses by the stacked weights. Members know nothing of each other, so the sum's are each one's."""

    def __init__(self, weights: Weights, loss: Callable[[Weights, Tensors, int, int], Tensor]) -> None:
        self._weights, self._loss = weights, loss
        self._leaves: dict[tuple[int, int], Weights] = {}

    def __call__(self, batch: Tensors, start: int, stop: int) -> list[Tensor]:
        leaves = self._leaves.get((start, stop))
        if leaves is None:
            leaves = {n: p[start:stop].detach().requires_grad_() for n, p in self._weights.items()}
            self._leaves[start, stop] = leaves
        return gradients_of(self._loss(leaves, batch, start, stop), list(leaves.values()))


def gradients_of(losses: Tensor, weights: Sequence[Tensor]) -> list[Tensor]:
    """Of the sum; zeros for weights that the losses do not depend on. Casts are those of the way there: none is added
    on the way back."""
    with torch.autocast(losses.device.type, enabled=False):
        found = torch.autograd.grad(losses.sum(), weights, allow_unused=True)
    return [torch.zeros_like(w) if g is None else g for g, w in zip(found, weights, strict=True)]
