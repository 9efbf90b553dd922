"""Values and Jacobians of stacked members: what least squares solves with, most of the work of a fit.

Of networks of a graph both are written out: all members, constituents and rows of a stage in one batched product, and
every slope once, where it belongs in the Jacobian. Of any other module torch's own transforms give them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from theodolite.nets.compositional_net import CompositionalNet, Perceptrons, Products, Sums
from theodolite.training.stacked import Stacked

ENTRIES = 2**22  # of a Jacobian made at once by transforms: 32 MiB of float64

Slopes = Callable[[Tensor, dict[str, Tensor]], Tensor]


def values(
    net: Stacked,
    members: Float[Tensor, "member parameter"],
    rows: Float[Tensor, "row feature"] | Float[Tensor, "member row feature"],
) -> Float[Tensor, "member row"]:
    """What every member says; rows are common to the members, or each has its own."""
    if not by_hand(net.module):
        return net.values(members, rows)
    return _Pass(net, members, rows, slopes=False).found[-1][:, 0]


def jacobian(
    net: Stacked,
    members: Float[Tensor, "member parameter"],
    rows: Float[Tensor, "row feature"] | Float[Tensor, "member row feature"],
    out: Tensor | None = None,
) -> Float[Tensor, "member row parameter"]:
    """∂ output / ∂ parameter, of every row. `out`, an earlier Jacobian of the same sizes, may be written over: fresh
    memory costs as much as the work."""
    if by_hand(net.module):
        return _Pass(net, members, rows, slopes=True).jacobian(out)
    chunk = max(1, ENTRIES // (net.parameters * len(members)))
    parts = [_part(net, members, rows[..., start : start + chunk, :]) for start in range(0, rows.shape[-2], chunk)]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def by_hand(module: nn.Module) -> bool:
    return isinstance(module, CompositionalNet) and module.scalar


def _part(net: Stacked, members: Tensor, rows: Tensor) -> Tensor:
    def output(weights: dict[str, Tensor], row: Tensor) -> Tensor:
        return functional_call(net.module, weights, (row[None],)).reshape(())

    per_row = vmap(grad(output), in_dims=(None, 0))

    def of_member(member: Tensor, rows: Tensor) -> Tensor:
        found = per_row(net.named(member), rows)
        return torch.cat([found[name].reshape(len(rows), -1) for name in net.shapes], dim=1)

    return vmap(of_member, in_dims=(0, 0 if rows.ndim == 3 else None))(members, rows)


@dataclass(frozen=True)
class _Way:
    """What a block read (stage by stage, and which rows of these), and its way back: from the slope of the network by
    what it says to that by what it read, with those by its parameters entered on the way."""

    block: str
    stages: tuple[int, ...]
    places: Tensor | slice
    back: Slopes


class _Pass:
    """One way through the stages of a graph's network for all members: `found` is (member, number, row) of every
    stage."""

    def __init__(self, net: Stacked, members: Tensor, rows: Tensor, *, slopes: bool) -> None:
        module = net.module
        assert isinstance(module, CompositionalNet)
        self.net, self.members = net, members
        named = net.named(members)
        first = rows.mT if rows.ndim == 3 else rows.mT.expand(len(members), -1, -1)
        self.found, self.ways = [first], []
        for number, stage in enumerate(module.stages):
            said, ways = [], []
            for place, (block, read) in enumerate(zip(stage.blocks, stage.reads, strict=True)):  # pyright: ignore
                name = f"stages.{number}.blocks.{place}."
                own = {key[len(name) :]: value for key, value in named.items() if key.startswith(name)}
                below = [self.found[s] for s in read.stages]
                every = below[0] if len(below) == 1 else torch.cat(below, dim=1)
                if read.together:
                    places = slice(read.first, read.first + read.count)
                    u = every[:, places]
                else:
                    places = read.index
                    u = every.index_select(1, places)
                out, back = _FORWARD[type(block)](block, own, u.unflatten(1, (read.nodes, -1)), slopes)
                said.append(out.flatten(1, 2))
                ways.append(_Way(name, read.stages, places, back))
            self.found.append(said[0] if len(said) == 1 else torch.cat(said, dim=1))
            self.ways.append(ways)

    def jacobian(self, out: Tensor | None) -> Tensor:
        sizes = (len(self.members), self.net.parameters, self.found[0].shape[2])
        table = self.members.new_empty(sizes) if out is None else out.transpose(1, 2)
        parts = dict(zip(self.net.shapes, torch.split(table, self.net.sizes, dim=1), strict=True))
        shaped = {
            name: part.unflatten(1, self.net.shapes[name]) if self.net.shapes[name] else part
            for name, part in parts.items()
        }
        slopes = [torch.zeros_like(part) for part in self.found[1:]]
        slopes[-1] += 1
        for number in range(len(self.ways) - 1, -1, -1):
            at = 0
            for way in self.ways[number]:
                into = {key[len(way.block) :]: value for key, value in shaped.items() if key.startswith(way.block)}
                nodes = into["bias"].shape[1]
                by_read = way.back(slopes[number][:, at : at + nodes, None], into).flatten(1, 2)
                at += nodes
                self._hand_down(way, by_read, slopes)
        return table.transpose(1, 2)

    def _hand_down(self, way: _Way, by_read: Tensor, slopes: list[Tensor]) -> None:
        """To the stages that were read; those of the variables are not asked for."""
        if way.stages == (0,):
            return
        sizes = [self.found[stage].shape[1] for stage in way.stages]
        whole = by_read.new_zeros(len(by_read), sum(sizes), by_read.shape[2])
        if isinstance(way.places, slice):
            whole[:, way.places] = by_read
        else:
            whole.index_add_(1, way.places, by_read)
        for stage, part in zip(way.stages, torch.split(whole, sizes, dim=1), strict=True):
            if stage > 0:
                slopes[stage - 1] += part


def _times(weight: Tensor, u: Tensor, bias: Tensor) -> Tensor:
    """Of every member and node, weight · u + bias."""
    flat = torch.baddbmm(bias.flatten(0, 1), weight.flatten(0, 1), u.flatten(0, 1))
    return flat.unflatten(0, u.shape[:2])


def _perceptrons(block: Perceptrons, own: dict[str, Tensor], u: Tensor, slopes: bool) -> tuple[Tensor, Slopes]:
    depth = len(block.weights)
    reads, bends = [u], []
    for layer in range(depth):
        said = _times(own[f"weights.{layer}"], reads[-1], own[f"biases.{layer}"])
        if not slopes:
            reads.append(_tanh(said) if _is_tanh(block.activation) else block.activation(said))
            continue
        bent, bend = _bent(block.activation, said)
        reads.append(bent)
        bends.append(bend)
    straight = _times(own["linear"], u, own["bias"])
    out = _times(own["combine"], reads[-1], straight)

    def back(slope: Tensor, into: dict[str, Tensor]) -> Tensor:
        into["bias"].copy_(slope[:, :, :, None])
        torch.mul(slope, reads[-1], out=into["combine"][:, :, 0])
        torch.mul(slope, u, out=into["linear"][:, :, 0])
        down = own["combine"].mT * slope
        for layer in range(depth - 1, -1, -1):
            down = down * bends[layer]
            into[f"biases.{layer}"][:, :, :, 0].copy_(down)
            torch.mul(down[:, :, :, None], reads[layer][:, :, None], out=into[f"weights.{layer}"])
            down = (own[f"weights.{layer}"].flatten(0, 1).mT @ down.flatten(0, 1)).unflatten(0, down.shape[:2])
        return down + own["linear"].mT * slope

    return out, back


def _bent(activation: Callable[[Tensor], Tensor], said: Tensor) -> tuple[Tensor, Tensor]:
    """An activation and its slope."""
    if _is_tanh(activation):
        bent = _tanh(said)
        return bent, 1 - bent**2
    with torch.enable_grad():
        said = said.detach().requires_grad_()
        bent = activation(said)
    return bent.detach(), torch.autograd.grad(bent, said, torch.ones_like(bent))[0]


def _is_tanh(activation: Callable[[Tensor], Tensor]) -> bool:
    return isinstance(activation, nn.Tanh) or activation is torch.tanh


def _tanh(x: Tensor) -> Tensor:
    """On a CPU by NumPy, whose vectors take a fifth to a tenth of the time of torch's."""
    return x.tanh() if x.device.type != "cpu" else _Tanh.apply(x)  # pyright: ignore[reportReturnType]


class _Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = torch.from_numpy(np.tanh(x.detach().numpy()))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return torch.addcmul(slopes[0], slopes[0] * y, y, value=-1)


def _sums(_: Sums, own: dict[str, Tensor], u: Tensor, _slopes: bool) -> tuple[Tensor, Slopes]:
    def back(slope: Tensor, into: dict[str, Tensor]) -> Tensor:
        into["bias"].copy_(slope[:, :, :, None])
        torch.mul(slope, u, out=into["weight"][:, :, 0])
        return own["weight"].mT * slope

    return _times(own["weight"], u, own["bias"]), back


def _products(_: Products, own: dict[str, Tensor], u: Tensor, _slopes: bool) -> tuple[Tensor, Slopes]:
    count = u.shape[2]
    weight, offset = (own[name].flatten(1).unflatten(1, (-1, count))[..., None] for name in ("weight", "offset"))
    factors = torch.addcmul(offset, weight, u).unbind(2)
    before = [torch.ones_like(factors[0])]  # the product of those before each factor
    for factor in factors:
        before.append(before[-1] * factor)

    def back(slope: Tensor, into: dict[str, Tensor]) -> Tensor:
        after, others = torch.ones_like(factors[0]), []
        for place in range(count - 1, -1, -1):
            others.append(before[place] * after)
            after = after * factors[place]
        down = torch.stack(others[::-1], dim=2) * slope
        into["bias"].copy_(slope[:, :, :, None])
        into["offset"].copy_(down.flatten(1, 2)[:, :, None, None])
        into["weight"].copy_((down * u).flatten(1, 2)[:, :, None, None])
        return down * weight

    return before[-1][:, :, None] + own["bias"], back


_FORWARD: dict[type[nn.Module], Callable[..., tuple[Tensor, Slopes]]] = {
    Perceptrons: _perceptrons,
    Sums: _sums,
    Products: _products,
}
