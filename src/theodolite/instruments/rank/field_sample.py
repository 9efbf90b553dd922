"""The points and weights of an exact measurement: every number named by a stream of the draw rule.

Stream names. `<seed>/<repeat>/prime` gives the prime, `<seed>/<repeat>/weights/<parameter>` the weights,
`<seed>/<repeat>/a` and `/b` the points: number i·|side|·features + j is the j-th coordinate of point i.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.field import FieldTensor, Modulus, draw_prime, draw_residues
from theodolite.instruments.rank.scalar import Evaluate, ScalarFunction
from theodolite.partition import Partition


@dataclass(frozen=True)
class FieldSample:
    """One repeat of a measurement over GF(p): its prime, and the weights and points drawn for it."""

    function: ScalarFunction
    partition: Partition
    seed: int
    repeat: int
    modulus: Modulus
    device: torch.device
    own_weights: bool = False

    @classmethod
    def make(
        cls,
        function: ScalarFunction,
        partition: Partition,
        seed: int,
        repeat: int,
        device: torch.device,
        prime: int | None = None,
        own_weights: bool = False,
    ) -> FieldSample:
        modulus = Modulus(draw_prime(f"{seed}/{repeat}/prime") if prime is None else prime)
        return cls(function, partition, seed, repeat, modulus, device, own_weights)

    def evaluate(self) -> Evaluate:
        return self.function.over_field(self.weights(), self.modulus)

    def weights(self) -> dict[str, FieldTensor]:
        if self.own_weights:
            return self.function.own_weights(self.modulus, self.device)
        return self.function.draw_weights(f"{self.seed}/{self.repeat}/weights", self.modulus, self.device)

    def points(self, side: str, stop: int, start: int = 0) -> Tensor:
        """Points start..stop of side `a` or `b`, as (points, sites of the side, features)."""
        shape = (len(getattr(self.partition, side)), self.function.subject.features)
        first = start * shape[0] * shape[1]
        return draw_residues(self.stream(side), (stop - start, *shape), self.modulus, first, self.device)

    def chosen(self, side: str, indices: Tensor) -> Tensor:
        """The points with these indices."""
        stop = int(indices.max()) + 1 if len(indices) else 0
        return self.points(side, stop)[indices.to(self.device)]

    def pairs(self, a: Tensor, b: Tensor) -> Tensor:
        """Points of all sites from as many of either side."""
        x = torch.empty(len(a), self.partition.sites, a.shape[2], dtype=a.dtype, device=a.device)
        x[:, list(self.partition.a)], x[:, list(self.partition.b)] = a, b
        return x

    def whole(self, name: str, count: int) -> Tensor:
        """`count` points of all sites, from a stream of their own."""
        shape = (count, self.partition.sites, self.function.subject.features)
        return draw_residues(self.stream(name), shape, self.modulus, device=self.device)

    def stream(self, name: str) -> str:
        return f"{self.seed}/{self.repeat}/{name}"
