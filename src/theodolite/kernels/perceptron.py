"""A whole training step of many small perceptrons in one launch: forward, back, clipping and AdamW.

The gradient of a weight is a product over the rows of a batch, which are few, so it is made where it is used and never
written to memory; nor does clipping need it, since its length follows from products of rows.
"""

# pyright: reportCallIssue=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from theodolite.kernels.launch import precision, usable
from theodolite.kernels.update import Adam, log_beta, order_of

_LEAST = 16  # side of a tile: products need it
_WIDEST, _ROWS = 32, 128  # at 64 units products of all members at once are as fast


class _Tiles(NamedTuple):
    """Columns and terms of a product that a program takes at once, its warps, and registers of a thread at most."""

    wide: int
    deep: int
    warps: int
    registers: int | None = None


class Moving(NamedTuple):
    """A stacked parameter (member, …) with Adam's two moments."""

    parameter: Tensor
    mean: Tensor
    square: Tensor


@dataclass(frozen=True)
class Layer:
    """x Wᵀ + b; the weight is (member, made, read), and (member, read, made) in memory."""

    weight: Moving
    bias: Moving

    @property
    def reads(self) -> int:
        return self.weight.parameter.shape[2]

    @property
    def makes(self) -> int:
        return self.weight.parameter.shape[1]


class PerceptronDescent:
    """Of layers with ReLU between, two or more, whose parameters and moments are written in place and stay where they
    are. `loss` is a task's: cross-entropy, hinge or square."""

    def __init__(self, rule: Adam, layers: Sequence[Layer], loss: str) -> None:
        self._rule, self._layers, self._loss = rule, list(layers), loss
        made = [layer.makes for layer in layers]
        self._features, self._outputs, hidden = layers[0].reads, made[-1], sum(made[:-1])
        self._width = 2 * hidden + self._outputs  # of what is held of a row: what layers make, and its gradient
        self._table: Tensor | None = None
        self._done: Tensor | None = None
        self._wide = max(self._features, *made)
        parts = [part for layer in layers for part in (*layer.weight, *layer.bias)]
        self._known = (
            len(layers) > 1
            and self._wide <= _WIDEST
            and all(part.dtype == torch.float32 and part.device == parts[0].device for part in parts)
            and all(order_of(part.mT) == "rows" for layer in layers for part in layer.weight)
            and all(order_of(part) == "rows" for layer in layers for part in layer.bias)
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
        from theodolite.kernels.perceptron_triton import descend

        if self._table is None:  # in a step that is not captured: before a graph is, one like it runs as it is
            self._table = torch.tensor(self._rows(), dtype=torch.int64, device=inputs.device)
            self._done = torch.zeros((), dtype=torch.int32, device=inputs.device)
        members, rows, _ = inputs.shape
        inputs, targets, mask = inputs.contiguous(), targets.contiguous(), mask.contiguous().view(torch.uint8)
        held = inputs.new_empty(members, rows, self._width)
        rule, high = self._rule, _power(rows)
        tiles = _tiles(high, max(layer.makes for layer in self._layers))
        with torch.cuda.device_of(inputs):
            descend[(members,)](
                self._table, inputs, targets, mask, held, number, self._done, lrs, decays, start, len(self._layers),
                rows, self._features, self._outputs, self._width, targets[0, 0].numel(), rule.clip or 1.0, rule.epsilon,
                BETA1=rule.betas[0], BETA2=rule.betas[1], LOG1=log_beta(rule.betas[0]), LOG2=log_beta(rule.betas[1]),
                EARLY=rule.early_epsilon, CLIPS=rule.clip is not None, LOSS=self._loss, ROWS=high,
                TILE=tiles.wide, DEEP=tiles.deep, OUT=_power(self._outputs), PRECISION=precision(),
                num_warps=tiles.warps, maxnreg=tiles.registers,
            )  # fmt: skip

    def _rows(self) -> list[tuple[int, ...]]:
        """What layers make stands first in a row of what is held, then the gradients, in the same order; outputs are
        needed for their gradient alone, and share its place."""
        rows, reads, makes, hidden = [], 0, 0, (self._width - self._outputs) // 2
        for layer in self._layers:
            last = layer is self._layers[-1]
            back = hidden + makes
            addresses = [part.data_ptr() for part in (*layer.weight, *layer.bias)]
            rows.append((*addresses, layer.reads, layer.makes, reads, back if last else makes, back))
            reads, makes = makes, makes + layer.makes
        return rows


def _power(entries: int) -> int:
    """The next power of two that is the side of a tile."""
    return max(_LEAST, 1 << (entries - 1).bit_length())


def _tiles(rows: int, widest: int) -> _Tiles:
    """Of up to 32 rows four programs with 128 registers a thread stand on a processor side by side: 512 members at once
    on 128 of them. More rows need more registers."""
    return _Tiles(_power(widest), 16, 4, 128) if rows <= 32 else _Tiles(_power(widest), 16, 8)
