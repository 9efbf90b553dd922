"""The recurrence of a net with a tape: all tokens in one kernel, and all their gradients in another.

A row's tape is kept by its Fourier coefficients, in which every action is a factor. With gradients to come the tapes of
all tokens are kept; else there is one, moved in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from theodolite.kernels import launch
from theodolite.kernels.controller import flat, options, over_tokens, padded, tiling

ACTIONS = 5


class Writer(NamedTuple):
    """Layers of equally many units before the value to write; of none, the heads say it."""

    first: Float[Tensor, "unit width"]
    inner: Float[Tensor, "layer_1 unit unit"]
    last: Float[Tensor, "cell unit"]
    bias: Float[Tensor, "layer unit"]
    last_bias: Float[Tensor, " cell"]

    @classmethod
    def of(cls, layers: list[tuple[Tensor, Tensor]], like: Float[Tensor, "width width_cell"]) -> Writer:
        """By the weights and biases of the layers, the last of which gives the value."""
        if not layers:
            width, cell = like.shape[0], like.shape[1] - like.shape[0]
            shapes = (0, width), (0, 0, 0), (cell, 0), (0, 0), (0,)
            return cls(*(like.new_empty(shape) for shape in shapes))
        (first, _), *between, (last, last_bias) = layers
        units = first.shape[0]
        inner = torch.stack([weight for weight, _ in between]) if between else like.new_empty(0, units, units)
        return cls(first, inner, last, torch.stack([bias for _, bias in layers[:-1]]), last_bias)


def tape_over_time(
    entering: Float[Tensor, "token row width"],
    across: Float[Tensor, "width width_cell"],
    heads: Float[Tensor, "head width"],
    bias: Float[Tensor, " head"],
    writer: Writer,
    turns: Float[Tensor, "row 4 k"],
    mean: Float[Tensor, "row k"],
    activation: str,
) -> Float[Tensor, "token row width"]:
    """The states of all tokens from a zero state and an empty tape.

    `turns` are the cosines and sines of a step forward and of a jump forward at every coefficient, of which `mean`
    gives the cell under the head. The heads are five actions and, without a writer, the value.
    """
    given = (each.float() for each in (entering, across, heads, bias, *writer, turns, mean))
    return _OverTime.apply(*given, activation, launch.precision(), torch.is_grad_enabled())[0].to(entering.dtype)


AXES = (3, 2, 2, 1, 2, 3, 2, 2, 1, 3, 2)  # of one member's tensors
KEPT = (3, 3, 3, 3, 4, 5)


class _OverTime(torch.autograd.Function):
    """States and, for the gradient: what was read, how likely the actions were, what was added to the tape, the units
    of the writer, and the tapes. Any axes in front of the tensors are members."""

    @staticmethod
    def forward(*given: Any) -> tuple[Tensor, ...]:
        tensors, how = given[: len(AXES)], given[len(AXES) :]
        made = _FORWARD(*(flat(each, axes) for each, axes in zip(tensors, AXES, strict=True)), *how)
        return tuple(each.reshape(*given[0].shape[:-3], *each.shape[1:]) for each in made)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        _, across, heads, _, first, inner, last, _, _, turns, mean, *ctx.how, _ = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(across, heads, first, inner, last, turns, mean, *output)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        return *_Backward.apply(grad_outputs[0], *ctx.saved_tensors, *ctx.how), None, None, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        return _OverTime.apply(*launch.members_first(info, in_dims, *args)), (0,) * len(KEPT)


class _Backward(launch.FirstDerivative):
    """The gradients at what enters and at the weights."""

    @staticmethod
    def forward(
        grad: Tensor,
        across: Tensor,
        heads: Tensor,
        first: Tensor,
        inner: Tensor,
        last: Tensor,
        turns: Tensor,
        mean: Tensor,
        hidden: Tensor,
        read: Tensor,
        acted: Tensor,
        changes: Tensor,
        written: Tensor,
        tapes: Tensor,
        activation: str,
        precision: str,
    ) -> tuple[Tensor, ...]:
        weights = flat(across, 2), flat(heads, 2), flat(first, 2), flat(inner, 3), flat(last, 2)
        states, units = flat(hidden, 3), flat(written, 4)
        kept = states, flat(acted, 3), flat(changes, 3), units, flat(tapes, 5)
        entered, headed, changed, wrote = _BACKWARD(
            flat(grad, 3), *weights, flat(turns, 3), flat(mean, 2), *kept, activation, precision
        )
        product = lambda one, other: over_tokens(one, other, precision)
        after, before = entered[:, 1:], states[:, :-1]
        crossed = torch.cat((product(after, before), product(after, flat(read, 3))), dim=-1)
        found = [entered, crossed, product(headed, before), headed.sum(dim=(1, 2))]
        layers = wrote.shape[1]
        if layers:
            between = [product(wrote[:, layer], units[:, layer - 1]) for layer in range(1, layers)]
            joined = torch.stack(between, dim=1) if between else torch.empty_like(weights[3])
            found += [product(wrote[:, 0], before), joined, product(changed, units[:, -1])]
            found += [wrote.sum(dim=(2, 3)), changed.sum(dim=(1, 2))]
        else:
            found += [torch.empty_like(each) for each in weights[2:]]
            found += [wrote.new_empty(wrote.shape[0], 0, 0), wrote.new_empty(wrote.shape[0], 0)]
        return tuple(each.reshape(*grad.shape[:-3], *each.shape[1:]) for each in found)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        return _Backward.apply(*launch.members_first(info, in_dims, *args)), (0,) * 9


def _forward(
    entering: Tensor,
    across: Tensor,
    heads: Tensor,
    bias: Tensor,
    first: Tensor,
    inner: Tensor,
    last: Tensor,
    leans: Tensor,
    least: Tensor,
    turns: Tensor,
    mean: Tensor,
    activation: str,
    precision: str,
    keep: bool,
) -> tuple[Tensor, ...]:
    from theodolite.kernels import tape_triton as kernels

    weights = across, heads, bias, first, inner, last, leans, least, turns, mean
    made = _forward_shapes(entering, *weights, activation, precision, keep)
    members, tokens, rows, width = entering.shape
    # Without gradients one place serves all tokens.
    used = made if keep else (made[0], *_kept(entering, across, leans, mean, 1, 1))
    tiled = tiling(members, rows, width)
    given = [each.contiguous() for each in (entering, *weights)]
    kernels.forward[members, -(-rows // tiled.rows)](
        *[*given, *used, tokens, rows, mean.shape[-1]],
        **options(tiled, **_constants(across, leans.shape[1:], activation, precision, tiled.rows), KEEP=keep),
    )
    return made


def _forward_shapes(
    entering: Tensor,
    across: Tensor,
    heads: Tensor,
    bias: Tensor,
    first: Tensor,
    inner: Tensor,
    last: Tensor,
    leans: Tensor,
    least: Tensor,
    turns: Tensor,
    mean: Tensor,
    activation: str,
    precision: str,
    keep: bool,
) -> tuple[Tensor, ...]:
    tokens = entering.shape[1]
    acting, moved = (tokens - 1, max(tokens - 2, 0)) if keep else (0, 0)
    hidden = torch.empty_like(entering, memory_format=torch.contiguous_format)
    return hidden, *_kept(entering, across, leans, mean, acting, moved)


def _kept(entering: Tensor, across: Tensor, leans: Tensor, mean: Tensor, acting: int, moved: int) -> tuple[Tensor, ...]:
    members, _, rows, width = entering.shape
    cell = across.shape[-1] - width
    shapes = (
        (members, acting, rows, cell),
        (members, acting, rows, ACTIONS),
        (members, acting, rows, cell),
        (members, leans.shape[1], acting, rows, leans.shape[2]),
        (members, moved, rows, 2, mean.shape[-1], cell),
    )
    return tuple(entering.new_empty(shape) for shape in shapes)


def _backward(
    grad: Tensor,
    across: Tensor,
    heads: Tensor,
    first: Tensor,
    inner: Tensor,
    last: Tensor,
    turns: Tensor,
    mean: Tensor,
    hidden: Tensor,
    acted: Tensor,
    changes: Tensor,
    written: Tensor,
    tapes: Tensor,
    activation: str,
    precision: str,
) -> tuple[Tensor, ...]:
    from theodolite.kernels import tape_triton as kernels

    given = across, heads, first, inner, last, turns, mean, hidden, acted, changes, written, tapes
    made = _backward_shapes(grad, *given, activation, precision)
    members, tokens, rows, width = grad.shape
    cell, kinds = across.shape[-1] - width, mean.shape[-1]
    tiled = tiling(members, rows, width)
    given = [each.contiguous() for each in (grad, *given)]
    scratch = grad.new_empty(members, rows, cell), grad.new_empty(members, rows, 2, kinds, cell)
    kernels.backward[members, -(-rows // tiled.rows)](
        *[*given, *made, *scratch, tokens, rows, kinds],
        **options(
            tiled, **_constants(across, (written.shape[1], written.shape[-1]), activation, precision, tiled.rows)
        ),
    )
    return made


def _backward_shapes(
    grad: Tensor,
    across: Tensor,
    heads: Tensor,
    first: Tensor,
    inner: Tensor,
    last: Tensor,
    turns: Tensor,
    mean: Tensor,
    hidden: Tensor,
    acted: Tensor,
    changes: Tensor,
    written: Tensor,
    tapes: Tensor,
    activation: str,
    precision: str,
) -> tuple[Tensor, ...]:
    entered = torch.empty_like(grad, memory_format=torch.contiguous_format)
    headed = grad.new_empty(*acted.shape[:-1], heads.shape[1])
    return entered, headed, grad.new_empty(changes.shape), grad.new_empty(written.shape)


def _constants(across: Tensor, writer: Sequence[int], activation: str, precision: str, rows: int) -> dict[str, Any]:
    width, (layers, units) = across.shape[1], writer
    cell = across.shape[2] - width
    heads = padded(cell + ACTIONS)
    sizes = {"WIDTH": width, "CELL": cell, "LAYERS": layers, "UNITS": max(units, 16), "OUT": padded(width)}
    # Wider than the rows, lest Triton give each warp of the writer's last product all its columns.
    sizes |= {"HEADS": heads, "WIDE": max(heads, 2 * rows), "CELLS": 1 << (cell - 1).bit_length()}
    return {**sizes, "ACTIVATION": activation, "PRECISION": precision}


_FORWARD = launch.declare(
    "tape_forward(Tensor entering, Tensor across, Tensor heads, Tensor bias, Tensor first, Tensor inner, Tensor last, "
    "Tensor leans, Tensor least, Tensor turns, Tensor mean, str activation, str precision, bool keep) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _forward,
    _forward_shapes,
)
_BACKWARD = launch.declare(
    "tape_backward(Tensor grad, Tensor across, Tensor heads, Tensor first, Tensor inner, Tensor last, Tensor turns, "
    "Tensor mean, Tensor hidden, Tensor acted, Tensor changes, Tensor written, Tensor tapes, str activation, "
    "str precision) -> (Tensor, Tensor, Tensor, Tensor)",
    _backward,
    _backward_shapes,
)
