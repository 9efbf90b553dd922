"""AdamW's update of all stacked parameters in one launch, whatever the rates of the members.

Gradients are put side by side, in one launch, and their lengths for clipping taken there, in another. Parameters and
moments stay where they are: a table on the device names every block of their entries.
"""

# pyright: reportCallIssue=false

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from theodolite.kernels.launch import usable

_SIDE = 32  # a block is this squared: a stretch of memory, or a square where the gradient is transposed


@dataclass(frozen=True)
class Adam:
    """What all members share. With `clip` each member's gradient is scaled to at most that length."""

    betas: tuple[float, float]
    epsilon: float
    early_epsilon: bool
    clip: float | None


class AdamUpdate:
    """Of these parameters and their moments, (member, …), which are written in place and must stay where they are."""

    def __init__(
        self, rule: Adam, parameters: Sequence[Tensor], first: Sequence[Tensor], second: Sequence[Tensor]
    ) -> None:
        self._rule = rule
        self._places = list(zip(parameters, first, second, strict=True))  # holds the memory that tables point to
        self._tables: dict[tuple[bool, ...], Tensor] = {}
        self._known = all(
            t.dtype == torch.float32
            and t.device == parameters[0].device
            and order_of(t)
            and order_of(t) == order_of(place[0])
            for place in self._places
            for t in place
        )

    def usable(self) -> bool:
        """Whether the kernel can run. A matrix may be transposed in memory, but members lie one after another."""
        return self._known and usable(self._places[0][0])

    def step(self, start: int, gradients: Sequence[Tensor], number: Tensor, lrs: Tensor, decays: Tensor) -> None:
        """Of members from `start` on, as many as have gradients; `number` of the step and the rates of all members
        are on the device."""
        from theodolite.kernels.update_triton import adamw

        pairs = [self._piece(g, place[0]) for g, place in zip(gradients, self._places, strict=True)]
        pieces, turned = [piece for piece, _ in pairs], tuple(turned for _, turned in pairs)
        flat = pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=1)
        rule, table = self._rule, self._table(turned)
        with torch.cuda.device_of(flat):
            adamw[(len(table) * len(flat),)](
                table,
                flat,
                None if rule.clip is None else torch.linalg.vector_norm(flat, dim=1),
                number,
                lrs,
                decays,
                start,
                len(table),
                flat.shape[1],
                rule.clip or 1.0,
                rule.epsilon,
                BETA1=rule.betas[0],
                BETA2=rule.betas[1],
                LOG1=log_beta(rule.betas[0]),
                LOG2=log_beta(rule.betas[1]),
                EARLY=rule.early_epsilon,
                SIDE=_SIDE,
                num_warps=4,
            )

    @staticmethod
    def _piece(gradient: Tensor, parameter: Tensor) -> tuple[Tensor, bool]:
        """(member, entry) in the parameter's order of memory, or, if that would be a copy, a matrix's transposed."""
        ordered = gradient if order_of(parameter) == "rows" else gradient.mT
        turned = ordered.dim() == 3 and order_of(ordered) == "columns"
        return (ordered.mT if turned else ordered).reshape(len(gradient), -1), turned

    def _table(self, turned: tuple[bool, ...]) -> Tensor:
        """Made in a step that is not captured: before a graph is, one step like it runs as it is."""
        if turned not in self._tables:
            rows = list(self._blocks(turned))
            self._tables[turned] = torch.tensor(rows, dtype=torch.int64, device=self._places[0][0].device)
        return self._tables[turned]

    def _blocks(self, turned: tuple[bool, ...]) -> Iterator[tuple[int, ...]]:
        """Addresses of parameter and moments, where their gradient begins, rows and columns, the block's first ones.
        What is not transposed is one row."""
        begin = 0
        for place, turns in zip(self._places, turned, strict=True):
            entries = place[0][0].numel()
            rows, columns = 1, entries
            if turns:
                rows, columns = place[0].shape[1:] if order_of(place[0]) == "rows" else place[0].mT.shape[1:]
            high, wide = (_SIDE, _SIDE) if turns else (1, _SIDE**2)
            addresses = [t.data_ptr() for t in place]
            for row in range(0, rows, high):
                for column in range(0, columns, wide):
                    yield *addresses, begin, rows, columns, row, column
            begin += entries


def order_of(values: Tensor) -> Literal["rows", "columns"] | None:
    """How members and their entries lie one after another, of the last two axes."""
    if values.is_contiguous():
        return "rows"
    return "columns" if values.dim() > 2 and values.mT.is_contiguous() else None


def log_beta(beta: float) -> float:
    return math.log(beta) if beta else -math.inf
