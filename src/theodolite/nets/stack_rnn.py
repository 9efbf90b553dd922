"""An Elman network with a stack it pushes to and pops from softly, so that gradients flow through what it does.

Joulin & Mikolov 2015, "Inferring algorithmic patterns with stack-augmented recurrent nets", with the controller of
Delétang et al. 2022, "Neural networks and the Chomsky hierarchy".
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from theodolite.kernels.controller import fits
from theodolite.kernels.launch import usable
from theodolite.kernels.stack import stack_over_time
from theodolite.nets.contract import positive, register_trained
from theodolite.nets.parts.recurrent import Controller, Recurrent

ACTIONS = ("push", "stay", "pop")


class StackLayer(nn.Module):
    """The controller reads the top; then the stack becomes the mean of it pushed upon, left alone and popped.

    `cells` bounds the stack; None is a stack without end. Only the cells that can still be read are computed: after t
    of T tokens at most t are filled, and what lies deeper than T − t cannot come up again.
    """

    def __init__(self, features: int, width: int, cell: int, cells: int | None, activation: str) -> None:
        super().__init__()
        self.width, self.cell, self.cells = width, cell, cells
        self.control = Controller(features, width, cell, cell + len(ACTIONS), activation)

    def forward(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "batch token width"]:
        if usable(x, self.control.across.weight) and fits(self.width, self.cell):
            return self.fused(x)
        tokens = x.shape[1]
        hidden, top = x.new_zeros(x.shape[0], self.width), x.new_zeros(x.shape[0], self.cell)
        stack, empty, states = top[:, None][:, :0], top[:, None].expand(-1, 2, -1), []
        for token, entering in enumerate(self.control.into(x.transpose(0, 1)).unbind(0), start=1):
            hidden, heads = self.control(entering, hidden, top)
            states.append(hidden)
            if token < tokens:
                value, logits = heads.split((self.cell, len(ACTIONS)), dim=-1)
                depth = min(token, tokens - token, self.cells or tokens)
                below = empty[:, : depth + 1 - stack.shape[1]]
                cells = torch.cat((value[:, None], stack, below), dim=1)
                stack, top = Slide.apply(cells, torch.softmax(logits, dim=-1))
        return torch.stack(states, dim=1)

    def fused(self, x: Float[Tensor, "batch token feature"]) -> Float[Tensor, "batch token width"]:
        """All tokens in one kernel."""
        control, cells = self.control, self.cells or x.shape[1]
        given = control.entering(x), control.across.weight, control.heads.weight, control.heads.bias
        return stack_over_time(*given, cells, control.activation.__name__).transpose(0, 1)


def slide(cells: Float[Tensor, "*any cell_2 size"], weights: Float[Tensor, "*any 3"]) -> Tensor:
    """Σ_a w_a · cells[a :], two cells shorter: with the new value in front, push is no shift, stay one, pop two."""
    push, stay, pop = weights[..., None, None].unbind(-3)
    depth = cells.shape[-2] - 2
    moved = push * cells.narrow(-2, 0, depth)
    moved = torch.addcmul(moved, stay, cells.narrow(-2, 1, depth))
    return torch.addcmul(moved, pop, cells.narrow(-2, 2, depth))


class Slide(torch.autograd.Function):
    """`slide` and the top of what comes of it, with the gradient written out: a slide the other way, and three
    products with what was moved. A quarter of a step's kernels are saved, most of them passes over the whole stack."""

    @staticmethod
    def forward(cells: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        moved = slide(cells, weights)
        return moved, moved[..., 0, :].clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, Tensor]:
        (moved, top), (cells, weights) = grad_outputs, ctx.saved_tensors
        nothing = torch.zeros_like(cells[..., :2, :])
        first = moved[..., :1, :] + top.unsqueeze(-2)
        padded = torch.cat((nothing, first, moved[..., 1:, :], nothing), dim=-2)
        depth = moved.shape[-2]
        windows = cells.unfold(-2, depth, 1) * padded.narrow(-2, 2, depth).mT.unsqueeze(-3)  # (batch, 3, size, depth)
        return slide(padded, weights.flip(-1)), windows.sum(dim=(-1, -2))

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Tensor) -> tuple[Tensor, Tensor]:
        (cells, weights), (held, acted) = grad_inputs, ctx.saved_tensors
        moved = slide(cells, acted) + slide(held, weights)
        return moved, moved[..., 0, :].clone()

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *args: Tensor
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        """Members are one more axis in front, which `slide` takes as it is."""
        members = [
            each.expand(info.batch_size, *each.shape) if axis is None else each.movedim(axis, 0)
            for each, axis in zip(args, in_dims, strict=True)
        ]
        return Slide.apply(*members), (0, 0)


@register_trained("stack-rnn", "Elman network that pushes to and pops from a differentiable stack")
def stack_rnn(
    features: int = 4,
    outputs: int = 1,
    tokens: int | None = None,
    depth: int = 1,
    width: int = 32,
    cell: int = 8,
    stack: int | None = None,
    activation: str = "relu",
) -> Recurrent:
    """`depth` layers with a stack each: cells of `cell` numbers, at most `stack` of them (None: as many as tokens)."""
    positive(cell=cell, **({} if stack is None else {"stack": stack}))
    layer = partial(StackLayer, cell=cell, cells=stack, activation=activation)
    return Recurrent(layer, features, outputs, depth, width)
