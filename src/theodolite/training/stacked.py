"""Members of one module as one matrix: each is a vector of all its parameters, so that an optimiser's step is a few
operations whatever the depth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, vmap

from theodolite.nets.load import seeded


class Stacked:
    """`module` gives the shapes and is run with the parameters of each member; its buffers are common to all."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.shapes = {name: tuple(p.shape) for name, p in module.named_parameters()}
        self.sizes = [math.prod(shape) for shape in self.shapes.values()]
        self.parameters = sum(self.sizes)

    @staticmethod
    def vector(module: nn.Module) -> Float[Tensor, " parameter"]:
        return torch.cat([p.detach().reshape(-1) for p in module.parameters()])

    def named(self, vectors: Float[Tensor, "*member parameter"]) -> dict[str, Tensor]:
        """The parameters in a vector, or in each of many."""
        parts = torch.split(vectors, self.sizes, dim=-1)
        shaped = lambda part, shape: part.reshape((*part.shape[:-1], *shape))
        return {name: shaped(part, shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def outputs(self, members: Float[Tensor, "member parameter"], rows: Tensor, common: bool = False) -> Tensor:
        """What the module says of each member's own rows (member, row, …), or of `common` ones (row, …)."""
        one = lambda member, rows: functional_call(self.module, self.named(member), (rows,))
        return vmap(one, in_dims=(0, None if common else 0))(members, rows)

    def values(
        self,
        members: Float[Tensor, "member parameter"],
        rows: Float[Tensor, "row feature"] | Float[Tensor, "member row feature"],
    ) -> Float[Tensor, "member row"]:
        """Of a module of vectors with one output; rows are common to the members, or each has its own."""
        return self.outputs(members, rows, common=rows.ndim == 2).squeeze(-1)


def stack(
    modules: Sequence[nn.Module], device: torch.device | None = None
) -> tuple[Stacked, Float[Tensor, "member parameter"]]:
    vectors = torch.stack([Stacked.vector(module) for module in modules]).to(device)
    return Stacked(modules[0].to(device)), vectors


def draw(
    build: Callable[[], nn.Module],
    seeds: Iterable[int],
    device: torch.device | None = None,
    dtype: torch.dtype | None = None,
) -> tuple[Stacked, Float[Tensor, "member parameter"]]:
    """A member with random weights of its own for every seed; those of one seed start alike."""
    drawn: dict[int, nn.Module] = {}
    seeds = list(seeds)
    for seed in dict.fromkeys(seeds):
        with seeded(seed):
            drawn[seed] = build().to(dtype=dtype)
    return stack([drawn[seed] for seed in seeds], device)
