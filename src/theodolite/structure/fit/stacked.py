"""A network's parameters as one vector, for many members at once: their outputs, and the Jacobian of these."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

ENTRIES = 2**22  # of a Jacobian made at once: 32 MiB of float64


class Stacked:
    """`module` maps rows (row, feature) to (row, 1); a member is a vector of all its parameters."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.shapes = {name: tuple(p.shape) for name, p in module.named_parameters()}
        self.sizes = [math.prod(shape) for shape in self.shapes.values()]
        self.parameters = sum(self.sizes)

    @staticmethod
    def vector(module: nn.Module) -> Float[Tensor, " parameter"]:
        return torch.cat([p.detach().reshape(-1) for p in module.parameters()])

    def unflatten(self, member: Float[Tensor, " parameter"]) -> dict[str, Tensor]:
        parts = torch.split(member, self.sizes)
        return {name: part.reshape(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def outputs(
        self,
        members: Float[Tensor, "member parameter"],
        rows: Float[Tensor, "row feature"] | Float[Tensor, "member row feature"],
    ) -> Float[Tensor, "member row"]:
        """Rows are common to the members, or each has its own."""
        one = lambda member, rows: functional_call(self.module, self.unflatten(member), (rows,)).squeeze(-1)
        return vmap(one, in_dims=(0, 0 if rows.ndim == 3 else None))(members, rows)

    def jacobian(
        self,
        members: Float[Tensor, "member parameter"],
        rows: Float[Tensor, "row feature"] | Float[Tensor, "member row feature"],
    ) -> Float[Tensor, "member row parameter"]:
        """∂ output / ∂ parameter, of every row."""
        chunk = max(1, ENTRIES // (self.parameters * len(members)))
        parts = [
            self._jacobian(members, rows[..., start : start + chunk, :]) for start in range(0, rows.shape[-2], chunk)
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def _jacobian(self, members: Tensor, rows: Tensor) -> Tensor:
        def output(weights: dict[str, Tensor], row: Tensor) -> Tensor:
            return functional_call(self.module, weights, (row[None],)).reshape(())

        per_row = vmap(grad(output), in_dims=(None, 0))

        def of_member(member: Tensor, rows: Tensor) -> Tensor:
            found = per_row(self.unflatten(member), rows)
            return torch.cat([found[name].reshape(len(rows), -1) for name in self.shapes], dim=1)

        return vmap(of_member, in_dims=(0, 0 if rows.ndim == 3 else None))(members, rows)


def start(build: Callable[[], nn.Module], seeds: Sequence[int]) -> tuple[Stacked, Float[Tensor, "member parameter"]]:
    """A member of its own random weights for every seed, in float64."""
    from theodolite.nets.load import seeded

    modules = []
    for seed in seeds:
        with seeded(seed):
            modules.append(build().double())
    return Stacked(modules[0]), torch.stack([Stacked.vector(module) for module in modules])
