"""The Jacobian of stacked members: what least squares solves with."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import functional_call, grad, vmap

from theodolite.training.stacked import Stacked

ENTRIES = 2**22  # of a Jacobian made at once: 32 MiB of float64


def jacobian(
    net: Stacked,
    members: Float[Tensor, "member parameter"],
    rows: Float[Tensor, "row feature"] | Float[Tensor, "member row feature"],
) -> Float[Tensor, "member row parameter"]:
    """∂ output / ∂ parameter, of every row."""
    chunk = max(1, ENTRIES // (net.parameters * len(members)))
    parts = [_part(net, members, rows[..., start : start + chunk, :]) for start in range(0, rows.shape[-2], chunk)]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def _part(net: Stacked, members: Tensor, rows: Tensor) -> Tensor:
    def output(weights: dict[str, Tensor], row: Tensor) -> Tensor:
        return functional_call(net.module, weights, (row[None],)).reshape(())

    per_row = vmap(grad(output), in_dims=(None, 0))

    def of_member(member: Tensor, rows: Tensor) -> Tensor:
        found = per_row(net.named(member), rows)
        return torch.cat([found[name].reshape(len(rows), -1) for name in net.shapes], dim=1)

    return vmap(of_member, in_dims=(0, 0 if rows.ndim == 3 else None))(members, rows)
