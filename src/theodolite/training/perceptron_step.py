"""A training step of plain perceptrons (linear layers with ReLU between) by kernels of its own, where they run."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from theodolite.kernels.launch import precision
from theodolite.kernels.perceptron import Layer, Moving, PerceptronDescent
from theodolite.kernels.update import Adam
from theodolite.nets.mlp import MLP
from theodolite.tasks.contract import Batch
from theodolite.training.cuda_graphs import Tensors
from theodolite.training.members import Members
from theodolite.training.optimiser import Corrections, Optimiser, clipped, move
from theodolite.training.scoring import losses
from theodolite.training.step import gradients_of

logger = logging.getLogger(__name__)

_TRIED = 2  # members
# Of moments, over their size, by how products are made. TF32 rounds on both sides, and a unit near 0 may go either way.
_APART = {"tf32x3": 1e-3, "tf32": 0.1}
_CLEAR, _MOVE, _SHARE = 0.3, 0.2, 0.02  # of the largest gradient, of the largest move, of the weights


class PerceptronSteps:
    """Of members that are such nets, with AdamW. `taken`: whether a step was.

    Before the first, one is tried on copies beside plain operations: a kernel that disagrees on this device is said and
    not used.
    """

    def __init__(self, members: Members, optimiser: Optimiser, layers: list[str], one_hot: Tensor | None) -> None:
        self._members, self._optimiser, self._layers, self._one_hot = members, optimiser, layers, one_hot
        self._descent = self._of([optimiser.parameters, *optimiser.moments])
        self._agrees: bool | None = None
        self.taken = False

    @classmethod
    def of(cls, members: Members, optimiser: Optimiser, one_hot: Tensor | None) -> PerceptronSteps | None:
        """None where the net or the optimiser is another."""
        layers = _linear_layers(members.module)
        if layers is None or optimiser.rule.name != "adamw" or members.pairing.task.spec.kind != "vector":
            return None
        trained = {f"{name}.{part}" for name in layers for part in ("weight", "bias")}
        return cls(members, optimiser, layers, one_hot) if trained == set(optimiser.parameters) else None

    def run(self, batch: Tensors, start: int, stop: int, number: Tensor) -> bool:
        """Members [start, stop) one step on, and `number` with them; False if that is left to the caller."""
        inputs = self._members.pairing.feed(batch[0], self._one_hot)
        if self._agrees is False or not self._descent.takes(inputs):
            return False
        if self._agrees is None and not self._try((inputs, *batch[1:3]), start, number):
            return False
        assert stop - start == len(inputs)
        self._descent.step(start, inputs, batch[1], batch[2], number, self._optimiser.lrs, self._optimiser.decays)
        self.taken = True
        return True

    def _of(self, places: Sequence[Mapping[str, Tensor]]) -> PerceptronDescent:
        """Of weights and their moments."""
        rule = self._optimiser.rule
        moving = lambda name: Moving(*(own[name] for own in places))
        layers = [Layer(moving(f"{name}.weight"), moving(f"{name}.bias")) for name in self._layers]
        adam = Adam(rule.betas, rule.epsilon, rule.early_epsilon, rule.clip)
        return PerceptronDescent(adam, layers, self._members.pairing.task.spec.loss)

    def _try(self, batch: Tensors, start: int, number: Tensor) -> bool:
        """One step of a few members by the kernel and by plain operations, both on copies."""
        own = slice(start, start + min(_TRIED, len(batch[0])))
        kept = [self._optimiser.parameters, *self._optimiser.moments]
        ours, theirs = ([{n: t.detach()[own].clone() for n, t in each.items()} for each in kept] for _ in range(2))
        part = Batch(*(t[: own.stop - start] for t in batch))
        lrs, decays = self._optimiser.lrs[own].clone(), self._optimiser.decays[own].clone()
        self._of(ours).step(0, part.inputs, part.targets, part.mask, number.clone(), lrs, decays)
        self._plainly(theirs, part, number, lrs, decays)
        apart = _APART[precision()]
        moments = max(_difference(*pair) for k in (1, 2) for pair in _pairs(ours[k], theirs[k]))
        moves = max(moved_otherwise(n, ours, theirs, {n: t[own] for n, t in kept[0].items()}) for n in kept[0])
        self._agrees = moments <= apart and moves <= _SHARE
        if not self._agrees:
            logger.warning(
                "the kernel of perceptrons disagrees with plain steps on this device (moments by %.1e of their size, "
                "%.1f %% of the weights): going on without it",
                moments,
                100 * moves,
            )
        return self._agrees

    def _plainly(
        self, places: Sequence[dict[str, Tensor]], batch: Batch, number: Tensor, lrs: Tensor, decays: Tensor
    ) -> None:
        rule, spec = self._optimiser.rule, self._members.pairing.task.spec
        weights = {n: p.requires_grad_() for n, p in places[0].items()}
        x = batch.inputs
        with torch.enable_grad():
            for place, name in enumerate(self._layers):
                x = (x.relu() if place else x) @ weights[f"{name}.weight"].mT + weights[f"{name}.bias"][:, None]
            gradients = gradients_of(losses(spec, x, batch), list(weights.values()))
        with torch.no_grad():
            gradients = gradients if rule.clip is None else clipped(gradients, rule.clip)
            moments = [list(each.values()) for each in places[1:]]
            correct = Corrections.on_device(number, self._optimiser.log_betas)
            move(rule, [p.detach() for p in weights.values()], gradients, moments, lrs, decays, correct)


def _pairs(ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor]) -> list[tuple[Tensor, Tensor]]:
    return [(ours[name].detach(), theirs[name].detach()) for name in ours]


def moved_otherwise(
    name: str,
    ours: Sequence[Mapping[str, Tensor]],
    theirs: Sequence[Mapping[str, Tensor]],
    before: Mapping[str, Tensor],
) -> float:
    """The share of weights, among those whose gradient is more than rounding: Adam divides the others' by its size,
    whatever that is."""
    (mine, plain), mean = (each[0][name].detach() for each in (ours, theirs)), theirs[1][name]
    clear = mean.abs() >= _CLEAR * mean.abs().max()
    otherwise = (mine - plain).abs() > _MOVE * (plain - before[name].detach()).abs().max()
    return float((otherwise & clear).sum() / clear.sum().clamp_min(1))


def _difference(mine: Tensor, plain: Tensor) -> float:
    """Root mean square, over that of the plain one; what is no number on both sides is none."""
    size = plain.nan_to_num().norm().clamp_min(torch.finfo(plain.dtype).tiny)
    return float(((mine - plain).nan_to_num(torch.inf).where(~(mine.isnan() & plain.isnan()), 0) / size).norm())


def _linear_layers(module: nn.Module) -> list[str] | None:
    """The names of linear layers that follow each other with ReLU between, or None if the net is anything else. Hooks
    and subclasses may do more than their names say."""
    inside, prefix = (module.layers, "layers.") if type(module) is MLP else (module, "")
    if type(inside) is not nn.Sequential or len(inside) % 2 == 0:
        return None
    kinds = [nn.ReLU if place % 2 else nn.Linear for place in range(len(inside))]
    plain = all(type(part) is kind for part, kind in zip(inside, kinds, strict=True))
    if not plain or any(_hooked(part) for part in (module, inside, *inside)):
        return None
    linear = {name: part for name, part in inside.named_children() if isinstance(part, nn.Linear)}
    return [prefix + name for name in linear] if all(part.bias is not None for part in linear.values()) else None


def _hooked(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks)
