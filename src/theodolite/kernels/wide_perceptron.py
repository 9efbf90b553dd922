"""A training step of many perceptrons that are too wide for one program each: a launch for every layer forward, for
every layer back, and for the step of each.

As in `perceptron` no gradient of a weight is written: it is made, tile by tile, where AdamW uses it, so that a step
moves the weights and moments themselves and little else.
"""

# pyright: reportCallIssue=false

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from theodolite.kernels.launch import precision, usable
from theodolite.kernels.perceptron import Layer, in_order, power_of_two
from theodolite.kernels.product import batched_product
from theodolite.kernels.update import Adam, log_beta

_NARROWEST, _WIDEST, _ROWS, _OUTPUTS = 33, 1024, 128, 64
_READ, _MADE, _WARPS = 64, 32, 4  # sides of a tile of weights that a program moves


class WidePerceptronDescent:
    """Of layers with ReLU between, two or more, whose parameters and moments are written in place and stay where they
    are. `loss` is a task's: cross-entropy, hinge or square."""

    def __init__(self, rule: Adam, layers: Sequence[Layer], loss: str) -> None:
        self._rule, self._layers, self._loss = rule, list(layers), loss
        widest = max(max(layer.reads, layer.makes) for layer in layers)
        self._known = (
            len(layers) > 1
            and _NARROWEST <= widest <= _WIDEST
            and layers[-1].makes <= _OUTPUTS
            and in_order(self._layers)
        )

    def takes(self, inputs: Tensor) -> bool:
        """Whether a step on these (member, row, feature) can be taken; not in bfloat16."""
        few = inputs.dim() == 3 and inputs.shape[1] <= _ROWS
        return self._known and few and inputs.dtype == torch.float32 and usable(inputs) and precision() != "bf16"

    def step(
        self, start: int, inputs: Tensor, targets: Tensor, mask: Tensor, number: Tensor, lrs: Tensor, decays: Tensor
    ) -> None:
        """Of members from `start` on, as many as have inputs; `number` of the step, which is counted on, and the rates
        of all members are on the device."""
        own = slice(start, start + len(inputs))
        with torch.cuda.device_of(inputs):
            read = self._forward(own, inputs.contiguous())
            gradients = self._backward(own, read, targets.contiguous(), mask.contiguous().view(torch.uint8))
            scale = None if self._rule.clip is None else self._scale(read, gradients, self._rule.clip)
            pace = self._count_on(number)
            for layer, x, g in zip(self._layers, read, gradients, strict=True):
                self._move(layer, start, x, g, scale, pace, lrs, decays)

    def _forward(self, own: slice, inputs: Tensor) -> list[Tensor]:
        """What every layer reads, (member, row, entry)."""
        from theodolite.kernels.product_triton import launch

        read = [inputs]
        for layer in self._layers[:-1]:
            x, weight = read[-1], layer.weight.parameter[own]
            made = x.new_empty(*x.shape[:2], layer.makes)
            launch(x, weight.mT, made, precision(), bias=layer.bias.parameter[own], relu="found")
            read.append(made)
        return read

    def _backward(self, own: slice, read: Sequence[Tensor], targets: Tensor, mask: Tensor) -> list[Tensor]:
        """The gradient of what every layer makes, before its ReLU."""
        from theodolite.kernels.product_triton import launch
        from theodolite.kernels.wide_perceptron_triton import last_layer

        last, x = self._layers[-1], read[-1]
        members, rows, _ = x.shape
        at_outputs, back = x.new_empty(members, rows, last.makes), torch.empty_like(x)
        last_layer[(members,)](
            x, last.weight.parameter[own], last.bias.parameter[own], targets, mask, at_outputs, back, rows,
            targets[0, 0].numel(), inner=last.reads, count=last.makes, LOSS=self._loss, ROWS=power_of_two(rows),
            DEEP=32, OUT=power_of_two(last.makes), PRECISION=precision(), num_warps=4,
        )  # fmt: skip
        gradients = [at_outputs, back]
        for place in range(len(self._layers) - 2, 0, -1):
            back = torch.empty_like(read[place])
            weight = self._layers[place].weight.parameter[own]
            launch(gradients[-1], weight, back, precision(), slopes=read[place], relu="slopes")
            gradients.append(back)
        return gradients[::-1]

    @staticmethod
    def _scale(read: Sequence[Tensor], gradients: Sequence[Tensor], clip: float) -> Tensor:
        """Of each member's gradient. A layer's is Σ_r x_r g_rᵀ, whose square is Σ_rs (x_r·x_s)(g_r·g_s); a bias reads a
        one."""
        gram = lambda rows: batched_product(rows, rows.mT, "tf32x3")
        square = sum(((gram(x) + 1) * gram(g)).sum((1, 2)) for x, g in zip(read, gradients, strict=True))
        assert isinstance(square, Tensor)
        return (clip / (square.clamp_min(0).sqrt() + 1e-6)).clamp_max(1.0)

    def _count_on(self, number: Tensor) -> Tensor:
        """What the moments are corrected by in this step, once for all."""
        from theodolite.kernels.wide_perceptron_triton import count_on

        pace = number.new_empty(2)
        count_on[(1,)](number, pace, *map(log_beta, self._rule.betas), num_warps=1)
        return pace

    def _move(
        self,
        layer: Layer,
        start: int,
        x: Tensor,
        g: Tensor,
        scale: Tensor | None,
        pace: Tensor,
        lrs: Tensor,
        decays: Tensor,
    ) -> None:
        from theodolite.kernels.wide_perceptron_triton import move_layer

        rule, (members, rows, _) = self._rule, x.shape
        read, made = min(_READ, power_of_two(layer.reads)), min(_MADE, power_of_two(layer.makes))
        tiles = -(-layer.reads // read) * -(-layer.makes // made)
        move_layer[(members * tiles,)](
            *layer.weight, *layer.bias, x, g, scale, pace, lrs, decays, start, rows, rule.epsilon,
            inner=layer.reads, outer=layer.makes, BETA1=rule.betas[0], BETA2=rule.betas[1],
            EARLY=rule.early_epsilon, ROWS=power_of_two(rows), READ=read, MADE=made, PRECISION=precision(),
            num_warps=_WARPS,
        )  # fmt: skip
