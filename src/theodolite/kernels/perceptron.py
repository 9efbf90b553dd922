"""A whole training step of many perceptrons in two launches: every member forward and back, then AdamW of all weights;
in three where gradients are clipped.

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

_LEAST, _TILE, _HIGH = 16, 64, 32  # sides of tiles; products need 16
_ROWS, _OUTPUTS = 128, 128  # more do not fit beside the weights' tiles


class _Tiles(NamedTuple):
    """Rows, columns and terms of a product that a program takes at once, and its warps; those of the update."""

    rows: int
    wide: int
    deep: int
    warps: int
    update_warps: int


_TILES = {False: _Tiles(16, 32, 32, 2, 4), True: _Tiles(16, 64, 32, 4, 8)}  # wider than 32 or not


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
        self._wide = _power(max(self._features, *made), _TILE)
        parts = [part for layer in layers for part in (*layer.weight, *layer.bias)]
        self._known = (
            len(layers) > 1
            and self._outputs <= _OUTPUTS
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
        from theodolite.kernels.perceptron_triton import descend, through
        from theodolite.kernels.perceptron_triton import lengths as norms

        table, places = self._tables()
        members, rows, _ = inputs.shape
        inputs, targets, mask = inputs.contiguous(), targets.contiguous(), mask.contiguous().view(torch.uint8)
        held = inputs.new_empty(members, rows, self._width)
        lengths = inputs.new_empty(members)
        rule, how, clips, every = self._rule, precision(), self._rule.clip is not None, _power(rows, _ROWS)
        tiles = _TILES[self._wide > 32]
        with torch.cuda.device_of(inputs):
            through[(members, -(-rows // tiles.rows))](
                table, inputs, targets, mask, held, number, start, len(self._layers), rows, self._features,
                self._outputs, self._width, targets[0, 0].numel(), LOSS=self._loss, ROWS=tiles.rows, ALL=every,
                TILE=min(tiles.wide, self._wide), DEEP=tiles.deep, OUT=_power(self._outputs, _OUTPUTS), PRECISION=how,
                num_warps=tiles.warps,
            )  # fmt: skip
            if clips:
                norms[(members,)](
                    table, inputs, held, lengths, len(self._layers), rows, self._features, self._width, ALL=every,
                    DEEP=32, num_warps=8 if every > 32 else 4,
                )  # fmt: skip
            descend[(len(places) * members,)](
                table, places, inputs, held, lengths, number, lrs, decays, start, len(places), rows, self._features,
                self._width, rule.clip or 1.0, rule.epsilon, BETA1=rule.betas[0], BETA2=rule.betas[1],
                LOG1=log_beta(rule.betas[0]), LOG2=log_beta(rule.betas[1]), EARLY=rule.early_epsilon, CLIPS=clips,
                ROWS=every, HIGH=_HIGH, WIDE=self._wide, PRECISION=how, num_warps=tiles.update_warps,
            )  # fmt: skip

    def _tables(self) -> tuple[Tensor, Tensor]:
        """Layers, and tiles of their weights. Made in a step that is not captured: before a graph is, one step like it
        runs as it is."""
        if self._table is None:
            device = self._layers[0].bias.parameter.device
            self._table = torch.tensor(self._rows(), dtype=torch.int64, device=device)
            places = [
                (number, read, made)
                for number, layer in enumerate(self._layers)
                for read in range(0, layer.reads, _HIGH)
                for made in range(0, layer.makes, self._wide)
            ]
            self._places = torch.tensor(places, dtype=torch.int64, device=device)
        return self._table, self._places

    def _rows(self) -> list[tuple[int, ...]]:
        """What layers make stands first in a row of what is held, then the gradients, in the same order; outputs are
        needed for their gradient alone, and share its place."""
        rows, reads, hidden = [], 0, (self._width - self._outputs) // 2
        makes = 0
        for layer in self._layers:
            last = layer is self._layers[-1]
            back = hidden + makes
            addresses = [part.data_ptr() for part in (*layer.weight, *layer.bias)]
            rows.append((*addresses, layer.reads, layer.makes, reads, back if last else makes, back))
            reads, makes = makes, makes + layer.makes
        return rows


def _power(entries: int, most: int) -> int:
    """The next power of two from the least side of a tile to the largest."""
    return min(max(_LEAST, 1 << (entries - 1).bit_length()), most)
