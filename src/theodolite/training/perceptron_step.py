"""A training step of plain perceptrons (linear layers with ReLU between) by kernels of its own, where they run."""

from __future__ import annotations

from torch import Tensor, nn

from theodolite.kernels.perceptron import Layer, Moving, PerceptronDescent
from theodolite.kernels.update import Adam
from theodolite.nets.mlp import MLP
from theodolite.training.cuda_graphs import Tensors
from theodolite.training.members import Members
from theodolite.training.optimiser import Optimiser


class PerceptronSteps:
    """Of members that are such nets, with AdamW. `taken`: whether a step was."""

    def __init__(self, members: Members, optimiser: Optimiser, layers: list[str], one_hot: Tensor | None) -> None:
        self._members, self._optimiser, self._one_hot = members, optimiser, one_hot
        self.taken = False
        rule = Adam(*(getattr(optimiser.rule, name) for name in ("betas", "epsilon", "early_epsilon", "clip")))
        moving = lambda name: Moving(*(own[name] for own in (optimiser.parameters, *optimiser.moments)))
        places = [Layer(moving(f"{name}.weight"), moving(f"{name}.bias")) for name in layers]
        self._descent = PerceptronDescent(rule, places, members.pairing.task.spec.loss)

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
        if not self._descent.takes(inputs):
            return False
        assert stop - start == len(inputs)
        self._descent.step(start, inputs, batch[1], batch[2], number, self._optimiser.lrs, self._optimiser.decays)
        self.taken = True
        return True


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
